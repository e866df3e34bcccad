"""Law 6: a shared or unzipped source runs at most once, and never races."""

import asyncio
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.errors import NotReadyError, UseAfterMoveError

from .kernels import add, scale
from .test_waiting import slow


@given(users=st.integers(1, 6), streams=st.integers(1, 4))
async def test_a_shared_source_runs_once(device: Device, users: int, streams: int) -> None:
    source = agt.ones((40,)).and_then(lambda a: scale(a, 2.0)).shared()
    policy = agt.StreamPoolRoundRobin(streams, device)
    doubled = [source.and_then(lambda a: add(a, a, 40)).to_host() for _ in range(users)]
    with agt.record() as trace:
        results = await asyncio.gather(*(op.schedule(policy) for op in doubled))
    assert [float(result[0]) for result in results] == [4.0] * users
    (made,) = trace.find("scale")
    for consumer in trace.find("add"):
        fills = [s for s in trace.find("memset") if s.op == consumer.op]
        before = set(consumer.after) | {i for fill in fills for i in fill.after}
        assert consumer.stream == made.stream or made.id in before
        assert made.end <= consumer.start + 1.0
    assert len({s.stream for s in trace.find("add")}) == min(users, streams)


def test_a_shared_array_comes_out_shared_wherever_it_is(device: Device) -> None:
    source = agt.zip(agt.ones((3,)).map(lambda a: {"arrays": [a]}), agt.value(3)).shared()
    for _ in range(2):
        found, number = source.sync()
        assert (found["arrays"][0].mode, number) == ("shared", 3)
        assert agt.d2h(found["arrays"][0]).sync().tolist() == [1.0] * 3
    assert source.shared() is source


def test_the_parts_of_a_tuple_share_one_run(device: Device) -> None:
    def three() -> agt.DeviceOp[Any]:
        return agt.zip(agt.ones((4,)), agt.full((4,), 2), agt.full((4,), 3))

    with agt.record() as trace:
        first, last, (_, second, third) = three().first(), three().last(), three().unzip()
        assert len(three().shared().on(device).unzip()) == 3
        assert first.sync() is first.sync()
        assert last.to_host().sync()[0] == third.to_host().sync()[0] == 3.0
        assert second.to_host().sync().tolist() == [2.0] * 4
    assert len(trace.find("fill")) == 3 * 3


def test_a_failed_source_fails_every_user(device: Device) -> None:
    def fail(_: int) -> agt.DeviceOp[int]:
        raise LookupError("no such thing")

    source = agt.value(1).and_then(fail).shared()
    told: list[tuple[int, int]] = []
    for _ in range(3):
        with pytest.raises(LookupError, match="no such thing") as raised:
            source.sync()
        told.append((len(raised.value.__notes__), len(raised.traceback)))
    assert told[1] == told[2]  # what one user adds is not kept for the next


def test_unzip_needs_to_know_how_many(device: Device) -> None:
    unknown = agt.value((1, 2)).map(lambda t: t)
    with pytest.raises(agt.UsageError, match=r"unzip\(2\)"):
        unknown.unzip()
    assert [part.sync() for part in unknown.unzip(2)] == [1, 2]
    with pytest.raises(agt.UsageError, match="yields 2 entries, and 3 were asked for"):
        agt.zip(agt.value(1), agt.value(2)).unzip(3)
    *_, third = agt.value((1, 2)).map(lambda t: t).unzip(3)
    with pytest.raises(agt.UsageError, match="yields 2 entries: there is no entry 2"):
        third.sync()
    with pytest.raises(agt.UsageError, match="yields int, not a tuple"):
        agt.value(1).first().sync()


def test_an_entry_that_was_given_away_says_so(device: Device) -> None:
    op = agt.zip(agt.ones((4,)), agt.zeros((4,))).first().to_host()
    assert op.sync().tolist() == [1.0] * 4
    with pytest.raises(UseAfterMoveError, match=r"runs at most once.*'ones' went to"):
        op.sync()


async def test_a_user_of_a_shared_host_result_does_not_wait_for_the_first(device: Device) -> None:
    source = agt.ones((4,)).to_host().shared()
    first = agt.spawn(source.and_then(lambda _: slow(1024)))
    second = agt.spawn(source.map(lambda host: host))
    result = await second
    assert type(result) is np.ndarray
    await first
    assert result.tolist() == [1.0] * 4
    with pytest.raises(NotReadyError, match="'third'"):  # nobody reads it early, in a submission
        source.map(np.asarray).named("third").sync()


def test_a_shared_operation_that_needs_itself_says_so(device: Device) -> None:
    ops: list[agt.DeviceOp[int]] = []
    ops.append(agt.value(1).and_then(lambda _: ops[0]).shared().named("loop"))
    for _ in range(2):
        with pytest.raises(agt.UsageError, match="'loop' needs its own result"):
            ops[0].sync()


def test_a_source_that_ran_in_an_arm_that_failed_is_good(device: Device) -> None:
    def bug(_: agt.DeviceArray) -> agt.DeviceOp[int]:
        raise LookupError("after the source")

    source = agt.ones((4,)).and_then(lambda a: scale(a, 3.0)).shared()
    with pytest.raises(LookupError):
        agt.overlap(agt.ones((4,)), source.and_then(bug)).sync()
    assert source.and_then(agt.d2h).sync().tolist() == [3.0] * 4


@pytest.mark.parametrize("captured", [False, True])
def test_arms_of_an_overlap_share_what_runs_once(device: Device, captured: bool) -> None:
    source = agt.full((4,), 3).shared()
    op = agt.overlap(*(source.and_then(agt.d2h) for _ in range(2)))
    if captured:
        op = op.prepare().launch()
    assert [host.tolist() for host in op.sync()] == [[3.0] * 4] * 2
