"""The server of docs/from_pytorch.md behind uvicorn, with clients in other processes.

``python benchmarks/over_http.py`` needs a GPU, PyTorch, Starlette and uvicorn. It starts four servers in
turn: the page's, the same with threads instead of the await, one whose handlers each call the model in a
thread of Starlette's pool, and one whose handlers call it where they stand. Clients keep their connections,
and ask again as soon as they have their answer. Every 5 ms somebody else asks for /health, which tells how
long a server's loop is busy with other things.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import re
import socket
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

CLIENTS, PROCESSES = 200, 4
PROCESS = multiprocessing.get_context("spawn")


class Alone:
    """Each request by itself, in place of the page's service."""

    def __init__(self, model: Any, pool: bool) -> None:
        self.model, self.pool = model, pool

    def answer(self, x: Any) -> Any:
        """Copy, compute, copy back and wait."""
        import torch

        with torch.inference_mode():
            return self.model(x[None].cuda())[0].cpu()

    async def __call__(self, x: Any) -> Any:
        """As the page's service is called."""
        from starlette.concurrency import run_in_threadpool

        return await run_in_threadpool(self.answer, x) if self.pool else self.answer(x)

    async def run(self) -> None:
        """Nothing runs beside the handlers."""
        await asyncio.Event().wait()

    def healthy(self) -> bool:
        """Whether it answers."""
        return True


def serve(way: str, port: int) -> None:
    """Run one server."""
    import uvicorn
    from torch_service import PAGE, in_threads

    names: dict[str, Any] = {"__name__": "answers"}
    text = PAGE.with_name("answers.py").read_text("utf-8")
    exec(compile(text, "answers.py", "exec", dont_inherit=True), names)
    service = names["Service"]
    if way == "threads":
        names["Service"] = lambda *given: in_threads(service(*given))
    elif way != "service":
        names["Service"] = lambda model, *_: Alone(model, way == "pool")
    options: Any = {"loop": "asyncio", "http": "h11", "log_level": "warning", "access_log": False}
    uvicorn.run(names["app"], port=port, **options)


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


def measured(port: int, seconds: float) -> dict[str, float]:
    """One server under load."""
    post = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 16384\r\n\r\n" + bytes(16384)
    health = b"GET /health HTTP/1.1\r\nhost: a\r\n\r\n"
    with ProcessPoolExecutor(PROCESSES + 1, PROCESS) as pool:
        asked = (port, CLIENTS // PROCESSES, post, seconds, 0.0)
        loads = [pool.submit(load, *asked) for _ in range(PROCESSES)]
        beats = pool.submit(load, port, 1, health, seconds, 0.005).result()
        took = [ms for each in loads for ms in each.result()]
    cuts, late = (statistics.quantiles(each, n=100, method="inclusive") for each in (took, beats))
    row = {"per_second": len(took) / seconds, "p50_ms": cuts[49], "p95_ms": cuts[94]}
    row |= {"health_p50_ms": late[49], "health_p99_ms": late[98], "health_most_ms": max(beats)}
    return {name: round(value, 2) for name, value in row.items()}


def main() -> None:
    """Start all servers, and then measure one after the other."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=3.0, help="of each run")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--ways", nargs="*", default=["service", "threads", "pool", "blocks"])
    chosen = options.parse_args()
    ports = {way: 8123 + at for at, way in enumerate(chosen.ways)}
    servers = [PROCESS.Process(target=serve, args=each, daemon=True) for each in ports.items()]
    for server in servers:
        server.start()
    for server, port in zip(servers, ports.values(), strict=True):
        while server.is_alive() and socket.socket().connect_ex(("127.0.0.1", port)):
            time.sleep(0.1)
    for number in range(chosen.rounds):
        for way, port in ports.items():
            print({"way": way, "round": number, **measured(port, chosen.seconds)}, flush=True)
    for server in servers:
        server.terminate()


if __name__ == "__main__":
    main()
