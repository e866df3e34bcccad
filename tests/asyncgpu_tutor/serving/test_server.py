"""The server loop: every request answered or refused, in bounded memory, on bounded lanes."""

import asyncio
import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncgpu_tutor as agt
from asyncgpu_tutor import errors
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.devices.simulated import SimDevice
from asyncgpu_tutor.run.submission import Submission
from asyncgpu_tutor.serving import lane
from tests.asyncgpu_tutor.serving.doubling import DOUBLE, N, lasting, pipeline, request

PRODUCT = """
extern "C" __global__ void product(unsigned int n, const float* x, const float* w, float* y) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * w[i];
}"""


async def doubles(server: agt.Server, *numbers: float) -> list[float]:
    return [float(y[0]) for y in await asyncio.gather(*(server(request(n)) for n in numbers))]


async def test_each_request_gets_its_own_answer_and_map_keeps_the_order(device: Device) -> None:
    async with agt.Server(pipeline, N, lanes=3, waiting=21) as server:
        one_by_one = await asyncio.gather(*(server(request(n)) for n in range(20)))
        found = one_by_one, [y async for y in server.map(request(n) for n in range(20))]
    for answers in found:
        assert [answer.tolist() for answer in answers] == [[2.0 * n] * N for n in range(20)]


@pytest.mark.parametrize("lanes", [1, 2, 4])
async def test_as_many_at_a_time_as_there_are_lanes(sim: SimDevice, lanes: int) -> None:
    async with agt.Server(pipeline, N, lanes=lanes) as server:
        with agt.record() as trace:
            await doubles(server, *range(12))
    assert len({span.stream for span in trace.find("twice")}) == lanes


async def test_a_request_may_write_itself(device: Device) -> None:
    def writer(number: float) -> Any:
        def write(slot: Any) -> None:
            if number < 0:
                raise ValueError("nothing arrived")
            slot[:] = number

        return write

    async with agt.Server(pipeline, N, lanes=1) as server:
        assert (await server(writer(3.0)))[0] == 6.0
        for ask in (server, lambda request: anext(server.map([request]))):
            with pytest.raises(ValueError, match="nothing arrived"):
                await ask(writer(-1.0))
        assert [float(y[0]) async for y in server.map([writer(4.0)])] == [8.0]


