"""The checks of a kernel call: what they are follows from the signature, once. And its grid and block.

Most arguments are plainly right, which a look at their types tells. One that is not goes to the functions of
`accepted_arguments`, which convert it or complain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import index, itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncgpu_tutor.arrays.handles import DeviceArray, Partition
from asyncgpu_tutor.devices.cuda_source import Parameter, Signature
from asyncgpu_tutor.devices.protocol import USUAL_LIMITS, Dim3, Limits, Share
from asyncgpu_tutor.errors import ArrayShapeError, LaunchConfigError, UsageError
from asyncgpu_tutor.kernels.accepted_arguments import Acceptor

if TYPE_CHECKING:
    from asyncgpu_tutor.kernels.kernel import Launch

Size = int | tuple[int, ...] | None  # a grid or a block as it is given, if it is
Shapes = Mapping[str, tuple[str, ...]]  # of arrays, by the names of scalars


class CallChecks:
    """Checks of the calls of one kernel: `acceptors` look closely at an argument, one for each parameter."""

    def __init__(self, signature: Signature, shapes: Shapes, acceptors: Sequence[Acceptor]) -> None:
        self._signature, self._shapes = signature, shapes
        self._where = f"into {signature.name}()"
        rows = list(enumerate(zip(signature.parameters, acceptors, strict=True)))
        # Each number has a row: its place, the type of Python's numbers that fit, their limits, its acceptor.
        self._numbers = [(i, *_fitting(p), look) for i, (p, look) in rows if not p.pointer]
        self._pick = _picker([row[0] for row in self._numbers])
        self._kinds = [row[1] for row in self._numbers]
        places = {parameter.name: index for index, (parameter, _) in rows}
        # Each array has one: its place, its dtype, whether it is written, its acceptor; and what picks its
        # shape from the arguments, if they have it.
        self._arrays: list[tuple[Any, ...]] = []
        for i, (p, look) in rows:
            if p.pointer:
                names = shapes.get(p.name)
                sizes = None if names is None else _picker([places[size] for size in names])
                self._arrays.append((i, p.dtype, not p.const, look, sizes))
        # In a loop much stays the same. The numbers that were found to be right last, and the rows of the
        # arrays with the shapes that follow from them; grid, block and shared memory that were allowed.
        self._seen: tuple[Any, list[tuple[Any, ...]]] = (None, [])
        self._allowed: tuple[Any, Any] = (None, None)

    def fill(
        self, launch: Launch, args: tuple[Any, ...], grid: Size, block: Size, shared_mem: int
    ) -> None:
        """Fill in the launch of a call that is right, which moves its owned arrays; none where it raises."""
        if len(args) != len(self._signature.parameters):
            raise UsageError(self._signature.miscounted(args))
        numbers = self._pick(args)
        seen, rows = self._seen
        if [*map(type, numbers)] != self._kinds or numbers != seen:
            args, rows = self._look_at_numbers(args)
        passed = [*args]
        part, agree = None, True  # the first partition, and whether others are split as it is
        arrays: list[DeviceArray] = []
        owned = False  # whether there are any
        shares: tuple[Share | None, ...] = ()
        for place, dtype, writes, look, shape in rows:
            array = args[place]
            if type(array) is Partition:
                if part is None:
                    part = array
                elif part._how != array._how:
                    agree = False
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
            if shape is not None and array.shape != shape:
                self._look_at_shape(array, place, shape)
            if mode == "owned":
                owned = True
            elif mode == "shared":
                shares += (array._share,)
            arrays.append(array)
            passed[place] = array._memory
        if part is not None and agree and grid is None and block is None:
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
        for array in arrays if owned else ():
            if array.mode == "owned":
                array._move(self._where)

    def _look_at_numbers(self, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[Any]]:
        """Return the arguments with their numbers as they are passed on, and the rows of the arrays."""
        given = args
        for place, kind, lowest, highest, look in self._numbers:
            number = args[place]
            if type(number) is not kind or not lowest <= number <= highest:
                args = (*args[:place], look(number), *args[place + 1 :])
        rows = [(*row, None if sizes is None else sizes(args)) for *row, sizes in self._arrays]
        if args is given:  # none was converted
            self._seen = self._pick(args), rows
        return args, rows

    def _look_at_shape(self, array: DeviceArray, place: int, sizes: Sequence[Any]) -> None:
        """`ArrayShapeError` if this is not its shape; one size fits any array of that many elements."""
        shape = tuple(int(size) for size in sizes)
        if array.shape != shape and (len(shape) != 1 or array.size != shape[0]):
            name = self._signature.parameters[place].name
            said = dict(zip(self._shapes[name], shape, strict=True))
            told = ", ".join(f"{symbol}={size}" for symbol, size in said.items())
            raise ArrayShapeError(
                f"{self._signature.name}() was called with {told}, so {name!r} must have shape {shape}, and "
                f"array {array.name!r} has {array.shape}"
            )


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


# ------------------------------------------------------------------ grid and block
def as_dim3(what: str, given: int | tuple[int, ...]) -> Dim3:
    """One to three integers as (x, y, z); `LaunchConfigError` if they are none."""
    entries: tuple[Any, ...] = tuple(given) if isinstance(given, tuple | list) else (given,)
    try:
        numbers = [*map(index, entries)]
    except TypeError:
        numbers = []
    if not 1 <= len(numbers) <= 3:
        raise LaunchConfigError(f"{what} is one to three integers, (x, y, z), not {given!r}")
    x, y, z = (*numbers, 1, 1)[:3]
    return (x, y, z)


def configuration(name: str, args: Sequence[Any], grid: Size, block: Size) -> tuple[Dim3, Dim3]:
    """Grid and block, as given or from a partition; `LaunchConfigError` if they cannot be known."""
    if grid is None or block is None:
        found = [arg._how for arg in args if type(arg) is Partition]
        if not found:
            raise LaunchConfigError(
                f"{name}() does not know how many threads to start: partition the output, as in "
                f"{name}(..., out.partition(256)), or pass both grid= and block="
            )
        grids, blocks = zip(*found, strict=True)
        grid = _agreed(name, "numbers", grids) if grid is None else grid
        block = _agreed(name, "sizes", blocks) if block is None else block
    return as_dim3("grid", grid), as_dim3("block", block)


def _agreed(name: str, what: str, asked: Sequence[Dim3]) -> Dim3:
    """What all partitions ask for; `LaunchConfigError` if they don't agree."""
    if len(set(asked)) > 1:
        raise LaunchConfigError(
            f"{name}() got partitions with different {what} of blocks "
            f"({', '.join(map(str, dict.fromkeys(asked)))}): make them agree, or pass grid= and block="
        )
    return asked[0]


