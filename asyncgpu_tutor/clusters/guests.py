"""Spans of another process in a recording of this one: with times of our clock, and numbers of their own."""

from collections.abc import Iterable
from itertools import count
from math import inf

from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.run.context import numbers
from asyncgpu_tutor.traces.spans import Span, SpanLog

_recordings = count()


class Guest:
    """A worker in a recording, which has the clock and the log of a `device` of ours.

    Whatever time it said it was, it said so after it was asked and before the answer came. So each exchange
    bounds the difference of the two clocks on both sides, and all exchanges together bound it best. We take
    the middle, which is wrong by half the distance at most. (NTP keeps the exchange that was shortest.)
    """

    def __init__(self, place: str, device: Device, log: SpanLog) -> None:
        self.place, self.device, self.log = place, device, log
        self.number = next(_recordings)
        self._least, self._most = -inf, inf  # by how much its clock is ahead of ours, in us
        self._ids: dict[int, int] = {}  # of its spans, here
        self._runs: dict[int, int] = {}

    def heard(self, asked: float, there: float, answered: float) -> None:
        """It was `there` on its clock, after we had `asked` and before it `answered`, both on ours."""
        self._least = max(self._least, there - answered)
        self._most = min(self._most, there - asked)
        self.ahead, self.within = (self._least + self._most) / 2, (self._most - self._least) / 2

    def take(self, spans: Iterable[Span]) -> None:
        """Put its spans into the recording, unless that is over."""
        for span in sorted(spans, key=lambda s: s.id) if self.device.log is self.log else ():
            self._ids[span.id] = number = next(self.log.numbers)
            op = None if span.op is None else self._runs.setdefault(span.op, next(numbers))
            after = tuple(self._ids[i] for i in span.after if i in self._ids)
            detail = span.detail if span.on_device else {**span.detail, "host": self.place}
            times = span.start - self.ahead, span.end - self.ahead
            where = self.place, span.stream, op, span.label, after, detail
            self.log.spans.append(Span(number, span.kind, span.name, *times, *where))
