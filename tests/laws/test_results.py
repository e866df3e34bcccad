"""What an operation has brought to the host goes when its receiver lets go of it."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device

Result = npt.NDArray[Any]


def by_sync(op: agt.DeviceOp[Result]) -> Result:
    return op.sync()


def by_await(op: agt.DeviceOp[Result]) -> Result:
    async def main() -> Result:
        return await op

    return asyncio.run(main())


@pytest.mark.parametrize("run", [by_sync, by_await])
def test_a_result_does_not_wait_for_the_garbage_collector(
    device: Device, run: Callable[[agt.DeviceOp[Result]], Result]
) -> None:
    gc.collect()
    gc.disable()
    try:
        result = run(agt.ones(8).to_host())
        assert np.array_equal(result, np.ones(8))
        gone = weakref.ref(result)
        del result
        assert gone() is None
    finally:
        gc.enable()
