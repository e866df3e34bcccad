"""Traces to draw."""

import pytest

from asyncgpu_tutor.traces.spans import SpanKind, SpanLog
from asyncgpu_tutor.traces.trace import Trace


@pytest.fixture
def mlp() -> Trace:
    """Weights on stream 0, two batches behind them on streams 1 and 2, and a wait for both."""
    log, now, ends = SpanLog("sim:0"), 0.0, dict[int, float]()

    def enqueue(
        kind: SpanKind, name: str, stream: int, time: float, op: int, label: str
    ) -> tuple[int, ...]:
        nonlocal now
        call = log.draft("call", f"call {name}", None, op=op, label=label)
        work = log.draft(kind, name, stream, call=call.id, op=op, label=label)
        begin, now = now, now + 5
        ends[call.id] = log.finish(call, begin, now).end
        start = max(ends[i] for i in work.after)
        ends[work.id] = log.finish(work, start, start + time).end
        return (work.id,)

    weights = enqueue("h2d", "W", 0, 10, 0, "weights")
    last: tuple[int, ...] = ()
    for batch in (1, 2):
        log.wait(batch, weights)
        label = f"batch {batch}"
        enqueue("h2d", "x", batch, 4, batch, label)
        enqueue("kernel", "sgemm_naive", batch, 30, batch, label)
        enqueue("kernel", "relu", batch, 6, batch, label)
        last += enqueue("d2h", "y", batch, 4, batch, label)
    wait = log.draft("wait", "both", None, waits_for=last)
    log.finish(wait, now, max(ends[i] for i in last) + 1)
    trace = Trace(device="NVIDIA H200")
    trace.fill(log.spans, 0.0)
    return trace
