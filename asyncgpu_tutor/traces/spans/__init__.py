"""Spans, what happened when, and what is computed from them, whoever measured them."""

from asyncgpu_tutor.traces.spans.log import Draft, SpanLog
from asyncgpu_tutor.traces.spans.metrics import Metrics, measure
from asyncgpu_tutor.traces.spans.span import DEVICE_KINDS, Span, SpanKind, call_name

__all__ = [
    "DEVICE_KINDS",
    "Draft",
    "Metrics",
    "Span",
    "SpanKind",
    "SpanLog",
    "call_name",
    "measure",
]
