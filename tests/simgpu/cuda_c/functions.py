"""What each function of CUDA C computes, and what a warp pays for it by our own model.

Most functions are rows of tables, and a wrong row would show in no kernel that doesn't call it. So each is
called once here, with arguments of the first types that it takes; those that make no sense alone are in
`STATEMENTS`. `functions.json` has what came out: record it with `python -m tests.simgpu.cuda_c.digests costs`.
"""

import json
import re
from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import Path

import numpy as np

from simgpu.cuda_c import compile_source
from simgpu.cuda_c.compile import builtins
from simgpu.cuda_c.types import VECTORS
from simgpu.errors import KernelCompileError, UnsupportedFeatureError

from .support import launch

FUNCTIONS = Path(__file__).with_name("functions.json")
TABLES = (
    builtins.MATH_FUNCTIONS, builtins.BIT_FUNCTIONS, builtins.HALF_FUNCTIONS, builtins.ATOMIC_FUNCTIONS,
    builtins.WARP_FUNCTIONS,
)  # fmt: skip
OTHERS = (
    builtins.SYNC_FUNCTIONS, builtins.MISC_FUNCTIONS, builtins.XORWOW_FUNCTIONS, builtins.COPY_FUNCTIONS,
    builtins.PHASE_FUNCTIONS, builtins.BULK_FUNCTIONS, builtins.TENSOR_FUNCTIONS,
)  # fmt: skip
HEAD = """#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_awbarrier_primitives.h>
template <typename T> __device__ void keep(double* to, T v) { *to = v; }
__device__ void keep(double* to, half v) { *to = __half2float(v); }
__device__ void keep(double* to, half2 v) { *to = __low2float(v) + 64 * __high2float(v); }
__device__ void keep(double* to, float2 v) { *to = v.x + 64 * v.y; }
"""
VARIABLES = {
    "a": "float a = x[i];", "b": "float b = x[i + 1];", "c": "float c = x[i + 2];",
    "d": "double d = x[i];", "e": "double e = x[i + 1];", "all": "unsigned all = -1;",
    "h": "half h = __float2half(x[i]);", "g": "half g = __float2half(x[i + 1]);", "l": "half l = __float2half(x[i + 2]);",
    "p": "half2 p = __floats2half2_rn(x[i], x[i + 1]);", "q": "half2 q = __floats2half2_rn(x[i + 1], x[i + 2]);",
    "r": "half2 r = __floats2half2_rn(x[i + 2], x[i]);", "u": "float2 u = {x[i], x[i + 1]};",
    "u1": "unsigned u1 = y[i];", "c1": "char4 c1 = {-1, 2, -3, 100};", "c2": "char4 c2 = {7, 3, -5, -100};",
    "u2": "uchar4 u2 = {1, 200, 3, 4};", "n": "int n = y[i];", "k": "int k = y[i + 1] >> 3;", "j": "int j = y[i + 2];",
}  # fmt: skip
GIVEN = (
    "a", "a, b", "a, b, c", "h", "h, g", "h, g, l", "p", "p, q", "p, q, r", "u", "n", "n, k", "n, k, j",
    "a, n", "w, n", "w, n, k", "(unsigned*)w, 3", "(unsigned short*)w, n", "all, n", "all, (unsigned)n", "all, n, 3", "",
)  # fmt: skip
COSTS = (
    "warp_instructions", "flops", "special_functions", "double_instructions", "issued", "alu_instructions",
    "chain_latency", "chain_busy", "atomics", "barriers", "shared_requests", "global_load_requests",
    "global_store_requests", "async_requests",
)  # fmt: skip
NEAR = "__shared__ __align__(32) float near[32]; near[i] = i; __syncthreads();"
BAR = f"{NEAR} __shared__ unsigned long long bar; if (i == 0) __mbarrier_init(&bar, %d); __syncthreads();"
ARRIVED = BAR % 32 + " unsigned long long token = __mbarrier_arrive%s;"
WAITED = " __pipeline_commit(); __pipeline_wait_prior(0); __syncwarp(); keep(to + i, near[i]);"
MATRIX = """__shared__ __align__(32) half of[256]; __shared__ __align__(32) float sums[256]; half part[16]; float acc[8];
for (int at = i; at < 256; at += 32) of[at] = at %% 23; for (int at = 0; at < 8; at++) acc[at] = i + at; __syncwarp();
__wmma_load(of, part, 16, 16, 16, 16, %s); """
JUMP = "unsigned words[5] = {1, 2, 3, 4, 5}; __xorwow_jump(%s, words); keep(to + i, words[0] ^ words[4]);"
STATEMENTS = [
    # Other types than the first ones.
    "max(n, k)", "max((unsigned)n, 3u)", "max(1ll * n, 2ll)", "min(n, k)", "min(d, e)", "abs(n)", "abs(d)", "abs(1ll * n)",
    "isnan(d)", "signbit(n)", "ldexp(d, k)", "__dp4a(u1, 7u, 5u)", "__dp4a(c1, c2, j)", "__dp4a(u2, u2, 5u)",
    "atomicAdd((float*)w, a)", "atomicAdd((double*)w + i / 2, d)", "atomicAdd((half*)w + i, h)", "atomicAdd((unsigned long long*)w, 3ull)",
    "atomicMin((unsigned*)w, 3u)", "atomicExch((float*)w + i, a)", "atomicCAS(w, 1, 2)", "atomicCAS((unsigned short*)w, 1, 2)",
    "atomicAdd(w, 2);", "atomicAdd((half*)w + i, h);", "atomicExch(w + i, n);",
    "__shfl_sync(all, d, 3)", "__shfl_up_sync(all, n, 3, 16)", "__shfl_down_sync(all, a, 5, 8)", "__shfl_xor_sync(all, h, 1)",
    "__shfl_sync(all, p, 2)", "__match_any_sync(all, a)", "__reduce_min_sync(all, n)",
    "__syncthreads();", "__syncthreads_count(n > 0)", "__syncthreads_and(n > 0)", "__syncthreads_or(n > 0)",
    "__syncwarp();", "__syncwarp(all);", "__grid_sync();",
    *(f"__threadfence{scope}();" for scope in ("", "_system", "_block")),
    *(f"{name}();" for name in builtins.SYNC_FUNCTIONS if name.startswith("__fence")),
    *(f"{name}(x + i)" for name in ("__ldg", "__ldcg", "__ldca", "__ldcs", "__ldlu", "__ldcv")),
    'printf("%d", n)', "assert(true);", "static_assert(true);", "__builtin_expect(n, 1)", 'nan("")', 'nanf("")',
    "clock()", "clock64()", "if (n == 99) __trap();", "if (n == 99) __builtin_unreachable();",
    "__builtin_assume(n < 9);", "__nanosleep(100);", "__prof_trigger(1);", "cudaGridDependencySynchronize();",
    "cudaTriggerProgrammaticLaunchCompletion();",
    *(" + ".join(f"make_{name}({', '.join('5678'[:count])}).{'xyzw'[count - 1]}" for name, kind in VECTORS.items()
                 if len(kind.fields) == count and name not in ("dim3", "half2")) for count in range(1, 5)),
    JUMP % "7ull, 67", JUMP % "i, 0", JUMP % "0, 0",
    *(f"{NEAR} if (i < {lanes}) __pipeline_memcpy_async({copy}); {WAITED}" for lanes, copy in (
        (32, "near + i, x + i, 4"), (16, "near + 2 * i, x + 2 * i, 8"), (8, "near + 4 * i, x + 4 * i, 16"),
        (8, "near + 4 * i, x + 4 * i, 16, 8"))),
    *(f"{NEAR} __memcpy_async_share(near, x, {size}, i, 32, nullptr); {WAITED}" for size in (128, 72, 20, 7)),
    ARRIVED % "(&bar)" + " while (!__mbarrier_test_wait(&bar, token)); keep(to + i, token);",
    ARRIVED % "(&bar, 1)" + " while (!__mbarrier_over(&bar, token)); keep(to + i, token);",
    ARRIVED % "(&bar, 1, 0)" + " while (!__mbarrier_over_parity(&bar, 0)); keep(to + i, token);",
    ARRIVED % "_and_drop(&bar)" + " keep(to + i, __mbarrier_test_wait_parity(&bar, 0));",
    BAR % 1 + " if (i == 0) { __mbarrier_expect_tx(&bar, 128); __bulk_copy(near, x, 128, &bar); __mbarrier_arrive(&bar); } "
    "while (!__mbarrier_over_parity(&bar, 0)); keep(to + i, near[i]);",
    *(f"{NEAR} __proxy_fence(); __syncthreads(); if (i == 0) {{ __bulk_store(w, near, 128); __bulk_commit(); "
      f"__bulk_wait(0, {read}); }} __syncthreads(); keep(to + i, near[i]);" for read in (0, 1)),
    f"{NEAR} unsigned place = __cvta_generic_to_shared(near + i); keep(to + i, place + *__shared_byte_at(place + 3));",
    BAR % 32 + " unsigned place = __cvta_generic_to_shared(&bar); keep(to + i, __mbarrier_arrive(__shared_word_at(place)));",
    *(MATRIX % turned + "__wmma_multiply(acc, part, part, acc, 16, 16); keep(to + i, acc[1] + 64 * acc[7]);"
      for turned in ("true", "false")),
    MATRIX % "false" + "__wmma_store(sums, acc, 16, 16, 8, 16, true); __syncwarp(); keep(to + i, sums[i]);",
]  # fmt: skip


