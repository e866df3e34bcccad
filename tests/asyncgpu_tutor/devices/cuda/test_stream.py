"""A stream knows some things of its events without asking the driver."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.errors import DeviceError
from asyncgpu_tutor.run import submission
from asyncgpu_tutor.run.submission import Submission

from . import host_cupy


@pytest.fixture(params=host_cupy.KINDS)
def cuda(request: pytest.FixtureRequest) -> Iterator[Device]:
    with host_cupy.gpus(request.param, 1) as (device,):
        yield device


@pytest.fixture
def asked(cuda: Device, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The events that the driver is asked about."""
    from asyncgpu_tutor.devices.cuda import stream

    class Runtime:
        def __getattr__(self, name: str) -> Any:
            return getattr(whole, name)

        def eventQuery(self, pointer: int) -> int:
            events.append(pointer)
            return int(whole.eventQuery(pointer))

    whole, events = stream.runtime, list[int]()
    monkeypatch.setattr(stream, "runtime", Runtime())
    return events


@pytest.fixture
def stream(cuda: Device) -> Any:
    return cuda.create_stream()


def test_after_a_wait_for_a_stream_its_events_are_not_asked(stream: Any, asked: list[int]) -> None:
    agt.zeros((1000,)).async_on(stream)
    early = stream.record()
    stream.synchronize()
    assert early.done
    assert early.succeeded
    assert asked == []


def test_an_event_behind_the_wait_is_asked_for(stream: Any, asked: list[int]) -> None:
    stream.synchronize()
    late, other = stream.record(), stream.device.create_stream().record()
    for event in (late, other):
        assert event.done in (True, False)
    assert asked == [late.ptr, other.ptr]


def test_a_handle_that_is_recorded_again_counts_from_there(stream: Any, asked: list[int]) -> None:
    gc.collect()
    stream.device.free_events.clear()
    handle = stream.record().ptr
    stream.synchronize()
    again = stream.device.create_stream().record()
    assert again.ptr == handle
    assert again.done in (True, False)
    assert asked == [handle]


def test_a_failed_wait(stream: Any, asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    from cupy.cuda import runtime

    from asyncgpu_tutor.devices.cuda import stream as module

    def fails(_: int) -> None:
        raise runtime.CUDARuntimeError(719)  # cudaErrorLaunchFailure

    event = stream.record()
    monkeypatch.setattr(module.runtime, "streamSynchronize", fails, raising=False)
    with pytest.raises(DeviceError):
        stream.synchronize()
    assert event.done in (True, False)
    assert asked == [event.ptr]


def test_events_that_went_in_a_cycle_with_their_runs_leave_their_handles(stream: Any) -> None:
    gc.collect()
    stream.device.free_events.clear()
    handles = set[int]()
    for _ in range(3):
        run: Submission[None] = Submission("a run", stream)
        run.event = event = stream.record()
        run.keep.append(run)  # as the traceback of an error holds its frames
        handles.add(event.ptr)
        del run, event
    gc.collect()
    assert handles == {*stream.device.free_events}
    kept = [stream.record() for _ in range(4)]
    assert {event.ptr for event in kept} > handles
    assert stream.device.free_events == []


def test_an_event_that_somebody_has_is_nobody_elses(stream: Any) -> None:
    mine = stream.record()
    others = [stream.record() for _ in range(3)]
    assert len({mine.ptr, *(event.ptr for event in others)}) == 4


def test_an_event_that_could_not_be_made_leaves_nothing(
    stream: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from asyncgpu_tutor.devices.cuda import stream as module

    def fails(_: int) -> int:
        raise module.runtime.CUDARuntimeError(2)  # cudaErrorMemoryAllocation

    gc.collect()
    stream.device.free_events.clear()
    monkeypatch.setattr(module.runtime, "eventCreateWithFlags", fails, raising=False)
    with pytest.raises(DeviceError, match="recording an event"):
        stream.record()
    gc.collect()
    assert stream.device.free_events == []


def test_a_graph_that_is_launched_again_and_again_asks_for_no_event_and_makes_none(
    stream: Any, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # What other tests have left on simulated devices, which come no further by themselves, is no part of it.
    monkeypatch.setattr(submission, "_forsaken", {})
    monkeypatch.setattr(submission, "_asked", {})
    x, out = agt.zeros(1000).sync(), agt.pinned(1000)
    agt.synchronize()
    graph = agt.d2h(x.borrow(), out=out).graph_on(stream)
    free = stream.device.free_events
    free.clear()
    for _ in range(100):
        graph.launch().async_on(stream)
    assert asked == []
    agt.synchronize()
    assert len(free) <= 2
