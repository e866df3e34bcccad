"""What the compiler knows about a name and about an expression."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from asyncgpu_tutor.cuda_c.cost.tally import Site
from asyncgpu_tutor.cuda_c.lockstep.masks import Mask
from asyncgpu_tutor.cuda_c.lockstep.team import Team
from asyncgpu_tutor.cuda_c.memory.pointers import Ptr
from asyncgpu_tutor.cuda_c.text.source import Position
from asyncgpu_tutor.cuda_c.types import CType, size_of

__all__ = [
    "CHANGING",
    "Alias",
    "Constant",
    "Evaluate",
    "Execute",
    "Expr",
    "MemoryPlace",
    "Origin",
    "Place",
    "Ranks",
    "RegisterPlace",
    "Scope",
    "TypeBinding",
    "Variable",
]

IN_REGISTERS = 128  # bytes; larger arrays of a thread are in local memory
CHANGING = 1 << 30  # the depth of what may change anywhere, such as a load

Evaluate: TypeAlias = Callable[[Team, Mask], Any]
Execute: TypeAlias = Callable[[Team, Mask], "Mask | None"]


class Origin:
    """What a pointer may point into: a set that grows by assignments (Steensgaard's analysis).

    Two pointers that are ever assigned to each other share one set. What is asked in the end is
    only whether anything in the kernel writes through a pointer of the set.
    """

    def __init__(self) -> None:
        self._parent: Origin | None = None
        self._written = False
        self._compared = False
        self._near = False
        self._far = False

    def root(self) -> Origin:
        """The set that this one has become part of."""
        node = self
        while node._parent is not None:
            node = node._parent
        return node

    def unite(self, other: Origin | None) -> None:
        """Note that a pointer of one set may hold what a pointer of the other holds."""
        if other is None:
            return
        a, b = self.root(), other.root()
        if a is not b:
            b._parent = a
            a._written |= b._written
            a._compared |= b._compared
            a._near |= b._near
            a._far |= b._far

    def write(self) -> None:
        """Note a store."""
        self.root()._written = True

    def place(self, *, near: bool) -> None:
        """Note memory of a block or a thread (near), or of the device."""
        root = self.root()
        root._near |= near
        root._far |= not near

    @property
    def near(self) -> bool:
        """Whether all that is known of this set is shared or local memory."""
        root = self.root()
        return root._near and not root._far

    def compare(self) -> None:
        """Note an atomicCAS.

        The plain read that begins a compare-and-swap loop races with other threads' swaps, by
        design: the swap fails if the value read was stale.
        """
        self.root()._compared = True

    @property
    def compared(self) -> bool:
        """Whether atomicCAS works on anything in this set."""
        return self.root()._compared

    @property
    def written(self) -> bool:
        """Whether anything writes through a pointer of this set."""
        return self.root()._written


class Ranks:
    """The order of values in which LLVM's pass "reassociate" sorts the operands of a sum.

    It decides which of two products is fused with their sum. Constants come first, then parameters,
    then what is loaded, in the order of the source (of a struct, member by member, hence the
    fractions); an operation ranks just behind its operands.
    (LLVM, lib/Transforms/Scalar/Reassociate.cpp, BuildRankMap and getRank.)
    """

    def __init__(self) -> None:
        self._parameters = 2
        self._block = 1 << 16
        self._loads = 0

    def parameter(self) -> int:
        """Rank of the next parameter."""
        self._parameters += 1
        return self._parameters

    def load(self) -> int:
        """Rank of the next value from memory, or from a call."""
        self._loads += 1
        return self._block + self._loads

    def branch(self) -> None:
        """What follows is another basic block."""
        self._block += 1 << 16
        self._loads = 0


@dataclass(eq=False)
class Variable:
    """A name that has storage.

    Attributes
    ----------
    slot : int
        Where `Team.slots` keeps its value; for `memory`, the pointer to it.
    memory : bool
        Lives in memory, since it is an array, shared, constant, or its address is taken.
    unset : bool
        Declared without a value, so that reads are checked.
    sources, loaded : set of Variable, bool
        What was ever assigned to it: other variables, or a load from global memory.
    depth : int
        How many loops deep it is changed; -1 for the counter of an unrolled loop, which is as good as a
        constant.
    loaded_depth : int
        How many loops deep the innermost assignment of a load is; -1 for none.
    thread : bool
        For `memory`: it is one thread's own. With known indices a compiler keeps it in registers.
    parameter : bool
        It is one of the kernel's, which are in constant memory.
    """

    name: str
    type: CType
    slot: int
    memory: bool = False
    const: bool = False
    volatile: bool = False
    unset: bool = False
    origin: Origin = field(default_factory=Origin)
    sources: set[Variable] = field(default_factory=set["Variable"])
    loaded: bool = False
    rank: float = 0
    depth: int = 0
    loaded_depth: int = -1
    thread: bool = False
    parameter: bool = False

    @property
    def words(self) -> int:
        """Registers of 32 bits that it takes, if a compiler keeps it there."""
        own = self.thread or not self.memory
        nbytes = size_of(self.type) if own and not self.parameter else 0
        return -(-nbytes // 4) if nbytes <= IN_REGISTERS else 0


@dataclass
class RegisterPlace:
    """A variable in registers, or the leaves `first` to `first + count` of one that is a struct."""

    variable: Variable
    first: int = 0
    count: int = 0  # 0: all of it
    const: bool = False


@dataclass
class MemoryPlace:
    """Something in memory; `register` if a compiler would keep it in a register all the same."""

    pointer: Callable[[Team, Mask], Ptr]
    origin: Origin
    const: bool = False
    volatile: bool = False
    register: bool = False


Place: TypeAlias = RegisterPlace | MemoryPlace


@dataclass
class Expr:
    """An expression, ready to run.

    Attributes
    ----------
    type : CType
        Type of its value; an array's value is a pointer to its first element.
    run : callable
        Computes it for the lanes of a mask.
    constant : NumPy scalar, optional
        Its value, if that is known now.
    place : Place, optional
        Where it is, if it may stand on the left of an assignment.
    origin : Origin, optional
        Of a pointer.
    reads : frozenset of Variable
        Variables that its value depends on.
    rounds : int
        Length of its longest chain of global loads.
    product : pair of callables, optional
        The factors, if it is a floating-point product that an addition may swallow.
    rank : float
        Its place in the order by which NVVM sorts the operands of a sum: see `Ranks`.
    depth : int
        How many loops deep its value changes; see `Variable`.
    key : tuple, optional
        The same for expressions of the same value, while no variable is assigned to.
    site : Site, optional
        Where it loads, if it does.
    """

    type: CType
    run: Evaluate
    at: Position
    constant: Any = None
    place: Place | None = None
    origin: Origin | None = None
    reads: frozenset[Variable] = frozenset()
    rounds: int = 0
    product: tuple[Evaluate, Evaluate] | None = None
    rank: float = 0
    text: str | None = None
    depth: int = CHANGING
    key: Any = None
    site: Site | None = None

    @property
    def same(self) -> Any:
        """`key`, also of constants."""
        return self.key if self.constant is None else ("constant", self.constant)

    @property
    def changes(self) -> int:
        """`depth`, also of constants: -1."""
        return -1 if self.constant is not None else self.depth

    @staticmethod
    def joined(parts: Iterable[Expr]) -> tuple[frozenset[Variable], int]:
        """What an expression made of `parts` reads, and its rounds."""
        reads: frozenset[Variable] = frozenset()
        rounds = 0
        for part in parts:
            reads |= part.reads
            rounds = max(rounds, part.rounds)
        return reads, rounds


@dataclass
class Constant:
    """A name for a number."""

    expr: Expr


@dataclass
class Alias:
    """A reference: another name for a place."""

    expr: Expr


@dataclass
class TypeBinding:
    """A name for a type: typedef, struct, or template parameter."""

    type: CType


Binding: TypeAlias = Variable | Constant | Alias | TypeBinding


class Scope:
    """Names, innermost first."""

    def __init__(self, outer: Scope | None = None) -> None:
        self.outer = outer
        self.names: dict[str, Binding] = {}

    def find(self, name: str) -> Binding | None:
        """What a name means here."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return None

    def visible(self) -> set[str]:
        """All names that mean something here."""
        names: set[str] = set()
        scope: Scope | None = self
        while scope is not None:
            names |= scope.names.keys()
            scope = scope.outer
        return names
