"""The interpreter against g++: random kernels, every value the same to the last bit.

Ten kernels by default; `CUDA_C_FUZZ=2000 pytest tests/simgpu/cuda_c/test_differential.py` runs as many as
it says. Contraction is off on both sides: which products a compiler fuses is its own affair.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simgpu.cuda_c import compile_source
from simgpu.cuda_c.text.headers import header_text

from .generate import HELPERS, THREADS, kernel
from .support import launch

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="needs g++ to compare with")
COUNT = int(os.environ.get("CUDA_C_FUZZ", "10"))
PER_FILE = 10
BLOCKS = 3
N = 96
FLAGS = "-std=c++17 -O0 -w -ffp-contract=off -frounding-math -fwrapv -fno-strict-aliasing"
SHIM = Path(__file__).with_name("shim.h")
# Runs each of the kernels in turn: its arrays come from stdin, and go to stdout.
MAIN = """
alignas(64) static int a[N]; static float x[N]; static int oi[T]; static unsigned ou[T]; static float of[T]; static int hits[8];
template <class F> static void each(F f) {
    f(a, sizeof a); f(x, sizeof x); f(oi, sizeof oi); f(ou, sizeof ou); f(of, sizeof of); f(hits, sizeof hits); }
static auto now = *kernels;
int main() { for (auto kernel : kernels) {
    each([](void* p, size_t n) { fread(p, 1, n, stdin); });
    now = kernel;
    launch([] { now(a, x, oi, ou, of, hits, N); }, {BLOCKS}, {THREADS});
    each([](void* p, size_t n) { fwrite(p, 1, n, stdout); }); } }
"""


def arguments(seed: int) -> list[Any]:
    rng, outputs = np.random.default_rng(seed), (np.int32, np.uint32, np.float32)
    whole, real = rng.integers(-50, 50, N).astype(np.int32), rng.standard_normal(N)
    left = [np.zeros(BLOCKS * THREADS, dtype) for dtype in outputs]
    return [whole, real.astype(np.float32), *left, np.zeros(8, np.int32), N]


def compiled(source: str, given: list[list[Any]], folder: Path) -> None:
    """Change the arguments of each kernel in place, as g++ has it.

    In a process of its own, since compiled code can take Python down with it: `INT_MIN / -1` does.
    """
    text = source.replace("#include <cuComplex.h>", header_text("cuComplex.h"))
    text = re.sub(r'#include <cuda_.*|extern "C"', "", text)
    kernels = ", ".join(re.findall(r"void (k\d+)\(", source))
    sizes = f"enum {{ N = {N}, BLOCKS = {BLOCKS}, THREADS = {THREADS}, T = BLOCKS * THREADS }};"
    table = f"static void (*kernels[])(const int*, const float*, int*, unsigned*, float*, int*, int) = {{{kernels}}};"
    (folder / "cases.cpp").write_text("\n".join([f'#include "{SHIM}"', text, sizes, table, MAIN]))
    binary = folder / "cases"
    command = ["g++", *FLAGS.split(), "-o", str(binary), str(folder / "cases.cpp")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    arrays = [array for args in given for array in args[:-1]]
    sent = b"".join(array.tobytes() for array in arrays)
    ran = subprocess.run([str(binary)], input=sent, capture_output=True, check=False, timeout=300)
    assert ran.returncode == 0, ran.stderr[-1000:]
    at = 0
    for array in arrays:
        array[...] = np.frombuffer(ran.stdout, array.dtype, array.size, at)
        at += array.nbytes


@pytest.mark.parametrize("first", range(0, COUNT, PER_FILE))
def test_random_kernels(first: int, tmp_path: Path) -> None:
    seeds = range(first, first + PER_FILE)
    source = HELPERS + "\n".join(kernel(f"k{s}", s) for s in seeds)
    program = compile_source(source)
    theirs = [arguments(s) for s in seeds]
    compiled(source, theirs, tmp_path)
    varied = 0
    for s, right in zip(seeds, theirs, strict=True):
        ours = arguments(s)
        launch(program, f"k{s}", BLOCKS, THREADS, *ours)
        varied += len(np.unique(ours[2])) > 2
        for mine, other in zip(ours[2:6], right[2:6], strict=True):
            np.testing.assert_array_equal(mine, other, err_msg=kernel(f"k{s}", s))
    assert varied > PER_FILE // 2, "these kernels compute next to nothing"
