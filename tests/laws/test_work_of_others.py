"""Work that isn't ours is awaited like ours: laws 7, 8 and 9 for streams, events and arrays of others."""

import asyncio
from typing import Any

import pytest
import trio

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.devices.simulated import SimDevice
from asyncgpu_tutor.errors import CaptureError, DeviceError, DeviceMismatchError, UsageError
from tests.tools import python

from .loops import Left, any_loop, outcome, together, turn
from .test_failures import faulty
from .test_waiting import slow


# ---------------------------------------------------------------------- on both devices
@any_loop
async def test_a_stream_or_an_event_is_awaited(device: Device) -> None:
    stream, other = agt.create_stream(), agt.create_stream()
    slow().async_on(stream)
    event = stream.record()
    slow().async_on(other)
    for point in (stream, event, other):
        future = agt.reached(point)
        assert await future is None
        assert await future is None  # again, by whom you like
        assert "reached" not in repr(future)
        assert "complete" in repr(future)
    assert stream.done
    assert event.done
    assert other.done
    assert await together(*[agt.reached(event)] * 3, agt.reached(stream)) == [None] * 4


@any_loop
async def test_the_point_is_where_it_was_asked_for(sim: SimDevice) -> None:
    stream = agt.create_stream()
    slow().async_on(stream)
    early = agt.reached(stream)
    slow(2048).async_on(stream)
    await early
    assert not stream.done
    await agt.reached(stream)
    assert stream.done


@any_loop
async def test_a_fault_is_the_error_of_its_await(sim: SimDevice) -> None:
    stream = agt.create_stream()
    faulty().async_on(stream)
    told = await together(agt.reached(stream), agt.reached(agt.create_stream()))
    assert isinstance(told[0], DeviceError)
    assert any("CUDA_LAUNCH_BLOCKING" in note for note in told[0].__notes__)
    assert told[1] is None


@any_loop
async def test_a_cancelled_wait_stops_nothing(sim: SimDevice) -> None:
    stream = agt.create_stream()
    slow(2048).async_on(stream)
    future = agt.reached(stream)

    async def waits() -> None:
        await future

    async with Left(waits):
        await turn()
    assert not stream.done
    assert await outcome(future) is None
    assert stream.done


@pytest.mark.parametrize("wrong", [7, "a stream", None, object(), -1, 3.5, True])
async def test_what_cannot_be_waited_for_is_refused(device: Device, wrong: Any) -> None:
    with pytest.raises(DeviceMismatchError, match=r"reached can't wait for .*stream"):
        agt.reached(wrong)


# ---------------------------------------------------------------------- on a GPU
@pytest.fixture
def torch(cuda: Device) -> Any:
    return pytest.importorskip("torch")


def busy(torch: Any, stream: Any, ms: float = 20.0) -> None:
    """Keep a stream of PyTorch's busy for at least so long."""
    with torch.cuda.stream(stream):
        torch.cuda._sleep(int(ms * 2e6))


@pytest.mark.gpu
@any_loop
async def test_streams_and_events_of_all_libraries(torch: Any) -> None:
    cp = pytest.importorskip("cupy")
    stream = torch.cuda.Stream()
    others = cp.cuda.Stream(non_blocking=True)
    event, theirs = torch.cuda.Event(), cp.cuda.Event()
    for ms in (0.5, 20.0):  # looked for, and watched
        busy(torch, stream, ms)
        event.record(stream)
        for point in (stream, event, stream.cuda_stream):
            assert await agt.reached(point) is None
            assert stream.query()
            busy(torch, stream, ms)
            event.record(stream)
        others.wait_event(cp.cuda.Event())
        theirs.record(others)
        await together(agt.reached(others), agt.reached(theirs), agt.reached(event))
        assert stream.query()
    await agt.reached(torch.cuda.current_stream())


@pytest.mark.gpu
async def test_events_of_others_come_in_any_order(torch: Any) -> None:
    streams = [torch.cuda.Stream() for _ in range(3)]
    events = [torch.cuda.Event() for _ in streams]
    for stream, event, ms in zip(streams, events, (80.0, 20.0, 5.0), strict=True):
        busy(torch, stream, ms)
        event.record(stream)
    order: list[int] = []

    async def one(number: int) -> None:
        await agt.reached(events[number])
        order.append(number)

    await asyncio.gather(*map(one, range(3)))
    assert order == [2, 1, 0]


@pytest.mark.gpu
async def test_what_was_not_recorded_or_is_captured_is_refused(torch: Any) -> None:
    with pytest.raises(UsageError, match="was never recorded"):
        agt.reached(torch.cuda.Event())
    graph, x = torch.cuda.CUDAGraph(), torch.zeros(4, device="cuda")
    with torch.cuda.graph(graph):
        x += 1
        with pytest.raises(CaptureError, match="is capturing"):
            agt.reached(torch.cuda.current_stream())
    graph.replay()
    await agt.reached(torch.cuda.current_stream())
    assert x.tolist() == [1.0] * 4


