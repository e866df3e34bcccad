"""`Kernel`: calling one gives an operation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from asyncgpu_tutor.array import DeviceArray, Partition
from asyncgpu_tutor.cuda_c import Signature, read_signature
from asyncgpu_tutor.device import Dim3, Limits
from asyncgpu_tutor.errors import LaunchConfigError, UsageError
from asyncgpu_tutor.kernels import KernelSource
from asyncgpu_tutor.launch.arguments import accept, check_shapes
from asyncgpu_tutor.ops import DeviceOp
from asyncgpu_tutor.ops.operation import evaluate
from asyncgpu_tutor.runtime import ExecutionContext, current_device

__all__ = ["Kernel", "KernelLaunch"]

HEAD = re.compile(r"__global__\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?void\s+(\w+)\s*\(")


class Kernel:
    """CUDA C source, and what the host knows of it.

    Parameters
    ----------
    source : str or KernelSource
        CUDA C. Pointers to const are inputs, other pointers outputs.
    name : str, optional
        Which `__global__` function; needed where there are several.

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

    def __init__(self, source: str | KernelSource, name: str | None = None) -> None:
        if isinstance(source, KernelSource):
            self.facts = source
        else:
            self.facts = KernelSource(name or _only_kernel(source), source)
        self.signature: Signature = read_signature(self.facts.source, self.facts.name)
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
        parameters = self.signature.parameters
        if len(args) != len(parameters):
            wanted = ", ".join(p.name for p in parameters)
            raise UsageError(
                f"{self.name}() takes {len(parameters)} arguments ({wanted}), and got {len(args)}"
            )
        accepted = [accept(self.name, p, a) for p, a in zip(parameters, args, strict=True)]
        return KernelLaunch(
            self,
            accepted,
            None if grid is None else _dim3("grid", grid),
            None if block is None else _dim3("block", block),
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
        if not any(isinstance(arg, DeviceOp) for arg in args):
            self._check(args)  # everything is known: complain at the call
        elif block is not None:
            check_limits(kernel.name, (1, 1, 1), block, shared_mem, Limits())
        self.args = _take_all(args, f"into {kernel.name}()")

    def parts(self) -> tuple[DeviceOp[Any], ...]:
        """See `DeviceOp`."""
        ops: list[DeviceOp[Any]] = [arg for arg in self.args if isinstance(arg, DeviceOp)]
        return tuple(ops)

    def borrowed(self) -> Iterator[str]:
        """See `DeviceOp`."""
        for arg in self.args:
            array = arg.array if isinstance(arg, Partition) else arg
            if isinstance(array, DeviceArray) and array.mode == "borrowed":
                yield array.name

    def arity(self) -> int:
        """See `DeviceOp`."""
        return sum(p.pointer for p in self.kernel.signature.parameters)

    def enqueue(self, context: ExecutionContext) -> tuple[Any, ...]:
        """Enqueue the work; see `DeviceOp`."""
        name = self.kernel.name
        given = [
            accept(name, parameter, evaluate(cast(DeviceOp[Any], arg), context))
            if isinstance(arg, DeviceOp)
            else arg
            for parameter, arg in zip(self.kernel.signature.parameters, self.args, strict=True)
        ]
        grid, block = self._check(given)
        check_limits(name, grid, block, self.shared_mem, context.device.limits)
        taken = _take_all(given, f"into an earlier run of {name}()")
        function = context.device.get_function(self.kernel.facts.source, name)
        plain = [arg.array if isinstance(arg, Partition) else arg for arg in taken]
        context.launch(function, grid, block, plain, self.shared_mem)
        return tuple(arg for arg in taken if isinstance(arg, DeviceArray | Partition))

    def _check(self, args: list[Any]) -> tuple[Dim3, Dim3]:
        """Shapes and launch configuration; grid and block."""
        arrays: dict[str, DeviceArray] = {}
        scalars: dict[str, Any] = {}
        for parameter, arg in zip(self.kernel.signature.parameters, args, strict=True):
            if isinstance(arg, np.generic):
                scalars[parameter.name] = arg
            else:
                arrays[parameter.name] = arg.array if isinstance(arg, Partition) else arg
        check_shapes(self.kernel.name, self.kernel.facts.shapes, arrays, scalars)
        grid, block = self._configuration([a for a in args if isinstance(a, Partition)])
        check_limits(self.kernel.name, grid, block, self.shared_mem, Limits())
        return grid, block

    def _configuration(self, partitions: list[Partition]) -> tuple[Dim3, Dim3]:
        name = self.kernel.name
        if self.grid is not None and self.block is not None:
            return self.grid, self.block
        if not partitions:
            raise LaunchConfigError(
                f"{name}() does not know how many threads to start: partition the output, as in "
                f"{name}(..., out.partition(256)), or pass both grid= and block="
            )
        if len({partition.grid for partition in partitions}) > 1:
            grids = ", ".join(str(partition.grid) for partition in partitions)
            raise LaunchConfigError(
                f"{name}() got partitions with different numbers of blocks ({grids}): make them agree, "
                "or pass grid= and block="
            )
        first = partitions[0]
        return self.grid or first.grid, self.block or first.block


def _take_all(args: list[Any], where: str) -> list[Any]:
    """Take every array. One handle that is given twice is taken once: an array may be both read and
    written by a kernel whose threads touch only their own elements.
    """
    taken: dict[int, Any] = {}
    for arg in args:
        if isinstance(arg, DeviceArray | Partition) and id(arg) not in taken:
            taken[id(arg)] = arg.take(where)
    return [taken.get(id(arg), arg) for arg in args]


def check_limits(name: str, grid: Dim3, block: Dim3, shared_mem: int, limits: Limits) -> None:
    """Hold a launch against what a device can do; `LaunchConfigError`."""
    threads = block[0] * block[1] * block[2]
    if threads > limits.threads_per_block:
        raise LaunchConfigError(
            f"{name}() asks for {threads} threads in a block {block}, and a block has at most "
            f"{limits.threads_per_block}: make the partition's blocks smaller, or pass block="
        )
    for what, asked, most in (("grid", grid, limits.grid), ("block", block, limits.block)):
        if any(n < 1 for n in asked):
            raise LaunchConfigError(
                f"{name}() asks for the {what} {asked}: every entry must be at least 1 (is an array "
                "empty?)"
            )
        if any(n > m for n, m in zip(asked, most, strict=True)):
            raise LaunchConfigError(
                f"{name}() asks for the {what} {asked}, and {most} is the limit"
            )
    if not 0 <= shared_mem <= limits.shared_bytes:
        raise LaunchConfigError(
            f"{name}() asks for {shared_mem} bytes of shared memory in a block, and "
            f"{limits.shared_bytes} is the limit"
        )


def _dim3(what: str, given: int | tuple[int, ...]) -> Dim3:
    entries: tuple[Any, ...] = (given,) if isinstance(given, int) else tuple(given)
    if not 1 <= len(entries) <= 3 or not all(isinstance(n, int | np.integer) for n in entries):
        raise LaunchConfigError(f"{what} is one to three integers, (x, y, z), not {given!r}")
    x, y, z = (*entries, 1, 1)[:3]
    return (int(x), int(y), int(z))


def _only_kernel(source: str) -> str:
    names = HEAD.findall(source)
    if len(names) != 1:
        listed = ", ".join(names) or "none"
        raise UsageError(
            f"the source has {len(names)} kernels ({listed}), so the name of the one that is meant has "
            "to be given: Kernel(source, name)"
        )
    return names[0]
