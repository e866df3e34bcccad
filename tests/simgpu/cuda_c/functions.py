"""What each function of CUDA C computes, and what a warp pays for it by our own model.

Most functions are rows of tables, and a wrong row would show in no kernel that doesn't call it. So each is
called once here, with arguments of the first types that it takes; those that make no sense
alone, or have other types besides, are in `functions.cu`. `functions.json` has what came out: record it with `python -m tests.simgpu.cuda_c.digests costs`.
"""

import json
import re
from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import Path

import numpy as np

from simgpu.cuda_c import compile_source
from simgpu.cuda_c.compile import builtins
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
HEAD, _, STATEMENTS = Path(__file__).with_suffix(".cu").read_text().partition("// ====\n")
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
    yield from STATEMENTS.splitlines()


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
