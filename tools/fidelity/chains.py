"""How long the results of single operations take, on a GPU and in the model: chains of one warp that is alone.

On the GPU:  python tools/fidelity chains record FILE
Anywhere:    python tools/fidelity chains [FILE]       (compares)

Each turn of a chain needs the one before. A sum only adds its turns up, so that they may go side by side as far
as a compiler mixes them. Clocks of a turn are those by which 1,024 turns take longer than 512, by `clock64`.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).parent / "recordings" / "chains.json"
TURNS = (512, 1024)
FLOAT = {
    "add": "a + b", "multiply": "a * b", "multiply, add": "a * b + c", "fmaf": "fmaf(a, b, c)",
    "fabsf": "fabsf(a - b)", "negate": "-a * b", "fmaxf": "fmaxf(a * b, c)", "divide": "b / a", "divide by": "a / b",
    "reciprocal": "1.0f / a", "sqrtf": "sqrtf(a) + c", "rsqrtf": "rsqrtf(a) + c", "expf": "expf(-a)",
    "exp2f": "exp2f(-a)", "logf": "logf(a) + 3.0f", "log2f": "log2f(a) + 4.0f", "sinf": "sinf(a) + c", "cosf": "cosf(a) + c",
    "tanf": "tanf(a * 0.5f) + c", "tanhf": "tanhf(a) + c", "powf": "powf(a, 0.7f) + c", "atanf": "atanf(a) + c",
    "erff": "erff(a) + c", "cbrtf": "cbrtf(a) + c", "log1pf": "log1pf(a) + c", "expm1f": "expm1f(-a) + 2.0f",
    "floorf": "floorf(a * b) + c", "choose": "a < b ? a + c : a * 0.5f", "choose far": "a < b ? c * a * a * a + b : a - 1.0f",
    "to int": "(float)(int)(a * b) + c", "__expf": "__expf(-a)", "__logf": "__logf(a) + 3.0f", "__sinf": "__sinf(a) + c",
    "__fdividef": "__fdividef(b, a)", "fmodf": "fmodf(a * 3.0f, b) + c", "hypotf": "hypotf(a, b) * 0.5f",
    "shuffle": "__shfl_xor_sync(0xffffffffu, a, 1) + b", "shuffle from": "__shfl_sync(0xffffffffu, a, (threadIdx.x + 1) & 31) + b",
}  # fmt: skip
UINT = {
    "add": "a + b", "multiply": "a * b", "multiply, add": "a * b + c", "shift": "a << 1 | 1u", "xorshift": "a ^ a >> 3",
    "rotate": "(a << 5 | a >> 27) + b", "divide": "b / (a | 1u)", "modulo": "(c + a) % b", "modulo 7": "(c + a) % 7u + a",
    "modulo of": "c % (a | 1u) + c", "bit chooses": "a & 1u ? a >> 1 ^ 0xedb88320u : a >> 1", "smaller chooses": "a < b ? a + c : a - b",
    "popc": "__popc(a) + c", "clz": "__clz(a) + c", "ffs": "__ffs(a) + c", "brev": "__brev(a) + c", "min": "min(a + c, b)",
    "mulhi": "__umulhi(a, b) + c", "ballot": "__ballot_sync(0xffffffffu, a & 1u) + c", "any": "__any_sync(0xffffffffu, a == c) + a",
    "shuffle": "__shfl_xor_sync(0xffffffffu, a, 4) + b", "chase shared": "table[a & 255u]", "chase local": "own[a & 15u]",
    "to float": "(unsigned)((float)a * 0.5f) + c", "reduce": "__reduce_add_sync(0xffffffffu, a) + c",
    "byte": "__byte_perm(a, b, 0x3210) + c", "three tests": "a > b && a < c || a == 5u ? a - 3u : a + 9u",
    "atomic shared": "atomicAdd(&table[a & 1u], 1u)",
}  # fmt: skip
ULONG = {
    "add": "a + b", "multiply": "a * b", "multiply, add": "a * b + c", "shift": "a << 1 | 1ull", "xorshift": "a ^ a >> 12",
    "rotate": "(a << 13 | a >> 51) + b", "modulo": "(c + a) % b", "smaller chooses": "a < b ? a + c : a - b",
    "mul64hi": "__umul64hi(a, b) + c",
}  # fmt: skip
DOUBLE = {
    "add": "a + b", "multiply": "a * b", "multiply, add": "a * b + c", "fma": "fma(a, b, c)", "divide": "b / a", "divide by": "a / b",
    "reciprocal": "1.0 / a", "sqrt": "sqrt(a) + c", "rsqrt": "rsqrt(a) + c", "exp": "exp(-a)", "log": "log(a) + 3.0",
    "sin": "sin(a) + c", "cos": "cos(a) + c", "tanh": "tanh(a) + c", "pow": "pow(a, 0.7) + c",
    "choose": "a < b ? a + c : a * 0.5", "to float": "(double)((float)a * 0.5f) + c", "to int": "(double)(int)(a * b) + c",
    "fmax": "fmax(a * b, c)", "shuffle": "__shfl_xor_sync(0xffffffffu, a, 1) + b",
}  # fmt: skip
SUMS = {
    "logf": "logf(y)", "expf": "expf(-y)", "three expf": "expf(-y) + 4.0f * expf(-y * y) + expf(-2.0f * y)", "sinf": "sinf(y)",
    "rsqrtf": "rsqrtf(y)", "sqrtf": "sqrtf(y)", "divide": "b / y", "powf": "powf(y, 0.7f)", "tanhf": "tanhf(y)",
    "polynomial": "(((((y * b + c) * y + b) * y + c) * y + b) * y + c) * y + b", "multiply": "y * b",
    "choose": "y < b ? y * y * c : y * b", "log of exp": "logf(1.0f + expf(-y))", "cbrtf": "cbrtf(y)", "erff": "erff(y)",
    "__expf": "__expf(-y)", "two roots": "rsqrtf(y) * rsqrtf(y * y + c) * rsqrtf(y * b + c)", "atanf": "atanf(y)",
}  # fmt: skip
STATEMENTS = {
    "syncthreads": "__syncthreads(); a += 1.0f;", "syncwarp": "__syncwarp(); a += b;",
    "shared round": "near[threadIdx.x] = a; __syncwarp(); a = near[threadIdx.x ^ 1] + b; __syncwarp();",
    "shared and barrier": "near[threadIdx.x] = a; __syncthreads(); a = near[threadIdx.x ^ 1] + b; __syncthreads();",
    "branch": "if (a < b) { a = sqrtf(a) + c; } else { a = a - b; }",
    "branch, both long": "if (a < b) { a = a * b + c; a = a * a + c; a = a * b + a; } else { a = a - b; a = a * c; }",
    "select": "if (a < b) a += c; else a -= b;", "leave": "a += c; if (a > 3e6f) break;",
    "load": "a += far[t * 32 + threadIdx.x];", "two loads": "a += far[t * 32 + threadIdx.x] * far[t * 32 + threadIdx.x + 65536];",
    "three loads": "a += far[t * 32 + threadIdx.x] * far[t * 32 + threadIdx.x + 65536] + far[t * 32 + threadIdx.x + 131072];",
    "load and function": "a += expf(-far[t * 32 + threadIdx.x]);",
    "load, divide": "a += b / (far[t * 32 + threadIdx.x] + c);",
    "load strided": "a += far[t * stride + threadIdx.x];",
    "two loads strided": "a += far[t * stride + threadIdx.x] * far[t * stride + threadIdx.x + 65536];",
    "same load": "a += far[t & 31];", "load for shared": "near[threadIdx.x] = far[t * 32 + threadIdx.x]; __syncthreads(); a += near[threadIdx.x ^ 1]; __syncthreads();",
    "loop of 5": "for (int k = 0; k < 5; ++k) a = a * b + c;",
    "warp sum": "float v = far[t * 32 + threadIdx.x]; for (int s = 16; s > 0; s /= 2) v += __shfl_xor_sync(0xffffffffu, v, s); a += v;",
    "warp sum of a": "for (int s = 16; s > 0; s /= 2) a += __shfl_xor_sync(0xffffffffu, a, s); a *= b * 0.02f;",
    "loop of n": "for (int k = 0; k < stride; ++k) a = a * b + c;",
}  # fmt: skip
TYPES = {"float": FLOAT, "unsigned": UINT, "unsigned long long": ULONG, "double": DOUBLE}
HEAD = """extern "C" __global__ void {name}({type}* x, const float* far, long long* clocks, {type} b, {type} c, int stride, int turns) {{
    {rooms}
    {type} a = x[threadIdx.x];
    long long begin = clock64();
    for (int t = 0; t < turns; ++t) {{ {body} }}
    clocks[threadIdx.x] = clock64() - begin;
    x[threadIdx.x] = a;
}}
"""  # fmt: skip
TABLE = "__shared__ unsigned table[256]; for (int k = threadIdx.x; k < 256; k += 32) table[k] = k * 167u + 13u & 255u; __syncthreads();"
OWN = "unsigned own[16]; for (int k = 0; k < 16; ++k) own[k] = (k * stride + 5u) & 15u;"
NEAR = "__shared__ float near[32]; near[threadIdx.x] = 0.0f; __syncthreads();"


def chains() -> dict[str, tuple[str, str, str]]:
    """By the name of each: the type of what is handed on, a kernel's name, and its source."""
    found: dict[str, tuple[str, str, str]] = {}

    def add(name: str, kind: str, body: str) -> None:
        kernel = f"chain{len(found)}"
        rooms = {"table[": TABLE, "own[": OWN, "near[": NEAR}
        room = " ".join(text for word, text in rooms.items() if word in body)
        found[name] = kind, kernel, HEAD.format(name=kernel, type=kind, rooms=room, body=body)

    for kind, table in TYPES.items():
        for name, expression in table.items():
            add(f"{kind}: {name}", kind, f"a = {expression};")
    for name, expression in SUMS.items():
        add(f"sum: {name}", "float", f"float y = b + 0.001f * t; a += {expression};")
    for name, body in STATEMENTS.items():
        add(name, "float", body)
    return found


