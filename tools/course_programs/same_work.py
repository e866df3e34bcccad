"""The work that traces of one program share, piece by piece: a model's, a recording's, another clock's."""

from __future__ import annotations

from typing import NamedTuple

from asyncgpu_tutor import Trace
from asyncgpu_tutor.types import Span


class SameWork(NamedTuple):
    """Pieces that are in all traces, in the first one's order, and for each trace those that are not."""

    pairs: list[tuple[Span, ...]]
    missing: list[list[Span]]
    same_order: bool


def same_work(*traces: Trace) -> SameWork:
    """Match device work by operation, kind and name, in order; without the operation if a trace has none."""
    labelled = all(span.label for trace in traces for span in trace.device_spans)
    keyed = [_keyed(trace, labelled) for trace in traces]
    known = set(keyed[0]).intersection(*keyed[1:])
    orders = [[key for key in spans if key in known] for spans in keyed]
    pairs = [tuple(spans[key] for spans in keyed) for key in orders[0]]
    missing = [[span for key, span in spans.items() if key not in known] for spans in keyed]
    return SameWork(pairs, missing, all(order == orders[0] for order in orders))


def _keyed(trace: Trace, labelled: bool) -> dict[tuple[object, ...], Span]:
    """The device spans by what they are, in the order in which they were asked for."""
    seen: dict[tuple[object, ...], int] = {}
    keyed: dict[tuple[object, ...], Span] = {}
    for span in trace.device_spans:
        place = trace.devices.index(span.device)
        sort = (place, span.label if labelled else "", span.kind, span.name)
        number = seen[sort] = seen.get(sort, 0) + 1
        keyed[(*sort, number)] = span
    return keyed
