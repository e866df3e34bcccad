"""The server loop against a loop written by hand: requests a second, and how long one takes."""

from __future__ import annotations

import asyncio
import gc
import resource
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cupy
import cupyx
import numpy as np
from by_hand import ByHand
from timing import median, percentile
from work import BATCHES, BLOCK, TILE, Work

import asyncgpu_tutor as agt

Row = dict[str, Any]
LANES = 8


class HandLoop:
    """Graphs, one a stream, used in turn; a request is copied in, its result copied out."""

    def __init__(self, work: Work) -> None:
        x = work.xs[0]
        self.slots = [cupyx.empty_pinned(x.shape, x.dtype) for _ in range(LANES)]
        hand = ByHand(Work(work.dim, work.w0, work.w1, self.slots))
        self.host, self.streams = hand.host, hand.streams
        self.graphs: list[Any] = []
        for i, stream in enumerate(hand.streams):
            hand.batch(i, stream)
            stream.synchronize()
            stream.begin_capture()
            hand.batch(i, stream, capture=True)
            self.graphs.append(stream.end_capture())
        self.events = [cupy.cuda.Event(disable_timing=True) for _ in hand.streams]

    def run(self, requests: list[Any], seen: Callable[[float, Any], None]) -> None:
        """All requests; `seen` gets the time that each took, and its result."""
        waiting: deque[tuple[int, float]] = deque()
        for number, request in enumerate(requests):
            lane = number % LANES
            if len(waiting) == LANES:
                self._finish(waiting, seen)
            start = time.perf_counter()
            if callable(request):
                request(self.slots[lane])
            else:
                np.copyto(self.slots[lane], request)
            self.graphs[lane].launch(self.streams[lane])
            self.events[lane].record(self.streams[lane])
            waiting.append((lane, start))
        while waiting:
            self._finish(waiting, seen)

    def _finish(
        self, waiting: deque[tuple[int, float]], seen: Callable[[float, Any], None]
    ) -> None:
        lane, start = waiting.popleft()
        self.events[lane].synchronize()
        result = self.host[lane].copy()
        seen((time.perf_counter() - start) * 1e6, result)


def pipeline(work: Work) -> Callable[[Any], agt.DeviceOp[Any]]:
    """A batch as the server wants it: the same five calls."""
    n = work.dim
    w0, w1 = (agt.h2d(w).sync().share() for w in (work.w0, work.w1))

    def batch(slot: Any) -> agt.DeviceOp[Any]:
        hidden, out = agt.zeros((n, n)).sync(), agt.zeros(n).sync()
        lines = out.borrow().partition(BLOCK)

        def vector(_: Any) -> agt.DeviceOp[Any]:
            return agt.matvec_naive(n, n, hidden.borrow(), w1, out.borrow().partition(BLOCK))

        return (
            agt.h2d(slot)
            .and_then(
                lambda x: agt.sgemm_naive(
                    n, n, n, 1.0, x, w0, 0.0, hidden.borrow().partition(TILE, TILE)
                )
            )
            .and_then(vector)
            .and_then(lambda _: agt.relu(n, lines, lines))
            .and_then(lambda _: agt.d2h(out.borrow()))
        )

    return batch


