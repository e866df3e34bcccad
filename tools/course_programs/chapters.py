"""The main program of each chapter, short."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor import DeviceArray, DeviceOp
from asyncgpu_tutor.commands.mlp import forward, upload
from asyncgpu_tutor.data import seed_inputs

from .programs import Body, on_page, recorded

BLOCK = 256
CHUNK = 1 << 20  # floats in one piece of a larger array: 4 MiB
DIM = 256
FIRST = "00_start_here"  # the page


def chunks(count: int, size: int = CHUNK) -> list[np.ndarray[tuple[int], np.dtype[np.float32]]]:
    """Pinned host arrays that are not all the same."""
    return [agt.pin(np.arange(size, dtype=np.float32) % (7 + i) - 3) for i in range(count)]


def chunk(
    x: np.ndarray[tuple[int], np.dtype[np.float32]], name: str, array: str = "chunk"
) -> DeviceOp[Any]:
    """To the device, ReLU in place, and back."""
    n = len(x)

    def work(handle: DeviceArray) -> DeviceOp[DeviceArray]:
        part = handle.partition(BLOCK)
        return agt.relu(n, part, part).output()

    return agt.h2d(x, array).and_then(work).and_then(agt.d2h).named(name)


def doubled(twice: agt.Kernel, x: np.ndarray[tuple[int], np.dtype[np.float32]]) -> DeviceOp[Any]:
    """To the device, times two into another array, and back."""
    launch = twice(x.size, agt.h2d(x, "x"), agt.zeros(x.size, name="y").partition(BLOCK))
    return launch.output().and_then(agt.d2h).named("doubled")


@recorded("00_start_here_sync", "an operation that the host waits for, and then the host's job")
async def start_and_wait() -> Body:
    """One thing after the other."""
    (x,), twice = chunks(1), agt.Kernel(on_page(FIRST, "void twice("))

    async def body() -> None:
        doubled(twice, x).sync()
        agt.work(300, "Python's own job")

    return body


@recorded("00_start_here", "the same operation, and the host's job while the device works")
async def start_and_go_on() -> Body:
    """The chapter's first overlap."""
    (x,), twice = chunks(1), agt.Kernel(on_page(FIRST, "void twice("))

    async def body() -> None:
        task = agt.spawn(doubled(twice, x))
        await asyncio.sleep(0)
        agt.work(300, "Python's own job")
        await task

    return body


@recorded("01_sync_kernels", "three kernels, and the host waits for each")
async def sync_kernels() -> Body:
    """As in the chapter: each result is waited for before the next kernel is asked for."""
    rng = np.random.default_rng(1)
    a = agt.h2d(agt.pin(rng.random((DIM, DIM), np.float32)), "a").sync()
    x = agt.h2d(agt.pin(rng.random(DIM, np.float32)), "x").sync()
    c, y = agt.zeros((DIM, DIM), name="c").sync(), agt.zeros(DIM, name="y").sync()

    async def body() -> None:
        tile = c.borrow().partition((16, 16))
        agt.sgemm_naive(DIM, DIM, DIM, 1.0, a.borrow(), a.borrow(), 0.0, tile).named("sgemm").sync()
        agt.matvec_naive(DIM, DIM, c.borrow(), x.borrow(), y.borrow().partition(BLOCK)).named(
            "matvec"
        ).sync()
        part = y.borrow().partition(BLOCK)
        agt.relu(DIM, part, part).named("relu").sync()

    return body


@recorded("02_one_stream", "four chunks, copy, compute, copy back, on one stream")
async def one_stream() -> Body:
    """In order, so nothing overlaps."""
    host = chunks(4)

    async def body() -> None:
        agt.zip(*(chunk(x, f"chunk {i}") for i, x in enumerate(host))).sync(agt.SingleStream())

    return body