async def test_a_request_that_fails_harms_no_other(sim: SimDevice) -> None:
    async with agt.Server(pipeline, N, lanes=2) as server:
        asked = [server(request(n)) for n in (1, -1, 2, -2, 3, 4)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        answers = [*answers, await server(request(5.0))]
    assert [type(a) for a in (answers[1], answers[3])] == [errors.DeviceAssertError] * 2
    assert [float(a[0]) for i, a in enumerate(answers) if i not in (1, 3)] == [2, 4, 6, 8, 10]


async def test_too_many_are_turned_away_at_once(device: Device) -> None:
    async with agt.Server(pipeline, N, lanes=1, waiting=2) as server:
        asked = [server(request(n)) for n in range(5)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
    assert [isinstance(a, errors.ServerBusyError) for a in answers] == [False] * 3 + [True] * 2
    assert [float(a[0]) for a in answers[:3]] == [0.0, 2.0, 4.0]


async def test_what_does_not_fit_is_refused_at_the_call(device: Device) -> None:
    async def later(slot: Any) -> None:
        slot[:] = 1.0

    async with agt.Server(pipeline, N, lanes=3) as server:
        for wrong, error, words in (
            (np.zeros(3, np.float32), errors.ArrayShapeError, r"\(32,\).*\(3,\)"),
            (np.zeros(N), errors.ArrayDTypeError, "astype"),
            ([0.0] * N, errors.ArrayDTypeError, r"NumPy array.*got list"),
            (None, errors.ArrayDTypeError, "got NoneType"),
            (later, errors.UsageError, "returned coroutine"),
        ):
            with pytest.raises(error, match=words):
                await server(wrong)
        with pytest.raises(errors.ArrayDTypeError):  # and None is not taken for the end
            _ = [y async for y in server.map([request(1.0), None, request(2.0)])]
    with pytest.raises(errors.UsageError, match="closed"):
        await server(request(1.0))
    for name, number in (("lanes", 0), ("waiting", -1)):
        with pytest.raises(errors.UsageError, match=f"or more, and got {number}"):
            agt.Server(pipeline, N, **{name: number})
    no_function: Any = agt.zeros((N,)).to_host()
    with pytest.raises(errors.UsageError, match="is a function"):
        agt.Server(no_function, N)
    with pytest.raises(errors.CaptureError, match="pageable"):
        agt.Server(lambda _: agt.h2d(np.zeros(3, np.float32)).to_host(), N)


async def test_who_waited_at_its_end_is_refused_although_it_is_open_again(device: Device) -> None:
    server = agt.Server(pipeline, N, lanes=1)
    async with server:
        early = [asyncio.ensure_future(server(request(n))) for n in range(3)]
        await asyncio.sleep(0)
    async with server:
        late = await asyncio.gather(*(server(request(n)) for n in range(3)))
    first, *refused = await asyncio.gather(*early, return_exceptions=True)
    assert first[0] == 0.0
    assert [type(one) for one in refused] == [errors.UsageError] * 2
    assert [y[0] for y in late] == [0.0, 2.0, 4.0]


async def test_memory_does_not_grow(sim: SimDevice) -> None:
    server = agt.Server(pipeline, N, lanes=2)
    async with server:
        await server(request(0.0))
        # `in_flight` counts for the whole process, so what earlier tests left is in it.
        before, floor = sim.heap.live, agt.in_flight()
        async for _ in server.map(request(n) for n in range(200)):
            assert agt.in_flight() < floor + 100
        assert sim.heap.live == before
        kept = [one for one in gc.get_objects() if isinstance(one, Submission)]
        assert max(one.kernels.count("twice") for one in kept) < 50
    del server, kept
    gc.collect()
    assert sim.heap.live == 0


def test_a_map_that_was_left_keeps_no_lane_from_the_next_loop(device: Device) -> None:
    server = agt.Server(pipeline, N, lanes=3)

    def source() -> Iterator[Any]:
        for number in range(10):
            agt.work(200.0)  # so several are under way
            yield request(number)

    async def leave() -> None:
        async with server:
            async for _ in server.map(source()):
                break

    async def all_lanes() -> list[float]:
        async with server:
            return await doubles(server, 1, 2, 3)

    for _ in range(2):
        asyncio.run(leave())
        assert len(server._free) == 3
        assert asyncio.run(all_lanes()) == [2, 4, 6]


def test_cancelling_all_there_is_loses_no_lane(device: Device) -> None:
    server = agt.Server(pipeline, N, lanes=2)

    # As asyncio.run does on Ctrl-C: every task, those that clean up too.
    async def interrupted() -> None:
        await server.__aenter__()
        tasks = [asyncio.ensure_future(server(request(n))) for n in range(4)]
        for _ in range(3):
            await asyncio.sleep(0)
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
        await asyncio.wait(tasks)

    async def both_lanes() -> list[float]:
        async with server:
            return await doubles(server, 1, 2)

    asyncio.run(interrupted())
    assert asyncio.run(both_lanes()) == [2, 4]


@settings(max_examples=15)
@given(
    cancelled=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 12)), max_size=12),
    lanes=st.integers(1, 3),
    mapped=st.booleans(),
)
def test_whoever_is_cancelled_when_ever_it_is_the_others_are_served(
    sim: SimDevice, cancelled: list[tuple[int, int]], lanes: int, mapped: bool
) -> None:
    async def main() -> None:
        async with agt.Server(pipeline, N, lanes=lanes) as server:

            async def one(number: float) -> float:
                return float((await server(request(number)))[0])

            async def many(number: float) -> float:
                return sum([float(y[0]) async for y in server.map([request(number)] * 3)]) / 3

            tasks = [asyncio.create_task((many if mapped and n % 2 else one)(n)) for n in range(8)]
            for turn in range(13):
                for number, when in cancelled:
                    if when == turn:
                        tasks[number].cancel()
                await asyncio.sleep(0)
            answers = await asyncio.gather(*tasks, return_exceptions=True)
            gone = {number for number, _ in cancelled}
            for number, answer in enumerate(answers):
                left = number in gone and isinstance(answer, asyncio.CancelledError)
                assert left or answer == 2.0 * number
            again = await asyncio.gather(*(one(n) for n in range(2 * lanes)))
            assert again == [2.0 * n for n in range(2 * lanes)]

    asyncio.run(main())
    agt.synchronize()
    gc.collect()
    assert sim.heap.live == 0


