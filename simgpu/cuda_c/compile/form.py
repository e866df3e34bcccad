"""The form: a kernel as typed steps in structured control, between the syntax tree and the closures that run.

To go straight from the syntax tree to closures would be shorter. But a kernel has to be looked at from
several sides before it runs: where threads may wait, which loops only add up, what an optimising compiler
would charge. On the tree, each of these would have to know all of C's spellings and conversions again.

So lowering writes a form, in the order of the source, with functions expanded where they are called: which
operation works on which values, where warps part and come together, and what is stored. Passes read it, and
none of them knows another: `waiting` finds where threads may be set aside, `summing` the loops that only
add up, `cost.walk` what each step is charged. `control` turns it into closures, with what `waiting` and
`summing` have found. So any of these passes may be left out, and a kernel computes the same values.

A step that is a `IRValue` stands for a value. Other steps name it as a part, so that a pass can ask what it
found out about it. How a value is computed, its `Expr` knows, because passes about order and cost needn't;
a `BasicBlock` of straight code has the closure that computes all of it. A block has a `point`, an access a
site, and closures that run report which points and sites they pass (`Team.meter`). So costs can be kept
out of what computes values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias, dataclass_transform

from simgpu.cuda_c.compile.variables import Origin, Variable
from simgpu.cuda_c.lockstep import Mask, Site, Team
from simgpu.cuda_c.syntax import ast
from simgpu.cuda_c.text.source import Position
from simgpu.cuda_c.types import CType, Scalar

Evaluate: TypeAlias = Callable[[Team, Mask], Any]
Execute: TypeAlias = Callable[[Team, Mask], "Mask | None"]


class Price(NamedTuple):
    """The price of a function for a warp; `issued` as a compiler makes it, if not as `Counts` has it."""

    instructions: int = 1
    flops: int = 0
    special: int = 0
    issued: int | None = None


@dataclass(frozen=True)
class Total:
    """`variable += value`, in a register; `run` computes the value, or `factors` those of a fused product."""

    variable: Variable
    value: IRValue
    minus: bool
    plain: bool  # an addition of two numbers of the variable's type
    run: Evaluate
    factors: tuple[Evaluate, Evaluate] | None = None


@dataclass_transform(eq_default=False)
class Instruction:
    """One thing that the kernel does. Each kind of step is a dataclass, and equal to nothing but itself."""

    def __init_subclass__(cls, *, kw_only: bool = False) -> None:
        dataclass(eq=False, kw_only=kw_only)(cls)


# -- values


class IRValue(Instruction):
    """A value that depends on its parts; making it costs nothing."""

    parts: tuple[IRValue, ...] = ()


class Constant(IRValue):
    """A number that is known when the kernel is compiled."""

    value: Any = None


class Read(IRValue, kw_only=True):
    """A variable in a register; not `whole` if only a member of it, or by another name."""

    variable: Variable
    whole: bool = True


class Coordinate(IRValue, kw_only=True):
    """`threadIdx.x` and its like, or warpSize."""

    name: str
    axis: int = 0


class Address(IRValue, kw_only=True):
    """The address of a variable in memory."""

    variable: Variable


class Element(IRValue, kw_only=True):
    """The address of an element: base and index; `array` if the base is an array in its place."""

    array: bool
    volatile: bool


class Followed(IRValue):
    """A value that may be another at any time."""


class Part(IRValue):
    """The address of a member, by that of its struct."""


class Old(IRValue):
    """The value of a variable or a place before it is updated."""


class Result(IRValue):
    """The value of an assignment: the place, and what it is given."""


class Cell(IRValue):
    """The content of an address, before it is loaded."""


class Load(IRValue, kw_only=True):
    """Reading a `Cell`, or working atomically on what a pointer points to (`site` is None)."""

    origin: Origin
    site: int | None = None
    volatile: bool = False


class Exchange(IRValue, kw_only=True):
    """The result of an atomic operation; `load` is None if nothing waits for it."""

    load: Load | None


class Operation(IRValue, kw_only=True):
    """An operator of C on values of one `type`; "fused" is `a * b + c` rounded once.

    `runs` computes each of its parts.
    """

    op: str
    type: CType
    runs: tuple[Evaluate, ...]


class Convert(IRValue, kw_only=True):
    """A number in another type. Free if both types have the same bits, or one is bool."""

    source: Scalar
    target: Scalar
    free: bool = False


class Intrinsic(IRValue, kw_only=True):
    """A built-in function of each thread's own numbers."""

    name: str
    price: Price
    type: CType


# -- effects


class FixedCostOp(Instruction):
    """Something that is done each time that a warp comes by, whatever its operands."""

    price: Price


class Store(Instruction):
    """Writing a value to a place in memory."""

    cell: IRValue
    value: IRValue
    origin: Origin


