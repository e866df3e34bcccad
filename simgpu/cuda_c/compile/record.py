"""The seam between what a kernel computes and what it costs.

Compiling writes a record: a list of steps, in the order of the source, with functions expanded where they
are called. It says which operation works on which values, where warps part and come together, and what
is stored; it says nothing of time. `cost.walk` reads it once, and decides what each step is charged: which
loops are unrolled, what is computed in front of a loop, what a compiler has at hand and does not load again.
Neither side calls the other. They meet in numbers only: a `Piece` of straight code has a `point`, an
access has a site, and the closures that run report which points and sites they pass (`lockstep.meter`).

A step that is a `Node` stands for a value. Other steps name it as a part, so that the walk can ask what it
found out about it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, dataclass_transform

from simgpu.cuda_c.compile.variables import Origin, Variable
from simgpu.cuda_c.syntax.ast import For
from simgpu.cuda_c.types import CType, Scalar


class Price(NamedTuple):
    """The price of a function for a warp; `issued` as a compiler makes it, if not as `Counts` has it."""

    instructions: int = 1
    flops: int = 0
    special: int = 0
    issued: int | None = None


@dataclass_transform(eq_default=False)
class Step:
    """One thing that the kernel does. Each kind of step is a dataclass, and equal to nothing but itself."""

    def __init_subclass__(cls, *, kw_only: bool = False) -> None:
        dataclass(eq=False, kw_only=kw_only)(cls)


# -- values


class Node(Step):
    """A value that depends on its parts; making it costs nothing."""

    parts: tuple[Node, ...] = ()


class Constant(Node):
    """A number that is known when the kernel is compiled."""

    value: Any = None


class Read(Node, kw_only=True):
    """A variable in a register; not `whole` if only a member of it, or by another name."""

    variable: Variable
    whole: bool = True


class Coordinate(Node, kw_only=True):
    """`threadIdx.x` and its like, or warpSize."""

    name: str
    axis: int = 0


class Address(Node, kw_only=True):
    """The address of a variable in memory."""

    variable: Variable


class Element(Node, kw_only=True):
    """The address of an element: base and index; `array` if the base is an array in its place."""

    array: bool
    volatile: bool


class Followed(Node):
    """A value that may be another at any time; `known` if its parts were waited for, as for a reference."""

    known: bool = False


class Cell(Node):
    """The content of an address, before it is loaded."""


class Load(Node, kw_only=True):
    """Reading a `Cell`, or working atomically on what a pointer points to (`site` is None)."""

    origin: Origin | None
    site: int | None = None


class Exchange(Node, kw_only=True):
    """The result of an atomic operation; `load` is None if nothing waits for it."""

    load: Load | None


class Operation(Node, kw_only=True):
    """An operator of C on values of one `type`; "fused" is `a * b + c` rounded once."""

    op: str
    type: CType


class Convert(Node, kw_only=True):
    """A number in another type. Free if both types have the same bits, or one is bool."""

    source: Scalar
    target: Scalar
    free: bool = False


class Function(Node, kw_only=True):
    """A built-in function of each thread's own numbers."""

    price: Price
    type: CType


# -- effects


class Work(Step):
    """Something that is done each time that a warp comes by, whatever its operands."""

    price: Price


class Store(Step):
    """Writing a value to a place in memory."""

    cell: Node
    value: Node


class Assign(Step):
    """Writing a value to a variable in registers."""

    variable: Variable
    value: Node


class Bind(Step):
    """The first value of a variable."""

    variable: Variable
    value: Node


class Declare(Step):
    """A new name; it has storage if it is that of a variable. A parameter comes with its function."""

    variable: Variable | None
    parameter: bool = False


class Access(Step):
    """Here is the load or store of this number."""

    site: int


class Fence(Step):
    """Behind this, memory may hold what other threads wrote."""


# -- control


class Piece(Step):
    """Code that a warp runs through without a branch; `point` is its number.

    `declares` if all that it does is to give a new variable its first value.
    """

    point: int
    line: int
    steps: list[Step] = field(default_factory=list[Step])
    declares: bool = False


class Scoped(Step):
    """Steps whose names end with them."""

    steps: list[Step]


class Branch(Step):
    """A branch at the end of the piece `point`."""

    point: int
    test: Node
    then: list[Step]
    otherwise: list[Step] | None


class ShortCircuit(Step):
    """`&&` or `||`: a right side that some warps do without."""

    test: Node
    rest: Piece


class Choice(Step):
    """`test ? yes : no`, or a call of one of several functions."""

    test: Node
    sides: tuple[Piece, ...]


class Selection(Step):
    """A branch at the end of the piece `point` into one of several cases, in the order of the source."""

    point: int
    subject: Node
    cases: list[list[Step]]


class Loop(Step):
    """Every loop; its first statement stands in front of it."""

    source: For  # as it is written
    counter: Variable | None  # what its first statement declares
    changed: list[Variable]  # what a turn may assign to
    # `test` and `step`: what is done before and behind each turn. `endless` if the test is missing or
    # always true.
    test: Piece
    condition: Node | None  # the value of the test
    endless: bool
    body: list[Step]  # one turn
    step: Piece


@dataclass
class Record:
    """A whole kernel: its steps, and how many points and sites they name."""

    steps: list[Step]
    points: int
    sites: int
