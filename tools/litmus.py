"""Run the litmus tests of `asyncgpu_tutor.litmus` on a GPU, a million times each, and write the counts.

    python tools/litmus.py                          needs CuPy and a GPU; about a minute
    python tools/litmus.py --runs 65536 --out x.json

The kernels are those of the page. Each group of threads meets at a gate before each run, so that they begin
at about the same time, and each run has words of its own. Writes ``asyncgpu_tutor/data/litmus.json``, from
which the page has its last column. Ends with an error if an outcome was seen that the memory model forbids.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from itertools import product
from pathlib import Path

import cupy
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from asyncgpu_tutor.inspection.litmus import FENCES, LITMUS_KINDS, SHAPES, STEP, allowed, source

OUT = Path(__file__).resolve().parents[1] / "asyncgpu_tutor" / "data" / "litmus.json"
GROUPS, ROUNDS = (
    1024,
    64,
)  # of a launch: with four threads a group, all of them fit on an H200 at once


def counted(shape: str, fence: str, kind: str, blocks: bool, runs: int) -> dict[str, int]:
    """How often each outcome is seen, in at least so many runs."""
    threads, width, each = len(SHAPES[shape][0]), len(SHAPES[shape][1]), GROUPS * ROUNDS
    kernel = cupy.RawKernel(source(shape, fence, kind, blocks), "litmus")
    grid, block = (GROUPS * threads, 32) if blocks else (GROUPS, 32 * threads)
    x, y = (cupy.zeros(STEP * each, np.uint32) for _ in range(2))
    gate, out = cupy.zeros(each, np.uint32), cupy.zeros((each, width), np.uint32)
    places = cupy.asarray([1 << k for k in reversed(range(width))], np.uint32)
    found = cupy.zeros(1 << width, np.int64)
    for _ in range(-(-runs // each)):
        for array in (x, y, gate):
            array.fill(0)
        kernel((grid,), (block,), (x, y, gate, out, np.uint32(ROUNDS)))
        found += cupy.bincount((out * places).sum(axis=1).astype(np.int64), minlength=1 << width)
    outcomes = ["".join(map(str, outcome)) for outcome in product((0, 1), repeat=width)]
    return {o: int(n) for o, n in zip(outcomes, found.get(), strict=True) if n}


def main() -> None:
    """Run all tests."""
    parser = argparse.ArgumentParser(description="Litmus tests of CUDA's memory on a GPU.")
    parser.add_argument("--runs", type=int, default=1 << 20, help="of each test")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument(
        "--only", default="", help="tests with this in their names; those of earlier runs stay"
    )
    given = parser.parse_args()
    began, forbidden = time.monotonic(), 0
    before: list[object] = json.loads(OUT.read_text("utf-8")) if given.only else []
    tests: dict[str, dict[str, int]] = {}
    for shape, fence, kind, blocks in product(SHAPES, FENCES, LITMUS_KINDS, (False, True)):
        name = f"{shape}, {fence}, {kind}, {'blocks' if blocks else 'one block'}"
        if given.only not in name:
            continue
        tests[name] = counted(shape, fence, kind, blocks, given.runs)
        may = {"".join(map(str, outcome)) for outcome in allowed(shape, fence, kind, blocks)}
        wrong = set(tests[name]) - may
        forbidden += len(wrong)
        weak = "".join(map(str, SHAPES[shape][1]))
        print(
            f"{name:44} {weak}: {tests[name].get(weak, 0):>9,}{'   FORBIDDEN' * bool(wrong)}",
            flush=True,
        )
    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    record = {"device": device, "runs": given.runs, "tests": tests}
    text = json.dumps([*before, record], indent=1)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(text + "\n", encoding="utf-8")
    print(
        f"{len(tests)} tests in {time.monotonic() - began:.0f} s on {device}, written to {given.out}"
    )
    if forbidden:
        sys.exit(f"{forbidden} outcomes were seen that the model forbids")


if __name__ == "__main__":
    main()
