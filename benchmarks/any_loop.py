"""What an await costs in each event loop: calls, which are the same each time, and CPU time, which is not.

`python benchmarks/any_loop.py [cuda]`; needs trio, and uvloop where there is one. One process measures all
loops in turn, several times, so that a busy machine is busy for all of them.
"""

import asyncio
import sys
import time
from collections.abc import Callable
from typing import Any

import trio
import uvloop

import asyncgpu_tutor as agt

ROUNDS, AWAITS = 9, 1000
LOOPS: dict[str, Callable[[Callable[[], Any]], object]] = {
    "asyncio": lambda main: asyncio.run(main()),
    "uvloop": lambda main: uvloop.run(main()),
    "trio": trio.run,
    "trio, device clock": lambda main: trio.run(main, clock=agt.DeviceClock()),
}
AWAITED: dict[str, Callable[[], Any]] = {
    "value": lambda: agt.value(1),
    "zeros": lambda: agt.zeros(4),
    "sleep": lambda: agt.sleep(1.0),
}


def cpu_us(run: Callable[[Callable[[], Any]], object], make: Callable[[], Any]) -> float:
    """CPU time of an await."""
    took = []

    async def main() -> None:
        start = time.process_time()
        for _ in range(AWAITS):
            await make()
        took.append((time.process_time() - start) / AWAITS * 1e6)

    run(main)
    return took[0]


def calls(run: Callable[[Callable[[], Any]], object], make: Callable[[], Any]) -> float:
    """Calls of an await, of Python's functions and C's."""
    count = 0

    def counted(_: object, event: str, __: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    async def main() -> None:
        await make()
        sys.setprofile(counted)
        for _ in range(100):
            await make()
        sys.setprofile(None)

    run(main)
    return count / 100


def compare(device: str) -> None:
    """Print both for each loop."""
    with agt.using(device) as chosen:
        loops = [name for name in LOOPS if chosen.simulated or "clock" not in name]
        for what, make in AWAITED.items():
            best = dict.fromkeys(loops, float("inf"))
            for _ in range(ROUNDS):
                for name in loops:
                    best[name] = min(best[name], cpu_us(LOOPS[name], make))
            for name in loops:
                ratio, count = best[name] / best["asyncio"], calls(LOOPS[name], make)
                took = f"{best[name]:7.1f} us CPU {ratio:5.2f}"
                print(f"{what:6} {name:18} {count:6.1f} calls {took}")


if __name__ == "__main__":
    compare(sys.argv[1] if len(sys.argv) > 1 else "sim")
