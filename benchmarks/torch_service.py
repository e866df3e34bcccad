"""The service of docs/from_pytorch.md under 200 clients, its graphs, and how late the await of a stream is.

``python benchmarks/torch_service.py`` needs a GPU, PyTorch and Starlette. It runs the page's own files, with
the await and with threads, in two lanes and in one, and then a handler that blocks, and a loop with nothing
to do, in turn, several times.
A heartbeat of each loop tells how late a timer is. The loop's selector is asked once a turn, so it tells how
long each turn lasted: by the clock, and by the CPU time of the loop's thread. Where a machine takes the CPU
away, or another thread has the interpreter, the first is long and the second is not.
"""

import argparse
import asyncio
import gc
import itertools
import selectors
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
import trio
import uvloop

import asyncgpu_tutor as agt

DOCS = Path(__file__).resolve().parents[1] / "docs"
CLIENTS, WIDTH, BEAT_S = 200, 4096, 0.001
EACH = 22  # waits, of which the first two don't count
Handler = Callable[[Any], Awaitable[Any]]


def page_names() -> dict[str, Any]:
    """What the page's two files define."""
    sys.path.insert(0, str(DOCS))
    return {**vars(import_module("answers")), **vars(import_module("answers_await"))}


def model_of(layers: int) -> Any:
    """A network whose batches keep the GPU busy for some time."""
    parts: list[Any] = []
    for _ in range(layers):
        parts += [torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU()]
    return torch.nn.Sequential(*parts, torch.nn.Linear(WIDTH, 10)).cuda().eval()


class Turns(selectors.DefaultSelector):
    """Notes how long each turn of its loop lasted, and how long the thread ran, in us."""

    def __init__(self) -> None:
        super().__init__()
        self.lasted: list[float] = []  # no pairs: these would make work for the garbage collector
        self.ran: list[float] = []
        self._clock, self._cpu = time.perf_counter(), time.thread_time()

    def select(self, timeout: float | None = None) -> Any:
        """Wait for sockets and timers, as a loop does between two turns."""
        self.lasted.append((time.perf_counter() - self._clock) * 1e6)
        self.ran.append((time.thread_time() - self._cpu) * 1e6)
        found = super().select(timeout)
        self._clock, self._cpu = time.perf_counter(), time.thread_time()
        return found


