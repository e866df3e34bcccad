"""Reports of what kernels of the simulated device did, for `inspection`; loaded when it asks."""

from simgpu.report.accesses import AccessSite, Watched, memory_of
from simgpu.report.block_timeline import BlockTimeline, WarpState, block_timeline
from simgpu.report.columns import annotate, render_columns
from simgpu.report.kernel_report import KernelReport, add_up

__all__ = [
    "AccessSite",
    "BlockTimeline",
    "KernelReport",
    "WarpState",
    "Watched",
    "add_up",
    "annotate",
    "block_timeline",
    "memory_of",
    "render_columns",
]
