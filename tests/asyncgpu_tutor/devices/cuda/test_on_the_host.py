"""The CUDA device where there is no GPU: on a stand-in for CuPy that does all on the host."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from contextvars import copy_context
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.simulated import SimDevice, SimMachine
from asyncgpu_tutor.errors import CaptureError, DeviceError, DeviceMismatchError, UsageError
from tests.laws.kernels import SCALE, scale
from tests.laws.programs import PROGRAMS, Program
from tests.laws.test_replayed_programs import run

from . import host_cupy
from .host_cupy import calls


@pytest.fixture(scope="module")
def devices() -> Iterator[list[Any]]:
    with host_cupy.opened() as found:
        yield found


@pytest.fixture
def host(devices: list[Any]) -> Iterator[Any]:
    with agt.using(devices[0]):
        yield devices[0]


@settings(max_examples=20)
@given(program=PROGRAMS)
def test_programs_compute_the_same_in_the_order_of_the_simulated_device(
    host: Any, program: Program
) -> None:
    sim = SimDevice(machine=SimMachine())
    with agt.using(sim):
        right = run(program.op().to_host(), sim)
    assert run(program.op().to_host(), host) == right
    prepared = program.op().to_host().prepare()
    graph = prepared.launch().graph_on(agt.create_stream())
    for captured in (prepared, prepared, graph, graph):
        assert captured.launch().sync().tolist() == right[0]
    assert run(prepared.launch(), host) == right
    assert [kind for kind, _, _ in run(graph.launch(), host)[1]][-1] == "graph"


def test_each_wait_asks_for_what_is_waited_for_and_is_a_span(host: Any) -> None:
    stream = host.create_stream()
    event = stream.record()
    name = f"stream {stream.number}"
    waits = [
        (host.synchronize, ("deviceSynchronize",), "synchronize device"),
        (stream.synchronize, ("streamSynchronize", stream.ptr), f"synchronize {name}"),
        (event.synchronize, ("eventSynchronize", event.ptr), "synchronize event"),
    ]
    for wait, call, name in waits:
        calls.clear()
        wait()
        assert calls[-1] == call
        with agt.record(source="events") as trace:
            wait()
        assert name in [span.name for span in trace.spans if span.kind == "wait"]


def test_an_event_is_done_once_it_is_passed_and_is_used_again(host: Any) -> None:
    stream, other = host.create_stream(), host.create_stream(urgent=True)
    event = stream.record()
    assert (event.done, event.succeeded, stream.done) == (True, True, True)
    host_cupy.EVENTS.pop(event.ptr)
    assert (event.done, event.succeeded) == (False, False)
    host_cupy.EVENTS[event.ptr] = 0.0
    calls.clear()
    other.wait_event(event)
    assert calls == [("streamWaitEvent", other.ptr, event.ptr)]
    host.free_events.clear()
    handle = event.ptr
    del event
    calls.clear()
    again = other.record()
    assert again.ptr == handle
    assert calls == [("eventRecord", handle, other.ptr)]
    assert again.stream is other
    assert (other.cupy.priority, stream.cupy.priority) == (-5, 0)
    assert (other.urgent, stream.urgent) == (True, False)
    with pytest.raises(DeviceMismatchError, match="not a CUDA event"):
        stream.wait_event(SimDevice().default_stream.record())


def test_streams_of_others_are_taken_once(host: Any, devices: list[Any]) -> None:
    foreign = host_cupy.Stream(non_blocking=True)
    mine = host.adopt_stream(foreign)
    assert (mine.ptr, mine.device, mine.urgent) == (foreign.ptr, host, False)
    assert host.adopt_stream(foreign) is mine
    assert host.adopt_stream(mine) is mine
    assert devices[1].adopt_stream(foreign) is None
    assert devices[1].adopt_stream(mine) is None
    assert host.adopt_stream(object()) is None
    assert host.adopt_stream(host_cupy.Stream.null) is host.default_stream
    with pytest.raises(DeviceMismatchError, match="not a stream of cuda:1"):
        devices[1].own(mine)


def test_a_block_is_given_out_again_to_who_wants_that_size(host: Any) -> None:
    first = host.malloc(1000, "first", host.default_stream)
    place = first.ptr
    del first
    assert host.malloc(1025, "larger", host.default_stream).ptr != place
    assert host.malloc(513, "as large", host.default_stream).ptr == place
    calls.clear()
    with agt.record(source="events") as trace:
        kept = host.malloc(512, "new", host.default_stream)
    assert (kept.name, kept.nbytes, kept.device) == ("new", 512, host)
    assert "malloc new" in [span.name for span in trace.spans if span.kind == "call"]


def test_a_recording_closes_what_it_recorded_with(
    devices: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from asyncgpu_tutor.devices.cuda.event_recorder import EventRecorder

    closed = set[int]()
    monkeypatch.setattr(EventRecorder, "close", lambda recorder: closed.add(id(recorder)))
    with agt.using(devices[0]), agt.record(source="events"):
        recorders = {id(device.journal.recorder) for device in devices if device.journal}
        assert recorders
        assert not closed
    assert closed == recorders


@pytest.mark.parametrize("told", [True, False])
def test_a_block_that_others_had_is_given_out_once_their_streams_have_come_so_far(
    host: Any, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = host_cupy.Stream(non_blocking=True)
    nbytes = 70_000 if told else 90_000  # of a size that nobody else has
    memory = host.malloc(nbytes, "lent", host.default_stream)
    memory.lend(theirs.ptr if told else None)
    place = memory.ptr
    del memory
    with monkeypatch.context() as patch:
        patch.setattr(host_cupy.Runtime, "eventQuery", lambda *_: 600)
        calls.clear()
        kept = host.malloc(nbytes, "meanwhile", host.default_stream)
        assert kept.ptr != place
    asked = {stream for name, *args in calls if name == "eventRecord" for stream in args[1:]}
    assert asked == ({theirs.ptr} if told else {0})
    assert host.malloc(nbytes, "now", host.default_stream).ptr == place


async def test_streams_and_events_of_others_are_awaited(host: Any, devices: list[Any]) -> None:
    theirs = host_cupy.Stream(non_blocking=True)
    event = type("Event", (), {"cuda_event": host.create_stream().record().ptr})()
    for point in (theirs, theirs.ptr, 0, event, host.create_stream(), host.default_stream.record()):
        future = agt.reached(point)
        assert await future is None
        assert future.stream.device is host
    elsewhere = devices[1].create_stream()
    assert await agt.reached(elsewhere) is None
    never = type("Event", (), {"cuda_event": 0})()
    with pytest.raises(UsageError, match="was never recorded"):
        agt.reached(never)
    theirs.begin_capture(2)
    with pytest.raises(CaptureError, match="is capturing"):
        agt.reached(theirs)
    theirs.end_capture()
    for wrong in (3, 4096, -1, "a stream", True):
        with pytest.raises(DeviceMismatchError, match="can't wait for"):
            agt.reached(wrong)


async def test_after_a_fault_the_await_of_others_fails(
    host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise host_cupy.CudaError("cudaErrorIllegalAddress")

    early = agt.reached(theirs := host_cupy.Stream(non_blocking=True))
    monkeypatch.setattr(host_cupy.Runtime, "eventRecord", fails)
    monkeypatch.setattr(host_cupy.Runtime, "eventSynchronize", fails)
    monkeypatch.setattr(host_cupy.Runtime, "eventQuery", lambda *_: 700)
    for future in (early, agt.reached(theirs)):
        with pytest.raises(DeviceError, match="cudaErrorIllegalAddress") as told:
            await future
        assert any("CUDA_LAUNCH_BLOCKING=1" in note for note in told.value.__notes__)


def test_host_memory_is_pinned_as_the_driver_says(host: Any) -> None:
    pinned, plain = host.pinned((3, 4), np.dtype(np.float32)), np.zeros(12, np.float32)
    arrays = pinned, pinned[1], plain, plain[:0]
    assert [host.is_pinned(array) for array in arrays] == [True, True, False, True]
    mapped = host.map_host(pinned, "m")
    assert (mapped.ptr, mapped.nbytes, mapped.name) == (pinned.ctypes.data, 48, "m")
    for other in (pinned[1], pinned.T, plain):
        with pytest.raises(UsageError, match="a whole pinned array"):
            host.map_host(other, "m")
    with agt.record(source="events") as trace:
        for array in (plain, pinned):
            agt.h2d(array).sync()
    copies = [span for span in trace.device_spans if span.kind == "h2d"]
    assert [span.detail.get("pageable", False) for span in copies] == [True, False]


def test_a_copy_to_a_peer_goes_the_direct_way_from_then_on(host: Any, devices: list[Any]) -> None:
    calls.clear()
    for _ in range(2):
        x = agt.full(5, 3.0).sync()
        there = x.to(devices[1]).sync()
        assert agt.d2h(there).on(devices[1]).sync().tolist() == [3.0] * 5
    asked = [call for call in calls if "Peer" in call[0]]
    assert [name for name, *_ in asked].count("deviceEnablePeerAccess") == 2
    assert {call[1:] for call in asked if call[0] == "deviceCanAccessPeer"} == {(0, 1), (1, 0)}
    assert {(to, here) for name, _, to, _, here, *_ in (c for c in asked if "memcpy" in c[0])} == {
        (1, 0)
    }
    with pytest.raises(DeviceMismatchError, match="copy it through the host"):
        agt.full(5, 3.0).sync().to("sim").sync()


@pytest.mark.parametrize("recorded", [False, True])
def test_what_cuda_refuses_is_an_error_that_says_what(host: Any, recorded: bool) -> None:
    x, y, event = agt.ones(4).sync(), agt.zeros(4).sync(), host.default_stream.record()
    half = lambda: scale(x.borrow(), 0.5).named("half")  # noqa: E731 - captured and run each time anew
    prepared, graph = half().prepare(), half().graph_on(agt.create_stream())
    for call, act, told in (
        ("memsetAsync", agt.zeros(4).sync, "memset"),
        ("memcpyAsync", agt.memcpy(y.borrow(), x.borrow()).sync, "d2d|copy_from_device"),
        ("launchKernel", half().sync, "scale"),
        ("launchKernel", prepared.launch().sync, "a prepared pipeline"),
        ("launchKernel", lambda: half().graph_on(agt.create_stream()), "capturing half"),
        ("graphLaunch", graph.launch().sync, "half"),
        ("eventSynchronize", event.synchronize, "waiting for an event"),
        ("deviceSynchronize", host.synchronize, "waiting for the device"),
    ):
        with agt.record(source="events") if recorded else nullcontext():
            host_cupy.refused.add(call)
            with pytest.raises(DeviceError, match=f"({told}): cudaErrorIllegalAddress"):
                act()
            host_cupy.refused.clear()
    assert not host_cupy.captures
    assert prepared.launch().to_host().sync().tolist() == [0.5] * 4


def test_before_memory_is_out_what_is_kept_for_others_is_given_back(host: Any) -> None:
    host.malloc(123_456, "kept", host.default_stream)
    host_cupy.refused.add("malloc")
    memory = host.malloc(234_567, "more", host.default_stream)
    assert (memory.nbytes, calls[-1]) == (234_567, ("free_all_blocks",))
    assert not any(host._blocks.values())


async def test_awaiting(host: Any) -> None:
    assert (await agt.full(5, 2.0).and_then(lambda x: scale(x, 3.0)).to_host()).tolist() == [
        6.0
    ] * 5


def test_what_is_not_of_this_device_is_refused(host: Any, devices: list[Any]) -> None:
    function = host.get_function(SCALE.source, "scale")
    assert host.get_function(SCALE.source, "scale") is function
    with pytest.raises(DeviceMismatchError, match="not compiled for cuda:0"):
        host.launch(object(), (1, 1, 1), (1, 1, 1), (), 0, host.default_stream)
    with pytest.raises(DeviceMismatchError, match="not a stream of cuda:0"):
        host.launch(function, (1, 1, 1), (1, 1, 1), (), 0, devices[1].default_stream)
    with pytest.raises(UsageError, match=r"scale\(\) takes 4 arguments"):
        host.launch(function, (1, 1, 1), (1, 1, 1), (1,), 0, host.default_stream)


def test_a_kernel_may_ask_for_all_the_shared_memory_that_a_block_can_have(host: Any) -> None:
    source = "extern __shared__ float s[]; __global__ void k(float* x) { s[0] = 1; x[0] = s[0]; }"
    function = host.get_function(source, "k")
    assert ("funcSetAttribute", function.pointer, 8, 227 * 1024) in calls
    assert host.limits.shared_bytes == 227 * 1024


async def test_no_kernel_is_loaded_while_one_waits_for_this_thread(host: Any) -> None:
    def load(name: str) -> int:
        agt.Kernel(f"__global__ void {name}(float* x) {{ x[0] = 1.0f; }}")
        return 0

    async def ask(asked: Callable[[], object]) -> None:
        async with agt.hostcalls({16: lambda _: load("by_a_handler")}) as answers:
            load("before")
            answers._columns[0][0], answers._states[0] = 16, 1  # as a kernel does it
            asked()

    def others() -> None:
        with pytest.raises(UsageError, match="'by_a_task' is used for the first time"):
            load("by_a_task")
        load("before")
        with ThreadPoolExecutor(1) as thread:  # the loop would answer meanwhile
            thread.submit(copy_context().run, load, "by_a_thread").result()

    with pytest.raises(UsageError, match="'by_a_handler' is used for the first time"):
        await ask(others)
    load("by_a_handler")


@pytest.mark.parametrize("known", [True, False])
def test_memory_that_was_lent_is_given_out_again(host: Any, known: bool) -> None:
    stream, nbytes = host.create_stream(), 12_345_678  # a size that nobody else asks for
    memory = host.malloc(nbytes, "lent", stream)
    block = memory.pointer
    memory.lend(stream if known else 7)  # which is no handle of a stream
    del memory
    kept = [host.malloc(nbytes, "kept", stream) for _ in range(2)]
    assert any(each.pointer is block for each in kept)
    assert not host.lent