def check_limits(name: str, grid: Dim3, block: Dim3, shared_mem: int, limits: Limits) -> None:
    """Hold a launch against what a device can do; `LaunchConfigError`."""
    x, y, z = block
    threads = x * y * z
    if threads > limits.threads_per_block:
        raise LaunchConfigError(
            f"{name}() asks for {threads} threads in a block {block}, and a block has at most "
            f"{limits.threads_per_block}: make the partition's blocks smaller, or pass block="
        )
    _check_dim3(name, "grid", grid, limits.grid)
    _check_dim3(name, "block", block, limits.block)
    if type(shared_mem) is not int and not isinstance(shared_mem, np.integer):
        raise LaunchConfigError(
            f"{name}() takes a whole number of bytes as shared_mem, not {shared_mem!r}"
        )
    if not 0 <= shared_mem <= limits.shared_bytes:
        raise LaunchConfigError(
            f"{name}() asks for {shared_mem} bytes of shared memory in a block, and "
            f"{limits.shared_bytes} is the limit"
        )


def _check_dim3(name: str, what: str, asked: Dim3, most: Dim3) -> None:
    # On the path of every launch, so without a loop.
    x, y, z = asked
    if x < 1 or y < 1 or z < 1:
        raise LaunchConfigError(
            f"{name}() asks for the {what} {asked}: every entry must be at least 1 (is an array empty?)"
        )
    if x > most[0] or y > most[1] or z > most[2]:
        raise LaunchConfigError(f"{name}() asks for the {what} {asked}, and {most} is the limit")
