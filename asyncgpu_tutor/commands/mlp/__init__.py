"""The project of the course: four batches through a small network, overlapping on the GPU.

``python -m asyncgpu_tutor mlp`` runs it. `pipeline` has the operation of one batch, `ways` runs the batches
of a job in five ways, and `measuring` records one. `verification` checks the results, `report` puts all of it
into words, and `command` is the command line.
"""

from asyncgpu_tutor.commands.mlp.command import add_arguments, run
from asyncgpu_tutor.commands.mlp.measuring import run_batches, traced
from asyncgpu_tutor.commands.mlp.pipeline import forward, upload

__all__ = ["add_arguments", "forward", "run", "run_batches", "traced", "upload"]
