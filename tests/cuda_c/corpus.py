"""The corpus: which kernel, with which arguments, and what NumPy says to it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from asyncgpu_tutor.cuda_c.compile.builtins.xorwow import jump

Array = np.ndarray[Any, Any]
FOLDER = Path(__file__).with_name("corpus")


def source(file: str) -> str:
    """Text of one file of the corpus."""
    return (FOLDER / f"{file}.cu").read_text()


@dataclass(frozen=True)
class Case:
    """One launch.

    `make` gives the arguments; `expect` gets copies of them and gives, for the position of each
    argument that the kernel writes, what must be there.
    """

    file: str
    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    make: Callable[[np.random.Generator], list[Any]]
    expect: Callable[..., dict[int, Any]]
    shared: int = 0
    tolerance: float = 0.0


def f(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def i(rng: np.random.Generator, low: int, high: int, *shape: int) -> Array:
    return rng.integers(low, high, shape).astype(np.int32)


def zeros(kind: Any, *shape: int) -> Array:
    return np.zeros(shape, kind)


F, I, U, B, D = np.float32, np.int32, np.uint32, np.uint8, np.float64


def saxpy(n: Any, a: Any, x: Array, y: Array) -> dict[int, Any]:
    return {3: (x.astype(D) * float(a) + y).astype(F)}


def gelu(x: Array, n: int) -> dict[int, Any]:
    v = x.astype(D)
    return {0: 0.5 * v * (1 + np.tanh(0.7978845608 * (v + 0.044715 * v**3)))}


def mandelbrot(out: Array, w: int, h: int, limit: int) -> dict[int, Any]:
    px, py = np.meshgrid(np.arange(w), np.arange(h))
    c = -2 + 3.0 * px / w + 1j * (-1 + 2.0 * py / h)
    z, count, live = np.zeros_like(c), np.zeros((h, w), I), np.ones((h, w), bool)
    for _ in range(limit):
        live &= z.real**2 + z.imag**2 <= 4
        z = np.where(live, z * z + c, z)
        count += live
    return {0: count}


def csr(rng: np.random.Generator, rows: int, cols: int) -> list[Any]:
    lengths = rng.integers(0, 9, rows)
    ptr = np.concatenate(([0], np.cumsum(lengths))).astype(I)
    col = rng.integers(0, cols, ptr[-1]).astype(I)
    return [rows, ptr, col, f(rng, int(ptr[-1])), f(rng, cols), zeros(F, rows)]


def spmv(rows: int, ptr: Array, col: Array, val: Array, x: Array, y: Array) -> dict[int, Any]:
    return {
        5: np.array([val[ptr[r] : ptr[r + 1]] @ x[col[ptr[r] : ptr[r + 1]]] for r in range(rows)])
    }


def softmax(x: Array, y: Array, cols: int) -> dict[int, Any]:
    e = np.exp(x - x.max(1, keepdims=True))
    return {1: e / e.sum(1, keepdims=True)}


def layer_norm(x: Array, out: Array, g: Array, b: Array, cols: int, eps: float) -> dict[int, Any]:
    v = x.astype(D)
    return {1: (v - v.mean(1, keepdims=True)) / np.sqrt(v.var(1, keepdims=True) + eps) * g + b}


def by_warps(x: Array, out: Array, sums: Array, n: int) -> dict[int, Any]:
    rows = np.pad(x, (0, 768 - n)).reshape(3, 256).cumsum(1)
    return {1: rows.ravel()[:n], 2: rows[:, -1]}


def compact(x: Array, out: Array, count: Array, n: int) -> dict[int, Any]:
    kept = x[x > 0]
    return {1: np.concatenate((kept, np.full(n - len(kept), -7))), 2: [len(kept)]}


def found(s: Array, n: int, wanted: Array, out: Array, m: int) -> dict[int, Any]:
    at = np.searchsorted(s, wanted)
    hit = (at < n) & (s[np.minimum(at, n - 1)] == wanted)
    return {3: np.where(hit, at, -1)}


def window(x: Array, out: Array, n: int) -> dict[int, Any]:
    return {1: np.convolve(x, np.ones(7, I), "same")}


def convolve(x: Array, k: Array, mode: str = "constant") -> Array:
    p = np.pad(x.astype(D), 1, mode=mode)
    h, w = x.shape
    return sum(k[r, c] * p[r : r + h, c : c + w] for r in range(3) for c in range(3))


def heat(u: Array, v: Array, n: int, c: float) -> dict[int, Any]:
    out = u.copy()
    m = u[1:-1, 1:-1]
    out[1:-1, 1:-1] = m + c * (u[1:-1, :-2] + u[1:-1, 2:] + u[:-2, 1:-1] + u[2:, 1:-1] - 4 * m)
    return {1: out}


def life(now: Array, after: Array, w: int, h: int) -> dict[int, Any]:
    around = sum(
        np.roll(now.astype(int), (a, b), (0, 1)) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b
    )
    return {1: (around == 3) | ((around == 2) & (now == 1))}


def sobel(x: Array, out: Array, w: int, h: int) -> dict[int, Any]:
    v = x.astype(int)
    gx = v[:-2, 2:] + 2 * v[1:-1, 2:] + v[2:, 2:] - v[:-2, :-2] - 2 * v[1:-1, :-2] - v[2:, :-2]
    gy = v[2:, :-2] + 2 * v[2:, 1:-1] + v[2:, 2:] - v[:-2, :-2] - 2 * v[:-2, 1:-1] - v[:-2, 2:]
    want = np.zeros((h, w), int)
    want[1:-1, 1:-1] = np.minimum(abs(gx) + abs(gy), 255)
    return {1: want}


def graph(rng: np.random.Generator) -> list[Any]:
    n = 200
    lengths = rng.integers(0, 6, n)
    ptr = np.concatenate(([0], np.cumsum(lengths))).astype(I)
    edges, depth = i(rng, 0, n, int(ptr[-1])), np.full(n, -1, I)
    depth[rng.integers(0, n, 20)] = 3
    return [ptr, edges, depth, zeros(I, 1), 3, n]


def bfs(
    ptr: Array, edges: Array, depth: Array, changed: Array, level: int, n: int
) -> dict[int, Any]:
    out = depth.copy()
    for v in np.flatnonzero(depth == level):
        for e in edges[ptr[v] : ptr[v + 1]]:
            if out[e] == -1:
                out[e] = level + 1
    return {2: out, 3: [int((out != depth).any())]}


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


def pi_hits(hits: Array, tries: int) -> dict[int, Any]:
    total = 0
    for t in range(128):
        s = (1234567 + 747796405 * (t + 1)) & 0xFFFFFFFF
        for _ in range(tries):
            point: list[float] = []
            for _ in range(2):
                s ^= (s << 13) & 0xFFFFFFFF
                s ^= s >> 17
                s ^= (s << 5) & 0xFFFFFFFF
                point.append((s >> 8) / 16777216)
            total += point[0] ** 2 + point[1] ** 2 < 1
    return {0: [total]}


def distances(rng: np.random.Generator) -> list[Any]:
    d = i(rng, 1, 100, 70, 70)
    np.fill_diagonal(d, 0)
    return [d, 70, 5]


def floyd(d: Array, n: int, k: int) -> dict[int, Any]:
    return {0: np.minimum(d, d[:, k : k + 1] + d[k : k + 1, :])}


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


def depths(left: Array, right: Array, out: Array, n: int) -> dict[int, Any]:
    want = np.ones(n, int)
    for v in range(n - 1, -1, -1):
        want[v] = 1 + max((want[c] for c in (left[v], right[v]) if c >= 0), default=0)
    return {2: want}


def collatz(x: Array, steps: Array, n: int) -> dict[int, Any]:
    def count(v: int) -> int:
        c = 0
        while v != 1 and c < 1000:
            v, c = (3 * v + 1 if v & 1 else v >> 1), c + 1
        return c

    return {1: [count(int(v)) for v in x]}


def primes(total: Array, limit: int) -> dict[int, Any]:
    return {0: [sum(all(v % d for d in range(2, math.isqrt(v) + 1)) for v in range(2, limit + 1))]}


def machine(program: Array, length: int, x: Array, out: Array, n: int) -> dict[int, Any]:
    return {3: (x.astype(np.int64) + 5) * 3 - x}


def products(m: int, n: int, k: int) -> Callable[[np.random.Generator], list[Any]]:
    return lambda r: [f(r, m, k), f(r, k, n), zeros(F, m, n), m, n, k]


def product(a: Array, b: Array, c: Array, m: int, n: int, k: int) -> dict[int, Any]:
    return {2: a.astype(D) @ b.astype(D)}


def grey(p: Array, out: Array, w: int, h: int) -> dict[int, Any]:
    return {1: (p.astype(int)[..., :3] @ [77, 150, 29]) >> 8}


def complex_product(a: Array, b: Array, c: Array, n: int) -> dict[int, Any]:
    z = (a[:, 0] + 1j * a[:, 1]) * (b[:, 0] + 1j * b[:, 1])
    return {2: np.stack((z.real, z.imag), 1)}


def horner(x: Array, n: int) -> dict[int, Any]:
    return {0: np.polyval([0.0625, -0.125, 0.25, -0.5, 1.0], x.astype(D))}


def sums(per_block: int, kind: Any) -> Callable[..., dict[int, Any]]:
    def expect(x: Array, out: Array, n: int) -> dict[int, Any]:
        padded = np.zeros(per_block * len(out), kind)
        padded[:n] = x
        return {1: padded.reshape(len(out), per_block).sum(1)}

    return expect


def by_table(a: Array, b: Array, which: Array, o: Array, n: Any) -> dict[int, Any]:
    return {3: np.choose(which, [a + b, a * b, np.maximum(a, b)])}


def folded(x: Array, o: Array, rows: Any, columns: Any) -> dict[int, Any]:
    odd = np.arange(rows) % 2 == 1
    return {1: np.stack([x.max(1), np.where(odd, x.prod(1, D), x.sum(1, D))], 1)}


def swapped(x: Array, columns: Any) -> dict[int, Any]:
    for c in range(columns):
        a, b = c % 4, (c + 1) % 4
        x[a::4, c], x[b::4, c] = x[b::4, c].copy(), x[a::4, c].copy()
    return {0: x}


def list_sums(values: Array, o: Array) -> dict[int, Any]:
    blocks = values.reshape(-1, 64)
    return {1: np.stack([blocks[:, t % 3 : t + 1 : 3].sum(1) for t in range(64)], 1).reshape(-1)}


def searched(keys: Array, count: Any, wanted: Array, steps: Array) -> dict[int, Any]:
    depth: dict[int, int] = {}
    # As deep as the deeper of its neighbours that are there already, and one more.
    for key in keys.tolist():
        below = max((k for k in depth if k < key), default=None)
        above = min((k for k in depth if k > key), default=None)
        depth[key] = max((depth[k] for k in (below, above) if k is not None), default=-1) + 1
    return {3: [depth.get(w, -1) for w in wanted.tolist()]}


def xorwow(seed: int, sequence: int, offset: int, count: int) -> list[int]:
    """Marsaglia's generator from the state that cuRAND begins with; whole sequences are jumped over."""
    low, high = (int(w) for w in np.array([seed], np.uint64).view(U))
    low, high = 1099087573 * (low ^ 0xAAD26B49), 2591861531 * (high ^ 0xF7DCEFDD)
    words = [123456789 + low, 362436069 ^ low, 521288629 + high, 88675123 ^ high, 5783321 + low]
    state = np.array([[w & 0xFFFFFFFF for w in words]], U)
    words = jump(state, np.array([sequence], np.uint64), 67)[0].tolist()
    d, out = 6615241 + low + high, []
    for _ in range(offset + count):
        t = words[0] ^ (words[0] >> 2)
        words = [*words[1:], (words[4] ^ (words[4] << 4) ^ t ^ (t << 1)) & 0xFFFFFFFF]
        d += 362437
        out.append((words[4] + d) & 0xFFFFFFFF)
    return out[offset:]


