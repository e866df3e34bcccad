"""CUDA's errors, translated into ours."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager

from cupy.cuda import compiler, driver, memory, runtime

from asyncgpu_tutor import errors
from asyncgpu_tutor.devices.cuda_source import place_in_source

CUDA_ERRORS: tuple[type[BaseException], ...] = (
    memory.OutOfMemoryError,
    runtime.CUDARuntimeError,
    driver.CUDADriverError,
)

# NVRTC: "name.cu(12): error: ..."; the column is not given.
PLACE = re.compile(r"^[^\n(]*\((\d+)\): (?:error|catastrophic error): (.*)$", re.MULTILINE)


@contextmanager
def guarded(what: str) -> Generator[None]:
    """Raise our errors in place of CUDA's."""
    try:
        yield
    except CUDA_ERRORS as error:
        raise from_cuda_error(error, what) from error


def from_cuda_error(error: BaseException, what: str) -> errors.AsyncGpuError:
    """Our error for one of CUDA's, which came up in `what`."""
    # The others are what CUDA itself says where memory comes from no pool, such as a module's.
    if isinstance(error, memory.OutOfMemoryError) or re.search(
        "cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY", str(error)
    ):
        return errors.OutOfMemoryError(
            f"out of memory in {what}: {error}. Drop arrays that are no longer needed, or "
            "work in smaller batches."
        )
    if "COOPERATIVE_LAUNCH_TOO_LARGE" in str(error):
        return errors.LaunchConfigError(
            f"{what}: the kernel has a barrier of the grid, so all its blocks must fit on the device at "
            "once, and they do not: launch fewer or smaller blocks"
        )
    if "LAUNCH_OUT_OF_RESOURCES" in str(error):
        return errors.LaunchConfigError(
            f"{what}: its blocks need more registers than this GPU has for them, or have more threads than "
            "the kernel's __launch_bounds__ promises: launch smaller blocks, or have __launch_bounds__(1024)"
        )
    return errors.DeviceError(
        f"{what}: {error}. After most device errors the process cannot use this GPU any more: "
        "restart it, and run the same code with agt.use('sim'), which names the culprit."
    )


@contextmanager
def compiling(source: str, name: str) -> Generator[None]:
    """Raise `KernelCompileError` in place of NVRTC's, with the line and its text."""
    try:
        yield
    except compiler.CompileException as error:
        log = str(error)
        found = PLACE.search(log)
        if found is None:
            raise errors.KernelCompileError(f"{name} does not compile:\n{log}") from None
        line = int(found[1])
        lines = source.splitlines()
        advice = ""
        if re.search(r'"curand\w*\.h"', found[2]):  # which a toolkit from pip leaves to a package
            advice = "\nThe header comes with cuRAND: pip install 'cuda-toolkit[curand]'"
        text = lines[line - 1] if 0 < line <= len(lines) else ""
        raise errors.KernelCompileError(
            f"{':'.join(map(str, place_in_source(source, line)))}: error: {found[2]}\n    {text}{advice}\n\n"
            f"all of the compiler's messages:\n{log}",
            line=line,
        ) from None
