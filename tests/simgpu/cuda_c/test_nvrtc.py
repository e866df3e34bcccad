"""NVIDIA's own compiler as a judge of what is CUDA C: it needs no GPU, only its library.

Skipped where `libnvrtc` is not to be found; `pip install nvidia-cuda-nvrtc-cu12` brings it.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import sys
from pathlib import Path

import pytest

from simgpu.cuda_c import for_compiler

from .corpus import CASES, source
from .generate import HELPERS, kernel
from .support import HEAD
from .test_refusals import FILES_WRONG, WRONG

# Where the interpreter is stricter than NVRTC, on purpose: what it refuses here is never meant.
STRICTER = {
    "o[i] = 18446744073709551616 > 1;",
    "o[i] = 'ab';",
    'printf("%d");',
    'printf("100%\\n");',
    'printf("%q", 3);',
    "__shfl_sync(0xffffffff, i, 0, 5);",
    "__device__ int f() { return; }\n" + HEAD + "f(); }",
}


def _library() -> ctypes.CDLL | None:
    names = [ctypes.util.find_library("nvrtc")]
    for folder in map(Path, sys.path):
        for part in ("cuda_nvrtc/lib", "cu13/lib", "cuda_nvrtc/bin"):
            names += sorted(map(str, (folder / "nvidia" / part).glob("*nvrtc.so.*")))
    for name in filter(None, names):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


NVRTC = _library()
pytestmark = pytest.mark.skipif(NVRTC is None, reason="NVRTC is not installed")


def refusal(text: str, *options: bytes) -> str | None:
    """NVRTC's first complaint about a source; None if it takes it."""
    assert NVRTC is not None
    program = ctypes.c_void_p()
    NVRTC.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
    given = (b"--gpu-architecture=compute_90", *options)
    code = NVRTC.nvrtcCompileProgram(program, len(given), (ctypes.c_char_p * len(given))(*given))
    size = ctypes.c_size_t()
    NVRTC.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    NVRTC.nvrtcGetProgramLog(program, log)
    NVRTC.nvrtcDestroyProgram(ctypes.byref(program))
    errors = [line for line in log.value.decode().split("\n") if "error" in line]
    return (errors or ["?"])[0] if code else None


@pytest.mark.parametrize("text", [t for t in WRONG if t not in STRICTER])
def test_what_we_call_wrong_is_wrong(text: str) -> None:
    assert refusal(HEAD + text + " }") is not None


@pytest.mark.parametrize("text", [t for t in FILES_WRONG if t not in STRICTER and "fp16" not in t])
def test_files_that_we_call_wrong_are_wrong(text: str) -> None:
    assert refusal(text) is not None


# `random` needs a header.
@pytest.mark.parametrize("file", sorted({c.file for c in CASES} - {"random"}))
def test_the_corpus_is_cuda(file: str) -> None:
    assert refusal(source(file)) is None


def test_random_kernels_are_cuda() -> None:
    # A lambda with a parameter of type auto needs this option, which CuPy gives too.
    option = b"--device-as-default-execution-space"
    assert refusal(HELPERS + "\n".join(kernel(f"k{s}", s) for s in range(5)), option) is None


def test_the_names_that_are_supplied_are_cuda() -> None:
    text = """__device__ const float most = INFINITY; __constant__ float ends[2] = {-HUGE_VALF, NAN};
    __global__ void k(double* x) { constexpr float low = -INFINITY; x[0] = low + most + ends[0] + HUGE_VAL
        + std::numeric_limits<float>::infinity() + std::enable_if<true, cufftReal>::type(1) + M_PI; }"""
    assert refusal(for_compiler(text), b"--std=c++17") is None
