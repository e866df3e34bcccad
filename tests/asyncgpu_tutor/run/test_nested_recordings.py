"""Recordings in odd places: inside of each other, of a submission, of a device that fails or is new."""

import asyncio

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.errors import HostBufferError, NestedSyncError


def test_a_recording_ends_even_where_its_devices_complain(sim: Device) -> None:
    def change_under_copy(then: Exception | None = None) -> None:
        host = agt.pin(np.ones(1000, np.float32))
        agt.h2d(host).async_on(agt.create_stream())
        host[0] = 5.0
        if then is not None:
            raise then

    with pytest.raises(HostBufferError), agt.record() as first:
        change_under_copy()
    assert [span.name for span in first.device_spans] == ["h2d"]
    with pytest.raises(LookupError) as caught, agt.record():
        change_under_copy(then=LookupError("in the block"))
    assert "leaving record(): the pinned host array" in caught.value.__notes__[0]
    assert sim.log is None  # nobody records any more


def test_no_recording_inside_of_a_submission(device: Device) -> None:
    def nested(n: int) -> agt.DeviceOp[int]:
        with agt.record():
            return agt.value(n)

    with pytest.raises(NestedSyncError, match=r"record\(\) was called while operation"):
        agt.value(1).and_then(nested).sync()


def test_a_device_that_is_first_used_in_a_recording_is_recorded() -> None:
    with agt.using("sim:0"), agt.record() as outer, agt.record() as inner, agt.using("sim:41"):
        agt.ones((3,)).sync()
    assert [(span.device, span.name) for span in inner.device_spans] == [("sim:41", "fill")]
    assert len(outer.device_spans) == 1


async def test_recordings_that_cross_see_what_ran_while_they_were_open(sim: Device) -> None:
    async def one(runs: int) -> int:
        with agt.record() as trace:
            for _ in range(runs):
                await agt.ones((8,)).to_host()
        return len(trace.device_spans)

    short, long = await asyncio.gather(one(2), one(5))
    assert short >= 4
    assert long == 2 * (1 + 5)  # it has missed the other's first operation, which came before it
    assert sim.log is None
