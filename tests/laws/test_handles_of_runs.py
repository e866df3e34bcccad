"""`async_on` of what was captured: handles at once, which are ready when the stream is."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.devices.simulated import SimDevice
from asyncgpu_tutor.errors import NestedSyncError, NotReadyError
from asyncgpu_tutor.run.submission import Submission

from .test_graphs import N, arrays, into


def captured(x: Any, y: Any, *, graph: bool) -> Any:
    op = into(x, y).and_then(lambda _: agt.d2h(y.borrow()))
    what: Any = op.prepare()
    if graph:
        what = what.launch().graph_on(agt.create_stream())
    return what


@pytest.mark.parametrize("graph", [False, True])
def test_a_host_array_is_ready_when_its_run_is(sim: SimDevice, graph: bool) -> None:
    what, stream = captured(*arrays(1, 0), graph=graph), agt.create_stream()
    agt.synchronize()
    before = agt.in_flight()
    handle = what.launch().named("mine").async_on(stream)
    assert agt.in_flight() == before + 1
    with pytest.raises(NotReadyError, match="mine"):
        handle.numpy()
    stream.synchronize()
    assert handle.numpy().tolist() == [2.0] * N
    agt.synchronize()
    assert agt.in_flight() == before


@pytest.mark.parametrize("between", ["the other stream", "update", "a graph of it"])
def test_a_run_where_the_one_before_was_comes_last(device: Device, between: str) -> None:
    x, y = arrays(1, 0)
    left, right = agt.create_stream(), agt.create_stream()
    prepared = captured(x, y, graph=False)
    graph = prepared.launch().graph_on(right)
    what = graph if between == "update" else prepared
    for number in (3.0, 4.0):
        new = agt.pin(np.full(N, number, np.float32))
        what.launch().sync_on(left)
        if between == "update":  # an update runs on the graph's own stream
            graph.update(agt.memcpy(x.borrow(), new))
        else:
            agt.memcpy(x.borrow(), new).sync_on(left)
            (prepared if between == "the other stream" else graph).launch().async_on(right)
        assert what.launch().sync_on(left).tolist() == [2.0 * number] * N


def test_none_while_an_operation_is_described(device: Device) -> None:
    what, stream = captured(*arrays(1, 0), graph=False), agt.create_stream()
    with pytest.raises(NestedSyncError):
        agt.value(1).and_then(lambda x: (what.launch().async_on(stream), agt.value(x))[1]).sync()


def test_a_host_array_that_is_ready_can_be_changed_in_place(device: Device) -> None:
    stream = agt.create_stream()
    host = agt.ones((4,)).to_host().async_on(stream)
    stream.synchronize()
    host += 1
    host *= host
    assert np.asarray(host).tolist() == [4.0] * 4


@pytest.mark.parametrize("copying", [copy.copy, copy.deepcopy, pickle.dumps])
def test_python_cannot_copy_an_array(device: Device, copying: Callable[[object], object]) -> None:
    x = agt.ones((4,), name="x").sync().share()
    with pytest.raises(agt.UsageError, match=r"'x' cannot be copied or pickled.*agt.dup"):
        copying(x)
    assert x.share_count == 1


def test_a_run_that_comes_again_names_no_kernel_of_the_last_time(sim: SimDevice) -> None:
    run: Submission[None] = Submission("turn", agt.create_stream())
    run.kernels.append("of the first turn")
    run.renew()
    assert str(run.blame(agt.DeviceError("the device is gone"))).endswith("(its kernels: none)")
