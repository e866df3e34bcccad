"""The cost of a capture for the simulated host."""

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor import DeviceOp
from asyncgpu_tutor.devices.protocol import Device


def work() -> DeviceOp[object]:
    """Kernels, a memset and copies, which may not allocate."""
    x, y = agt.ones(64).sync(), agt.zeros(64).sync()
    host = agt.pinned(64)
    return agt.zip(
        agt.memcpy(x.borrow(), host),
        agt.relu(64, x.borrow(), y.borrow().partition(64)),
        agt.overlap(
            agt.d2h(y.borrow(), out=host), agt.relu(64, y.borrow(), x.borrow().partition(64))
        ),
    )


def host_time(device: Device, op: DeviceOp[object]) -> float:
    before = device.now()
    op.async_on(device.default_stream)
    spent = device.now() - before
    device.synchronize()
    return spent


@pytest.mark.parametrize("number", [1, 2])
def test_what_runs_once_gains_nothing_by_a_graph(sim: Device, number: int) -> None:
    op = agt.zip(*[work() for _ in range(number)])
    by_hand = host_time(sim, op)
    before = sim.now()
    graph = op.graph_on(sim.default_stream)
    captured = sim.now() - before
    launched = host_time(sim, graph.launch())
    assert launched < by_hand < captured + launched
