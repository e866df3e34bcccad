"""Streams and events keep their promises in hostile orders too, and nothing else can be relied on."""

import asyncio
import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import asyncgpu_tutor as agt
from asyncgpu_tutor.commands.mlp import run_batches, upload
from asyncgpu_tutor.commands.mlp.ways import MlpRun
from asyncgpu_tutor.data import reference_forward, seed_inputs
from asyncgpu_tutor.devices.simulated import SimDevice, SimMachine

from .programs import PROGRAMS, Program

SEEDS = st.integers(0, 2**32)


def hostile(seed: int) -> SimDevice:
    return SimDevice(machine=SimMachine(), adversary=seed)


@given(programs=st.lists(PROGRAMS, min_size=1, max_size=4), seed=SEEDS)
async def test_results_stay_the_same_alone_and_side_by_side(
    programs: list[Program], seed: int
) -> None:
    with agt.using(hostile(seed)):
        results = await asyncio.gather(*(program.op().to_host() for program in programs))
    for result, program in zip(results, programs, strict=True):
        assert np.array_equal(result, program.expected())


def finishing_order(seed: int, count: int = 4) -> tuple[int, ...]:
    done: list[int] = []

    async def batch(number: int) -> None:
        await agt.full((64,), number).to_host()
        done.append(number)

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(count):
                group.create_task(batch(number))

    with agt.using(hostile(seed)):
        asyncio.run(main())
    return tuple(done)


def test_tasks_finish_in_every_order() -> None:
    assert {finishing_order(seed, 3) for seed in range(60)} == {
        (0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0),
    }  # fmt: skip


def test_one_seed_gives_one_order_and_times_that_mean_nothing() -> None:
    assert "times mean nothing (adversary 7)" in hostile(7).description
    assert all(finishing_order(seed) == finishing_order(seed) for seed in range(10))


def test_surely_over_by_now_is_no_order() -> None:
    def over_after_a_millisecond(device: SimDevice) -> bool:
        with agt.using(device):
            stream = agt.create_stream()
            result = agt.zeros(64).to_host().async_on(stream)
            event = stream.record()
            agt.work(1000.0)
            over = event.done
            stream.synchronize()
            del result
            return over

    assert over_after_a_millisecond(SimDevice(machine=SimMachine()))
    assert not all(over_after_a_millisecond(hostile(seed)) for seed in range(20))


def test_a_stream_keeps_its_order() -> None:
    for seed in range(20):
        with agt.using(hostile(seed)), agt.record() as trace:
            stream = agt.create_stream()
            results = [agt.full((8,), number).async_on(stream) for number in range(5)]
        spans = [s for s in trace.device_spans if s.stream == stream.number]
        assert len(spans) == len(results) == 5
        assert all(a.end <= b.start for a, b in itertools.pairwise(spans))


def test_the_mlp_does_not_count_on_luck() -> None:
    inputs = seed_inputs(16)

    async def main() -> MlpRun:
        w0, w1 = await upload(inputs)
        return await run_batches(inputs.batches, w0, w1)

    orders: set[tuple[str, ...]] = set()
    for seed in range(6):
        with agt.using(hostile(seed)):
            outcome = asyncio.run(main())
        expected = [reference_forward(x, inputs.w0, inputs.w1) for x in inputs.batches]
        assert np.allclose(outcome.outputs, expected, rtol=1e-5, atol=1e-6)
        ends = {s.label: s.end for s in outcome.trace.device_spans if s.kind == "d2h"}
        orders.add(tuple(sorted(ends, key=lambda label: ends[label])))
    assert len(orders) > 1  # or the orders were not hostile
