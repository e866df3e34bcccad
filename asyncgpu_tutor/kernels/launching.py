"""The checks of a kernel call: what they are follows from the signature, once.

Each parameter has a row that says at a glance whether an argument is plainly right. An argument that is not
goes to the functions of `accepted_arguments`, which convert it or complain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from asyncgpu_tutor.arrays.handles import DeviceArray, Partition, noted_moves
from asyncgpu_tutor.devices.cuda_source import Parameter, Signature
from asyncgpu_tutor.devices.protocol import USUAL_LIMITS, Dim3
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.kernels.accepted_arguments import Acceptor, shape_check
from asyncgpu_tutor.kernels.configuration import check_limits, configuration, differ


class Checked(NamedTuple):
    """A call whose arguments are right, and whose owned arrays are taken."""

    how: tuple[Dim3, Dim3]  # grid and block
    shared_mem: int
    args: tuple[Any, ...]  # for a device: numbers, and memory instead of arrays
    given: tuple[DeviceArray | Partition, ...]  # the arrays, in the form in which they were given
    arrays: tuple[DeviceArray, ...]  # their handles


class _Row:
    """One parameter. Numbers of Python's type `kind` between `lowest` and `highest` are right as they are."""

    __slots__ = ("accept", "dtype", "highest", "kind", "lowest", "pointer", "writes")

    def __init__(self, parameter: Parameter, accept: Acceptor) -> None:
        self.pointer, self.dtype, self.writes = (
            parameter.pointer,
            parameter.dtype,
            not parameter.const,
        )
        self.accept = accept
        self.kind: type | None = None
        self.lowest = self.highest = 0.0
        letter = "" if parameter.dtype is None or parameter.record else parameter.dtype.kind
        if letter and letter in "iu":
            whole = np.iinfo(parameter.dtype)  # pyright: ignore[reportArgumentType] - the letter says so
            self.kind, self.lowest, self.highest = int, int(whole.min), int(whole.max)
        elif letter == "f":
            real = np.finfo(parameter.dtype)  # pyright: ignore[reportArgumentType, reportCallIssue] - as above
            self.kind, self.lowest, self.highest = float, float(real.min), float(real.max)


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
        self._rows = [_Row(*row) for row in zip(signature.parameters, acceptors, strict=True)]
        place = {parameter.name: index for index, parameter in enumerate(signature.parameters)}
        self._shapes: list[tuple[int, list[int], Callable[..., None]]] = [
            (
                place[name],
                [place[symbol] for symbol in symbols],
                shape_check(signature.name, name, symbols),
            )
            for name, symbols in shapes.items()
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
        name, rows = self._signature.name, self._rows
        if len(args) != len(rows):
            raise UsageError(self._signature.miscounted(args))
        part: Partition | None = None  # the first one; where there are more, they have to agree
        given: list[Any] = []
        values: list[Any] = []
        for row, arg in zip(rows, args, strict=True):
            if not row.pointer:
                plain = type(arg) is row.kind and row.lowest <= arg <= row.highest
                values.append(arg if plain else row.accept(arg))
                continue
            form: DeviceArray | Partition = arg
            if type(arg) is Partition:
                array = arg.array
                if part is None:
                    part = arg
                elif (grid is None or block is None) and part.grid != arg.grid:
                    differ(name, part, arg)
            elif type(arg) is DeviceArray:
                array = arg
            else:
                form = array = row.accept(arg)  # of another library, or refused
            owner = array._owner
            if (
                array._gone is not None
                or (owner is not None and owner._gone is not None)
                or (row.dtype is not None and array.dtype is not row.dtype)
                or (row.writes and array.mode == "shared")
            ):
                row.accept(form)  # says what is wrong
            given.append(form)
            values.append(array)
        for place, sizes, complain in self._shapes:
            shape = tuple([values[size] for size in sizes])
            if values[place].shape != shape:
                complain(values[place], *shape)
        if part is not None and grid is None and block is None:
            how = part._how
        else:
            how = configuration(name, args, grid, block)
        if how != self._allowed[0] or shared_mem is not self._allowed[1]:
            check_limits(name, *how, shared_mem, USUAL_LIMITS)
            self._allowed = (how, shared_mem)
        where = f"into {name}()"
        arrays: list[DeviceArray] = []
        passed: list[Any] = []
        for row, value in zip(rows, values, strict=True):
            if row.pointer:
                arrays.append(value)
                passed.append(value._memory)
                if value.mode == "owned":
                    value._gone = where
            else:
                passed.append(value)
        if noted_moves:
            for array in arrays:
                if array.gone == where:
                    array._note()
        # A narrow NumPy integer would overflow in sums.
        return Checked(how, int(shared_mem), tuple(passed), tuple(given), tuple(arrays))
