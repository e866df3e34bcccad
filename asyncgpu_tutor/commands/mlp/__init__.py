"""The project of the course: four batches through a small network, overlapping on the GPU.

``python -m asyncgpu_tutor mlp`` runs it. `pipeline` says what a batch needs, `program` runs the
batches side by side, `checks` doubts the results, `report` puts all of it into words, and `command`
is the command line.
"""

from asyncgpu_tutor.commands.mlp.checks import rounding_bound, verify
from asyncgpu_tutor.commands.mlp.command import add_arguments, run
from asyncgpu_tutor.commands.mlp.pipeline import forward, upload
from asyncgpu_tutor.commands.mlp.program import Outcome, infer, run_batches, warm_up

__all__ = [
    "Outcome",
    "add_arguments",
    "forward",
    "infer",
    "rounding_bound",
    "run",
    "run_batches",
    "upload",
    "verify",
    "warm_up",
]
