"""The kinds of span in words, letters and engines: for the picture, the table and the numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from asyncgpu_tutor.trace.span import SpanKind

__all__ = ["ENGINES", "ENGINE_OF", "ENGINE_WORDS", "KIND_LETTERS", "KIND_WORDS", "Engine"]

Engine = Literal["h2d", "d2h", "compute"]

ENGINES: tuple[Engine, ...] = ("h2d", "d2h", "compute")

ENGINE_WORDS: Mapping[Engine, str] = {
    "h2d": "copy H2D",
    "d2h": "copy D2H",
    "compute": "compute",
}

# A copy or a fill within the device touches no bus, so neither of the two copy directions is busy.
ENGINE_OF: Mapping[SpanKind, Engine] = {
    "kernel": "compute",
    "h2d": "h2d",
    "d2h": "d2h",
    "d2d": "compute",
    "memset": "compute",
}

# The order is that of legends.
KIND_WORDS: Mapping[SpanKind, str] = {
    "h2d": "copy, host to device",
    "kernel": "kernel",
    "d2h": "copy, device to host",
    "d2d": "copy within the device",
    "memset": "fill",
    "call": "host call",
    "wait": "host waits",
    "work": "host works",
    "range": "range",
}

KIND_LETTERS: Mapping[SpanKind, str] = {
    "h2d": "H",
    "kernel": "K",
    "d2h": "D",
    "d2d": "C",
    "memset": "M",
    "call": "c",
    "wait": "w",
    "work": "x",
    "range": "r",
}
