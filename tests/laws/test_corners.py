"""Corners of the laws: programs that are odd and allowed, and errors that must not get lost."""

from __future__ import annotations

import asyncio
import sys
import threading

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.device import Device
from asyncgpu_tutor.errors import OutOfBoundsError
from asyncgpu_tutor.sim import SimDevice

from .kernels import scale
from .test_failures import faulty
from .test_waiting import slow


# ---------------------------------------------------------------------- no error gets lost
def test_a_stream_reports_a_fault_that_comes_after_the_call(sim: Device) -> None:
    stream = agt.create_stream()
    slow().async_on(stream)  # holds the faulty kernel back until the host waits
    faulty().async_on(stream)
    with pytest.raises(OutOfBoundsError, match="stray"):
        stream.synchronize()
    stream.synchronize()  # it is told once


def test_a_stream_reports_a_fault_that_later_work_follows(sim: Device) -> None:
    stream = agt.create_stream()
    faulty().async_on(stream)
    agt.ones((3,)).async_on(stream)
    with pytest.raises(OutOfBoundsError, match="stray"):
        stream.synchronize()


def test_a_fault_in_an_arm_is_reported_where_the_operation_was_started(sim: Device) -> None:
    stream = agt.create_stream()
    agt.overlap(agt.ones((3,)), faulty()).async_on(stream)
    with pytest.raises(agt.DeviceError, match="stray"):
        stream.synchronize()
    agt.synchronize()


def test_the_device_waits_for_all_streams_before_it_reports(sim: SimDevice) -> None:
    before = agt.in_flight()
    faulty().async_on(agt.create_stream())
    stream = agt.create_stream()
    rest = slow().to_host().async_on(stream)
    with pytest.raises(OutOfBoundsError, match="stray"):
        agt.synchronize()
    assert np.asarray(rest)[0] == 256.0
    assert agt.in_flight() <= before
    agt.synchronize()


def test_a_fault_of_a_forgotten_stream_is_reported_by_the_device(sim: SimDevice) -> None:
    faulty().async_on(agt.create_stream())
    for _ in range(200):  # by then what nobody waited for has been let go
        agt.ones((3,)).async_on(agt.create_stream())
    with pytest.raises(OutOfBoundsError, match="stray"):
        agt.synchronize()


def test_what_was_told_once_is_not_told_again(sim: Device) -> None:
    async def main() -> None:
        with pytest.raises(OutOfBoundsError):
            await faulty()

    asyncio.run(main())
    with pytest.raises(OutOfBoundsError):
        faulty().sync()
    with pytest.raises(agt.DeviceError):
        agt.overlap(agt.ones((3,)), faulty()).sync()
    agt.synchronize()


def test_a_kept_error_keeps_no_device_memory(sim: SimDevice) -> None:
    with pytest.raises(OutOfBoundsError) as caught:
        faulty().sync()
    error = caught.value.with_traceback(None)
    del caught
    assert isinstance(error, OutOfBoundsError)
    assert sim.heap.live == 0


def test_an_interrupted_kernel_counts_as_failed(
    sim: SimDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    from asyncgpu_tutor.cuda_c import Program

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    x = agt.ones((8,)).sync()
    stream = agt.create_stream()
    op = scale(x, 2.0).to_host()
    with monkeypatch.context() as patch:
        patch.setattr(Program, "launch", interrupted)
        with pytest.raises(KeyboardInterrupt):
            op.sync_on(stream)
    with pytest.raises(agt.DeviceError, match="interrupted by KeyboardInterrupt"):
        stream.synchronize()
    assert agt.ones((2,)).to_host().sync_on(stream).tolist() == [1.0, 1.0]


# ---------------------------------------------------------------------- loops and threads
def test_a_loop_that_was_closed_on_a_sleeper_disturbs_no_other(sim: Device) -> None:
    async def abandon() -> asyncio.Task[None]:
        task = asyncio.ensure_future(agt.sleep(10.0))
        await asyncio.sleep(0)
        return task

    loop = asyncio.new_event_loop()
    task = loop.run_until_complete(abandon())
    loop.close()

    async def main() -> list[float]:
        return (await asyncio.wait_for(slow().to_host(), 20)).tolist()[:1]

    assert asyncio.run(main()) == [256.0]
    task._log_destroy_pending = False  # type: ignore[attr-defined] # it is pending for ever


def test_a_loop_can_be_left_and_entered_again(sim: Device) -> None:
    async def start() -> asyncio.Task[agt.DeviceArray]:
        task = agt.spawn(slow(1024))
        for _ in range(3):
            await asyncio.sleep(0)
        return task

    async def short() -> list[float]:
        return (await agt.ones((2,)).to_host()).tolist()

    async def finish(task: asyncio.Task[agt.DeviceArray]) -> tuple[int, ...]:
        return (await asyncio.wait_for(task, 20)).shape

    loop = asyncio.new_event_loop()
    task = loop.run_until_complete(start())
    assert asyncio.run(short()) == [1.0, 1.0]
    assert loop.run_until_complete(finish(task)) == (1024,)
    loop.close()


def test_threads_may_run_operations_at_the_same_time(device: Device) -> None:
    wrong: list[object] = []

    def run(number: int) -> None:
        try:
            with agt.using(device):
                for _ in range(15):
                    op = agt.full((64,), number).and_then(lambda a: scale(a, 2.0)).to_host()
                    result = agt.overlap(op, agt.ones((3,))).first().sync()
                    if not (result == 2 * number).all():
                        wrong.append(result)
        except Exception as error:  # noqa: BLE001 - a thread cannot raise it
            wrong.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(6)]
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # so that they do meet
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    finally:
        sys.setswitchinterval(usual)
    assert wrong == []
    assert not any(thread.is_alive() for thread in threads)
