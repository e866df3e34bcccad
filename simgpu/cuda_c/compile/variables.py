"""Variables, and what their pointers may point into."""

from __future__ import annotations

from dataclasses import dataclass, field

from simgpu.cuda_c.types import CType


class Origin:
    """The set of memories that a pointer may point into; it grows by assignments (Steensgaard's analysis).

    Two pointers that are ever assigned to each other share one set. In the end the set only has to say
    what the kernel does through any of its pointers, and which memories are in it.
    """

    def __init__(self) -> None:
        self._parent: Origin | None = None
        self._written = False
        self._compared = False
        self._signals = False
        self._near = False
        self._far = False
        self._content: Origin | None = None

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
            a._signals |= b._signals
            a._near |= b._near
            a._far |= b._far
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

    def write(self) -> None:
        """Note a store."""
        self.root()._written = True

    def place(self, *, near: bool) -> None:
        """Note memory of a block or a thread (near), or of the device."""
        root = self.root()
        root._near |= near
        root._far |= not near

    def compare(self) -> None:
        """Note an atomicCAS, which makes the plain read in front of its loop harmless."""
        self.root()._compared = True

    def signal(self) -> None:
        """Note an atomic, or a volatile access: what others do meanwhile is expected."""
        self.root()._signals = True

    @property
    def signals(self) -> bool:
        """Tell whether threads may signal each other by memory in this set."""
        return self.root()._signals

    @property
    def near(self) -> bool:
        """Tell whether all known memories of this set are shared or local."""
        root = self.root()
        return root._near and not root._far

    @property
    def compared(self) -> bool:
        """Tell whether atomicCAS works on anything in this set."""
        return self.root()._compared

    @property
    def written(self) -> bool:
        """Tell whether anything writes through a pointer of this set."""
        return self.root()._written


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
