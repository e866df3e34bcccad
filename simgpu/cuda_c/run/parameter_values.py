"""The arguments of a launch, checked, as the values of the parameters of a kernel."""

from __future__ import annotations

from typing import Any, NoReturn, TypeAlias

import numpy as np

from simgpu.cuda_c.compile.variables import Variable
from simgpu.cuda_c.lockstep.team import Dim
from simgpu.cuda_c.memory.addresses import Addresses
from simgpu.cuda_c.memory.allocation import GlobalMemory
from simgpu.cuda_c.types import CType, Pointer, Scalar, element_of, leaves, size_of, spelled
from simgpu.errors import ArrayDTypeError, LaunchConfigError

Argument: TypeAlias = GlobalMemory | np.generic | int | float | bool | None

# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
_MAX_BLOCK = (1024, 1024, 64)
_MAX_THREADS = 1024
_MAX_GRID = (2**31 - 1, 65535, 65535)


def pointee(variable: Variable) -> CType:
    """The element that a pointer or array is of, at the bottom."""
    ctype = variable.type
    return element_of(ctype.target if isinstance(ctype, Pointer) else ctype)


def check_shape(name: str, grid: Dim, block: Dim) -> None:
    """Refuse a grid or block that no GPU takes."""
    text = ""
    for what, dim, most in (("grid", grid, _MAX_GRID), ("block", block, _MAX_BLOCK)):
        if len(dim) != 3 or min(dim) < 1:
            text = f"a {what} of {dim} is not possible: it has one to three lengths above 0"
        elif dim[0] > most[0] or dim[1] > most[1] or dim[2] > most[2]:
            text = f"a {what} of {dim} is too large: at most {most}"
        if text:
            raise LaunchConfigError(f"kernel '{name}': {text}")
    threads = block[0] * block[1] * block[2]
    if threads > _MAX_THREADS:
        text = f"a block of {block} has {threads} threads; at most {_MAX_THREADS} are possible"
        raise LaunchConfigError(f"kernel '{name}': {text}")


def _refuse(kernel: str, variable: Variable, wanted: str, given: str) -> NoReturn:
    raise ArrayDTypeError(
        f"kernel '{kernel}': the parameter '{variable.name}' is {wanted}, {given} was given"
    )


def record_for(kernel: str, variable: Variable, given: Argument, addresses: Addresses) -> list[Any]:
    """An argument as a struct of its parameter's type: the values of its leaves."""
    ctype = variable.type
    size = size_of(ctype)
    if not isinstance(given, np.void) or given.nbytes != size:
        _refuse(kernel, variable, f"a {spelled(ctype)}, of {size} bytes", type(given).__name__)
    raw = given.tobytes()
    out: list[Any] = []
    for leaf, offset in leaves(ctype):
        if isinstance(leaf, Scalar):
            out.append(np.frombuffer(raw, leaf.dtype, 1, offset)[0])
        else:
            number = int(np.frombuffer(raw, np.uint64, 1, offset)[0])
            out.append(addresses.known(number, size_of(leaf.target)))
    return out


def memory_for(kernel: str, variable: Variable, given: Argument) -> GlobalMemory:
    """An argument for a pointer."""
    if not isinstance(given, GlobalMemory):
        _refuse(kernel, variable, "a pointer", f"{type(given).__name__} {given!r}")
    return given


def number_for(kernel: str, variable: Variable, given: Argument) -> Any:
    """An argument as a number of its parameter's type."""
    ctype = variable.type
    if isinstance(given, GlobalMemory) or not isinstance(ctype, Scalar):
        what = ctype.name if isinstance(ctype, Scalar) else "not a number"
        _refuse(kernel, variable, what, type(given).__name__)
    number: Any = given
    if ctype.is_integer and not isinstance(number, (bool, int, np.integer, np.bool_)):
        _refuse(kernel, variable, ctype.name, f"the fraction {given!r}")
    if ctype.is_integer and not ctype.lowest <= int(np.asarray(given)) <= ctype.highest:
        raise ArrayDTypeError(
            f"kernel '{kernel}': {given} does not fit the parameter '{variable.name}', which is "
            f"{ctype.name}"
        )
    return np.asarray(given).astype(ctype.dtype)[()]
