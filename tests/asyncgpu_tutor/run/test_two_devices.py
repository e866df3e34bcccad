"""Several devices of one kind: batches split between two, each with its own policy and weights."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from tests.conftest import open_or_skip
from tests.laws.kernels import add

PAIRS = [("sim:0", "sim:1"), pytest.param(("cuda:0", "cuda:1"), marks=pytest.mark.gpu)]


@pytest.fixture(params=PAIRS, ids=lambda pair: pair[0].partition(":")[0])
def pair(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    """Two devices; skipped where there is only one GPU."""
    return tuple(open_or_skip(name) for name in request.param)


def test_an_array_stays_where_it_was_made(pair: tuple[Any, Any]) -> None:
    first, second = pair
    with agt.using(first):
        array = agt.ones((4,)).sync().share()
    assert array.device is first
    with agt.using(second), pytest.raises(agt.errors.DeviceMismatchError, match=first.name):
        agt.d2h(array).sync()
    with agt.using(first):
        assert agt.d2h(array).sync().tolist() == [1.0] * 4


def test_what_is_pinned_is_pinned_for_both(pair: tuple[Any, Any]) -> None:
    first, second = pair
    with agt.using(first):
        array = agt.pin(np.ones(8, np.float32))
    assert second.is_pinned(array[2:])
    assert not second.is_pinned(np.ones(8, np.float32))


def test_a_stream_brings_its_device(pair: tuple[Any, Any]) -> None:
    first, second = pair
    with agt.using(second):
        stream = agt.create_stream()
        array = agt.ones((4,)).sync_on(stream)
    with agt.using(first):
        assert agt.d2h(array).sync_on(stream).tolist() == [1.0] * 4
    assert array.device is second


TAKERS: list[Callable[[agt.DeviceArray, agt.DeviceArray], agt.DeviceOp[Any]]] = [
    lambda x, y: agt.relu(4, x, y.partition(4)),
    lambda x, y: agt.relu(agt.value(4), x, y.partition(4)),
    lambda x, y: agt.relu(4, x, agt.value(y.partition(4))),
    lambda x, y: agt.d2h(x),
    lambda x, y: agt.dup(x),
    lambda x, y: agt.memcpy(y, x),
]


@pytest.mark.parametrize("take", TAKERS)
def test_what_the_wrong_device_has_refused_runs_on_the_right_one(
    pair: tuple[Any, Any], take: Callable[..., agt.DeviceOp[Any]]
) -> None:
    first, second = pair
    with agt.using(first):
        x, y = agt.zip(agt.ones(4), agt.zeros(4)).sync()
        op = take(x, y)
    with agt.using(second), pytest.raises(agt.errors.DeviceMismatchError, match=first.name):
        op.sync()
    with agt.using(first):
        op.sync()
        with pytest.raises(agt.errors.UseAfterMoveError, match="earlier run of"):
            op.sync()


def test_each_device_has_constants_of_its_own(pair: tuple[Any, Any]) -> None:
    kernel = agt.Kernel("__constant__ int c; __global__ void k(int* x) { x[0] = c; }")
    for number, device in enumerate(pair):
        with agt.using(device):
            kernel.constants["c"] = number
    for number, device in enumerate(pair):
        with agt.using(device):
            found = kernel(agt.zeros(1, np.int32), grid=1, block=1).output().to_host().sync()
            assert found == kernel.constants["c"] == number


def test_a_graph_is_recorded_beside_a_second_device(pair: tuple[Any, Any]) -> None:
    # On GPUs a copy in the graph wrote its times to memory of the other one, and killed the context: see
    # devices/cuda/cupti.py.
    first, second = pair
    with agt.using(second):
        agt.ones(4).sync()
    with agt.using(first):
        sums = add(agt.full((40,), 1.0), agt.full((40,), 2.0), 40).to_host()
        prepared = sums.prepare()
        prepared.launch().async_on(agt.create_stream())
        agt.synchronize()
        graph = prepared.launch().graph_on(agt.create_stream())
        for _ in range(3):
            policy = agt.StreamPoolRoundRobin(4, first)
            with agt.record() as trace, agt.using(policy=policy):
                handle = graph.launch().async_on(policy.next_stream())
                agt.synchronize()
            assert handle.numpy().tolist() == [3.0] * 40
            assert {span.device for span in trace if span.on_device} == {first.name}


def test_two_devices_work_at_the_same_time() -> None:
    def product() -> agt.DeviceOp[agt.types.Partition]:
        n = 1024
        out = agt.zeros(n).partition(256)
        return agt.matvec_naive(n, n, agt.ones((n, n)), agt.ones(n), out).last()

    with agt.using("sim:0"), agt.record() as trace:
        product().async_on(agt.create_stream())
        with agt.using("sim:1"):
            product().async_on(agt.create_stream())
    one, other = trace.find("matvec_naive")
    assert (one.device, other.device) == ("sim:0", "sim:1")
    assert other.start < one.end
