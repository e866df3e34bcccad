"""Copies, collectives and training steps of two GPUs, and what the simulated cluster makes of them.

On two GPUs:  python tools/fidelity links record FILE
              NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 NCCL_SOCKET_IFNAME=lo \
                  python tools/fidelity links record FILE sockets
Anywhere:     python tools/fidelity links [fit]           (compares, or fits the constants)

Prints JSON as well. The second command adds to the file what NCCL takes over the sockets of one host, which
stand for a network. A time is that of one of several in a row, all enqueued while a kernel holds both GPUs,
so the host's costs are in none of them. The even powers of two are for the fit, the odd ones are held out,
and so are all training steps.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
FILE = HERE / "recordings" / "links.json"
LARGEST = {"links": 30, "sockets": 28}
ROUNDS, WARM = 7, 2
HOLD = 14_000_000  # clocks for which a kernel holds a GPU, about 7 ms


def sizes(over: str) -> list[int]:
    """4 KB and more, each twice the one before, in bytes."""
    return [1 << power for power in range(12, LARGEST[over] + 1)]


def calibrated(nbytes: int) -> bool:
    """Tell if constants may be fitted to this size: an even power of two."""
    return nbytes.bit_length() % 2 == 1


def _two_gpus() -> Any:
    sys.path.insert(0, str(HERE.parents[1] / "benchmarks"))
    import two_gpus

    return two_gpus


# ---------------------------------------------------------------------- measuring
class Measure:
    """Two GPUs, and what is measured on them."""

    def __init__(self, kind: str, over: str) -> None:
        self.module = _two_gpus()
        self.bench = self.module.Bench(kind, ROUNDS)
        self.spin = self.module.agt.Kernel(self.module.SPIN, "spin")
        self.row = 10 if over == "links" else 4
        self.late: list[str] = []  # what the host had not enqueued in time

    def copies(self, nbytes: int) -> dict[str, float]:
        """Copies to the other GPU."""
        agt, bench = self.module.agt, self.bench
        x, y = (agt.zeros(nbytes, np.uint8).on(name).sync() for name in bench.names)
        return self._held(
            {
                "copy": lambda: bench.device.copy_to_peer_async(
                    y.memory, x.memory, nbytes, bench.stream
                )
            }
        )

    def all_reduces(self, nbytes: int) -> dict[str, float]:
        """In one call for both ranks; NCCL's alone, and with events around it."""
        agt, bench = self.module.agt, self.bench
        arrays = [agt.zeros(nbytes // 4).on(name).sync() for name in bench.names]
        ways = self.module.Bare.of(bench, arrays)
        named = {f"all_reduce, {way}": act for way, act in ways.items()}

        def ours() -> Any:
            return bench.group.all_reduce([array.borrow() for array in arrays])

        named["all_reduce"] = lambda: ours().async_on(bench.stream)
        return self._held(named)

    def sends(self, nbytes: int) -> dict[str, float]:
        """A send and its recv, and an all-reduce, by a recipe for each rank; and NCCL's alone."""
        from cupy.cuda import nccl

        agt, bench, module = self.module.agt, self.bench, self.module
        arrays = [agt.zeros(nbytes // 4).on(name).sync() for name in bench.names]
        streams = module.Bare.streams(bench)
        comms = module.Bare._made[4]

        def bare() -> None:
            nccl.groupStart()
            comms[0].send(arrays[0].memory.ptr, nbytes // 4, nccl.NCCL_FLOAT32, 1, streams[0].ptr)
            comms[1].recv(arrays[1].memory.ptr, nbytes // 4, nccl.NCCL_FLOAT32, 0, streams[1].ptr)
            nccl.groupEnd()

        def one(rank: int) -> Any:
            x = arrays[rank].borrow()
            return bench.group.recv(x, source=0) if rank else bench.group.send(x, to=1)

        found = self._held({"send, bare": bare})
        found["send"] = self._each(f"send {nbytes}", one)
        reduce = bench.group.all_reduce
        found["all_reduce, each"] = self._each(
            f"all_reduce {nbytes}", lambda rank: reduce(arrays[rank].borrow())
        )
        return found

    def _held(self, ways: dict[str, Callable[[], object]]) -> dict[str, float]:
        row = self.row
        several = {way: (lambda act=act: [act() for _ in range(row)]) for way, act in ways.items()}
        held = self.module.Bare.held
        found = self.module.in_turns(several, ROUNDS, lambda calls: held(self.bench, calls))
        return {way: us / row for way, us in found.items()}

    def _each(self, name: str, one: Callable[[int], Any]) -> float:
        """Several in a row on both GPUs, the time of the slower one."""
        import cupy

        agt, told = self.module.agt, dict[tuple[int, str], tuple[Any, float]]()

        def mark(rank: int, word: str) -> Any:
            def note(context: Any) -> Any:
                with cupy.cuda.Device(context.device.ordinal):
                    event = cupy.cuda.Event()
                    event.record(context.stream.cupy)
                told[rank, word] = event, time.perf_counter()
                return agt.value(None)

            return agt.with_context(note)

        def recipe(rank: int) -> Any:
            hold = self.spin(np.int64(HOLD), grid=1, block=1)
            many = [one(rank) for _ in range(self.row)]
            return agt.zip(hold, mark(rank, "first"), *many, mark(rank, "last")).map(lambda _: None)

        times: list[float] = []
        for _ in range(ROUNDS + WARM):
            asyncio.run(self.bench.group.on_each(recipe))
            took: list[float] = []
            for rank in range(2):
                (first, begun), (last, ended) = told[rank, "first"], told[rank, "last"]
                took.append(cupy.cuda.get_elapsed_time(first, last) * 1e3)
                if ended - begun > HOLD / 2e9:
                    self.late.append(f"{name}: {(ended - begun) * 1e3:.1f} ms to enqueue")
            times.append(max(took) / self.row)
        return statistics.median(times[WARM:])

    # ------------------------------------------------------------------ a training step
    def training(self, width: int, rows: int) -> dict[str, Any]:
        """A step, and what its products take alone on one GPU with half the rows, in us."""
        bench, net = self.bench, self.module.Net(self.bench.names[0], width, rows // 2)
        x, e, w, g = net.x, net.e, net.w, net.g
        ways = {
            "forward": lambda: net.forward(0),
            "gradient": lambda: net._products((x[0], e[1], g[0], "first")),
            "error": lambda: net._products((e[1], w[0], e[0], "second")),
            "update": net.update,
        }
        alone = {
            name: (lambda make=make: make().async_on(bench.stream)) for name, make in ways.items()
        }
        return {"alone": self._held(alone), "step": bench.training(width, (rows,))[rows]}


def machine() -> dict[str, str]:
    """Whatever the numbers depend on."""
    import cupy
    from cupy.cuda import nccl, runtime

    name = runtime.getDeviceProperties(0)["name"].decode()
    version = nccl.get_version()
    return {
        "gpus": f"2 x {name}",
        "cuda driver": str(runtime.driverGetVersion()),
        "cupy": cupy.__version__,
        "nccl": f"{version // 10000}.{version // 100 % 100}.{version % 100}",
        "python": platform.python_version(),
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "unit": f"us, medians of {ROUNDS}",
    }


def record(path: Path, over: str) -> None:
    """Measure, and write it down."""
    import asyncgpu_tutor as agt

    agt.use("cuda:0")
    measure = Measure("cuda", over)
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    found["machine"] = machine()
    kinds = [measure.all_reduces, measure.sends]
    if over == "links":
        kinds.insert(0, measure.copies)
    table: dict[str, dict[str, float]] = {}
    for kind in kinds:
        for nbytes in sizes(over):
            for name, us in kind(nbytes).items():
                table.setdefault(name, {})[str(nbytes)] = round(us, 3)
    found[over] = table
    found[f"late, {over}"] = measure.late
    path.write_text(json.dumps(found, indent=1) + "\n")
    if over == "links":
        found["training"] = {str(rows): measure.training(4096, rows) for rows in (4096, 1024)}
    path.write_text(json.dumps(found, indent=1) + "\n")
    print(path.read_text())


def main() -> None:
    """Measure on two GPUs, or compare the model with what was measured."""
    if "record" in sys.argv:
        over = "sockets" if sys.argv[-1] == "sockets" else "links"
        record(Path(sys.argv[sys.argv.index("record") + 1]), over)