async def test_a_failure_does_not_spoil_the_lane_for_good(sim: SimDevice) -> None:
    def unfilled(slot: Any) -> agt.DeviceOp[Any]:  # nothing but the kernel writes to its output
        def run(context: agt.types.ExecutionContext, x: agt.DeviceArray) -> agt.DeviceOp[Any]:
            return agt.Kernel(DOUBLE)(N, x, context.empty((N,)).partition(32))

        return agt.h2d(slot).and_then_with_context(run).last().unpartition().to_host()

    async with agt.Server(unfilled, N, lanes=1) as server:
        with pytest.raises(errors.DeviceAssertError):
            await server(request(-1.0))
        found = [float((await server(request(n)))[0]) for n in (1.0, 2.0)]
    assert found == [2.0, 4.0]


async def test_a_request_that_is_cancelled_as_it_gets_a_lane_hands_it_on(device: Device) -> None:
    async def ends_another() -> None:
        await server(request(1.0))  # and its lane is given to the next one, which has no turn yet
        next_one.cancel()

    async with agt.Server(pipeline, N, lanes=1) as server, asyncio.timeout(60.0):
        first = asyncio.create_task(ends_another())
        next_one = asyncio.create_task(server(request(2.0)))
        await asyncio.sleep(0)  # both have begun, in this order
        assert (await server(request(3.0)))[0] == 6.0
        await first
        assert next_one.cancelled()


async def test_a_lane_that_a_cancelled_request_still_holds_is_taken_last(sim: SimDevice) -> None:
    async with agt.Server(lasting("2000 * x[i]"), N, lanes=2) as server:
        task = asyncio.ensure_future(server(request(1.0)))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        for _ in range(3):
            assert (await server(request(0.0)))[0] == 0.0
        assert "1 of 2 lanes busy" in repr(server)  # the cancelled request still holds it


async def test_long_requests_are_slept_through_and_short_ones_are_not(
    sim: SimDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane, "_EARLY_US", 60.0)  # or the interpreter would need seconds
    took: list[float] = []
    async with agt.Server(lasting("2500 * x[i]"), N, lanes=1) as server:
        for number in (0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0):
            start = sim.now()
            assert (await server(request(number)))[0] == 2.0 * number
            took.append(sim.now() - start)
    _, short, long, after_one, *twice, slept_through, too_long, again = took
    assert long > 3.0 * short
    assert after_one == pytest.approx(short)
    assert twice == pytest.approx([long, long])
    assert slept_through < 1.01 * long
    assert too_long < 2.0 * short
    assert again == pytest.approx(short)


async def test_a_launch_that_is_refused_leaves_its_lane_to_others(device: Device) -> None:
    weights = await agt.full((N,), 2.0)

    def borrowing(slot: Any) -> agt.DeviceOp[Any]:
        out = agt.zeros((N,)).partition(32)
        return agt.Kernel(PRODUCT)(N, agt.h2d(slot), weights.borrow(), out).output().to_host()

    async with agt.Server(borrowing, N, lanes=1) as server:
        assert (await server(request(3.0)))[0] == 6.0
        floor = agt.in_flight()
        _ = weights.share()
        for ask in (server, lambda x: anext(server.map([x]))) * 3:
            with pytest.raises(errors.UseAfterMoveError, match="was moved"):
                await ask(request(1.0))
    assert agt.in_flight() == floor


async def test_who_would_wait_for_a_lane_in_another_loop_is_refused(sim: SimDevice) -> None:
    async with agt.Server(pipeline, N, lanes=1) as server:

        def elsewhere() -> None:
            with agt.using(sim), pytest.raises(errors.UsageError, match="another event loop"):
                asyncio.run(asyncio.wait_for(server(request(1.0)), 10))

        first = asyncio.ensure_future(server(request(2.0)))
        await asyncio.sleep(0)  # it has the lane
        with ThreadPoolExecutor(1) as pool:
            # This loop stands still meanwhile, so it keeps the lane.
            pool.submit(elsewhere).result(60)
        found = [float(y[0]) for y in await asyncio.gather(first, server(request(3.0)))]
    assert found == [4.0, 6.0]


async def test_a_map_whose_consumer_never_awaits_leaves_others_their_turns(sim: SimDevice) -> None:
    order = list[str]()

    async def many(server: agt.Server[Any]) -> None:
        async for _ in server.map(request(1) for _ in range(200)):
            order.append("map")

    async with agt.Server(pipeline, N, lanes=4) as server:
        task = asyncio.create_task(many(server))
        for _ in range(5):
            await server(request(2))
            order.append("one")
        await task
    gaps = "".join(name[0] for name in order).split("o")[:5]
    assert max(map(len, gaps)) <= 8 * 4, gaps
