"""The part of a trace that is compared when two are said to be "the same"."""

import asyncgpu_tutor as agt


def structure(trace: agt.Trace, times: bool | None = None) -> list[tuple[object, ...]]:
    """The device spans: what, on which stream, after what; and when, on a simulated device.

    Numbers of spans, operations and streams count from the first in this trace.
    """
    spans = trace.device_spans
    order = {span.id: place for place, span in enumerate(spans)}
    ops: dict[int | None, int] = {}
    streams: dict[int | None, int] = {}
    with_times = trace.clock == "simulated" if times is None else times
    return [
        (
            *(span.kind, span.name, streams.setdefault(span.stream, len(streams))),
            ops.setdefault(span.op, len(ops)),
            tuple(order[i] for i in span.after if i in order),
            (round(span.start, 6), round(span.end, 6)) if with_times else None,
        )
        for span in spans
    ]
