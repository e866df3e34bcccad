"""The server of docs/from_pytorch.md behind uvicorn, with clients in other processes.

``python benchmarks/over_http.py`` needs a GPU, PyTorch, Starlette and uvicorn. It starts a server for each
way: the page's, with threads, in one lane, without graphs and with the await; and without batches, handlers
that await their own answer, that call the model in a thread of Starlette's pool, and that call it where they
stand. Clients keep their connections, and ask again as soon as they have their answer: first one client by
itself, then 200. Every 5 ms somebody else asks for /health, which tells how long a server's loop is busy with
other things.
"""

import argparse
import asyncio
import json
import multiprocessing
import re
import socket
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import Any

CLIENTS, PROCESSES = 200, 4
PROCESS = multiprocessing.get_context("spawn")
OF_THE_PAGE = {
    "threads": "InThreads",
    "one lane": "InThreads",
    "no graphs": "Uncaptured",
    "await": "Awaited",
}
WAYS = (*OF_THE_PAGE, "awaits", "pool", "blocks")
BODY = json.dumps({"x": [at / 64 for at in range(64)]}).encode()
POST = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n%s" % (len(BODY), BODY)
HEALTH = b"GET /health HTTP/1.1\r\nhost: a\r\n\r\n"


class Alone:
    """Each request by itself, in place of the page's service."""

    def __init__(self, model: Any, way: str) -> None:
        self.model, self.way = model, way

    def enqueued(self, x: Any) -> Any:
        """The answer, to be written by the GPU."""
        import torch

        with torch.inference_mode():
            y = self.model(x[None].to("cuda", non_blocking=True))
            return y[0].to("cpu", non_blocking=True)

    def blocking(self, x: Any) -> Any:
        """The answer, after waiting for it."""
        import torch

        y = self.enqueued(x)
        torch.cuda.current_stream().synchronize()
        return y

    async def __call__(self, x: Any) -> Any:
        import torch
        from starlette.concurrency import run_in_threadpool

        import asyncgpu_tutor as agt

        if self.way == "pool":
            return await run_in_threadpool(self.blocking, x)
        if self.way == "blocks":
            return self.blocking(x)
        y = self.enqueued(x)
        await agt.reached(torch.cuda.current_stream())
        return y

    async def run(self) -> None:
        await asyncio.Event().wait()  # nothing runs beside the handlers

    def healthy(self) -> bool:
        return True


def serve(way: str, port: int) -> None:
    """Run one server."""
    import uvicorn
    from torch_service import page_names

    names, page = page_names(), sys.modules["answers"]
    page.LANES = 1 if way == "one lane" else page.LANES
    kind = OF_THE_PAGE.get(way)
    page.SERVICE = names[kind] if kind else lambda model, *_: Alone(model, way)
    options: Any = {"loop": "asyncio", "http": "h11", "log_level": "warning", "access_log": False}
    uvicorn.run(page.app, port=port, **options)


async def ask(reader: Any, writer: Any, request: bytes) -> None:
    """One request, and its answer."""
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    await reader.readexactly(int(re.findall(rb"content-length: (\d+)", head)[0]))


async def clients(port: int, number: int, request: bytes, seconds: float, pause: float) -> Any:
    """Milliseconds of each answer."""
    took: list[float] = []
    begin = time.perf_counter() + 0.5

    async def client() -> None:
        ends = await asyncio.open_connection("127.0.0.1", port)
        while (start := time.perf_counter()) < begin + seconds:
            await ask(*ends, request)
            if start > begin:
                took.append((time.perf_counter() - start) * 1e3)
            await asyncio.sleep(pause)
        ends[1].close()

    await asyncio.gather(*(client() for _ in range(number)))
    return took


def load(*given: Any) -> Any:
    """Clients in a process of their own."""
    return asyncio.run(clients(*given))


def measured(pool: ProcessPoolExecutor, port: int, number: int, seconds: float) -> dict[str, float]:
    """One server, asked by so many clients."""
    parts = min(PROCESSES, number)
    asked = (port, number // parts, POST, seconds, 0.0)
    loads = [pool.submit(load, *asked) for _ in range(parts)]
    beats = pool.submit(load, port, 1, HEALTH, seconds, 0.005).result()
    took = [ms for each in loads for ms in each.result()]
    cuts, late = (statistics.quantiles(each, n=100, method="inclusive") for each in (took, beats))
    row = {"clients": number, "per_second": len(took) / seconds}
    row |= {"p50_ms": cuts[49], "p95_ms": cuts[94], "p99_ms": cuts[98]}
    row |= {"health_p50_ms": late[49], "health_p99_ms": late[98], "health_most_ms": max(beats)}
    return {name: round(value, 2) for name, value in row.items()}


def main() -> None:
    """Start all servers, and then measure one after the other."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=3.0, help="of each run")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--ways", nargs="*", default=WAYS)
    options.add_argument("--clients", nargs="*", type=int, default=(1, CLIENTS))
    chosen = options.parse_args()
    ports = {way: 8123 + at for at, way in enumerate(chosen.ways)}
    servers = [PROCESS.Process(target=serve, args=each, daemon=True) for each in ports.items()]
    for server in servers:
        server.start()
    for server, port in zip(servers, ports.values(), strict=True):
        while server.is_alive() and socket.socket().connect_ex(("127.0.0.1", port)):
            time.sleep(0.1)
    with ProcessPoolExecutor(PROCESSES + 1, PROCESS) as pool:
        for clients, number in product(chosen.clients, range(chosen.rounds)):
            for way, port in ports.items():
                row = measured(pool, port, clients, chosen.seconds)
                print({"way": way, "round": number, **row}, flush=True)
    for server in servers:
        server.terminate()


if __name__ == "__main__":
    main()
