"""What programs that nobody wrote do when, and what they're told, stays as it is, unless somebody means it.

What is right, `test_engine.py` and the laws say. A program here draws its calls to two devices, so that
streams, events, copies, kernels, graphs and collectives meet in ways that nobody has thought of.
"""

import gc
from collections.abc import Callable
from itertools import count
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from asyncgpu_tutor.traces.spans import SpanLog
from simgpu.collectives import Collective, Communicator
from simgpu.common import Caller
from simgpu.device import Device
from simgpu.errors import SimGpuError
from simgpu.graph import Graph
from simgpu.machine import Machine
from simgpu.stream import Stream

N = 64  # elements of an array
SIZE = 4 * N
ONE, LANES = (1, 1, 1), (N, 1, 1)
SOURCE = """
#define KERNEL extern "C" __global__ void
KERNEL turns(int* x, int n) { for (int k = 0; k < n; k++) x[threadIdx.x] += k; }
KERNEL gather(int* x, const int* y) { x[threadIdx.x] = y[threadIdx.x * 32 % 64]; }
KERNEL wide(int* x, int n) { if (blockIdx.x == 0) for (int k = 0; k < n; k++) x[threadIdx.x] = k; }
KERNEL add(int* x) { atomicAdd(x, 1); }
KERNEL wild(int* x) { x[threadIdx.x + 1] = 1; }
KERNEL until(int* x, volatile int* flag) { while (*flag == 0) { } x[threadIdx.x] = *flag; }
KERNEL reply(volatile int* flag, volatile int* back) { while (*flag == 0) { } *back += *flag; }
KERNEL down(int* x) { if (threadIdx.x == 0) x[0] = max(0, min(x[0], 3) - 1); }
"""
ALIKE = ("all_reduce", "all_gather", "reduce_scatter", "broadcast")


class Grouped(Caller):
    """Calls by groups, as the tutor's submissions are."""

    number: int | None = None

    def group(self) -> tuple[int | None, str]:
        return self.number, "" if self.number is None else "of a group"


def call(verb: str, *args: Any, stream: int = 0) -> Any:
    """One that is prepared."""
    return SimpleNamespace(verb=verb, args=args, stream=stream, fresh=(), named=verb[:3])


