"""Several requests in one launch: who was late decides, and nobody's answer is another's."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.devices.simulated import SimDevice
from asyncgpu_tutor.errors import DeviceAssertError
from asyncgpu_tutor.serving.pace import LONG_US
from tests.serving.doubling import N, pipeline, read, request

SLOW = """
extern "C" __global__ void slow(unsigned int n, const float* x, float* y) {
    float sum = 0.0f;
    for (unsigned int k = 0; k < 20000; k++) sum += x[k % n];
    y[threadIdx.x] = sum;
}"""


def dawdling(number: float, us: float = 200.0) -> Callable[[Any], None]:
    """A request that keeps the host busy for longer than the device takes for it."""

    def write(slot: Any) -> None:
        agt.work(us)
        slot[:] = number

    return write


def launches(trace: agt.Trace) -> int:
    return sum(span.kind == "call" and span.name.startswith("launch graph") for span in trace)


async def mapped(server: agt.Server[Any], requests: Any) -> list[float]:
    return [float(y[0]) async for y in server.map(requests)]


def test_a_host_that_is_late_launches_several_at_once(sim: SimDevice) -> None:
    async def main(together: int) -> tuple[list[float], int]:
        async with agt.Server(pipeline, N, lanes=2, together=together) as server:
            with agt.record() as trace:
                answers = await mapped(server, [dawdling(n) for n in range(24)])
        return answers, launches(trace)

    found = {together: asyncio.run(main(together)) for together in (1, 2, 3, 4)}
    assert all(answers == [2.0 * n for n in range(24)] for answers, _ in found.values())
    counts = [count for _, count in found.values()]
    assert counts[0] == 24
    assert counts == sorted(counts, reverse=True)
    assert counts[3] < counts[1] < 24


def test_a_device_that_is_late_gets_its_requests_one_by_one(sim: SimDevice) -> None:
    def slowly(slot: Any) -> agt.DeviceOp[Any]:
        return agt.Kernel(SLOW)(N, agt.h2d(slot), agt.zeros((N,)), grid=1, block=N).last().to_host()

    async def main() -> agt.Trace:
        async with agt.Server(slowly, N, lanes=2, together=4) as server:
            with agt.record() as trace:
                await mapped(server, [request(1.0)] * 10)
        return trace

    trace = asyncio.run(main())
    assert launches(trace) == 10
    assert len({span.stream for span in trace.find("slow")}) == 2


def test_a_host_that_launches_do_not_delay_gains_nothing_by_fewer(sim: SimDevice) -> None:
    async def main() -> int:
        async with agt.Server(pipeline, N, lanes=2, together=4) as server:
            with agt.record() as trace:
                await mapped(server, [dawdling(n, 2.0 * LONG_US) for n in range(12)])
        return launches(trace)

    assert asyncio.run(main()) == 12


@pytest.mark.parametrize("together", [2, 3])
def test_the_answers_are_the_same(device: Device, together: int) -> None:
    async def main() -> list[float]:
        server = agt.Server(pipeline, N, lanes=2, together=together)
        async with server:
            first = await mapped(server, [dawdling(n) for n in range(17)])
            alone = await asyncio.gather(*(server(request(n)) for n in range(17, 20)))
            return [*first, *(float(y[0]) for y in alone)]

    assert asyncio.run(main()) == [2.0 * n for n in range(20)]


def test_room_for_more_requests_than_ever_came_is_no_forgotten_work(device: Device) -> None:
    async def main() -> None:
        async with agt.Server(pipeline, N, lanes=1, together=3) as server:
            await server(request(1.0))

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        asyncio.run(main())
        gc.collect()
    assert told == []


@settings(max_examples=25)
@given(
    requests=st.lists(st.booleans(), max_size=30),
    lanes=st.integers(1, 3),
    together=st.integers(1, 5),
    taken=st.integers(0, 30),
)
def test_however_they_come_and_whenever_one_leaves(
    sim: SimDevice, requests: list[bool], lanes: int, together: int, taken: int
) -> None:
    asked = 0

    def source() -> Iterator[Any]:
        nonlocal asked
        for number, late in enumerate(requests):
            asked += 1
            yield dawdling(number) if late else request(number)

    async def main() -> None:
        async with agt.Server(pipeline, N, lanes=lanes, together=together) as server:
            got: list[float] = []
            results = server.map(source())
            async for y in results:
                got.append(float(y[0]))
                assert asked - len(got) <= (lanes + 1) * together  # nobody is asked too far ahead
                if len(got) == taken:
                    break
            await results.aclose()
            assert got == [2.0 * n for n in range(len(requests))][: taken or None]
            again = await mapped(server, [request(n) for n in range(2 * lanes)])
            assert again == [2.0 * n for n in range(2 * lanes)]

    asyncio.run(main())
    agt.synchronize()
    gc.collect()
    assert sim.heap.live == 0


@pytest.mark.parametrize("together", [1, 2])
def test_who_is_launched_together_fails_together_and_the_server_goes_on(
    sim: SimDevice, together: int
) -> None:
    async def main(bad: int) -> int:
        async with agt.Server(pipeline, N, lanes=2, together=together) as server:
            numbers = [-1 if n == bad else n for n in range(12)]
            got, error = await read(server, [dawdling(n) for n in numbers])
            assert isinstance(error, DeviceAssertError)
            assert got == [2.0 * n for n in range(len(got))]
            assert await mapped(server, [dawdling(n) for n in (6, 7, 8)]) == [12.0, 14.0, 16.0]
            return bad - len(got)

    lost = [asyncio.run(main(bad)) for bad in range(12)]
    assert set(lost) == set(range(together))  # at most the one that was launched with it


def test_a_host_that_is_late_uses_the_lanes_that_it_used_last(sim: SimDevice) -> None:
    async def main(requests: list[Any]) -> agt.Trace:
        async with agt.Server(pipeline, N, lanes=4) as server:
            with agt.record() as trace:
                await mapped(server, requests)
        return trace

    late = asyncio.run(main([dawdling(n) for n in range(12)]))
    soon = asyncio.run(main([request(n) for n in range(12)]))
    assert len({span.stream for span in late.find("twice")}) == 2
    assert len({span.stream for span in soon.find("twice")}) > 2
