"""A look into each kernel of a run, as no GPU allows it.

The counts are the interpreter's, the times the model's, so it looks at simulated devices only.
"""

from asyncgpu_tutor.devices.simulated.report import KernelReport
from asyncgpu_tutor.inspection.litmus import Litmus, litmus
from asyncgpu_tutor.inspection.scope import MicroscopeReport, microscope
from asyncgpu_tutor.inspection.threads import Threads, show_threads
from asyncgpu_tutor.inspection.warps import Warps, show_warps

__all__ = [
    "KernelReport",
    "Litmus",
    "MicroscopeReport",
    "Threads",
    "Warps",
    "litmus",
    "microscope",
    "show_threads",
    "show_warps",
]
