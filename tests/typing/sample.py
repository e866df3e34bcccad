"""Types that a user sees. pyright checks this file (test_types.py); nothing runs it."""

from __future__ import annotations

import asyncio
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import asyncgpu_tutor as agt
from asyncgpu_tutor import DeviceArray, DeviceFuture, DeviceOp
from asyncgpu_tutor.types import ExecutionContext

n = agt.value(3)
x = agt.zeros((4,))
word = agt.value("relu")

assert_type(n, DeviceOp[int])
assert_type(x, DeviceOp[DeviceArray])
assert_type(agt.h2d(np.ones(4, dtype=np.float32)), DeviceOp[DeviceArray])

# Tuples keep the type of each entry, in order, up to six; more of one type are a tuple of any length.
assert_type(agt.zip(n, x), DeviceOp[tuple[int, DeviceArray]])
assert_type(agt.overlap(x, n), DeviceOp[tuple[DeviceArray, int]])
assert_type(agt.zip(n, x, word), DeviceOp[tuple[int, DeviceArray, str]])
assert_type(agt.zip(n, x, n, x), DeviceOp[tuple[int, DeviceArray, int, DeviceArray]])
assert_type(
    agt.zip(n, x, n, x, n, word), DeviceOp[tuple[int, DeviceArray, int, DeviceArray, int, str]]
)
assert_type(agt.overlap(x, x, x, x, x, x, x), DeviceOp[tuple[DeviceArray, ...]])
assert_type(agt.overlap(*[x, x]), DeviceOp[tuple[DeviceArray, ...]])

assert_type(agt.zip(n, x).unzip(), tuple[DeviceOp[int], DeviceOp[DeviceArray]])
assert_type(agt.zip(n, x).first(), DeviceOp[int])
assert_type(agt.zip(n, word, x).last(), DeviceOp[DeviceArray])

# Functions decide the type of what follows.
assert_type(n.map(str), DeviceOp[str])
assert_type(n.and_then(lambda count: agt.zeros((count,))), DeviceOp[DeviceArray])


def with_context(context: ExecutionContext) -> DeviceOp[int]:
    return agt.value(len(repr(context)))


assert_type(agt.with_context(with_context), DeviceOp[int])
assert_type(x.to_host(), DeviceOp[npt.NDArray[Any]])

# Running gives the result itself, whichever way it is run.
assert_type(n.sync(), int)
assert_type(agt.zip(n, x).sync(), tuple[int, DeviceArray])
assert_type(n.into_future(), DeviceFuture[int])
assert_type(n.schedule(agt.SingleStream()), DeviceFuture[int])


async def main() -> None:
    assert_type(await n, int)
    assert_type(await agt.zip(n, x), tuple[int, DeviceArray])
    assert_type(agt.spawn(n), asyncio.Task[int])
    assert_type(await n.into_future(), int)
