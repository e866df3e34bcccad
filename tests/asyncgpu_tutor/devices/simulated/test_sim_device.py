"""A simulated device: streams of others, the cost of a capture, and memory that streams share."""

from typing import Any

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor import DeviceOp
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.devices.simulated import SimDevice, SimMachine
from asyncgpu_tutor.errors import DeviceMismatchError


class Foreign:
    """A stream of another library."""


class Hospitable(SimDevice):
    """Takes foreign streams for its default one."""

    def adopt_stream(self, foreign: object) -> Any:
        known = isinstance(foreign, Foreign)
        return self.default_stream if known else super().adopt_stream(foreign)


def test_a_device_knows_its_own_streams_and_those_that_it_takes() -> None:
    machine = SimMachine()
    one, other = SimDevice(0, machine=machine), SimDevice(1, machine=machine)
    assert one.adopt_stream(one.default_stream) is one.default_stream
    assert one.adopt_stream(other.default_stream) is None
    assert one.adopt_stream(Foreign()) is None
    with agt.using(Hospitable(machine=SimMachine())):
        assert agt.ones(4).to_host().sync_on(Foreign()).tolist() == [1, 1, 1, 1]
    with agt.using(SimDevice(machine=SimMachine())), pytest.raises(DeviceMismatchError):
        agt.ones(4).to_host().sync_on(Foreign())


# ---------------------------------------------------------------------- what a capture costs the host
def work() -> DeviceOp[object]:
    """Kernels, a memset and copies, which may not allocate."""
    x, y = agt.ones(64).sync(), agt.zeros(64).sync()
    host = agt.pinned(64)
    one = agt.relu(64, x.borrow(), y.borrow().partition(64))
    other = agt.relu(64, y.borrow(), x.borrow().partition(64))
    arms = agt.overlap(agt.d2h(y.borrow(), out=host), other)
    return agt.zip(agt.memcpy(x.borrow(), host), one, arms)


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


# ---------------------------------------------------------------------- the memory of a device
N = 1 << 24  # elements: 64 MiB


def fill_or_copy(x: agt.DeviceArray, y: agt.DeviceArray | None) -> agt.DeviceOp[None]:
    def enqueue(context: agt.types.ExecutionContext) -> agt.DeviceOp[None]:
        context.memset(x) if y is None else context.copy(x, y)
        return agt.value(None)

    return agt.with_context(enqueue)


@pytest.mark.parametrize("copies", [False, True])
def test_streams_share_the_memory(sim: SimDevice, copies: bool) -> None:
    pairs = [(agt.zeros(N).sync(), agt.zeros(N).sync()) for _ in range(4)]
    with agt.record() as trace:
        for x, y in pairs:
            fill_or_copy(x, y if copies else None).async_on(agt.create_stream())
        agt.synchronize()
    spans = trace.device_spans
    assert len(spans) == 4
    took = max(span.end for span in spans) - min(span.start for span in spans)
    assert len(pairs) * 4 * N * (1 + copies) / (took * 1e3) <= sim.spec.dram_gb_s
    assert trace.metrics().overlap > 1  # and yet they are under way side by side
