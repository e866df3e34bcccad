"""The project of the course: four batches through a small network, overlapping on the GPU."""

from asyncgpu_tutor.commands.mlp.command import add_arguments, run
from asyncgpu_tutor.commands.mlp.pipeline import forward, upload
from asyncgpu_tutor.commands.mlp.ways import run_batches, traced

__all__ = ["add_arguments", "forward", "run", "run_batches", "traced", "upload"]
