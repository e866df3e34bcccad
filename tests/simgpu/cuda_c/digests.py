"""Digests of a GPU's results for each kernel of the corpus, which the interpreter must match where there is no GPU.

On a GPU, after a change to the corpus: `python -m tests.simgpu.cuda_c.digests`, which writes `digests.json`.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from .corpus import CASES, Case, arguments, source
from .gpu import INEXACT, UNORDERED, nvrtc, on_gpu

FILE = Path(__file__).with_name("digests.json")
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
    main()
