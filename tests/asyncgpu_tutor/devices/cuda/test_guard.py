"""CUDA's errors in the words of this package, on stand-ins for CuPy's."""

import importlib
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from asyncgpu_tutor import errors

MODULE = "asyncgpu_tutor.devices.cuda.guard"


class CompileException(Exception):
    """CuPy's error with NVRTC's log."""


class OutOfMemoryError(Exception):
    """Of CuPy's pool."""


class CUDARuntimeError(Exception):
    """Of any call of the runtime."""


@pytest.fixture
def guard(monkeypatch: pytest.MonkeyPatch) -> Any:
    cuda = ModuleType("cupy.cuda")
    vars(cuda).update(
        compiler=SimpleNamespace(CompileException=CompileException),
        driver=SimpleNamespace(CUDADriverError=type("CUDADriverError", (Exception,), {})),
        memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
        runtime=SimpleNamespace(CUDARuntimeError=CUDARuntimeError),
    )
    monkeypatch.setitem(sys.modules, "cupy", ModuleType("cupy"))
    monkeypatch.setitem(sys.modules, "cupy.cuda", cuda)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    module = importlib.import_module(MODULE)
    monkeypatch.setitem(sys.modules, MODULE, module)  # so that it goes with the test
    return module


@pytest.mark.parametrize(
    ("log", "line", "said"),
    [
        ("k.cu(2): error: expected a \";\"\n", 2, 'kernel.cu:2: error: expected a ";"\n    second line'),
        ("k.cu(9): error: the end is missing\n", 9, "kernel.cu:9: error: the end is missing\n    \n"),
        ("k.cu(1): catastrophic error: cannot open \"curand_kernel.h\"", 1, "pip install 'cuda-toolkit[c"),
        ("nvrtc: error: invalid value for --gpu-architecture", None, "k does not compile:\nnvrtc: error:"),
    ],
)  # fmt: skip
def test_a_compilers_log(guard: Any, log: str, line: int | None, said: str) -> None:
    with (
        pytest.raises(errors.KernelCompileError) as caught,
        guard.compiling("one\nsecond line", "k"),
    ):
        raise CompileException(log)
    assert said in str(caught.value)
    assert log in str(caught.value)
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (OutOfMemoryError("7 bytes"), errors.OutOfMemoryError, "out of memory in h2d: 7 bytes"),
        (CUDARuntimeError("cudaErrorMemoryAllocation: no"), errors.OutOfMemoryError, "out of memory in h2d"),
        (CUDARuntimeError("CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"), errors.LaunchConfigError,
         "fewer or smaller blocks"),
        (CUDARuntimeError("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"), errors.LaunchConfigError,
         "more registers .* or have more threads than the kernel's __launch_bounds__ promises"),
        (CUDARuntimeError("cudaErrorIllegalAddress"), errors.DeviceError, r"agt.use\('sim'\)"),
    ],
)  # fmt: skip
def test_an_error_of_cuda(guard: Any, error: Exception, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said) as caught, guard.guarded("h2d"):
        raise error
    assert type(caught.value) is kind
    assert caught.value.__cause__ is error
