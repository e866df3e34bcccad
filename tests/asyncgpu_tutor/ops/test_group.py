"""Several devices of one process: what stays on its own, copies between them, arms, and policies."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from tests.conftest import open_or_skip
from tests.laws.kernels import add

PAIRS = [("sim:0", "sim:1"), pytest.param(("cuda:0", "cuda:1"), marks=pytest.mark.gpu)]
NUMBERS = np.arange(1000, dtype=np.float32)


@pytest.fixture(params=PAIRS, ids=lambda pair: pair[0].partition(":")[0])
def pair(request: pytest.FixtureRequest) -> Any:
    """Two devices, of which the first is current."""
    devices = [open_or_skip(name) for name in request.param]
    with agt.using(devices[0]):
        yield devices


def test_an_array_goes_to_another_device_and_comes_back(pair: Any) -> None:
    first, second = pair
    with agt.record() as trace:
        there = agt.h2d(NUMBERS).to(second).sync()
        assert there.device is second
        back = there.to(first.name).to_host().sync()
    assert back.tolist() == NUMBERS.tolist()
    copies = trace.find("peer copy")
    assert [span.device for span in copies] == [first.name, first.name]
    assert [span.detail["bytes"] for span in copies] == [NUMBERS.nbytes] * 2


def test_on_the_same_device_nothing_is_copied(pair: Any) -> None:
    first, _ = pair
    array = agt.ones(4).sync()
    with agt.record() as trace:
        same = array.to(first).sync()
    assert same.device is first
    assert not trace.device_spans
    assert array.gone == "into to()"


def test_a_third_device_can_copy_nothing(pair: Any) -> None:
    array = agt.ones(4).sync()
    with agt.using("sim:2"), pytest.raises(agt.errors.DeviceMismatchError, match=r"op\.on"):
        array.borrow().to(pair[1]).sync()


def test_a_copy_to_here_waits_for_the_stream_that_wrote_the_array(pair: Any) -> None:
    """The host waits for nothing in between, and no event was recorded by the program."""
    _, second = pair
    array = agt.full(1 << 20, 7.0).async_on(agt.create_stream())
    with agt.using(second):
        there = array.to(second).to_host().sync()
    assert set(there.tolist()) == {7.0}


@pytest.mark.parametrize("mode", ["share", "borrow"])
def test_whoever_keeps_an_array_can_copy_it_again(pair: Any, mode: str) -> None:
    array = agt.h2d(NUMBERS).sync()
    array = array.share() if mode == "share" else array
    copies = [getattr(array, mode)().to(pair[1]).sync() for _ in range(2)]
    assert [copy.mode for copy in copies] == ["owned"] * 2
    assert not array.moved


def test_arms_run_on_the_devices_that_they_name(pair: Any) -> None:
    def work() -> agt.DeviceOp[Any]:
        out = agt.zeros(1 << 16).partition(256)
        return agt.relu(1 << 16, agt.ones(1 << 16), out).output().to_host()

    with agt.record() as trace:
        results = agt.overlap(*(work().on(device) for device in pair)).sync()
    assert all(result.sum() == 1 << 16 for result in results)
    assert [span.device for span in trace.find("relu")] == [device.name for device in pair]


def test_a_policy_of_one_device_has_no_say_on_another(pair: Any) -> None:
    one, other = pair
    with agt.using(one, agt.SingleStream()):
        arrays = agt.overlap(*(agt.ones(2).on(device) for device in pair)).sync()
    assert [array.device for array in arrays] == [one, other]


def test_what_follows_a_part_elsewhere_comes_after_it(pair: Any) -> None:
    first, second = pair
    part = agt.h2d(agt.pin(NUMBERS)).on(second)
    with agt.record() as trace:
        found = part.and_then(lambda a: a.to(first)).and_then(agt.d2h).sync()
    assert found.tolist() == NUMBERS.tolist()
    work = [span for span in trace.device_spans if span.name in ("h2d", "peer copy", "d2h")]
    assert [span.name for span in work] == ["h2d", "peer copy", "d2h"]
    assert all(a.end <= b.start for a, b in itertools.pairwise(work))


def test_a_policy_deals_operations_out_to_its_devices(pair: Any) -> None:
    policy = agt.StreamPoolRoundRobin(2, devices=pair)
    with agt.using(policy=policy):
        arrays = [agt.ones(8).sync() for _ in range(4)]
        with agt.record() as trace:
            arms = agt.overlap(agt.ones(8), agt.ones(8)).sync()
        here = agt.ones(8).on(pair[1]).sync()
    names = [device.name for device in pair]
    assert [array.device.name for array in arrays] == names * 2
    assert sorted(array.device.name for array in arms) == sorted(trace.devices) == names
    assert here.device is pair[1]


def test_a_failure_elsewhere_is_the_operations_own() -> None:
    kernel = agt.Kernel("__global__ void k(int* x) { x[threadIdx.x + 8] = 1; }")
    with agt.using("sim:0"):
        bad = kernel(agt.zeros(4, np.int32), grid=1, block=1).on("sim:1")
        with pytest.raises(agt.errors.OutOfBoundsError, match="k"):
            bad.sync()
        assert agt.ones(2).to_host().on("sim:1").sync().tolist() == [1.0, 1.0]


@pytest.mark.parametrize("capture", ["prepare", "graph_on"])
def test_what_is_captured_stays_on_one_device(pair: Any, capture: str) -> None:
    array = agt.ones(4).sync().share()
    for op in (array.to(pair[1]), agt.ones(4).on(pair[1])):
        with pytest.raises(agt.errors.CaptureError, match="stays on one device"):
            op.prepare() if capture == "prepare" else op.graph_on(agt.create_stream())
        op.sync()  # it did nothing


def test_copies_that_share_a_link_share_its_rate() -> None:
    def copies(*pairs: tuple[int, int]) -> float:
        with agt.using("sim:0"):
            arrays = [agt.ones(1 << 22).on(f"sim:{a}").sync() for a, _ in pairs]
            with agt.record() as trace:
                ways = zip(arrays, pairs, strict=True)
                agt.overlap(*(x.to(f"sim:{b}").on(f"sim:{a}") for x, (a, b) in ways)).sync()
        return max(span.duration for span in trace.find("peer copy"))

    alone = copies((0, 1))
    assert copies((0, 1), (1, 0)) == pytest.approx(alone)  # each direction has its own rate
    assert copies((0, 1), (2, 3)) == pytest.approx(alone)
    assert copies((0, 1), (0, 2)) > 1.3 * alone  # out of one device
    assert copies((0, 2), (1, 2)) > 1.3 * alone  # into one


# ---------------------------------------------------------------------- each on its own
def test_an_array_stays_where_it_was_made(pair: Any) -> None:
    first, second = pair
    with agt.using(first):
        array = agt.ones((4,)).sync().share()
    assert array.device is first
    with agt.using(second), pytest.raises(agt.errors.DeviceMismatchError, match=first.name):
        agt.d2h(array).sync()
    with agt.using(first):
        assert agt.d2h(array).sync().tolist() == [1.0] * 4


def test_what_is_pinned_is_pinned_for_both(pair: Any) -> None:
    first, second = pair
    with agt.using(first):
        array = agt.pin(np.ones(8, np.float32))
    assert second.is_pinned(array[2:])
    assert not second.is_pinned(np.ones(8, np.float32))


def test_a_stream_brings_its_device(pair: Any) -> None:
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
    pair: Any, take: Callable[..., agt.DeviceOp[Any]]
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


def test_each_device_has_constants_of_its_own(pair: Any) -> None:
    kernel = agt.Kernel("__constant__ int c; __global__ void k(int* x) { x[0] = c; }")
    for number, device in enumerate(pair):
        with agt.using(device):
            kernel.constants["c"] = number
    for number, device in enumerate(pair):
        with agt.using(device):
            found = kernel(agt.zeros(1, np.int32), grid=1, block=1).output().to_host().sync()
            assert found == kernel.constants["c"] == number


def test_a_graph_is_recorded_beside_a_second_device(pair: Any) -> None:
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
