"""The server loop against a loop written by hand: requests a second, and how long one takes."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from statistics import median
from typing import Any

import cupy
import cupyx
import numpy as np
from by_hand import ByHand
from work import BATCHES, BLOCK, TILE, Work

import asyncgpu_tutor as agt

Row = dict[str, Any]
Seen = Callable[[float, Any], None]  # gets the time that a request took, in us, and its result
Way = Callable[[Seen], float]  # seconds for all requests
LANES = 8
BY_HAND = "CuPy by hand, a loop over eight graphs"


class HandLoop:
    """Graphs, one a stream, used in turn; a request is copied in, its result copied out."""

    def __init__(self, work: Work, together: int = 1) -> None:
        x = work.xs[0]
        self.together = together
        self.slots = [cupyx.empty_pinned(x.shape, x.dtype) for _ in range(LANES * together)]
        hand = ByHand(Work(work.dim, work.w0, work.w1, self.slots))
        hand.four_streams()  # the first run compiles the kernels
        self.host, self.streams = hand.host, hand.streams
        self.graphs: list[Any] = [
            hand.graph(range(i, i + together)) for i in range(0, LANES * together, together)
        ]
        self.events = [cupy.cuda.Event(disable_timing=True) for _ in hand.streams]

    def run(self, requests: list[Any], seen: Seen) -> None:
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

    def _finish(self, waiting: deque[tuple[int, float]], seen: Seen) -> None:
        lane, start = waiting.popleft()
        self.events[lane].synchronize()
        result = self.host[lane].copy()
        seen((time.perf_counter() - start) * 1e6, result)


class HandLoopTogether(HandLoop):
    """Several requests to a graph. A loop of its own: one for both would slow the yardstick."""

    def run(self, requests: list[Any], seen: Seen) -> None:
        """See `HandLoop`; as many requests as whole graphs."""
        size = self.together
        waiting: deque[tuple[int, float]] = deque()
        for number in range(0, len(requests), size):
            group = number // size % LANES
            if len(waiting) == LANES:
                self._finish(waiting, seen)
            start = time.perf_counter()
            for i in range(size):
                slot, request = self.slots[group * size + i], requests[number + i]
                if callable(request):
                    request(slot)
                else:
                    np.copyto(slot, request)
            self.graphs[group].launch(self.streams[group])
            self.events[group].record(self.streams[group])
            waiting.append((group, start))
        while waiting:
            self._finish(waiting, seen)

    def _finish(self, waiting: deque[tuple[int, float]], seen: Seen) -> None:
        group, start = waiting.popleft()
        self.events[group].synchronize()
        for i in range(group * self.together, (group + 1) * self.together):
            result = self.host[i].copy()
            seen((time.perf_counter() - start) * 1e6, result)


def pipeline(work: Work) -> Callable[[Any], agt.DeviceOp[Any]]:
    """A batch as the server wants it: the same five calls."""
    n = work.dim
    w0, w1 = (agt.h2d(w).sync().share() for w in (work.w0, work.w1))

    def batch(slot: Any) -> agt.DeviceOp[Any]:
        hidden, out = agt.zeros((n, n)).sync(), agt.zeros(n).sync()
        lines = out.borrow().partition(BLOCK)

        def matrix(x: Any) -> agt.DeviceOp[Any]:
            tiles = hidden.borrow().partition(TILE, TILE)
            return agt.sgemm_naive(n, n, n, 1.0, x, w0, 0.0, tiles)

        def vector(_: Any) -> agt.DeviceOp[Any]:
            return agt.matvec_naive(n, n, hidden.borrow(), w1, out.borrow().partition(BLOCK))

        chain = agt.h2d(slot).and_then(matrix).and_then(vector)
        chain = chain.and_then(lambda _: agt.relu(n, lines, lines))
        return chain.and_then(lambda _: agt.d2h(out.borrow()))

    return batch


def compare(
    work: Work, count: int, loop: asyncio.AbstractEventLoop, *, in_place: bool
) -> list[Row]:
    """Both loops, in turns, over the same requests.

    They are copied into a lane's input, or written there `in_place`, as a socket's `recv_into` would. Each
    turn has lanes of its own: how fast a copy is depends on where in the host's memory they lie.
    """
    kept: list[object] = []  # keeps the memory, or the next turn would get the same
    copied = [np.array(work.xs[i % BATCHES]) for i in range(BATCHES)]

    def write(slot: Any) -> None:
        slot[0, 0] = 1.0

    requests = [write if in_place else copied[i % BATCHES] for i in range(count)]
    made = pipeline(work)

    async def mapped(server: agt.Server[Any], seen: Seen) -> None:
        last = time.perf_counter()
        async for result in server.map(requests):
            now = time.perf_counter()
            # This is the time between results, since `map` does not tell when a request began.
            seen((now - last) * 1e6, result)
            last = now

    async def clients(server: agt.Server[Any], seen: Seen) -> None:
        todo = iter(requests)

        async def client() -> None:
            for request in todo:
                start = time.perf_counter()
                result = await server(request)
                seen((time.perf_counter() - start) * 1e6, result)

        await asyncio.gather(*(client() for _ in range(2 * LANES)))

    async def ours(way: Callable[..., Any], seen: Seen) -> float:
        async with agt.Server(made, work.xs[0].shape, lanes=LANES) as server:
            kept.append(server)
            for _ in range(LANES):
                await server(copied[0])
            async for _ in server.map(copied * LANES):
                pass
            start = time.perf_counter()
            await way(server, seen)
            return time.perf_counter() - start

    def by_hand(loop_of: type[HandLoop], together: int = 1) -> Way:
        def run(seen: Seen) -> float:
            hand = loop_of(work, together)
            kept.append(hand)
            hand.run(copied * 2 * LANES, lambda us, result: None)
            start = time.perf_counter()
            hand.run(requests, seen)
            return time.perf_counter() - start

        return run

    def served(way: Callable[..., Any]) -> Way:
        return lambda seen: loop.run_until_complete(ours(way, seen))

    ways: dict[str, Way] = {
        BY_HAND: by_hand(HandLoop),
        "ours, server.map": served(mapped),
        "ours, sixteen clients": served(clients),
        "CuPy by hand, eight graphs of two": by_hand(HandLoopTogether, 2),
        "CuPy by hand, eight graphs of four": by_hand(HandLoopTogether, 4),
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
    base = median(rates[BY_HAND])
    return [
        {"dim": work.dim, "in_place": in_place, "way": name,
         "per_second": median(rates[name]), "ratio": median(rates[name]) / base,
         "median_us": median(us), "p99_us": float(np.percentile(us, 99))}
        for name, us in latencies.items()
    ]  # fmt: skip
