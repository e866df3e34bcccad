"""A kernel that is compiled, what a launch of it does, and its arguments as values of its parameters."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeAlias, cast

import numpy as np

from simgpu.cuda_c.compile.kernels import Code
from simgpu.cuda_c.compile.signature import KernelParameter, KernelSignature
from simgpu.cuda_c.compile.variables import Origin, Variable
from simgpu.cuda_c.cost.charges import Costs
from simgpu.cuda_c.cost.tally import Tally
from simgpu.cuda_c.lockstep.team import Extent3, InterpreterLimits, LaunchState
from simgpu.cuda_c.memory.access import NULL
from simgpu.cuda_c.memory.addresses import Addresses
from simgpu.cuda_c.memory.allocation import GlobalMemory
from simgpu.cuda_c.memory.global_region import GlobalRegion, MappedRegion
from simgpu.cuda_c.memory.hostile import MOST_BLOCKS, MOST_HOSTILE_THREADS, Hostile, LateGlobal
from simgpu.cuda_c.memory.messages import Messages
from simgpu.cuda_c.memory.pointers import Ptr
from simgpu.cuda_c.run.execution import Execution
from simgpu.cuda_c.text.source import Source
from simgpu.cuda_c.types import CType, Pointer, Scalar, element_of, kinds, leaves, size_of
from simgpu.errors import ArrayDTypeError, LaunchConfigError

KernelArgument: TypeAlias = GlobalMemory | np.generic | int | float | bool | None

# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
_MAX_BLOCK = (1024, 1024, 64)
_MAX_THREADS = 1024
_MAX_GRID = (2**31 - 1, 65535, 65535)
_MAX_SHARED = 227 * 1024  # of a block
_MOST_THREADS = 2**32  # of a launch; of the simplest, some 50 million take a second


@dataclass(frozen=True, slots=True)
class _Target:
    """The memory that a pointer is given, as the kernel sees it."""

    step: int  # bytes of an element
    cell: int  # of its smallest part, but at most 8
    watched: bool  # whether the kernel may write there

    @classmethod
    def of(cls, variable: Variable, follows: bool) -> _Target:
        """That of a pointer or array; what is followed may lead to any."""
        ctype = variable.type
        element = element_of(ctype.target if isinstance(ctype, Pointer) else ctype)
        sizes = [kind.size for kind in kinds(element) if isinstance(kind, Scalar)]
        return cls(size_of(element), min([8, *sizes]), variable.origin.has("written") or follows)


@dataclass
class CompiledKernel:
    """A kernel that is ready to be launched: what it computes, and what that costs."""

    signature: KernelSignature
    source: Source  # for messages
    code: Code
    costs: Callable[[bool], Costs]  # of a launch that asks the host, or of another
    asks: bool  # it may, in a launch with memory of the host: it has a fence of the system
    globals: list[Variable]  # the file's `__constant__` and `__device__` variables
    named: list[Variable]  # those of them that it names
    chosen: Callable[[], bool]  # whether data decides what it touches
    most_threads: int = _MAX_THREADS  # of a block, by its `__launch_bounds__`

    @cached_property
    def registers(self) -> int:
        """An estimate of those of a thread, whoever is asked."""
        return self.costs(self.asks).registers

    @cached_property
    def uses(self) -> list[tuple[bool, bool, str]]:
        """For each parameter and named variable: whether it is written, and whether it may signal others.

        And the atomic by which the kernel adds to it, if the kernel does nothing else with it.
        """
        every = [(v, isinstance(v.type, Pointer)) for v in self.code.parameters]
        every += [(v, True) for v in self.named]
        origins = [v.origin if points else Origin() for v, points in every]
        return [(o.has("written"), o.has("signals"), o.adds) for o in origins]

    def check_cooperative(self, cure: str) -> None:
        """Refuse a launch that isn't cooperative to a kernel whose blocks meet."""
        if self.code.cooperative:
            text = "has a barrier of the grid, on which a launch has to be cooperative, and this one is not"
            raise LaunchConfigError(f"kernel '{self.signature.name}' {text}: {cure}")

    def check_fit(self, grid: Extent3, block: Extent3, fit: int | None) -> None:
        """Refuse a block larger than the kernel was compiled for, and blocks that meet and don't fit at once.

        `fit` is how many blocks the device holds, or None where nobody asks.
        """
        threads = block[0] * block[1] * block[2]
        if threads > self.most_threads:
            raise LaunchConfigError(
                f"kernel '{self.signature.name}': a block of {block} has {threads} threads, and the kernel's "
                f"__launch_bounds__ promises at most {self.most_threads}: launch smaller blocks, or raise it"
            )
        blocks = grid[0] * grid[1] * grid[2]
        if self.code.cooperative and fit is not None and blocks > fit:
            raise LaunchConfigError(
                f"kernel '{self.signature.name}' has a barrier of the grid, so all its blocks must fit on "
                f"the device at once: {blocks} were asked for, {fit} fit"
            )

    def begin(
        self,
        variables: Mapping[str, GlobalMemory],
        grid: Extent3,
        block: Extent3,
        args: Sequence[GlobalMemory | np.generic | None],
        *,
        dynamic_shared: int = 0,
        limits: InterpreterLimits | None = None,
        sample: Sequence[int] | None = None,
        find: Callable[[int], GlobalMemory | None] | None = None,
    ) -> Execution:
        """Begin a launch, as `Program.begin`, of arguments that were `passed`.

        `variables` is the memory of `globals`, by name.
        """
        name = self.signature.name
        grid, block, dynamic_shared = check_shape(name, grid, block, dynamic_shared)
        limits = limits or InterpreterLimits()
        self.check_fit(grid, block, limits.resident_blocks)
        blocks = grid[0] * grid[1] * grid[2]
        mapped = any(isinstance(given, GlobalMemory) and given.mapped for given in args)
        tally = (limits.meter or Tally)(self.costs(mapped and self.asks), self.code.sites)
        regions: dict[int, GlobalRegion] = {}

        def other(number: int) -> tuple[GlobalRegion, GlobalMemory] | None:
            memory, launch = None if find is None else find(number), within()
            if memory is None or launch is None:
                return None
            make = GlobalRegion if launch.hostile is None else LateGlobal
            region = regions[id(memory)] = make(memory, launch, 4, True)
            return region, memory

        given = (grid, block, limits, tally, dynamic_shared)
        lazily = partial(Addresses, other), partial(Messages, blocks)
        launch = LaunchState(name, self.source, *given, *lazily)
        within = weakref.ref(launch)  # which has `other`
        launch.watches = self.code.watches
        few = blocks <= MOST_BLOCKS and blocks * launch.threads <= MOST_HOSTILE_THREADS
        if limits.hostile is not None and few:
            launch.hostile = Hostile(launch, limits.hostile)
        values = self._bind(variables, args, launch, regions)
        if sample is None and blocks * launch.threads > _MOST_THREADS:
            raise LaunchConfigError(
                f"kernel '{name}': {blocks:,} blocks of {launch.threads} threads would keep the "
                f"simulated device busy for minutes: at most {_MOST_THREADS:,} threads are taken"
            )
        # Not an array of all numbers, because a grid may be large.
        wanted = range(blocks) if sample is None else np.asarray(sample, np.int64)
        facts = {
            "threads": len(wanted) * launch.threads,
            "warps": len(wanted) * -(-launch.threads // 32),
            "blocks": len(wanted),
            "shared_bytes": self.code.shared_bytes + dynamic_shared,
            "registers": self.registers,
        }
        if launch.hostile is not None and blocks <= (limits.resident_blocks or blocks):
            wanted = np.asarray(wanted)
            launch.hostile.random.shuffle(wanted)
        return Execution(launch, self.code, tally, regions, facts, values, wanted)

    @cached_property
    def _targets(self) -> list[_Target | None]:
        """For each parameter, and each variable of the file, its target if it is a pointer or an array."""
        given = [v if isinstance(v.type, Pointer) else None for v in self.code.parameters]
        return [v and _Target.of(v, self.code.follows) for v in (*given, *self.globals)]

    def _bind(
        self,
        variables: Mapping[str, GlobalMemory],
        args: Sequence[GlobalMemory | np.generic | None],
        launch: LaunchState,
        regions: dict[int, GlobalRegion],
    ) -> dict[int, Any]:
        """The values of the parameters, by slot; `regions` gets those that they point into."""
        given = [*args, *[variables[v.name] for v in self.globals]]
        pointers: list[tuple[Variable, _Target, GlobalMemory]] = []
        records: list[tuple[Variable, np.void]] = []
        values: dict[int, Any] = {}
        for variable, target, value in zip(
            (*self.code.parameters, *self.globals), self._targets, given, strict=True
        ):
            if target is not None and isinstance(value, GlobalMemory):
                pointers.append((variable, target, value))
            elif isinstance(value, np.void):
                records.append((variable, value))
            else:
                values[variable.slot] = NULL if value is None else value
        # Parameters that point into one memory share its region, so that it sees all their accesses.
        cells: dict[int, int] = {}
        watched: set[int] = set()
        for _, target, memory in pointers:
            cells[id(memory)] = min(cells.get(id(memory), 8), target.cell)
            if target.watched:
                watched.add(id(memory))
        for variable, target, memory in pointers:
            key = id(memory)
            if key not in regions:
                told = memory.mapped and (launch.watches or variable.origin.has("signals"))
                talks = MappedRegion if told else GlobalRegion
                make = talks if launch.hostile is None else LateGlobal
                regions[key] = make(memory, launch, cells[key], key in watched)
            regions[key].types[variable.name] = variable.type
            launch.named.append((regions[key], variable.name, memory))
            values[variable.slot] = Ptr(regions[key], 0, target.step, 0, variable.name)
        for variable, record in records:
            values[variable.slot] = _leaves_of(record, variable.type, launch)
        return values


def passed(parameter: KernelParameter, given: Any) -> GlobalMemory | np.generic | None:
    """An argument as its parameter takes it: memory, None for a null pointer, a number, or a record.

    Whoever enqueues a launch asks first, so that the call refuses what does not fit, and not the run.
    """
    record, dtype = parameter.record, parameter.dtype
    memory = isinstance(given, GlobalMemory)
    if parameter.pointer:
        fits = memory or given is None
    else:
        fits = record is None and dtype is not None and type(given) is dtype.type
    if fits:
        return given
    name, shown = repr(parameter.name), "an array" if memory else repr(given)
    if parameter.pointer:
        raise ArrayDTypeError(f"{shown} is not memory of this device, and {name} is a pointer")
    if record is not None:
        wanted = f"{name} is a {parameter.ctype} of {record.itemsize} bytes, and"
        if not isinstance(given, np.void):
            raise ArrayDTypeError(f"{wanted} no record was given, but {type(given).__name__}")
        check_byte_order(given.dtype, "this record")
        if given.nbytes != record.itemsize:
            raise ArrayDTypeError(f"{wanted} a record of {given.nbytes} was given")
        return given
    # NumPy's durations are whole numbers to it, in a unit that no parameter has.
    real = isinstance(given, bool | int | float | np.integer | np.floating | np.bool_)
    if not real or isinstance(given, np.timedelta64) or dtype is None:
        raise ArrayDTypeError(f"{shown} is no number for {name}, which is {parameter.ctype}")
    number = cast(Any, given)
    if dtype.kind in "iu":
        if np.asarray(number).dtype.kind not in "biuO":  # O of an int that NumPy has no room for
            raise ArrayDTypeError(f"{shown} cannot be passed for {name}: pass an int")
        number = int(number)  # because NumPy cuts a number of its own that does not fit
    try:
        return dtype.type(number)
    except (ValueError, OverflowError) as error:  # such as NaN for an integer
        raise ArrayDTypeError(f"{shown} cannot be passed for {name}: {error}") from None


def check_byte_order(dtype: np.dtype[Any], what: str) -> None:
    """Refuse numbers whose bytes stand the other way round, which a kernel would take for others."""
    if dtype != dtype.newbyteorder("="):  # `isnative` does not look into fields that are arrays
        text = f"{what} is of {dtype}, whose byte order a GPU does not have"
        raise ArrayDTypeError(f"{text}: pass x.astype(x.dtype.newbyteorder('='))")


def _leaves_of(record: np.void, ctype: CType, launch: LaunchState) -> list[Any]:
    """A record as a struct: the values of its leaves."""
    raw = record.tobytes()
    out: list[Any] = []
    for leaf, offset in leaves(ctype):
        if isinstance(leaf, Scalar):
            out.append(np.frombuffer(raw, leaf.dtype, 1, offset)[0])
        else:
            number = int(np.frombuffer(raw, np.uint64, 1, offset)[0])
            out.append(launch.addresses.known(number, size_of(leaf.target)))
    return out


# Types of whole numbers. A set of them is asked without a call of Python, and a launch asks seven times.
_WHOLE = {int, *(np.dtype(letter).type for letter in np.typecodes["AllInteger"])}


def check_shape(
    name: str, grid: Extent3, block: Extent3, shared: int = 0
) -> tuple[Extent3, Extent3, int]:
    """Refuse what no GPU takes; the rest comes back in Python's ints, whose products don't wrap."""
    text = ""
    if type(shared) not in _WHOLE or not 0 <= shared <= _MAX_SHARED:
        text = f"{shared!r} bytes of shared memory are not possible: at most {_MAX_SHARED:,}"
    for what, dim, most in (("grid", grid, _MAX_GRID), ("block", block, _MAX_BLOCK)):
        if len(dim) != 3 or not _WHOLE.issuperset(map(type, dim)) or min(dim) < 1:
            text = f"a {what} of {dim} is not possible: it has one to three whole numbers above 0"
        elif dim[0] > most[0] or dim[1] > most[1] or dim[2] > most[2]:
            text = f"a {what} of {dim} is too large: at most {most}"
        if text:
            raise LaunchConfigError(f"kernel '{name}': {text}")
    x, y, z = map(int, grid)
    block = int(block[0]), int(block[1]), int(block[2])
    threads = block[0] * block[1] * block[2]
    if threads > _MAX_THREADS:
        text = f"a block of {block} has {threads} threads; at most {_MAX_THREADS} are possible"
        raise LaunchConfigError(f"kernel '{name}': {text}")
    return (x, y, z), block, int(shared)
