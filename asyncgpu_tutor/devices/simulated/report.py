"""Reports of what kernels of the simulated device did, for `inspection`; loaded when it asks."""

from simgpu.report.accesses import AccessSite, Watched, memory_of
from simgpu.report.columns import annotate, render_columns
from simgpu.report.kernel_report import KernelReport, add_up

__all__ = [
    "AccessSite",
    "KernelReport",
    "Watched",
    "add_up",
    "annotate",
    "memory_of",
    "render_columns",
]
