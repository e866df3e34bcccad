"""One of the exhibits of chapter 08, to be run under Nsight Systems: python exhibit.py A [--repaired].

The programs themselves are in tools/course_programs/suspects.py, so the folder tools has to be on the
PYTHONPATH, as record.sh puts it. Read the reports before you look there. The profiler is told when to begin
and when to end (--capture-range=cudaProfilerApi), so a report holds nothing but four rounds of the program.
The last one, in a range of the exhibit's name, is the one to read: during the first the profiler itself is
still starting.
"""

import argparse
import asyncio
import gc

from course_programs import RUNS
from cupyx import profiler

import asyncgpu_tutor as agt
from asyncgpu_course.exhibits import EXHIBITS
from asyncgpu_tutor import ranges

WARM_UP = 25


async def exhibit(letter: str, *, repaired: bool) -> None:
    """Run it often enough to be warm, and then under the profiler's eyes."""
    program = RUNS[EXHIBITS[letter] + ("_repaired" if repaired else "")]
    body = await program.prepare()
    for _ in range(0 if program.cold else WARM_UP):
        await body()
    agt.synchronize()
    gc.collect()
    gc.disable()
    with profiler.profile():
        for _ in range(0 if program.cold else 3):
            await body()
        agt.synchronize()
        with ranges.across(f"exhibit {letter}"):
            await body()
        agt.synchronize()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("letter", choices=sorted(EXHIBITS))
    parser.add_argument(
        "--repaired", action="store_true", help="the same program without its defect"
    )
    options = parser.parse_args()
    with agt.using("cuda"):
        asyncio.run(exhibit(options.letter, repaired=options.repaired))
