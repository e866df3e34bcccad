"""The interpreter against a GPU: the corpus, random kernels, and what is fused with what.

`CUDA_C_FUZZ=500 pytest -m gpu tests/simgpu/cuda_c/test_on_gpu.py` compares as many random kernels as it says.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from simgpu.cuda_c import compile_source

from .corpus import CASES, Case, arguments, launch_case, source
from .generate import HELPERS, THREADS, kernel
from .gpu import INEXACT, UNORDERED, nvrtc, on_gpu
from .support import launch
from .test_differential import BLOCKS
from .test_differential import arguments as random_arguments

pytestmark = pytest.mark.gpu
COUNT = int(os.environ.get("CUDA_C_FUZZ", "60"))


@pytest.fixture(scope="module")
def cupy() -> Any:
    cp = pytest.importorskip("cupy", reason="CuPy is not installed")
    if not cp.cuda.is_available():
        pytest.skip("no GPU")
    return cp


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.kernel)
def test_corpus(cupy: Any, case: Case) -> None:
    ours, theirs = arguments(case), arguments(case)
    if case.kernel == "gelu":
        ours[1] = theirs[1] = np.uint64(theirs[1])
    text = source(case.file)
    compiled = nvrtc(text, [case.kernel])
    on_gpu(cupy, compiled, case.kernel, (case.grid, case.block), theirs, case.shared)
    launch_case(case, ours)
    if case.kernel in UNORDERED:
        ours, theirs = [
            [np.sort(a) for a in x if isinstance(a, np.ndarray)] for x in (ours, theirs)
        ]
    for mine, other in zip(ours, theirs, strict=True):
        if isinstance(mine, np.ndarray):
            tolerance = INEXACT.get(case.kernel, 0)
            np.testing.assert_allclose(mine, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("first", range(0, COUNT, 20))
def test_random_kernels(cupy: Any, first: int) -> None:
    seeds = range(first, first + 20)
    text = HELPERS + "\n".join(kernel(f"k{s}", s) for s in seeds)
    # -G: without the optimiser, which takes it that integers never overflow; these do, and then wrap.
    compiled = nvrtc(text, [f"k{s}" for s in seeds], fmad=False, options=("-G",))
    program = compile_source(text)
    for s in seeds:
        ours, theirs = random_arguments(s), random_arguments(s)
        on_gpu(cupy, compiled, f"k{s}", ((BLOCKS,), (THREADS,)), theirs)
        launch(program, f"k{s}", BLOCKS, THREADS, *ours)
        for mine, other in zip(ours[2:6], theirs[2:6], strict=True):
            np.testing.assert_array_equal(mine, other, err_msg=kernel(f"k{s}", s))


FUSED = [
    "a * b + c", "c + a * b", "a * b - c", "c - a * b", "a * b + c * d", "a * b - c * d", "-(a * b) + c",
    "-(a * b) - c", "a * b + c * d + e", "e + a * b + c * d", "e - a * b - c * d", "(a + b) * c + d",
    "a * b * c + d", "2.0f * a + b", "(a * b) / c + d", "(a * b + c) * d + e", "a * b - c * d + e * a",
    "(a * b + c * d) - (a * d + b * c)", "e + (a * b + c * d)", "a * a + b * b", "(a - b) * c",
    "a * (b + c) - d", "a + b + c * d - e", "a * b + b", "(a * b) + (c + d)", "a - b * 2.0f", "a * d + b * c", "c * d + a * b", "b * b + a * a", "a * d + b * d", "e * a + b",
    "a * d + b * c + e * e", "e + (c * d + a * b)",
]  # fmt: skip


@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("expression", FUSED)
def test_what_is_fused(cupy: Any, expression: str, kind: str) -> None:
    text = (
        f'extern "C" __global__ void k(const {kind}* x, {kind}* y) {{ int i = blockIdx.x * 32 + threadIdx.x; '
        f"{kind} a = x[5 * i], b = x[5 * i + 1], c = x[5 * i + 2], d = x[5 * i + 3], e = x[5 * i + 4]; "
        f"y[i] = {expression}; }}"
    )
    x = np.random.default_rng(7).standard_normal(16000).astype("f4" if kind == "float" else "f8")
    ours, theirs = np.zeros(3200, x.dtype), np.zeros(3200, x.dtype)
    compiled = nvrtc(text, ["k"])
    on_gpu(cupy, compiled, "k", ((100,), (32,)), [x.copy(), theirs])
    launch(compile_source(text, contract=True), "k", 100, 32, x.copy(), ours)
    np.testing.assert_array_equal(ours, theirs)
