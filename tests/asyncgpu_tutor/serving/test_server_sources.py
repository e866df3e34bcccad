"""Sources of a map's requests, and how they are closed."""

import asyncio
import gc
import io
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.devices.simulated import SimDevice
from asyncgpu_tutor.errors import ArrayShapeError, DeviceAssertError, UsageError
from tests.asyncgpu_tutor.serving.doubling import N, pipeline, read, request


class Broken(Exception):
    pass


async def test_a_source_may_use_one_array_for_all_requests(device: Device) -> None:
    def source() -> Iterator[Any]:
        one = np.zeros(N, np.float32)
        for number in range(20):
            agt.work(200.0)  # a host that is late launches several at once
            one[:] = number
            yield one

    async with agt.Server(pipeline, N, lanes=2) as server:
        found = await read(server, source())
    assert found == ([2.0 * n for n in range(20)], None)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("way", ["raises", "does not fit", "writes nothing"])
async def test_what_came_before_a_failure_is_answered(device: Device, late: bool, way: str) -> None:
    def broken(slot: Any) -> None:
        raise Broken

    def source(count: int) -> Iterator[Any]:
        for number in range(count):
            if late:
                agt.work(200.0)
            yield request(number)
        if way == "raises":
            raise Broken
        yield broken if way == "writes nothing" else request(0.0)[:3]
        yield request(9.0)

    async with agt.Server(pipeline, N, lanes=3) as server:
        for count in range(5, 9):
            got, error = await read(server, source(count))
            assert got == [2.0 * n for n in range(count)]
            assert isinstance(error, ArrayShapeError if way == "does not fit" else Broken)
        with pytest.raises(UsageError, match=r"got int.*await server\(request\)"):
            server.map(cast(Any, 5))
        assert await read(server, [request(1.0)] * 6) == ([2.0] * 6, None)


async def test_nothing_runs_after_the_end_of_the_server(sim: SimDevice) -> None:
    server = agt.Server(pipeline, N, lanes=1)
    async with server:
        first = asyncio.ensure_future(server(request(1.0)))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait({first})
        # Both of these want the lane that the cancelled run still holds.
        single = asyncio.ensure_future(server(request(2.0)))
        several = asyncio.ensure_future(read(server, [request(3.0)]))
        await asyncio.sleep(0)
    assert "0 of 1 lanes busy" in repr(server)
    refused, (got, error) = await asyncio.gather(single, several, return_exceptions=True)
    assert isinstance(refused, UsageError)
    assert (got, type(error)) == ([], UsageError)


async def test_what_the_source_raised_is_told_although_a_request_failed(sim: SimDevice) -> None:
    def source() -> Iterator[Any]:
        yield request(-1.0)
        raise Broken("out of paper")

    async with agt.Server(pipeline, N, lanes=2) as server:
        got, error = await read(server, source())
    assert got == []
    assert isinstance(error, DeviceAssertError)
    assert "out of paper" in "".join(error.__notes__)


# ---------------------------------------------------------------------- functions that write
async def test_a_function_that_returns_its_data_is_told_to_write_it(device: Device) -> None:
    async with agt.Server(pipeline, N, lanes=1) as server:
        await server(request(1.0))
        task = asyncio.ensure_future(asyncio.sleep(0))
        for returned, says in (
            (np.full(N, 3.0, np.float32), r"slot\[\.\.\.\] = data"),
            ([3.0] * N, "returned list"),
            (4 * N - 4, "the rest of an earlier request"),
            (task, "returned Task"),
        ):
            with pytest.raises(UsageError, match=says):
                await server(lambda slot, returned=returned: returned)
        await task
        # What this function returns is the slot itself.
        y = await server(lambda slot: np.multiply(request(2.0), 2.0, out=slot))
        z = await server(lambda slot: io.BytesIO(request(5.0).tobytes()).readinto(slot))
    assert (float(y[0]), float(z[0])) == (8.0, 10.0)


# ---------------------------------------------------------------------- pipelines
def test_a_pipeline_that_ends_on_the_device_is_refused(device: Device) -> None:
    def stays(slot: Any) -> agt.DeviceOp[Any]:
        return agt.h2d(slot).map(lambda x: {"x": x})

    with pytest.raises(UsageError, match="end it in a copy to the host"):
        agt.Server(stays, N)


async def test_results_come_in_their_containers(device: Device) -> None:
    def several(slot: Any) -> agt.DeviceOp[Any]:
        return pipeline(slot).map(lambda y: OrderedDict(twice=y, more=[y, (y,)]))

    async with agt.Server(several, N, lanes=2) as server:
        found = [y async for y in server.map(request(n) for n in range(5))]
    for number, result in enumerate(found):
        assert type(result) is OrderedDict
        for y in (result["twice"], result["more"][0], result["more"][1][0]):
            assert type(y) is np.ndarray
            assert y.tolist() == [2.0 * number] * N


# ---------------------------------------------------------------------- a host that is late
def dawdling(number: float, us: float = 200.0) -> Callable[[Any], None]:
    """A request that keeps the host busy for longer than the device takes for it."""

    def write(slot: Any) -> None:
        agt.work(us)
        slot[:] = number

    return write


@settings(max_examples=25)
@given(
    requests=st.lists(st.booleans(), max_size=12),
    lanes=st.integers(1, 3),
    taken=st.integers(0, 12),
)
def test_however_they_come_and_whenever_one_leaves(
    sim: SimDevice, requests: list[bool], lanes: int, taken: int
) -> None:
    asked = 0

    def source() -> Iterator[Any]:
        nonlocal asked
        for number, late in enumerate(requests):
            asked += 1
            yield dawdling(number) if late else request(number)

    async def main() -> None:
        async with agt.Server(pipeline, N, lanes=lanes) as server:
            got: list[float] = []
            results = server.map(source())
            async for y in results:
                got.append(float(y[0]))
                assert asked - len(got) <= lanes + 1  # nobody is asked too far ahead
                if len(got) == taken:
                    break
            await results.aclose()
            assert got == [2.0 * n for n in range(len(requests))][: taken or None]
            again = await read(server, [request(n) for n in range(2 * lanes)])
            assert again == ([2.0 * n for n in range(2 * lanes)], None)

    asyncio.run(main())
    agt.synchronize()
    gc.collect()
    assert sim.heap.live == 0
