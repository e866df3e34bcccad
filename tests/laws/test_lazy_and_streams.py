"""Laws 1 to 3: lazy; one chain, one stream; zip is order, not overlap."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device, Stream
from asyncgpu_tutor.devices.simulated import SimDevice, SimMachine
from asyncgpu_tutor.run.current import policy_for, resolve

from .kernels import scale
from .programs import PROGRAMS, Program
from .shape import structure


class Counting(agt.StreamPoolRoundRobin):
    decisions = 0

    def next_stream(self) -> Stream:
        self.decisions += 1
        return super().next_stream()


def overlaps(program: Program) -> int:
    """How many arms of `overlap` a program has."""
    own = 2 if program.kind == "overlap" else 0
    return own + sum(overlaps(arm) for arm in program.arms)


@given(program=PROGRAMS)
def test_building_enqueues_nothing(device: Device, program: Program) -> None:
    policy = Counting(4, device)
    with agt.using(policy=policy), agt.record() as trace:
        op = program.op()
        future = op.to_host()
    assert trace.device_spans == []
    assert policy.decisions == 0
    assert isinstance(future, agt.DeviceOp)


@given(program=PROGRAMS)
def test_one_decision_for_a_run_and_one_more_for_each_arm(device: Device, program: Program) -> None:
    policy = Counting(4, device)
    with agt.record() as trace:
        program.op().sync(policy)
    assert policy.decisions == 1 + overlaps(program)
    assert overlaps(program) or len(trace.streams) == 1
    program.op().prepare().launch().sync(again := Counting(4, device))
    assert again.decisions == policy.decisions


def test_zip_does_not_overlap(device: Device) -> None:
    with agt.record() as trace:
        agt.zip(*[agt.ones((1000,)) for _ in range(4)]).sync()
    spans = trace.find("fill")
    assert len(spans) == 4
    assert all(a.id in b.after for a, b in pairwise(spans))
    assert trace.metrics().overlap == 0.0


def test_overlap_puts_each_arm_on_a_stream_of_its_own_and_joins(device: Device) -> None:
    policy = agt.StreamPoolRoundRobin(4, device)

    def work(pair: tuple[agt.DeviceArray, agt.DeviceArray]) -> agt.DeviceOp[agt.DeviceArray]:
        return scale(pair[0], 2.0)

    def both(first: agt.DeviceArray) -> agt.DeviceOp[tuple[agt.DeviceArray, agt.DeviceArray]]:
        return agt.overlap(agt.ones((64,)), agt.ones((64,))).map(lambda two: (first, two[0]))

    with agt.record() as trace:
        agt.ones((64,)).and_then(both).and_then(work).sync(policy)
    before, left, right = trace.find("fill")
    (after,) = trace.find("scale")
    assert before.stream == after.stream
    assert len({before.stream, left.stream, right.stream}) == 3
    assert before.id in left.after
    assert before.id in right.after
    assert {left.id, right.id} <= set(after.after)
    assert max(left.end, right.end) <= after.start + 1.0  # events resolve half a microsecond


@pytest.mark.parametrize("prepared", [False, True])
def test_arms_of_nested_overlaps_share_no_stream_while_there_are_others(
    device: Device, prepared: bool
) -> None:
    def nested(arms: int) -> agt.DeviceOp[object]:
        first = agt.ones((64,))
        return first if arms == 1 else agt.overlap(first, nested(arms - 1))

    for arms in (4, 6):
        op = nested(arms)
        with agt.record() as trace:
            (op.prepare().launch() if prepared else op).sync(agt.StreamPoolRoundRobin(4, device))
        assert len({span.stream for span in trace.find("fill")}) == 4


def test_prepared_arms_do_not_wait_for_each_other_when_streams_change(device: Device) -> None:
    made = [agt.ones((64,)).prepare() for _ in range(4)]
    policy = agt.StreamPoolRoundRobin(4, device)
    for _ in range(2):
        with agt.record() as trace:
            agt.overlap(*(each.launch() for each in made)).sync(policy)
    fills = trace.find("fill")
    assert len({span.stream for span in fills}) == 4
    assert not {span.id for span in fills} & {i for span in fills for i in span.after}


def test_arms_of_overlap_run_at_once_on_the_simulated_device(sim: Device) -> None:
    # This kernel outlasts the launch of the next one, so that there is something to overlap with.
    def slow() -> agt.DeviceOp[agt.DeviceArray]:
        n = 1024
        out = agt.zeros((n,)).partition(n)
        return agt.matvec_naive(n, n, agt.ones((n, n)), agt.ones((n,)), out).last().unpartition()

    with agt.record() as apart:
        agt.overlap(slow(), slow()).sync()
    with agt.record() as inline:
        agt.zip(slow(), slow()).sync()
    first, second = apart.find("matvec_naive")
    assert first.start < second.start < first.end
    first, second = inline.find("matvec_naive")
    assert first.end <= second.start


@given(st.integers(1, 5), st.integers(1, 12))
def test_round_robin_takes_turns(device: Device, size: int, runs: int) -> None:
    policy = agt.StreamPoolRoundRobin(size, device)
    streams = [policy.next_stream() for _ in range(runs)]
    assert all(streams[i] is streams[i % size] for i in range(runs))
    assert len({id(s) for s in streams}) == min(size, runs)


def test_a_policy_of_ones_own(device: Device) -> None:
    class Fastest(agt.SchedulingPolicy):
        """Keeps to two streams, and prefers the second."""

        def __init__(self) -> None:  # forgets super().__init__(), as people do
            self.made: list[Stream] = []

        def next_stream(self) -> Stream:
            if not self.made:
                self.made = [self.device.create_stream() for _ in range(2)]
            return self.made[1]

    policy = Fastest()
    with agt.record() as trace:
        agt.ones((10,)).sync(policy)
    assert {span.stream for span in trace.device_spans} == {policy.made[1].number}


def test_the_same_stream_for_sync_on(device: Device) -> None:
    stream = agt.create_stream()
    with agt.record() as trace:
        agt.ones((10,)).and_then(lambda a: scale(a, 3.0)).sync_on(stream)
    assert {span.stream for span in trace.device_spans} == {stream.number}
    assert [name for _, name, *_ in structure(trace)] == ["fill", "scale"]


def test_a_device_of_ones_own_has_one_policy_while_it_is_chosen() -> None:
    mine = SimDevice(machine=SimMachine())
    with agt.using(mine):
        assert policy_for(mine) is policy_for(mine)
        assert policy_for(resolve("sim:0")).device is not mine


def test_arms_on_a_given_stream_ask_the_current_policy(device: Device) -> None:
    stream, policy = agt.create_stream(), agt.SingleStream(agt.create_stream())
    op = agt.overlap(agt.ones((3,)), agt.ones((3,)))
    with agt.using(policy=policy), agt.record() as trace:
        op.sync_on(stream)
        op.async_on(stream)
    assert trace.streams == [policy.next_stream().number]
