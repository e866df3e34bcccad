"""The checks of a kernel call: what they are follows from the signature, once.

Most arguments are plainly right, which a look at their types tells. One that is not goes to the functions of
`accepted_arguments`, which convert it or complain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from asyncgpu_tutor.arrays.handles import DeviceArray, Partition, noted_moves
from asyncgpu_tutor.devices.cuda_source import Parameter, Signature
from asyncgpu_tutor.devices.protocol import USUAL_LIMITS, Dim3
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.kernels.accepted_arguments import Acceptor, shape_check
from asyncgpu_tutor.kernels.configuration import check_limits, configuration, differ

# A call whose arguments are right: grid and block; shared memory; the arguments for a device, with memory
# instead of arrays; the arrays in the form in which they were given; and their handles.
Checked = tuple[
    tuple[Dim3, Dim3],
    int,
    tuple[Any, ...],
    tuple[DeviceArray | Partition, ...],
    tuple[DeviceArray, ...],
]


class CallChecks:
    """Checks of the calls of one kernel.

    Parameters
    ----------
    signature : Signature
    shapes : mapping of str to tuple of str
        For array parameters, the scalar parameters that give their shape.
    acceptors : sequence of callable
        For each parameter, what looks closely at an argument; see `accepted_arguments`.
    """

    def __init__(
        self,
        signature: Signature,
        shapes: Mapping[str, tuple[str, ...]],
        acceptors: Sequence[Acceptor],
    ) -> None:
        self._signature = signature
        self._where = f"into {signature.name}()"
        rows = list(enumerate(zip(signature.parameters, acceptors, strict=True)))
        # Each array has a row: its place, its dtype, whether it is written, and its acceptor.
        self._arrays = [(i, p.dtype, not p.const, look) for i, (p, look) in rows if p.pointer]
        # Each number has one: its place, the type of Python's numbers that fit, their limits, its acceptor.
        self._numbers = [(i, *_fitting(p), look) for i, (p, look) in rows if not p.pointer]
        places = {parameter.name: index for index, (parameter, _) in rows}
        order = [place for place, *_ in self._arrays]
        # Each shape has one: the array that has it, a function that picks its sizes, and one that complains.
        self._shapes = [
            (
                order.index(places[name]),
                _picker([places[size] for size in sizes]),
                shape_check(signature.name, name, sizes),
            )
            for name, sizes in shapes.items()
        ]
        # Grid, block and shared memory that were found to be allowed last: in a loop they stay the same.
        self._allowed: tuple[Any, Any] = (None, None)

    def check(
        self,
        args: Sequence[Any],
        grid: int | tuple[int, ...] | None,
        block: int | tuple[int, ...] | None,
        shared_mem: int,
    ) -> Checked:
        """Check a call, and mark its owned arrays as moved. Nothing is taken where it raises."""
        passed = list(args)
        if len(passed) != len(self._signature.parameters):
            raise UsageError(self._signature.miscounted(args))
        part: Partition | None = None  # the first one; where there are more, they have to agree
        given: list[DeviceArray | Partition] = []
        arrays: list[DeviceArray] = []
        for place, dtype, writes, look in self._arrays:
            form = array = passed[place]
            if type(form) is Partition:
                array = form.array
                if part is None:
                    part = form
                elif (grid is None or block is None) and part.grid != form.grid:
                    differ(self._signature.name, part, form)
            elif type(form) is not DeviceArray:
                form = array = look(form)  # an array of another library; anything else is refused
            if (
                array._gone is not None
                or array._owner is not None
                or array.dtype is not dtype
                or (writes and array.mode == "shared")
            ):
                look(form)  # says what is wrong, if anything
            given.append(form)
            arrays.append(array)
            passed[place] = array._memory
        for place, kind, lowest, highest, look in self._numbers:
            number = passed[place]
            if type(number) is not kind or not lowest <= number <= highest:
                passed[place] = look(number)
        for which, sizes, complain in self._shapes:
            if arrays[which].shape != sizes(passed):
                complain(arrays[which], *sizes(passed))
        if part is not None and grid is None and block is None:
            how = part._how
        else:
            how = configuration(self._signature.name, args, grid, block)
        if how != self._allowed[0] or shared_mem is not self._allowed[1]:
            check_limits(self._signature.name, *how, shared_mem, USUAL_LIMITS)
            self._allowed = (how, shared_mem)
        where = self._where
        for array in arrays:
            if array.mode == "owned":
                array._gone = where
        if noted_moves:
            for array in arrays:
                if array.gone == where:
                    array._note()
        return how, int(shared_mem), tuple(passed), tuple(given), tuple(arrays)


def _picker(picked: Sequence[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Return a function that picks the arguments in these places."""
    if len(picked) > 1:
        return itemgetter(*picked)
    if not picked:
        return lambda args: ()
    (place,) = picked
    return lambda args: (args[place],)


def _fitting(parameter: Parameter) -> tuple[type | None, float, float]:
    """Return the type of Python's numbers that fit a parameter as they are, and their limits."""
    dtype = parameter.dtype
    letter = "" if dtype is None or parameter.record is not None else dtype.kind
    if dtype is not None and letter in {"i", "u"}:
        whole = np.iinfo(dtype)
        return int, int(whole.min), int(whole.max)
    if dtype is not None and letter == "f":
        real = np.finfo(dtype)
        return float, float(real.min), float(real.max)
    return None, 0, 0
