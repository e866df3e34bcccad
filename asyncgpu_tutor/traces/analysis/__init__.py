"""What a trace tells about its program: why the device was idle, what is wrong, and how two runs differ.

- `idle`, `depth` compute; `overview` puts their results together, `overview_picture` draws them.
- `defects` is the detective, with one function for each suspect; a `finding` is what it returns.
- `comparison` lays traces side by side: simulated, recorded, live.

Everything here takes a `Trace` and nothing else, so it works for simulated runs, live ones, recordings, and
exports of Nsight Systems alike.
"""

from asyncgpu_tutor.traces.analysis.comparison import Comparison, Difference, compare
from asyncgpu_tutor.traces.analysis.defects import diagnose
from asyncgpu_tutor.traces.analysis.depth import Depth, OverlapMatrix, overlap_matrix, queue_depth
from asyncgpu_tutor.traces.analysis.finding import Finding
from asyncgpu_tutor.traces.analysis.idle import CAUSES, Cause, Idle, idle_of_device, idle_of_streams
from asyncgpu_tutor.traces.analysis.overview import Analysis, analyse

__all__ = [
    "CAUSES",
    "Analysis",
    "Cause",
    "Comparison",
    "Depth",
    "Difference",
    "Finding",
    "Idle",
    "OverlapMatrix",
    "analyse",
    "compare",
    "diagnose",
    "idle_of_device",
    "idle_of_streams",
    "overlap_matrix",
    "queue_depth",
]
