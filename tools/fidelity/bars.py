"""Bars of recorded programs against the model's: when each piece of work begins and ends.

On the GPU:  python tools/fidelity bars FOLDER

records the programs of this module, as FOLDER/NAME.json; put these into `tools/fidelity/recordings/bars`. The
recordings of the course's programs come with the package.
"""

from __future__ import annotations

import asyncio
import dataclasses
import statistics
import sys
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from course_programs import RUNS, same_work, trace_of

import asyncgpu_tutor as agt
from asyncgpu_tutor import Trace
from asyncgpu_tutor.commands.mlp import forward
from asyncgpu_tutor.data import seed_inputs
from asyncgpu_tutor.devices.simulated import SPECS, SimDevice, SimMachine

FOLDER = Path(__file__).parent / "recordings" / "bars"
# CUPTI sees a graph node by node. By the recordings of graphs with one to eight nodes in a branch, each node
# holds the next branch up for so many us more than it does without a profiler.
NODE_UNDER_CUPTI = 1.15
# How long CUDA needs to load a module is not modelled, and CUPTI has a graph with a loop as one bar.
NOT_MODELLED = (
    "08_lazy_module_loading",
    "08_lazy_module_loading_repaired",
    "11_newton_by_graph",
)


class Bars(NamedTuple):
    """How far the bars of one program are off, as parts of the recorded makespan; and both overlaps."""

    name: str
    pieces: int
    overlap: tuple[float, float]
    begin: tuple[float, float]  # median, worst
    end: tuple[float, float]


def batches(dim: int, prepared: bool) -> Trace:
    """Four batches of the MLP on four streams, awaited together."""
    inputs = seed_inputs(dim, 4)
    w0, w1 = (agt.h2d(agt.pin(w)).sync().share() for w in (inputs.w0, inputs.w1))
    arms = [agt.pin(x) for x in inputs.batches]

    async def program() -> Trace:
        ready = [forward(x, w0, w1).prepare() for x in arms] if prepared else []

        async def run() -> None:
            ops = [p.launch() for p in ready] or [forward(x, w0, w1) for x in arms]
            named = (op.named(f"batch {i}") for i, op in enumerate(ops))
            await asyncio.gather(*(agt.spawn(op) for op in named))

        for _ in range(8):  # a real host gets faster
            await run()
        with agt.record() as trace:
            await run()
        return trace

    with agt.using(policy=agt.StreamPoolRoundRobin(4)):
        return asyncio.run(program())


def products(n: int, streams: int, behind: bool) -> Trace:
    """Six products on some streams, each with nothing to allocate; and a short kernel behind each of them."""
    pool = [agt.create_stream() for _ in range(streams)]
    a, b = (agt.randn((n, n)).sync().share() for _ in range(2))
    places = [(agt.zeros((n, n)).sync(), agt.zeros((n,)).sync()) for _ in range(6)]

    def run() -> None:
        for i, (c, y) in enumerate(places):
            stream = pool[i % streams]
            part = c.borrow().partition(16, 16)
            agt.sgemm_naive(n, n, n, 1.0, a, b, 0.0, part).named(f"product {i}").async_on(stream)
            if behind:
                small = y.borrow().partition(256)
                agt.relu(n, small, small).named(f"short {i}").async_on(stream)

    for _ in range(8):
        run()
    agt.current_device().synchronize()
    with agt.record() as trace:
        run()
    return trace


OWN: dict[str, Callable[[], Trace]] = {
    "four batches of 768": lambda: batches(768, prepared=False),
    "four batches of 1024": lambda: batches(1024, prepared=False),
    "four batches of 1024, prepared": lambda: batches(1024, prepared=True),
    "products of 512, three streams": lambda: products(512, 3, behind=False),
    "products of 1024, two streams": lambda: products(1024, 2, behind=True),
    "products of 1024, six streams": lambda: products(1024, 6, behind=True),
}


def recorded() -> Iterator[tuple[str, Trace, Callable[[], Trace]]]:
    """Yield each recording, with its program."""
    for name in RUNS:
        if name not in NOT_MODELLED:
            yield name, Trace.load_recording(name), lambda name=name: trace_of(name)
    for name, program in OWN.items():
        path = FOLDER / f"{name}.json"
        if path.exists():
            yield name, Trace.load(path), program


class Paced(SimDevice):
    """A device whose host makes each call when the recorded one made it, and takes as long for it.

    So what is compared is the device, and not how fast Python was on one day, and with a profiler.
    """

    def __init__(self, recorded: Trace) -> None:
        work = [span for span in recorded if span.stream is not None]
        seen = NODE_UNDER_CUPTI * len(work) / len({span.stream for span in work})
        spec = SPECS["h200"]
        spec = dataclasses.replace(spec, graph_branch_us=spec.graph_branch_us + seen)
        super().__init__(spec=spec, machine=SimMachine(), stand_in_above=2**24)
        calls = sorted((s for s in recorded if s.kind == "call"), key=lambda s: s.start)
        self._first = calls[0].start
        self._calls = deque(calls)
        self._zero: float | None = None

    def call(self, name: str, us: float, rest: float = 0.0, /, **detail: object) -> int | None:
        if self.log is not None:
            if self._zero is None:
                self._zero = self.now()
            # One that was not recorded, since it cost nothing worth telling, takes what the model says.
            if self._calls and self._calls[0].name == name:
                real = self._calls.popleft()
                until = self._zero + real.start - self._first
                self.spend(max(0.0, until - self.now()))
                us = real.duration
        return super().call(name, us, rest, **detail)


@cache
def compared() -> list[Bars]:
    """All of them, on a simulated H200 with the recorded host."""
    found: list[Bars] = []
    for name, real, program in recorded():
        with agt.using(Paced(real)):
            found.append(bars(name, program(), real))
    return found


def bars(name: str, model: Trace, real: Trace) -> Bars:
    """One program: times count from the first call or work, and the same piece is held against the same."""
    pairs, missing, _ = same_work(model, real)
    assert missing == [[], []], missing
    zero, origin = (min(s.start for s in t if s.kind != "range") for t in (model, real))
    whole = real.metrics().makespan
    begin = [abs((m.start - zero) - (r.start - origin)) / whole for m, r in pairs]
    end = [abs((m.end - zero) - (r.end - origin)) / whole for m, r in pairs]
    return Bars(
        name,
        len(pairs),
        (real.metrics().overlap_fraction, model.metrics().overlap_fraction),
        (statistics.median(begin), max(begin)),
        (statistics.median(end), max(end)),
    )


def main() -> None:
    """Record the programs of this module on a GPU."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    agt.use("cuda")
    for name, program in OWN.items():
        trace = program()
        trace.save(folder / f"{name}.json")
        print(f"{name}: {trace.metrics().overlap_fraction:.0%} overlap", flush=True)
