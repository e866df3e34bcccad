"""What compute-sanitizer's four tools say of every third seeded bug of a kernel, on a GPU.

    python -m benchmarks.hazards.sanitizer           all of the sample; writes results/sanitizer.json
    python -m benchmarks.hazards.sanitizer NAME      runs one program with CuPy, and nothing else

Needs CuPy, a GPU and compute-sanitizer, which comes with CUDA's toolkit; takes about two minutes. Programs
that never end are left out.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.hazards.__main__ import RESULTS, categories
from benchmarks.hazards.case import Case, Empty, kernels_of

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))
import hazards
import sanitizer

OUT = RESULTS.with_name("sanitizer.json")


def sample() -> dict[str, Case]:
    """Every third of the bugs that end, and whose arguments are arrays and numbers."""
    fit = [
        case
        for cases in categories("bugs").values()
        for case in cases
        if case.launch is not None
        and not {"Deadlock", "Runaway", "RunawayKernel"} & set(case.finds)
        and all(isinstance(arg, np.ndarray | Empty | int | float) for arg in case.launch[2])
    ]
    return {case.name: case for case in fit[::3]}


def run(case: Case) -> None:
    """Launch its kernels, with an allocation for each array, and wait."""
    import cupy

    assert case.launch is not None
    grid, block, args, shared, _ = case.launch

    def moved(arg: object) -> object:
        if isinstance(arg, Empty):
            nbytes = arg.size * np.dtype(arg.dtype).itemsize
            return cupy.ndarray(arg.size, arg.dtype, memptr(nbytes))
        if isinstance(arg, np.ndarray):
            array = cupy.ndarray(arg.shape, arg.dtype, memptr(arg.nbytes))
            array.set(arg)
            return array
        return np.float32(arg) if isinstance(arg, float) else np.int32(arg)  # type: ignore[call-overload]

    def memptr(nbytes: int) -> Any:
        return cupy.cuda.MemoryPointer(cupy.cuda.Memory(nbytes), 0)

    given = tuple(moved(arg) for arg in args)
    names = kernels_of(case.source)
    module = cupy.RawModule(code=case.source, options=("-std=c++17",), name_expressions=names)
    for name in names:
        kernel = module.get_function(name)
        shapes = [size if isinstance(size, tuple) else (size,) for size in (grid, block)]
        kernel(*shapes, given, shared_mem=shared)
    cupy.cuda.runtime.deviceSynchronize()


def told(job: tuple[str, str | None]) -> dict[str, object]:
    """What a tool finds in a program, with how often; and for None how it ends alone."""
    name, tool = job
    return sanitizer.run_python(tool, ["-m", "benchmarks.hazards.sanitizer", name], 40)[0]


def main() -> None:
    """Run the sample under all tools."""
    gpu = ("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    record = {"gpu": sanitizer.printed(*gpu)}
    jobs = [(name, tool) for name in sample() for tool in (None, *hazards.SANITIZERS)]
    results: dict[str, dict[str, object]] = {}
    with ThreadPoolExecutor(12) as pool:
        for (name, tool), what in zip(jobs, pool.map(told, jobs), strict=True):
            results.setdefault(name, {})[tool or "alone"] = what
            if what != {"ended": True, "says": {}}:
                print(name, "|", tool or "alone", "|", what, flush=True)
            OUT.write_text(json.dumps(record | {"programs": results}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run(sample()[sys.argv[1]])
    else:
        main()
