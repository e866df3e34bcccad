"""Every access that the threads of one launch make, in order; for `show_threads`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from asyncgpu_tutor.arrays.handles import DeviceArray, Partition
from asyncgpu_tutor.devices.protocol import Dim3
from asyncgpu_tutor.errors import ArrayDTypeError, KernelFault, UsageError
from asyncgpu_tutor.kernels import Kernel
from asyncgpu_tutor.kernels.configuration import as_dim3, configuration
from asyncgpu_tutor.ops import d2h
from simgpu.cuda_c import GlobalMemory, Limits, compile_source

MOST_THREADS = 4096
MOST_STEPS = 80


@dataclass(frozen=True)
class Access:
    """One load or store of the source, by all threads that make it together."""

    line: int  # of the kernel's source, from 1
    array: str  # what is read or written
    write: bool
    # Their numbers in the grid: the block's number times the threads of a block, plus the thread's own.
    threads: NDArray[np.int64]
    elements: NDArray[np.int64]  # for each of them, the element that it touches


@dataclass
class Watched:
    """One launch, watched."""

    kernel: str
    source: str
    # `grid` and `block`: (x, y, z).
    grid: Dim3
    block: Dim3
    # The shape of each array; shared memory is one row.
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    # Bytes of an element of each array.
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    # The first 80 at most, in the order in which they were made.
    steps: list[Access] = field(default_factory=list[Access])
    left_out: int = 0  # how many more there were
    fault: KernelFault | None = None  # what ended it

    @property
    def block_threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def threads(self) -> int:
        """Threads of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2] * self.block_threads

    def name(self, thread: int) -> str:
        """A thread as CUDA names it."""
        block, own = divmod(thread, self.block_threads)
        return f"block {_place(block, self.grid)}, thread {_place(own, self.block)}"

    @property
    def culprits(self) -> list[int]:
        """The threads that are to blame: the one that failed, and whom it raced with."""
        site = self.fault.site if self.fault else None
        if site is None or site.thread is None or site.block is None:
            return []
        first = _number(site.block, self.grid) * self.block_threads + _number(
            site.thread, self.block
        )
        found = [first]
        for step in reversed(self.steps):
            if step.array == site.array:
                others = step.threads[(step.elements == site.index) & (step.threads != first)]
                if len(others):
                    found.append(int(others[0]))
                    break
        return found

    def _note(self, team: Any, mask: Any, ptr: Any, size: int, site: Any) -> None:
        """What `Limits.watcher` is: see there."""
        if not hasattr(ptr.region, "shared"):  # memory that each thread has for itself
            return
        if len(self.steps) >= MOST_STEPS:
            self.left_out += 1
            return
        layout = team.layout
        own = layout.numbers[layout.block[mask.index]] * self.block_threads
        size = self.sizes.setdefault(ptr.name, size)
        self.shapes.setdefault(ptr.name, (ptr.region.nbytes // size,))
        touched = np.broadcast_to(np.asarray(mask.take(ptr.address())) // size, (mask.n,))
        threads = np.asarray(own + layout.linear[mask.index], np.int64)
        elements = np.array(touched, np.int64)
        self.steps.append(Access(site.at.line, ptr.name, site.write, threads, elements))


def watch(
    kernel: Kernel,
    args: Sequence[Any],
    grid: int | tuple[int, ...] | None,
    block: int | tuple[int, ...] | None,
    shared_mem: int,
) -> Watched:
    """Run a kernel on copies of its arguments, and note what its threads do; see `show_threads`."""
    parameters = kernel._signature.parameters
    if len(args) != len(parameters):
        raise UsageError(
            f"{kernel.name}() takes {len(parameters)} arguments, and {len(args)} were given"
        )
    chosen = configuration(
        kernel.name,
        args,
        None if grid is None else as_dim3("grid", grid),
        None if block is None else as_dim3("block", block),
    )
    seen = Watched(kernel.name, kernel.source, *chosen)
    if seen.threads > MOST_THREADS:
        raise UsageError(
            f"show_threads draws every thread, at most {MOST_THREADS}, and this launch has {seen.threads}: "
            "show a smaller one. What holds for four blocks holds for a thousand"
        )
    given: list[Any] = []
    for parameter, arg in zip(parameters, args, strict=True):
        if not parameter.pointer:
            given.append(arg)
            continue
        array = _on_host(kernel.name, parameter.name, arg)
        if parameter.dtype is not None and array.dtype != parameter.dtype:
            raise ArrayDTypeError(
                f"show_threads: '{parameter.name}' of {kernel.name}() is {array.dtype}, and the kernel takes "
                f"{parameter.dtype}: convert it with astype(np.{parameter.dtype})"
            )
        memory = GlobalMemory(array.nbytes, parameter.name)
        memory.data[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        memory.mark_written()
        seen.shapes[parameter.name], seen.sizes[parameter.name] = array.shape, array.itemsize
        given.append(memory)
    program = compile_source(kernel.source)
    try:
        program.launch(
            kernel.name,
            *chosen,
            given,
            dynamic_shared=shared_mem,
            limits=Limits(watcher=seen._note),
        )
    except KernelFault as fault:
        seen.fault = fault
    return seen


def _on_host(kernel: str, name: str, given: Any) -> NDArray[Any]:
    array = given.array if isinstance(given, Partition) else given
    if isinstance(array, DeviceArray):
        return d2h(array.borrow()).sync()
    if not isinstance(array, np.ndarray):
        raise ArrayDTypeError(
            f"show_threads: the parameter '{name}' of {kernel}() is a pointer: give it a NumPy array or a "
            f"DeviceArray, not {type(given).__name__}"
        )
    return cast("NDArray[Any]", array)


def _place(number: int, size: Dim3) -> tuple[int, int, int]:
    return number % size[0], number // size[0] % size[1], number // (size[0] * size[1])


def _number(place: Dim3, size: Dim3) -> int:
    return place[0] + size[0] * (place[1] + size[1] * place[2])
