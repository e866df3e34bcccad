"""Spans and traces: what happened when, whoever measured it."""

from asyncgpu_tutor.traces.spans.log import Draft, SpanLog
from asyncgpu_tutor.traces.spans.metrics import Metrics, measure
from asyncgpu_tutor.traces.spans.path import Step
from asyncgpu_tutor.traces.spans.relations import happens_before, overlap_between, runs_before
from asyncgpu_tutor.traces.spans.span import DEVICE_KINDS, Span, SpanKind, call_name
from asyncgpu_tutor.traces.spans.trace import Trace

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
