"""Variables, and what their pointers may point into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from simgpu.cuda_c.types import CType

# Something stores; an atomicCAS works there, which makes the plain read in front of its loop harmless; an
# atomic or a volatile access does, so that what others do meanwhile is expected; the memory is one of a block
# or a thread (near), or of the device; a local pointer says that no other leads there.
Fact = Literal["written", "compared", "signals", "near", "far", "restrict"]


class Origin:
    """The set of memories that a pointer may point into; it grows by assignments (Steensgaard's analysis).

    Two pointers that are ever assigned to each other share one set. In the end the set only has to say
    what the kernel does through any of its pointers, and which memories are in it.
    """

    def __init__(self, *parts: Origin) -> None:
        self._parent: Origin | None = None
        self._facts: set[Fact] = set()
        self._ways: set[str] = set()  # in which it is loaded or stored: see `use`
        self._content: Origin | None = None
        for part in parts:
            self.unite(part)

    def root(self) -> Origin:
        """The set that this one has become part of."""
        node = self
        while node._parent is not None:
            node = node._parent
        return node

    def unite(self, other: Origin) -> None:
        """Note that a pointer of one set may hold what a pointer of the other holds."""
        a, b = self.root(), other.root()
        if a is not b:
            b._parent = a
            a._facts |= b._facts
            a._ways |= b._ways
            theirs, b._content = b._content, None
            if a._content is None:
                a._content = theirs
            elif theirs is not None:
                a._content.unite(theirs)

    def content(self) -> Origin:
        """The set of the pointers that lie in memory of this set."""
        root = self.root()
        if root._content is None:
            root._content = Origin()
        return root._content

    def note(self, *facts: Fact) -> None:
        """Note what the kernel does through a pointer of this set, or which memory is in it."""
        self.root()._facts.update(facts)

    def use(self, way: str = "") -> None:
        """Note a load or store; `way` is the atomic if it commutes and nobody uses its result."""
        self.root()._ways.add(way)

    @property
    def adds(self) -> str:
        """The one atomic by which a kernel adds there, if it does nothing else; "" if there is none."""
        ways = self.root()._ways
        return next(iter(ways)) if len(ways) == 1 else ""

    def has(self, fact: Fact) -> bool:
        """Tell whether this was noted of any pointer in this set."""
        return fact in self.root()._facts

    @property
    def near(self) -> bool:
        """Tell whether all known memories of this set are shared or local."""
        return self.has("near") and not self.has("far")


@dataclass(eq=False)
class Variable:
    """A name that has storage."""

    name: str
    type: CType
    slot: int  # where `Team.slots` keeps its value; for `memory`, the pointer to it
    # Lives in memory, since it is an array, shared, constant, or its address is taken.
    memory: bool = False
    const: bool = False
    volatile: bool = False
    unset: bool = False  # declared without a value, so that reads are checked
    thread: bool = False  # for `memory`: it is one thread's own
    parameter: bool = False  # it is one of the kernel's, which are in constant memory
    origin: Origin = field(default_factory=Origin)
    rank: float = 0  # that of the value last assigned to it (`contraction`)
    numbers: Sequence[Any] = ()  # the elements of a constant array, if they are known now
