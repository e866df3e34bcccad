"""From the signature of a kernel to the function that makes its launches.

What a call has to be checked for is known as soon as the signature is. So the checks are written out once, as
the source of a Python function, and compiled: types, dtypes, shapes and moved handles are compared in place,
and whatever is not plainly right goes to the functions of `arguments` and `configuration`, which convert it
or complain. A general loop over parameters took three times as long (benchmarks/host_path.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from asyncgpu_tutor.arrays.handles import DeviceArray, Partition, Share, noted_moves
from asyncgpu_tutor.cuda_c import Parameter, Signature
from asyncgpu_tutor.devices.protocol import USUAL_LIMITS
from asyncgpu_tutor.kernels.arguments import Acceptor, shape_check
from asyncgpu_tutor.kernels.configuration import check_limits, configuration, differ

__all__ = ["launcher"]

MOST_KNOWN = 1024  # configurations that a kernel remembers to be within the limits


def launcher(
    signature: Signature,
    shapes: Mapping[str, tuple[str, ...]],
    acceptors: Sequence[Acceptor],
    launch: Callable[..., Any],
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
        Gets a tuple of grid, block and shared memory; all arguments; the arrays among them, and those as they
        were given; what counts the shared ones.

    Returns
    -------
    callable
        Called with grid, block, shared memory and the arguments, which are no operations. Nothing is taken
        where it raises.
    """
    parameters = signature.parameters
    place = {parameter.name: index for index, parameter in enumerate(parameters)}
    arrays = [index for index, parameter in enumerate(parameters) if parameter.pointer]
    space: dict[str, Any] = {
        "DeviceArray": DeviceArray,
        "Share": Share,
        "moves": noted_moves,
        "Partition": Partition,
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
    given = [f"p{index}" for index in range(len(parameters))]
    # `part` is the one partition among the arguments; where there are more, they have to agree.
    lines = [f"def call({', '.join(['grid', 'block', 'shared_mem', *given])}):", "part = None"]
    for index, parameter in enumerate(parameters):
        space[f"accept{index}"] = acceptors[index]
        lines += (_array if parameter.pointer else _scalar)(index, parameter, space)
    for name, symbols in shapes.items():
        index, sizes = place[name], [place[symbol] for symbol in symbols]
        space[f"shape{index}"] = shape_check(signature.name, name, symbols)
        wanted = "".join(f"p{size}, " for size in sizes)
        lines += [f"if x{index}.shape != ({wanted}): shape{index}(x{index}, {wanted})"]
    parts = "".join(f"p{index}, " for index in arrays)
    lines += [
        "if part is not None and grid is None and block is None: grid, block = part.grid, part.block",
        f"elif grid is None or block is None: grid, block = configuration(name, ({parts}), grid, block)",
        "asked = grid, block, shared_mem",
        "if asked not in within:",
        "    check_limits(name, grid, block, shared_mem, usual)",
        "    if len(within) < most: within.add(asked)",
    ]
    shares: list[str] = []
    for index in arrays:
        if parameters[index].const:  # others are never shared
            shares.append(f"Share(x{index}._buffer) if x{index}.mode == 'shared' else None")
        lines += [
            f"if x{index}.mode == 'owned':",
            f"    x{index}._gone = where",
            f"    if moves: x{index}._note()",
        ]
    values = "".join(f"p{index}, " for index in range(len(parameters)))
    taken, yielded = ("".join(f"{letter}{i}, " for i in arrays) for letter in "xp")
    tail = "".join(f"{share}, " for share in shares)
    lines += [f"return launch(asked, ({values}), ({taken}), ({yielded}), ({tail}))"]
    exec("\n    ".join(lines), space)
    made: Callable[..., Any] = space["call"]
    return made


def _scalar(index: int, parameter: Parameter, space: dict[str, Any]) -> list[str]:
    plain, lowest, highest = _plainly(parameter.dtype)
    space[f"low{index}"], space[f"high{index}"] = lowest, highest
    given = f"p{index}"
    right = f"type({given}) is {plain} and low{index} <= {given} <= high{index}"
    return [f"if not ({right}): {given} = accept{index}({given})"]


def _plainly(dtype: np.dtype[Any] | None) -> tuple[str, Any, Any]:
    """Which of Python's numbers fits, from where to where; what does not is looked at more closely."""
    if dtype is not None and dtype.kind in "iu":
        return "int", int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    if dtype is not None and dtype.kind == "f":
        return "float", float(np.finfo(dtype).min), float(np.finfo(dtype).max)
    return "float", 1.0, 0.0  # none


def _array(index: int, parameter: Parameter, space: dict[str, Any]) -> list[str]:
    space[f"dtype{index}"] = parameter.dtype
    given, array = f"p{index}", f"x{index}"
    wrong = [f"{array}._gone is not None", f"{array}._owner is not None"]
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
