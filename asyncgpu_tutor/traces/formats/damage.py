"""A look at each record of a file, so that no number has a damaged one in it without a word.

Profilers lose records, and they write down what they have without saying so. One kernel that starts at time
0 makes a trace of a second last for years, and every share and sum is wrong with it. Where CUPTI has no
times for a record, start and end are 0 (its documentation of CUpti_ActivityKernel and CUpti_ActivityAPI),
and PyTorch's profiler and nsys write such a record down like any other.

To refuse the whole file would throw away what is good in it, and to repair a record would be to invent a
measurement. So each record is looked at, the damaged ones are left out, and the trace says how many there
were, of which sort, with an example. What a record is held against comes from the file itself, because we
know nothing of the clock: the middle of all starts, the finest step that times have, the call that asked
for the work. If most of the work begins before its call, then the clocks of host and device differ, and no
record is to blame.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from asyncgpu_tutor.traces.spans.notebook_output import damage_of
from asyncgpu_tutor.traces.spans.vocabulary import count

_YEAR = 3.2e13  # us: no profile is as long
_HOUR = 3.6e9  # us: what begins at 0, and so long before all else, has lost its start
_CLOCK = 10.0  # us by which work may begin before its call: the clocks of device and host are two
_SHORTEST = 0.5  # us: the shortest work of an H200 takes 0.7, and a clock that tells less sees that

NO_WORK = "of launches without work: it was not profiled, or its record is lost"


class ProfileRecord(NamedTuple):
    """A row, with what is looked at. Times are in us, or whole and in ns."""

    row: Any
    name: str
    start: float
    end: float
    stamped: bool = False  # by CUPTI: work, or a call
    lasting: bool = False  # takes time: work, unless it is of 0 bytes
    key: object = None  # what a call is known by
    call: object = None  # the key of the call that asked for work


class Damage:
    """What is wrong with the records of a file: counted by sort, each with an example."""

    def __init__(self) -> None:
        self._found: dict[str, list[str]] = {}
        self.unread: set[object] = set()  # calls that have work, which could not be read

    def add(self, what: str, name: str) -> None:
        """Count a record, of which is said `what` becomes of it."""
        self._found.setdefault(what, []).append(name)

    def told(self, about: Mapping[str, object]) -> dict[str, object]:
        """Facts of a trace, with this among them in sentences."""
        found = (
            f"{count(len(names), 'record')} {what}, such as {names[0]!r:.120}."
            for what, names in self._found.items()
        )
        said = list(dict.fromkeys((*damage_of(about), *found)))
        return {**about, "damage": said} if said else dict(about)

    def sound(self, records: Sequence[ProfileRecord], us: int = 1) -> list[Any]:
        """The rows that nothing is wrong with; one us is so many units of their times."""
        starts = sorted(r.start for r in records if r.start and r.start <= r.end)
        middle = starts[len(starts) // 2] if starts else 0.0
        ran = [r for r in records if r.lasting and r.start < r.end]
        edges = (round(time * (1000 // us)) for r in ran for time in (r.start, r.end))
        fine = 0 < math.gcd(*edges) < 1000 * _SHORTEST
        asked = {r.key: r.start for r in records if r.key is not None}

        def wrong(r: ProfileRecord) -> str:
            if r.end < r.start:
                return "it ends before it starts"
            if r.end - r.start > _YEAR * us:
                return "it lasts more than a year"
            if abs(r.start - middle) > _YEAR * us or (r.start == 0 and middle > _HOUR * us):
                return "its start is far from all others"
            if r.start == r.end == 0 and r.stamped and asked.get(r.call, 1) > 0:
                return "its start and end are 0, so it has no times"
            if r.start == r.end and r.lasting and fine:
                return "it takes no time, by a clock that sees the shortest work"
            return ""

        good: list[ProfileRecord] = []
        for record in records:
            if why := wrong(record):
                self.add(f"left out: {why}", record.name)
                continue
            if record.start == record.end and record.lasting:
                self.add("counted that take no time, by a coarse clock", record.name)
            good.append(record)
        # The clocks differ if most of the work begins before its call, and then no record is to blame.
        asked = {r.key: r.start for r in good if r.key is not None}
        early = [(asked[r.call] - r.start) / us if r.call in asked else 0.0 for r in good]
        apart = 2 * sum(by > _CLOCK for by in early) > sum(r.call in asked for r in good)
        kept: list[Any] = []
        for record, by in zip(good, early, strict=True):
            if by > _CLOCK and not apart:
                self.add("left out: it starts before the call that launched it", record.name)
                continue
            if by > 0:
                self.add("counted that start before their call, as the clocks differ", record.name)
            kept.append(record.row)
        return kept
