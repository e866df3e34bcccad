"""The way of one launch: how many Python calls in how many files, from the call of a kernel to its result.

    python benchmarks/one_call.py

Counts the calls of a warm ``agt.relu(...).sync()`` and ``await agt.relu(...)`` on the simulated device, as
`sys.setprofile` sees them: those of this repository's two packages, with generators and comprehensions each
time they are entered. A launch on arguments that were seen before is counted beside one whose arguments are
new.
"""

import asyncio
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import asyncgpu_tutor as agt

ROOT = Path(agt.__file__).resolve().parents[1]
OURS = (f"{ROOT}/asyncgpu_tutor/", f"{ROOT}/simgpu/")
N, WARM = 256, 20
Where = tuple[str, str]  # file and function


async def counted(numbers: agt.DeviceArray, way: str) -> Counter[Where]:
    """Launch a kernel on these numbers, wait for it this way, and count the calls by file and function."""
    calls: Counter[Where] = Counter()
    out = (await agt.zeros((N,))).partition(128)

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(OURS):
            calls[code.co_filename[len(f"{ROOT}/") :], code.co_qualname] += 1

    sys.setprofile(note)
    if way == "sync":
        agt.relu(N, numbers, out).sync()
    else:
        await agt.relu(N, numbers, out)
    sys.setprofile(None)
    return calls


async def measure() -> dict[str, Counter[Where]]:
    """Count a launch that is interpreted, and one that the launch cache has."""
    found: dict[str, Counter[Where]] = {}
    with agt.using("sim"):
        for way in ("sync", "await"):
            same = (await agt.ones((N,))).share()
            for turn in range(WARM):
                await counted((await agt.full((N,), float(turn))).share(), way)
                await counted(same, way)
            found[f"{way}, arguments seen before"] = await counted(same, way)
            new = (await agt.full((N,), -1.0 - len(found))).share()
            found[f"{way}, new arguments"] = await counted(new, way)
    return found


def room(file: str) -> str:
    """Name the part of the house that a file is in."""
    first, second, *_ = file.split("/")
    return f"{first}/{second}" if second in {"cuda_c", "devices"} else first


def main() -> None:
    """Measure and print."""
    for name, calls in asyncio.run(measure()).items():
        files = {file for file, _ in calls}
        print(f"{name}: {sum(calls.values())} calls in {len(files)} files")
        rooms: Counter[str] = Counter()
        for (file, _), count in calls.items():
            rooms[room(file)] += count
        print("   ", ", ".join(f"{where} {count}" for where, count in rooms.most_common()))
        if "--list" in sys.argv:
            for (file, function), count in calls.most_common(30):
                print(f"    {count:4} {file} {function}")


if __name__ == "__main__":
    main()
