"""Programs that each have one defect, and their repaired twins: what the detective is trained on.

The names are those of `asyncgpu_tutor.diagnose`'s findings, with ``08_`` in front and underscores.
"""

from __future__ import annotations

import asyncio
import itertools
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor import DeviceArray, DeviceOp
from asyncgpu_tutor.errors import PageableCopyWarning

from .chapters import BLOCK, CHUNK, chunk, chunks, narrow_kernels
from .programs import Body, recorded

__all__: list[str] = []

_numbers = itertools.count()


# ------------------------------------------------------------------ null stream
async def _on_streams(*, null: bool) -> Body:
    host = chunks(4)
    policy = agt.StreamPoolRoundRobin(4)

    async def body() -> None:
        if null:
            for i, x in enumerate(host[:2]):
                chunk(x, f"chunk {i}").async_on(agt.current_device().default_stream)
        rest = host[2:] if null else host
        first = len(host) - len(rest)
        await asyncio.gather(
            *(chunk(x, f"chunk {i}").schedule(policy) for i, x in enumerate(rest, first))
        )
        agt.synchronize()

    return body


recorded("08_null_stream", "two of four chunks are on the null stream")(
    partial(_on_streams, null=True)
)


recorded("08_null_stream_repaired", "all chunks are on streams of their own")(
    partial(_on_streams, null=False)
)


# ------------------------------------------------------------------ hidden synchronisation
@recorded("08_hidden_synchronisation", "the host waits for each chunk before it asks for the next")
async def hidden_synchronisation() -> Body:
    """Defect."""
    host = chunks(4)
    policy = agt.StreamPoolRoundRobin(4)

    async def body() -> None:
        for i, x in enumerate(host):
            chunk(x, f"chunk {i}").sync(policy)

    return body


recorded("08_hidden_synchronisation_repaired", "all chunks are asked for, then waited for")(
    partial(_on_streams, null=False)
)


# ------------------------------------------------------------------ pageable copy
async def _copies(*, pinned: bool) -> Body:
    host = [x if pinned else np.array(x) for x in chunks(4)]
    policy = agt.StreamPoolRoundRobin(4)

    async def body() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PageableCopyWarning)  # its text would name the defect
            await asyncio.gather(
                *(chunk(x, f"chunk {i}").schedule(policy) for i, x in enumerate(host))
            )

    return body


recorded("08_pageable_copy", "chunks are copied from ordinary NumPy arrays")(
    partial(_copies, pinned=False)
)


recorded("08_pageable_copy_repaired", "chunks are copied from pinned arrays")(
    partial(_copies, pinned=True)
)


# ------------------------------------------------------------------ lazy module loading
def _doubling() -> agt.Kernel:
    """A kernel whose source nobody has compiled or loaded yet: a comment with a number is enough."""
    return agt.Kernel(
        f"// {next(_numbers)} of {time.time_ns()}\n"
        'extern "C" __global__ void doubled(unsigned int n, float* x) {\n'
        "    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    if (i < n) x[i] = 2.0f * x[i];\n"
        "}\n"
    )


async def _rounds(kernel: Callable[[], agt.Kernel]) -> Body:
    x = agt.zeros(BLOCK, name="x").sync()

    async def body() -> None:
        doubled = kernel()
        for i in range(4):
            await doubled(BLOCK, x.borrow(), grid=1, block=BLOCK).named(f"round {i}")

    return body


recorded("08_lazy_module_loading", "a kernel is compiled and loaded in the recording", cold=True)(
    partial(_rounds, _doubling)
)


@recorded("08_lazy_module_loading_repaired", "the kernel was there before the recording")
async def lazy_module_loading_repaired() -> Body:
    """Repaired."""
    kernel = _doubling()
    return await _rounds(lambda: kernel)


# ------------------------------------------------------------------ allocation in the loop
@recorded("08_allocation_in_the_loop", "each of eight rounds allocates its array")
async def allocation_in_the_loop() -> Body:
    """Defect."""
    (host,) = chunks(1, CHUNK // 16)

    async def body() -> None:
        for i in range(8):
            await chunk(host, f"round {i}")

    return body


@recorded("08_allocation_in_the_loop_repaired", "eight rounds share two arrays")
async def allocation_in_the_loop_repaired() -> Body:
    """Repaired."""
    (host,) = chunks(1, CHUNK // 16)
    n = len(host)
    out = agt.pinned(n, np.float32)
    array = agt.zeros(n, name="chunk").sync()

    def round_(name: str) -> DeviceOp[Any]:
        def work(_: object) -> DeviceOp[DeviceArray]:
            part = array.borrow().partition(BLOCK)
            return agt.relu(n, part, part).output()

        return (
            agt.memcpy(array.borrow(), host)
            .and_then(work)
            .and_then(lambda a: agt.d2h(a, out=out))
            .named(name)
        )

    async def body() -> None:
        for i in range(8):
            await round_(f"round {i}")

    return body


# ------------------------------------------------------------------ too few streams
recorded("08_too_few_streams", "six narrow kernels on two streams")(partial(narrow_kernels, 6, 2))


recorded("08_too_few_streams_repaired", "six narrow kernels on six streams")(
    partial(narrow_kernels, 6, 6)
)


# ------------------------------------------------------------------ one big kernel
async def _product(parts: int) -> Body:
    dim, rows = 576, 576 // parts
    rng = np.random.default_rng(9)
    host = [agt.pin(rng.random((rows, dim), np.float32)) for _ in range(parts)]
    weights = agt.h2d(agt.pin(rng.random((dim, dim), np.float32)), "weights").share().sync()
    policy = agt.StreamPoolRoundRobin(4)

    def product(x: np.ndarray[tuple[int, int], np.dtype[np.float32]], name: str) -> DeviceOp[Any]:
        def work(arrays: tuple[DeviceArray, DeviceArray]) -> DeviceOp[DeviceArray]:
            a, c = arrays
            launch = agt.sgemm_naive(rows, dim, dim, 1.0, a, weights, 0.0, c.partition((16, 16)))
            return launch.output()

        buffers = agt.zip(agt.h2d(x, "rows"), agt.zeros((rows, dim), name="product"))
        return buffers.and_then(work).and_then(agt.d2h).named(name)

    async def body() -> None:
        operations = [product(x, f"part {i}") for i, x in enumerate(host)]
        await asyncio.gather(*(operation.schedule(policy) for operation in operations))

    return body


recorded("08_one_big_kernel", "a product of two matrices in one launch")(partial(_product, 1))


recorded("08_one_big_kernel_repaired", "the same product in four parts, whose copies overlap")(
    partial(_product, 4)
)
