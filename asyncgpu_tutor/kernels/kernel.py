"""`Kernel`: calling one gives an operation."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from os import PathLike
from types import FrameType
from typing import Any, ClassVar, cast
from weakref import ref

import numpy as np

from asyncgpu_tutor.arrays.handles import DeviceArray, Partition, borrowed_in, handle
from asyncgpu_tutor.devices.cuda_source import Signature, is_sized, read_signature
from asyncgpu_tutor.devices.protocol import USUAL_LIMITS, Device, Dim3, KernelFunction, Share
from asyncgpu_tutor.errors import UsageError, demand
from asyncgpu_tutor.kernels import accepted_arguments
from asyncgpu_tutor.kernels.constants import Constants
from asyncgpu_tutor.kernels.files import include_headers, only_kernel
from asyncgpu_tutor.kernels.launching import CallChecks, as_dim3, check_limits
from asyncgpu_tutor.ops.operation import DeviceOp, evaluate
from asyncgpu_tutor.ops.pinned import is_foreign
from asyncgpu_tutor.run.context import ExecutionContext
from asyncgpu_tutor.run.current import current_device

# A parameter of which nothing is known but that an address fits.
_POINTER_SIZED = np.dtype("V8")


@dataclass(frozen=True, eq=False)
class KernelSource:
    """CUDA C source and facts: see the parameters of `Kernel`."""

    name: str
    source: str
    shapes: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    reference: Callable[..., tuple[Any, ...]] | None = None
    contract: bool = False


class Kernel:
    """CUDA C source, and what the host knows of it.

    Parameters
    ----------
    source : str, path or KernelSource
        CUDA C, or the name of a ``.cu`` file. Pointers to const are inputs, other pointers outputs. A whole
        published file will do: its host code is set aside, and C's names are there without their headers.
    name : str, optional
        Which `__global__` function; needed where there are several. An instance of a template as C++
        writes it: ``"scale<float, 16>"``.
    include : sequence of path
        Where else to look for headers, as with ``nvcc -I``. Those of this package are found in any case:
        ``#include "hostcall.cuh"``.
    shapes : mapping of str to tuple of str, optional
        For array parameters: the scalar parameters that give their shape, as in ``{"a": ("m", "k")}``. Calls
        are then checked. A shape of one size fits any array of that many elements.
    reference : callable, optional
        The same in NumPy: from all arguments, arrays flat and read-only, to the arrays that the kernel
        writes, in order and whole. The simulated device computes launches of more than about two seconds
        of interpreting by it, after it has checked it on some of the blocks.
    contract : bool
        Whether a product and a sum may become one fused multiply-add, rounded once, as `nvcc` does unless
        told otherwise. Off, arithmetic is that of the source: the same bits as NumPy's. On, a chain of
        dependent multiply-adds takes about half the time; kernels that wait for memory take the same.

    Raises
    ------
    KernelCompileError
        If the current device's compiler does not accept it; with line and column.

    Examples
    --------
    >>> import asyncgpu_tutor as agt
    >>> double = agt.Kernel('''
    ... extern "C" __global__ void twice(unsigned int n, const float* x, float* y) {
    ...     unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    ...     if (i < n) y[i] = 2.0f * x[i];
    ... }''')
    >>> op = double(100, agt.ones((100,)), agt.zeros((100,)).partition(32))
    >>> op.output().to_host().sync()[:3]
    array([2., 2., 2.], dtype=float32)
    """

    unbuilt: ClassVar = set[str]()  # names whose last source was refused: old ones may be about

    def __init__(
        self,
        source: str | PathLike[str] | KernelSource,
        name: str | None = None,
        *,
        include: Sequence[str | PathLike[str]] = (),
        shapes: Mapping[str, tuple[str, ...]] | None = None,
        reference: Callable[..., Any] | None = None,
        contract: bool = False,
    ) -> None:
        if isinstance(source, str | PathLike):
            source = include_headers(source, include)
        texts: tuple[object, ...] = (source, name or "")
        if isinstance(source, KernelSource):
            texts = source.source, source.name
        for given in texts:
            if not isinstance(given, str):
                what = f"CUDA C in a string, and a kernel's name, and got {type(given).__name__}"
                raise UsageError(f"a Kernel is made of {what}")
        if isinstance(source, KernelSource):
            if name or shapes or reference or contract:
                raise UsageError(
                    f"the KernelSource {source.name!r} has its own name, shapes and reference: change a "
                    "copy, as in dataclasses.replace(source, contract=True)"
                )
            self._facts = source
        else:
            demand(
                shapes or {}, Mapping, "shapes of a Kernel are names by names, as in {'x': ('n',)}"
            )
            demand(contract, int, "contract is True or False")
            if reference is not None and not callable(reference):
                raise UsageError(
                    f"the reference of a Kernel is a function, and got {reference!r:.99}"
                )
            self._facts = KernelSource(
                name or only_kernel(source), source, dict(shapes or {}), reference, contract
            )
        facts = self._facts
        self.unbuilt.add(facts.name)
        # Only a device can say what a kernel takes: a GPU's compiler reads more of C++ than we do.
        read = current_device().signature if isinstance(source, str) else read_signature
        signature = read(facts.source, facts.name)
        _check_shapes(facts, signature)
        self._take_on(signature)
        # The kernel for other arguments: by the places of null pointers, or of arrays.
        self._variants: dict[tuple[str, tuple[int, ...]], Kernel] = {}
        # Where it is loaded, and the function there: one value, as threads may use two devices.
        self._loaded: tuple[Callable[[], Device | None], Any] = (_nowhere, None)
        # What makes it another than its source says: see `_variant`.
        self._differs: tuple[Any, ...] = ()
        if isinstance(source, str):
            current_device().get_function(source, facts.name, reference, contract)
        self.unbuilt.discard(facts.name)

    @property
    def name(self) -> str:
        """Its name in the source."""
        return self._facts.name

    @property
    def source(self) -> str:
        """CUDA C."""
        return self._facts.source

    @property
    def constants(self) -> Constants:
        """Its `__constant__` and `__device__` variables, to set and read: ``kernel.constants["c"] = x``."""
        return Constants(self.name, self._signature.variables, self._load)

    def __repr__(self) -> str:
        listed = ", ".join(
            f"{'const ' if p.const and p.pointer else ''}{p.ctype}{'*' if p.pointer else ''} {p.name}"
            for p in self._signature.parameters
        )
        return f"<Kernel {self.name}({listed})>"

    def __call__(
        self,
        *args: Any,
        grid: int | tuple[int, ...] | None = None,
        block: int | tuple[int, ...] | None = None,
        shared_mem: int = 0,
    ) -> Launch:
        """An operation that launches it.

        Parameters
        ----------
        *args
            One for each parameter of the kernel. Arrays: `DeviceArray` (owned, shared or borrowed),
            `Partition`, an operation that yields one of them, or an array of another CUDA library; None is
            the null pointer. Scalars: numbers, or an operation that yields one. Vectors and structs: tuples,
            or NumPy records.
        grid, block : int or tuple of int, optional
            Number of blocks and threads of a block, (x, y, z). Without them a partitioned argument
            gives both; `block` alone replaces the partition's.
        shared_mem : int
            Dynamic shared memory of a block, in bytes, up to what the device has for one: 227 KB on an H200.

        Returns
        -------
        Launch
            Yields the array arguments, in order, in the form in which they were given. Its `output()` yields
            the array that the kernel writes.

        Raises
        ------
        ArrayShapeError, ArrayDTypeError
            If an argument does not fit its parameter.
        LaunchConfigError
            If grid and block are not known, or too large.
        UsageError
            If the number of arguments is wrong, or a shared array would be written.
        """
        frame = sys._getframe(1)
        kernel = self._with_arrays(args) if self._sized else self
        try:
            return _launch(kernel, frame, args, grid, block, shared_mem)
        except accepted_arguments.HasOperationError:
            accepted_arguments.settle(args)
            return kernel._unusual(frame, args, grid, block, shared_mem)
        except UsageError:
            accepted_arguments.settle(args)
            raise

    def _unusual(self, frame: FrameType, args: tuple[Any, ...], *how: Any) -> Launch:
        """A launch with operations or null pointers among its arguments."""
        nulls = tuple([place for place in self._places if args[place] is None])
        kernel = self._variant("null", nulls, pointer=False, dtype=None) if nulls else self
        with suppress(accepted_arguments.HasOperationError):
            return _launch(kernel, frame, args, *how)
        return _defer(kernel, frame, args, *how)

    def _with_arrays(self, args: Sequence[Any]) -> Kernel:
        """The kernel as called with these arguments, where only sizes are known: 8 bytes may be an array."""
        kinds = (DeviceArray, Partition, DeviceOp, type(None))
        given = [isinstance(arg, kinds) or is_foreign(arg) for arg in args]
        both = enumerate(zip(self._signature.parameters, given, strict=False))
        places = tuple([i for i, (p, array) in both if array and p.dtype == _POINTER_SIZED])
        return self._variant("array", places, pointer=True, dtype=None, ctype="void")

    def _variant(self, kind: str, places: tuple[int, ...], **changes: Any) -> Kernel:
        """The kernel with other parameters in these places."""
        key = (kind, places)
        if key not in self._variants:
            parameters = list(self._signature.parameters)
            for place in places:
                parameters[place] = replace(parameters[place], **changes)
            other = object.__new__(Kernel)
            other._facts, other._loaded = self._facts, self._loaded
            other._variants, other._differs = {}, (*self._differs, (key, changes))
            signature = replace(self._signature, parameters=tuple(parameters))
            other._take_on(signature, places if kind == "null" else ())
            other._sized = False
            self._variants[key] = other  # whole: another thread may be waiting to use it
        return self._variants[key]

    def _take_on(self, signature: Signature, nulls: Sequence[int] = ()) -> None:
        """Prepare the checks of a call; `nulls` are pointers that are null."""
        self._signature = signature
        self._sized = any(is_sized(parameter) for parameter in signature.parameters)
        parameters, name = signature.parameters, self._facts.name
        self._places = [i for i, p in enumerate(parameters) if p.pointer]
        written = [n for n, place in enumerate(self._places) if not parameters[place].const]
        self._output = written[0] if len(written) == 1 else None  # which of its arrays that is
        accept = accepted_arguments.scalar_acceptor, accepted_arguments.array_acceptor
        self._acceptors = [accept[p.pointer](name, p) for p in parameters]
        for place in nulls:
            self._acceptors[place] = lambda _: None
        shapes = self._facts.shapes
        if nulls:
            here = {parameters[place].name for place in self._places}
            shapes = {array: sizes for array, sizes in shapes.items() if array in here}
        self._checks = CallChecks(signature, shapes, self._acceptors)

    def _load(self, device: Device) -> KernelFunction:
        """Compiled for this device, which is asked once: it has to find the whole source in its table."""
        facts = self._facts
        function = device.get_function(facts.source, facts.name, facts.reference, facts.contract)
        # Each launch was held against the usual limits when it was built. A device with others is no home, so
        # it is asked each time, and launches are held against its own.
        self._loaded = (ref(device) if device.limits is USUAL_LIMITS else _nowhere, function)
        return function

    def __reduce__(self) -> tuple[Any, ...]:
        # What it is made of travels; each process compiles it for its own devices.
        return _made_again, (self._facts, self._differs)

    def _array_number(self, name: str) -> int:
        """Which of its arrays this parameter is."""
        names = [self._signature.parameters[place].name for place in self._places]
        if name not in names:
            told = ", ".join(names)
            raise UsageError(f"{self.name}() has no array {name!r}: its arrays are {told}")
        return names.index(name)


class Launch(DeviceOp[Any]):
    """One launch of a kernel; yields the kernel's array arguments, in the form in which they were given.

    An array that it takes is not handed on by another handle: the one that was given is marked as moved, and
    what lies behind it is used. A handle is made for what the launch yields, and for nothing else.
    """

    __slots__ = (
        "_args",
        "_arrays",
        "_given",
        "_how",
        "_index",
        "_kernel",
        "_ran",
        "_shared_mem",
        "_shares",
    )

    _how: tuple[Dim3, Dim3]  # grid and block
    _shared_mem: int
    _given: Sequence[Any]  # the arguments, as they were given
    _args: Sequence[Any]  # those for a device: numbers, and memory in place of arrays
    _arrays: Sequence[DeviceArray]  # the handles of the arrays among them
    _shares: Sequence[Share | None]  # by which it counts as one more shared handle while it lives
    _kernel: Kernel
    _index: int | None  # which of the arrays it yields alone
    _ran: bool

    def output(self, name: str | None = None) -> DeviceOp[DeviceArray]:
        """Yield the array that the kernel writes, whole, and nothing else; returns itself.

        Parameters
        ----------
        name : str, optional
            Of the parameter; needed where the kernel writes several arrays.

        Raises
        ------
        UsageError
            If there is no such parameter; if several are written, and no name was given; if the launch is a
            part of another operation already.
        """
        kernel = self._kernel
        index = kernel._output if name is None else kernel._array_number(name)
        if index is None:
            parameters = kernel._signature.parameters
            written = ", ".join(repr(p.name) for p in parameters if p.pointer and not p.const)
            raise UsageError(
                f"{kernel.name}() writes {written or 'no array'}: say which, as in output(name)"
            )
        if self._used or self._index is not None:
            raise UsageError(
                f"output() changes what this launch of {kernel.name}() yields, and something uses that "
                "already: call output() once, before anything else, or build the launch again"
            )
        self._index = index
        return self

    def _borrowed(self) -> Iterator[str]:
        return borrowed_in(self._arrays)

    def _yields(self) -> str:
        arrays = self._arrays if self._index is None else (self._arrays[self._index],)
        told = ", ".join(f"{array.shape} {array.dtype}" for array in arrays[:4])
        return told + (", ..." if len(arrays) > 4 else "")

    def _arity(self) -> int | None:
        return len(self._kernel._places) if self._index is None else None

    def _enqueue(self, context: ExecutionContext) -> Any:
        kernel, arrays, index = self._kernel, self._arrays, self._index
        ran, self._ran = self._ran, True
        if ran:
            accepted_arguments.forbid_rerun(arrays, kernel.name)
        device = context.device
        try:
            if context._run.captures:
                context.on_failed_capture(self._undo)
            grid, block = self._how
            home, function = kernel._loaded
            if home() is not device:
                function = kernel._load(device)
                check_limits(kernel.name, grid, block, self._shared_mem, device.limits)
            context.launch(function, grid, block, self._args, self._shared_mem, self)
        except Exception:
            self._ran = ran  # a run that was refused has given nothing away
            raise
        if index is not None:
            array = arrays[index]
            if array.mode == "borrowed":
                return array
            return handle(array._memory, array.shape, array.dtype, array.mode)
        # One that was given twice is given back twice. A loop, because a comprehension is a call.
        again, back = dict[int, Any](), list[Any]()
        for place in kernel._places:
            one = self._given[place]
            if id(one) not in again:
                again[id(one)] = one._again()
            back.append(again[id(one)])
        return tuple(back)

    def _undo(self) -> None:
        self._ran = False


class _Deferred(Launch):
    """A launch with operations among its arguments: it is checked when those have results."""

    __slots__ = ()

    def _yields(self) -> str:
        return ""  # shapes are not known before its operations run

    def _parts(self) -> tuple[DeviceOp[Any], ...]:
        parts: list[DeviceOp[Any]] = [arg for arg in self._args if isinstance(arg, DeviceOp)]
        return tuple(parts)

    def _enqueue(self, context: ExecutionContext) -> Any:
        kernel = self._kernel
        moved = [array for array in self._arrays if array.moved]
        accepted_arguments.forbid_rerun(moved, kernel.name)
        args: list[Any] = [
            evaluate(cast("DeviceOp[Any]", arg), context) if isinstance(arg, DeviceOp) else arg
            for arg in self._args
        ]
        try:
            launch = _launch(kernel, sys._getframe(0), tuple(args), *self._how, self._shared_mem)
        except accepted_arguments.HasNullError as error:
            raise UsageError(
                f"{kernel.name}() takes an array as {error}, and got an operation that yields None: if "
                "you mean the null pointer, pass None itself"
            ) from None
        except accepted_arguments.HasOperationError:
            raise UsageError(
                f"{kernel.name}() got an operation that yields another operation: make it with and_then "
                "instead of map"
            ) from None
        launch._used, launch._index = True, self._index
        try:
            return launch._enqueue(context)
        except Exception:
            for array in launch._arrays:  # it was refused, so they are good for another run
                array._undo_take()
            raise


def _launch(
    kernel: Kernel, frame: FrameType, args: tuple[Any, ...], grid: Any, block: Any, shared_mem: int
) -> Launch:
    """A launch whose arguments are right."""
    launch = Launch()
    kernel._checks.fill(launch, args, grid, block, shared_mem)
    launch._label = kernel._facts.name  # as `_built` does; a call less on the path of every launch
    launch._where, launch._at = frame.f_code, frame.f_lasti
    launch._used = launch._ran = False
    launch._kernel = kernel
    launch._index = None
    return launch


def _defer(
    kernel: Kernel, frame: FrameType, args: Sequence[Any], grid: Any, block: Any, shared_mem: int
) -> Launch:
    if grid is not None:
        grid = as_dim3("grid", grid)
    if block is not None:
        block = as_dim3("block", block)
    check_limits(kernel.name, (1, 1, 1), block or (1, 1, 1), shared_mem, USUAL_LIMITS)
    known: list[Any] = [
        arg if isinstance(arg, DeviceOp) else accept(arg)
        for accept, arg in zip(kernel._acceptors, args, strict=True)
    ]
    taken = accepted_arguments.take_argument(known, f"into {kernel.name}()")
    launch = _Deferred()
    launch._built(kernel._facts.name, frame)
    launch._kernel = kernel
    how: Any = (grid, block)  # either may be unknown yet
    launch._how, launch._shared_mem = how, shared_mem
    launch._args = taken
    arrays = [arg.array if type(arg) is Partition else arg for arg in taken]
    launch._arrays = [array for array in arrays if type(array) is DeviceArray]
    launch._given = launch._shares = ()  # the taken handles count already
    launch._index = None
    launch._ran = False
    return launch


def _made_again(facts: KernelSource, differs: Sequence[Any]) -> Kernel:
    kernel = Kernel(facts)
    for (kind, places), changes in differs:
        kernel = kernel._variant(kind, places, **changes)
    return kernel


def _nowhere() -> None: ...


def _check_shapes(facts: KernelSource, signature: Signature) -> None:
    """`UsageError` unless `shapes` names array parameters, and scalars for their sizes."""
    pointers = {parameter.name: parameter.pointer for parameter in signature.parameters}
    for name, symbols in facts.shapes.items():
        wrong = [symbol for symbol in symbols if pointers.get(symbol, True)]
        if not pointers.get(name, False) or wrong:
            listed = ", ".join(pointers)
            raise UsageError(
                f"shapes of {facts.name}() says {name!r}: {symbols!r}, and needs the name of an array and "
                f"those of scalars among the parameters ({listed})"
            )
