"""A large export of Nsight Systems: read, analysed, told and drawn; CPU seconds and memory of each step.

    python benchmarks/large_trace.py [PIECES]

PIECES of work (180,000 by default), with a call of the host for each and a range around a hundred of them, on
four streams. With 180,000 the export has 361,800 rows.
"""

import random
import resource
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import asyncgpu_tutor as agt

T = TypeVar("T")
KERNELS = ("gemm", "relu", "softmax", "layer_norm", "add")
TABLES = {
    "StringIds": "id, value",
    "CUPTI_ACTIVITY_KIND_KERNEL": "start, end, deviceId, streamId, correlationId, shortName, "
    "gridX, gridY, gridZ, blockX, blockY, blockZ",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start, end, globalTid, correlationId, nameId",
    "NVTX_EVENTS": "start, end, eventType, textId, globalTid, domainId",
}
LAUNCH, STEP, THREAD, NESTED = len(KERNELS) + 1, len(KERNELS) + 2, 281484522947129, 59


def export(path: Path, pieces: int) -> int:
    """Write it; how many rows of work, calls and ranges it has."""
    dice = random.Random(1)
    free = dict.fromkeys(range(13, 17), 0)  # until when each stream is busy, in ns
    now, begin = 1_000_000, 1_000_000
    kernels, calls, ranges = (list[tuple[int, ...]]() for _ in range(3))
    for number in range(1, pieces + 1):
        stream, took = dice.randrange(13, 17), dice.randrange(2_000, 5_000)
        start = max(free[stream] + 800, now + took + 2_000)
        end = free[stream] = start + dice.randrange(1_500, 25_000)
        shape = (dice.randrange(1, 300), 1, 1, 256, 1, 1)
        kernels.append((start, end, 0, stream, number, dice.randrange(len(KERNELS)) + 1, *shape))
        calls.append((now, now + took, THREAD, number, LAUNCH))
        now += took + dice.randrange(100, 3_000)
        if number % 100 == 0:
            ranges.append((begin, now, NESTED, STEP, THREAD, 0))
            if number % 1_000 == 0:
                now = max(now, *free.values()) + dice.randrange(4_000, 20_000)
            begin = now
    texts = list(enumerate((*KERNELS, "cuLaunchKernel", "step"), 1))
    connection = sqlite3.connect(path)
    for (table, columns), rows in zip(TABLES.items(), (texts, kernels, calls, ranges), strict=True):
        connection.execute(f"CREATE TABLE {table} ({columns})")
        marks = ", ".join("?" for _ in columns.split(","))
        connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
    connection.commit()
    connection.close()
    return len(kernels) + len(calls) + len(ranges)


def step(what: str, act: Callable[[], T]) -> T:
    """Do it, and print what it took."""
    before = time.process_time()
    result = act()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{what:<8} {time.process_time() - before:6.2f} s CPU, peak {peak:.2f} GB")
    return result


def main(pieces: int) -> None:
    """All of them, and the sum."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "large.sqlite"
        print(f"{export(path, pieces):,} rows")
        start = time.process_time()
        trace = step("read", lambda: agt.Trace.from_nsys(path, limit=10 * pieces))
    analysis = step("analyse", lambda: agt.analyse(trace))
    step("tell", analysis.table)
    step("draw", lambda: trace.plot().svg())
    print(f"{'all':<8} {time.process_time() - start:6.2f} s CPU")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 180_000)
