"""The interpreter's counts of every kernel case, kept because the large ones take a minute.

python tools/fidelity counting [--new]

`--new` keeps what is known, and counts the cases that are not in the file.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from simgpu.cuda_c import Counts, GlobalMemory, compile_source

from .cases import KernelCase, dim3, kernel_cases

FILE = Path(__file__).parent / "recordings" / "counts.json"


def count(case: KernelCase) -> Counts:
    """Run it in the interpreter."""
    program = compile_source(case.source)
    args: list[Any] = []
    for value in case.make(np.random.default_rng(1)):
        if isinstance(value, np.ndarray):
            memory = GlobalMemory(value.nbytes, "argument")
            memory.data[:] = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
            memory.mark_written()
            args.append(memory)
        else:
            args.append(value)
    launched = program.begin(
        case.kernel, dim3(*case.grid), dim3(*case.block), args, dynamic_shared=case.shared
    ).finish()
    return dataclasses.replace(launched.counts, lines={})


def load() -> dict[str, Counts]:
    """The kept counts, by name of the case."""
    kept = json.loads(FILE.read_text())
    return {
        name: Counts(**dict(zip(kept["fields"], row, strict=True)))
        for name, row in kept["rows"].items()
    }


def main() -> None:
    """Count the cases and write the file."""
    fields = [f for f in Counts.__dataclass_fields__ if f != "lines"]
    rows: dict[str, list[int]] = json.loads(FILE.read_text())["rows"] if "--new" in sys.argv else {}
    for case in kernel_cases():
        if case.name in rows:
            continue
        start = time.perf_counter()
        counts = count(case)
        rows[case.name] = [getattr(counts, field) for field in fields]
        print(case.name, f"{time.perf_counter() - start:.2f} s", flush=True)
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    FILE.write_text(f'{{"fields": {json.dumps(fields)},\n "rows": {{\n{lines}\n}}}}\n')
