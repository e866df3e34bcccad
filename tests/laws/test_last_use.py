"""What has to wait for the last use of some memory, and what need not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from asyncgpu_tutor.run import LastUse, Submission, follow


class Stream:
    """Notes whose events it waits for."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.waited: list[int] = []

    def record(self) -> Any:
        return SimpleNamespace(of=self.number)

    def wait_event(self, event: Any) -> None:
        self.waited.append(event.of)


@pytest.fixture
def streams() -> list[Any]:
    return [Stream(number) for number in range(3)]


def test_a_use_waits_for_the_one_before_elsewhere(streams: list[Any]) -> None:
    one, two, _ = streams
    use = LastUse()
    follow(one, [use])
    follow(one, [use])
    assert one.waited == []
    follow(two, [use])
    assert two.waited == [0]


def used(stream: Any, *uses: LastUse) -> Submission[Any]:
    """A use by a run whose end can be seen."""
    run: Submission[Any] = Submission("run", stream, blocking=False, spawned=False)
    follow(stream, uses)
    for use in uses:
        use.run = run
    return run


def test_nothing_waits_for_what_somebody_has_seen_end(streams: list[Any]) -> None:
    one, two, three = streams
    use = LastUse()
    used(one, use).settle()
    follow(two, [use])
    assert two.waited == []
    follow(three, [use])  # but for that one, which has no known end
    assert three.waited == [1]


def test_an_end_counts_for_the_use_that_it_is_the_end_of(streams: list[Any]) -> None:
    one, two, three = streams
    shared, own = LastUse(), LastUse()
    run = used(one, shared, own)
    follow(two, [shared])  # of another pipeline, in between
    run.settle()
    follow(three, [shared, own])
    assert two.waited == [0]
    assert three.waited == [1]
