"""What kernels of the simulated device did, for `inspection`; not loaded before somebody asks."""

from simgpu.report.accesses import Access, Watched, memory_of
from simgpu.report.columns import render
from simgpu.report.kernel_report import KernelReport, add_up, load_store_gb_s, peak_gflops
from simgpu.report.listing import annotate

__all__ = [
    "Access",
    "KernelReport",
    "Watched",
    "add_up",
    "annotate",
    "load_store_gb_s",
    "memory_of",
    "peak_gflops",
    "render",
]
