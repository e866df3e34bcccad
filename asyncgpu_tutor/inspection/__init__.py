"""What each kernel of a run did, as no GPU shows it; and what a program would do with other parameters.

The counts are the interpreter's, the times the model's, so it looks at simulated devices only.

- `scope` has the function that people call.
- `kernel_report` adds up the launches of a kernel, `report` has all kernels of a run; `columns`, `listing`
  and `picture` show the sums. The picture alone needs matplotlib.
- `accesses` notes what the threads of one launch touch, and `threads` draws them, step by step.
- `what_if` runs one program for many values of its parameters.
"""

from asyncgpu_tutor.inspection.report import Report
from asyncgpu_tutor.inspection.scope import microscope
from asyncgpu_tutor.inspection.threads import Threads, show_threads
from asyncgpu_tutor.inspection.what_if import Exploration, explore
from simgpu.report.kernel_report import KernelReport

__all__ = [
    "Exploration",
    "KernelReport",
    "Report",
    "Threads",
    "explore",
    "microscope",
    "show_threads",
]
