"""What has to wait for the last use of some memory, and what need not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from asyncgpu_tutor.run import LastUse, UsedMemory, come_after


class Stream:
    """Notes whose events it waits for, and how much had been recorded then."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.recorded = 0
        self.waited: list[tuple[int, int]] = []

    def record(self) -> Any:
        self.recorded += 1
        return SimpleNamespace(of=(self.number, self.recorded))

    def wait_event(self, event: Any) -> None:
        self.waited.append(event.of)


@pytest.fixture
def streams() -> list[Any]:
    return [Stream(number) for number in range(3)]


def test_a_use_waits_for_the_one_before_elsewhere(streams: list[Any]) -> None:
    one, two, _ = streams
    memory = UsedMemory()
    come_after(one, [memory])
    come_after(one, [memory])
    assert (one.waited, one.recorded) == ([], 0)
    come_after(two, [memory])
    assert two.waited == [(0, 1)]


def test_a_use_waits_for_the_latest_use_of_a_stream(streams: list[Any]) -> None:
    one, two, three = streams
    memory = UsedMemory()
    for stream in (one, two, one, one):
        come_after(stream, [memory])
    come_after(three, [memory])
    # The second event of stream 0, not the one that stream 1 waited for.
    assert three.waited == [(0, 2)]


def test_each_memory_has_a_last_use_of_its_own(streams: list[Any]) -> None:
    one, two, three = streams
    here, there = UsedMemory(), UsedMemory()
    come_after(one, [here])
    come_after(two, [there])
    come_after(three, [here, there])
    assert sorted(three.waited) == [(0, 1), (1, 1)]


def test_what_was_marked_is_waited_for_and_nothing_that_follows(streams: list[Any]) -> None:
    one, two, three = streams
    use = LastUse(one)
    use.mark()
    one.record()
    for stream in (two, three, one):
        use.hold_back(stream)
    assert (two.waited, three.waited, one.waited) == ([(0, 1)], [(0, 1)], [])
