"""Law 9: never hang. Each failure reaches its own awaiter and nobody else, once, and keeps nothing alive."""

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.devices.simulated import SimDevice
from asyncgpu_tutor.errors import OutOfBoundsError, UpstreamError
from tests.conftest import open_or_skip
from tests.tools import python

from .kernels import STRAY, add, kernel, scale
from .loops import any_loop, together
from .test_waiting import awaited, slow


def faulty() -> agt.DeviceOp[agt.DeviceArray]:
    """Writes far outside of its array."""
    out = agt.zeros((64,)).partition(32)
    return kernel(STRAY)(2**40, out).last().unpartition().named("faulty batch")


def arms() -> agt.DeviceOp[tuple[agt.DeviceArray, agt.DeviceArray]]:
    """One is good and one is not."""
    return agt.overlap(agt.ones((3,)), faulty())


def waits_for_a_stream(*ops: agt.DeviceOp[Any]) -> None:
    stream = agt.create_stream()
    for op in ops:
        op.async_on(stream)
    stream.synchronize()


def asks_the_device_much_later() -> None:
    faulty().async_on(agt.create_stream())
    for _ in range(200):  # after so many, work that nobody waited for has been let go
        agt.ones((3,)).async_on(agt.create_stream())
    agt.synchronize()


ASKED: dict[str, Callable[[], object]] = {
    "sync": lambda: faulty().sync(),
    "await": lambda: asyncio.run(awaited(faulty())),
    "of an arm": lambda: arms().sync(),
    "of a stream": lambda: waits_for_a_stream(faulty()),
    "of a stream, before it began": lambda: waits_for_a_stream(slow(), faulty()),
    "of a stream with an arm": lambda: waits_for_a_stream(arms()),
    "of a device": asks_the_device_much_later,
    "prepared": lambda: arms().prepare().launch().sync(),
    "graph": lambda: arms().prepare().launch().graph_on(agt.create_stream()).launch().sync(),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_a_fault_is_told_once_and_keeps_nothing(sim: SimDevice, ask: Callable[[], object]) -> None:
    before = agt.in_flight()
    with pytest.raises(OutOfBoundsError, match="stray") as caught:
        ask()
    error = caught.value.with_traceback(None)
    del caught
    agt.synchronize()  # it has been told, so there is nothing to raise
    assert agt.ones((2,)).to_host().sync().tolist() == [1.0, 1.0]
    gc.collect()
    assert sim.heap.live == 0, error
    assert agt.in_flight() <= before


@any_loop
async def test_a_fault_surfaces_at_its_own_await(sim: SimDevice) -> None:
    good = agt.ones((2,)).and_then(lambda a: scale(a, 3.0)).to_host()
    first, fault, last = await together(good, faulty(), good)
    assert isinstance(fault, OutOfBoundsError)
    assert "operation 'faulty batch'" in fault.__notes__[0]
    assert first.tolist() == last.tolist() == [3.0, 3.0]


def test_the_device_waits_for_all_streams_before_it_reports(sim: SimDevice) -> None:
    faulty().async_on(agt.create_stream())
    rest = slow().to_host().async_on(agt.create_stream())
    with pytest.raises(OutOfBoundsError, match="stray"):
        agt.synchronize()
    assert np.asarray(rest)[0] == 256.0


def test_the_rest_of_a_failed_operation_does_not_run(sim: Device) -> None:
    with agt.record() as trace, pytest.raises(OutOfBoundsError):
        faulty().and_then(lambda a: scale(a, 2.0)).to_host().sync()
    assert [span.name for span in trace.device_spans] == ["memset"]


def test_what_a_failed_operation_should_have_written_is_not_used(sim: Device) -> None:
    stream = agt.create_stream()
    array = faulty().async_on(stream)
    with pytest.raises(UpstreamError, match="had failed"):
        agt.d2h(array).sync_on(stream)


@any_loop
async def test_users_of_a_failed_shared_source_on_other_streams_fail_with_it(sim: Device) -> None:
    source = faulty().shared()
    users = [source.and_then(agt.d2h) for _ in range(3)]
    errors = sorted(type(error).__name__ for error in await together(*users))
    assert errors == ["OutOfBoundsError", "UpstreamError", "UpstreamError"]


async def test_the_three_failures_arrive_separately(sim: Device) -> None:
    def bug(_: object) -> agt.DeviceOp[int]:
        raise KeyError("a bug in a closure")

    slow = agt.spawn(agt.randn((40_000,)).to_host())
    await asyncio.sleep(0)
    slow.cancel()
    tasks = agt.spawn(faulty()), agt.spawn(agt.value(1).and_then(bug)), slow
    device, closure, cancelled = [
        (await asyncio.gather(task, return_exceptions=True))[0] for task in tasks
    ]
    assert isinstance(device, agt.DeviceError)
    assert isinstance(closure, KeyError)
    assert closure.__notes__[0].startswith("while ope")
    assert isinstance(cancelled, asyncio.CancelledError)


def test_an_event_behind_a_fault_raises_it_as_often_as_it_is_asked(sim: Device) -> None:
    stream, other = agt.create_stream(), agt.create_stream()
    faulty().async_on(stream)
    agt.ones((2,)).async_on(stream)  # that the fault does not concern, and no event of it
    event = stream.record()
    for _ in range(2):
        with pytest.raises(OutOfBoundsError, match="stray"):
            event.synchronize()
    assert event.done
    assert not event.succeeded
    stream.synchronize()  # the error has been told, so there is nothing to raise
    stream.record().synchronize()
    faulty().async_on(stream)
    other.wait_event(stream.record())
    assert agt.ones((2,)).to_host().sync_on(other).tolist() == [1.0, 1.0]  # the wait is for order
    with pytest.raises(OutOfBoundsError, match="stray"):
        agt.synchronize()


def test_operations_that_nest_too_deeply_say_what_to_do(device: Device) -> None:
    op = agt.ones((8,))
    for _ in range(2000):
        op = add(op, agt.ones((8,)), 8)
    with pytest.raises(RecursionError) as caught:
        op.sync()
    assert any("chain them with and_then" in note for note in caught.value.__notes__)


def test_a_lost_device_says_so_each_time(sim: SimDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_: SimDevice) -> None:
        raise agt.DeviceError("the device is gone")

    with monkeypatch.context() as patch:
        patch.setattr(SimDevice, "activate", gone)
        for _ in range(2):
            with pytest.raises(agt.DeviceError, match="is gone"):
                agt.value(1).sync()
    assert agt.value(1).sync() == 1


@any_loop
async def test_without_a_watcher_ask_again(sim: SimDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    def unwatched(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    future = slow(64).to_host().into_future()
    with monkeypatch.context() as patch:
        patch.setattr(SimDevice, "watch", unwatched)
        with pytest.raises(RuntimeError, match="new thread"):
            await awaited(future)
    assert (await future).tolist() == [64.0] * 64


async def real_fault(way: str) -> None:
    """In a process of its own, because after a fault the process's CUDA context is dead."""
    agt.use("cuda")
    if way == "await":
        await faulty()
    elif way == "spawn":
        other = agt.spawn(agt.ones((1000,)).to_host())
        try:
            await agt.spawn(faulty())
        finally:
            await asyncio.gather(other, return_exceptions=True)
    elif way == "event":
        stream = agt.create_stream()
        faulty().async_on(stream)
        stream.record().synchronize()
    else:
        faulty().sync()


SCRIPT = """import asyncio, sys
from tests.laws import test_failures as tests
try:
    asyncio.run(tests.real_fault(sys.argv[1]))
except tests.agt.DeviceError as error:
    print("DeviceError", error, *getattr(error, "__notes__", ()))"""


@pytest.mark.gpu
@pytest.mark.parametrize("way", ["sync", "await", "spawn", "event"])
def test_a_real_fault_is_reported_and_never_hangs(way: str) -> None:
    open_or_skip("cuda")
    done = python("-c", SCRIPT, way, check=False)
    assert "DeviceError" in done.stdout, done.stdout + done.stderr
    if way != "event":  # an event does not know whose work is before it
        assert "stray" in done.stdout
        assert "faulty batch" in done.stdout
