"""Two GPUs beside one, and our copies and all-reduces beside the bare calls: ratios within one run.

    python benchmarks/two_gpus.py [--device sim] [training] [mlp] [copies] [reduce]

A training step of four square layers, on one GPU and on two: not reduced at all, the gradients summed
afterwards, and each layer's summed while the next is computed, by NCCL and by copies. Four batches of the
MLP. Copies and all-reduces of 1 KB to 256 MB: ten in a row, enqueued while a kernel holds the GPUs, so that
only their time is left; and one that is waited for, with the host's time in it. "In order" is NCCL with the
two events that put both GPUs behind one stream and that stream behind both. Ways are measured in turns;
medians. On the simulated device the times are the model's, and NCCL isn't there to compare with.
"""

import argparse
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from in_turns import device_us, in_turns, medians

import asyncgpu_tutor as agt
from asyncgpu_tutor.commands.mlp import forward, upload
from asyncgpu_tutor.data import seed_inputs

LAYERS, IN_A_ROW, WARM = 4, 10, 2
SIZES = [1 << 10, 1 << 14, 1 << 17, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28]
SOURCE = Path(__file__).with_name("two_gpus.cu").read_text("utf-8")
add_kernel = agt.Kernel(SOURCE, "add")
Reduce = Callable[[list[Any]], agt.DeviceOp[Any]]  # of the arrays of both GPUs, in place
Ways = Mapping[str, Callable[[], object]]
Took = Callable[[Callable[[], object]], float]  # us of a run


def medians_of(ways: Ways, rounds: int, took: Took = device_us) -> dict[str, float]:
    """The median of what each way took, in turns, after each has run."""
    return medians(in_turns(ways, rounds, warm=WARM, took=took))


def told(title: str, times: dict[str, float]) -> None:
    """Print a row: the times, and how many times as fast as the first each of them is."""
    first = next(iter(times.values()))
    cells = (f"{way} {us:,.1f} us ({first / us:.2f})" for way, us in times.items())
    print(f"{title}: " + "; ".join(cells), flush=True)


class Bare:
    """The same by CuPy's calls alone, on our stream and one on the other GPU."""

    def __init__(self, stream: agt.types.Stream) -> None:
        import cupy
        from cupy.cuda import nccl

        with cupy.cuda.Device(1):
            there = cupy.cuda.Stream(non_blocking=True)
            self.gone = cupy.cuda.Event(disable_timing=True)
        self.come = cupy.cuda.Event(disable_timing=True)
        self.comms = nccl.NcclCommunicator.initAll([0, 1])
        self.streams = stream.cupy, there
        self._spin = cupy.RawKernel(SOURCE, "spin")

    def calls(self, arrays: list[Any]) -> Ways:
        """NCCL's all-reduce alone; and with the events that ours needs as well."""
        from cupy.cuda import nccl, runtime

        here, there = self.streams
        pointers, count = [array.memory.ptr for array in arrays], arrays[0].size

        def bare() -> None:
            nccl.groupStart()
            for comm, p, stream in zip(self.comms, pointers, self.streams, strict=True):
                comm.allReduce(p, p, count, nccl.NCCL_FLOAT32, nccl.NCCL_SUM, stream.ptr)
            nccl.groupEnd()

        def ordered() -> None:
            runtime.eventRecord(self.come.ptr, here.ptr)
            runtime.streamWaitEvent(there.ptr, self.come.ptr)
            bare()
            runtime.eventRecord(self.gone.ptr, there.ptr)
            runtime.streamWaitEvent(here.ptr, self.gone.ptr)

        return {"bare": bare, "bare, in order": ordered}

    def held(self, calls: Callable[[], object]) -> float:
        """The GPU's time for calls that were all made before it began with the first, in us."""
        import cupy

        for ordinal, stream in enumerate(self.streams):
            with cupy.cuda.Device(ordinal), stream:
                self._spin((1,), (1,), (4000 * 1700,))
        first, last = cupy.cuda.Event(), cupy.cuda.Event()
        first.record(self.streams[0])
        calls()
        last.record(self.streams[0])
        last.synchronize()
        self.streams[1].synchronize()
        agt.synchronize()
        return cupy.cuda.get_elapsed_time(first, last) * 1e3


