"""Spans and traces: what happened when, whoever measured it."""

from asyncgpu_tutor.trace.log import Draft, SpanLog
from asyncgpu_tutor.trace.metrics import Metrics, measure
from asyncgpu_tutor.trace.path import Step
from asyncgpu_tutor.trace.relations import happens_before, overlap_between, runs_before
from asyncgpu_tutor.trace.span import DEVICE_KINDS, Span, SpanKind, call_name
from asyncgpu_tutor.trace.trace import Trace

__all__ = [
    "DEVICE_KINDS",
    "Draft",
    "Metrics",
    "Span",
    "SpanKind",
    "SpanLog",
    "Step",
    "Trace",
    "call_name",
    "happens_before",
    "measure",
    "overlap_between",
    "runs_before",
]
