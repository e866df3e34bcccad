"""A recording with NVTX ranges in it, as a profiler would show them, where there is no profiler."""

import asyncio
import itertools
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import asyncgpu_tutor as agt


@dataclass(frozen=True, slots=True)
class WatchedRange:
    """A range that has been closed; its times are those of the host's clock, in us."""

    name: str
    start: float
    end: float
    mixed: bool = False  # it was pushed by one task and popped by another, which neither meant


class RangeLog:
    """A stand-in for `nvtx.Domain`, for `asyncgpu_tutor.traces.nvtx.into`.

    As in NVTX, `push_range` and `pop_range` share one stack, so a pop closes what was pushed last, whoever
    pushed it; `start_range` and `end_range` go by numbers.
    """

    def __init__(self) -> None:
        self.closed: list[WatchedRange] = []
        self._opened: dict[int, tuple[str, float, object]] = {}
        self._stack: list[int] = []
        self._numbers = itertools.count()

    @property
    def open(self) -> list[str]:
        """Names of the ranges that nobody has closed yet."""
        return [name for name, _, _ in self._opened.values()]

    def get_event_attributes(self, message: str) -> str:
        """The name is all that is kept."""
        return message

    def push_range(self, attributes: str) -> None:
        """Open a range on top of the stack."""
        self._stack.append(self.start_range(attributes))

    def pop_range(self) -> None:
        """Close the one on top."""
        number = self._stack.pop()
        mixed = self._opened[number][2] is not _task()
        self.end_range(number)
        self.closed[-1] = replace(self.closed[-1], mixed=mixed)

    def start_range(self, attributes: str) -> int:
        """Open a range that has a number."""
        number = next(self._numbers)
        self._opened[number] = (attributes, _now(), _task())
        return number

    def end_range(self, range_id: int) -> None:
        """Close the one of that number."""
        name, start, _ = self._opened.pop(range_id)
        self.closed.append(WatchedRange(name, start, _now()))


def _now() -> float:
    return agt.current_device().now()


def _task() -> object:
    try:
        return asyncio.current_task()
    except RuntimeError:  # there is no event loop, hence no task
        return None


@contextmanager
def watched(log: RangeLog | None = None) -> Generator[agt.Trace]:
    """Record what happens in the block, NVTX ranges included, as spans of kind ``"range"``.

    The trace is empty inside of the block. Ranges are kept in the `log`, and no profiler is told of them. A
    log may serve several blocks: the trace of each has the ranges that began and ended there.
    """
    found = RangeLog() if log is None else log
    origin, device, earlier = _now(), agt.current_device().name, len(found.closed)
    with agt.record() as trace, agt.ranges.into(found):
        yield trace
    last = max((span.id for span in trace), default=0)
    # Longer ones come first, so that those which begin together are nested as they were opened.
    own = (one for one in found.closed[earlier:] if one.start >= origin)
    ranges = sorted(own, key=lambda r: (r.start, -r.end))
    for number, one in enumerate(ranges, last + 1):
        times = one.start - origin, one.end - origin
        trace.spans.append(agt.types.Span(number, "range", one.name, *times, device))
