"""The words that tables and pictures share: for kinds of spans, engines, clocks and numbers of things."""

from collections.abc import Mapping, Sequence
from typing import Literal

from asyncgpu_tutor.traces.spans.span import Span, SpanKind

EngineName = Literal["h2d", "d2h", "compute", "link"]

ENGINE_WORDS: Mapping[EngineName, str] = {
    "h2d": "copy H2D", "d2h": "copy D2H", "compute": "compute", "link": "link",
}  # fmt: skip

# A copy or a fill within the device touches no bus, so neither of the two copy directions is busy. A graph
# may copy as well, but is one bar only where its nodes cannot be seen.
ENGINE_OF: Mapping[SpanKind, EngineName] = {
    "kernel": "compute", "h2d": "h2d", "d2h": "d2h", "d2d": "compute", "memset": "compute",
    "graph": "compute", "peer": "link",
}  # fmt: skip


def engine_of(span: Span) -> EngineName:
    """The engine whose lane shows a span: for a collective the link, though it holds multiprocessors, too."""
    return "link" if span.talks else ENGINE_OF[span.kind]


# Legends list the kinds in this order.
KIND_WORDS: Mapping[SpanKind, str] = {
    "h2d": "copy H2D", "kernel": "kernel", "d2h": "copy D2H", "d2d": "copy D2D", "peer": "copy to a peer",
    "memset": "fill",
    "graph": "CUDA graph", "call": "host call", "wait": "host wait", "work": "host work", "range": "range",
}  # fmt: skip


def clock_words(clock: str) -> str:
    """Say where the times come from, so that nobody takes a model for a measurement."""
    if clock == "simulated":
        return "simulated clock: modelled, not measured"
    return f"clock: {clock}, measured"


def device_words(device: str) -> str:
    """The device, without what its description says of times: the clock is named beside it."""
    return device.partition(", times are ")[0]


def count(number: int, noun: str) -> str:
    """The number with its noun: 1 span, 2 spans."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def in_us(time: float) -> str:
    """A time for a sentence: 1.1 µs, 20 µs, 457,360 µs."""
    return f"{time:,.0f} µs" if time >= 10 else f"{time:.1f} µs"


def some(names: Sequence[str], most: int) -> str:
    """The first names in a row, and how many there are besides: a, b and 3 more."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
