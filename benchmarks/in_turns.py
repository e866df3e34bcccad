"""Ways to do the same, measured in turns in one process: whatever else the machine does hits all of them."""

import time
from collections.abc import Callable, Mapping
from statistics import median

import asyncgpu_tutor as agt

Run = Callable[[], object]


def wall_us(run: Run) -> float:
    """How long it takes on the host's clock, in us."""
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) * 1e6


def device_us(run: Run) -> float:
    """How long it takes on the current device's clock, whose times are modelled if it's simulated, in us."""
    clock = agt.current_device().now
    start = clock()
    run()
    return clock() - start


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
    """How long each run took, by `took`: in so many turns, of `block` runs of each way, after `warm` others.

    The first `unseen` runs of a block aren't counted, either: they pay for what the way before left in the
    caches. `before` gets the name of a way before each of its runs, and isn't measured.
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