class RegisterWrite(Instruction):
    """Writing a value to a variable in registers."""

    variable: Variable
    value: IRValue


class ReferenceBind(Instruction):
    """The first value of a variable."""

    variable: Variable
    value: IRValue


class Declare(Instruction):
    """A new name; it has storage if it is that of a variable. A parameter comes with its function."""

    variable: Variable | None
    parameter: bool = False


class AccessOp(Instruction):
    """Here is the load or store of this number; `wide` if a warp moves a matrix with few of them."""

    site: int
    wide: bool = False


class Fence(Instruction):
    """Behind this, memory may hold what other threads wrote; `all_threads` if these wait for each other."""

    all_threads: bool = True
    scope: Literal["block", "device", "system"] = "block"  # who sees what was written before
    acquired: bool = False  # it is a part of the read in front of it


class Sleep(Instruction):
    """Threads sleep for a while."""


class Meet(Instruction):
    """Threads meet here: those of a warp, a block or the grid."""

    by: Literal["warp", "block", "grid"]
    at: Position
    what: str = ""  # the function by which they do
    waits: bool = False  # those that come early can be set aside for the others, as `waiting` finds


# -- control


class BasicBlock(Instruction):
    """Code that a warp runs through without a branch; `point` is its number.

    `run` computes all of it, unless it is done when the kernel is compiled. `declares` if all that it does is
    to give a new variable its first value. `call` is the call that is all of it, but for an assignment of
    the result to a variable; `total` is the sum that it adds to, if that is all it does. `ahead` is what
    lowering puts in front of it (`cuts`).
    """

    point: int
    at: Position
    steps: list[Instruction] = field(default_factory=list[Instruction])
    declares: bool = False
    run: Evaluate | None = None
    call: ast.CallExpr | None = None
    total: Total | None = None
    ahead: list[Instruction] = field(default_factory=list[Instruction])


class Scoped(Instruction):
    """Steps whose names end with them; `ends` are the slots of their variables in memory."""

    steps: list[Instruction] = field(default_factory=list[Instruction])
    ends: list[int] = field(default_factory=list[int])


@dataclass
class Body:
    """The closure of a function that is written out, and the places in it; `control` fills it in."""

    run: Execute | None = None
    places: range = range(0)
    steps: Scoped | None = None  # until then, as a constant is computed while others are compiled


class Expansion(Scoped, kw_only=True):
    """The body of a function, written out at its call; its result is in `slot`, its `return` is `exit`."""

    name: str
    call: ast.CallExpr | None
    slot: int
    exit: int
    body: Body = field(default_factory=Body)
    waits: bool | None = None  # whether threads may wait in it, once `waiting` has been asked


class Branch(Instruction):
    """A branch behind a piece of code, by a test that it computes."""

    head: BasicBlock
    test: IRValue
    then: list[Instruction]
    otherwise: list[Instruction] | None


class Choice(Instruction):
    """`test ? yes : no`, or a call of one of several functions."""

    test: IRValue
    sides: tuple[BasicBlock, ...]


class ShortCircuit(Choice):
    """`&&` or `||`: a right side that some warps do without."""


class Selection(Instruction):
    """A branch into one of several cases, in the order of the source; `break` is the way out `exit`."""

    head: BasicBlock
    subject: IRValue
    exit: int
    values: list[int | None]  # of the cases, None for the default
    cases: list[list[Instruction]]


class Loop(Instruction):
    """Every loop; its first statement stands in front of it."""

    at: Position
    after: bool  # its test is behind the body
    counter: Variable | None  # what its first statement declares
    # `test` and `step`: what is done before and behind each turn. `endless` if the test is missing or
    # always true.
    test: BasicBlock
    condition: IRValue | None  # the value of the test
    endless: bool
    body: list[Instruction]  # one turn
    step: BasicBlock
    # The ways out of `break` and `continue`.
    leave: int
    again: int

    @property
    def parts(self) -> list[Instruction]:
        """All of it, in the order of the source."""
        return [self.test, *self.body, self.step]

    @cached_property
    def below(self) -> list[Instruction]:
        """All of it, and what is inside. It's kept, as passes ask again and again, once a loop is whole."""
        return [*instructions_below(self.parts)]

    @cached_property
    def changed(self) -> list[Variable]:
        """The variables in registers that a turn may assign to, and that were there before."""
        own = {step.variable for step in self.below if isinstance(step, Declare)}
        found = dict.fromkeys(s.variable for s in self.below if isinstance(s, RegisterWrite))
        return [variable for variable in found if variable not in own]

    @cached_property
    def kinds(self) -> set[type[Instruction]]:
        return {*map(type, self.below)}


