"""Hand-written CuPy: streams, preallocated buffers, and a captured graph."""

from collections.abc import Callable, Iterator
from typing import Any

import cupy
import cupyx
import numpy as np
from cupy.cuda import runtime
from work import BLOCK, KERNELS, TILE, Contender, Work

H2D, D2H = 1, 2  # cudaMemcpyKind


class ByHand:
    """Buffers, kernels and streams of one size."""

    def __init__(self, work: Work) -> None:
        self.work = work
        n, count = work.dim, len(work.xs)
        options = ("--fmad=false",)  # this package compiles so, and both are to run the same code
        self.kernels = {k: cupy.RawKernel(s, k, options=options) for k, s in KERNELS.items()}
        self.streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(count)]
        self.w0, self.w1 = cupy.asarray(work.w0), cupy.asarray(work.w1)
        self.x = [cupy.zeros((n, n), np.float32) for _ in range(count)]
        self.hidden = [cupy.zeros((n, n), np.float32) for _ in range(count)]
        self.out = [cupy.zeros(n, np.float32) for _ in range(count)]
        self.host = [cupyx.empty_pinned(n, np.float32) for _ in range(count)]
        self.size, self.one, self.zero = np.uint32(n), np.float32(1), np.float32(0)

    def steps(self, i: int, stream: Any, capture: bool = False) -> Iterator[None]:
        """The five calls of a batch, one at a time.

        `set` and `get` refuse to be captured: there the copies are the runtime's own.
        """
        work, n = self.work, self.size
        x, hidden, out, host = self.x[i], self.hidden[i], self.out[i], self.host[i]
        with stream:
            if capture:
                source = work.xs[i].ctypes.data
                runtime.memcpyAsync(x.data.ptr, source, x.nbytes, H2D, stream.ptr)
            else:
                x.set(work.xs[i])
            yield
            args = (n, n, n, self.one, x, self.w0, self.zero, hidden)
            self.kernels["sgemm_naive"](work.grid, (TILE, TILE, 1), args)
            yield
            self.kernels["matvec_naive"](work.line, (BLOCK, 1, 1), (n, n, hidden, self.w1, out))
            yield
            self.kernels["relu"](work.line, (BLOCK, 1, 1), (n, out, out))
            yield
            if capture:
                target = host.ctypes.data
                runtime.memcpyAsync(target, out.data.ptr, host.nbytes, D2H, stream.ptr)
            else:
                out.get(out=host, blocking=False)
            yield

    def batch(self, i: int, stream: Any, capture: bool = False) -> None:
        for _ in self.steps(i, stream, capture):
            pass

    def results(self) -> list[Any]:
        return [host.copy() for host in self.host]

    # ------------------------------------------------------------------ ways to run
    def sync_each_call(self) -> None:
        for i in range(len(self.streams)):
            for _ in self.steps(i, self.streams[0]):
                self.streams[0].synchronize()

    def sync_each_batch(self) -> None:
        for i in range(len(self.streams)):
            self.batch(i, self.streams[0])
            self.streams[0].synchronize()

    def one_stream(self) -> None:
        """Wait once, at the end."""
        for i in range(len(self.streams)):
            self.batch(i, self.streams[0])
        self.streams[0].synchronize()

    def four_streams(self, capture: bool = False) -> None:
        """Each batch on a stream of its own, by `set` and `get`, or as in a capture by the runtime's copies.

        The runtime's take fewer of Python's calls, and more of one's own.
        """
        for i, stream in enumerate(self.streams):
            self.batch(i, stream, capture)
        for stream in self.streams:
            stream.synchronize()

    def one_batch(self) -> None:
        self.batch(0, self.streams[0])
        self.streams[0].synchronize()

    def everyday(self, i: int, stream: Any, upload: Callable[[Any], Any]) -> Any:
        """One batch as it is written where nobody counts microseconds: allocated where it is needed."""
        work, n = self.work, self.size
        with stream:
            x = upload(work.xs[i])
            hidden = cupy.zeros((work.dim, work.dim), np.float32)
            out = cupy.zeros(work.dim, np.float32)
            args = (n, n, n, self.one, x, self.w0, self.zero, hidden)
            self.kernels["sgemm_naive"](work.grid, (TILE, TILE, 1), args)
            self.kernels["matvec_naive"](work.line, (BLOCK, 1, 1), (n, n, hidden, self.w1, out))
            self.kernels["relu"](work.line, (BLOCK, 1, 1), (n, out, out))
            host = cupyx.empty_pinned(work.dim, np.float32)
            out.get(out=host, blocking=False)
        return host

    def everyday_batches(self, count: int, upload: Callable[[Any], Any]) -> list[Any]:
        """So many batches, each on a stream of its own."""
        streams = self.streams[:count]
        hosts = [self.everyday(i, stream, upload) for i, stream in enumerate(streams)]
        for stream in streams:
            stream.synchronize()
        return hosts

    def graph(self, which: range | None = None) -> Any:
        """These batches, by default all, captured on a stream each."""
        batches = range(len(self.streams)) if which is None else which
        first, *others = streams = [self.streams[i] for i in batches]
        first.begin_capture()
        fork = cupy.cuda.Event(disable_timing=True)
        fork.record(first)
        for stream in others:
            stream.wait_event(fork)
        for i, stream in zip(batches, streams, strict=True):
            self.batch(i, stream, capture=True)
        for stream in others:
            join = cupy.cuda.Event(disable_timing=True)
            join.record(stream)
            first.wait_event(join)
        return first.end_capture()


def contenders(work: Work) -> list[Contender]:
    """All ways, the yardsticks first."""
    mine = ByHand(work)
    mine.four_streams()
    graph = mine.graph()
    stream = mine.streams[0]

    def launch() -> None:
        graph.launch(stream)
        stream.synchronize()

    ways = {
        "CuPy by hand, four streams": mine.four_streams,
        "CuPy by hand, one batch alone": mine.one_batch,
        "CuPy by hand, four streams, memcpyAsync": lambda: mine.four_streams(capture=True),
        "CuPy by hand, one stream": mine.one_stream,
        "CuPy by hand, wait for each batch": mine.sync_each_batch,
        "CuPy by hand, wait for each call": mine.sync_each_call,
        "CuPy, captured graph": launch,
    }
    found = [Contender(name, run, mine.results) for name, run in ways.items()]
    for how, upload in (("asarray", cupy.asarray), ("empty and set", _set)):
        for count, what in ((len(mine.streams), "four streams"), (1, "one batch alone")):
            found.append(_everyday(mine, f"everyday CuPy, {how}, {what}", count, upload))
    return found


def _everyday(mine: ByHand, name: str, count: int, upload: Callable[[Any], Any]) -> Contender:
    latest: list[Any] = []

    def run() -> None:
        latest[:] = mine.everyday_batches(count, upload)

    return Contender(name, run, lambda: [host.copy() for host in latest], "allocates")


def _set(host: Any) -> Any:
    array = cupy.empty(host.shape, host.dtype)
    array.set(host)
    return array
