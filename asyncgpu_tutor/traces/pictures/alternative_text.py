"""A picture in a sentence or two, for those who cannot see it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from asyncgpu_tutor.traces.spans import Metrics, SpanKind, measure
from asyncgpu_tutor.traces.spans.vocabulary import clock_words, count, device_words
from asyncgpu_tutor.traces.trace import Trace

__all__ = ["alt_text", "duration"]

_NOUNS: Mapping[SpanKind, str] = {
    "h2d": "host-to-device transfer",
    "kernel": "kernel",
    "d2h": "device-to-host transfer",
    "d2d": "on-device transfer",
    "memset": "fill",
    "graph": "CUDA graph",
    "call": "host call",
    "wait": "host wait",
    "work": "host task",
    "range": "named range",
}


def duration(time: float) -> str:
    """A time in us in the unit that suits it: 12.5 µs, 3.20 ms."""
    return f"{time:.1f} \u00b5s" if abs(time) < 10_000 else f"{time / 1000:.2f} ms"


def alt_text(trace: Trace, metrics: Metrics | None = None) -> str:
    """What the timeline of `trace` shows: to be used as the picture's alternative text.

    Examples
    --------
    >>> alt_text(Trace(device="NVIDIA H200"))
    'Timeline of NVIDIA H200 (simulated clock: modelled, not measured): nothing was recorded.'
    """
    title = f"Timeline of {device_words(trace.device)}" if trace.device else "Timeline"
    head = f"{title} ({clock_words(trace.clock)}): "
    if not trace.spans:
        return head + "nothing was recorded."
    metrics = metrics or measure(trace)
    kinds = Counter(span.kind for span in trace)
    parts = [count(kinds[kind], words) for kind, words in _NOUNS.items() if kinds[kind]]
    listed = " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
    streams = len(metrics.stream_busy)
    where = f" in {count(streams, 'stream')}" if streams else ""
    text = f"{head}{listed}{where}, {duration(metrics.makespan)} from start to end."
    if streams > 1 and metrics.overlap:
        return (
            f"{text} Streams overlap for {duration(metrics.overlap)}, "
            f"{metrics.overlap_fraction:.0%} of the time in which the device is busy, "
            f"with at most {metrics.max_concurrency} at once."
        )
    if streams > 1:
        return f"{text} The streams do not overlap."
    return text
