"""This package beside its peers, on one GPU, in one process, in turns.

    python benchmarks/peers [--quick] [--out FOLDER]

Prints tables, ratios first, and writes ``peers.json``, ``peers.md`` and ``peers.png`` to FOLDER. Needs an
NVIDIA GPU and CuPy; cuda.core and PyTorch join in where they are installed.
"""

import argparse
import asyncio
import importlib
import json
import platform
import re
import sys
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import asyncgpu_tutor as agt

sys.path.append(str(Path(__file__).parents[1]))  # where that is which all benchmarks share
sys.path.append(str(Path(__file__).parents[2] / "tools"))
import report
import serving
import waiting
from in_turns import in_turns
from record_course import machine_facts
from work import Contender, Work, make_work

SIZES = (64, 128, 256, 512, 1024, 2048)
SET_UPS = 3
YARDSTICK = "CuPy by hand, four streams"
PEERS = {"cuda_core": "cuda.core", "pytorch": "PyTorch"}


def machine() -> dict[str, object]:
    """The machine, and the versions of all that is compared."""
    told = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    model = re.search(r"^model name\s*: (.*\S)", told, re.MULTILINE)
    found = {**machine_facts(), "cpu": model[1] if model else platform.machine()}
    for name in ("numpy", "cuda-core", "cuda-bindings", "torch"):
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found | {"command": " ".join(["python", *sys.argv])}


def contenders(work: Work, loop: asyncio.AbstractEventLoop) -> list[Contender]:
    """Everybody who can run here; who cannot is named."""
    import by_hand
    import ours

    found = [*by_hand.contenders(work), *ours.contenders(work, loop)]
    for module, name in PEERS.items():
        try:
            found += importlib.import_module(module).contenders(work)
        except Exception as error:  # noqa: BLE001 - a peer that does not run is no reason to stop
            print(f"{name} does not take part: {type(error).__name__}: {error}")
    return found


def _agrees(one: Contender, first: Contender, dim: int) -> bool:
    """True if it computes the same as the first one; a peer that does not is named and left out."""
    first.run()
    want = first.results()
    one.run()
    got = one.results()
    scale = max(float(np.abs(batch).max()) for batch in want)
    apart = max(float(np.abs(a - b).max()) for a, b in zip(got, want, strict=False)) / scale
    if apart > 1e-5:
        print(f"{one.name} is left out at DIM {dim}: its results are {apart:.1e} apart")
        return False
    if apart:
        one.note += f"{'; ' if one.note else ''}rounds otherwise"
    return True


def pipeline(dim: int, turns: int, loop: asyncio.AbstractEventLoop) -> list[dict[str, Any]]:
    """Four batches of the MLP, by everybody.

    All is set up several times, in other places of the device's memory: the same work takes some percent more
    in one set-up than in the next. What counts is the one in the middle.
    """
    medians: dict[str, list[float]] = {}
    kept: list[list[Contender]] = []  # keeps the memory, or the next ones would get the same
    for _ in range(SET_UPS):
        work = make_work(dim)
        every = contenders(work, loop)
        kept.append(every := [one for one in every if _agrees(one, every[0], dim)])
        ways = {one.name: one.run for one in every}
        times = in_turns(ways, turns // SET_UPS, block=8, unseen=1)
        for name, found in times.items():
            medians.setdefault(name, []).append(median(found))
    base = median(medians[YARDSTICK])
    notes = {one.name: one.note for every in kept for one in every}
    return [
        {"dim": dim, "way": name, "us": median(found), "ratio": median(found) / base,
         "set_ups_us": sorted(found), "note": notes[name]}
        for name, found in medians.items()
    ]  # fmt: skip


def main() -> None:
    """Measure everything and write it down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer turns, smaller counts")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="of the pipeline")
    parser.add_argument("--pipeline", action="store_true", help="nothing but the pipeline, printed")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    args = parser.parse_args()
    agt.use("cuda")
    loop = asyncio.new_event_loop()
    found: dict[str, Any] = {"machine": machine(), "pipeline": []}
    for dim in args.sizes:
        turns = max(SET_UPS, (10 if args.quick else 36) * 64 // max(dim, 64))
        found["pipeline"] += pipeline(dim, turns, loop)
    if args.pipeline:
        for row in found["pipeline"]:
            print(f"{row['dim']:5} {row['us']:9.1f} us  {row['ratio']:6.2f}  {row['way']}")
        return
    found["latency"] = waiting.latency()
    found["processor"] = waiting.processor_share()
    found["operations"] = waiting.cost_per_operation()
    found["serving"] = []
    for dim, count in ((64, 3000), (256, 2000), (512, 1000), (1024, 200)):
        for in_place in (False, True):
            # Graphs of four need a multiple of four.
            counted = count // (16 if args.quick else 4) * 4
            found["serving"] += serving.compare(make_work(dim), counted, loop, in_place=in_place)
    loop.close()
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "peers.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    text = report.text(found)
    (args.out / "peers.md").write_text(text, encoding="utf-8")
    report.figure(found, args.out / "peers.png")
    print(text)


if __name__ == "__main__":
    main()
