"""A capture that fails has done nothing: operations, arrays and memory are as before."""

import copy
import itertools
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.devices.simulated import SimDevice, SimMachine
from asyncgpu_tutor.errors import CaptureError, UseAfterMoveError

from .kernels import SCALE, kernel
from .programs import PROGRAMS, Program
from .test_graphs import BOTH, Capture, N, Op, arrays, into


class Refused(Exception):
    """Raised in a function."""


def refuse(*_: object) -> Op:
    raise Refused


def doubled(x: agt.DeviceArray, y: agt.DeviceArray) -> Op:
    """y = 2 x; takes both."""
    return kernel(SCALE)(N, 2.0, x, y.partition(32)).output()


# ---------------------------------------------------------------------- operations
@given(program=PROGRAMS)
def test_what_cannot_be_captured_can_be_prepared(device: Device, program: Program) -> None:
    op = program.op().to_host()
    with pytest.raises(CaptureError):
        op.graph_on(agt.create_stream())
    with pytest.raises(Refused):
        op.and_then(refuse).prepare()
    assert np.array_equal(op.prepare().launch().sync(), program.expected())


@BOTH
def test_what_took_owned_arrays_can_be_run_after_all(device: Device, capture: Capture) -> None:
    first = doubled(*arrays(1, 0))
    whole = agt.zip(first, agt.d2h(arrays(3)[0], out=agt.pinned((N,))))

    def unjoined(context: agt.types.ExecutionContext, _: object) -> Op:  # which is seen at the end
        branch = context.fork()
        branch.stream.wait_event(context.stream.record())
        branch.copy(*spare)
        return agt.value(None)

    spare = arrays(1, 2)
    for fails in whole.and_then(refuse), whole.and_then_with_context(unjoined):
        with pytest.raises((Refused, CaptureError), match=r"^$|nothing waits for"):
            capture(fails)
    array, host = whole.sync()
    assert agt.d2h(array).sync().tolist() == [2.0] * N
    assert host.tolist() == [3.0] * N