def kernel(number: int, call: str) -> str:
    """A kernel that keeps what one call returns, with the variables that it needs."""
    needed = " ".join(
        text for name, text in VARIABLES.items() if re.search(rf"[(, )]{name}\b", call)
    )
    head = f"__global__ void f{number}(const float* x, const int* y, int* w, double* to)"
    text = call if call.endswith(";") else f"keep(to + i, {call});"
    return f"{head} {{ int i = threadIdx.x; {needed} {text} }}\n"


def taken(call: str) -> bool:
    """True if it compiles."""
    try:
        compile_source(HEAD + kernel(0, call)).kernel("f0")
    except (KernelCompileError, UnsupportedFeatureError):
        return False
    return True


def calls() -> Iterator[str]:
    """Each function with what it takes, and in double precision where it has both."""
    for name in (name for table in TABLES for name in table):
        masked = name.endswith("_sync") or name.startswith("__match")
        options = [f"{name}({given})" for given in GIVEN if given.startswith("all") or not masked]
        yield next(filter(taken, options))
        yield from filter(
            taken, [f"{name}({given})" for given in ("d", "d, e") if f"{name}f" in TABLES[0]]
        )
    yield from STATEMENTS


def measured(called: Sequence[str]) -> dict[str, list[list[float]]]:
    """By call, its `COSTS` and what four lanes get. All are in one source, since a source takes long to compile."""
    program = compile_source(HEAD + "".join(kernel(*each) for each in enumerate(called)))
    x = np.tile(np.array([0.3, 1.7, -2.5, 0.75, 9.0], np.float32), 7)
    y = np.tile(np.array([5, -7, 0x12345678, -1 << 31, 0], np.int32), 7)
    found: dict[str, list[list[float]]] = {}
    for number, call in enumerate(called):
        w, out = np.arange(1, 33, dtype=np.int32), np.zeros(32)
        counts = launch(program, f"f{number}", 1, 32, x, y, w, out).counts
        values = [v if v.is_integer() else float(f"{v:.6g}") for v in out[:4].tolist()]
        found[call] = [[*attrgetter(*COSTS)(counts)], values]
    return found


def record() -> None:
    rows = [
        f"{json.dumps(call)}: {json.dumps(found)}" for call, found in measured([*calls()]).items()
    ]
    FUNCTIONS.write_text("{\n" + ",\n".join(rows) + "\n}\n")
