"""The cases that are measured on a GPU and predicted by the model: kernels, copies, and runs of the MLP."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.commands.mlp import forward
from asyncgpu_tutor.data import seed_inputs
from asyncgpu_tutor.kernels import MATVEC_NAIVE, RELU, SGEMM_NAIVE
from asyncgpu_tutor.ops.array_operations import fill_source

CORPUS = Path(__file__).resolve().parents[2] / "tests/simgpu/cuda_c/corpus"
F, I, U, L, B, D = np.float32, np.int32, np.uint32, np.uint64, np.uint8, np.float64
Make = Callable[[np.random.Generator], list[Any]]


@dataclass(frozen=True)
class KernelCase:
    """One launch: arrays among the arguments are put on the device."""

    kernel: str
    size: int
    source: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    make: Make
    shared: int = 0

    @property
    def name(self) -> str:
        return f"{self.kernel} {self.size}"


def f(rng: np.random.Generator, *shape: int) -> Any:
    """Random floats."""
    return rng.standard_normal(shape, dtype=np.float32)


def z(kind: Any, *shape: int) -> Any:
    """Zeros."""
    return np.zeros(shape, kind)


def dim3(*values: int) -> tuple[int, int, int]:
    """Extend to three dimensions."""
    x, y, z = (*values, 1, 1, 1)[:3]
    return x, y, z


def kernel_cases() -> Iterator[KernelCase]:
    """All of them, smallest sizes first."""
    text = {p.stem: p.read_text() for p in CORPUS.glob("*.cu")}
    el, mx, rd, ir, ss, st = (
        text[k] for k in ("elementwise", "matrix", "reduction", "irregular", "scan_sort", "stencil")
    )

    def cases(n: int, *rows: tuple[Any, ...]) -> Iterator[KernelCase]:
        for kernel, source, *shape, make, shared in (r if len(r) == 6 else (*r, 0) for r in rows):
            grid, block = (v if isinstance(v, tuple) else (v,) for v in shape)
            yield KernelCase(kernel, n, source, grid, block, make, shared)

    for n in (16, 64, 256, 512, 1024, 2048, 128):
        tiles = (n // 16, n // 16)
        yield from cases(
            n,
            ("sgemm_naive", SGEMM_NAIVE.source, tiles, (16, 16), _sgemm(n)),
            ("matvec_naive", MATVEC_NAIVE.source, -(-n // 256), 256, _mv(n)),
        )
    for n in (64, 256, 512):
        yield from cases(
            n,
            ("matmul_tiled", mx, (n // 16, n // 16), (16, 16), _mm(n)),
            ("matmul_registers<64, 64, 8, 4, 4>", mx, (n // 64, n // 64), 256, _mm(n)),
        )
    for n in (256, 1 << 16, 1 << 20, 1 << 22):
        g, half, fill = -(-n // 256), -(-n // 512), fill_source("fill")
        yield from cases(
            n,
            ("relu", RELU.source, g, 256, lambda r, n=n: [U(n), f(r, n), z(F, n)]),
            ("fill", fill, g, 256, lambda r, n=n: [L(n), F(1.5), z(F, n)]),
            ("saxpy", el, g, 256, lambda r, n=n: [I(n), F(0.5), f(r, n), f(r, n)]),
            ("saxpy_vec4", el, -(-n // 1024), 256, lambda r, n=n: [I(n), F(0.5), f(r, n), f(r, n)]),
            ("horner", el, g, 256, lambda r, n=n: [f(r, n), I(n)]),
            ("gelu", el, g, 256, lambda r, n=n: [f(r, n), L(n)]),
            ("reduce_sequential", rd, half, 256, lambda r, n=n, h=half: [f(r, n), z(F, h), U(n)], 1024),
            ("reduce_interleaved", rd, g, 256, lambda r, n=n: [z(I, n), z(I, -(-n // 256)), U(n)], 1024),
            ("stencil_1d", st, -(-n // 128), 128, lambda r, n=n: [z(I, n), z(I, n), I(n)]),
            ("bitonic_block", ss, g, 256, lambda r, n=n: [r.integers(0, 1 << 20, n).astype(I)], 1024),
        )  # fmt: skip
    for n in (1024, 1 << 16, 1 << 20):
        few, randn = min(264, -(-n // 256)), fill_source("randn")
        yield from cases(
            n,
            ("randn", randn, -(-n // 1024), 256, lambda r, n=n: [L(n), L(7), F(0), F(1), z(F, n)]),
            ("reduce_shuffle", rd, few, 256, lambda r, n=n: [f(r, n), z(F, 1), I(n)]),
            ("histogram_shared", ir, few, 256,
             lambda r, n=n: [r.integers(0, 256, n).astype(B), z(U, 256), I(n)]),
            ("dot", rd, few, 256, lambda r, n=n: [f(r, n), f(r, n), z(D, 1), I(n)]),
        )  # fmt: skip
    for n in (32, 256, 1024):
        tiles, square = (n // 16, n // 16), lambda r, n=n: [f(r, n, n), z(F, n, n), I(n), I(n)]
        yield from cases(
            n,
            ("transpose_naive", mx, tiles, (16, 16), square),
            ("transpose_tiled", mx, (n // 32, n // 32), (32, 8), square),
            ("blur_3x3", st, tiles, (16, 16), square),
            ("heat", st, tiles, (16, 16),
             lambda r, n=n: [r.standard_normal((n, n)), z(D, n, n), I(n), D(0.1)]),
            ("softmax_online", rd, n, 32, lambda r, n=n: [f(r, n, n), z(F, n, n), I(n)]),
            ("matvec_warp", mx, -(-n // 4), 128, lambda r, n=n: [f(r, n, n), f(r, n), z(F, n), I(n), I(n)]),
            ("layer_norm", rd, n, 128,
             lambda r, n=n: [f(r, n, n), z(F, n, n), f(r, n), f(r, n), I(n), F(1e-5)], 1024),
        )  # fmt: skip
    for n in (256, 1024, 4096):
        yield from cases(
            n,
            ("nbody_forces", ir, n // 64, 64, lambda r, n=n: [f(r, n, 4), z(F, n, 4), I(n)]),
            ("rank_sort", ss, n // 128, 128, lambda r, n=n: [f(r, n), z(F, n), I(n)]),
            ("spmv_csr", mx, n // 128, 128, _csr(n)),
        )
    for n in (64, 256, 512):
        turns: Make = lambda r, n=n: [z(I, n, n), I(n), I(n), I(100)]  # noqa: E731
        yield from cases(n, ("mandelbrot", el, (n // 16, n // 8), (16, 8), turns))

    yield from _classes()
    yield from _latency()
    yield from _later()
    yield from _newer()
    yield from _last()
    yield from _held()


# The second kernel of each class in `classes.cu` and `latency.cu`, and all of `later.cu`, `newer.cu`,
# `last.cu` and `held.cu`: no constant may ever be fitted to these.
UNSEEN = (
    "tile_distances", "chain_exponential", "newton_root", "scatter_records", "chase",
    "molecules", "kepler", "clenshaw", "sphere_march", "tree_walk", "biquad_rows", "block_norms",
    "entropy_row", "cholesky_band", "congruential_walk", "pendulum", "power_iteration", "bisect",
    "scan_warps", "edit_distance", "black_scholes",
    "stars", "van_der_pol", "lyapunov", "table_walk", "fir_rows", "warp_dots", "checksum", "simpson",
    "rays", "powers", "running_means", "block_maxima", "cooling", "rotations",
    "hash_walk", "sip_rounds", "rational_map", "halley_steps", "state_machine", "divisors", "lane_ring",
    "softmax_block", "double_orbit", "double_fraction", "soft_sine", "tree_scan", "viterbi", "bit_walk",
    "nearest_sphere",
    "adler_rows", "permuted_walk", "recurrent_cell", "attitudes", "warp_scans", "block_argmin",
    "double_logs", "hares_and_foxes", "odd_even_sort", "hilbert_places", "polar_steps",
    "integer_roots", "wave_area", "double_horner", "short_lists", "row_spreads", "secants", "byte_hashes",
    "shift_rotations", "running_softmax", "substitutions",
)  # fmt: skip


def _classes() -> Iterator[KernelCase]:
    text = (Path(__file__).parent / "classes.cu").read_text()

    def case(kernel: str, n: int, make: Make, block: int = 256) -> KernelCase:
        return KernelCase(kernel, n, text, (-(-n // block),), (block,), make)

    for n in (1024, 4096, 16384):
        yield case("tile_convolve", n, lambda r, n=n: [f(r, n), f(r, 16), z(F, n), I(n), I(20)])
        yield case("tile_distances", n // 4, lambda r, n=n // 4: [f(r, n, 4), z(F, n), I(n)], 64)
    for n in (1024, 1 << 16, 1 << 20):
        yield case("chain_sine", n, lambda r, n=n: [f(r, n), I(n), I(20)])
        yield case("chain_exponential", n, lambda r, n=n: [f(r, n), I(n), I(20)])
        yield case(
            "collatz", n, lambda r, n=n: [r.integers(1, 1 << 20, n).astype(U), z(I, n), I(n)]
        )
        yield case("newton_root", n, lambda r, n=n: [np.exp(5 * f(r, n)), z(F, n), I(n)])
        yield case("scatter_columns", n, lambda r, n=n: [f(r, n), z(F, n), I(n // 32), I(32)])
        yield case("scatter_records", n, lambda r, n=n: [f(r, n), z(F, 12 * n), I(n)])
        yield case(
            "gather", n, lambda r, n=n: [f(r, n), r.integers(0, n, n).astype(I), z(F, n), I(n)]
        )
        yield case("chase", n, lambda r, n=n: [r.permutation(n).astype(I), z(I, n), I(n), I(8)])


def _latency() -> Iterator[KernelCase]:
    """Those of `latency.cu`, two of each class, with the number that tells how long they are."""
    text = (Path(__file__).parent / "latency.cu").read_text()

    def case(kernel: str, n: int, grid: int, block: int, make: Make) -> KernelCase:
        return KernelCase(kernel, n, text, (grid,), (block,), make)

    def near_one(r: np.random.Generator, *shape: int) -> Any:
        return r.uniform(0.5, 1.5, shape).astype(F)

    def seeds(r: np.random.Generator, n: int) -> Any:
        return r.integers(1, 1 << 32, n, dtype=np.uint32)

    def polynomial(r: np.random.Generator) -> list[Any]:
        return [r.uniform(-0.9, 0.9, 1024).astype(F), f(r, 20001), z(F, 1024), I(20000)]

    def lists(n: int) -> Make:
        return lambda r: [r.permutation(n).astype(I), f(r, n), z(F, 1024), I(1000)]

    def tiles(n: int) -> Make:
        return lambda r: [r.integers(0, 9, 2048 * n).astype(I), z(I, 2048 * n), I(n)]

    rows, systems, many = 1024 * 1000, 1024 * 300, 1 << 20
    turn = [F(x) for x in (0.2, 0.4, 0.2, -0.4, 0.2)]
    yield from (
        case("bodies_direct", 16896, 132, 128, lambda r: [f(r, 16896, 4), z(F, 16896, 4), I(16896)]),
        case("molecules", 4096, 32, 128, lambda r: [*f(r, 3, 4096), z(F, 4096), I(4096)]),
        case("newton_cube", 4000, 16, 64, lambda r: [f(r, 1024), z(F, 1024), I(4000)]),
        case("kepler", 1000, 16, 256, lambda r: [f(r, 4096), z(F, 4096), F(0.3), I(1000)]),
        case("horner_long", 20000, 8, 128, polynomial),
        case("clenshaw", 20000, 8, 128, polynomial),
        case("julia", 10000, 8, 128,
             lambda r: [*(0.5 * f(r, 2, 1024)), z(I, 1024), F(-0.4), F(0.3), I(10000)]),
        case("sphere_march", 5000, 8, 64, lambda r: [f(r, 1024), z(F, 512), I(5000)]),
        case("list_sum", 1 << 18, 16, 64, lists(1 << 18)),
        case("tree_walk", 50, 8, 128, _tree(1 << 16, 50)),
        case("smooth_rows", 1000, 8, 128,
             lambda r: [f(r, rows), z(F, rows), F(0.9), I(1024), I(1000)]),
        case("biquad_rows", 1000, 8, 128,
             lambda r: [f(r, rows), z(F, rows), *turn, I(1024), I(1000)]),
        case("block_sums", 500, 16, 128, lambda r: [f(r, 2048 * 500), z(F, 16 * 500), I(500)]),
        case("block_norms", 500, 16, 128, lambda r: [f(r, 2048 * 500), z(F, 2048 * 500), I(500)]),
        case("softmax_row", 32768, 8, 32, lambda r: [f(r, 8, 32768), z(F, 8, 32768), I(32768)]),
        case("entropy_row", 32768, 8, 32, lambda r: [f(r, 8, 32768), z(F, 8), I(32768)]),
        case("tridiagonal", 300, 8, 128,
             lambda r: [f(r, systems), near_one(r, systems) + F(9), f(r, systems), z(F, systems),
                        f(r, systems), I(1024), I(300)]),
        case("cholesky_band", 300, 8, 128,
             lambda r: [near_one(r, systems) + F(4), near_one(r, systems), f(r, systems), z(F, systems),
                        z(F, systems), z(F, systems), I(1024), I(300)]),
        case("xorshift_walk", 10000, 8, 128, lambda r: [seeds(r, 1024), z(U, 1024), I(10000)]),
        case("congruential_walk", 10000, 8, 512, lambda r: [seeds(r, 4096), z(F, 4096), I(10000)]),
        case("lorenz", 3000, 8, 128, lambda r: [*f(r, 3, 1024), F(0.001), I(3000)]),
        case("pendulum", 1000, 8, 128, lambda r: [*f(r, 2, 1024), F(0.01), I(1000)]),
        case("rows_of_matrix", 4096, 8, 128,
             lambda r: [f(r, 1024, 4096), f(r, 4096), z(F, 1024), I(4096)]),
        case("power_iteration", 100, 8, 128, lambda r: [f(r, 128, 128), f(r, 1024), I(100)]),
        case("lower_bounds", 100, 8, 128,
             lambda r: [np.sort(f(r, 65536)), f(r, 102400), z(I, 1024), I(65536), I(100)]),
        case("bisect", 5000, 8, 256,
             lambda r: [r.uniform(2, 2000, 2048).astype(F), z(F, 2048), I(5000)]),
        case("scan_tiles", 200, 16, 128, tiles(200)),
        case("scan_warps", 500, 16, 128, tiles(500)),
        case("shortest_path", 100, 8, 128,
             lambda r: [near_one(r, 128, 128), near_one(r, 1024), I(100)]),
        case("edit_distance", 2000, 8, 128,
             lambda r: [r.integers(0, 4, 1024).astype(I), r.integers(0, 4, 2000).astype(I),
                        z(I, 1024), I(2000)]),
        case("compound", many, 4096, 256, lambda r: [f(r, many), z(F, many), I(many), I(200)]),
        case("black_scholes", many, 4096, 256,
             lambda r: [*near_one(r, 3, many), z(F, many), I(many)]),
    )  # fmt: skip


def _later() -> Iterator[KernelCase]:
    """Those of `later.cu`, which were written when the model was done."""
    text = (Path(__file__).parent / "later.cu").read_text()

    def case(kernel: str, n: int, grid: int, block: int, make: Make) -> KernelCase:
        return KernelCase(kernel, n, text, (grid,), (block,), make)

    rows = 1024 * 1000
    taps = [F(x) for x in (0.4, 0.3, 0.2, 0.1)]
    yield from (
        case("stars", 4096, 32, 128, lambda r: [f(r, 4096, 4), z(F, 4096, 4), I(4096)]),
        case("van_der_pol", 3000, 8, 128, lambda r: [*f(r, 2, 1024), F(1), F(0.01), I(3000)]),
        case("lyapunov", 2000, 8, 128,
             lambda r: [r.uniform(3.6, 4, 1024).astype(F), z(F, 1024), I(2000)]),
        case("table_walk", 5000, 8, 128, lambda r: [r.permutation(1024).astype(I), z(I, 1024), I(5000)]),
        case("fir_rows", 1000, 8, 128, lambda r: [f(r, rows), z(F, rows), *taps, I(1024), I(1000)]),
        case("warp_dots", 1024, 8, 128,
             lambda r: [f(r, 1024, 1024), f(r, 1024), z(F, 1024), I(1024), I(1024)]),
        case("checksum", 1000, 8, 128,
             lambda r: [r.integers(0, 256, 1024 * 1000).astype(B), z(U, 1024), I(1024), I(1000)]),
        case("simpson", 2000, 8, 128, lambda r: [f(r, 1024), z(F, 1024), F(0.001), I(2000)]),
        case("rays", 2000, 8, 128,
             lambda r: [f(r, 4096) * F(0.1), np.abs(f(r, 1024)), z(F, 1024), I(4096), I(2000)]),
        case("powers", 1000, 8, 128, lambda r: [np.abs(f(r, 1024)) + F(0.1), z(F, 1024), I(1000)]),
        case("running_means", 1000, 8, 128,
             lambda r: [f(r, rows), z(F, 1024), z(F, 1024), I(1024), I(1000)]),
        case("block_maxima", 300, 8, 256, lambda r: [f(r, 2048 * 300), z(F, 8 * 300), I(300)]),
        case("cooling", 2000, 8, 128, lambda r: [f(r, 1024), z(F, 1024), I(2000)]),
        case("rotations", 1000, 8, 128, lambda r: [f(r, 1024), z(F, 1024), z(F, 1024), I(1000)]),
    )  # fmt: skip


def _newer() -> Iterator[KernelCase]:
    """Those of `newer.cu`."""
    text = (Path(__file__).parent / "newer.cu").read_text()

    def case(kernel: str, n: int, make: Make, block: int = 128) -> KernelCase:
        return KernelCase(kernel, n, text, (8,), (block,), make)

    def words(r: np.random.Generator, n: int = 1024) -> Any:
        return r.integers(1, 1 << 32, n, dtype=np.uint32)

    def near_one(r: np.random.Generator, *shape: int) -> Any:
        return r.uniform(0.5, 1.5, shape).astype(F)

    yield from (
        case("hash_walk", 5000, lambda r: [words(r), z(U, 1024), I(5000)]),
        case("sip_rounds", 2000, lambda r: [words(r).astype(L), z(L, 1024), I(2000)]),
        case("rational_map", 2000, lambda r: [near_one(r, 1024), z(F, 1024), I(2000)]),
        case("halley_steps", 2000, lambda r: [near_one(r, 1024), z(F, 1024), I(2000)], 64),
        case("state_machine", 4000,
             lambda r: [r.integers(0, 256, (512, 2)).astype(I), r.integers(0, 2, 4000).astype(B),
                        z(I, 1024), I(4000)]),
        case("divisors", 40, lambda r: [words(r), words(r), z(U, 1024), I(40)]),
        case("lane_ring", 2000, lambda r: [f(r, 1024), z(F, 1024), I(2000)]),
        case("softmax_block", 300, lambda r: [f(r, 2048 * 300), z(F, 2048 * 300), I(300)], 256),
        case("double_orbit", 3000, lambda r: [r.random(1024), z(D, 1024), I(3000)]),
        case("double_fraction", 1000, lambda r: [r.random(1024), z(D, 1024), I(1000)]),
        case("soft_sine", 1000, lambda r: [f(r, 1024), z(F, 1024), I(1000)]),
        case("tree_scan", 150, lambda r: [f(r, 2048 * 150), z(F, 2048 * 150), I(150)], 256),
        case("viterbi", 1000, lambda r: [f(r, 128000), near_one(r, 384), z(F, 1024), I(1000)]),
        case("bit_walk", 3000, lambda r: [words(r), z(I, 1024), I(3000)]),
        case("nearest_sphere", 100,
             lambda r: [f(r, 32, 4) + F(1), f(r, 1024), z(F, 1024), I(32), I(100)]),
    )  # fmt: skip


def _last() -> Iterator[KernelCase]:
    """Those of `last.cu`."""
    text = (Path(__file__).parent / "last.cu").read_text()

    def case(kernel: str, n: int, make: Make, block: int = 128) -> KernelCase:
        return KernelCase(kernel, n, text, (8,), (block,), make)

    def words(r: np.random.Generator, kind: Any = U) -> Any:
        return r.integers(1, 1 << 32, 1024, dtype=np.uint32).astype(kind)

    rows = 1024 * 1000
    yield from (
        case("adler_rows", 1000,
             lambda r: [r.integers(0, 256, rows).astype(B), z(U, 1024), I(1024), I(1000)]),
        case("permuted_walk", 3000, lambda r: [words(r, L), z(F, 1024), I(3000)]),
        case("recurrent_cell", 1000,
             lambda r: [f(r, rows), z(F, 1024), F(0.7), F(0.5), I(1024), I(1000)]),
        case("attitudes", 1000,
             lambda r: [f(r, 1024, 4) + F(2), f(r, 1024, 4), z(F, 1024, 4), F(0.01), I(1000)]),
        case("warp_scans", 500, lambda r: [f(r, 1024 * 500), z(F, 1024 * 500), I(500)]),
        case("block_argmin", 200, lambda r: [f(r, 1024), z(I, 8 * 200), I(200)]),
        case("double_logs", 500, lambda r: [r.uniform(1, 9, 1024), z(D, 1024), I(500)]),
        case("hares_and_foxes", 2000,
             lambda r: [r.uniform(1, 3, 1024).astype(F), r.uniform(1, 3, 1024).astype(F), F(0.01), I(2000)]),
        case("odd_even_sort", 256, lambda r: [r.integers(0, 1 << 30, 2048).astype(I), z(I, 2048)]),
        case("hilbert_places", 200, lambda r: [words(r), z(U, 1024), I(200)]),
        case("polar_steps", 500, lambda r: [*f(r, 2, 1024), I(500)]),
    )  # fmt: skip


def _held() -> Iterator[KernelCase]:
    """Those of `held.cu`."""
    text = (Path(__file__).parent / "held.cu").read_text()

    def case(kernel: str, n: int, make: Make, block: int = 128) -> KernelCase:
        return KernelCase(kernel, n, text, (8,), (block,), make)

    def triangle(r: np.random.Generator) -> Any:
        return f(r, 64, 64) * F(0.1) + np.eye(64, dtype=F)

    rows = 1024 * 1000
    yield from (
        case("integer_roots", 200,
             lambda r: [r.integers(1, 1 << 32, 1024, dtype=np.uint32), z(U, 1024), I(200)]),
        case("wave_area", 2000, lambda r: [f(r, 1024), z(F, 1024), F(0.001), I(2000)]),
        case("double_horner", 5000,
             lambda r: [r.uniform(-0.9, 0.9, 1024), r.random(5000), z(D, 1024), I(5000)]),
        case("short_lists", 100, _lists),
        case("row_spreads", 400, lambda r: [f(r, 2048 * 400), z(F, 3200), I(400)], 256),
        case("secants", 1000, lambda r: [r.uniform(2, 20, 1024).astype(F), z(F, 1024), I(1000)]),
        case("byte_hashes", 1000,
             lambda r: [r.integers(0, 256, rows).astype(B), z(U, 1024), I(1024), I(1000)]),
        case("shift_rotations", 200,
             lambda r: [r.integers(0, 102943, 1024).astype(I), z(I, 1024), I(200)]),
        case("running_softmax", 1000, lambda r: [f(r, rows), z(F, 1024), I(1024), I(1000)]),
        case("substitutions", 64, lambda r: [triangle(r), f(r, 32, 64), z(F, 32, 64), I(64)]),
    )  # fmt: skip


def _lists(rng: np.random.Generator) -> list[Any]:
    """Lists that end after about twenty steps, each at a higher place."""
    links = np.arange(512) + rng.integers(1, 26, 512)
    links[links > 511] = -1
    return [links.astype(I), f(rng, 512), z(F, 1024), I(100)]


def _tree(n: int, queries: int) -> Make:
    """A search tree of `n` - 1 nodes at random places, and so many searches for each of 1024 threads."""

    def make(rng: np.random.Generator) -> list[Any]:
        place = np.concatenate(([0], 1 + rng.permutation(n - 2), np.full(n, n - 1)))
        at = np.arange(n - 1)
        children, keys = z(I, n - 1, 2), z(F, n - 1)
        children[place[at]] = np.stack((place[2 * at + 1], place[2 * at + 2]), 1)
        depth = np.floor(np.log2(at + 1))
        keys[place[at]] = (2 * (at + 1 - 2**depth) + 1) / 2 ** (depth + 1)
        wanted = rng.random(1024 * queries, dtype=np.float32)
        return [children, keys, wanted, z(I, 1024), I(n - 1), I(queries)]

    return make


def _sgemm(n: int) -> Make:
    u = U(n)
    return lambda r: [u, u, u, F(1), f(r, n, n), f(r, n, n), F(0), z(F, n, n)]


def _mv(n: int) -> Make:
    return lambda r: [U(n), U(n), f(r, n, n), f(r, n), z(F, n)]


def _mm(n: int) -> Make:
    return lambda r: [f(r, n, n), f(r, n, n), z(F, n, n), I(n), I(n), I(n)]


def _csr(n: int) -> Make:
    def make(rng: np.random.Generator) -> list[Any]:
        ptr = np.concatenate(([0], np.cumsum(rng.integers(0, 33, n)))).astype(I)
        col = rng.integers(0, n, ptr[-1]).astype(I)
        return [I(n), ptr, col, f(rng, int(ptr[-1])), f(rng, n), z(F, n)]

    return make


COPIES = ("h2d", "d2h", "d2d", "memset")
COPY_BYTES = tuple(4**k * 256 for k in range(9))  # 256 bytes to 16 MiB

# ---------------------------------------------------------------------------------------- the MLP
DIMS = (64, 128, 256, 512, 1024, 2048)
VARIANTS = ("sync each op", "sync each batch", "1 stream", "2 streams", "4 streams", "8 streams")
BATCHES = 8


@dataclass(frozen=True)
class MlpCase:
    """Eight batches, one way to wait for them, and where their inputs lie."""

    dim: int
    variant: str
    pinned: bool

    @property
    def name(self) -> str:
        return f"{self.dim} {'pinned' if self.pinned else 'pageable'} {self.variant}"


def mlp_cases() -> Iterator[MlpCase]:
    """All of them."""
    for dim in DIMS:
        for pinned in (True, False):
            for variant in VARIANTS:
                yield MlpCase(dim, variant, pinned)


_inputs = lru_cache(lambda dim: seed_inputs(dim, BATCHES))  # the largest take a while


def makespans(case: MlpCase, warm: int, runs: int) -> list[float]:
    """Run it on the current device; host time in us from the first line to the last result."""
    device = agt.current_device()
    inputs = _inputs(case.dim)
    batches = [agt.pin(x) if case.pinned else x for x in inputs.batches]
    w0 = agt.h2d(agt.pin(inputs.w0)).sync().share()
    w1 = agt.h2d(agt.pin(inputs.w1)).sync().share()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", agt.errors.PageableCopyWarning)
        if case.variant.startswith("sync"):
            stream = device.create_stream()
            one = _each_op if case.variant == "sync each op" else _each_batch

            def run() -> float:
                start = device.now()
                for x in batches:
                    one(x, w0, w1, stream)
                return device.now() - start

            return [run() for _ in range(warm + runs)][warm:]
        streams = int(case.variant.split()[0])
        return asyncio.run(_awaited(batches, w0, w1, streams, warm, runs))


def _each_op(x: Any, w0: Any, w1: Any, stream: Any) -> Any:
    m, k = x.shape
    batch = agt.h2d(x).sync_on(stream)
    hidden = agt.zeros((m, k)).sync_on(stream)
    output = agt.zeros(m).sync_on(stream)
    product = agt.sgemm_naive(m, k, k, 1.0, batch, w0, 0.0, hidden.partition(16, 16))
    hidden = product.output().sync_on(stream)
    output = agt.matvec_naive(m, k, hidden, w1, output.partition(256)).output().sync_on(stream)
    part = output.partition(256)
    output = agt.relu(m, part, part).output().sync_on(stream)
    return agt.d2h(output).sync_on(stream)


def _each_batch(x: Any, w0: Any, w1: Any, stream: Any) -> Any:
    return forward(x, w0, w1).sync_on(stream)


async def _awaited(
    batches: list[Any], w0: Any, w1: Any, streams: int, warm: int, runs: int
) -> list[float]:
    async def one(x: Any) -> Any:
        return await forward(x, w0, w1)

    device = agt.current_device()
    times: list[float] = []
    with agt.using(device, agt.StreamPoolRoundRobin(streams)):
        for _ in range(warm + runs):
            start = device.now()
            await asyncio.gather(*(one(x) for x in batches))
            times.append(device.now() - start)
    return times[warm:]
