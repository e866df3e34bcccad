"""Conclusions from a trace: why the device was idle, what is wrong, and how two runs differ.

- `idle` and `sums` compute, from what `facts` works out once; `overview` puts their results together.
- `defects` is the detective, with one function for each suspect, and `limits` finds what holds a program
  back without being a mistake; a `finding` is what both return.
- `comparison` lays traces side by side: simulated, recorded, live.

Everything here takes a `Trace` and nothing else, so it works for simulated runs, live ones, recordings, and
exports of Nsight Systems alike.
"""

from asyncgpu_tutor.traces.analysis.comparison import Comparison, compare
from asyncgpu_tutor.traces.analysis.defects import diagnose
from asyncgpu_tutor.traces.analysis.finding import Finding
from asyncgpu_tutor.traces.analysis.overview import Analysis, analyse

__all__ = ["Analysis", "Comparison", "Finding", "analyse", "compare", "diagnose"]
