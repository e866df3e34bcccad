"""A launch of a kernel on copies of its arguments, watched; for `show_threads`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from asyncgpu_tutor.arrays.handles import DeviceArray, Partition
from asyncgpu_tutor.devices.simgpu_errors import translated, translation
from asyncgpu_tutor.devices.simulated.report import Watched, memory_of
from asyncgpu_tutor.errors import ArrayDTypeError, UsageError
from asyncgpu_tutor.kernels import Kernel
from asyncgpu_tutor.kernels.launching import configuration
from asyncgpu_tutor.ops.array_operations import d2h

MOST_THREADS = 4096


def watch(
    kernel: Kernel,
    args: Sequence[Any],
    grid: int | tuple[int, ...] | None,
    block: int | tuple[int, ...] | None,
    shared_mem: int,
) -> Watched:
    """Run a kernel on copies of its arguments, and note what its threads do; see `show_threads`."""
    parameters = kernel._signature.parameters
    if len(args) != len(parameters):
        raise UsageError(kernel._signature.miscounted(args))
    chosen = configuration(kernel.name, args, grid, block)
    seen = Watched(kernel.name, kernel.source, *chosen)
    if seen.threads > MOST_THREADS:
        raise UsageError(
            f"show_threads draws every thread, at most {MOST_THREADS}, and this launch has {seen.threads}: "
            "show a smaller one. What holds for four blocks holds for a thousand"
        )
    given: list[Any] = []
    for parameter, arg in zip(parameters, args, strict=True):
        if not parameter.pointer:
            given.append(arg)
            continue
        array = _on_host(kernel.name, parameter.name, arg)
        if parameter.dtype is not None and array.dtype != parameter.dtype:
            raise ArrayDTypeError(
                f"show_threads: '{parameter.name}' of {kernel.name}() is {array.dtype}, and the kernel takes "
                f"{parameter.dtype}: convert it with astype(np.{parameter.dtype})"
            )
        seen.shapes[parameter.name], seen.sizes[parameter.name] = array.shape, array.itemsize
        given.append(memory_of(array, parameter.name))
    translated(seen.run)(given, shared_mem)
    seen.fault = seen.fault and translation(seen.fault)
    return seen


def _on_host(kernel: str, name: str, given: Any) -> NDArray[Any]:
    array = given.array if isinstance(given, Partition) else given
    if isinstance(array, DeviceArray):
        return d2h(array.borrow()).sync()
    if not isinstance(array, np.ndarray):
        raise ArrayDTypeError(
            f"show_threads: the parameter '{name}' of {kernel}() is a pointer: give it a NumPy array or a "
            f"DeviceArray, not {type(given).__name__}"
        )
    return cast("NDArray[Any]", array)
