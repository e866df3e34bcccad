"""Ways to do the same, measured in turns in one process: whatever else the machine does hits all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median

Run = Callable[[], object]


def wall_us(run: Run) -> float:
    """How long it takes on the host's clock, in us."""
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) * 1e6


def in_turns(
    ways: Mapping[str, Run],
    turns: int,
    *,
    block: int = 1,
    warm: int = 1,
    unseen: int = 0,
    before: Callable[[str], object] | None = None,
    took: Callable[[Run], float] = wall_us,
) -> dict[str, list[float]]:
    """How long each run took, by `took`.

    Parameters
    ----------
    ways : mapping of str to callable
    turns : int
        That are counted, of `block` runs of each way.
    warm : int
        Turns before these.
    unseen : int
        The first runs of each block, which pay for what the way before left in the caches.
    before : callable, optional
        Gets the name of a way before each of its runs, and isn't measured.
    """
    times: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(-warm, turns):
        for way, run in ways.items():
            for number in range(block):
                if before is not None:
                    before(way)
                us = took(run)
                if turn >= 0 and number >= unseen:
                    times[way].append(us)
    return times


def medians(times: Mapping[str, list[float]]) -> dict[str, float]:
    """The median of each."""
    return {way: median(found) for way, found in times.items()}