def arguments(kind: str) -> tuple[Any, Any, Any, Any]:
    """Where a chain begins, what it may load, and its constants."""
    dtype = {"float": "f4", "unsigned": "u4", "unsigned long long": "u8", "double": "f8"}[kind]
    start, b, c = (1.25, 1.5, 0.75) if dtype[0] == "f" else (12345, 97, 1103)
    far = np.full(1 << 18, 0.5, np.float32)
    return np.full(32, start, dtype), far, np.dtype(dtype).type(b), np.dtype(dtype).type(c)


def measured() -> dict[str, float]:
    """On the GPU."""
    import cupy

    from asyncgpu_tutor.devices.cuda.compile import compile_module

    cases, found = chains(), dict[str, float]()
    module, names = compile_module(
        "".join(source for _, _, source in cases.values()), [k for _, k, _ in cases.values()]
    )
    for name, (kind, kernel, _) in cases.items():
        start, far, b, c = arguments(kind)
        function, loaded = module.get_function(names[kernel]), cupy.asarray(far)
        took: list[float] = []
        for turns in TURNS:
            runs: list[int] = []
            for _ in range(9):
                x, clocks = cupy.asarray(start), cupy.zeros(32, np.int64)
                function((1,), (32,), (x, loaded, clocks, b, c, np.int32(32), np.int32(turns)))
                runs.append(int(clocks.get()[0]))
            took.append(statistics.median(runs))
        found[name] = round((took[1] - took[0]) / (TURNS[1] - TURNS[0]), 2)
    return found


