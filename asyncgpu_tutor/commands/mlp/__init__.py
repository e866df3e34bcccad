"""The project of the course: four batches through a small network, overlapping on the GPU.

``python -m asyncgpu_tutor mlp`` runs it. `pipeline` says what a batch needs, `ways` runs the batches of a
`job` in five ways, and `measuring` records one. `verdict` doubts the results, `printout` and `conclusions`
put all of it into words, and `options` and `command` are the command line.
"""

from asyncgpu_tutor.commands.mlp.command import run
from asyncgpu_tutor.commands.mlp.job import Job, Side
from asyncgpu_tutor.commands.mlp.measuring import Outcome, measured, run_batches, traced
from asyncgpu_tutor.commands.mlp.options import add_arguments
from asyncgpu_tutor.commands.mlp.pipeline import Network, forward, network_forward, upload
from asyncgpu_tutor.commands.mlp.verification import reference, rounding_bound, verify
from asyncgpu_tutor.commands.mlp.ways import WAYS

__all__ = [
    "WAYS",
    "Job",
    "Network",
    "Outcome",
    "Side",
    "add_arguments",
    "forward",
    "measured",
    "network_forward",
    "reference",
    "rounding_bound",
    "run",
    "run_batches",
    "traced",
    "upload",
    "verify",
]
