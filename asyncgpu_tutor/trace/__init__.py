"""Spans and traces: what happened when, whoever measured it."""

from asyncgpu_tutor.trace.log import Draft, SpanLog
from asyncgpu_tutor.trace.span import DEVICE_KINDS, Span, SpanKind
from asyncgpu_tutor.trace.trace import Trace

__all__ = ["DEVICE_KINDS", "Draft", "Span", "SpanKind", "SpanLog", "Trace"]
