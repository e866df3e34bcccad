"""The cost of calling the host from a kernel: by packets, by printf, and by ending and being launched again.

``python benchmarks/hostcalls.py`` needs a GPU. With ``--device sim`` it runs where there is none: then the
times are the model's.
"""

import argparse
import asyncio
import contextlib
import io
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from in_turns import device_us

import asyncgpu_tutor as agt

SOURCE = Path(__file__).with_name("hostcalls.cu").read_text("utf-8")
RUNS = 7


async def later(call: Any) -> int:
    """The sum that is asked for, by a task of the event loop."""
    await asyncio.sleep(0)
    return call.a + call.b


WAYS: dict[str, dict[str, Any]] = {
    "NumPy, all at once": {"batch_handlers": {16: lambda a, b, c: a + b}},
    "a function for each": {"handlers": {16: lambda call: call.a + call.b}},
    "a coroutine for each": {"handlers": {16: later}},
}


async def packets(kernel: agt.Kernel, blocks: int, number: int, how: dict[str, Any]) -> float:
    """Microseconds of one call, all in all."""
    device = agt.current_device()
    sums = await agt.zeros(blocks, np.uint64)
    best: list[float] = []
    async with agt.hostcalls(**how) as host:
        for run in range(RUNS + 1):
            start = device.now()
            await host.run(kernel(*host.arrays, number, sums.borrow(), grid=blocks, block=1))
            if run:  # the first is for practice
                best.append((device.now() - start) / (blocks * number))
        assert host.answered == (RUNS + 1) * blocks * number
    got = (await agt.d2h(sums)).tolist()
    right = [sum(block + i for i in range(number)) for block in range(blocks)]
    assert got == right, "a call was lost, or answered twice"
    return statistics.median(best)


def relaunch() -> float:
    """Microseconds of a launch, and of waiting for it."""
    kernel, stream = agt.Kernel(SOURCE, "again"), agt.create_stream()
    x = agt.zeros(1, np.uint64).sync()
    ops = (kernel(x.borrow(), grid=1, block=1) for _ in range(300))
    return statistics.median(device_us(partial(op.sync_on, stream)) for op in ops)


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Send what the process prints, by C too, to a file."""
    sys.stdout.flush()
    before = os.dup(1)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 1)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                yield
        finally:
            os.dup2(before, 1)
            os.close(before)


def printing(blocks: int, number: int) -> float:
    """Microseconds of a printf, with the wait until all is printed. Its buffer holds some 30,000."""
    kernel, stream = agt.Kernel(SOURCE, "says"), agt.create_stream()

    def once() -> None:
        kernel(number, grid=blocks, block=1).sync_on(stream)
        agt.synchronize()

    with silent():
        return statistics.median(device_us(once) for _ in range(RUNS)) / (blocks * number)


async def main(name: str, blocks: list[int]) -> None:
    """Print the table."""
    device = agt.use(name)
    print(device)
    kernel = agt.Kernel(SOURCE, "calls")
    print(f"{'a launch and a wait':34s} {relaunch():9.2f} us")
    print(f"{'printf, 132 blocks':34s} {printing(132, 20):9.3f} us a call")
    for way, how in WAYS.items():
        for count in blocks:
            number = 1000 if device.clock != "simulated" else 10
            us = await packets(kernel, count, number, how)
            label = f"{way}, {count} blocks"
            print(f"{label:34s} {us:9.3f} us a call   {1e6 / us:12,.0f} calls/s", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--blocks", type=int, nargs="*", default=[1, 8, 132])
    chosen = parser.parse_args()
    asyncio.run(main(chosen.device, chosen.blocks))