def philox_from(seed: int, sequence: int, offset: int) -> list[int]:
    """Four numbers of a sequence, from the one of number `offset` on."""
    drawn = [n for block in range(offset // 4 + 2) for n in philox(seed, sequence, block)]
    return drawn[offset : offset + 4]


def philox(seed: int, sequence: int, block: int) -> list[int]:
    """A block of four numbers of a sequence."""
    c, k = [block, 0, sequence, 0], [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [b >> 32 ^ c[1] ^ k[0], b & 0xFFFFFFFF, a >> 32 ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def uniform(states: Array, o: Array, d: Array) -> dict[int, Any]:
    drawn = np.array([xorwow(7, k, 0, 3) for k in range(64)], np.uint64)
    bits = drawn[:, 1] ^ (drawn[:, 2] << np.uint64(21))
    return {1: drawn[:, 0].astype(F) * F(2.0**-32) + F(2.0**-33), 2: bits * 2.0**-53 + 2.0**-54}


def normal(o: Array) -> dict[int, Any]:
    drawn = np.array([philox(7, k, 0) for k in range(64)], D)
    far = np.sqrt(-2 * np.log(drawn[:, 0] * 2.0**-32 + 2.0**-33))
    turn = 2 * np.pi * (drawn[:, 1] * 2.0**-32 + 2.0**-33)
    return {0: far * (np.sin(turn) + np.cos(turn))}


E_, R, M, S, N, X = "elementwise", "reduction", "matrix", "scan_sort", "stencil", "irregular"
P, Z = "pointers", "random"
CASES = [
    Case(E_, "saxpy", (8,), (128,), lambda r: [1000, F(2.5), f(r, 1000), f(r, 1000)], saxpy),
    Case(E_, "saxpy_stride", (2,), (96,), lambda r: [1000, F(2.5), f(r, 1000), f(r, 1000)], saxpy),
    Case(E_, "saxpy_vec4", (2,), (64,), lambda r: [1003, F(2.5), f(r, 1003), f(r, 1003)], saxpy),
    Case(E_, "gelu", (8,), (128,), lambda r: [f(r, 1000), 1000], gelu, tolerance=1e-6),
    Case(E_, "clamp_bytes", (8,), (128,), lambda r: [f(r, 1000) * 300, zeros(B, 1000), 1000],
         lambda x, o, n: {1: np.clip(np.floor(x + F(0.5)), 0, 255)}),
    Case(E_, "grey", (3, 4), (16, 8), lambda r: [r.integers(0, 256, (30, 40, 4)).astype(B), zeros(B, 30, 40), 40, 30],
         grey),
    Case(E_, "mandelbrot", (4, 4), (16, 8), lambda r: [zeros(I, 30, 60), 60, 30, 50], mandelbrot),
    Case(E_, "complex_mul", (4,), (64,), lambda r: [f(r, 200, 2), f(r, 200, 2), zeros(F, 200, 2), 200],
         complex_product, tolerance=1e-6),
    Case(E_, "horner", (2,), (128,), lambda r: [f(r, 250), 250], horner, tolerance=1e-5),
    Case(E_, "fill_value<double>", (2,), (32,), lambda r: [zeros(D, 100), 2.5, 100], lambda x, v, n: {0: np.full(n, v)}),
    Case(M, "matmul_naive", (3, 4), (16, 16), products(50, 40, 33), product, tolerance=1e-5),
    Case(M, "matmul_tiled", (3, 4), (16, 16), products(50, 40, 33), product, tolerance=1e-5),
    Case(M, "matmul_registers<64, 64, 8, 4, 4>", (2, 1), (256,), products(64, 128, 24), product, tolerance=1e-5),
    Case(M, "matvec_warp", (10,), (128,), lambda r: [f(r, 37, 100), f(r, 100), zeros(F, 37), 37, 100],
         lambda a, x, y, n, m: {2: a.astype(D) @ x}, tolerance=1e-5),
    Case(M, "transpose_naive", (5, 4), (16, 16), lambda r: [f(r, 50, 70), zeros(F, 70, 50), 70, 50],
         lambda a, o, w, h: {1: a.T}),
    Case(M, "transpose_tiled", (3, 2), (32, 8), lambda r: [f(r, 50, 70), zeros(F, 70, 50), 70, 50],
         lambda a, o, w, h: {1: a.T}),
    Case(M, "spmv_csr", (2,), (64,), lambda r: csr(r, 100, 80), spmv, tolerance=1e-5),
    Case(M, "batched_trace", (6,), (32,), lambda r: [r.standard_normal((6, 40, 40)), zeros(D, 6), 40],
         lambda m, o, n: {1: np.trace(m, axis1=1, axis2=2)}, tolerance=1e-12),
    Case(R, "reduce_interleaved", (8,), (128,), lambda r: [i(r, -99, 99, 1000), zeros(I, 8), 1000], sums(128, I), 512),
    Case(R, "reduce_sequential", (4,), (128,), lambda r: [f(r, 1000), zeros(F, 4), 1000], sums(256, D), 512, 1e-5),
    Case(R, "reduce_unrolled<256>", (2,), (256,), lambda r: [f(r, 900), zeros(F, 2), 900], sums(512, D),
         tolerance=1e-5),
    Case(R, "reduce_shuffle", (4,), (128,), lambda r: [f(r, 3000), zeros(F, 1), 3000],
         lambda x, o, n: {1: [x.astype(D).sum()]}, tolerance=1e-4),
    Case(R, "reduce_last_block", (6,), (128,), lambda r: [f(r, 3000), zeros(F, 6), zeros(F, 1), 3000],
         lambda x, p, o, n: {2: [x.astype(D).sum()]}, tolerance=1e-4),
    Case(R, "max_by_cas", (4,), (64,), lambda r: [abs(f(r, 250)), zeros(F, 1), 250], lambda x, o, n: {1: [x.max()]}),
    Case(R, "argmax_rows", (9,), (128,), lambda r: [i(r, 0, 50, 9, 300).astype(F), zeros(I, 9), 300],
         lambda x, o, c: {1: x.argmax(1)}),
    Case(R, "dot", (3,), (256,), lambda r: [f(r, 2000), f(r, 2000), zeros(D, 1), 2000],
         lambda a, b, o, n: {2: [a.astype(D) @ b.astype(D)]}, tolerance=1e-10),
    Case(R, "softmax_online", (7,), (32,), lambda r: [f(r, 7, 100), zeros(F, 7, 100), 100], softmax, tolerance=1e-6),
    Case(R, "layer_norm", (5,), (64,),
         lambda r: [f(r, 5, 200), zeros(F, 5, 200), f(r, 200), f(r, 200), 200, F(1e-5)], layer_norm, 512, 1e-5),
    Case(S, "scan_hillis_steele", (1,), (128,), lambda r: [i(r, 0, 9, 128).astype(F), zeros(F, 128), 128],
         lambda x, o, n: {1: np.concatenate(([0], x.cumsum()[:-1]))}, 1024),
    Case(S, "scan_blelloch", (1,), (128,), lambda r: [i(r, 0, 9, 256), 256],
         lambda x, n: {0: np.concatenate(([0], x.cumsum()[:-1]))}, 1024),
    Case(S, "scan_by_warps", (3,), (256,), lambda r: [i(r, 0, 9, 700), zeros(I, 700), zeros(I, 3), 700], by_warps),
    Case(S, "add_block_sums", (3,), (64,), lambda r: [i(r, 0, 9, 180), i(r, 0, 9, 3), 180],
         lambda x, s, n: {0: x + np.repeat([0, s[0], s[0] + s[1]], 64)[:n]}),
    Case(S, "compact_positive", (4,), (64,), lambda r: [i(r, -9, 9, 250), np.full(250, -7, I), zeros(I, 1), 250],
         compact),
    Case(S, "bitonic_block", (3,), (128,), lambda r: [i(r, -999, 999, 3, 128)], lambda x: {0: np.sort(x, 1)}, 512),
    Case(S, "odd_even", (1,), (64,), lambda r: [i(r, -99, 99, 101), 101], lambda x, n: {0: np.sort(x)}),
    Case(S, "rank_sort", (2,), (64,), lambda r: [i(r, 0, 30, 120).astype(F), zeros(F, 120), 120],
         lambda x, o, n: {1: np.sort(x)}),
    Case(S, "binary_search", (2,), (64,),
         lambda r: [np.sort(r.permutation(500)[:200]).astype(I), 200, i(r, 0, 500, 100), zeros(I, 100), 100], found),
    Case(S, "radix_pass", (1,), (256,), lambda r: [i(r, 0, 1 << 20, 256).astype(U), zeros(U, 256), 256, 3],
         lambda x, o, n, b: {1: x[np.argsort(x >> b & 1, kind="stable")]}),
    Case(N, "stencil_1d", (4,), (128,), lambda r: [i(r, 0, 99, 500), zeros(I, 500), 500], window),
    Case(N, "blur_3x3", (4, 5), (16, 8), lambda r: [f(r, 40, 50), zeros(F, 40, 50), 50, 40],
         lambda x, o, w, h: {1: convolve(x, np.outer([1, 2, 1], [1, 2, 1]), "edge") / 16}, tolerance=1e-6),
    Case(N, "conv2d_tiled", (4, 3), (16, 16), lambda r: [f(r, 40, 50), f(r, 3, 3), zeros(F, 40, 50), 50, 40],
         lambda x, k, o, w, h: {2: convolve(x, k)}, tolerance=1e-5),
    Case(N, "heat", (3, 5), (16, 8), lambda r: [r.standard_normal((40, 40)), zeros(D, 40, 40), 40, 0.1], heat,
         tolerance=1e-14),
    Case(N, "life", (4, 5), (16, 8), lambda r: [r.integers(0, 2, (40, 50)).astype(B), zeros(B, 40, 50), 50, 40], life),
    Case(N, "sobel", (4, 5), (16, 8), lambda r: [r.integers(0, 256, (40, 50)).astype(B), zeros(B, 40, 50), 50, 40],
         sobel),
    Case(X, "histogram_global", (3,), (64,), lambda r: [r.integers(0, 256, 2000).astype(B), zeros(U, 256), 2000],
         lambda x, b, n: {1: np.bincount(x, minlength=256)}),
    Case(X, "histogram_shared", (3,), (64,), lambda r: [r.integers(0, 256, 2000).astype(B), zeros(U, 256), 2000],
         lambda x, b, n: {1: np.bincount(x, minlength=256)}),
    Case(X, "bfs_level", (4,), (64,), graph, bfs),
    Case(X, "nbody_forces", (3,), (64,), lambda r: [abs(f(r, 192, 4)), zeros(F, 192, 4), 192], bodies, tolerance=1e-4),
    Case(X, "hash_insert", (5,), (64,), table, inserted),
    Case(X, "monte_carlo_pi", (2,), (64,), lambda r: [zeros(np.uint64, 1), 40], pi_hits),
    Case(X, "floyd_warshall", (2, 70), (64,), distances, floyd),
    Case(X, "tree_depths", (1,), (64,), tree, depths),
    Case(X, "tiny_machine", (2,), (64,),
         lambda r: [np.array([3, 5, 0, 0, 3, 3, 2, 0], I), 4, i(r, -50, 50, 100), zeros(I, 100), 100],
         lambda p, n, x, o, m: {3: (x + 5) * 3}),
    Case(X, "collatz", (2,), (64,), lambda r: [r.integers(1, 100000, 100), zeros(I, 100), 100], collatz),
    Case(P, "by_table", (3,), (64,), lambda r: [f(r, 150), f(r, 150), i(r, 0, 3, 150), zeros(F, 150), 150], by_table),
    Case(P, "fold_rows", (2,), (32,), lambda r: [f(r, 50, 12), zeros(F, 50, 2), 50, 12], folded, tolerance=1e-5),
    Case(P, "swap_rows", (3,), (32,), lambda r: [f(r, 12, 70), 70], swapped),
    Case(P, "padded", (1,), (16, 16), lambda r: [f(r, 16, 16), zeros(F, 16, 16)], lambda x, o: {1: x.T}),
    Case(P, "list_sums", (2,), (64,), lambda r: [i(r, -9, 9, 128), zeros(I, 128)], list_sums),
    Case(P, "tree_search", (2,), (32,),
         lambda r: [r.permutation(40)[:25].astype(I), 25, i(r, 0, 40, 64), zeros(I, 64)], searched),
    Case(P, "chained", (20,), (1,), lambda r: [i(r, 0, 99, 20), zeros(I, 20), zeros(I, 20)],
         lambda x, o, flags: {1: x.cumsum()}),
    Case(P, "aligned", (1,), (32,), lambda r: [np.arange(32, dtype=F), zeros(I, 32)],
         lambda x, o: {1: np.arange(32) % 4 * 4 + np.arange(32) // 4 * 4}),
    Case(Z, "xorwow_numbers", (2,), (32,), lambda r: [np.uint64(0x123456789ABCDEF), zeros(U, 64, 4)],
         lambda seed, o: {1: [xorwow(int(seed), k, 3 * k, 4) for k in range(64)]}),
    Case(Z, "philox_numbers", (2,), (32,), lambda r: [np.uint64(0x123456789ABCDEF), zeros(U, 64, 4)],
         lambda seed, o: {1: [philox_from(int(seed), k, k % 5) for k in range(64)]}),
    Case(Z, "uniform_numbers", (2,), (32,), lambda r: [zeros(B, 64, 48), zeros(F, 64), zeros(D, 64)], uniform),
    Case(Z, "normal_numbers", (2,), (32,), lambda r: [zeros(F, 64)], normal, tolerance=1e-5),
    Case(X, "count_primes", (4,), (128,), lambda r: [zeros(I, 1), 500], primes),
]  # fmt: skip
