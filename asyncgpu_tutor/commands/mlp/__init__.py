"""The project of the course: four batches through a small network, overlapping on the GPU.

``python -m asyncgpu_tutor mlp`` runs it. `pipeline` says what a batch needs, `ways` runs the batches of a
`job` in five ways, and `measuring` records one. `verification` doubts the results, `printout` and
`conclusions` put all of it into words, and `options` and `command` are the command line.
"""

from asyncgpu_tutor.commands.mlp.command import run
from asyncgpu_tutor.commands.mlp.measuring import run_batches, traced
from asyncgpu_tutor.commands.mlp.options import add_arguments
from asyncgpu_tutor.commands.mlp.pipeline import forward, upload

__all__ = ["add_arguments", "forward", "run", "run_batches", "traced", "upload"]
