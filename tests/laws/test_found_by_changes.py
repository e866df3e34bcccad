"""Small things that nothing else looked at: found by changing the code at random, and seeing no test fail."""

from __future__ import annotations

from typing import Any

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.errors import LaunchConfigError, NotReadyError, OutOfBoundsError

DYNAMIC = r"""
extern "C" __global__ void dynamic(float* x) {
    extern __shared__ char room[];
    room[0] = 1;
    x[0] = room[0];
}
"""


def test_a_host_result_cannot_be_read_in_a_capture(device: Device) -> None:
    op = agt.ones((4,)).to_host().named("mine").map(lambda host: host[0])
    with pytest.raises(NotReadyError, match="operation 'mine', which is captured and not run"):
        op.named("mine").prepare()


def test_a_launch_by_a_context_has_the_shared_memory_that_it_asks_for(sim: Device) -> None:
    def op(**options: Any) -> agt.DeviceOp[Any]:
        def enqueue(context: agt.types.ExecutionContext) -> agt.DeviceOp[Any]:
            function = context.device.get_function(DYNAMIC, "dynamic")
            x = context.empty((1,))
            context.launch(function, (1, 1, 1), (1, 1, 1), [x], **options)
            return agt.value(x)

        return agt.with_context(enqueue).to_host()

    assert op(shared_mem=1).sync().tolist() == [1.0]
    with pytest.raises(OutOfBoundsError, match="room"):
        op().sync()


@pytest.mark.parametrize(
    ("grid", "block"),
    [
        ((2**31, 1, 1), 1),
        ((1, 65536, 1), 1),
        ((1, 1, 65536), 1),
        (1, (1, 1, 65)),
        ((0, 1, 1), 1),
        ((1, 0, 1), 1),
        ((1, 1, 0), 1),
        (1, (1, 1, 0)),
    ],
)
def test_each_dimension_has_limits_of_its_own(device: Device, grid: Any, block: Any) -> None:
    x = agt.zeros((1,)).sync()
    kernel = agt.Kernel('extern "C" __global__ void one(float* x) { x[0] = 1.0f; }')
    with pytest.raises(LaunchConfigError, match=r"is the limit|at least 1"):
        kernel(x, grid=grid, block=block)
    assert kernel(x, grid=1, block=1).output().to_host().sync().tolist() == [1.0]
