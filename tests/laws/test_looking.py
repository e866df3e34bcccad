"""How a task looks for the end of its work: at once where it is alone, in turns where it is not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from asyncgpu_tutor.devices import event_loop
from asyncgpu_tutor.run import Submission, future
from asyncgpu_tutor.run.future import DeviceFuture, FutureState


class Clock:
    """Every reading is a microsecond later than the one before."""

    def __init__(self) -> None:
        self.us = 1.0

    def perf_counter(self) -> float:
        self.us += 1.0
        return self.us * 1e-6


class Event:
    """Passes after so many looks."""

    def __init__(self, looks: int) -> None:
        self.left = looks
        self.done = self.retired = False

    @property
    def succeeded(self) -> bool:
        self.left -= 1
        return self.left < 0

    def synchronize(self) -> None:
        raise AssertionError("nobody blocks here")


class Device:
    """Has work looked at for 500 us, and notes what it is to watch."""

    name = "pretended"
    log = None

    def __init__(self) -> None:
        self.patience_us = 500.0
        self.watched: list[Callable[[BaseException | None], None]] = []

    def watch(self, _: object, wake: Callable[[BaseException | None], None]) -> None:
        self.watched.append(wake)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (future, event_loop):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(event_loop, "_turns", SimpleNamespace(due=0.0))
    return clock


def under_way(device: Device, looks: int) -> DeviceFuture[str]:
    stream: Any = SimpleNamespace(device=device, number=1)
    submission: Submission[str] = Submission("pretended", stream, blocking=False, spawned=False)
    event: Any = Event(looks)
    submission.event = event
    submission.handles = "done"
    return DeviceFuture.of(submission)


async def turns(count: list[int]) -> None:
    """Counts the turns that it gets."""
    while True:
        count[0] += 1
        await asyncio.sleep(0)


def test_alone_it_sees_the_end_without_a_turn(clock: Clock) -> None:
    async def main() -> int:
        event_loop.turn_given()
        loop = asyncio.get_running_loop()
        passed = [0]
        loop.call_soon(lambda: None)
        await asyncio.sleep(0)  # that callback is gone: nothing is ready
        loop.call_later(0, lambda: passed.__setitem__(0, 1))
        assert await under_way(Device(), 5) == "done"
        return passed[0]

    assert asyncio.run(main()) == 0


def test_the_loop_has_its_turns_all_the_same(clock: Clock) -> None:
    """Work that is always over at the first look must not starve a timer."""

    async def main() -> int:
        passed = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(0, passed.set_result, None)
        for number in range(10_000):
            await under_way(Device(), 1)
            if passed.done():
                return number
        raise AssertionError("the timer never came")

    assert asyncio.run(main()) < 10_000


def test_others_that_are_ready_have_a_turn_for_each_look(clock: Clock) -> None:
    async def main() -> int:
        event_loop.turn_given()
        count = [0]
        other = asyncio.ensure_future(turns(count))
        await asyncio.sleep(0)
        before = count[0]
        assert await under_way(Device(), 20) == "done"
        other.cancel()
        return count[0] - before

    assert asyncio.run(main()) == 21


def test_what_outlasts_its_patience_is_watched(clock: Clock) -> None:
    async def main() -> tuple[int, Device]:
        device, count = Device(), [0]
        work = under_way(device, 10**6)
        task = asyncio.ensure_future(_awaited(work))
        while not device.watched:
            count[0] += 1
            await asyncio.sleep(0)
            assert count[0] < 1000
        assert work.state is FutureState.EXECUTING
        device.watched.pop()(None)
        assert await task == "done"
        return count[0], device

    turns_taken, device = asyncio.run(main())
    assert device.watched == []
    assert (
        2 < turns_taken < 500
    )  # it is not alone here, so a turn for each look, until 500 us are over


async def _awaited(work: DeviceFuture[str]) -> str:
    return await work
