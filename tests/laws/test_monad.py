"""Law 5: value is neutral, and_then is associative; in results and in traces."""

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device

from .kernels import add, scale
from .programs import PROGRAMS, N, Program
from .shape import structure

Function = Callable[[agt.DeviceArray], agt.DeviceOp[agt.DeviceArray]]

FUNCTIONS: list[Function] = [
    agt.value, lambda array: scale(array, 2.0), lambda array: scale(array, -1.0),
    lambda array: add(array, agt.ones((N,)), N),
    lambda array: agt.overlap(agt.value(array), agt.ones((N,))).and_then(lambda pair: add(*pair, N)),
]  # fmt: skip
CHOICES = st.sampled_from(FUNCTIONS)


def run(device: Device, op: agt.DeviceOp[Any]) -> tuple[list[float], list[tuple[object, ...]]]:
    """Result and trace of a run with a policy of its own."""
    policy = agt.StreamPoolRoundRobin(4, device)
    with agt.record() as trace:
        result = op.to_host().sync(policy)
    return np.asarray(result).tolist(), structure(trace)


@given(f=CHOICES, number=st.integers(-3, 3))
def test_value_is_a_left_unit(device: Device, f: Function, number: int) -> None:
    def start() -> agt.DeviceArray:
        return agt.full((N,), number).sync()

    assert run(device, agt.value(start()).and_then(f)) == run(device, f(start()))


@given(program=PROGRAMS)
def test_value_is_a_right_unit(device: Device, program: Program) -> None:
    assert run(device, program.op().and_then(agt.value)) == run(device, program.op())


@given(program=PROGRAMS, f=CHOICES, g=CHOICES)
def test_and_then_associates(device: Device, program: Program, f: Function, g: Function) -> None:
    one = program.op().and_then(f).and_then(g)
    other = program.op().and_then(lambda array: f(array).and_then(g))
    assert run(device, one) == run(device, other)


@settings(max_examples=40)
@given(program=PROGRAMS)
def test_map_is_and_then_with_value(device: Device, program: Program) -> None:
    one = program.op().map(lambda array: array.reshape(N, 1).reshape(N))
    other = program.op().and_then(lambda array: agt.value(array.reshape(N, 1).reshape(N)))
    assert run(device, one) == run(device, other)


def test_long_chains_need_no_deep_stack(device: Device) -> None:
    op: agt.DeviceOp[int] = agt.value(0)
    for _ in range(20_000):
        op = op.map(lambda n: n + 1)
    assert op.sync() == 20_000

    def count(n: int) -> agt.DeviceOp[int]:
        return agt.value(n) if n == 20_000 else agt.value(n + 1).and_then(count)

    assert count(0).sync() == 20_000
