"""The counts of a launch, against numbers that can be worked out by hand."""

from collections.abc import Callable

import numpy as np
import pytest

from simgpu.cuda_c import Counts, compile_source
from simgpu.cuda_c.cost import tally

from .corpus import CASES, arguments, launch_case, source
from .support import HEAD, launch

N = 1024


def counts(text: str, threads: int = N, block: int = 256, **more: int) -> Counts:
    """Counts of a kernel `k(float* x, int* o, int n)` over 1024 threads, with `i` across blocks."""
    head = HEAD.replace("threadIdx.x;", "blockIdx.x * blockDim.x + threadIdx.x;")
    x, o = np.zeros(64 * N, np.float32), np.zeros(64 * N, np.int32)
    return launch(head + text + "}", "k", threads // block, block, x, o, 32, **more).counts


SHARED = "__shared__ {} s[256]; int t = threadIdx.x; s[t] = 1; __syncthreads(); x[i] = s[{}];"
QUADS = (
    "__shared__ float4 s[256]; int t = threadIdx.x; s[t] = make_float4(1, 2, 3, 4); __syncthreads(); \
float4 v = s[{}]; x[i] = v.x;"
)
PAIRS = QUADS.replace("float4", "float2").replace("2, 3, 4", "2")
ADDED = "__shared__ int s[64]; s[threadIdx.x % 64] = 0; __syncthreads(); atomicAdd(&s[threadIdx.x % {}], 1);"
TURNS = "float s = 0; for (int j = 0; j < n; j += n / 32) s += x[{}]; o[i] = s;"
MANY = "float s = i, " + ", ".join(f"v{k} = s + {k}" for k in range(24)) + ";"
SUM = " + ".join(f"v{k}" for k in range(24))
FOUND: list[tuple[str, dict[str, int]]] = [
    ("", {"threads": 1024, "warps": 32, "blocks": 4}),
    # Floating-point operations of active threads.
    ("x[i] = x[i] * 2.0f + 1.0f;", {"flops": 2 * N}),
    ("x[i] = x[i] + 1.0f;", {"flops": N}),
    ("if (i < 100) x[i] = x[i] * x[i];", {"flops": 100}),
    ("o[i] = i * 3 + 1;", {"flops": 0}),
    ("x[i] = sqrtf(x[i]) / 2.0f;", {"special_functions": 2 * N}),
    ("float v = x[i]; x[i] = v * v + v;", {"double_instructions": 0}),
    ("double v = x[i]; x[i] = v * v + v;", {"double_instructions": 96, "chain_doubles": 3}),
    # What has been loaded is at hand, if its place is reckoned in the same way.
    ("o[i] = x[i + 1] > x[i + 1] * 2.0f;", {"global_load_requests": 32}),
    ("o[i] = x[i + 1] > x[i + 2] * 2.0f;", {"global_load_requests": 64}),
    # Wide loads are one request.
    (
        "float4 v = reinterpret_cast<float4*>(x)[i]; o[i] = v.x > v.w;",
        {"global_load_requests": 32, "load_sectors": 512, "load_bytes": 16 * N}
        | {"global_store_requests": 32, "store_sectors": 128}),
    # What a loop stores that is unrolled is stored once, and otherwise in each turn.
    ("for (int j = 0; j < 4; j++) o[i + j * 1024] = j;", {"store_sectors": 512, "once_stored": 512}),
    ("for (int j = 0; j < x[0]; j++) o[i] = j; o[i] = 1;", {"once_stored": 128}),
    # Where the first block loads nothing, another one is followed.
    ("if (blockIdx.x > 0) o[i] = x[8 * i];", {"fresh_sectors": 3 * 256, "chain_fresh_loads": 1}),
    # Wide shared accesses take turns anyway.
    (SHARED.format("double", "t"), {"bank_conflicts": 0}),
    # But each 4 bytes of a lane are a pass, however few words they are.
    (QUADS.format("t"), {"shared_passes": 32 * (4 + 4), "bank_conflicts": 0}),
    (QUADS.format("0"), {"shared_passes": 32 * (4 + 4), "bank_conflicts": 0}),
    (QUADS.format("2 * t % 256"), {"shared_passes": 32 * (4 + 8)}),
    # Where neighbours ask for the same, an H200 takes fewer, as tools/fidelity/shared_loads.py measured.
    *(
        (QUADS.format(index), {"shared_wavefronts": 32 * (4 + passes)})
        for index, passes in (
            ("t", 4), ("0", 2), ("t / 256", 2), ("t % 32 / 16 * 2", 2), ("t % 16 * 2", 8), ("t % 4", 4),
            ("t % 32 / 4", 2), ("t % 32 / 2", 2), ("t % 16", 4), ("t % 8", 4), ("t % 2 * 8", 4),
            ("t % 4 * 8", 16),
        )
    ),
    *(
        (PAIRS.format(index), {"shared_wavefronts": 32 * (2 + passes)})
        for index, passes in (
            ("t", 2), ("t / 256", 1), ("t % 32 / 16 * 4", 1), ("t % 16 * 4", 8), ("t % 4 * 2", 2),
            ("t % 32 / 4 * 2", 1), ("t % 32 / 2 * 2", 2), ("t % 16 * 2", 4), ("t % 8 * 2", 2),
            ("t % 2 * 16", 2), ("t % 4 * 16", 8),
        )
    ),
    (SHARED.format("float", "t * 2 % 256"), {"shared_passes": 32 * (1 + 2)}),
    # Each warp for itself, also where four elements are a word.
    (SHARED.format("char", "t / 256"), {"shared_passes": 32 * (1 + 1), "bank_conflicts": 0}),
    (SHARED.format("char", "t % 32"), {"shared_passes": 32 * (1 + 1), "bank_conflicts": 0}),
    (SHARED.format("short", "2 * t % 256"), {"bank_conflicts": 0}),
    (SHARED.format("short", "4 * t % 256"), {"bank_conflicts": 32}),
    ("if (i % 2) o[i] = 1; else o[i] = 2;", {"divergent_branches": 32}),
    ("if (threadIdx.x < 48) o[i] = 1;", {"divergent_branches": 4}),
    ("if (threadIdx.x < 64) o[i] = 1;", {"divergent_branches": 0}),
    ("for (int j = 0; j < 10; j++) o[i] += j;", {"loop_iterations": 320}),
    ("for (int j = 0; j < threadIdx.x / 32; j++) o[i] += j;", {"loop_iterations": 4 * 28}),
    # Atomics that meet, in shared memory and in the device's.
    (ADDED.format(64), {"shared_atomic_passes": 32, "atomic_queue": 0}),
    (ADDED.format(8), {"shared_atomic_passes": 4 * 32}),
    # It is in shared memory, although in other lanes the pointer leads elsewhere.
    (
        ADDED.format(8) + "int t = threadIdx.x, *w = t < 64 ? &s[t] : o; if (t < 64) atomicAdd(w, 1);",
        {"shared_atomic_passes": 4 * 34, "atomic_queue": 0}),
    ("atomicAdd(&o[i % 16], 1);", {"atomic_queue": N // 16}),
    ("o[i] = __reduce_add_sync(~0u, i);", {"warp_instructions": 32 * 6}),
    ("if (i < 40) atomicAdd(&o[0], 1);", {"atomics": 40, "atomic_requests": 2}),
    *(
        (
            f"float v = x[{index}]; if (v > 5.0f) o[i] = 1;",
            {"global_load_requests": 32, "load_sectors": 32 * sectors, "load_lines": 32 * lines}
            | {"load_bytes": 4 * N},
        )
        for index, sectors, lines in [
            ("i", 4, 1), ("2 * i", 8, 2), ("8 * i", 32, 8), ("32 * i", 32, 32), ("0", 1, 1),
            ("i / 32", 1, 1), ("i + 1", 5, 2), ("63 - i % 64", 4, 1),
        ]
    ),
    *(
        (SHARED.format("float", index),
            {"shared_requests": 64, "bank_conflicts": 32 * extra, "barriers": 4}
            | {"shared_bytes": 1024},
        )
        for index, extra in [
            ("t", 0), ("t * 2 % 256", 1), ("t * 32 % 256", 7), ("t * 33 % 256", 0), ("0", 0),
            ("t / 32", 0), ("t ^ 1", 0),
        ]
    ),
    # What is at hand is not loaded again.
    *(
        (text, {"global_load_requests": 32 * loads})
        for text, loads in [
            ("o[i] = x[i] * x[i] > x[i + 1];", 2),
            ("o[i] = x[i] < 1 || (x[i] == 1 && i < 7);", 1),
            ("float a = x[i]; o[i] = a + x[i] > 0;", 1),
            ("float a = x[i]; x[i + 1024] = 1; o[i] = a + x[i] > 0;", 2),
            ("float a = x[i]; __syncthreads(); o[i] = a + x[i] > 0;", 2),
            ("int j = i; float a = x[j]; j++; o[i] = a + x[j] > 0;", 2),
            ("float a = 0; for (int j = 0; j < 3; j++) a += x[i]; o[i] = a > 0;", 3),
            ("volatile float* y = x; o[i] = y[i] * y[i] > 0;", 2),
            ("float a = x[i]; if (i < 512) o[i] = 1; else o[i] = a + x[i] > 0;", 1),
            ("float a = x[i]; if (i < 512) a = sqrtf(a); o[i] = a + x[i] > 0;", 2),
        ]
    ),
    # Bytes are needed once.
    ("float s = 0; for (int j = 0; j < 10; j++) s += x[j]; x[2048 + i] = s;",
     {"load_bytes": 40 * N, "load_bytes_needed": 40, "store_bytes": 4 * N, "store_bytes_needed": 4 * N}),
    # Two loads of one statement go together; a chain of addresses does not.
    *(
        (text, {"chain_load_rounds": rounds})
        for text, rounds in [
            ("o[i] = x[i] + x[i + 1] > 0;", 1),
            ("int p = i; for (int j = 0; j < 5; j++) p = o[p]; x[i] = p;", 5),
            # Also by way of a variable that goes through a branch, or another loop.
            ("int p = i, q; for (int j = 0; j < 5; j++) { q = o[p]; if (q > 9) q = o[i]; p = q; } x[i] = p;", 5),
            ("int p = i; float s = 0; for (int j = 0; j < 5; j++) { int q = o[p]; for (int k = 0; k < 2; k++) s += q * k; p = q; } x[i] = s;", 5),
            # Sixteen turns at a time, and as many as there are of few; but one, where one stores.
            ("float s = 0; for (int j = 0; j < n; j++) s += x[i + j]; o[i] = s;", 2),
            ("float s = 0; for (int j = 0; j < 5; j++) s += x[i + j]; o[i] = s;", 1),
            # Wide ones take more registers, so fewer are under way.
            ("float s = 0; for (int j = 0; j < n; j++) { float2 v = ((float2*)x)[i + j]; s += v.x + v.y; } o[i] = s;", 3),
            ("float s = 0; for (int j = 0; j < n; j++) { float4 v = ((float4*)x)[i + j]; s += v.x + v.w; } o[i] = s;", 6),
            ("float s = 0; for (int j = 0; j < n; j++) { s += x[i + j]; o[i + j] = s; }", 32),
            ("float s = 0; for (int j = 0; j < n; j++) s += sqrtf(x[i + j]); o[i] = s;", 32),
            (TURNS.format("i + j"), 32),
            # Within another loop addresses take registers, too.
            ("float s = 0; for (int k = 0; k < n; k++) for (int j = 0; j < n; j++) s += x[i + j]; o[i] = s;", 85),
            ("x[i] = x[2048 + o[i]];", 2),
            ("x[i] = x[i] > 1 ? x[i + 1024] : x[i + 2048];", 2),
            # What was loaded before a barrier has come by then, and isn't waited for again.
            ("o[i] = x[i] > __syncthreads_count(i > 7);", 1),
            # A short loop's loads go together, however many variables there are besides.
            (f"{MANY} for (int j = 0; j < 4; j++) s += x[i + 32 * j]; o[i] = s + {SUM};", 1),
        ]
    ),
    # Rounds are of global loads only.
    ("__shared__ float s[1024]; int t = threadIdx.x; s[t] = 1; __syncthreads(); float r = 0; for (int j = 0; j < n; j++) r += s[j]; x[i] = r;",
     {"chain_load_rounds": 0, "shared_requests": 32 * 33}),
    # Sectors that are new to the block, in 32 turns; the first 16 are looked at, so what is new in one of
    # them counts as two.
    *(
        (TURNS.format(index), {"chain_fresh_loads": fresh})
        for index, fresh in [
            ("i + 256 * j", 32), ("i + 8 * j", 32), ("j", 4), ("i", 2), ("32 * i + j", 4),
            ("i + 1024 * (j & 1)", 4),
        ]
    ),
    # A last warp with few lanes counts as one of all.
    ("if (i < 1001) o[i] = x[i];", {"load_sectors": 126, "store_sectors": 126, "store_lines": 32}),
    ("if (threadIdx.x % 64 < 40) o[i] = x[i];", {"load_sectors": 16 * (4 + 1), "load_lines": 32}),
    # Whoever comes is looked at, be it one warp.
    (SHARED.format("float", "0") + "if (i / 32 == 21) x[i + N] = s[2 * t % 256];".replace("N", str(N)),
        {"shared_passes": 64 + 2, "shared_wavefronts": 64 + 2, "bank_conflicts": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "found"), FOUND)
def test_it_is_counted(text: str, found: dict[str, int]) -> None:
    c = counts(text)
    assert {name: getattr(c, name) for name in found} == found


LONE = """
__global__ void k(const float* x, float* y, int n) {
    __shared__ float tile[64];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    float a = tile[threadIdx.x], b = a + 1.0f, c = a + 2.0f, d = a + 3.0f;
    %s
    y[threadIdx.x] = a + b + c + d;
}
"""


def lone(text: str) -> Counts:
    """Counts of two warps, for whom the length of a chain decides."""
    x = np.ones(64, np.float32)
    return launch(LONE % text, "k", 1, 64, x, x.copy(), 40).counts


SMALLEST = "for (int k = 0; k < n; ++k) { float t = tile[k]; if (t < %s) a = t; }"
ADDS = "float s = 0; for (int j = 0; j < {}; j++) s += x[j]; x[i + 1024] = s;"
CASTS = "float s = 0; for (int j = 0; j < n; j++) s += (float)({}); x[i] = s;"
# 128 turns of a product and a sum, for as long as a load takes; and a load for this turn, and for the next one.
LONG = "for (int j = 0; j < 128; j++) { a = a * b; c = c + d; b = b * d; }"
INNER = "for (int j = 0; j < n; j++) c += d; "
NOW = "for (int k = 0; k < n; ++k) { a += x[k]; %s }"
NEXT = "float v = x[0]; for (int k = 0; k < n; ++k) { a += v; v = x[k + 1]; %s }"
MET = (
    "float v = 0, w = 0; for (int k = 0; k < n; ++k) { a += v + w; __syncthreads(); v = x[k]; %s }"
)
# A tile of sums, of which a compiler knows each index or not.
TILE = (
    "float t[64]; for (int j = 0; j < 64; j++) t[j] = a; for (int j = 0; j < 64; j++) b += t[%s];"
)
TWO = """__shared__ float two[2][8][64];
    for (int j = 0; j < 16; ++j) two[j / 8][j & 7][threadIdx.x] = a;
    for (int k = 0, now = 0; k < n; ++k, now ^= 1) for (int j = 0; j < 8; ++j) a += two[%s][j][threadIdx.x];"""
LANES = "float s = 0; for (int k = 0; k < n; k++) for (int j = threadIdx.x % 32; j < {}; j += 32) s += x[j]; o[i] = s;"
WORDS = "unsigned u = n + threadIdx.x, v = u * 3; unsigned long long w = u; "
EIGHT = "float s = 0; for (int j = 0; j < 8; j++) s += x[{}]; o[i] = s;"
FIVE = "if (n > 3) { n += 3; n ^= 5; n *= 7; n |= 6; n -= 9; }"
# Two kernels, and by how much the first one has more of something: from, and to.
UP = "for (int k = 0; {}; {}) x[i] += k * x[i];"
DOWN = "volatile int* f = o; int k = 5; while (f[0] == 0 && k-- {} 0); x[i] = k;"
MORE = [
    # A warp that splits pays for both sides.
    (counts, "if (i / 1 % 2) o[i] = 1; else o[i] = 2;", "if (i / 32 % 2) o[i] = 1; else o[i] = 2;", "warp_instructions", 1, None),
    # Short loops with known bounds are unrolled: a turn is a load and an addition, and the counter is free.
    (counts, ADDS.format(14), ADDS.format(4), "longest_chain", 10 * 2, 10 * 2),
    (counts, ADDS.format(410), ADDS.format(400), "longest_chain", 10 * 4 + 1, None),
    # An array of a thread's own is in registers where its indices are known.
    (counts, "float a[4]; for (int j = 0; j < n / 8; j++) a[j] = 1.0f; x[i] = a[i & 3];",
     "float a[4]; for (int j = 0; j < 4; j++) a[j] = 1.0f; x[i] = a[0] + a[1] + a[2] + a[3];", "longest_chain", 2 * 7 + 1, None),
    # What a loop does not change is computed in front of it.
    (counts, CASTS.format("i * n + 3"), "float s = 0, c = (float)(i * n + 3); for (int j = 0; j < n; j++) s += c; x[i] = s;",
     "longest_chain", -4, 4),
    (counts, CASTS.format("i * j + 3"), CASTS.format("i * n + 3"), "longest_chain", 33, None),
    # A chain of products, and four that do not need each other.
    (lone, "a = a * b; a = a * c; a = a * d; a = a * b;", "a = a * a; b = b * b; c = c * c; d = d * d;", "chain_latency", 1, None),
    # Eight shared loads one after the other, and eight whose sum is a chain of eight additions.
    (lone, "int at = n; for (int k = 0; k < 8; ++k) at = (int)tile[at]; a += at;", "for (int k = 0; k < 8; ++k) a += tile[k];",
     "chain_latency", 150, None),
    # Learners are told of eight instructions for each function, and that number stays.
    (lone, "a = sinf(a);", "a = sqrtf(a);", "warp_instructions", 0, 0),
    (lone, "a = sinf(a);", "a = sqrtf(a);", "issued", 1, None),
    (lone, "a = sqrtf(a);", "a = a * b;", "warp_instructions", 14, 14),
    (lone, "a = sqrtf(a);", "a = a * b;", "issued", 15, None),
    # Work on bits is told apart.
    (lone, "a += (n + (int)threadIdx.x) & 12;", "a += n;", "alu_instructions", 2, 2),
    (lone, "a += (n + (int)threadIdx.x) * 12;", "a += n;", "alu_instructions", 0, 0),
    # An instruction keeps its unit busy.
    (lone, "b *= c; b += n;", "b += n;", "chain_busy", 1, 1),
    (lone, "n ^= 5; b += n;", "b += n;", "chain_busy", 2, 2),
    (lone, "tile[threadIdx.x] = c; b += n;", "b += n;", "chain_busy", 2 + 4, 2 + 4),
    # What computes little, and selects, is no branch. A choice of two numbers waits less for its test.
    (lone, "if (n > 3) a = sqrtf(b);", "if (n > 3) a = b * c;", "chain_latency", 50, None),
    (lone, "if (n > 3) a = b * c;", "if (n > 3) a = b;", "chain_latency", 5, 9),
    # Four instructions on a condition need no branch, and five do.
    (lone, FIVE, FIVE.replace(" n |= 6;", ""), "chain_latency", 37, 37),
    (lone, FIVE.replace(" n |= 6;", ""), FIVE.replace(" n |= 6; n -= 9;", ""), "chain_latency", 0, 9),
    # The smaller of two numbers, turn by turn: each waits for the one before, whoever takes it.
    (lone, SMALLEST % "a", SMALLEST % "b", "chain_latency", 1, None),
    # Turns wait for what goes round, and not for what is only summed up.
    (lone, "for (int k = 0; k < n; ++k) { a = a * b; c += logf(a); }", "for (int k = 0; k < n; ++k) { a = logf(a * b); c += a; }",
     "chain_latency", -3000, -1000),
    (lone, "n = n & 1 ? n >> 1 ^ 77 : n >> 1; a += n;", "n = n >> 1 ^ 77; a += n;", "chain_latency", 10, None),
    (lone, "a = 7 % (n + (int)threadIdx.x);", "a = 7 % 5;", "chain_latency", 100, None),
    (lone, "for (int k = 0; k < n; ++k) { a += __shfl_xor_sync(~0u, c + k, 1); }",
     "for (int k = 0; k < n; ++k) { a = __shfl_xor_sync(~0u, a + k, 1); }", "chain_latency", -2000, -500),
    # All lanes take four turns, wherever they begin; or three or four.
    (counts, LANES.format(128), LANES.format("n * 4 - 4"), "chain_latency", -7000, -3000),
    (counts, LANES.format(112), LANES.format("n * 4 - 20"), "chain_latency", 0, 0),
    # What is fetched for the next turn is not waited for, if a turn has enough to do.
    (lone, NOW % LONG, NEXT % LONG, "chain_load_rounds", 38, 39),
    (lone, NOW % "", NEXT % "", "chain_load_rounds", -1, 1),
    (lone, NOW % (INNER + LONG), NEXT % (INNER + LONG), "chain_load_rounds", 38, 39),
    # All that's fetched for the next turn is under way together.
    (lone, MET % "w = x[k + 9];", MET % "", "chain_load_rounds", 0, 0),
    # Sums are in registers if all their indices are known, and in memory if not.
    (lone, TILE % "j", "", "registers", 64, 68),
    (lone, TILE % "(n + j) % 64", "", "registers", 0, 4),
    # A rotation is one instruction, as a shift is, however it is written.
    *((lone, f"{WORDS} u = {turned}; a += u;", f"{WORDS} u = u << 5; a += u;", "issued", more, more) for turned, more in (
        ("u << 5 | u >> 27", 0), ("u >> 27 | u << 5", 0), ("u << 5 ^ u >> 27", 0), ("(u << 5) + (u >> 27)", 0),
        ("u << n | u >> (32 - n)", 2), ("u << n | u >> (-n & 31)", 4),
        ("u << 5 | u >> 26", 4), ("u << 5 | v >> 27", 4), ("u << n | u >> 5", 4), ("u << n | u >> (31 - n)", 6),
    )),
    # Of 64 bits it is as much as a shift, too, and by half of them none.
    *((lone, f"{WORDS} w = {text}; a += w;", f"{WORDS} w = w << 5; a += w;", "issued", more, more) for text, more in (
        ("w << 5 | w >> 59", 0), ("w << 32 | w >> 32", -4), ("w / 7", 0), ("w / (n + 1)", 140),
    )),
    # An unsigned index may wrap, so an unrolled loop computes each address.
    (counts, EIGHT.format("i + j * 3u"), EIGHT.format("i + j * 3"), "issued", 8 * 3 * 32, 8 * 3 * 32),
    # Addresses that are known distances apart are computed once.
    (lone, TWO % "now", TWO % "0", "issued", 1, 40 * 2 * 6),
    # A division by a power of two is a product.
    (lone, "a = a / 4.0f;", "a = a * 0.25f;", "chain_latency", 0, 0),
    (lone, "a = a / 5.0f;", "a = a * 0.2f;", "chain_latency", 50, None),
    # A division ends with a branch, and what comes next waits for it.
    (lone, "a = a / b; c = c / d;", "a = a / b; c = c * d;", "chain_latency", 50, None),
    (lone, "a = rsqrtf(a); c = rsqrtf(c);", "a = rsqrtf(a); c = c * d;", "chain_latency", 0, 9),
    # The cosine of a number whose sine is known.
    (lone, "a = sinf(b) + cosf(b);", "a = sinf(b);", "chain_latency", 74 + 4, 74 + 4),
    # A null pointer is known, and whoever counts down has the same turns however they ask for the end.
    (counts, "o[i] = reinterpret_cast<unsigned long long>(nullptr) + 1;", "o[i] = 0ull + 1;", "warp_instructions", 0, 0),
    (counts, DOWN.format("!="), DOWN.format(">"), "warp_instructions", 0, 0),
    *((counts, UP.format(*spelled), UP.format("k < 8", "k++"), "warp_instructions", 0, 0) for spelled in (
        ("8 > k", "++k"), ("k <= 7", "k = k + 1"), ("7 >= k", "k += 1"), ("8 != k", "k++"))),
    # A variable that stays as it is counts as its number, and no other one does.
    (counts, f"int m = 5; {ADDS.format('m')}", ADDS.format(5), "longest_chain", 0, 0),
    (counts, f"int m = 5; m *= 2; {ADDS.format('m')}", ADDS.format(10), "longest_chain", 1, None),
]  # fmt: skip


@pytest.mark.parametrize(("run", "text", "other", "name", "least", "most"), MORE)
def test_how_much_more_it_is(
    run: Callable[[str], Counts], text: str, other: str, name: str, least: int, most: int | None
) -> None:
    more = getattr(run(text), name) - getattr(run(other), name)
    assert least <= more
    assert most is None or more <= most


def test_sectors_that_a_block_has_had_are_not_fresh() -> None:
    twice = lone("for (int k = 0; k < n; ++k) a += x[(threadIdx.x + k) % 64];")
    assert twice.load_sectors > 20 * twice.fresh_sectors
    assert twice.fresh_sectors == 64 * 4 // 32


@pytest.mark.parametrize(("kib", "least", "most"), [(100, 1 / 6, 0.7), (3000, 0.99, 1)])
def test_what_is_more_than_l1_holds_is_fetched_again(kib: int, least: float, most: float) -> None:
    text = """__global__ void k(const float* x, float* y, int rows) {
        float s = 0;
        for (int turn = 0; turn < 6; turn++)
            for (int row = 0; row < rows; row++) s += sqrtf(x[row * 256 + threadIdx.x]);
        y[threadIdx.x] = s; }"""
    x, y = np.ones(kib << 8, np.float32), np.zeros(256, np.float32)
    found = launch(text, "k", 1, 256, x, y, kib).counts
    assert least <= found.chain_fresh_loads / found.chain_load_rounds <= most


@pytest.mark.parametrize(("limit", "value"), [("_PATTERNS", 1), ("_FEW_LANES", 0)])
def test_counts_of_patterns_that_are_remembered_are_those_of_others(
    limit: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [c for c in CASES if c.kernel in ("matmul_tiled", "saxpy_vec4", "conv2d_tiled")]
    remembered = [launch_case(case, arguments(case)).counts for case in cases]
    monkeypatch.setattr(tally, limit, value)
    assert [launch_case(case, arguments(case)).counts for case in cases] == remembered


@pytest.mark.parametrize(
    ("exact", "loaded", "stored"), [(1 << 23, 8192, 4096), (1, 4096 + 8188, 12280), (0, 16384 + 8188, 12280)]
)  # fmt: skip
def test_of_many_accesses_all_between_the_first_and_the_last_byte_is_needed(
    exact: int, loaded: int, stored: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tally, "_EXACT_LANES", exact)
    found = counts(
        "float s = 0; for (int j = 0; j < 2; j++) s += sqrtf(x[2 * i + 4096 * j]); o[3 * i] = s;"
    )
    assert (found.load_bytes_needed, found.store_bytes_needed) == (loaded, stored)


def test_a_block_that_is_no_whole_number_of_warps() -> None:
    assert counts("", threads=120, block=40).warps == 6


def test_the_longest_warp() -> None:
    even = counts("for (int j = 0; j < 7; j++) o[i] += j;")
    uneven = counts("for (int j = 0; j < threadIdx.x / 32; j++) o[i] += j;")
    assert even.longest_chain * 32 == even.warp_instructions
    assert uneven.longest_chain * 32 > 1.5 * uneven.warp_instructions


@pytest.mark.parametrize(
    ("expression", "fewer"),
    [("a * b + a", 1), ("a - a * b", 1), ("-(a * b) + a", 1), ("a * a + b * b", 1), ("(a + b) * a", 0), ("fmaf(a, b, a)", 0)],
)  # fmt: skip
def test_a_product_that_is_contracted_costs_no_more_than_its_sum(
    expression: str, fewer: int
) -> None:
    text = f"{HEAD}float a = x[i], b = x[i + 32]; x[i] = {expression}; }}"
    args = np.zeros(64, np.float32), np.zeros(1, np.int32), 1
    fused, apart = (
        launch(compile_source(text, contract=on), "k", 1, 32, *args).counts for on in (True, False)
    )
    assert fused.flops == apart.flops
    assert fused.warp_instructions == apart.warp_instructions - fewer
    assert (fused.fused, apart.fused) == (fewer, 0)
    assert (fused == apart) == (not fewer)


def test_lines_add_up() -> None:
    case = next(c for c in CASES if c.kernel == "matmul_tiled")
    c = launch_case(case, arguments(case)).counts
    assert sum(line.warp_instructions for line in c.lines.values()) == c.warp_instructions
    assert sum(line.flops for line in c.lines.values()) == c.flops
    assert sum(line.global_requests for line in c.lines.values()) == (
        c.global_load_requests + c.global_store_requests
    )
    text = source(case.file).split("\n")
    busiest = max(c.lines, key=lambda n: c.lines[n].flops)
    assert "acc +=" in text[busiest - 1]
