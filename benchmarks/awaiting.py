"""Kernels that await the host: calls joined, limited, dropped, asked for ahead; and each service's cost.

``python benchmarks/awaiting.py`` needs a GPU. With ``--device sim`` it runs where there is none: then the
times are the model's. Each wait of these kernels is bounded.
"""

import argparse
import asyncio
import contextlib
import io
import random
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import asyncgpu_tutor as agt

SOURCE = Path(__file__).with_name("awaiting.cu").read_text("utf-8")


def kernels() -> dict[str, agt.Kernel]:
    """All of them, by name."""
    names = ("ways", "storm", "hasty", "pieces", "service")
    return {name: agt.Kernel(SOURCE, name) for name in names}


def pinned(size: int, dtype: Any, value: int = 0) -> Any:
    """Memory for both sides."""
    return agt.pin(np.full(size, value, dtype))


async def timed(host: Any, op: Any) -> float:
    """Microseconds of a run."""
    device = agt.current_device()
    start = device.now()
    await host.run(op)
    return device.now() - start


async def joined(made: dict[str, agt.Kernel], us: float, times: int) -> None:
    """One call, two after each other, and two joined, against a handler that takes so long."""

    async def answer(call: Any) -> int:
        await agt.sleep(us)
        return int(call.a)

    took: dict[int, float] = {}
    for way in (1, 2, 3):
        failed = pinned(1, np.int32)
        async with agt.hostcalls({16: answer}) as host:
            args = *host.arrays, way, times, agt.mapped(failed)
            runs = [await timed(host, made["ways"](*args, grid=1, block=1)) for _ in range(3)]
        assert failed[0] == 0
        took[way] = min(runs) / times
    one, two, both = took.values()
    print(
        f"handler of {us:4.0f} us: one {one:.1f}, two after each other {two:.1f}, two joined {both:.1f} us: "
        f"joined is {both / one:.2f} times one",
        flush=True,
    )


async def storm(
    made: dict[str, agt.Kernel], blocks: int, each: int, leaves_after: int | None
) -> None:
    """Requests from many blocks, four futures at a time, with delays, refusals, and a host that may leave."""
    delays, seen = random.Random(3), Counter[tuple[int, int]]()

    async def answer(call: Any) -> int:
        seen[call.a, call.b] += 1
        if leaves_after is not None and len(seen) > leaves_after:
            raise ConnectionError("the host goes home")
        for _ in range(delays.randrange(3)):
            await agt.sleep(delays.choice([0, 5, 20]))
        if (call.a + call.b) % 10 == 0:
            raise agt.errors.CallRefusedError(7)
        return 10_000 + 1000 * call.a + call.b

    out = pinned(blocks * each, np.uint64)
    start = time.perf_counter()
    try:
        async with agt.hostcalls({16: answer}, packets=256) as host:
            await host.run(made["storm"](*host.arrays, each, agt.mapped(out), grid=blocks, block=1))
    except ConnectionError:
        assert leaves_after is not None
    block, k = np.indices((blocks, each))
    wanted = np.where((block + k) % 10 == 0, 1007, 10_000 + 1000 * block + k)
    right, gone = int((out == wanted.ravel()).sum()), int(np.isin(out, (0, 2000)).sum())
    twice = sum(count > 1 for count in seen.values())
    print(
        f"{blocks * each} requests from {blocks} blocks by futures: {right} answered right, {gone} told that "
        f"the host had gone, {blocks * each - right - gone} wrong; {len(seen)} came to the host, "
        f"{twice} of them twice; {time.perf_counter() - start:.2f} s",
        flush=True,
    )
    assert twice == 0
    assert right + gone == blocks * each
    assert leaves_after is not None or gone == 0


async def hasty(made: dict[str, agt.Kernel], times: int, clocks: int, packets: int) -> None:
    """Calls with a limit of which about half lose."""
    delays, seen = random.Random(4), Counter[int]()

    async def answer(call: Any) -> int:
        seen[call.a] += 1
        await agt.sleep(delays.choice([0, 200]))
        return 3 * call.a

    won, found, wrong = pinned(1, np.int32), pinned(1, np.int32), pinned(1, np.uint64)
    async with agt.hostcalls({16: answer}, packets=packets) as host:
        args = (times, clocks, *map(agt.mapped, (won, found, wrong)))
        await host.run(made["hasty"](*host.arrays, *args, grid=1, block=1))
    print(
        f"{times} calls with a limit of {clocks} clocks: {won[0]} won, {wrong[0]} of those wrong; the host "
        f"had {len(seen)} of them, {sum(n > 1 for n in seen.values())} twice; "
        f"{found[0]} of {packets} packets in the end",
        flush=True,
    )
    assert (int(found[0]), int(wrong[0])) == (packets, 0)
    assert max(seen.values()) == 1


