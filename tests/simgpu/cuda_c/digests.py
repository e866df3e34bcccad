"""What was recorded of each kernel of the corpus.

`digests.json` has digests of a GPU's results, which the interpreter must match where there is no GPU. On a GPU,
after a change to the corpus: `python -m tests.simgpu.cuda_c.digests`. `costs.json` has what the kernels cost by
our own model, and `functions.json` what each function computes and costs, so that a change of it is one that was
meant: `python -m tests.simgpu.cuda_c.digests costs`.
"""

import hashlib
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from simgpu.cuda_c import Counts
from simgpu.gpus import SPECS
from simgpu.launches import Launched
from simgpu.report.columns import annotate, render_columns
from simgpu.report.kernel_report import KernelReport
from simgpu.times import kernel_time

from . import functions
from .corpus import CASES, Case, arguments, launch_case, source
from .gpu import INEXACT, UNORDERED, nvrtc, on_gpu

FILE = Path(__file__).with_name("digests.json")
COSTS = FILE.with_name("costs.json")
EXACT = [case for case in CASES if case.kernel not in UNORDERED | INEXACT.keys()]


def digest(arrays: list[Any]) -> str:
    """Of the bytes of arrays; one NaN is like another, since which one it is says nothing."""
    whole = hashlib.sha256()
    for array in arrays:
        if isinstance(array, np.ndarray):
            plain = np.where(np.isnan(array), np.nan, array) if array.dtype.kind == "f" else array
            whole.update(plain.astype(array.dtype).tobytes())
    return whole.hexdigest()[:16]


def source_digest(case: Case) -> str:
    """Of the file that a kernel is in, and of what it is given."""
    given = source(case.file) + repr((case.grid, case.block, case.shared))
    return hashlib.sha256(given.encode()).hexdigest()[:8] + digest(arguments(case))[:8]


def cost(case: Case, counts: Counts) -> dict[str, Any]:
    """All counts that are not 0, the us that each GPU takes, and a digest of what people are shown of it."""
    numbers = {
        name: number for name, number in asdict(counts).items() if number and name != "lines"
    }
    threads, shown = int(np.prod(case.block)), [annotate(case.kernel, source(case.file), 1, counts)]
    for name, spec in SPECS.items():
        time = kernel_time(spec, counts, threads, counts.shared_bytes)
        numbers[name] = float(f"{time.us:.6g}")
        shape = [(*size, 1, 1)[:3] for size in (case.grid, case.block)]
        launched = Launched(case.kernel, source(case.file), *shape, counts, time)
        shown.append(render_columns(spec, [KernelReport(spec, (launched, launched))] * 2, 60))
    return numbers | {"shown": hashlib.sha256("\n".join(shown).encode()).hexdigest()[:8]}


def record_costs() -> None:
    found = {f"{c.file}: {c.kernel}": cost(c, launch_case(c, arguments(c)).counts) for c in CASES}
    rows = [f"{json.dumps(name)}: {json.dumps(numbers)}" for name, numbers in found.items()]
    COSTS.write_text("{\n" + ",\n".join(rows) + "\n}\n")
    functions.record()


def main() -> None:
    import cupy  # only here, where there is a GPU

    recorded: dict[str, list[str]] = {}
    for case in EXACT:
        args = arguments(case)
        shape = (case.grid, case.block)
        compiled = nvrtc(source(case.file), [case.kernel])
        on_gpu(cupy, compiled, case.kernel, shape, args, case.shared)
        recorded[f"{case.file}: {case.kernel}"] = [source_digest(case), digest(args)]
    FILE.write_text(json.dumps(recorded, indent=1) + "\n")
    print(f"{len(recorded)} kernels, in {FILE}")


if __name__ == "__main__":
    record_costs() if sys.argv[1:] == ["costs"] else main()
