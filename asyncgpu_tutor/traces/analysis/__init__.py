"""Conclusions from a trace: why the device was idle, and what is wrong.

Everything here takes a `Trace` and nothing else, so it works for simulated runs, live ones, recordings, and
exports of Nsight Systems alike.
"""

from asyncgpu_tutor.traces.analysis.finding import Finding
from asyncgpu_tutor.traces.analysis.overview import Analysis, analyse, diagnose

__all__ = ["Analysis", "Finding", "analyse", "diagnose"]
