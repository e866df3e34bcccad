"""Copies, collectives and training steps of two GPUs, and what the simulated cluster makes of them.

On two GPUs:  python tools/fidelity links record FILE
              NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 NCCL_SOCKET_IFNAME=lo \
                  python tools/fidelity links record FILE sockets
Anywhere:     python tools/fidelity links [fit]           (compares, or fits the constants)

Each of the first two adds a run to the file; of several runs, the model is compared with the median. The
second measures what NCCL takes over the sockets of one host, which stand for a network. A time is that of one
of several in a row, all enqueued while a kernel holds both GPUs, so the host's costs are in none of them. The
even powers of two are for the fit, the others are held out, and so are all training steps, and H100s.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import math
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.simulated import SimDevice, SimMachine
from simgpu.links import Wiring, collective_works, peer_copy
from simgpu.pieces import EnginePiece
from simgpu.queues import ResourceDemand
from simgpu.spec import H200, NETWORK, ProtocolSpec

HERE = Path(__file__).parent
FILE = HERE / "recordings" / "links.json"
LARGEST = {"links": 30, "sockets": 28}
ROUNDS, WARM = 7, 2
NEAR = [quarters << 18 for quarters in (5, 6, 7, 10, 12)]  # NCCL changes its protocol there
HOLD = 14_000_000  # clocks for which a kernel holds a GPU, about 7 ms


def sizes(over: str) -> list[int]:
    """4 KB and more, each twice the one before, and some between 1 and 4 MB, in bytes."""
    powers = [1 << power for power in range(12, LARGEST[over] + 1)]
    return sorted(powers + NEAR) if over == "links" else powers


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
        self.spin = agt.Kernel(self.module.SPIN, "spin")
        self.row = 10 if over == "links" else 4
        self.late: list[str] = []  # what the host had not enqueued in time

    def ways(self, nbytes: int) -> dict[str, Callable[[], float]]:
        """What is measured with so many bytes, by kind; "each" has a call by each rank."""
        from cupy.cuda import nccl

        bench, group = self.bench, self.bench.group
        arrays, rooms = (
            [agt.zeros(nbytes // 4).on(name).sync() for name in bench.names] for _ in range(2)
        )
        x, y = (array.memory for array in arrays)
        here, there = self.module.Bare.streams(bench)
        comms = self.module.Bare._made[4]

        def copy() -> None:
            bench.device.copy_to_peer_async(y, x, nbytes, bench.stream)

        def reduce() -> None:
            group.all_reduce([array.borrow() for array in arrays]).async_on(bench.stream)

        def send() -> None:
            nccl.groupStart()
            comms[0].send(x.ptr, nbytes // 4, nccl.NCCL_FLOAT32, 1, here.ptr)
            comms[1].recv(y.ptr, nbytes // 4, nccl.NCCL_FLOAT32, 0, there.ptr)
            nccl.groupEnd()

        def reduce_each(rank: int) -> Any:
            return group.all_reduce(arrays[rank].borrow())

        def exchange(rank: int) -> Any:
            return group.exchange(arrays[rank].borrow(), 1 - rank, rooms[rank].borrow(), 1 - rank)

        return {
            "copy": lambda: self._held({"": copy})[""],
            "all_reduce": lambda: self._held({"": reduce})[""],
            "all_reduce, each": lambda: self._each(f"all_reduce {nbytes}", reduce_each),
            "send, bare": lambda: self._held({"": send})[""],
            "exchange": lambda: self._each(f"exchange {nbytes}", exchange),
        }

    def _held(self, ways: dict[str, Callable[[], object]]) -> dict[str, float]:
        row = self.row
        several = {way: (lambda act=act: [act() for _ in range(row)]) for way, act in ways.items()}
        found = self.module.in_turns(several, ROUNDS, self._after_both)
        return {way: us / row for way, us in found.items()}

    def _after_both(self, calls: Callable[[], object]) -> float:
        """The first GPU's time for calls that were all made while both were held."""
        import cupy

        here, there = self.module.Bare.streams(self.bench)
        for ordinal, stream in enumerate((here, there)):
            with cupy.cuda.Device(ordinal), stream:
                self.module.Bare._spin((1,), (1,), (HOLD // 2,))
        with cupy.cuda.Device(1):
            free = cupy.cuda.Event(disable_timing=True)
            free.record(there)
        here.wait_event(free)
        first, last = cupy.cuda.Event(), cupy.cuda.Event()
        first.record(here)
        calls()
        last.record(here)
        last.synchronize()
        there.synchronize()
        agt.synchronize()
        return cupy.cuda.get_elapsed_time(first, last) * 1e3

    def _each(self, name: str, one: Callable[[int], Any]) -> float:
        """Several in a row on both GPUs: the time of the one that came later, so that it waits for nobody."""
        import cupy

        told = dict[tuple[int, str], tuple[Any, float]]()

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
            times.append(min(took) / self.row)
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
    """Measure once more, and write it down."""
    agt.use("cuda:0")
    measure = Measure("cuda", over)
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    card = machine()["gpus"].split()[3]
    others = "" if card == "H200" else f", {card}"  # and not the GPU that the model is of
    found[f"machine{others}"] = machine()
    run: dict[str, dict[str, float]] = {kind: {} for kind in KINDS[over]}
    for nbytes in sizes(over):
        ways = measure.ways(nbytes)
        for kind, times in run.items():
            times[str(nbytes)] = round(ways[kind](), 3)
    found.setdefault(over + others, []).append(run)
    found.setdefault(f"late, {over}{others}", []).extend(measure.late)
    if over == "links":
        steps = {str(rows): measure.training(4096, rows) for rows in (4096, 1024)}
        found.setdefault(f"training{others}", []).append(steps)
    path.write_text(json.dumps(found, indent=1) + "\n")


# ---------------------------------------------------------------------- the model
# A send is one call of NCCL's for both ranks. Where each rank has a call of its
# own, the one that comes first fills the other's buffers, and a row of sends takes less than the link needs.
KINDS = {
    "links": ("copy", "all_reduce", "all_reduce, each", "send, bare", "exchange"),
    "sockets": ("all_reduce, each", "send, bare"),
}
KINDS |= {f"{over}, H100": kinds for over, kinds in KINDS.items()}
IN_NO_FIT = ("exchange",)
# What sockets take depends on the host's CPU, so that of the H100s has constants of its own.
SOCKETS = replace(
    NETWORK,
    protocols=(
        replace(NETWORK.protocols[0], base_us=23.0, gb_s=1.25),
        replace(NETWORK.protocols[1], base_us=55.7, gb_s=1.25),
        ProtocolSpec(52.8, 47.7, 2.498),
    ),
    sends=(ProtocolSpec(6.525, 14.4, 3.343),),
)
WIRING = {
    "links": Wiring(),
    "sockets": Wiring(gpus_per_node=1),
    "links, H100": Wiring(),
    "sockets, H100": Wiring(between=SOCKETS, gpus_per_node=1),
}


def modelled(kind: str, nbytes: int, wiring: Wiring) -> float:
    """One of several in a row, in us."""
    if kind == "copy":
        return peer_copy(wiring, 0, 1, nbytes).us
    what, _, each = kind.partition(", ")
    pairs = [(0, 1), (0, 1) if what == "send" else (1, 0)]
    us = collective_works(wiring, H200, what, pairs, nbytes)[0].us
    # A call for both ranks waits for the other GPU's event before and behind it.
    once = what == "all_reduce" and not each
    return us + (2 * wiring.inside.event_us if once else H200.pause_us)


class Case(NamedTuple):
    """One size of one kind, in us."""

    over: str
    kind: str
    nbytes: int
    measured: float
    said: float
    runs: list[float]

    @property
    def name(self) -> str:
        """For people."""
        over, _, card = self.over.partition(", ")
        kind = self.kind.replace("send, bare", "send") + ", over sockets" * (over == "sockets")
        return f"{kind}, {card}" if card else kind

    @property
    def calibrated(self) -> bool:
        """True if it may be in the fit."""
        even = self.nbytes.bit_length() % 2 == 1
        return even and self.kind not in IN_NO_FIT and self.over != "links, H100"

    @property
    def error(self) -> float:
        """Of the model, as a part of the measured time."""
        return self.said / self.measured - 1


def cases(wirings: Mapping[str, Wiring] = WIRING) -> Iterator[Case]:
    """All sizes of all kinds."""
    runs = recording()
    for over, kinds in KINDS.items():
        for kind in kinds:
            for size in runs[over][0][kind]:
                times = [run[kind][size] for run in runs[over]]
                said = modelled(kind, int(size), wirings[over])
                yield Case(over, kind, int(size), statistics.median(times), said, times)


def recording() -> dict[str, Any]:
    """Load what `record` wrote."""
    return json.loads(FILE.read_text())


def steps() -> Iterator[tuple[int, str, float, float]]:
    """Of each training step: its rows, how, and its time measured and modelled, in us."""
    real = recording()
    for where in ("", ", H100"):
        runs = real[f"training{where}"]
        for rows, parts in runs[0].items():
            alone, step = (
                {name: statistics.median(run[rows][part][name] for run in runs) for name in names}
                for part, names in parts.items()
            )
            for way, us in trained(alone).items():
                yield int(rows), way + where, step[way], us


def fitted() -> Mapping[str, Wiring]:
    """The constants that fit best to the half that is for that, one at a time."""
    wirings = {**WIRING}

    def loss(wirings: Mapping[str, Wiring]) -> float:
        mine = [case for case in cases(wirings) if case.calibrated]
        return sum(abs(math.log(case.said / case.measured)) ** 1.5 for case in mine)

    parts = {"links": "inside", "sockets": "between", "sockets, H100": "between"}

    def changed(over: str, group: str, index: int, name: str, factor: float) -> dict[str, Wiring]:
        part = parts[over]
        link = getattr(wirings[over], part)
        if not group:
            link = replace(link, **{name: getattr(link, name) * factor})
        else:
            protocols = list(getattr(link, group))
            old = getattr(protocols[index], name)
            protocols[index] = replace(protocols[index], **{name: old * factor})
            link = replace(link, **{group: tuple(protocols)})
        return {**wirings, over: replace(wirings[over], **{part: link})}

    names = [("links", "", 0, name) for name in ("copy_us", "copy_gb_s", "event_us")]
    for over, part in parts.items():
        link = getattr(WIRING[over], part)
        for group in ("protocols", "sends"):
            for index in range(len(getattr(link, group))):
                names.append((over, group, index, "base_us"))
                # Over sockets, the others have half of the last one's rate.
                if over == "links" or index == len(getattr(link, group)) - 1:
                    names.append((over, group, index, "gb_s"))
    best, step = loss(wirings), dict.fromkeys(names, 0.3)
    for _ in range(80):
        for name in names:
            ways = (1 + step[name], 1 / (1 + step[name]))
            found = min((changed(*name, factor) for factor in ways), key=loss)
            if loss(found) < best:
                best, wirings = loss(found), found
            else:
                step[name] /= 1.5
    return wirings


class Scaled:
    """One GPU's copy of a network, of which only the times are right: arrays are 64 times too small."""

    TIMES = 64

    def __init__(self, device: Any, alone: dict[str, float]) -> None:
        self.device, self.alone = device, alone
        self.g = [agt.zeros(4096 * 4096 // self.TIMES).on(device).sync() for _ in range(4)]

    def _works(self, *names: str) -> Any:
        def run(context: Any) -> Any:
            for name in names:
                work = ResourceDemand(self.alone[name], 1.0, 1.0)
                cost = H200.call_launch_us
                piece = EnginePiece("kernel", name, cost, lambda _, work=work: work, [])
                context.device.enqueue(piece, context.stream)
            return agt.value(None)

        return agt.with_context(run).map(lambda _: None).on(self.device)

    def forward(self, _: int) -> Any:
        return self._works("forward")

    def backward(self, _: int) -> Any:
        return self._works("gradient", "error")

    def update(self) -> Any:
        return self._works("update")


def trained(alone: dict[str, float]) -> dict[str, float]:
    """Steps of the simulated cluster, in us; what a product takes alone is taken from the measurement."""
    machine, inside = SimMachine(), Wiring().inside
    scaled = [replace(p, gb_s=p.gb_s / Scaled.TIMES) for p in inside.protocols]
    machine.wiring = Wiring(replace(inside, protocols=tuple(scaled)))
    devices = [SimDevice(number, machine=machine) for number in range(2)]
    step, found = _two_gpus().step, dict[str, float]()
    with agt.using(devices[0]):
        group = agt.group(*devices)
        nets = [Scaled(device, alone) for device in devices]
        ways = {
            "two, not reduced": (None, True),
            "afterwards": (group.all_reduce, True),
            "overlapped": (group.all_reduce, False),
        }
        for way, (reduce, late) in ways.items():
            for _ in range(2):  # the first has the arrays made
                start = devices[0].now()
                step(nets, reduce, late=late).sync()
                found[way] = devices[0].now() - start
    return found


def main() -> None:
    """Measure on two GPUs, or compare the model with what was measured."""
    if "record" in sys.argv:
        over = "sockets" if sys.argv[-1] == "sockets" else "links"
        record(Path(sys.argv[sys.argv.index("record") + 1]), over)
        return
    wirings = fitted() if "fit" in sys.argv else WIRING
    if "fit" in sys.argv:
        print(wirings["links"].inside, *(wirings[o].between for o in wirings), sep="\n")
    for case in cases(wirings):
        half = "fit" if case.calibrated else "held out"
        times = f"{case.measured:10.1f} {case.said:10.1f} {case.error:+6.0%}"
        print(f"{case.name:30} {case.nbytes:13,} {half:8} {times}")
    for rows, way, us, said in steps():
        print(f"batch {rows}, {way:20} {us:10.1f} {said:10.1f} {said / us - 1:+6.1%}")
