"""The project of the course: four batches through a small network, overlapping on the GPU.

``python -m asyncgpu_tutor mlp`` runs it. `pipeline` has the operation of one batch, `ways` runs four batches
in five ways, and `measuring` records one. `report` checks the results and puts them into words; `command` is
the command line.
"""

from asyncgpu_tutor.commands.mlp.command import add_arguments, run
from asyncgpu_tutor.commands.mlp.measuring import run_batches, traced
from asyncgpu_tutor.commands.mlp.pipeline import forward, upload

__all__ = ["add_arguments", "forward", "run", "run_batches", "traced", "upload"]
