"""What each kernel of a run did, as no GPU shows it: counted, and held against the roofline.

The counts are the interpreter's, the times the model's, so it looks at simulated devices only.

- `scope` has the function that people call.
- `report` adds up launches, kernel by kernel; `columns`, `listing` and `picture` show the sums. The
  picture alone needs matplotlib.
"""

from asyncgpu_tutor.inspection.report import KernelReport, Report
from asyncgpu_tutor.inspection.scope import microscope

__all__ = ["KernelReport", "Report", "microscope"]
