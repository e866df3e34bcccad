"""The corpus: which kernel, with which arguments.

What is right is known from a GPU, as digests (`digests.py`). Only a kernel whose results a GPU may give in another
order, or rounds otherwise, has an `expect` of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from simgpu.cuda_c import InterpreterLimits, LaunchResult

from .support import launch

Array = np.ndarray[Any, Any]
FOLDER = Path(__file__).with_name("corpus")


def source(file: str) -> str:
    """Text of one file of the corpus."""
    return (FOLDER / f"{file}.cu").read_text()


@dataclass(frozen=True)
class Case:
    """One launch: `make` gives the arguments; `expect`, for the position of each that is written, what NumPy says."""

    file: str
    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    make: Callable[[np.random.Generator], list[Any]]
    shared: int = 0
    expect: Callable[..., dict[int, Any]] | None = None
    tolerance: float = 0.0


def arguments(case: Case) -> list[Any]:
    """The same ones each time."""
    return case.make(np.random.default_rng(sum(map(ord, case.kernel))))


def launch_case(
    case: Case, args: list[Any], text: str = "", limits: InterpreterLimits | None = None
) -> LaunchResult:
    """Launch a kernel of the corpus, or of `text`, which may have a mistake in it; arrays are changed in place."""
    program, shape = text or source(case.file), (case.grid, case.block)
    return launch(program, case.kernel, *shape, *args, shared=case.shared, limits=limits)


def f(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def i(rng: np.random.Generator, low: int, high: int, *shape: int) -> Array:
    return rng.integers(low, high, shape).astype(np.int32)


def zeros(kind: Any, *shape: int) -> Array:
    return np.zeros(shape, kind)


F, I, U, B, D = np.float32, np.int32, np.uint32, np.uint8, np.float64


def gelu(x: Array, n: int) -> dict[int, Any]:
    v = x.astype(D)
    return {0: 0.5 * v * (1 + np.tanh(0.7978845608 * (v + 0.044715 * v**3)))}


def csr(rng: np.random.Generator, rows: int, cols: int) -> list[Any]:
    lengths = rng.integers(0, 9, rows)
    ptr = np.concatenate(([0], np.cumsum(lengths))).astype(I)
    col = rng.integers(0, cols, ptr[-1]).astype(I)
    return [rows, ptr, col, f(rng, int(ptr[-1])), f(rng, cols), zeros(F, rows)]


def softmax(x: Array, y: Array, cols: int) -> dict[int, Any]:
    e = np.exp(x - x.max(1, keepdims=True))
    return {1: e / e.sum(1, keepdims=True)}


def layer_norm(x: Array, out: Array, g: Array, b: Array, cols: int, eps: float) -> dict[int, Any]:
    v = x.astype(D)
    return {1: (v - v.mean(1, keepdims=True)) / np.sqrt(v.var(1, keepdims=True) + eps) * g + b}


def compact(x: Array, out: Array, count: Array, n: int) -> dict[int, Any]:
    kept = x[x > 0]
    return {1: np.concatenate((kept, np.full(n - len(kept), -7))), 2: [len(kept)]}


def graph(rng: np.random.Generator) -> list[Any]:
    n = 200
    lengths = rng.integers(0, 6, n)
    ptr = np.concatenate(([0], np.cumsum(lengths))).astype(I)
    edges, depth = i(rng, 0, n, int(ptr[-1])), np.full(n, -1, I)
    depth[rng.integers(0, n, 20)] = 3
    return [ptr, edges, depth, zeros(I, 1), 3, n]


def bodies(pos: Array, acc: Array, n: int) -> dict[int, Any]:
    p = pos.astype(D)
    d = p[None, :, :3] - p[:, None, :3]
    inv = ((d**2).sum(2) + 1e-3) ** -1.5
    want = (d * (inv * p[None, :, 3])[:, :, None]).sum(1)
    return {1: np.concatenate((want, np.zeros((n, 1))), 1)}


def table(rng: np.random.Generator) -> list[Any]:
    keys = rng.permutation(10_000)[:300].astype(U)
    return [np.full(512, 0xFFFFFFFF, U), zeros(I, 512), 512, keys, np.arange(300, dtype=I), 300]


def inserted(
    keys: Array, values: Array, size: int, new: Array, payload: Array, n: int
) -> dict[int, Any]:
    """Which slot a key takes depends on the order; the set of pairs does not."""
    return {-1: {int(k): int(v) for k, v in zip(new, payload, strict=True)}}


def distances(rng: np.random.Generator) -> list[Any]:
    d = i(rng, 1, 100, 70, 70)
    np.fill_diagonal(d, 0)
    return [d, 70, 5]


def tree(rng: np.random.Generator) -> list[Any]:
    n = 60
    left, right = np.full(n, -1, I), np.full(n, -1, I)
    for v in range(1, n):
        at = 0
        while True:
            side = left if rng.random() < 0.5 else right
            if side[at] < 0:
                side[at] = v
                break
            at = int(side[at])
    return [left, right, zeros(I, n), n]


def products(m: int, n: int, k: int) -> Callable[[np.random.Generator], list[Any]]:
    return lambda r: [f(r, m, k), f(r, k, n), zeros(F, m, n), m, n, k]


E_, R, M, S, N, X = "elementwise", "reduction", "matrix", "scan_sort", "stencil", "irregular"
P, Z = "pointers", "random"
CASES = [
    Case(E_, "saxpy", (8,), (128,), lambda r: [1000, F(2.5), f(r, 1000), f(r, 1000)]),
    Case(E_, "saxpy_stride", (2,), (96,), lambda r: [1000, F(2.5), f(r, 1000), f(r, 1000)]),
    Case(E_, "saxpy_vec4", (2,), (64,), lambda r: [1003, F(2.5), f(r, 1003), f(r, 1003)]),
    Case(E_, "gelu", (8,), (128,), lambda r: [f(r, 1000), 1000], expect=gelu, tolerance=1e-6),
    Case(E_, "clamp_bytes", (8,), (128,), lambda r: [f(r, 1000) * 300, zeros(B, 1000), 1000]),
    Case(E_, "grey", (3, 4), (16, 8), lambda r: [r.integers(0, 256, (30, 40, 4)).astype(B), zeros(B, 30, 40), 40, 30]),
    Case(E_, "mandelbrot", (4, 4), (16, 8), lambda r: [zeros(I, 30, 60), 60, 30, 50]),
    Case(E_, "complex_mul", (4,), (64,), lambda r: [f(r, 200, 2), f(r, 200, 2), zeros(F, 200, 2), 200]),
    Case(E_, "horner", (2,), (128,), lambda r: [f(r, 250), 250]),
    Case(E_, "fill_value<double>", (2,), (32,), lambda r: [zeros(D, 100), 2.5, 100]),
    Case(M, "matmul_naive", (3, 4), (16, 16), products(50, 40, 33)),
    Case(M, "matmul_tiled", (3, 4), (16, 16), products(50, 40, 33)),
    Case(M, "matmul_registers<64, 64, 8, 4, 4>", (2, 1), (256,), products(64, 128, 24)),
    Case(M, "matvec_warp", (10,), (128,), lambda r: [f(r, 37, 100), f(r, 100), zeros(F, 37), 37, 100]),
    Case(M, "transpose_naive", (5, 4), (16, 16), lambda r: [f(r, 50, 70), zeros(F, 70, 50), 70, 50]),
    Case(M, "transpose_tiled", (3, 2), (32, 8), lambda r: [f(r, 50, 70), zeros(F, 70, 50), 70, 50]),
    Case(M, "spmv_csr", (2,), (64,), lambda r: csr(r, 100, 80)),
    Case(M, "batched_trace", (6,), (32,), lambda r: [r.standard_normal((6, 40, 40)), zeros(D, 6), 40]),
    Case(R, "reduce_interleaved", (8,), (128,), lambda r: [i(r, -99, 99, 1000), zeros(I, 8), 1000], 512),
    Case(R, "reduce_sequential", (4,), (128,), lambda r: [f(r, 1000), zeros(F, 4), 1000], 512),
    Case(R, "reduce_shuffle", (4,), (128,), lambda r: [f(r, 3000), zeros(F, 1), 3000],
         expect=lambda x, o, n: {1: [x.astype(D).sum()]}, tolerance=1e-4),
    Case("last_block", "sum_in_last_block", (6,), (128,), lambda r: [f(r, 3000), zeros(F, 6), zeros(F, 1), 3000],
         expect=lambda x, p, o, n: {2: [x.astype(D).sum()]}, tolerance=1e-4),
    Case(R, "max_by_cas", (4,), (64,), lambda r: [abs(f(r, 250)), zeros(F, 1), 250]),
    Case(R, "argmax_rows", (9,), (128,), lambda r: [i(r, 0, 50, 9, 300).astype(F), zeros(I, 9), 300]),
    Case(R, "dot", (3,), (256,), lambda r: [f(r, 2000), f(r, 2000), zeros(D, 1), 2000],
         expect=lambda a, b, o, n: {2: [a.astype(D) @ b.astype(D)]}, tolerance=1e-10),
    Case(R, "softmax_online", (7,), (32,), lambda r: [f(r, 7, 100), zeros(F, 7, 100), 100], expect=softmax, tolerance=1e-6),
    Case(R, "layer_norm", (5,), (64,), lambda r: [f(r, 5, 200), zeros(F, 5, 200), f(r, 200), f(r, 200), 200, F(1e-5)],
         512, layer_norm, 1e-5),
    Case(S, "scan_hillis_steele", (1,), (128,), lambda r: [i(r, 0, 9, 128).astype(F), zeros(F, 128), 128], 1024),
    Case(S, "scan_blelloch", (1,), (128,), lambda r: [i(r, 0, 9, 256), 256], 1024),
    Case(S, "scan_by_warps", (3,), (256,), lambda r: [i(r, 0, 9, 700), zeros(I, 700), zeros(I, 3), 700]),
    Case(S, "add_block_sums", (3,), (64,), lambda r: [i(r, 0, 9, 180), i(r, 0, 9, 3), 180]),
    Case(S, "compact_positive", (4,), (64,), lambda r: [i(r, -9, 9, 250), np.full(250, -7, I), zeros(I, 1), 250],
         expect=compact),
    Case(S, "bitonic_block", (3,), (128,), lambda r: [i(r, -999, 999, 3, 128)], 512),
    Case(S, "odd_even", (1,), (64,), lambda r: [i(r, -99, 99, 101), 101]),
    Case(S, "rank_sort", (2,), (64,), lambda r: [i(r, 0, 30, 120).astype(F), zeros(F, 120), 120]),
    Case(S, "binary_search", (2,), (64,),
         lambda r: [np.sort(r.permutation(500)[:200]).astype(I), 200, i(r, 0, 500, 100), zeros(I, 100), 100]),
    Case(S, "radix_pass", (1,), (256,), lambda r: [i(r, 0, 1 << 20, 256).astype(U), zeros(U, 256), 256, 3]),
    Case(N, "stencil_1d", (4,), (128,), lambda r: [i(r, 0, 99, 500), zeros(I, 500), 500]),
    Case(N, "blur_3x3", (4, 5), (16, 8), lambda r: [f(r, 40, 50), zeros(F, 40, 50), 50, 40]),
    Case(N, "conv2d_tiled", (4, 3), (16, 16), lambda r: [f(r, 40, 50), f(r, 3, 3), zeros(F, 40, 50), 50, 40]),
    Case(N, "heat", (3, 5), (16, 8), lambda r: [r.standard_normal((40, 40)), zeros(D, 40, 40), 40, 0.1]),
    Case(N, "life", (4, 5), (16, 8), lambda r: [r.integers(0, 2, (40, 50)).astype(B), zeros(B, 40, 50), 50, 40]),
    Case(N, "sobel", (4, 5), (16, 8), lambda r: [r.integers(0, 256, (40, 50)).astype(B), zeros(B, 40, 50), 50, 40]),
    Case(X, "histogram_global", (3,), (64,), lambda r: [r.integers(0, 256, 2000).astype(B), zeros(U, 256), 2000]),
    Case(X, "histogram_shared", (3,), (64,), lambda r: [r.integers(0, 256, 2000).astype(B), zeros(U, 256), 2000]),
    Case(X, "bfs_level", (4,), (64,), graph),
    Case(X, "nbody_forces", (3,), (64,), lambda r: [abs(f(r, 192, 4)), zeros(F, 192, 4), 192], expect=bodies, tolerance=1e-4),
    Case(X, "hash_insert", (5,), (64,), table, expect=inserted),
    Case(X, "monte_carlo_pi", (2,), (64,), lambda r: [zeros(np.uint64, 1), 40]),
    Case(X, "floyd_warshall", (2, 70), (64,), distances),
    Case(X, "tree_depths", (1,), (64,), tree),
    Case(X, "tiny_machine", (2,), (64,),
         lambda r: [np.array([3, 5, 0, 0, 3, 3, 2, 0], I), 4, i(r, -50, 50, 100), zeros(I, 100), 100]),
    Case(X, "collatz", (2,), (64,), lambda r: [r.integers(1, 100000, 100), zeros(I, 100), 100]),
    Case(P, "by_table", (3,), (64,), lambda r: [f(r, 150), f(r, 150), i(r, 0, 3, 150), zeros(F, 150), 150]),
    Case(P, "fold_rows", (2,), (32,), lambda r: [f(r, 50, 12), zeros(F, 50, 2), 50, 12]),
    Case(P, "swap_rows", (3,), (32,), lambda r: [f(r, 12, 70), 70]),
    Case(P, "padded", (1,), (16, 16), lambda r: [f(r, 16, 16), zeros(F, 16, 16)]),
    Case(P, "list_sums", (2,), (64,), lambda r: [i(r, -9, 9, 128), zeros(I, 128)]),
    Case(P, "tree_search", (2,), (32,), lambda r: [r.permutation(40)[:25].astype(I), 25, i(r, 0, 40, 64), zeros(I, 64)]),
    Case(P, "chained", (20,), (1,), lambda r: [i(r, 0, 99, 20), zeros(I, 20), zeros(I, 20)]),
    Case(P, "aligned", (1,), (32,), lambda r: [np.arange(32, dtype=F), zeros(I, 32)]),
    Case(Z, "xorwow_numbers", (2,), (32,), lambda r: [np.uint64(0x123456789ABCDEF), zeros(U, 64, 4)]),
    Case(Z, "philox_numbers", (2,), (32,), lambda r: [np.uint64(0x123456789ABCDEF), zeros(U, 64, 4)]),
    Case(Z, "uniform_numbers", (2,), (32,), lambda r: [zeros(B, 64, 48), zeros(F, 64), zeros(D, 64)]),
    Case(Z, "normal_numbers", (2,), (32,), lambda r: [zeros(F, 64)]),  # test_curand.py knows them
    Case(X, "count_primes", (4,), (128,), lambda r: [zeros(I, 1), 500]),
]  # fmt: skip
