"""From the signature of a kernel to the function that makes its launches.

What a call has to be checked for is known as soon as the signature is. So the checks are written out once, as
the source of a Python function, and compiled: types, dtypes, shapes and moved handles are compared in place,
and whatever is not plainly right goes to the functions of `accepted_arguments` and `configuration`, which
convert it or complain. A general loop over parameters took three times as long (benchmarks/host_path.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from asyncgpu_tutor.arrays.handles import DeviceArray, Partition, noted_moves
from asyncgpu_tutor.devices.cuda_source import Parameter, Signature
from asyncgpu_tutor.devices.protocol import USUAL_LIMITS
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.kernels.accepted_arguments import Acceptor, shape_check
from asyncgpu_tutor.kernels.configuration import check_limits, configuration, differ


def launcher(
    signature: Signature,
    shapes: Mapping[str, tuple[str, ...]],
    acceptors: Sequence[Acceptor],
    launch: Callable[..., Any],
    kernel: object,
) -> Callable[..., Any]:
    """A function that checks a call, marks its owned arrays as moved, and calls `launch`.

    What cannot change, numbers and shapes, is looked at again only where it is not the very object that was
    accepted last: in a loop it nearly always is.

    `shapes` has, for array parameters, the scalar parameters that give their shape; `acceptors`, for each
    parameter, what looks closely at an argument (see `accepted_arguments`). `launch` gets the kernel and the
    frame; a pair of grid and block; the shared memory; the arguments for a device, with memory in place of
    arrays; the arrays as they were given, and their handles; and what counts the shared ones of these.

    The function is called with the frame of the caller, grid, block, shared memory and a sequence of the
    arguments, which are no operations. Nothing is taken where it raises.
    """
    parameters = signature.parameters
    place = {parameter.name: index for index, parameter in enumerate(parameters)}
    arrays = [index for index, parameter in enumerate(parameters) if parameter.pointer]
    scalars = [index for index in place.values() if index not in arrays]
    space: dict[str, Any] = {
        "DeviceArray": DeviceArray,
        "moves": noted_moves,
        "note": _note,
        "Partition": Partition,
        "kernel": kernel,
        "launch": launch,
        "name": signature.name,
        "where": f"into {signature.name}()",
        "configuration": configuration,
        "differ": partial(differ, signature.name),
        "check_limits": check_limits,
        "usual": USUAL_LIMITS,
        "UsageError": UsageError,
        "miscounted": signature.miscounted,
    }
    given = _listed("p", range(len(parameters)))
    # `part` is the one partition among the arguments; where there are more, they have to agree.
    lines = [
        f"try: [{given}] = args",
        "except ValueError: raise UsageError(miscounted(args)) from None",
        "part = None",
    ]
    for index in arrays:
        lines += _array(index, parameters[index], space)
    checks: list[str] = []
    for index in scalars:
        checks += _scalar(index, parameters[index], space)
    for name, symbols in shapes.items():
        index, sizes = place[name], [place[symbol] for symbol in symbols]
        space[f"shape{index}"] = shape_check(signature.name, name, symbols)
        wanted = _listed("p", sizes)
        checks += [f"if x{index}.shape != ({wanted}): shape{index}(x{index}, {wanted})"]
    for index, acceptor in enumerate(acceptors):
        space[f"accept{index}"] = acceptor
    same = {
        "shared_mem": "shared_mem",
        **{f"p{i}": f"p{i}" for i in scalars},
        **{f"s{place[name]}": f"x{place[name]}.shape" for name in shapes},
    }
    known = "".join(f"known_{name}, " for name in same)
    changed = [f"{now} is not known_{name}" for name, now in same.items()]
    space["known"] = (None,) * (len(same) + 1)
    lines += [
        "if part is not None and grid is None and block is None: how = part._how",
        f"else: how = configuration(name, ({given}), grid, block)",
        "global known",
        f"known_how, {known} = known",
        f"if how != known_how or {' or '.join(changed)}:",
        *[f"    {check}" for check in checks],
        "    check_limits(name, *how, shared_mem, usual)",
        "    shared_mem = int(shared_mem)  # a narrow NumPy integer would overflow in sums",
        f"    known = (how, {', '.join(same.values())})",
    ]
    for index in arrays:
        lines += [f"if x{index}.mode == 'owned': x{index}._gone = where"]
    taken = _listed("x", arrays)
    passed = "".join(f"x{i}._memory, " if i in arrays else f"p{i}, " for i in place.values())
    shares = "".join(f"x{index}._share, " for index in arrays)
    told = f"({passed}), ({_listed('p', arrays)}), ({taken}), ({shares})"
    lines += [
        f"if moves: note(where, ({taken}))",
        f"return launch(kernel, frame, how, shared_mem, {told})",
    ]
    exec("\n    ".join(["def call(frame, grid, block, shared_mem, args):", *lines]), space)
    call: Callable[..., Any] = space["call"]
    return call


def _listed(letter: str, places: Iterable[int]) -> str:
    return "".join(f"{letter}{index}, " for index in places)


def miscounted(signature: Signature, args: Sequence[Any]) -> UsageError:
    """For a call with too many arguments, or too few."""
    names = ", ".join(parameter.name for parameter in signature.parameters)
    count = len(signature.parameters)
    return UsageError(f"{signature.name}() takes {count} arguments ({names}), and got {len(args)}")


def _note(where: str, arrays: Iterable[DeviceArray]) -> None:
    for array in arrays:
        if array.gone == where:
            array._note()


def _scalar(index: int, parameter: Parameter, space: dict[str, Any]) -> list[str]:
    dtype, given = parameter.dtype, f"p{index}"
    # Which of Python's numbers fits, from where to where; what does not is looked at more closely.
    if parameter.record is None and dtype is not None and dtype.kind in "iu":
        limits: Any = np.iinfo(dtype)
        plain = f"type({given}) is int and {int(limits.min)} <= {given} <= {int(limits.max)}"
    elif parameter.record is None and dtype is not None and dtype.kind == "f":
        limits = np.finfo(dtype)
        plain = (
            f"type({given}) is float and {float(limits.min)!r} <= {given} <= {float(limits.max)!r}"
        )
    else:
        plain = "False"
    return [f"if not ({plain}): {given} = accept{index}({given})"]


def _array(index: int, parameter: Parameter, space: dict[str, Any]) -> list[str]:
    space[f"dtype{index}"] = parameter.dtype
    given, array = f"p{index}", f"x{index}"
    wrong = [
        f"{array}._gone is not None",
        f"{array}._owner is not None and {array}._owner._gone is not None",
    ]
    if parameter.dtype is not None:
        wrong.append(f"{array}.dtype is not dtype{index}")
    if not parameter.const:
        wrong.append(f"{array}.mode == 'shared'")
    return [
        f"if type({given}) is DeviceArray: {array} = {given}",
        f"elif type({given}) is Partition:",
        f"    {array} = {given}.array",
        f"    if part is None: part = {given}",
        f"    elif {given} is not part and (grid is None or block is None) and part.grid != {given}.grid:",
        f"        differ(part, {given})",
        f"else: {given} = {array} = accept{index}({given})",
        f"if {' or '.join(wrong)}: accept{index}({given})",
    ]
