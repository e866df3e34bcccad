"""Times of several contenders, measured in turns, in one process."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # where that is which all benchmarks share
from in_turns import in_turns

__all__ = ["in_turns", "median", "percentile"]

median = statistics.median


def percentile(values: Sequence[float], part: float) -> float:
    """The value that `part` of the others do not exceed."""
    ordered = sorted(values)
    return ordered[min(int(part * len(ordered)), len(ordered) - 1)]
