"""`Kernel`: calling one gives an operation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, cast

from asyncgpu_tutor.arrays.handles import DeviceArray, Partition, borrowed_in
from asyncgpu_tutor.cuda_c import Signature, read_signature
from asyncgpu_tutor.devices.protocol import USUAL_LIMITS, Dim3
from asyncgpu_tutor.errors import UsageError, UseAfterMoveError
from asyncgpu_tutor.kernels.arguments import acceptors, shape_checks
from asyncgpu_tutor.kernels.configuration import as_dim3, check_limits, configuration
from asyncgpu_tutor.kernels.source import KernelSource
from asyncgpu_tutor.ops import DeviceOp
from asyncgpu_tutor.ops.operation import evaluate
from asyncgpu_tutor.run import ExecutionContext, current_device

__all__ = ["Kernel", "KernelLaunch"]
HEAD = re.compile(r"__global__\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?void\s+(\w+)\s*\(")


class Kernel:
    """CUDA C source, and what the host knows of it.

    Parameters
    ----------
    source : str or KernelSource
        CUDA C. Pointers to const are inputs, other pointers outputs.
    name : str, optional
        Which `__global__` function; needed where there are several. An instance of a template as C++
        writes it: ``"scale<float, 16>"``.
    reference : callable, optional
        The same in NumPy: from all arguments, arrays flat and read-only, to the arrays that the kernel
        writes, in order and whole. The simulated device computes launches of more than about two seconds
        of interpreting by it, after it has checked it on some of the blocks.

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
    >>> op.last().unpartition().to_host().sync()[:3]
    array([2., 2., 2.], dtype=float32)
    """

    def __init__(
        self,
        source: str | KernelSource,
        name: str | None = None,
        *,
        reference: Callable[..., Any] | None = None,
    ) -> None:
        if isinstance(source, KernelSource):
            self.facts = source if reference is None else replace(source, reference=reference)
        elif not isinstance(source, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all type-checked
            raise UsageError(
                f"a Kernel is made of CUDA C in a string, and got {type(source).__name__}"
            )
        else:
            self.facts = KernelSource(name or _only_kernel(source), source, reference=reference)
        self.signature: Signature = read_signature(self.facts.source, self.facts.name)
        self.places = [i for i, p in enumerate(self.signature.parameters) if p.pointer]
        self.arity = len(self.places)
        self.taken = f"into {self.facts.name}()"
        self.acceptors = acceptors(self.signature)
        self.shape_checks = shape_checks(self.signature, self.facts)
        if isinstance(source, str):
            current_device().get_function(source, self.facts.name)

    @property
    def name(self) -> str:
        """Its name in the source."""
        return self.facts.name

    def __repr__(self) -> str:
        listed = ", ".join(
            f"{'const ' if p.const else ''}{p.ctype}{'*' if p.pointer else ''} {p.name}"
            for p in self.signature.parameters
        )
        return f"<Kernel {self.name}({listed})>"

    def __call__(
        self,
        *args: Any,
        grid: int | tuple[int, ...] | None = None,
        block: int | tuple[int, ...] | None = None,
        shared_mem: int = 0,
    ) -> DeviceOp[tuple[Any, ...]]:
        """An operation that launches it.

        Parameters
        ----------
        *args
            One for each parameter of the kernel. Arrays: `DeviceArray` (owned, shared or borrowed),
            `Partition`, an operation that yields one of them, or an array of another CUDA library.
            Scalars: numbers, or an operation that yields one.
        grid, block : int or tuple of int, optional
            Number of blocks and threads of a block, (x, y, z). Without them a partitioned argument
            gives both; `block` alone replaces the partition's.
        shared_mem : int
            Dynamic shared memory of a block, in bytes.

        Returns
        -------
        DeviceOp
            Yields the array arguments, in order, in the form in which they were given.

        Raises
        ------
        UsageError
            If an argument does not fit; see its subclasses.
        """
        if len(args) != len(self.acceptors):
            wanted = ", ".join(p.name for p in self.signature.parameters)
            raise UsageError(
                f"{self.name}() takes {len(self.acceptors)} arguments ({wanted}), and got {len(args)}"
            )
        return KernelLaunch(
            self,
            [accept(arg) for accept, arg in zip(self.acceptors, args, strict=True)],
            None if grid is None else as_dim3("grid", grid),
            None if block is None else as_dim3("block", block),
            shared_mem,
        )


class KernelLaunch(DeviceOp[tuple[Any, ...]]):
    """One launch, with its arguments."""

    def __init__(
        self,
        kernel: Kernel,
        args: list[Any],
        grid: Dim3 | None,
        block: Dim3 | None,
        shared_mem: int,
    ) -> None:
        self.kernel = kernel
        self.grid = grid
        self.block = block
        self.shared_mem = shared_mem
        self.given_label = kernel.name
        self.spent = False
        self.has_ops = False
        for arg in args:
            if isinstance(arg, DeviceOp):
                self.has_ops = True
        if not self.has_ops:
            self.grid, self.block = self._check(args)  # everything is known: complain at the call
        elif block is not None:
            check_limits(kernel.name, (1, 1, 1), block, shared_mem, USUAL_LIMITS)
        # And the name of one of the arrays that the first run gives away again.
        self.args, self.owned = _take_all(args, kernel.taken)

    def parts(self) -> tuple[DeviceOp[Any], ...]:
        """See `DeviceOp`."""
        ops: list[DeviceOp[Any]] = [arg for arg in self.args if isinstance(arg, DeviceOp)]
        return tuple(ops)

    def borrowed(self) -> Iterator[str]:
        """See `DeviceOp`."""
        return borrowed_in(self.args)

    def arity(self) -> int:
        """See `DeviceOp`."""
        return self.kernel.arity

    def enqueue(self, context: ExecutionContext) -> tuple[Any, ...]:
        """Enqueue the work; see `DeviceOp`."""
        kernel, args = self.kernel, self.args
        if self.spent:
            raise UseAfterMoveError(
                f"array {self.owned!r} was moved into an earlier run of {kernel.name}(). Build the "
                "operation again, with what that run returned."
            )
        if self.has_ops:
            args = [
                accept(evaluate(cast(DeviceOp[Any], arg), context))
                if isinstance(arg, DeviceOp)
                else arg
                for accept, arg in zip(kernel.acceptors, args, strict=True)
            ]
            grid, block = self._check(args)
            args, _ = _take_all(args, kernel.taken, already=self.args)
        else:
            assert self.grid is not None
            assert self.block is not None
            grid, block = self.grid, self.block
        if context.device.limits is not USUAL_LIMITS:  # held against those already
            check_limits(kernel.name, grid, block, self.shared_mem, context.device.limits)
        facts = kernel.facts
        function = context.device.get_function(facts.source, facts.name, facts.reference)
        context.launch(
            function,
            grid,
            block,
            [arg.array if type(arg) is Partition else arg for arg in args],
            self.shared_mem,
        )
        if self.owned is not None:
            self.spent = True
            context.on_failed_capture(self._unspend)
        return tuple([args[place] for place in kernel.places])

    def _unspend(self) -> None:
        self.spent = False

    def _check(self, args: list[Any]) -> tuple[Dim3, Dim3]:
        for check in self.kernel.shape_checks:
            check(args)
        grid, block = configuration(self.kernel.name, args, self.grid, self.block)
        check_limits(self.kernel.name, grid, block, self.shared_mem, USUAL_LIMITS)
        return grid, block


def _take_all(
    args: list[Any], where: str, already: list[Any] | None = None
) -> tuple[list[Any], str | None]:
    """Take every array, but those that are in `already`; also the name of an owned one.

    One handle that is given twice is taken once: an array may be both read and written by a kernel whose
    threads touch only their own elements.
    """
    taken: dict[int, Any] = {} if already is None else {id(arg): arg for arg in already}
    owned: str | None = None
    result: list[Any] = []
    for arg in args:
        if type(arg) is not DeviceArray and type(arg) is not Partition:
            result.append(arg)
            continue
        mine: Any = taken.get(id(arg))
        if mine is None:
            mine = taken[id(arg)] = arg.take(where)
            array: DeviceArray = mine.array if isinstance(mine, Partition) else mine
            if array.mode == "owned":
                owned = array.name
        result.append(mine)
    return result, owned


def _only_kernel(source: str) -> str:
    names = HEAD.findall(source)
    if len(names) != 1:
        listed = ", ".join(names) or "none"
        raise UsageError(
            f"the source has {len(names)} kernels ({listed}), so the name of the one that is meant has "
            "to be given: Kernel(source, name)"
        )
    return names[0]