async def prefetch(made: dict[str, agt.Kernel], number: int, work: int, us: float) -> None:
    """Pieces that are read and computed in turn, and those of which the next is read meanwhile."""

    async def answer(call: Any) -> int:
        await agt.sleep(us)
        call.data[0] = 1
        return 0

    def at_once(call: Any) -> int:
        call.data[0] = 1
        return 0

    async def run(handler: Any, steps: int, ahead: int) -> float:
        out = pinned(1, np.float32)
        async with agt.hostcalls({16: handler}) as host:
            runs: list[float] = []
            for _ in range(3):
                args = (number, steps, ahead, agt.mapped(out))
                runs.append(await timed(host, made["pieces"](*host.arrays, *args, grid=1, block=1)))
        assert out[0] > 0
        return min(runs)

    one, ahead = await run(answer, work, 0), await run(answer, work, 1)
    reading, computing = await run(answer, 0, 0), await run(at_once, work, 1)
    hidden = (one - ahead) / reading
    print(
        f"{number} pieces of {computing / number:.0f} us, a host that takes {reading / number:.0f} us: "
        f"in turn {one:.0f} us, read ahead {ahead:.0f} us: {100 * hidden:.0f} % of the host's time is hidden",
        flush=True,
    )


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send back what comes."""
    with contextlib.suppress(ConnectionError, asyncio.CancelledError):
        while got := await reader.read(256):
            writer.write(got)
            await writer.drain()
    writer.close()


async def services(made: dict[str, agt.Kernel], times: int) -> None:
    """Microseconds of a call of each service, from one thread, with its share of the launch and the wait."""
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "f").write_bytes(bytes(4096))
        few = min(times, 60)
        rows: list[tuple[str, int, int, tuple[int, int, int], bytes]] = [
            ("time", 1, times, (0, 0, 0), b""),
            ("random bits", 2, times, (0, 0, 0), b""),
            ("print, 8 bytes", 3, times, (8, 0, 0), b"well...\n"),
            ("a Python function", 16, times, (1, 0, 0), b""),
            ("open by name", 6, few, (1, 0, 0), b"f"),
            ("read 256 bytes", 4, times, (0, 0, 256), b""),
            ("write 256 bytes", 5, times, (0, 0, 256), b""),
            ("connect", 8, few, (len(address), 0, 0), address.encode()),
            ("send 64 bytes", 9, times, (0, 0, 64), b""),
            ("receive up to 64 bytes", 10, times, (0, 0, 64), b""),
        ]
        for label, which, count, args, text in rows:
            numbers = pinned(max(count, 1), np.int64)
            given: Any = {"packets": 4, "folder": folder, "addresses": [address]}
            async with agt.hostcalls({16: lambda call: call.a}, **given) as host:

                async def call(
                    which: int, count: int, args: Any, text: bytes, numbers: Any = numbers
                ) -> float:
                    bytes_ = await agt.h2d(agt.pin(np.frombuffer(text or b" ", np.uint8)))
                    more = (which, count, *args, bytes_, len(text), agt.mapped(numbers))
                    return await timed(host, made["service"](*host.arrays, *more, grid=1, block=1))

                with contextlib.redirect_stdout(io.StringIO()):
                    if which in (4, 5):
                        await call(6, 1, (1, which - 4, 0), b"f")
                    if which in (9, 10):
                        await call(8, 1, (len(address), 0, 0), address.encode())
                    if which == 10:  # as much as is received below
                        await call(9, count, (0, 0, 64), b"")
                    us = await call(which, count, args, text) / count
                assert which == 2 or numbers[count - 1] >= 0, (label, numbers[:3])
            print(f"{label:26s} {us:9.2f} us a call", flush=True)
    server.close()


def patience(made: dict[str, agt.Kernel]) -> None:
    """How long a call waits for a host that blocks."""

    async def main(name: str, *args: Any) -> None:
        start = agt.current_device().now()
        try:
            async with agt.hostcalls({16: lambda call: 1}, packets=4) as host:
                made[name](*host.arrays, *args, grid=1, block=1).sync()
        except agt.errors.HostcallError:
            pass
        took = (agt.current_device().now() - start) / 1e6
        print(f"{name}: gave up after {took:.2f} s", flush=True)

    none = agt.mapped(pinned(1, np.int64))
    empty = agt.h2d(agt.pin(np.zeros(1, np.uint8))).sync().share()
    asyncio.run(main("service", 16, 1, 0, 0, 0, empty, 0, none))
    asyncio.run(main("ways", 1, 1, agt.mapped(pinned(1, np.int32))))


async def main(name: str) -> None:
    """Print all of it."""
    device = agt.use(name)
    print(device)
    simulated = device.clock == "simulated"
    made = kernels()
    for us in (50, 200):
        await joined(made, us, 3 if simulated else 200)
    await storm(made, *((4, 8) if simulated else (132, 76)), None)
    await storm(made, *((4, 8) if simulated else (132, 76)), 10 if simulated else 4000)
    await hasty(made, 40 if simulated else 1000, 300_000 if not simulated else 40_000, 8)
    for work in (1500, 3000) if simulated else (1500, 3000, 6000):
        await prefetch(made, 16 if simulated else 64, work, 50)
    await services(made, 5 if simulated else 1000)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    chosen = parser.parse_args().device
    asyncio.run(main(chosen))
    if chosen != "sim":
        patience(kernels())