@recorded("02_streams_and_events", "four chunks, copy, compute, copy back, on four streams")
async def streams() -> Body:
    """Copies in both directions and kernels overlap."""
    host = chunks(4)

    async def body() -> None:
        agt.overlap(*(chunk(x, f"chunk {i}") for i, x in enumerate(host))).sync()

    return body


@recorded("03_lazy_operations", "one recipe run in four ways: sync, sync_on, async_on, await")
async def four_ways() -> Body:
    """Each time the host has a job of its own: after the wait, or while the device works."""
    (x,) = chunks(1)
    there_and_back = agt.h2d(x, "x").to_host()
    stream, policy = agt.create_stream(), agt.SingleStream()

    async def body() -> None:
        there_and_back.named("sync").sync(policy)
        agt.work(100, "job after sync")
        there_and_back.named("sync_on").sync_on(stream)
        agt.work(100, "job after sync_on")
        there_and_back.named("async_on").async_on(stream)
        agt.work(100, "job after async_on")
        stream.synchronize()
        task = agt.spawn(there_and_back.named("await"), policy)
        await asyncio.sleep(0)
        agt.work(100, "job beside await")
        await task

    return body


@recorded("04_combinators", "a diamond: one source, two sides on two streams, one join")
async def diamond() -> Body:
    """`shared` and `overlap` have recorded the events that order it."""
    n = 1024
    matrix = agt.pin(np.eye(n, dtype=np.float32))
    add = agt.Kernel(on_page("04_combinators", "void add("))

    def product(source: DeviceOp[Any], number: float, side: str) -> DeviceOp[Any]:
        x, y = agt.full(n, number), agt.zeros(n, name=side)
        launch = agt.matvec_naive(n, n, source, x, y.partition(128))
        return launch.output().named(side)

    async def body() -> None:
        source = agt.h2d(matrix, "matrix").shared()
        sides = agt.overlap(product(source, 2.0, "left"), product(source, 3.0, "right"))

        def join(sums: tuple[DeviceArray, DeviceArray]) -> DeviceOp[Any]:
            return add(n, *sums, agt.zeros(n, name="sum").partition(BLOCK)).output().named("join")

        joined = sides.and_then(join)
        await joined.and_then(agt.d2h).named("diamond").schedule(agt.StreamPoolRoundRobin(4))

    return body


async def narrow_kernels(number: int, streams: int) -> Body:
    """So many independent operations on so many streams: kernels of few blocks, which take their time."""
    policy = agt.SingleStream() if streams == 1 else agt.StreamPoolRoundRobin(streams)
    rng = np.random.default_rng(5)
    rows, columns = 256, 1024
    a = agt.h2d(agt.pin(rng.random((rows, columns), np.float32)), "a").sync()
    x = agt.h2d(agt.pin(rng.random(columns, np.float32)), "x").sync()
    outs = [agt.zeros(rows, name=f"out {i}").sync() for i in range(number)]

    async def body() -> None:
        # A future submits its work when it is first awaited, so they are awaited together.
        ops = [
            agt.matvec_naive(rows, columns, a.borrow(), x.borrow(), y.borrow().partition(BLOCK))
            for y in outs
        ]
        await asyncio.gather(
            *(op.named(f"matvec {i}").schedule(policy) for i, op in enumerate(ops))
        )

    return body


recorded("05_scheduling_single", "four independent operations under SingleStream")(
    partial(narrow_kernels, 4, 1)
)


recorded("05_scheduling", "four independent operations under StreamPoolRoundRobin(4)")(
    partial(narrow_kernels, 4, 4)
)


