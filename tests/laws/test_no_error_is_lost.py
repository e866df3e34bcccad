"""A failure is told once, by whoever is asked first, and keeps nothing alive."""

from __future__ import annotations

import asyncio
import gc

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.devices.simulated import SimDevice
from asyncgpu_tutor.errors import OutOfBoundsError

from .kernels import add
from .test_failures import faulty
from .test_waiting import slow


def test_a_stream_reports_a_fault_that_comes_after_the_call(sim: Device) -> None:
    stream = agt.create_stream()
    slow().async_on(stream)  # holds the faulty kernel back until the host waits
    faulty().async_on(stream)
    with pytest.raises(OutOfBoundsError, match="stray"):
        stream.synchronize()
    stream.synchronize()  # it is told once


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
    for _ in range(200):  # after so many, work that nobody waited for has been let go
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


def test_a_told_error_keeps_no_device_memory(sim: SimDevice) -> None:
    async def main() -> None:
        results = await asyncio.gather(slow(), faulty(), return_exceptions=True)
        assert isinstance(results[1], OutOfBoundsError)

    asyncio.run(main())
    gc.collect()
    assert sim.heap.live == 0


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


def test_without_a_watcher_ask_again(sim: SimDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    def unwatched(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    async def main() -> list[float]:
        async def awaited() -> list[float]:
            return (await future).tolist()

        future = slow(64).to_host().into_future()
        with monkeypatch.context() as patch:
            patch.setattr(SimDevice, "watch", unwatched)
            with pytest.raises(RuntimeError, match="new thread"):
                await awaited()
        return await asyncio.wait_for(awaited(), 60)

    assert asyncio.run(main()) == [64.0] * 64
