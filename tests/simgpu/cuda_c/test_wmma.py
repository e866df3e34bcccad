"""Tensor cores by wmma: values, how they are rounded, and what is told of wrong calls."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simgpu import errors
from simgpu.cuda_c import compile_source
from simgpu.cuda_c.compile.builtins.tensor_cores import tensor_product

from .support import launch

KINDS = {"square": ("half", 16, 16), "tall": ("half", 32, 8), "flat": ("half", 8, 32), "square_bfloat": ("__nv_bfloat16", 16, 16),
         "tall_bfloat": ("__nv_bfloat16", 32, 8), "flat_bfloat": ("__nv_bfloat16", 8, 32)}  # fmt: skip
SOURCE = """#include <mma.h>
using namespace nvcuda;
template <typename T, int M, int N> __device__ void product(const T* a, const T* b, const float* c, float* d) {
    wmma::fragment<wmma::matrix_a, M, N, 16, T, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, M, N, 16, T, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, M, N, 16, float> fc;
    int w = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    wmma::load_matrix_sync(fa, a + w * M * 16, 16);
    wmma::load_matrix_sync(fb, b + w * 16 * N, N);
    wmma::load_matrix_sync(fc, c + w * M * N, N, wmma::mem_row_major);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(d + w * M * N, fc, N, wmma::mem_row_major);
}
""" + "".join(
    f'extern "C" __global__ void {name}(const {T}* a, const {T}* b, const float* c, float* d) '
    f"{{ product<{T}, {M}, {N}>(a, b, c, d); }}\n"
    for name, (T, M, N) in KINDS.items()
)
INPUTS = ("plain", "wide", "cancel", "tiny", "large c")


def bfloats(x: np.ndarray) -> np.ndarray:
    """The bits of the nearest bfloat16."""
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def inputs(name: str, how: str, n: int = 8) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Stacks of matrices, whose sums are easy or hard to round."""
    kind, rows, columns = KINDS[name]
    rng = np.random.default_rng(INPUTS.index(how))
    a, b, c = (rng.standard_normal((n, *s)) for s in ((rows, 16), (16, columns), (rows, columns)))
    if how == "wide":
        a, b = (x * np.exp2(rng.integers(-7, 8, x.shape)) for x in (a, b))
        c *= np.exp2(rng.integers(-14, 15, c.shape))
    elif how == "cancel":
        a[:, :, 8:], b[:, 8:], c = -a[:, :, :8], b[:, :8], c * 2.0**-10
    elif how == "tiny":
        a, b, c = a * 2.0**-12, b * 2.0**-12, c * 2.0**-24
    elif how == "large c":
        c *= 4096
    change: Callable[[Any], Any] = bfloats if "bf" in kind else lambda x: x.astype(np.float16)
    return change(a), change(b), c.astype(np.float32)


def number(x: np.ndarray) -> np.ndarray:
    return (x.astype(np.uint32) << 16).view(np.float32) if x.dtype == np.uint16 else x


