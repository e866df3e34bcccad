"""Random programs: run, prepared, captured, and captured again, they compute the same in the same order."""

import asyncio
import random
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.devices.simulated import SimDevice, SimMachine

from .programs import PROGRAMS, Program

SEEDS = st.none() | st.integers(0, 2**32)
Order = list[tuple[str, str, frozenset[int]]]


class Fresh(agt.SchedulingPolicy):
    """A new stream each time, so that nothing is in order but what has to be."""

    def next_stream(self) -> agt.types.Stream:
        return self.device.create_stream()


def order(trace: agt.Trace) -> Order:
    """Each piece of work, and by number all that come before it."""
    spans = sorted(trace.device_spans, key=lambda span: span.id)
    place = {span.id: number for number, span in enumerate(spans)}
    before: list[frozenset[int]] = []
    for span in spans:
        direct = [place[i] for i in span.after if i in place]
        before.append(frozenset(direct).union(*(before[i] for i in direct)))
    return [(s.kind, s.name, b) for s, b in zip(spans, before, strict=True)]


def run(op: agt.DeviceOp[Any], device: Device) -> tuple[list[float], Order]:
    with agt.record() as trace:
        result = op.sync(Fresh(device))
    return result.tolist(), order(trace)


@settings(max_examples=60)  # each is eight runs
@given(program=PROGRAMS)
def test_they_do_the_same_in_the_same_order(sim: Device, program: Program) -> None:
    direct = run(program.op().to_host(), sim)
    prepared = program.op().to_host().prepare()
    again = prepared.launch().prepare()
    graphs = [p.launch().graph_on(agt.create_stream()) for p in (prepared, again)]
    for captured in (prepared, *graphs, again, prepared, *graphs):
        assert run(captured.launch(), sim) == direct


@dataclass(frozen=True)
class Partly(Program):
    """A program in which this part is prepared, so many times over, and launched."""

    times: int = 0

    def op(self) -> agt.DeviceOp[agt.DeviceArray]:
        op = super().op()
        for _ in range(self.times):
            op = op.prepare().launch()
        return op


def partly(program: Program, times: st.DataObject) -> Partly:
    arms = tuple(partly(arm, times) for arm in program.arms)
    return Partly(program.kind, program.number, arms, times.draw(st.sampled_from((0, 0, 1, 2))))


@given(program=PROGRAMS, times=st.data(), seed=SEEDS)
def test_prepared_parts_compute_it(
    program: Program, times: st.DataObject, seed: int | None
) -> None:
    with agt.using(SimDevice(machine=SimMachine(), adversary=seed)):
        mixed = partly(program, times)
        expected = program.expected()
        assert np.array_equal(mixed.op().to_host().sync(), expected)
        prepared = mixed.op().to_host().prepare()
        graph = prepared.launch().graph_on(agt.create_stream())
        for captured in (prepared, graph, prepared):
            assert np.array_equal(captured.launch().sync(), expected)


@settings(max_examples=40)  # each is nine runs
@given(program=PROGRAMS, seed=SEEDS)
async def test_launches_compose_as_other_operations_do(program: Program, seed: int | None) -> None:
    with agt.using(SimDevice(machine=SimMachine(), adversary=seed)):
        prepared = program.op().to_host().prepare()
        graph = prepared.launch().graph_on(agt.create_stream())
        pairs: list[agt.DeviceOp[Any]] = [
            agt.zip(graph.launch(), prepared.launch()),
            agt.overlap(prepared.launch(), graph.launch()),
            agt.value(0).and_then(lambda _: agt.zip(graph.launch(), graph.launch().shared())),
        ]
        tasks = (agt.spawn(pair) for pair in pairs)
        results = await asyncio.gather(*pairs, *tasks, agt.zip(program.op().to_host()))
    for array in (array for result in results for array in result):
        assert np.array_equal(array, program.expected())


class AnyOf(agt.SchedulingPolicy):
    """One of a few streams, the default stream among them, in no order: arms may share one."""

    def __init__(self, device: Device, seed: int, more: int) -> None:
        super().__init__(device)
        self.random = random.Random(seed)
        self.streams = [device.default_stream, *(device.create_stream() for _ in range(more))]

    def next_stream(self) -> agt.types.Stream:
        return self.random.choice(self.streams)


@settings(max_examples=40)  # each is a dozen runs
@given(program=PROGRAMS, seed=st.integers(0, 2**32), more=st.integers(0, 3))
async def test_whatever_streams_a_policy_gives(program: Program, seed: int, more: int) -> None:
    device = SimDevice(machine=SimMachine(), adversary=seed)
    with agt.using(device, AnyOf(device, seed, more)):
        prepared = program.op().to_host().prepare()
        graph = prepared.launch().graph_on(device.default_stream)
        both = agt.overlap(prepared.launch(), prepared.launch()).prepare()
        results: list[Any] = []
        for _ in range(2):
            runs = (prepared.launch(), graph.launch(), program.op().to_host(), prepared.launch())
            results += await asyncio.gather(*runs)
            results += await both.launch()
    for result in results:
        assert np.array_equal(result, program.expected())
