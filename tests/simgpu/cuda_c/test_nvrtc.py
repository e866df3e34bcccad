"""NVIDIA's own compiler as a judge of what is CUDA C: it needs no GPU, only its library.

Skipped where `libnvrtc` is not to be found; `pip install nvidia-cuda-nvrtc-cu12` brings it.
"""

import ctypes
import ctypes.util
import sys
from pathlib import Path

import pytest

from simgpu.cuda_c import text_for_compiler

from .corpus import CASES, source
from .generate import HELPERS, kernel
from .support import HEAD
from .test_refusals import FILES_WRONG, WRONG

# Where the interpreter is stricter than NVRTC, on purpose: what it refuses here is never meant.
STRICTER = {
    "o[i] = 18446744073709551616 > 1;", "o[i] = 'ab';", "o[i] = 'é';", 'printf("%d", 1.0f);', 'printf("%f", n);', 'printf("%s", n);', 'printf("%d");', 'printf("100%\\n");',
    'printf("%q", 3);', "__shfl_sync(0xffffffff, i, 0, 5);",
    "__device__ int f() { return; }\n" + HEAD + "f(); }",
    'asm volatile("cp.async.wait_group %0;");', "int** p = &o; const int** q = p;",
}  # fmt: skip


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


WRONG_FILES = [HEAD + text + " }" for text in WRONG if text not in STRICTER]
WRONG_FILES += [text for text in FILES_WRONG if text not in STRICTER and "fp16" not in text]
NAMES = """__device__ const float most = INFINITY; __constant__ float ends[2] = {-HUGE_VALF, NAN};
    __global__ void k(double* x) { constexpr float low = -INFINITY; x[0] = low + most + ends[0] + HUGE_VAL
        + std::numeric_limits<float>::infinity() + std::enable_if<true, cufftReal>::type(1) + M_PI; }"""
CUDA = {
    # `random` needs a header.
    **{file: (source(file),) for file in sorted({c.file for c in CASES} - {"random"})},
    # A lambda with a parameter of type auto needs this option, which CuPy gives too.
    "random kernels": (
        HELPERS + "\n".join(kernel(f"k{s}", s) for s in range(5)),
        b"--device-as-default-execution-space",
    ),
    "names that are supplied": (text_for_compiler(NAMES), b"--std=c++17"),
}


@pytest.mark.parametrize("text", WRONG_FILES)
def test_what_we_call_wrong_is_wrong(text: str) -> None:
    assert refusal(text) is not None


@pytest.mark.parametrize("name", CUDA)
def test_what_we_take_is_cuda(name: str) -> None:
    assert refusal(*CUDA[name]) is None