class Leave(Instruction):
    """A jump to a way out, or the end of the thread; `piece` computes what goes into `slot`."""

    exit: int | None
    piece: BasicBlock | None = None
    slot: int = -1


@dataclass
class Form:
    """A whole kernel; `entry` runs in front of its steps for each batch of blocks."""

    name: str
    parameters: list[Variable]
    entry: list[Evaluate]
    steps: list[Instruction]
    points: int  # how many pieces it has
    sites: list[Site]


def inner(step: Instruction) -> list[list[Instruction]]:
    """The lists of steps directly below one."""
    match step:
        case BasicBlock() | Scoped():
            return [step.steps]
        case Branch():
            return [[step.head], step.then, step.otherwise or []]
        case Selection():
            return [[step.head], *step.cases]
        case Loop():
            return [step.parts]
        case Choice():
            return [[*step.sides]]
        case Leave() if step.piece is not None:
            return [[step.piece]]
        case _:
            return []


# The kinds of steps of which `inner` is not always empty.
_HOLDING = {BasicBlock, Scoped, Expansion, Branch, Selection, Loop, Choice, ShortCircuit, Leave}


def pieces_of(step: Instruction) -> list[BasicBlock]:
    """The pieces that are part of a value."""
    return [*step.sides] if isinstance(step, Choice) else []


def instructions_below(steps: Iterable[Instruction], calls: bool = True) -> Iterator[Instruction]:
    """All steps of a list, and those inside of them; those of functions that are called only with `calls`."""
    todo = [*steps][::-1]
    while todo:
        step = todo.pop()
        yield step
        if step.__class__ in _HOLDING and (calls or not isinstance(step, Expansion)):
            for part in reversed(inner(step)):
                todo += part[::-1]


def has(steps: Iterable[Instruction], *kinds: type[Instruction], calls: bool = True) -> bool:
    """Tell whether there is a step of one of these kinds in a list, as `instructions_below` has it."""
    return any(isinstance(step, kinds) for step in instructions_below(steps, calls))


def nodes_of(*steps: Instruction) -> Iterator[IRValue]:
    """Values and all that they are made of, each once."""
    todo, seen = [step for step in steps if isinstance(step, IRValue)], set[IRValue]()
    while todo:
        node = todo.pop()
        if node not in seen:
            seen.add(node)
            todo += node.parts
            yield node


def read_by(*steps: Instruction) -> set[Variable]:
    """The variables in registers that values are made of."""
    return {node.variable for node in nodes_of(*steps) if isinstance(node, Read)}


def counting(piece: BasicBlock) -> tuple[Variable, str, IRValue] | None:
    """The variable, operator and amount of a piece that does nothing but update a variable in a register."""
    assigned = [step for step in piece.steps if isinstance(step, RegisterWrite)]
    return updated(assigned[0]) if len(assigned) == 1 else None


def updated(step: RegisterWrite) -> tuple[Variable, str, IRValue] | None:
    """The same of a step that computes the new value of a variable from its old one."""
    value = bare(step.value)
    if not isinstance(value, Operation) or len(value.parts) != 2:
        return None
    old, amount = bare(value.parts[0]), value.parts[1]
    read = old.parts[0] if isinstance(old, Old) else old
    same = isinstance(read, Read) and read.variable is step.variable
    return (step.variable, value.op, amount) if same else None


def bare(node: IRValue) -> IRValue:
    """A value without its conversions."""
    while isinstance(node, Convert):
        node = node.parts[0]
    return node


def chosen_by_data(steps: Sequence[Instruction]) -> bool:
    """Tell whether what a kernel loads decides which places it touches: by an address, or by a branch."""
    every = [*instructions_below(steps)]
    given = [step for step in every if isinstance(step, RegisterWrite | ReferenceBind)]
    data = set[Variable]()

    def of_data(*values: Instruction) -> bool:
        loads = Load | Exchange
        nodes = nodes_of(*values)
        return any(
            isinstance(n, loads) or (isinstance(n, Read) and n.variable in data) for n in nodes
        )

    while new := {step.variable for step in given if of_data(step.value)} - data:
        data |= new
    for step in every:
        values: Sequence[Instruction | None] = ()
        match step:
            case Load() | Exchange():
                values = step.parts[:1]
            case Store():  # a place that is updated was loaded before
                values = step.cell.parts if isinstance(step.cell, Load) else [step.cell]
            case Branch(test=test) | Choice(test=test) | Selection(subject=test):
                sides = inner(step) if isinstance(step, Choice) else inner(step)[1:]
                if any(has(side, AccessOp, Leave) for side in sides):
                    values = [test]
            case Loop():
                values = [step.condition]
            case _:
                pass
        if of_data(*filter(None, values)):
            return True
    return False
