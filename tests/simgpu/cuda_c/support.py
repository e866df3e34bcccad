"""Running a kernel on NumPy arrays, in one call."""

from dataclasses import asdict
from typing import Any, get_args
from zlib import crc32

import numpy as np

from simgpu.cuda_c import GlobalMemory, InterpreterLimits, LaunchResult, Program, compile_source
from simgpu.cuda_c.compile.variables import Fact

# Of the test that runs, see conftest.py: counts, and steps until hostile memory gets kind.
COUNTED, LEFT = list[Any](), list[int]()
HEAD = 'extern "C" __global__ void k(float* x, int* o, int n) { int i = threadIdx.x; '


def memory(array: np.ndarray[Any, Any], name: str = "") -> GlobalMemory:
    """Device memory with the contents of an array."""
    out = GlobalMemory(array.nbytes, name)
    out.data[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    out.mark_written()
    return out


def launch(
    program: Program | str,
    name: str,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    *args: Any,
    shared: int = 0,
    limits: InterpreterLimits | None = None,
) -> LaunchResult:
    """Launch a kernel; arrays among `args` are changed in place."""
    if isinstance(program, str):
        program = compile_source(program, contract=True)
    shapes = [(g,) if isinstance(g, int) else g for g in (grid, block)]
    grid, block = [(*s, *(1,) * (3 - len(s))) for s in shapes]
    ready = [memory(a) if isinstance(a, np.ndarray) else a for a in args]
    try:
        begun = program.begin(name, grid, block, ready, dynamic_shared=shared, limits=limits)
        result = begun.finish()
        COUNTED.append(result.counts)
        LEFT.extend(() if begun.launch.hostile is None else [begun.launch.hostile.left])
        return result
    finally:
        for array, given in zip(args, ready, strict=True):
            if isinstance(array, np.ndarray):
                array[...] = given.view(array.dtype).reshape(array.shape)


def body(
    text: str,
    n: int = 32,
    *,
    before: str = "",
    shared: int = 128,
    threads: int = 32,
    contract: bool = True,
    limits: InterpreterLimits | None = None,
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], LaunchResult]:
    """Run statements in a kernel `k(float* x, int* o, int n)` with 32 threads; x, o, the result.

    `x` holds 0, 1, 2 ... and `o` zeros; `i` is the thread's number.
    """
    x, o = np.arange(32, dtype=np.float32), np.zeros(32, np.int32)
    program = compile_source(f"{before}\n{HEAD}{text} }}", contract=contract)
    result = launch(program, "k", 1, threads, x, o, n, shared=shared, limits=limits)
    return x, o, result


def check(text: str, value: Any, before: str = "") -> str:
    """Compare what statements, or an expression, leave in each `o[i]`, or in `x[i]` where that is all.

    `value` is one for all threads, one for each, or a function of the thread's number. Returns `made`.
    """
    statements = text if text.endswith((";", "}")) else f"o[i] = {text};"
    x, o = np.arange(32, dtype=np.float32), np.zeros(32, np.int32)
    program = compile_source(f"{before}\n{HEAD}{statements} }}", contract=True)
    result = launch(program, "k", 1, 32, x, o, 32, shared=128)
    want = [value(i) for i in range(32)] if callable(value) else np.broadcast_to(value, 32)
    np.testing.assert_array_equal(o if "o[i]" in statements else x, want)
    return made(program, result)


def made(program: Program, result: LaunchResult) -> str:
    """What has become of the kernel `k`, for `tell`: two of its counts, and a checksum of all that is known.

    That is its form as `simgpu --passes` prints it, what is found out about it, and what it costs. What a
    compiler makes wrong often computes the same, and differs in one of these.
    """
    kernel, counts = program.kernel("k"), result.counts
    code = kernel.code
    facts = [[v.origin.has(fact) for fact in get_args(Fact)] for v in code.parameters]
    known = (code.local_bytes, code.shared_bytes, code.watches, code.follows, code.talks)
    costs = {name: number for name, number in asdict(counts).items() if number}
    whole = [program.passes("k"), kernel.signature, code.sites, facts, known, costs]
    checksum = crc32(repr(whole).encode())
    return f"{counts.issued} instructions, {counts.chain_latency} clocks, {checksum:08x}"