class MadeUp:
    """Two devices, and a program that a seed makes up."""

    def __init__(self, seed: int) -> None:
        self.draw, machine, self.caller = Random(seed), Machine(), Grouped()
        hostile = seed if seed % 4 == 3 else None
        self.gpus = [Device(n, ("h200", "t4")[n], machine, adversary=hostile) for n in range(2)]
        blocking = (True, True, False)
        self.streams = [[g.default_stream, *(g.create_stream(non_blocking=b) for b in blocking)]
                        for g in self.gpus]  # fmt: skip
        self.arrays = [[g.malloc(SIZE, name, None) for name in "abcd"] for g in self.gpus]
        self.hosts = [*(machine.pinned(N, np.int32) for _ in range(3)), np.zeros(N, np.int32)]
        self.flag, self.ranks = machine.pinned(N, np.int32), Communicator(self.gpus)
        self.events, self.kept = [self.gpus[0].default_stream.record()], list[Graph]()
        self.said = list[str]()
        for host in self.hosts:
            host[:] = 7
        self.flag[:] = seed % 2
        for gpu, arrays in zip(self.gpus, self.arrays, strict=True):
            for array in arrays:
                gpu.memset_async(array, 1, SIZE, gpu.default_stream)
            gpu.synchronize()
        numbers = count()
        self.logs = [SpanLog(gpu.name, numbers) for gpu in self.gpus]
        for gpu, log in zip(self.gpus, self.logs, strict=True):
            gpu.caller, gpu.recorder = self.caller, log  # type: ignore[misc] - else it's the class's

    def launch(self, gpu: Device, mine: Any, other: Any, stream: Stream) -> None:
        """Some kernel."""
        flag = gpu.map_host(self.flag, "flag")
        name, grid, args = self.draw.choice([
            ("turns", 1, (mine, 2000)), ("wide", 9000, (mine, 300)), ("gather", 1, (mine, other)),
            ("add", 40, (mine,)), ("down", 1, (mine,)), ("wild", 1, (mine,)),
            ("until", 1, (mine, flag)), ("reply", 1, (flag, gpu.map_host(self.hosts[2], "back"))),
        ])  # fmt: skip
        gpu.launch(gpu.get_function(SOURCE, name), (grid, 1, 1), LANES, args, 0, stream)

    def graph(self, gpu: Device, mine: Any, other: Any, streams: list[Stream]) -> None:
        """Two branches and a loop, as a graph, or where there are two streams, call by call."""
        body = [call("launch", gpu.get_function(SOURCE, "down"), ONE, LANES, (mine,), 0)]
        replay = gpu.prepare([
            call("memset_async", mine, 1, SIZE), call("record", 0), call("wait_event", 0, stream=1),
            call("copy_from_device_async", other, mine, SIZE, stream=1), call("record", 1, stream=1),
            call("wait_event", 1), call("decide", "while_loop", mine, [body]),
            call("copy_from_host_async", mine, self.hosts[0]),
        ])  # fmt: skip
        if len(streams) == 2:
            replay.enqueue(streams)
            return
        self.kept.append(replay.instantiate("two"))  # or the collector decides when its streams go
        self.kept[-1].launch(*streams)

    def talk(self, what: str, place: int, ranks: int) -> None:
        """A collective, to which not all may come."""
        for rank in range(ranks):
            own = self.arrays[rank][place - 1], self.arrays[rank][place]
            said = Collective(what, N // 2, np.dtype("i4"), *own)
            self.ranks.enqueue(rank, said, self.streams[rank][place])

    def step(self) -> None:
        """One call, or as many as belong together."""
        draw, n, place = self.draw, self.draw.randrange(2), self.draw.randrange(4)
        near, gpu, streams, arrays = (
            draw.random() < 0.8,
            self.gpus[n],
            self.streams[n],
            self.arrays[n],
        )
        stream, mine = streams[place], arrays[place if near else 0]
        other, there = arrays[(place + 1) % 4 if near else 2], self.arrays[1 - n][place]
        host, event, ends = (
            draw.choice(self.hosts),
            draw.choice(self.events),
            (gpu, self.gpus[1 - n]),
        )
        ways: list[Callable[[], object]] = [
            lambda: gpu.memset_async(mine, 1, SIZE, stream),
            lambda: gpu.copy_from_host_async(mine, host, stream),
            lambda: gpu.copy_to_host_async(host, mine, stream),
            lambda: gpu.copy_from_device_async(mine, other, SIZE, stream),
            lambda: gpu.enqueue_peer_copy(there, mine, SIZE, ends, stream),
            lambda: self.events.append(stream.record()),
            *[lambda: stream.wait_event(event)] * 2,
            lambda: self.graph(gpu, mine, other, [stream]),
            lambda: self.graph(gpu, mine, other, [stream, streams[place - 1]]),
            lambda: draw.choice((event, stream, gpu)).synchronize(),
            lambda: gpu.work(draw.uniform(1, 30), "job"),
            lambda: setattr(self.caller, "number", draw.choice((None, len(self.said)))),
            lambda: draw.choice((host, self.flag)).fill(len(self.said)),
            *[lambda: self.talk(draw.choice(ALIKE), place, 2 if near else 1)] * 2,
            *[lambda: self.launch(gpu, mine, other, stream)] * 5,
        ]
        draw.choice(ways)()

    def run(self) -> None:
        """All of it; what a call raises is told, and the next one comes."""
        for ask in (*[self.step] * 60, *(g.synchronize for g in self.gpus), self.gpus[0].settle):
            try:
                ask()
            except SimGpuError as error:
                self.said.append(f"{type(error).__name__}: {error}")


@pytest.mark.parametrize("seed", range(8))
def test_a_made_up_program(seed: int, tell: Callable[[str], None]) -> None:
    program = MadeUp(seed)
    gc.disable()  # which would decide when the streams of a refused graph go
    try:
        program.run()
    finally:
        gc.enable()
    for span in sorted((s for log in program.logs for s in log.spans), key=lambda span: span.id):
        facts = {k: v for k, v in span.detail.items() if k not in ("bytes", "grid", "block")}
        where = f"{span.device} {span.stream}" if span.on_device else span.kind
        time = f"{span.start:.2f} to {span.end:.2f} after {span.after}"
        program.said.append(f"{span.id} {where} {span.name} {time} {facts or ''}".rstrip())
    left = [[x.cells.data[:8].tolist() for x in arrays] for arrays in program.arrays]
    tell("\n".join([*program.said, f"{left}"]))
