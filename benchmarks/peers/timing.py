"""Times of several contenders, measured in turns, in one process."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
from in_turns import in_turns

median = statistics.median


def in_blocks(
    ways: Mapping[str, Callable[[], object]], turns: int, block: int = 8
) -> dict[str, list[float]]:
    """Microseconds of each run, in turns of `block` runs, of which the first isn't counted."""
    return in_turns(ways, turns, block=block, unseen=1)


def percentile(values: Sequence[float], part: float) -> float:
    """The value that `part` of the others do not exceed."""
    ordered = sorted(values)
    return ordered[min(int(part * len(ordered)), len(ordered) - 1)]
