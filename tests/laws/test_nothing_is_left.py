"""Whatever is cancelled, raised or forgotten, no memory and no submission is left behind."""

import asyncio
import dataclasses
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.devices.simulated import SimDevice, SimMachine
from asyncgpu_tutor.errors import OutOfMemoryError
from asyncgpu_tutor.run.submission import FEW

from .kernels import scale
from .test_waiting import awaited


def test_memory_of_completed_work_is_there_for_the_next(sim: SimDevice) -> None:
    small = SimDevice(0, dataclasses.replace(sim.spec, memory_bytes=1_000_000), SimMachine())
    with agt.using(small):
        stream = agt.create_stream()
        for _ in range(30):  # nobody looks at the results, which are 100 kB each
            agt.zeros((25_000,)).async_on(stream)
            agt.work(100.0)
        with pytest.raises(OutOfMemoryError):  # what is still at work is not taken away
            agt.zip(*[agt.zeros((25_000,)) for _ in range(12)]).sync()


def test_runs_that_nobody_waits_for_do_not_pile_up_behind_one_that_lasts(device: Device) -> None:
    agt.synchronize()
    slow, quick = agt.create_stream(), agt.create_stream()
    before, most = agt.in_flight(), 0
    for _ in range(3):  # they take longer than all launches below
        agt.h2d(agt.pinned(10_000_000)).async_on(slow)
    for _ in range(300):
        agt.zeros((8,)).async_on(quick)
        quick.synchronize()
        most = max(most, agt.in_flight())
    assert most <= before + FEW + 10
    agt.synchronize()
    assert agt.in_flight() <= before


def test_what_lasts_is_kept_however_much_comes_after_it(sim: SimDevice) -> None:
    agt.synchronize()
    stream, before = agt.create_stream(), agt.in_flight()
    agt.h2d(agt.pinned(10_000_000)).async_on(stream)
    alive = [weakref.ref(agt.zeros(8).async_on(stream)._memory) for _ in range(3 * FEW)]
    host: Any = agt.zeros(8).to_host().async_on(stream)
    alive.append(weakref.ref(host._writer.event))  # of one more run, whose host array stays
    assert agt.in_flight() == before + 1 + len(alive)
    assert all(one() is not None for one in alive)
    agt.synchronize()
    assert agt.in_flight() == before
    assert not any(one() for one in alive)


@settings(max_examples=40)
@given(cancelled=st.lists(st.integers(0, 19), max_size=20), patience=st.integers(0, 30))
async def test_a_storm_of_cancellations_leaves_nothing(cancelled: list[int], patience: int) -> None:
    before = agt.in_flight()
    own = SimDevice(machine=SimMachine())

    async def one(number: int) -> list[float]:
        op = agt.full((64,), number).and_then(lambda a: scale(a, 2.0)).to_host()
        return (await op).tolist()

    with agt.using(own):
        tasks = [asyncio.create_task(one(n)) for n in range(20)]
        for _ in range(patience):
            await asyncio.sleep(0)
        for number in cancelled:
            tasks[number].cancel()
        for number, result in enumerate(await asyncio.gather(*tasks, return_exceptions=True)):
            assert isinstance(result, asyncio.CancelledError) or result == [2.0 * number] * 64
        agt.synchronize()
    assert agt.in_flight() <= before
    assert own.heap.live == 0


@pytest.mark.parametrize(
    "kind", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit, RecursionError]
)
def test_what_a_function_raises_leaves_nothing(device: Device, kind: type[BaseException]) -> None:
    def fail(_: agt.DeviceArray) -> agt.DeviceOp[int]:
        raise kind("on purpose")

    gc.collect()
    before, live = agt.in_flight(), device.heap.live if isinstance(device, SimDevice) else 0
    for op in (
        agt.ones((100,)).and_then(fail),
        agt.overlap(agt.ones((3,)), agt.ones((100,)).and_then(fail)),
        agt.ones((100,)).and_then(fail).shared(),
    ):
        with pytest.raises(kind, match="on purpose"):
            op.sync()
    agt.synchronize()
    del op
    gc.collect()
    assert agt.in_flight() <= before
    if isinstance(device, SimDevice):
        assert device.heap.live <= live
    assert agt.ones((2,)).to_host().sync().tolist() == [1.0, 1.0]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interrupt_is_raised_once(device: Device, kind: type[BaseException]) -> None:
    def fail(_: agt.DeviceArray) -> agt.DeviceOp[int]:
        raise kind("on purpose")

    async def called(function: Callable[[], object]) -> object:
        return function()

    shared = agt.ones((100,)).and_then(fail).shared()
    future = agt.ones((100,)).and_then(fail).into_future()
    for first, again in (
        (shared.sync, shared.sync),
        (lambda: next(future.__await__()), lambda: asyncio.run(awaited(future))),
    ):
        with pytest.raises(kind, match="on purpose"):
            asyncio.run(called(first))
        with pytest.raises(agt.DeviceError, match=f"ended by {kind.__name__}.*build it again"):
            again()


def _async_on(op: agt.DeviceOp[Any]) -> Any:
    stream = agt.create_stream()
    host = op.async_on(stream)
    stream.synchronize()
    agt.synchronize()
    return host


@pytest.mark.parametrize(
    "run", [lambda op: op.sync(), lambda op: asyncio.run(awaited(op)), _async_on]
)
def test_results_need_no_collector(device: Device, run: Callable[[agt.DeviceOp[Any]], Any]) -> None:
    gc.collect()
    gc.disable()
    try:
        result = run(agt.ones(8).to_host())
        assert result.tolist() == [1.0] * 8
        gone = weakref.ref(result)
        del result
        assert gone() is None
    finally:
        gc.enable()


def test_a_device_goes_with_what_was_submitted_to_it() -> None:
    def used() -> weakref.ref[SimDevice]:
        mine = SimDevice(machine=SimMachine())
        with agt.using(mine):
            stream = agt.create_stream()
            agt.zeros(8).async_on(stream)
            stream.synchronize()
            agt.synchronize()
        return weakref.ref(mine)

    gone = used()
    gc.collect()
    assert gone() is None
