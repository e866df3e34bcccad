"""The interpreter against g++: random kernels, every value the same to the last bit.

Ten kernels by default; `CUDA_C_FUZZ=2000 pytest tests/simgpu/cuda_c/test_differential.py` runs as many as
it says. Contraction is off on both sides: which products a compiler fuses is its own affair.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simgpu.cuda_c import compile_source

from . import oracle
from .generate import HELPERS, THREADS, kernel
from .support import launch

pytestmark = pytest.mark.skipif(not oracle.available(), reason="needs g++ to compare with")
COUNT = int(os.environ.get("CUDA_C_FUZZ", "10"))
PER_FILE = 10
BLOCKS = 3
N = 96


def arguments(seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    total = BLOCKS * THREADS
    return [
        rng.integers(-50, 50, N).astype(np.int32),
        rng.standard_normal(N).astype(np.float32),
        np.zeros(total, np.int32),
        np.zeros(total, np.uint32),
        np.zeros(total, np.float32),
        np.zeros(8, np.int32),
        N,
    ]


@pytest.mark.parametrize("first", range(0, COUNT, PER_FILE))
def test_random_kernels(first: int, tmp_path: Path) -> None:
    seeds = range(first, first + PER_FILE)
    source = HELPERS + "\n".join(kernel(f"k{s}", s) for s in seeds)
    program = compile_source(source)
    ours = {s: arguments(s) for s in seeds}
    theirs = {s: arguments(s) for s in seeds}
    cases = [oracle.Case(f"k{s}", (BLOCKS, 1, 1), (THREADS, 1, 1), theirs[s]) for s in seeds]
    oracle.run(source, cases, tmp_path)
    varied = 0
    for s in seeds:
        launch(program, f"k{s}", BLOCKS, THREADS, *ours[s])
        varied += len(np.unique(ours[s][2])) > 2
        for mine, other in zip(ours[s][2:6], theirs[s][2:6], strict=True):
            np.testing.assert_array_equal(mine, other, err_msg=f"{kernel(f'k{s}', s)}")
    assert varied > PER_FILE // 2, "these kernels compute next to nothing"
