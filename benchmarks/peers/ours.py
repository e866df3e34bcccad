"""This package: operations built afresh, prepared once, captured as a graph; waited for and awaited."""

import asyncio
from collections.abc import Callable
from typing import Any

from work import BATCHES, BLOCK, TILE, Contender, Work

import asyncgpu_tutor as agt
from asyncgpu_tutor.commands.mlp import forward


class Ours:
    """Buffers and streams of one size."""

    def __init__(self, work: Work) -> None:
        self.work = work
        n = work.dim
        self.streams = [agt.create_stream() for _ in range(BATCHES)]
        self.w0 = agt.h2d(work.w0).sync().share()
        self.w1 = agt.h2d(work.w1).sync().share()
        self.x = [agt.zeros((n, n)).sync() for _ in range(BATCHES)]
        self.hidden = [agt.zeros((n, n)).sync() for _ in range(BATCHES)]
        self.out = [agt.zeros(n).sync() for _ in range(BATCHES)]
        self.host = [agt.pinned(n) for _ in range(BATCHES)]
        self.fresh: list[Any] = []

    def batch(self, i: int) -> agt.DeviceOp[Any]:
        """One batch, in buffers that are there already: the same five calls as by hand."""
        n, x, hidden, out = self.work.dim, self.x[i], self.hidden[i], self.out[i]

        def matrix(_: Any) -> agt.DeviceOp[Any]:
            tiles = hidden.borrow().partition(TILE, TILE)
            return agt.sgemm_naive(n, n, n, 1.0, x.borrow(), self.w0, 0.0, tiles)

        def vector(_: Any) -> agt.DeviceOp[Any]:
            return agt.matvec_naive(n, n, hidden.borrow(), self.w1, out.borrow().partition(BLOCK))

        def relu(_: Any) -> agt.DeviceOp[Any]:
            lines = out.borrow().partition(BLOCK)
            return agt.relu(n, lines, lines)

        return (
            agt.memcpy(x.borrow(), self.work.xs[i])
            .and_then(matrix)
            .and_then(vector)
            .and_then(relu)
            .and_then(lambda _: agt.d2h(out.borrow(), out=self.host[i]))
        )

    def results(self) -> list[Any]:
        return [host.copy() for host in self.host]


def contenders(work: Work, loop: asyncio.AbstractEventLoop) -> list[Contender]:
    """All ways."""
    mine = Ours(work)
    prepared = [mine.batch(i).prepare() for i in range(BATCHES)]
    launches = [p.launch() for p in prepared]
    graph = agt.overlap(*launches).graph_on(mine.streams[0]).launch()

    def finish() -> None:
        for stream in mine.streams:
            stream.synchronize()

    def built_afresh() -> None:
        mine.fresh = [
            forward(x, mine.w0, mine.w1).async_on(stream)
            for x, stream in zip(work.xs, mine.streams, strict=True)
        ]
        finish()

    def built_without_allocating() -> None:
        for i, stream in enumerate(mine.streams):
            mine.batch(i).async_on(stream)
        finish()

    def run_prepared() -> None:
        for launch, stream in zip(launches, mine.streams, strict=True):
            launch.async_on(stream)
        finish()

    def one_afresh() -> None:
        mine.fresh = [forward(work.xs[0], mine.w0, mine.w1).sync_on(mine.streams[0])]

    async def awaited_afresh() -> None:
        mine.fresh = await asyncio.gather(*[forward(x, mine.w0, mine.w1) for x in work.xs])

    async def awaited() -> None:
        await asyncio.gather(*launches)

    async def awaited_graph() -> None:
        await graph

    def fresh() -> list[Any]:
        return list(mine.fresh)

    def wait(op: Callable[[], Any]) -> Callable[[], object]:
        return lambda: loop.run_until_complete(op())

    gathered = "with asyncio's gather, and starting the loop"
    memsets = "and two memsets a batch more than by hand"
    ways: dict[str, tuple[Callable[[], object], Callable[[], list[Any]], str]] = {
        "ours, prepared, four streams": (run_prepared, mine.results, ""),
        "ours, a graph": (lambda: graph.sync_on(mine.streams[0]), mine.results, ""),
        "ours, built for each run": (built_without_allocating, mine.results, "no allocation"),
        "ours, built for each run, allocating":
            (built_afresh, lambda: [handle.numpy() for handle in mine.fresh], memsets),
        "ours, built for each run, allocating, awaited together":
            (wait(awaited_afresh), fresh, gathered),
        "ours, built for each run, allocating, one batch alone": (one_afresh, fresh, ""),
        "ours, built for each run, one batch alone":
            (lambda: mine.batch(0).sync_on(mine.streams[0]), mine.results, "no allocation"),
        "ours, prepared, awaited together": (wait(awaited), mine.results, gathered),
        "ours, a graph, awaited": (wait(awaited_graph), mine.results, "with starting the loop"),
    }  # fmt: skip
    return [Contender(name, *way) for name, way in ways.items()]