def compare(
    work: Work, count: int, loop: asyncio.AbstractEventLoop, *, in_place: bool
) -> list[Row]:
    """Both loops, in turns, over the same requests.

    They are copied into a lane's input, or written there `in_place`, as a socket's `recv_into` would.
    """
    copied = [np.array(work.xs[i % BATCHES]) for i in range(BATCHES)]

    def write(slot: Any) -> None:
        slot[0, 0] = 1.0

    requests = [write if in_place else copied[i % BATCHES] for i in range(count)]
    hand = HandLoop(work)
    made = pipeline(work)

    async def mapped(server: agt.Server[Any], seen: Callable[[float, Any], None]) -> None:
        last = time.perf_counter()
        async for result in server.map(requests):
            now = time.perf_counter()
            seen((now - last) * 1e6, result)  # between results: a request's own start is inside
            last = now

    async def clients(server: agt.Server[Any], seen: Callable[[float, Any], None]) -> None:
        todo = iter(requests)

        async def client() -> None:
            for request in todo:
                start = time.perf_counter()
                result = await server(request)
                seen((time.perf_counter() - start) * 1e6, result)

        await asyncio.gather(*(client() for _ in range(2 * LANES)))

    async def ours(way: Callable[..., Any], seen: Callable[[float, Any], None]) -> float:
        async with agt.Server(made, work.xs[0].shape, lanes=LANES) as server:
            for _ in range(LANES):
                await server(copied[0])
            start = time.perf_counter()
            await way(server, seen)
            return time.perf_counter() - start

    def by_hand(seen: Callable[[float, Any], None]) -> float:
        start = time.perf_counter()
        hand.run(requests, seen)
        return time.perf_counter() - start

    ways: dict[str, Callable[[Callable[[float, Any], None]], float]] = {
        "CuPy by hand, a loop over eight graphs": by_hand,
        "ours, server.map": lambda seen: loop.run_until_complete(ours(mapped, seen)),
        "ours, sixteen clients": lambda seen: loop.run_until_complete(ours(clients, seen)),
    }
    rates: dict[str, list[float]] = {name: [] for name in ways}
    latencies: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(6):
        for name, run in ways.items():
            took: list[float] = []
            sums: list[float] = []

            def seen(us: float, result: Any, took: Any = took, sums: Any = sums) -> None:
                took.append(us)
                sums.append(float(result[0]))

            seconds = run(seen)
            assert len(sums) == count
            if turn:
                rates[name].append(count / seconds)
                latencies[name] += took
    base = median(rates["CuPy by hand, a loop over eight graphs"])
    return [
        {
            "dim": work.dim,
            "in_place": in_place,
            "way": name,
            "per_second": median(rates[name]),
            "ratio": median(rates[name]) / base,
            "median_us": median(latencies[name]),
            "p99_us": percentile(latencies[name], 0.99),
        }
        for name in ways
    ]


def soak(work: Work, count: int, loop: asyncio.AbstractEventLoop) -> Row:
    """Memory before and after many requests, some of which are cancelled or refused."""
    pool: Any = agt.current_device()._pool  # type: ignore[attr-defined] - only to measure it

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    async def run() -> Row:
        request = np.array(work.xs[0])
        answered = cancelled = refused = 0
        async with agt.Server(pipeline(work), request.shape, lanes=LANES) as server:
            want = await server(request)
            async for _ in server.map(request for _ in range(1000)):
                pass
            gc.collect()
            agt.synchronize()
            before = (resident(), int(pool.used_bytes()))
            for part in range(count // 1000):
                tasks = [asyncio.ensure_future(server(request)) for _ in range(40)]
                await asyncio.sleep(0)
                for task in tasks[part % 7 :: 7]:
                    task.cancel()
                try:
                    await server(request[:1])
                except agt.UsageError:
                    refused += 1
                for answer in await asyncio.gather(*tasks, return_exceptions=True):
                    if isinstance(answer, asyncio.CancelledError):
                        cancelled += 1
                    else:
                        assert np.array_equal(answer, want)
                        answered += 1
                async for answer in server.map(request for _ in range(960)):
                    assert np.array_equal(answer, want)
                    answered += 1
            in_flight = agt.in_flight()
            gc.collect()
            after = (resident(), int(pool.used_bytes()))
        return {
            "dim": work.dim,
            "answered": answered,
            "cancelled": cancelled,
            "refused": refused,
            "host_bytes_more": after[0] - before[0],
            "device_bytes_more": after[1] - before[1],
            "in_flight_after": in_flight,
        }

    return loop.run_until_complete(run())