class Bench:
    """Two GPUs of this process, the first of which is the current device."""

    def __init__(self, kind: str, rounds: int) -> None:
        self.names = [f"{kind}:{ordinal}" for ordinal in range(2)]
        self.group = agt.group(*self.names)
        self.device, self.other = self.group.devices
        self.simulated = self.device.simulated
        self.rounds = 1 if self.simulated else rounds
        self.stream = agt.create_stream()
        self.wide = agt.StreamPoolRoundRobin(8)  # of four, a product gets one on which an add waits

    @cached_property
    def bare(self) -> Bare:
        return Bare(self.stream)

    # ------------------------------------------------------------------ a training step
    def training(self, width: int, batches: tuple[int, ...]) -> dict[int, dict[str, float]]:
        """A step with each of these numbers of rows, on one GPU and on two."""
        found: dict[int, dict[str, float]] = {}
        for rows in batches:
            one = [Net(self.names[0], width, rows)]
            two = [Net(name, width, rows // 2) for name in self.names]
            ways = {
                "one GPU": lambda one=one: step(one, None, late=True).sync(),
                "two, not reduced": lambda two=two: step(two, None, late=True).sync(),
                "afterwards": lambda two=two: step(two, self.group.all_reduce, late=True).sync(),
                "overlapped": lambda two=two: step(two, self.group.all_reduce).sync(),
                "overlapped, by copies": lambda two=two: step(two, by_copies).sync(),
            }
            with agt.using(policy=self.wide):
                found[rows] = medians_of(ways, self.rounds)
            told(f"training {width}, batch {rows}", found[rows])
        return found

    # ------------------------------------------------------------------ the course's pipeline
    def mlp(self, dim: int) -> None:
        """Four batches, all on one GPU, and two on each."""
        inputs = seed_inputs(dim)
        batches = [agt.pin(batch) for batch in inputs.batches]
        weights = [upload(inputs).on(name).sync() for name in self.names]

        def placed(number: int, gpus: int) -> agt.DeviceOp[Any]:
            place = number % gpus
            lent = [array.share() for array in weights[place]]
            return forward(batches[number], *lent).on(self.names[place])

        def prepared(gpus: int) -> Callable[[], object]:
            made: list[Any] = []
            for number, batch in enumerate(batches):
                with agt.using(self.names[number % gpus]):
                    made.append(forward(batch, *weights[number % gpus]).prepare())
            return lambda: agt.overlap(
                *(m.launch().on(self.names[i % gpus]) for i, m in enumerate(made))
            ).sync()

        def built(gpus: int) -> Callable[[], object]:
            return lambda: agt.overlap(*(placed(i, gpus) for i in range(len(batches)))).sync()

        ways = {"one GPU": built(1), "two": built(2)}
        told(f"MLP {dim}", medians_of(ways, self.rounds))
        ways = {"one GPU": prepared(1), "two": prepared(2)}
        told(f"MLP {dim}, prepared", medians_of(ways, self.rounds))

    # ------------------------------------------------------------------ copies and all-reduces
    def copies(self, nbytes: int) -> None:
        x = agt.zeros(nbytes, np.uint8).sync()
        y = agt.zeros(nbytes, np.uint8).on(self.other).sync()

        def bare() -> None:
            self.device.copy_to_peer_async(y.memory, x.memory, nbytes, self.stream)

        def ours() -> agt.DeviceOp[Any]:
            return x.borrow().to(self.other)

        several = {
            "bare": lambda: [bare() for _ in range(IN_A_ROW)],
            "ours": lambda: agt.zip(*(ours() for _ in range(IN_A_ROW))).async_on(self.stream),
        }
        one = {
            "bare": lambda: (bare(), self.stream.synchronize()),
            "ours": lambda: ours().sync_on(self.stream),
        }
        self._both(f"copy {nbytes:,} bytes", several, one)

    def reduce(self, nbytes: int) -> None:
        arrays = [agt.zeros(nbytes // 4).on(name).sync() for name in self.names]

        def ours() -> agt.DeviceOp[Any]:
            return self.group.all_reduce([array.borrow() for array in arrays])

        calls = {} if self.simulated else self.bare.calls(arrays)
        several: dict[str, Callable[[], object]] = {
            way: lambda act=act: [act() for _ in range(IN_A_ROW)] for way, act in calls.items()
        }
        several["ours"] = lambda: [ours().async_on(self.stream) for _ in range(IN_A_ROW)]
        one: dict[str, Callable[[], object]] = {
            way: lambda act=act: (act(), self._settle()) for way, act in calls.items()
        }
        one["ours"] = lambda: ours().sync_on(self.stream)
        self._both(f"all-reduce {nbytes:,} bytes", several, one)

    def _both(self, title: str, several: Ways, one: Ways) -> None:
        if not self.simulated:
            found = medians_of(several, self.rounds, self.bare.held)
            told(title, {way: us / IN_A_ROW for way, us in found.items()})
        told(f"{title}, one, waited for", medians_of(one, 2 * self.rounds))

    def _settle(self) -> None:
        self.stream.synchronize()
        self.bare.streams[1].synchronize()


class Net:
    """One GPU's copy of a network: what goes through it, the errors that come back, weights, gradients."""

    def __init__(self, where: str, width: int, rows: int) -> None:
        def some(*shape: int) -> Any:
            return agt.full(shape, 0.01).on(where).sync()

        self.where = where
        self.x = [some(rows, width) for _ in range(LAYERS + 1)]
        self.e = [some(rows, width) for _ in range(LAYERS + 1)]
        self.w = [some(width, width) for _ in range(LAYERS)]
        self.g = [some(width, width) for _ in range(LAYERS)]
        self._views: dict[int, Any] = {}  # as CuPy sees them: to ask for one waits for the GPU
        if not self.w[0].device.simulated:
            import cupy

            with cupy.cuda.Device(self.w[0].device.ordinal):
                every = (*self.x, *self.e, *self.w, *self.g)
                self._views = {id(array): cupy.asarray(array) for array in every}

    def forward(self, i: int) -> agt.DeviceOp[Any]:
        return self._products((self.x[i], self.w[i], self.x[i + 1], ""))

    def backward(self, i: int) -> agt.DeviceOp[Any]:
        """A layer's gradient, and the error for the layer before."""
        gradient = self.x[i], self.e[i + 1], self.g[i], "first"
        return self._products(gradient, (self.e[i + 1], self.w[i], self.e[i], "second"))

    def update(self) -> agt.DeviceOp[Any]:
        pairs = zip(self.g, self.w, strict=True)
        return agt.zip(*(add(g, w, -1.0) for g, w in pairs)).map(lambda _: None).on(self.where)

    def _products(self, *calls: tuple[Any, Any, Any, str]) -> agt.DeviceOp[Any]:
        """Matrix products: a, b, the result, and which of the two is transposed. CuPy's own on a GPU."""

        def run(context: agt.types.ExecutionContext) -> agt.DeviceOp[Any]:
            if context.device.simulated:
                return agt.zip(*(_product(*call) for call in calls))
            import cupy

            with cupy.cuda.Device(context.device.ordinal), context.stream.cupy:
                for *arrays, turned in calls:
                    x, y, out = (self._views[id(array)] for array in arrays)
                    x, y = x.T if turned == "first" else x, y.T if turned == "second" else y
                    cupy.matmul(x, y, out=out)
            return agt.value(None)

        return agt.with_context(run).map(lambda _: None).on(self.where)


def _product(a: Any, b: Any, out: Any, turned: str) -> agt.DeviceOp[Any]:
    """As many multiplications on the simulated device, where the course's kernel has no transposed form."""
    (m, n), blocks = out.shape, out.borrow().partition(16, 16)
    k = a.size // m
    x, y = a.borrow().reshape(m, k), b.borrow().reshape(k, n)
    return agt.sgemm_naive(m, n, k, 1.0, x, y, 0.0, blocks).output()


def add(x: Any, y: Any, times: float = 1.0) -> agt.DeviceOp[Any]:
    """Add `times` x to y."""
    return add_kernel(y.size, times, x.borrow(), y.borrow(), grid=1056, block=256)


def by_copies(arrays: list[Any]) -> agt.DeviceOp[Any]:
    """An all-reduce of two: each GPU's copy engine sends the other what it has, and both add what came."""

    def added(came: tuple[Any, Any]) -> agt.DeviceOp[Any]:
        ways = zip(came, arrays, strict=True)
        return agt.overlap(*(add(x, y).on(y.device) for x, y in ways))

    sent = (x.borrow().to(y.device).on(x.device) for x, y in zip(arrays[::-1], arrays, strict=True))
    return agt.overlap(*sent).and_then(added)


def step(nets: list[Net], reduce: Reduce | None, *, late: bool = False) -> agt.DeviceOp[Any]:
    """A training step; `late` has all gradients summed at its end, if they're summed at all."""

    def each(act: Callable[[Net], agt.DeviceOp[Any]]) -> agt.DeviceOp[Any]:
        return agt.overlap(*(act(net) for net in nets)).map(lambda _: None)

    def summed(i: int) -> agt.DeviceOp[Any]:
        return reduce([net.g[i].borrow() for net in nets]) if reduce else agt.value(None)

    op: agt.DeviceOp[Any] = agt.value(None)
    if late:
        ways = [lambda net, i=i: net.backward(i) for i in reversed(range(LAYERS))]
        op = each(lambda net: agt.zip(*(way(net) for way in ways)))
        op = agt.zip(op, *(summed(i) for i in reversed(range(LAYERS))))
    else:
        for i in range(LAYERS):
            op = each(lambda net, i=i: net.backward(i)).and_then(
                lambda _, i=i, rest=op: agt.overlap(summed(i), rest)
            )
    # Layer after layer of both GPUs, so that both begin at once.
    forward = (each(lambda net, i=i: net.forward(i)) for i in range(LAYERS))
    return agt.zip(*forward, op, each(lambda net: net.update()))


def main(kind: str, what: list[str], rounds: int) -> None:
    """Measure and print."""
    agt.use(f"{kind}:0")
    bench = Bench(kind, rounds)
    print(f"{bench.device!r}; medians of {bench.rounds}; in brackets, the gain over the first")
    if "training" in what:
        bench.training(*(1024, (1024, 256)) if bench.simulated else (4096, (4096, 1024)))
    for dim in ((256, 512) if bench.simulated else (1024, 2048)) if "mlp" in what else ():
        bench.mlp(dim)
    for part in ("copies", "reduce"):
        for nbytes in SIZES if part in what else ():
            getattr(bench, part)(nbytes)


if __name__ == "__main__":
    PARTS = ["training", "mlp", "copies", "reduce"]
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", nargs="*", metavar="|".join(PARTS))
    parser.add_argument("--device", default="cuda", choices=["cuda", "sim"])
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    main(given.device, given.what or PARTS, given.rounds)
