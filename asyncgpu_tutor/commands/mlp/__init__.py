"""The project of the course: four batches through a small network, overlapping on the GPU."""

from asyncgpu_tutor.commands.mlp.command import add_mlp_arguments, run_mlp
from asyncgpu_tutor.commands.mlp.pipeline import forward, upload
from asyncgpu_tutor.commands.mlp.ways import run_batches, traced

__all__ = ["add_mlp_arguments", "forward", "run_batches", "run_mlp", "traced", "upload"]