TAKERS: list[Callable[[agt.DeviceArray, agt.DeviceArray], Any]] = [
    lambda x, y: kernel(SCALE)(N, 1.0, x, x, grid=2, block=32),
    lambda x, y: kernel(SCALE)(N, agt.value(1.0), x, x, grid=2, block=32),
    lambda x, y: agt.d2h(x, out=agt.pinned((N,))), lambda x, y: agt.memcpy(x, agt.pinned((N,))),
    lambda x, y: agt.value(x.partition(32)), lambda x, y: agt.value(x.partition(32).unpartition()),
    lambda x, y: agt.value(x.reshape(4, N // 4)), lambda x, y: agt.value(x.share()),
    lambda x, y: agt.memcpy(y, x),
]  # fmt: skip


@BOTH
@pytest.mark.parametrize("take", TAKERS)
def test_arrays_are_given_back(device: Device, capture: Capture, take: Callable[..., Any]) -> None:
    x, y = arrays(3, 0)
    seen: list[bool] = []

    def takes(_: object) -> Any:
        op = take(x, y)
        seen.append(x.moved)
        return op

    with pytest.raises(Refused):
        capture(agt.value(None).and_then(takes).and_then(refuse))
    assert seen == [True]
    assert not x.moved
    assert agt.d2h(x).sync().tolist() == [3.0] * N


def test_a_graph_that_cannot_be_made_has_captured_nothing(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = arrays(3, 0)
    op = agt.value(None).and_then(lambda _: doubled(x, y)).shared()
    with monkeypatch.context() as patched:
        patched.setattr(
            type(device), "prepare", lambda *_: Mock(instantiate=Mock(side_effect=Refused))
        )
        with pytest.raises(Refused):
            op.graph_on(agt.create_stream())
    assert (x.moved, y.moved) == (False, False)
    assert agt.d2h(op.sync()).sync().tolist() == [6.0] * N


@BOTH
def test_what_is_shared_has_not_run(device: Device, capture: Capture) -> None:
    x, y, z = arrays(1, 0, 0)
    shared = into(x, y).shared()
    left, right = agt.zip(into(y, z), agt.value(7)).unzip()
    whole = agt.zip(shared, shared, left, right)
    with pytest.raises(Refused):
        capture(whole.and_then(refuse))
    assert whole.sync()[-1] == 7
    assert [agt.d2h(array.borrow()).sync()[0] for array in (y, z)] == [2, 4]


@BOTH
def test_an_error_in_what_is_shared_does_not_stay(device: Device, capture: Capture) -> None:
    tries: list[int] = []

    def at_first(_: object) -> Op:
        tries.append(1)
        return refuse() if len(tries) == 1 else agt.value(5)

    shared = agt.value(None).and_then(at_first).shared()
    with pytest.raises(Refused):
        capture(shared)
    assert shared.sync() == 5


# ---------------------------------------------------------------------- scopes
def test_a_scope_that_fails_has_captured_nothing_of_it(device: Device) -> None:
    x, y, z = arrays(1, 0, 0)
    good, chained = doubled(x, y), into(z, z)

    def fails(goes_on: bool) -> None:
        with agt.CudaGraph.scope(agt.create_stream()) as scope:
            scope.record(good)
            with pytest.raises(Refused) if goes_on else nullcontext():
                scope.record(chained.and_then(refuse))

    with pytest.raises(Refused):
        fails(goes_on=False)
    with pytest.raises(CaptureError, match="incomplete"):
        fails(goes_on=True)
    assert agt.d2h(good.sync()).sync().tolist() == [2.0] * N


# ---------------------------------------------------------------------- what was moved on
def test_a_scope_can_go_on_with_what_it_got(device: Device) -> None:
    """The first result is moved into the second step; a launch lends it all the same."""
    x, y, z = arrays(1, 0, 0)
    with agt.CudaGraph.scope(agt.create_stream()) as scope:
        first = scope.record(doubled(x, y))
        scope.record(doubled(first, z))
    for _ in range(2):
        lent = scope.graph.launch().sync()
        assert [agt.d2h(array).sync()[0] for array in (lent[0], lent[1])] == [2, 4]
    first, second = scope.graph.take_output()
    with pytest.raises(UseAfterMoveError, match="into scale"):
        agt.d2h(first)
    assert agt.d2h(second).sync()[0] == 4


@BOTH
def test_a_result_that_was_moved_on_is_no_reason_to_fail(device: Device, capture: Capture) -> None:
    x, host = arrays(1)[0], agt.pinned((N,))
    op = agt.value(x).and_then(lambda x: agt.zip(agt.value(x), agt.d2h(x, out=host)))
    assert capture(op).launch().sync()[1].tolist() == [1.0] * N


# ---------------------------------------------------------------------- nothing to capture
@BOTH
def test_what_ran_before_and_runs_once_is_refused(device: Device, capture: Capture) -> None:
    def last() -> Op:
        x, y = arrays(1, 0)
        return kernel(SCALE)(N, 2.0, x.borrow(), y.borrow().partition(32)).last()

    op = last()
    op.sync()
    with pytest.raises(CaptureError, match="'scale' ran before"):
        capture(op)
    capture(last()).launch().sync()
    left, right = agt.zip(into(*arrays(1, 0)), agt.value(7)).unzip()
    left.sync()
    assert capture(right).launch().sync() == 7  # it has not been asked for yet
    with pytest.raises(CaptureError, match="'zip' ran before"):
        capture(left)


def test_a_stream_of_a_capture_can_be_copied_and_has_no_pointer(device: Device) -> None:
    agt.with_context(lambda context: agt.value(copy.copy(context.stream).number)).prepare()
    with pytest.raises(AttributeError, match=r"no 'ptr'.*another library"):
        agt.with_context(lambda context: agt.value(context.stream.ptr)).prepare()


def test_a_step_may_be_recorded_inside_of_a_step(device: Device) -> None:
    x, y, z = arrays(1, 0, 0)
    with agt.CudaGraph.scope(agt.create_stream()) as scope:
        scope.record(into(x, y).and_then(lambda _: agt.value(scope.record(into(y, z)))))
    scope.graph.launch().sync()
    assert agt.d2h(z.borrow()).sync()[0] == 4


# ---------------------------------------------------------------------- wherever it fails
@dataclass(frozen=True)
class Ticking(Program):
    """A program that calls a function after each of its parts."""

    tick: Callable[[], None] = lambda: None

    def op(self) -> agt.DeviceOp[agt.DeviceArray]:
        def after(array: agt.DeviceArray) -> agt.DeviceOp[agt.DeviceArray]:
            self.tick()
            return agt.value(array)

        return super().op().and_then(after)


def ticking(program: Program, tick: Callable[[], None]) -> Ticking:
    arms = tuple(ticking(arm, tick) for arm in program.arms)
    return Ticking(program.kind, program.number, arms, tick)


@settings(max_examples=50)
@given(program=PROGRAMS)
def test_wherever_it_fails_it_can_be_captured_next_time(program: Program) -> None:
    """One operation, whose capture fails at its first function, then at its second, and so on."""
    ticks, limit = itertools.count(), 0

    def tick() -> None:
        if next(ticks) == limit:
            raise Refused

    sim = SimDevice(machine=SimMachine())
    with agt.using(sim):
        op = ticking(program, tick).op().to_host()
        prepared = None
        while prepared is None:
            with suppress(Refused):
                prepared = op.prepare()
            if prepared is None:
                ticks, limit = itertools.count(), limit + 1
                assert sim.heap.live == 0
        assert limit > 0
        assert np.array_equal(prepared.launch().sync(), program.expected())
