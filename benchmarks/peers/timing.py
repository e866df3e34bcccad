"""Times of several contenders, measured in turns, in one process."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence

median = statistics.median


def in_turns(
    ways: Mapping[str, Callable[[], object]], turns: int, block: int = 8
) -> dict[str, list[float]]:
    """Microseconds of each run; the contenders take turns of `block` runs.

    The first run of a turn is not counted: it pays for what the one before has left in the caches.
    """
    times: dict[str, list[float]] = {name: [] for name in ways}
    for run in ways.values():
        for _ in range(block):
            run()
    for _ in range(turns):
        for name, run in ways.items():
            run()
            for _ in range(block - 1):
                start = time.perf_counter()
                run()
                times[name].append((time.perf_counter() - start) * 1e6)
    return times


def percentile(values: Sequence[float], part: float) -> float:
    """The value that `part` of the others do not exceed."""
    ordered = sorted(values)
    return ordered[min(int(part * len(ordered)), len(ordered) - 1)]
