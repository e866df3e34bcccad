"""The interpreter against a GPU: the corpus, random kernels, and what is fused with what.

`CUDA_C_FUZZ=500 pytest -m gpu tests/simgpu/cuda_c/test_on_gpu.py` compares as many random kernels as it says.
"""

import os
import re
from typing import Any

import numpy as np
import pytest

from simgpu.cuda_c import compile_source

from .corpus import CASES, Case, arguments, launch_case, source
from .generate import HELPERS, THREADS, kernel
from .gpu import INEXACT, UNORDERED, nvrtc, on_gpu
from .support import launch
from .test_differential import BLOCKS
from .test_differential import arguments as random_arguments

pytestmark = pytest.mark.gpu
COUNT = int(os.environ.get("CUDA_C_FUZZ", "60"))


@pytest.fixture(scope="module")
def cupy() -> Any:
    cp = pytest.importorskip("cupy", reason="CuPy is not installed")
    if not cp.cuda.is_available():
        pytest.skip("no GPU")
    return cp


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.kernel)
def test_corpus(cupy: Any, case: Case) -> None:
    ours, theirs = arguments(case), arguments(case)
    if case.kernel == "gelu":
        ours[1] = theirs[1] = np.uint64(theirs[1])
    text = source(case.file)
    compiled = nvrtc(text, [case.kernel])
    on_gpu(cupy, compiled, case.kernel, (case.grid, case.block), theirs, case.shared)
    launch_case(case, ours)
    if case.kernel in UNORDERED:
        ours, theirs = [[np.sort(a) for a in x if np.ndim(a)] for x in (ours, theirs)]
    for mine, other in zip(ours, theirs, strict=True):
        if isinstance(mine, np.ndarray):
            tolerance = INEXACT.get(case.kernel, 0)
            np.testing.assert_allclose(mine, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("first", range(0, COUNT, 20))
def test_random_kernels(cupy: Any, first: int) -> None:
    seeds = range(first, first + 20)
    text = HELPERS + "\n".join(kernel(f"k{s}", s) for s in seeds)
    # -G: without the optimiser, which takes it that integers never overflow; these do, and then wrap.
    compiled = nvrtc(text, [f"k{s}" for s in seeds], fmad=False, options=("-G",))
    program = compile_source(text)
    for s in seeds:
        ours, theirs = random_arguments(s), random_arguments(s)
        on_gpu(cupy, compiled, f"k{s}", ((BLOCKS,), (THREADS,)), theirs)
        launch(program, f"k{s}", BLOCKS, THREADS, *ours)
        for mine, other in zip(ours[2:6], theirs[2:6], strict=True):
            np.testing.assert_array_equal(mine, other, err_msg=kernel(f"k{s}", s))


FUSED = [
    "a * b + c", "c + a * b", "a * b - c", "c - a * b", "a * b + c * d", "a * b - c * d", "-(a * b) + c",
    "-(a * b) - c", "a * b + c * d + e", "e + a * b + c * d", "e - a * b - c * d", "(a + b) * c + d",
    "a * b * c + d", "2.0f * a + b", "(a * b) / c + d", "(a * b + c) * d + e", "a * b - c * d + e * a",
    "(a * b + c * d) - (a * d + b * c)", "e + (a * b + c * d)", "a * a + b * b", "(a - b) * c",
    "a * (b + c) - d", "a + b + c * d - e", "a * b + b", "(a * b) + (c + d)", "a - b * 2.0f", "a * d + b * c", "c * d + a * b", "b * b + a * a", "a * d + b * d", "e * a + b",
    "a * d + b * c + e * e", "e + (c * d + a * b)",
]  # fmt: skip


@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("expression", FUSED)
def test_what_is_fused(cupy: Any, expression: str, kind: str) -> None:
    text = (
        f'extern "C" __global__ void k(const {kind}* x, {kind}* y) {{ int i = blockIdx.x * 32 + threadIdx.x; '
        f"{kind} a = x[5 * i], b = x[5 * i + 1], c = x[5 * i + 2], d = x[5 * i + 3], e = x[5 * i + 4]; "
        f"y[i] = {expression}; }}"
    )
    x = np.random.default_rng(7).standard_normal(16000).astype("f4" if kind == "float" else "f8")
    ours, theirs = np.zeros(3200, x.dtype), np.zeros(3200, x.dtype)
    compiled = nvrtc(text, ["k"])
    on_gpu(cupy, compiled, "k", ((100,), (32,)), [x.copy(), theirs])
    launch(compile_source(text, contract=True), "k", 100, 32, x.copy(), ours)
    np.testing.assert_array_equal(ours, theirs)


UNARY = [
    "__hneg(a)", "__habs(a)", "-a", "hfloor(a)", "hceil(a)", "htrunc(a)", "hrint(a)", "hsqrt(a)", "a * a", "a + a",
    "__float2half(__half2float(a))", "__double2half((double)a * 1.00048828125)", "__float2half(0.3f * __half2float(a))",
    "__int2half_rn(__half2int_rn(a))", "__int2half_rn(__half2int_rz(a))", "__short2half_rn((short)i)",
    "__uint2half_rn(i * 3u)", "__int2half_rn((int)i * 77 - 99999)", "__float2half((float)i * 1.7e-9f)",
]  # fmt: skip
UNARY += [
    f"__{kind}2half_rn(__half2{kind}_{way}(a))" for kind in ("uint", "short", "ushort", "ll", "ull") for way in ("rn", "rz", "rd", "ru")
] + [f"__float2half_{way}(__half2float(a) * 1.0003f + 2e-8f)" for way in ("rz", "rd", "ru")]  # fmt: skip
BINARY = [
    "__hadd(a, b)", "__hsub(a, b)", "__hmul(a, b)", "__hdiv(a, b)", "a + b", "a - b", "a * b", "a / b",
    "__hmax(a, b)", "__hmin(a, b)", "__hfma(a, b, a)", "__hfma(a, b, b)", "__hfma(a, b, tiny)", "__hfma(a, b, -tiny)", "__hisnan(a) ? b : a",
    "__heq(a, b) ? a : b", "__hlt(a, b) ? a : b", "__hge(a, b) ? a : b", "(a < b) ? b : a",
    "__shfl_xor_sync(~0u, a, 5)", "__shfl_down_sync(~0u, b, 3)", "__low2half(__hadd2(make_half2(b, a), make_half2(a, b)))",
    "__high2half(__hfma2(make_half2(b, a), make_half2(a, b), make_half2(a, a)))",
]  # fmt: skip


@pytest.mark.parametrize("kind", ["half", "__nv_bfloat16"])
def test_all_numbers_of_16_bits(cupy: Any, kind: str) -> None:
    """Each of the 65,536 with 16 others: the same bits, one NaN for all."""
    expressions = UNARY + BINARY
    name = "half" if kind == "half" else "bfloat16"
    from_bits, bits = f"__ushort_as_{name}", f"__{name}_as_ushort"
    if kind != "half":
        theirs_alone = re.compile("make_half2|half2u?[a-z]+_r|half_r[zdu]")
        expressions = [_renamed(e) for e in expressions if not theirs_alone.search(e)]
    lines = "\n".join(f"o[n * {k} + t] = {bits}({kind}({e}));" for k, e in enumerate(expressions))
    text = (
        "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"
        'extern "C" __global__ void k(unsigned int n, unsigned short* o) {'
        "unsigned int t = blockIdx.x * 256 + threadIdx.x, i = t & 0xffff, j = (t * 40503u + 977u * (t >> 16)) & 0xffff;\n"
        "if (t >> 16 == 15) j = i ^ 0x8000;\n"  # two zeros, among others
        f"{kind} a = {from_bits}((unsigned short)i), b = {from_bits}((unsigned short)j), tiny = {from_bits}(1);\n{lines} }}"
    )
    count = 16 * 65536
    ours, theirs = [np.zeros((len(expressions), count), np.uint16) for _ in range(2)]
    compiled = nvrtc(text, ["k"], fmad=False)
    on_gpu(cupy, compiled, "k", ((count // 256,), (256,)), [np.uint32(count), theirs])
    launch(compile_source(text), "k", count // 256, 256, count, ours.reshape(-1))
    infinity = 0x7C00 if kind == "half" else 0x7F80
    for each in (ours, theirs):
        each[(each & 0x7FFF) > infinity] = 0x7FFF
    wrong = {e: int((m != t).sum()) for e, m, t in zip(expressions, ours, theirs, strict=True)}
    assert {e: n for e, n in wrong.items() if n} == {}


def _renamed(text: str) -> str:
    text = text.replace("2half_rn", "2bfloat16_rn").replace("2half(", "2bfloat16(")
    return text.replace("__half2", "__bfloat162").replace("half2(", "bfloat162(")