async def beating(turns: Turns, seconds: float) -> dict[str, float]:
    """How late a timer of a millisecond is, and how long turns last, for so long."""
    loop, late = asyncio.get_running_loop(), list[float]()

    def beat(due: float) -> None:
        nonlocal timer
        now = time.perf_counter()
        late.append((now - due) * 1e6)
        timer = loop.call_later(BEAT_S, beat, now + BEAT_S)

    await asyncio.sleep(0)  # what comes before belongs to another turn
    turns.lasted.clear()
    turns.ran.clear()
    timer = loop.call_later(BEAT_S, beat, time.perf_counter() + BEAT_S)
    await asyncio.sleep(seconds)
    timer.cancel()
    found = {"late_p99_us": sorted(late)[len(late) * 99 // 100], "late_most_us": max(late)}
    return {**found, "turn_most_us": max(turns.lasted), "turn_ran_most_us": max(turns.ran)}


async def idle(turns: Turns, seconds: float) -> dict[str, float]:
    """A loop in which a task does nothing but yield, as an await does that looks for the end itself."""

    async def yields() -> None:
        for _ in itertools.count():
            await asyncio.sleep(0)

    gc.collect()
    gc.freeze()
    yielding = asyncio.create_task(yields())
    found = await beating(turns, seconds)
    yielding.cancel()
    return found


async def under_load(handler: Handler, turns: Turns, seconds: float) -> dict[str, float]:
    """Clients that ask again as soon as they have their answer."""
    x = torch.rand(WIDTH)
    took: list[float] = []
    asked = True

    async def client() -> None:
        while asked:
            start = time.perf_counter()
            await handler(x)
            took.append((time.perf_counter() - start) * 1e3)

    await handler(x)
    gc.collect()
    gc.freeze()  # as the page does
    clients = [asyncio.create_task(client()) for _ in range(CLIENTS)]
    await asyncio.sleep(0.3)  # memory pools grow, and so on
    took.clear()
    begin = time.perf_counter()
    beats = await beating(turns, seconds)
    lasted, count = time.perf_counter() - begin, len(took)
    asked = False
    await asyncio.gather(*clients)
    cuts = statistics.quantiles(took, n=100, method="inclusive")
    return {"per_second": count / lasted, "p50_ms": cuts[49], "p95_ms": cuts[94], **beats}


def threads_wait(service: Any) -> Any:
    """The same, where the loop enqueues, and threads wait instead of our await: a row of the page's table."""

    async def process(rows: Any, lane: Any) -> Any:
        y, end = service.enqueue(rows, lane), torch.cuda.Event(blocking=True)
        end.record(lane.stream)
        await asyncio.to_thread(end.synchronize)
        return y.clone()

    service.process = process
    return service


async def served(make: Callable[[], Any], turns: Turns, seconds: float, way: Any = None) -> Any:
    """One run of a service, or of what `way` makes of it."""
    service = make()
    inner, took = service.enqueue, list[float]()

    def enqueue(*args: Any) -> Any:
        start = time.perf_counter()
        answers = inner(*args)
        took.append((time.perf_counter() - start) * 1e6)
        return answers

    service.enqueue = enqueue
    running = asyncio.create_task((way(service) if way else service).run())
    try:
        found = await under_load(service, turns, seconds)
        return {**found, "enqueue_us": statistics.median(took), "batches": len(took)}
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def blocked(model: Any, turns: Turns, seconds: float) -> Any:
    """Each request by itself, by a handler that waits for the GPU where it stands."""

    async def handler(x: Any) -> Any:
        await asyncio.sleep(0)  # as a request comes from a socket
        with torch.inference_mode():
            return model(x[None].cuda()).argmax().item()

    return await under_load(handler, turns, seconds)


def all_served(
    layers: int, seconds: float, rounds: int, only: Collection[str] = ()
) -> list[dict[str, Any]]:
    """Each way in turn, or some of them."""
    names, model = page_names(), model_of(layers)
    rows: list[dict[str, Any]] = []

    def service(way: Any = None, kind: str = "Awaited", **options: Any) -> Callable[[Turns], Any]:
        make = partial(names[kind], model, (WIDTH,), **options)
        return lambda turns: served(make, turns, seconds, way)

    ways: dict[str, Callable[[Turns], Any]] = {
        "await": service(),
        "threads wait": service(threads_wait),
        "threads": service(kind="InThreads"),
        "await, one lane": service(lanes=1),
        "threads, one lane": service(kind="InThreads", lanes=1),
        "await, batches of one": service(max_batch=1),
        "blocks": lambda turns: blocked(model, turns, seconds),
        "idle": lambda turns: idle(turns, seconds),
    }
    for number in range(rounds):
        for told, make in ways.items():
            if only and told not in only:
                continue
            turns = Turns()
            with asyncio.Runner(loop_factory=partial(asyncio.SelectorEventLoop, turns)) as runner:
                found = runner.run(make(turns))
            row = {"way": told, "layers": layers, "round": number, **found}
            rows.append(row)
            shown = {k: round(v, 1) if isinstance(v, float) else v for k, v in row.items()}
            print(shown, flush=True)
    return rows


# ---------------------------------------------------------------------- by itself
def graphs(rounds: int = 100) -> dict[tuple[str, int], float]:
    """Milliseconds of a run of each of the page's graphs, as PyTorch multiplies by default and in TF32."""
    names, took, said = page_names(), dict[tuple[str, int], float](), list[Any]()
    x = names["example"](32)
    for precision in ("highest", "high"):
        torch.set_float32_matmul_precision(precision)
        (lane,) = names["Lanes"](names["model"], names["SHAPE"], lanes=1).lanes
        lane.x.copy_(x)
        for size, graph, _ in lane.graphs:
            ends = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(rounds)]
            with torch.inference_mode(), torch.cuda.stream(lane.stream):
                for begin, end in ends:
                    begin.record()
                    graph.replay()
                    end.record()
            lane.stream.synchronize()
            took[precision, size] = statistics.median(b.elapsed_time(e) for b, e in ends)
        said.append(lane.graphs[-1][2].clone())
    torch.set_float32_matmul_precision("highest")
    apart = ((said[1] - said[0]).abs().max() / said[0].abs().max()).item()
    print({"graphs_ms": took, "TF32 changes answers by at most": f"{apart:.1e} of the largest"})
    return took


def lateness(rounds: int = 20) -> dict[str, list[float]]:
    """Time from before the work until somebody knows of its end, for about 1 ms of it."""
    stream = torch.cuda.Stream()
    cycles = 2_000_000
    for _ in range(3):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        with torch.cuda.stream(stream):
            begin.record()
            torch.cuda._sleep(cycles)
            end.record()
        stream.synchronize()
        cycles = int(cycles / begin.elapsed_time(end))

    def start() -> float:
        begin = time.perf_counter()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(cycles)
        return begin

    def blocking() -> float:
        begin = start()
        stream.synchronize()
        return (time.perf_counter() - begin) * 1e6

    async def awaiting() -> list[float]:
        found: list[float] = []
        for _ in range(EACH):
            begin = start()
            await agt.reached(stream)
            found.append((time.perf_counter() - begin) * 1e6)
        return found

    ways: dict[str, list[float]] = {}
    for _ in range(rounds):
        for way, run in (
            ("synchronize", lambda: [blocking() for _ in range(EACH)]),
            ("await, asyncio", lambda: asyncio.run(awaiting())),
            ("await, uvloop", lambda: uvloop.run(awaiting())),
            ("await, trio", lambda: trio.run(awaiting)),
        ):
            ways.setdefault(way, []).extend(run()[2:])
    for way, us in ways.items():
        cuts = statistics.quantiles(us, n=20)
        print(f"{way:26} median {cuts[9]:7.1f} us, p95 {cuts[18]:7.1f} us")
    return ways


def main() -> None:
    """Measure and print all."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=3.0, help="of each run")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--layers", type=int, nargs="*", default=[2, 16])
    options.add_argument("--ways", nargs="*", default=[], help="all by default")
    chosen = options.parse_args()
    agt.use("cuda")
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__)
    lateness()
    graphs()
    for layers in chosen.layers:
        all_served(layers, chosen.seconds, chosen.rounds, chosen.ways)


if __name__ == "__main__":
    main()
