"""Law 17: one way. However it is run, an operation does the same, and computes what was asked for."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.traces import nvtx
from tests.asyncgpu_tutor.traces.test_nvtx import FakeDomain

from .programs import PROGRAMS, Program
from .shape import structure
from .test_waiting import awaited


@contextmanager
def with_ranges() -> Iterator[None]:
    domain = FakeDomain()
    with nvtx.into(domain):
        yield
    assert not domain.stack
    assert not domain.open
    assert domain.log


async def _spawned(op: Any, policy: Any) -> Any:
    return await agt.spawn(op, policy)


def _async_on(op: Any, policy: Any) -> Any:
    # The chain takes one decision, as in the other ways, and its arms ask the current policy.
    with agt.using(policy=policy):
        handle = op.async_on(policy.next_stream())
    agt.synchronize()
    return handle.numpy()


RUNS: dict[str, Callable[[Any, Any], Any]] = {
    "sync": lambda op, policy: op.sync(policy),
    "await": lambda op, policy: asyncio.run(awaited(op.schedule(policy))),
    "spawn": lambda op, policy: asyncio.run(_spawned(op, policy)),
    "async_on": _async_on,
}


@pytest.mark.parametrize("how", list(RUNS))
@settings(max_examples=30)
@given(program=PROGRAMS, ranged=st.booleans())
def test_each_way_does_the_same(device: Device, how: str, ranged: bool, program: Program) -> None:
    def run(op: Any, which: str = how) -> Any:
        with with_ranges() if ranged else nullcontext(), agt.record() as trace:
            result = RUNS[which](op, agt.StreamPoolRoundRobin(4, device))
        assert np.array_equal(result, program.expected())
        return structure(trace, times=False)

    fresh = run(program.op().to_host(), "sync")
    assert run(program.op().to_host()) == fresh
    prepared = program.op().to_host().prepare()
    assert run(prepared.launch()) == run(prepared.launch()) == fresh
    unrecorded = RUNS[how](prepared.launch(), agt.StreamPoolRoundRobin(4, device))
    assert np.array_equal(unrecorded, program.expected())
    graph = prepared.launch().graph_on(agt.create_stream())
    work = run(graph.launch())
    if device.simulated:  # on a GPU events see a graph as a whole
        assert sorted(span[1] for span in work) == sorted(span[1] for span in fresh)


# ---------------------------------------------------------------------- products and sums
MULTIPLY_ADD = r"""
extern "C" __global__ void madd(unsigned int n, const float* x, const float* y, const float* z, float* out) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] * y[i] + z[i];
}
"""


def nearest(exact: Fraction) -> np.float32:
    """The float32 that is nearest to an exact number; ties go to the even one."""
    guess = np.float32(float(exact))
    near = [guess, *(np.nextafter(guess, np.float32(end)) for end in (-np.inf, np.inf))]
    return min(near, key=lambda x: (abs(Fraction(float(x)) - exact), int(x.view(np.uint32)) & 1))


FLOATS = st.floats(-1000, 1000, width=32).filter(lambda x: x == 0 or abs(x) > 2.0**-40)


def _madd(contract: bool, *columns: Any) -> Any:
    n = len(columns[0])
    ups = [agt.h2d(agt.pin(np.array(column, np.float32))) for column in columns]
    kernel = agt.Kernel(MULTIPLY_ADD, contract=contract)
    return kernel(n, *ups, agt.zeros((n,)).partition(32)).output().to_host().sync()


@settings(max_examples=30)
@given(rows=st.lists(st.tuples(FLOATS, FLOATS, FLOATS), min_size=1, max_size=20))
def test_contraction_rounds_once(device: Device, rows: list[tuple[float, float, float]]) -> None:
    # The difference shows where terms cancel, so in some rows z is the rounded product with its sign turned.
    rows = rows + [(x, y, -float(np.float32(x) * np.float32(y))) for x, y, _ in rows]
    x, y, z = (np.array(column, np.float32) for column in zip(*rows, strict=True))
    once = [nearest(Fraction(a) * Fraction(b) + Fraction(c)) for a, b, c in rows]
    assert _madd(True, x, y, z).tolist() == [float(number) for number in once]
    assert _madd(False, x, y, z).tolist() == (x * y + z).tolist()
