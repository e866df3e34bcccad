"""Compiling CUDA C with NVRTC, so that arithmetic is that of the source.

CuPy's own `RawModule` adds ``-ftz=true``, which makes zeros of numbers below the normal floats; NumPy and the
simulated device keep them. So the compiler is called here, with every option that rounding depends on.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cupy
import numpy as np
from cuda.pathfinder import find_nvidia_header_directory  # CuPy needs it, too
from cupy.cuda import compiler, function

from asyncgpu_tutor.devices.cuda.guard import compiling
from asyncgpu_tutor.devices.cuda_source import Parameter, Signature, for_compiler

# Numbers below the normal floats stay, quotients and square roots are rounded as IEEE 754 wants: NVRTC's
# defaults, but said.
IEEE = ("--ftz=false", "--prec-div=true", "--prec-sqrt=true")
STANDARD = "--std=c++20"
# A kernel's name and its parameters, by which C++ chooses where an address is cast to such a function's.
_PARAMETERS = re.compile(r"^(.*?[\w>])\s*(\((?:[^()]|\([^()]*\))*\))$", re.DOTALL)
# Cooperative groups include <nv/target>, which pip's toolkit leaves to a package of its own, as it does CUB.
# CuPy brings both.
CCCL = Path(cupy.__file__).with_name("_core") / "include/cupy/_cccl"


def compile_module(
    source: str, names: Sequence[str], *, fmad: bool = False, options: Sequence[str] = ()
) -> tuple[Any, Mapping[str, str]]:
    """Compile and load a source on the current device: its module, and what each of `names` is called there.

    The source is CUDA C as it was published: NVRTC gets its device code and names of C's headers. Kernels
    are named as C++ writes them: ``"relu"``, ``"scale<float, 16>"``, ``"add(float*, int)"``. With `fmad` the
    compiler may contract a product and a sum to a fused multiply-add. Without, the bits are those of each
    operation of the source, as on the simulated device and in NumPy. A kernel can still say ``fmaf``.

    Raises CuPy's `CompileException` if NVRTC does not accept it.
    """
    wanted = ["cudart", *(["curand"] if "curand" in source else [])]  # with cuda_fp16.h, for one
    found = [folder for name in wanted if (folder := find_nvidia_header_directory(name))]
    brought = ["libcudacxx", *(["cub", "thrust"] if "cub/" in source else [])]
    found += [str(CCCL / name) for name in brought if (CCCL / name).is_dir()]
    search = tuple(f"-I{folder}" for folder in found)
    wanted_as = {name: _PARAMETERS.sub(r"(void (*)\2)\1", name) for name in names}
    binary, mapping = compiler.compile_using_nvrtc(
        for_compiler(source),
        (STANDARD, *IEEE, f"--fmad={str(fmad).lower()}", *options, *search),
        name_expressions=tuple(wanted_as.values()),
        cache_in_memory=True,  # write the source to no temporary file
    )
    module = function.Module()
    module.load(binary)
    return module, {name: mapping[written] for name, written in wanted_as.items()}


def compile_function(source: str, name: str, contract: bool = False) -> Any:
    """One kernel, loaded on the current device: CuPy's function, whose `ptr` is CUDA's, a ``CUfunction``.

    Raises `KernelCompileError`, with the line, if NVRTC does not accept the source.
    """
    with compiling(source, name):
        module, mapping = compile_module(source, (name,), fmad=contract)
    return module.get_function(mapping[name])


def driver_library() -> ctypes.CDLL:
    """The driver's own functions; `OSError` where there is no driver."""
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


def sized_signature(name: str, pointer: int) -> Signature | None:
    """Ask the driver how large the parameters are of a kernel that only NVRTC can read.

    `pointer` is a ``CUfunction``. None where the driver is older than CUDA 12.4 and can't be asked
    (`cuFuncGetParamInfo`).
    """
    try:
        ask = driver_library().cuFuncGetParamInfo
    except (OSError, AttributeError):
        return None
    offset, size = ctypes.c_size_t(), ctypes.c_size_t()
    parameters: list[Parameter] = []
    while (
        ask(
            ctypes.c_void_p(pointer),
            ctypes.c_size_t(len(parameters)),
            ctypes.byref(offset),
            ctypes.byref(size),
        )
        == 0
    ):
        dtype = np.dtype(f"V{size.value}")
        name_of_it = f"argument {len(parameters)}"
        parameters.append(Parameter(name_of_it, f"{size.value} bytes", False, False, dtype))
    return Signature(name, tuple(parameters))
