"""Run compute-sanitizer on each program in docs/hazards.md, on a machine with a GPU.

    python tools/sanitizer.py     run all programs alone and under its four tools, write docs/sanitizer.json
    python tools/sanitizer.py --new   only those that the record doesn't know, as they are now
    python tools/hazards.py       then writes what they say on the page

Each array gets an allocation of its own, as in most C++ programs: inside of a pool's blocks memcheck and
initcheck cannot tell where one array ends. And each program ends with ``cudaDeviceSynchronize``: racecheck
says nothing of kernels that were only waited for by an event. Needs CuPy, a GPU and compute-sanitizer, which
comes with CUDA's toolkit; takes about five minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import hazards

ROOT = Path(__file__).resolve().parents[1]
HEAD = """
import asyncio
import atexit
import cupy
import numpy as np
import asyncgpu_tutor as agt

device = agt.use("cuda")
device._block = lambda size, nbytes, name: cupy.cuda.MemoryPointer(cupy.cuda.Memory(nbytes), 0)
atexit.register(cupy.cuda.runtime.deviceSynchronize)
"""
FINDING = re.compile(
    r"(?m)^========= (?:Error: )?((?:Invalid|Race|Uninit|Barrier|Warp|Trace|Program hit).*?)\.?$"
)
FAILED = re.compile(r"(?m)^(?:[a-z]\w*\.)+(\w+: .*)$")


def said(output: str) -> dict[str, int]:
    """The tool's findings, each with how often it is told, without addresses in the code."""
    found = [re.sub(r"\+0x[0-9a-f]+", "", line) for line in FINDING.findall(output)]
    return {finding: found.count(finding) for finding in found}


def run(tool: str | None, program: str, seconds: int) -> tuple[dict[str, object], str]:
    """The finding of `tool` for one program, or how it ends without a tool; and all that was printed."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "program.py")
        file.write_text(HEAD + program, encoding="utf-8")
        return run_python(tool, [str(file)], seconds)


def run_python(tool: str | None, args: list[str], seconds: int) -> tuple[dict[str, object], str]:
    """The same for Python with these arguments, which can import from the checkout."""
    under = ["compute-sanitizer", "--tool", tool] if tool else []
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        ["timeout", "-k", "5", str(seconds), *under, sys.executable, *args],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        check=False,
    )
    output = done.stdout + done.stderr
    ended = done.returncode not in (124, 137)
    if tool is None:
        failed = FAILED.findall(output)
        return {"ended": ended, "error": failed[-1][:200] if failed else ""}, output
    return {"ended": ended, "says": said(output)}, output


def printed(*command: str) -> str:
    """The last line that a command prints."""
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip().splitlines()[-1]


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(
        description="compute-sanitizer on the programs of docs/hazards.md"
    )
    parser.add_argument("--seconds", type=int, default=60, help="how long one program may run")
    parser.add_argument("--workers", type=int, default=10, help="programs at a time")
    parser.add_argument("--only", default="", help="programs with this in their titles")
    parser.add_argument("--new", action="store_true", help="programs that are new or have changed")
    parser.add_argument("--raw", type=Path, help="a file for all that is printed")
    args = parser.parse_args()
    record: dict[str, Any] = json.loads(hazards.RECORD.read_text(encoding="utf-8"))
    record["gpu"] = printed(
        "nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"
    )
    record["version"] = printed("compute-sanitizer", "--version")
    raw: list[str] = []
    programs = hazards.hazards(hazards.PAGE.read_text(encoding="utf-8"))
    if args.new:
        known_as = {title: its["digest"] for title, its in record["programs"].items()}
        programs = [hazard for hazard in programs if known_as.get(hazard.title) != hazard.digest]
    # Kernels that never end slow all others down, and those that wait for the host give up when they are
    # slow: so each kind has the GPU for itself.
    kinds = [_kind(hazard.shown) for hazard in programs]
    for kind, workers in enumerate((args.workers, 1, args.workers)):
        jobs = [
            (hazard, tool)
            for hazard, its in zip(programs, kinds, strict=True)
            if its == kind and args.only in hazard.title
            for tool in (None, *hazards.SANITIZERS)
        ]
        with ThreadPoolExecutor(workers) as pool:
            results = list(pool.map(lambda job: run(job[1], job[0].program, args.seconds), jobs))
        for (hazard, tool), (told, output) in zip(jobs, results, strict=True):
            known = record["programs"].setdefault(hazard.title, {})
            known["digest"], known[tool or "alone"] = hazard.digest, told
            raw.append(f"#### {hazard.title} / {tool or 'alone'}\n{output}\n")
    hazards.RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if args.raw:
        args.raw.write_text("".join(raw), encoding="utf-8")


def _kind(shown: str) -> int:
    """0 for a program that ends, 1 where a kernel waits for the host, 2 where it never ends."""
    return 1 if shown.startswith("Hostcall") else 2 * shown.startswith(("Deadlock", "Runaway"))


if __name__ == "__main__":
    main()
