"""The programs of chapters 11 to 13: kernels that decide, wait and ask; and a host that does so for them.

The kernels are those of the pages.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor import DeviceArray, DeviceOp
from asyncgpu_tutor.types import Stream

from .programs import Body, on_page, recorded

# ------------------------------------------------------------------ 11: who decides that it is over
LOOPS = "11_the_gpu_decides"  # the page


def _numbers() -> tuple[DeviceArray, Stream]:
    host = np.random.default_rng(0).uniform(1, 1000, 1024).astype(np.float32)
    return agt.h2d(agt.pin(host), "numbers").sync().share(), agt.create_stream()


@recorded(
    "11_newton_by_host", "1,024 square roots: after each round the host asks whether all is done"
)
async def newton_by_host() -> Body:
    """A launch, a copy of a flag and a wait, round after round."""
    numbers, stream = _numbers()
    n = numbers.size
    newton_step = agt.Kernel(on_page(LOOPS, "void newton_step("))

    async def body() -> None:
        x, moved = agt.ones(n).sync_on(stream), [1]
        while moved[0]:
            step = agt.zeros(1, np.int32).and_then(
                lambda flag: newton_step(n, numbers, x.borrow().partition(256), flag)
            )
            moved = step.last().to_host().sync_on(stream)

    return body


@recorded("11_newton", "the same square roots by one launch, whose threads decide for themselves")
async def newton_by_gpu() -> Body:
    """Nobody asks."""
    numbers, stream = _numbers()
    newton = agt.Kernel(on_page(LOOPS, "void newton("))

    async def body() -> None:
        x = agt.ones(numbers.size).sync_on(stream)
        newton(numbers.size, numbers, x.borrow().partition(256)).sync_on(stream)

    return body


@recorded("11_newton_by_graph", "the same square roots by a graph with a `while` node: one launch")
async def newton_by_graph() -> Body:
    """The device asks after each round; the graph is one bar, because nobody sees the turns in it."""
    numbers, stream = _numbers()
    n = numbers.size
    newton_step = agt.Kernel(on_page(LOOPS, "void newton_step("))
    ones, x = (agt.ones(n).sync_on(stream) for _ in range(2))
    up, down, moved = (agt.full(1, k, np.int32).sync_on(stream) for k in (1, 0, 0))
    start = agt.zip(agt.memcpy(x.borrow(), ones.borrow()), agt.memcpy(moved.borrow(), up.borrow()))
    turn = agt.zip(
        agt.memcpy(moved.borrow(), down.borrow()),
        newton_step(n, numbers, x.borrow().partition(256), moved.borrow()),
    )
    graph = agt.zip(start, agt.CudaGraph.while_loop(moved.borrow(), turn)).graph_on(stream)

    async def body() -> None:
        graph.launch().sync_on(stream)

    return body


# ------------------------------------------------------------------ 11b: who hands out the jobs
JOBS = 64
QUEUES = "11b_without_a_barrier"  # the page


def _jobs() -> tuple[DeviceArray, Stream]:
    lengths = np.random.default_rng(2).integers(10, 3000, JOBS).astype(np.uint32)
    return agt.h2d(agt.pin(lengths), "lengths").sync().share(), agt.create_stream()


@recorded("11b_queue_by_launches", "64 small jobs, a launch for each")
async def queue_by_launches() -> Body:
    """It takes the host longer to describe a job than the device to do it."""
    lengths, stream = _jobs()
    work = on_page(QUEUES, "void queue(").partition("extern")[0]
    one_job = agt.Kernel(work + on_page(QUEUES, "void one_job("), "one_job")

    async def body() -> None:
        results = agt.zeros(JOBS).sync_on(stream)
        for job in range(JOBS):
            one_job(job, lengths, results.borrow(), grid=1, block=64).async_on(stream)
        agt.d2h(results).sync_on(stream)

    return body


@recorded("11b_queue", "the same 64 jobs by one launch: sixteen blocks take them from a counter")
async def queue_by_worker() -> Body:
    """A kernel that stays."""
    lengths, stream = _jobs()
    queue = agt.Kernel(on_page(QUEUES, "void queue(", "atomicAdd(next"))

    async def body() -> None:
        given = agt.zip(agt.zeros(1, np.uint32), agt.zeros(JOBS))
        done = given.and_then(lambda g: queue(JOBS, lengths, *g, grid=16, block=64))
        done.and_then(lambda g: agt.d2h(g[2])).sync_on(stream)

    return body


# ------------------------------------------------------------------ 12: one thread, three cups of tea
CUPS = "12_async_inside_a_kernel"  # the page


async def _tea(kernel: str) -> Body:
    parts = on_page(CUPS, "struct Wait"), on_page(CUPS, "void one_by_one(", "clock64")
    source = "".join(parts).replace("TICK", "4000ll")
    brew, stream = agt.Kernel(source, kernel), agt.create_stream()
    boil, steep = (agt.h2d(np.array(t, np.int32)).sync() for t in ((2, 5, 3), (4, 2, 1)))
    when = agt.zeros(10, np.int64).sync()

    async def body() -> None:
        brew(3, boil.borrow(), steep.borrow(), when.borrow(), grid=1, block=1).sync_on(stream)

    return body


recorded("12_tea_one_by_one", "three cups of tea: one thread waits for each in turn")(
    lambda: _tea("one_by_one")
)


recorded("12_tea", "the same cups by the same thread, with an executor: it polls all of them")(
    lambda: _tea("in_turns")
)


# ------------------------------------------------------------------ 13: a file in six pieces
HOSTCALLS = "13_hostcalls"  # the page
PIECES, PIECE = 6, 256


async def _files(work: Callable[[Path, Path], Any]) -> Body:
    """So many pieces of text are read, changed and written."""
    line = b"all is well, and the coffee is cold\n"
    text = (line * (PIECES * PIECE // len(line) + 1))[: PIECES * PIECE]

    async def body() -> None:
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder) / "log.txt", Path(folder) / "loud.txt"
            source.write_bytes(text)
            await work(source, target)
            assert target.read_bytes() == text.upper()

    return body


@recorded(
    "13_six_launches", "a file in six pieces: the host reads one, launches, waits, and writes it"
)
async def six_launches() -> Body:
    """To and fro."""
    shout, stream = agt.Kernel(on_page(HOSTCALLS, "void shout(")), agt.create_stream()

    def loud(x: DeviceArray) -> DeviceOp[DeviceArray]:
        return shout(x.size, x.partition(64)).output()

    async def work(source: Path, target: Path) -> None:
        with source.open("rb") as read, target.open("wb") as write:
            while piece := read.read(PIECE):
                text = agt.pin(np.frombuffer(piece, np.uint8))
                write.write(agt.h2d(text).and_then(loud).to_host().sync_on(stream).tobytes())

    return await _files(work)


@recorded(
    "13_hostcalls", "the same file by one launch: its blocks ask the host to read and to write"
)
async def hostcalls() -> Body:
    """One kernel, which stays until the file is done."""
    pipeline = agt.Kernel(on_page(HOSTCALLS, "void pipeline("))

    async def work(source: Path, target: Path) -> None:
        async with agt.hostcalls(files=[source, target], nbytes=PIECE) as office:
            await office.run(pipeline(*office.arrays, PIECES, PIECE, grid=4, block=32))

    return await _files(work)
