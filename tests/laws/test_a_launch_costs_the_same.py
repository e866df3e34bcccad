"""Law 24: what a launch does for each node, it could have done once, at the capture."""

import gc
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.devices.simulated import SimDevice

from .kernels import scale
from .programs import N
from .test_graphs import BOTH, Capture

OURS = str(Path(agt.__file__).parent)


class Step(NamedTuple):
    weights: Any
    loss: Any


def node() -> agt.DeviceOp[Any]:
    return scale(agt.zeros(N).sync().borrow(), 2.0)


def chain(count: int) -> agt.DeviceOp[Any]:
    op = node()
    for _ in range(count - 1):
        op = op.and_then(lambda x: scale(x, 2.0))
    return op


def side_by_side(count: int) -> agt.DeviceOp[Any]:
    return agt.zip(*(node() for _ in range(count)))


def named(count: int) -> agt.DeviceOp[Any]:
    return side_by_side(count).and_then(lambda *many: agt.value(Step(many, many[-1])))


def and_back(count: int) -> agt.DeviceOp[Any]:
    return agt.zip(
        side_by_side(count), agt.d2h(agt.zeros(4).sync().borrow(), out=agt.pinned((4,), np.float32))
    )


def calls(run: Callable[[], object]) -> int:
    """How many functions of the tutor are entered; the simulated device has work for each node."""
    found = 0

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal found
        file = frame.f_code.co_filename
        found += event == "call" and file.startswith(OURS) and "simulated" not in file

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize("how", ["sync_on", "async_on"])
@pytest.mark.parametrize("of", [chain, side_by_side, named, and_back])
def test_a_launch_enters_as_many_functions_for_a_hundred_nodes(
    sim: SimDevice, of: Callable[[int], agt.DeviceOp[Any]], how: str
) -> None:
    stream, entered = agt.create_stream(), list[int]()
    for count in (2, 100):
        graph = of(count).graph_on(stream)
        once = lambda graph=graph: getattr(graph.launch(), how)(stream)  # noqa: E731 - bound to this graph
        once()
        entered.append(
            min(calls(once) for _ in range(4))
        )  # now and then earlier runs are looked at
        agt.synchronize()
    assert entered[0] == entered[1] > 0


@BOTH
def test_a_container_is_copied_when_its_arrays_are_there(device: Device, capture: Capture) -> None:
    class Watched(list[Any]):
        def __copy__(self) -> "Watched":
            seen.extend(part.tolist() for part in self if isinstance(part, np.ndarray))
            return Watched(self)

    x, out, seen = agt.full(4, 1.0).sync(), agt.pinned(4), list[Any]()
    captured = capture(agt.d2h(x.borrow(), out=out).and_then(lambda y: agt.value(Watched([y]))))
    out[0] = 0.0
    assert captured.launch().sync()[0].tolist() == [1.0] * 4
    assert seen == [[1.0] * 4]


@BOTH
def test_what_a_receiver_may_change_is_its_own_and_the_rest_is_the_runs(
    device: Device, capture: Capture
) -> None:
    x = agt.full(4, 1.0).sync()

    def result(host: Any) -> Any:
        fixed = (1, (2, 3))
        return agt.value(
            {"fixed": fixed, "list": [host, 4], "step": Step(host, 5), "pair": (fixed, fixed)}
        )

    captured = capture(agt.d2h(x.borrow(), out=agt.pinned((4,), np.float32)).and_then(result))
    one, two = captured.launch().sync(), captured.launch().sync()
    for mine, other in ((one, two), (one["list"], two["list"])):
        assert mine is not other
    assert one["fixed"] is two["fixed"]
    assert one["pair"] is two["pair"]
    assert type(one["step"]) is Step
    one["list"].append("mine")
    del one["fixed"]
    three = captured.launch().sync()
    assert three.keys() == two.keys()
    assert len(three["list"]) == 2
    assert isinstance(three["step"].weights, np.ndarray)
    assert three["step"].weights.tolist() == [1.0] * 4
    nested = agt.zip(captured.launch(), captured.launch()).sync()
    assert nested[0]["list"][0].tolist() == nested[1]["step"].weights.tolist() == [1.0] * 4


def test_each_run_has_handles_of_its_own_to_what_is_on_the_host(sim: SimDevice) -> None:
    stream = agt.create_stream()
    captured = agt.zip(
        agt.d2h(agt.zeros(4).sync().borrow(), out=agt.pinned((4,), np.float32)), agt.value((1, 2))
    ).graph_on(stream)
    first = captured.launch().async_on(stream)
    stream.synchronize()
    assert first[0].numpy().tolist() == [0.0] * 4
    second = captured.launch().async_on(stream)
    with pytest.raises(agt.errors.NotReadyError):
        second[0].numpy()
    assert first[1] is second[1]


@BOTH
def test_of_launches_in_a_row_one_has_to_be_looked_at(device: Device, capture: Capture) -> None:
    agt.synchronize()
    stream, before = agt.create_stream(), agt.in_flight()
    captured = capture(and_back(3))
    results = [captured.launch().async_on(stream) for _ in range(30)]
    assert agt.in_flight() == before + 1
    elsewhere = captured.launch().async_on(agt.create_stream())
    assert agt.in_flight() == before + 2
    agt.synchronize()
    for *_, host in (*results, elsewhere):  # each can be asked by its own handle nevertheless
        assert host.numpy().tolist() == [0.0] * 4
    assert agt.in_flight() == before


@BOTH
def test_a_graph_that_nobody_has_lives_until_its_last_run_is_over(
    sim: SimDevice, capture: Capture
) -> None:
    stream, captured = agt.create_stream(), capture(and_back(3))
    gone = weakref.ref(captured)
    host, *_ = [captured.launch().async_on(stream)[-1] for _ in range(3)]
    del captured
    gc.collect()
    assert gone() is not None
    agt.synchronize()
    assert host.numpy().tolist() == [0.0] * 4
    assert gone() is None  # also where somebody has a handle of an earlier run
