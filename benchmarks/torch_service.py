"""The service of docs/from_pytorch.md under 200 clients, and how late the await of a PyTorch stream is.

``python benchmarks/torch_service.py`` needs a GPU and PyTorch. It runs the page's own listing, the same with
a pool of threads instead of the await, and a handler that blocks, in turn, several times. A heartbeat of each
loop tells for how long nothing else had a turn: a timer that is late is late by that.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import re
import statistics
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
import trio
import uvloop

import asyncgpu_tutor as agt

PAGE = Path(__file__).resolve().parents[1] / "docs" / "from_pytorch.md"
CLIENTS, WIDTH, BEAT_S = 200, 4096, 0.001
EACH = 22  # waits, of which the first two don't count
Handler = Callable[[Any], Awaitable[Any]]


def page_names() -> dict[str, Any]:
    """What the page's first listings define, and its service."""
    listings = re.findall(r"(?ms)^```python\n(.*?)^```", PAGE.read_text("utf-8"))
    names: dict[str, Any] = {"__name__": "page"}
    for listing in listings:
        if listing.startswith("import asyncio") or "class Service" in listing:
            exec(compile(listing, PAGE.name, "exec"), names)
    return names


def model_of(layers: int) -> Any:
    """A network whose batches keep the GPU busy for some time."""
    parts: list[Any] = []
    for _ in range(layers):
        parts += [torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU()]
    return torch.nn.Sequential(*parts, torch.nn.Linear(WIDTH, 10)).cuda().eval()


class Heart:
    """Beats every millisecond, and notes how late it was, in us."""

    def __init__(self) -> None:
        self.late: list[float] = []
        self._loop = asyncio.get_running_loop()
        self._next = self._loop.call_later(BEAT_S, self._beat, time.perf_counter() + BEAT_S)

    def _beat(self, due: float) -> None:
        now = time.perf_counter()
        self.late.append((now - due) * 1e6)
        self._next = self._loop.call_later(BEAT_S, self._beat, now + BEAT_S)

    def stop(self) -> None:
        """No more beats."""
        self._next.cancel()


async def under_load(handler: Handler, seconds: float, collect: bool) -> dict[str, float]:
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
    if collect:
        gc.unfreeze()
    else:
        gc.collect()
        gc.freeze()  # as the page says
    clients = [asyncio.create_task(client()) for _ in range(CLIENTS)]
    await asyncio.sleep(0.3)  # memory pools grow, and so on
    took.clear()
    heart, begin = Heart(), time.perf_counter()
    await asyncio.sleep(seconds)
    heart.stop()
    lasted, count, late = time.perf_counter() - begin, len(took), heart.late
    asked = False
    await asyncio.gather(*clients)
    cuts = statistics.quantiles(took, n=100, method="inclusive")
    beats = statistics.quantiles(late * 2, n=100, method="inclusive")  # one late beat counts, too
    return {
        "per_second": count / lasted,
        "p50_ms": cuts[49],
        "p95_ms": cuts[94],
        "late_p99_us": beats[98],
        "late_most_us": max(late),
    }


def in_threads(service: Any) -> Any:
    """The same, where threads block instead of the loop's await."""
    pool = ThreadPoolExecutor(2)

    async def answered(rows: Any, lane: Any) -> Any:
        def blocking() -> Any:
            answers = service.enqueue(rows, lane)
            service.computing.synchronize()
            return answers

        return await asyncio.get_running_loop().run_in_executor(pool, blocking)

    service.answers = answered
    return service


async def served(
    names: dict[str, Any],
    model: Any,
    seconds: float,
    way: Any = None,
    *,
    collect: bool = False,
    patience_us: float | None = None,
) -> Any:
    """One run of the service, or of what `way` makes of it; also with another patience than the page's."""
    device = agt.current_device()
    before = device.patience_us
    device.patience_us = patience_us or before
    service = names["Service"](model, (WIDTH,))
    inner, took = service.enqueue, list[float]()

    def enqueue(*args: Any) -> Any:
        start = time.perf_counter()
        answers = inner(*args)
        took.append((time.perf_counter() - start) * 1e6)
        return answers

    service.enqueue = enqueue
    running = asyncio.create_task((way(service) if way else service).run())
    try:
        found = await under_load(service, seconds, collect)
        return {**found, "enqueue_us": statistics.median(took), "batches": len(took)}
    finally:
        device.patience_us = before
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def blocked(model: Any, seconds: float) -> Any:
    """Each request by itself, by a handler that waits for the GPU where it stands."""

    async def handler(x: Any) -> Any:
        await asyncio.sleep(0)  # as a request comes from a socket
        with torch.inference_mode():
            return model(x[None].cuda()).argmax().item()

    return await under_load(handler, seconds, False)


def all_served(layers: int, seconds: float, rounds: int) -> list[dict[str, Any]]:
    """Each way in turn."""
    names, model = page_names(), model_of(layers)
    rows: list[dict[str, Any]] = []
    for number in range(rounds):
        for told, run in (
            ("await", lambda: served(names, model, seconds)),
            ("threads", lambda: served(names, model, seconds, in_threads)),
            (
                "await, by a thread after 2 ms",
                lambda: served(names, model, seconds, patience_us=2000.0),
            ),
            ("await, without gc.freeze", lambda: served(names, model, seconds, collect=True)),
            ("blocks", lambda: blocked(model, seconds)),
        ):
            row = {"way": told, "layers": layers, "round": number, **asyncio.run(run())}
            rows.append(row)
            print(
                {k: round(v, 1) if isinstance(v, float) else v for k, v in row.items()}, flush=True
            )
    return rows


# ---------------------------------------------------------------------- one wait
def lateness(rounds: int = 20) -> list[dict[str, Any]]:
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

    async def with_others() -> list[float]:
        hearts = [Heart() for _ in range(20)]
        try:
            return await awaiting()
        finally:
            for heart in hearts:
                heart.stop()

    ways: dict[str, list[float]] = {}
    for _ in range(rounds):
        for way, run in (
            ("synchronize", lambda: [blocking() for _ in range(EACH)]),
            ("await, asyncio", lambda: asyncio.run(awaiting())),
            ("await, asyncio, 20 timers", lambda: asyncio.run(with_others())),
            ("await, uvloop", lambda: uvloop.run(awaiting())),
            ("await, trio", lambda: trio.run(awaiting)),
        ):
            ways.setdefault(way, []).extend(run()[2:])
    rows: list[dict[str, Any]] = []
    for way, us in ways.items():
        cuts = statistics.quantiles(us, n=20)
        rows.append({"way": way, "median_us": cuts[9], "p95_us": cuts[18], "work_us": 1000})
        print(f"{way:26} median {cuts[9]:7.1f} us, p95 {cuts[18]:7.1f} us")
    return rows


def main() -> None:
    """Print all, and write it where it's asked for."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=3.0, help="of each run")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--layers", type=int, nargs="*", default=[2, 16])
    options.add_argument("--out", type=Path)
    chosen = options.parse_args()
    agt.use("cuda")
    found: dict[str, Any] = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
    found["waiting"] = lateness()
    found["serving"] = []
    for layers in chosen.layers:
        found["serving"] += all_served(layers, chosen.seconds, chosen.rounds)
    if chosen.out:
        chosen.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
