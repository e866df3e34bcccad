"""How much of the device a kernel's blocks need."""

from __future__ import annotations

import math
from typing import cast

from asyncgpu_tutor.traces.spans import Span
from asyncgpu_tutor.traces.trace import Trace

# Of an H200: 132 SMs with 2048 threads each (CUDA C++ Programming Guide, "Technical specifications per
# compute capability"). Taken where a trace does not say how many threads its device runs at once.
_THREADS = 132 * 2048


def fill_of(span: Span, trace: Trace) -> float:
    """Which part of the device's thread slots a kernel's blocks need, at most 1.

    A simulated device says so itself. Elsewhere it is the number of threads over that of the slots, which
    leaves out that registers and shared memory also limit how many blocks fit.
    """
    fills = span.detail.get("fills")
    if isinstance(fills, int | float):
        return min(float(fills), 1.0)
    threads = math.prod(_three(span, "grid")) * math.prod(_three(span, "block"))
    slots = trace.about.get("threads_at_once")
    return min(threads / (slots if isinstance(slots, int) and slots > 0 else _THREADS), 1.0)


def _three(span: Span, key: str) -> list[int]:
    given = span.detail.get(key)
    if not isinstance(given, list | tuple):
        return [0]
    return [part for part in cast(list[object], given) if isinstance(part, int)] or [0]
