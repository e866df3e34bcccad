"""The checks of a kernel call: what they are follows from the signature, once.

Most arguments are plainly right, which a look at their types tells. One that is not goes to the functions of
`accepted_arguments`, which convert it or complain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Protocol

import numpy as np

from asyncgpu_tutor.arrays.handles import DeviceArray, Partition, noted_moves
from asyncgpu_tutor.devices.cuda_source import Parameter, Signature
from asyncgpu_tutor.devices.protocol import USUAL_LIMITS, Dim3, Share
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.kernels.accepted_arguments import Acceptor, shape_check
from asyncgpu_tutor.kernels.configuration import check_limits, configuration, same_grid


class Checked(Protocol):
    """A launch whose arguments are right."""

    _how: tuple[Dim3, Dim3]  # grid and block
    _shared_mem: int
    _given: Sequence[Any]  # the arguments, as they were given
    _args: Sequence[Any]  # those for a device: numbers, and memory in place of arrays
    _arrays: Sequence[DeviceArray]  # the handles of the arrays among them
    _shares: Sequence[Share | None]  # by which it counts as one more shared handle while it lives


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
        # Each number has a row: its place, the type of Python's numbers that fit, their limits, its acceptor.
        self._numbers = [(i, *_fitting(p), look) for i, (p, look) in rows if not p.pointer]
        places = {parameter.name: index for index, (parameter, _) in rows}
        # Each array has one: its place, its dtype, whether it is written, its acceptor; and what picks its
        # shape from the arguments, if they have it, and complains of another.
        self._arrays: list[tuple[Any, ...]] = []
        for i, (p, look) in rows:
            if p.pointer:
                names = shapes.get(p.name)
                sizes = None if names is None else _picker([places[size] for size in names])
                complain = shape_check(signature.name, p.name, names or ())
                self._arrays.append((i, p.dtype, not p.const, look, sizes, complain))
        # Grid, block and shared memory that were found to be allowed last: in a loop they stay the same.
        self._allowed: tuple[Any, Any] = (None, None)

    def check(
        self,
        launch: Checked,
        args: tuple[Any, ...],
        grid: int | tuple[int, ...] | None,
        block: int | tuple[int, ...] | None,
        shared_mem: int,
    ) -> None:
        """Check a call, fill in its launch, and mark its owned arrays as moved.

        Nothing is taken where it raises.
        """
        if len(args) != len(self._signature.parameters):
            raise UsageError(self._signature.miscounted(args))
        for place, kind, lowest, highest, look in self._numbers:
            number = args[place]
            if type(number) is not kind or not lowest <= number <= highest:
                args = (*args[:place], look(number), *args[place + 1 :])
        passed = list(args)
        part: Partition | None = None  # the first one; where there are more, they have to agree
        arrays: list[DeviceArray] = []
        owned: list[DeviceArray] = []
        shares: list[Share | None] = []
        for place, dtype, writes, look, sizes, complain in self._arrays:
            array = args[place]
            if type(array) is Partition:
                if part is None:
                    part = array
                elif part is not array and (grid is None or block is None):
                    same_grid(self._signature.name, part, array)
                array = array.array
            elif type(array) is not DeviceArray:
                array = look(array)  # an array of another library; anything else is refused
                args = (*args[:place], array, *args[place + 1 :])
            mode, owner = array.mode, array._owner
            if (
                array._gone is not None
                or array.dtype is not dtype
                or (owner is not None and owner._gone is not None)
                or (writes and mode == "shared")
            ):
                look(array)  # says what is wrong, if anything
            if sizes is not None and array.shape != sizes(args):
                complain(array, *sizes(args))
            if mode == "owned":
                owned.append(array)
            elif mode == "shared":
                shares.append(array._share)
            arrays.append(array)
            passed[place] = array._memory
        if part is not None and grid is None and block is None:
            how = part._how
        else:
            how = configuration(self._signature.name, args, grid, block)
        if how != self._allowed[0] or shared_mem is not self._allowed[1]:
            check_limits(self._signature.name, *how, shared_mem, USUAL_LIMITS)
            shared_mem = int(shared_mem)  # a narrow NumPy integer would overflow in sums
            self._allowed = (how, shared_mem)
        launch._how, launch._shared_mem = how, shared_mem
        launch._given, launch._args = args, passed
        launch._arrays, launch._shares = arrays, shares
        for array in owned:
            array._gone = self._where
        if noted_moves:
            for array in owned:
                array._note()


def _picker(places: Sequence[int]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Return a function that picks the arguments in these places."""
    if len(places) > 1:
        return itemgetter(*places)
    # One alone would not be a tuple; a slice is one.
    return itemgetter(slice(places[0], places[0] + 1) if places else slice(0))


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