@recorded(
    "06_await", "four tasks: each awaits a chunk, works on it on the host, and awaits another"
)
async def tasks() -> Body:
    """The host works while the device does."""
    host = chunks(8, CHUNK // 4)
    policy = agt.StreamPoolRoundRobin(4)

    async def task(i: int) -> None:
        await chunk(host[2 * i], f"task {i} first", "first").schedule(policy)
        agt.work(40, f"task {i} on the host")
        await chunk(host[2 * i + 1], f"task {i} second", "second").schedule(policy)

    async def body() -> None:
        await asyncio.gather(*(task(i) for i in range(4)))

    return body


async def _mlp(policy: agt.SchedulingPolicy) -> Body:
    inputs = seed_inputs(DIM, 4)
    w0, w1 = await upload(inputs).schedule(agt.SingleStream())
    pinned = [agt.pin(batch) for batch in inputs.batches]

    async def body() -> None:
        async def infer(i: int) -> None:
            await forward(pinned[i], w0, w1).named(f"batch {i}").schedule(policy)

        await asyncio.gather(*(infer(i) for i in range(len(pinned))))

    return body


recorded("07_async_mlp", "four batches of the MLP, DIM 256, on four streams")(
    lambda: _mlp(agt.StreamPoolRoundRobin(4))
)


recorded("07_async_mlp_one_stream", "the same batches on one stream")(
    lambda: _mlp(agt.SingleStream())
)


# ------------------------------------------------------------------ CUDA graphs: small kernels
WIDTH = 64  # floats in a layer
LAYERS = 8
TOKENS = 3
NETWORKS = 4


def network(seed: int) -> tuple[DeviceOp[Any], DeviceArray, DeviceArray]:
    """Thin layers, one after the other, on arrays that are lent; its input and its output."""
    layer = agt.Kernel(on_page("09_cuda_graphs", "void layer("))
    rng = np.random.default_rng(seed)
    shape = (LAYERS, WIDTH, WIDTH)
    host = rng.standard_normal(shape, dtype=np.float32) * np.float32(1.2 / WIDTH**0.5)
    weights = [agt.h2d(agt.pin(w), "w").sync() for w in host]
    arrays = [agt.zeros(WIDTH, name=f"x{i}").sync() for i in range(LAYERS + 1)]
    steps = [
        layer(WIDTH, w.borrow(), x.borrow(), y.borrow().partition(WIDTH))
        for w, x, y in zip(weights, arrays, arrays[1:], strict=False)
    ]
    return agt.zip(*steps).named("network"), arrays[0], arrays[-1]


def _tokens() -> list[np.ndarray[Any, np.dtype[np.float32]]]:
    rng = np.random.default_rng(2)
    return [agt.pin(rng.standard_normal(WIDTH, dtype=np.float32)) for _ in range(TOKENS)]


@recorded(
    "09_cuda_graphs", "three tokens through eight layers: an update and a graph's launch each"
)
async def by_graph() -> Body:
    """Two calls of the host for a token."""
    op, x, y = network(0)
    answer = agt.d2h(y.borrow(), out=agt.pinned(WIDTH))
    graph = agt.zip(op, answer).named("step").graph_on(agt.create_stream())
    tokens, policy = _tokens(), agt.SingleStream()

    async def body() -> None:
        for token in tokens:
            graph.update(agt.memcpy(x.borrow(), token).named("update"))
            await graph.launch().schedule(policy)

    return body


@recorded("09_cuda_graphs_by_calls", "the same three tokens, each kernel and copy called by itself")
async def by_calls() -> Body:
    """Ten calls of the host for a token."""
    op, x, y = network(0)
    answer = agt.d2h(y.borrow(), out=agt.pinned(WIDTH))
    tokens, policy = _tokens(), agt.SingleStream()

    async def body() -> None:
        for token in tokens:
            step = agt.zip(agt.memcpy(x.borrow(), token), op, answer)
            await step.named("step").schedule(policy)

    return body


@recorded("09_cuda_graphs_branches", "four networks side by side: the branches of one graph")
async def branches() -> Body:
    """One call, and four chains side by side."""
    arms = [network(i)[0].named(f"network {i}") for i in range(NETWORKS)]
    graph = agt.overlap(*arms).named("four networks").graph_on(agt.create_stream())
    launch, policy = graph.launch(), agt.SingleStream()

    async def body() -> None:
        await launch.schedule(policy)

    return body