def modelled() -> dict[str, float]:
    """By the model."""
    from simgpu.cuda_c import GlobalMemory, compile_source
    from simgpu.spec import H200
    from simgpu.times import kernel_time

    found = dict[str, float]()
    for name, (kind, kernel, source) in chains().items():
        took: list[float] = []
        for turns in TURNS:
            start, far, b, c = arguments(kind)
            memories: list[Any] = []
            for value in (start, far, np.zeros(32, np.int64)):
                memory = GlobalMemory(value.nbytes, "argument")
                memory.data[:] = value.view(np.uint8)
                memory.mark_written()
                memories.append(memory)
            args = [*memories, b, c, np.int32(32), np.int32(turns)]
            launch = compile_source(source).begin(kernel, (1, 1, 1), (32, 1, 1), args)
            time = kernel_time(H200, launch.finish().counts, 32, 0)
            took.append(time.bounds["latency"] * H200.clock_mhz)
        found[name] = round((took[1] - took[0]) / (TURNS[1] - TURNS[0]), 2)
    return found


def main() -> None:
    """Measure on a GPU, or compare the model with what was measured."""
    if "record" in sys.argv:
        Path(sys.argv[-1]).write_text(json.dumps(measured(), indent=1) + "\n")
        return
    real = json.loads((Path(sys.argv[1]) if len(sys.argv) > 1 else FILE).read_text())
    for name, clocks in modelled().items():
        known = real.get(name, float("nan"))
        print(f"{name:32} {known:8.1f} {clocks:8.1f} {clocks / known - 1:+6.0%}")