def simulated(name: str, a: Any, b: Any, c: Any) -> np.ndarray:
    out = np.zeros_like(c)
    launch(compile_source(SOURCE), name, len(c) // 2, 64, a, b, c, out)
    return out


def on_gpu(cp: Any, options: tuple[str, ...]) -> None:
    """Print how often a GPU's bits differ from ours."""
    module = cp.RawModule(code=SOURCE, backend="nvrtc", options=options)
    for name in KINDS:
        for how in INPUTS:
            a, b, c = inputs(name, how)
            out = cp.zeros(c.shape, cp.float32)
            module.get_function(name)((len(c) // 2,), (64,), (*map(cp.asarray, (a, b, c)), out))
            ours, theirs = simulated(name, a, b, c).view(np.uint32), out.get().view(np.uint32)
            print(name, how, f"{(ours != theirs).sum()} of {ours.size} differ")


@pytest.mark.parametrize("how", INPUTS)
@pytest.mark.parametrize("name", KINDS)
def test_a_product_is_as_exact_as_a_float(name: str, how: str) -> None:
    a, b, c = inputs(name, how)
    exact = number(a).astype(float) @ number(b).astype(float) + c
    most = (np.abs(number(a)).astype(float) @ np.abs(number(b)).astype(float)) + np.abs(c)
    assert (np.abs(simulated(name, a, b, c) - exact) <= 17 * most * 2.0**-24).all()


def test_bits_below_those_of_the_largest_summand_are_dropped() -> None:
    a, b = np.zeros((1, 1, 16), np.float16), np.ones((1, 16, 1), np.float16)
    a[0, 0, :2] = 1, 2.0**-20
    c = np.full((1, 1, 1), 2.0**-26, np.float32)
    assert tensor_product(a, b, c, -14)[0, 0, 0] == 1 + 2.0**-20
    assert tensor_product(-a, b, -c, -14)[0, 0, 0] == -1 - 2.0**-20
    a[0, 0, 1] = -(2.0**-23)  # rounded to nearest it would be 1
    assert tensor_product(a, b, np.zeros_like(c), -14)[0, 0, 0] == 1 - 2.0**-23
    assert tensor_product(a, b, np.full_like(c, np.inf), -14)[0, 0, 0] == np.inf


BODY = """
    __shared__ __align__(32) half s[512];
    __shared__ __align__(32) float t[512];
    for (int k = threadIdx.x; k < 512; k += 32) s[k] = k % 16 == k / 16 ? 1 : 0;
    for (int k = threadIdx.x; k < 512; k += 32) t[k] = 0;
    __syncthreads();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c, d;
    wmma::fill_fragment(c, 0.0f);
    wmma::load_matrix_sync(a, x, 16);
    wmma::load_matrix_sync(b, x, 16);
"""


def run(text: str, threads: int = 32) -> np.ndarray:
    head = 'extern "C" __global__ void k(const half* x, float* y, int n)'
    x, y = np.arange(256, dtype=np.float16) / 16, np.zeros(256, np.float32)
    launch(
        f"#include <mma.h>\nusing namespace nvcuda;\n{head} {{ int i = threadIdx.x; {BODY} {text} }}",
        "k",
        1,
        threads,
        x,
        y,
        5,
    )
    return y.reshape(16, 16)


X = (np.arange(256, dtype=np.float32) / 16).reshape(16, 16)
STORE = "wmma::store_matrix_sync(y, c, 16, wmma::mem_row_major);"
RIGHT = {
    "a column-major b": ("wmma::mma_sync(c, a, b, c); " + STORE, X @ X.T),
    "a column-major a": (
        "wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::col_major> e; wmma::load_matrix_sync(e, x, 16); "
        "wmma::mma_sync(c, e, b, c); " + STORE, X.T @ X.T),
    "another accumulator": ("wmma::mma_sync(d, a, b, c); c = d; wmma::mma_sync(c, a, b, d); " + STORE, 2 * X @ X.T),
    "each element by itself": (
        "wmma::mma_sync(c, a, b, c); for (int k = 0; k < c.num_elements; k++) c.x[k] = 0.5f * c.x[k] + 1; " + STORE,
        X @ X.T / 2 + 1),
    "from and to shared memory": (
        ("wmma::load_matrix_sync(b, s, 16); wmma::mma_sync(c, a, b, c); wmma::store_matrix_sync(t, c, 20, wmma::mem_col_major); "
        "__syncthreads(); for (int k = i; k < 256; k += 32) y[k] = t[k / 16 * 20 + k % 16];"), X.T),
    "an array of fragments": (
        "wmma::fragment<wmma::accumulator, 16, 16, 16, float> f[2]; for (int k = 0; k < 2; k++) { wmma::fill_fragment(f[k], 1.0f * k); "
        "wmma::mma_sync(f[k], a, b, f[k]); } c = f[1]; " + STORE, X @ X.T + 1),
    "how many elements there are": (
        STORE + " __syncthreads(); if (i == 0) { y[0] = a.num_elements; y[1] = c.num_elements; }",
        np.where(np.arange(256) < 2, [16, 8] * 128, 0).reshape(16, 16)),
}  # fmt: skip
WRONG = {
    "some lanes of a warp": (errors.WarpError, "if (i < 16) wmma::mma_sync(c, a, b, c);", "does not call mma_sync"),
    "an address of its own": (errors.WarpError, "wmma::load_matrix_sync(a, x + 16 * i, 16);", "of its own"),
    "an address that is not aligned": (errors.MisalignedError, "wmma::load_matrix_sync(a, x + 8, 16);", "no multiple of 32"),
    "a pitch that is not aligned": (errors.MisalignedError, "wmma::load_matrix_sync(a, s, n);", "no multiple of 8"),
    "beyond the end": (errors.OutOfBoundsError, "wmma::load_matrix_sync(a, x + 16, 16);", "out of bounds: it has 256 elements"),
    "a fragment that nobody filled": (errors.UninitialisedReadError, "wmma::mma_sync(c, a, b, d);", "'d'.x[0]"),
    "no barrier in front": (errors.RaceError, "s[i] = 3; wmma::load_matrix_sync(a, s, 16);", "without a __syncwarp()"),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_kernel_computes_this(name: str) -> None:
    text, want = RIGHT[name]
    np.testing.assert_array_equal(run(text), want)


def test_one_warp_of_several_may_do_it_by_itself() -> None:
    text = "wmma::load_matrix_sync(a, x, n + 11); wmma::mma_sync(c, a, b, c); "
    np.testing.assert_array_equal(run(f"if (i < 32) {{ {text} {STORE} }}", 64), X @ X.T)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_kernel_fails_with_its_cause(name: str) -> None:
    kind, text, words = WRONG[name]
    with pytest.raises(kind) as caught:
        run(text)
    assert words in str(caught.value)


@pytest.mark.parametrize(("text", "why"), [
    ("wmma::fragment<wmma::accumulator, 16, 16, 16, half> h; wmma::fill_fragment(h, half(0));", "accumulators of float"),
    ("wmma::fragment<wmma::matrix_a, 8, 8, 4, half, wmma::row_major> h;", "16x16x16, 32x8x16 and 8x32x16"),
    ("wmma::mma_sync(c, a, c, c);", "two matrices of half or of bfloat16"),
])  # fmt: skip
def test_what_tensor_cores_do_not_take_is_refused(text: str, why: str) -> None:
    with pytest.raises(errors.KernelCompileError, match=why):
        run(text)
