"""From the signature of a kernel to the function that makes its launches.

What a call has to be checked for is known as soon as the signature is. So the checks are written out once, as
the source of a Python function, and compiled: types, dtypes, shapes and moved handles are compared in place,
and whatever is not plainly right goes to the functions of `arguments` and `configuration`, which convert it
or complain. A general loop over parameters took three times as long (benchmarks/host_path.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from asyncgpu_tutor.arrays.handles import DeviceArray, Partition, noted_moves
from asyncgpu_tutor.cuda_c import Parameter, Signature
from asyncgpu_tutor.devices.protocol import USUAL_LIMITS
from asyncgpu_tutor.kernels.accepted_arguments import Acceptor, shape_check
from asyncgpu_tutor.kernels.configuration import check_limits, configuration, differ

MOST_KNOWN = 1024  # configurations that a kernel remembers to be within the limits


def launcher(
    signature: Signature,
    shapes: Mapping[str, tuple[str, ...]],
    acceptors: Sequence[Acceptor],
    launch: Callable[..., Any],
    kernel: object,
) -> Callable[..., Any]:
    """A function that checks a call, marks its owned arrays as moved, and calls `launch`.

    Parameters
    ----------
    signature : Signature
    shapes : mapping of str to tuple of str
        For array parameters: the scalar parameters that give their shape.
    acceptors : sequence of callable
        For each parameter what looks closely at an argument: see `arguments`.
    launch : callable
        Gets the kernel and the frame; a tuple of grid, block and shared memory; all arguments as they were
        given; the arrays among them; what the shared ones of these are handles to.

    Returns
    -------
    callable
        Called with the frame of the caller, grid, block, shared memory and a sequence of the arguments, which
        are no operations. Nothing is taken where it raises.
    """
    parameters = signature.parameters
    place = {parameter.name: index for index, parameter in enumerate(parameters)}
    arrays = [index for index, parameter in enumerate(parameters) if parameter.pointer]
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
        "within": set[Any](),
        "most": MOST_KNOWN,
    }
    given = _listed("p", range(len(parameters)))
    # `part` is the one partition among the arguments; where there are more, they have to agree.
    lines = [f"[{given}] = args", "part = None", "shared = ()"]
    for index, parameter in enumerate(parameters):
        space[f"accept{index}"] = acceptors[index]
        lines += (_array if parameter.pointer else _scalar)(index, parameter, space)
    for name, symbols in shapes.items():
        index, sizes = place[name], [place[symbol] for symbol in symbols]
        space[f"shape{index}"] = shape_check(signature.name, name, symbols)
        wanted = _listed("p", sizes)
        lines += [f"if x{index}.shape != ({wanted}): shape{index}(x{index}, {wanted})"]
    lines += [
        "if part is not None and grid is None and block is None: grid, block = part.grid, part.block",
        f"elif grid is None or block is None: grid, block = configuration(name, ({given}), grid, block)",
        "asked = grid, block, shared_mem",
        "if asked not in within:",
        "    check_limits(name, grid, block, shared_mem, usual)",
        "    if len(within) < most: within.add(asked)",
    ]
    for index in arrays:
        lines += [f"if x{index}.mode == 'owned': x{index}._gone = where"]
        if parameters[index].const:  # others are never shared
            lines += [
                f"elif x{index}.mode == 'shared':",
                f"    x{index}._buffer.shares += 1",
                f"    shared += (x{index}._buffer,)",
            ]
    taken = _listed("x", arrays)
    lines += [
        f"if moves: note(where, ({taken}))",
        f"return launch(kernel, frame, asked, ({given}), ({taken}), shared)",
    ]
    return _compiled("call", "frame, grid, block, shared_mem, args", lines, space)


def gatherer(signature: Signature) -> Callable[..., tuple[Any, ...]]:
    """A function from a launch's arguments, its arrays and a context to the arguments for a device.

    These have memory in place of arrays, which are checked against the device and remembered to be in use.
    """
    parameters = signature.parameters
    arrays = [index for index, parameter in enumerate(parameters) if parameter.pointer]
    given = "".join(f"{'_' if p.pointer else f'p{i}'}, " for i, p in enumerate(parameters))
    passed = "".join(
        f"{f'b{i}.memory' if p.pointer else f'p{i}._on(context.device)' if p.texture else f'p{i}'}, "
        for i, p in enumerate(parameters)
    )
    lines: list[str] = []
    if given:
        lines += [f"{given} = args"]
    if arrays:
        lines += [f"{_listed('x', arrays)} = arrays", "device = context.device"]
    for index in arrays:
        x, b = f"x{index}", f"b{index}"
        loan = f"{x}._owner is not None and (context._run.outlives or {x}._owner._gone is not None)"
        lines += [
            f"{b} = {x}._buffer",
            f"if {b}.device is not device or {loan}: context._touch({x}, True)",
        ]
    if arrays:
        remembered = " = ".join(f"b{index}.stream" for index in arrays)
        lines += ["stream = context._user", f"if stream is not None: {remembered} = stream"]
    return _compiled("gather", "args, arrays, context", [*lines, f"return ({passed})"], {})


def _compiled(
    name: str, parameters: str, lines: list[str], space: dict[str, Any]
) -> Callable[..., Any]:
    exec("\n    ".join([f"def {name}({parameters}):", *lines]), space)
    made: Callable[..., Any] = space[name]
    return made


def _listed(letter: str, places: Iterable[int]) -> str:
    return "".join(f"{letter}{index}, " for index in places)


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
        f"    elif part.grid != {given}.grid and (grid is None or block is None): differ(part, {given})",
        f"else: {given} = {array} = accept{index}({given})",
        f"if {' or '.join(wrong)}: accept{index}({given})",
    ]