@pytest.mark.gpu
async def test_a_wait_does_not_spoil_a_capture_of_others(torch: Any) -> None:
    stream, side, x = torch.cuda.Stream(), torch.cuda.Stream(), torch.zeros(4, device="cuda")
    x += 0  # loading a kernel would wait for those that run
    busy(torch, stream, 300.0)
    waits = asyncio.ensure_future(agt.reached(stream))
    await asyncio.sleep(0.01)  # from now on a thread watches
    with torch.cuda.stream(side):
        while not stream.query():
            graph = torch.cuda.CUDAGraph()
            graph.capture_begin()  # `torch.cuda.graph` would wait for the device
            for _ in range(20):
                x += 1
            graph.capture_end()
        graph.replay()
    await waits
    await agt.reached(side)
    assert x.tolist() == [20.0] * 4


@pytest.mark.gpu
async def test_our_operations_and_graphs_on_a_stream_of_torch(torch: Any) -> None:
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        busy(torch, stream)
        x = torch.full((1000,), 3.0, device="cuda")
        twice = agt.dup(agt.asarray(x)).last()
        graph = agt.memcpy(agt.asarray(x, "x").borrow(), agt.ones(1000).sync().borrow()).graph_on(
            stream
        )
        host = twice.to_host().async_on(stream)
        graph.launch().async_on(stream)
        y = x + 1
        assert not stream.query()
        await agt.reached(stream)
    assert host.tolist() == [3.0] * 1000
    assert y.tolist() == [2.0] * 1000
    with agt.using(policy=agt.SingleStream(stream)):
        busy(torch, stream)
        assert (await agt.full(3, 4.0).to_host()).tolist() == [4.0] * 3
    assert stream.query()


@pytest.mark.gpu
def test_memory_that_torch_read_on_its_stream_is_not_given_out_before_it_has(torch: Any) -> None:
    stream, n = torch.cuda.Stream(), 3_333_333
    torch.ones(n, device="cuda").sum().item()  # loading a kernel would wait for those that run
    agt.full(n, 2.0).sync()
    with torch.cuda.stream(stream):
        theirs = torch.from_dlpack(agt.full(n, 1.0).async_on(stream))
        address = theirs.data_ptr()
        busy(torch, stream, 1000.0)
        total = theirs.sum()
    del theirs  # its last reader is still to begin
    written = agt.full(n, 7.0).sync()
    assert not stream.query()
    assert written.memory.ptr != address
    stream.synchronize()
    assert float(total) == n


@pytest.mark.gpu
def test_a_tensor_lives_until_we_have_read_it(torch: Any) -> None:
    ours, n = agt.create_stream(), 1_000_003
    torch.full((n,), 0.0, device="cuda")  # loading a kernel would wait for those that run
    busy(torch, torch.cuda.ExternalStream(ours.__cuda_stream__()[1]), 1000.0)
    x = torch.full((n,), 5.0, device="cuda")
    torch.cuda.current_stream().synchronize()
    host = agt.dup(agt.asarray(x)).last().to_host().async_on(ours)
    address = x.data_ptr()
    del x
    other = torch.full((n,), 9.0, device="cuda")
    assert not ours.done
    assert other.data_ptr() != address
    ours.synchronize()
    assert set(host.tolist()) == {5.0}


FAULT = """
import asyncio, sys, threading, torch
import asyncgpu_tutor as agt

async def main():
    agt.use("cuda")
    stream = torch.cuda.Stream()
    await agt.reached(stream)
    with torch.cuda.stream(stream):
        torch.cuda._sleep(int(float(sys.argv[1]) * 2e6))
        torch.zeros(4, device="cuda")[torch.tensor([2**20], device="cuda")]
    for _ in range(2):
        try:
            await asyncio.wait_for(agt.reached(stream), 20)
        except agt.DeviceError as error:
            print(type(error).__name__, any("LAUNCH_BLOCKING" in note for note in error.__notes__))

asyncio.run(main())
"""


@pytest.mark.gpu
@pytest.mark.parametrize("ms", [0.0, 30.0])
def test_a_fault_in_torch_is_the_error_of_the_await(torch: Any, ms: float) -> None:
    done = python("-c", FAULT, str(ms), check=False)
    assert done.stdout.split() == ["DeviceError", "True"] * 2, done.stderr


# ---------------------------------------------------------------------- trio's turns
class Turns(trio.abc.Instrument):
    """Counts trio's turns."""

    count = 0

    def before_io_wait(self, timeout: float) -> None:
        self.count += 1


def test_who_is_alone_in_trio_looks_and_takes_no_turn(
    sim: SimDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for a GPU: there is patience, and a look finds the work done."""
    monkeypatch.setattr(SimDevice, "patience_us", 10e6)
    monkeypatch.setattr("asyncgpu_tutor.run.future.turn_is_due", lambda: False)
    turns = Turns()

    async def awaits(count: int) -> int:
        begin = turns.count
        for _ in range(count):
            await agt.value(1)
        return turns.count - begin

    async def main() -> list[int]:
        await awaits(1)
        alone = await awaits(100)
        together: list[int] = []

        async def one() -> None:
            together.append(await awaits(100))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(one)
            nursery.start_soon(one)
        return [alone, *together]

    alone, *both = trio.run(main, instruments=[turns])
    assert alone == 0
    assert min(both) >= 1
