"""The state of the compilation of one kernel: what all functions that lower share.

The functions for expressions call each other in a circle, as C's grammar does: an operand may be a call, a
call holds statements, a statement holds expressions. Their modules do not: a function that needs "any
expression" or "any statement" asks the context, which looks the function up by the node's class, in the
table of `rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NoReturn, TypeVar

from simgpu.cuda_c import types
from simgpu.cuda_c.compile import form
from simgpu.cuda_c.compile.contraction import Ranks
from simgpu.cuda_c.compile.typed import Class, Expr, Scope, Target
from simgpu.cuda_c.compile.variables import Origin, Variable
from simgpu.cuda_c.lockstep import Site
from simgpu.cuda_c.syntax.ast import Block, Expression, FunctionDecl, Statement
from simgpu.cuda_c.syntax.names import Referred, addressed_names
from simgpu.cuda_c.text.preprocessor import Preprocessed
from simgpu.cuda_c.text.source import Position, Source

N = TypeVar("N", bound=form.Instruction)


@dataclass(frozen=True)
class Rules:
    """The functions that compile nodes, by class. Those of expressions are told whether the value is used."""

    expressions: Mapping[type[Expression], Callable[[Context, Any, bool], Expr]]
    statements: Mapping[type[Statement], Callable[[Context, Any], None]]
    # A call whose result is not read yet: it may be a reference.
    call: Callable[[Context, Any], Expr]
    # Calls an operator of the file's own; None if there is none for these operands.
    overloaded: Callable[[Context, str, list[Expr], Position], Expr | None]
    # Makes a struct by its constructor, as a value; or, given a place, there.
    construct: Callable[[Context, Class, list[Expr], Position, Expr | None], Expr]
    by_address: Callable[[Context, Any, Expr], Expr]  # calls a function by its address
    # Converts a struct by its `operator T()`, perhaps an explicit one; to any number, if no type is given.
    become: Callable[[Context, Expr, types.CType | None, Position, bool], Expr | None]
    # The address of an overloaded function or a lambda as one of a type; None if there is none.
    address_as: Callable[[Context, types.CType, types.FunctionPointer, Position], Expr | None]


@dataclass
class Frame:
    """The function whose body is being compiled."""

    function: FunctionDecl | None = None
    # None is the kernel itself, in which `return` ends the thread.
    body: form.Expansion | None = None
    # What any other function returns, and the values. None for `auto` until the first `return`.
    returns: types.CType | None = types.VOID
    addressed: set[str] = field(default_factory=set[str])  # variables whose address is taken in it
    returned: list[Expr] = field(default_factory=list[Expr])
    entered: Position | None = None  # where the kernel calls what is being compiled
    # `breaks` and `continues`: the ways out of the loops around the statement at hand, innermost last.
    breaks: list[int] = field(default_factory=list[int])
    continues: list[int] = field(default_factory=list[int])

    @property
    def called(self) -> Position | None:
        """The place of the call."""
        return self.body.call.at if self.body is not None and self.body.call is not None else None


@dataclass
class File:
    """The facts about the file, for all of its kernels."""

    source: Source  # for messages
    functions: dict[str, list[FunctionDecl]]  # all functions of the file by name
    scope: Scope  # its names
    # Tells which headers are included, and what of the file was set aside.
    text: Preprocessed = field(default_factory=Preprocessed)
    contract: bool = False  # whether a product and a sum become one fused operation
    # The functions, and members of any class, that a call by this name may run.
    called: dict[str, list[FunctionDecl]] = field(default_factory=dict[str, list[FunctionDecl]])
    referred: Referred = frozenset()
    turns: list[int] = field(default_factory=list[int])  # of loops run to compute each constant
    # The functions and names of structs that have more than data.
    classes: dict[types.Struct, Class] = field(default_factory=dict[types.Struct, Class])
    enumerators: dict[types.CType, Scope] = field(default_factory=dict[types.CType, Scope])
    # Functions whose address is taken: an address is a number, from 1 on, in this list.
    targets: list[Target] = field(default_factory=list[Target])
    # For each body that was asked for, by its id: the body, `referred` and what `addressed` says.
    _known: dict[int, tuple[Block, Referred, set[str]]] = field(default_factory=dict[Any, Any])

    @cached_property
    def shows_bits(self) -> bool:
        """Tell whether the file looks at the bits of floats, so that those of a NaN count."""
        return "__float_as_" in self.source.text

    def addressed(self, body: Block) -> set[str]:
        """The variables of a function whose address is taken; the same function is called many times."""
        known = self._known.get(id(body))
        if known is None or known[1] is not self.referred:
            names = addressed_names(body, self.referred)
            known = self._known[id(body)] = body, self.referred, names
        return known[2]


@dataclass
class Numbers:
    """The numbers given so far: to variables, ways out, pieces of code, loads and stores, and ranks."""

    slots: int = 0
    exits: int = 0
    points: int = 0
    local_bytes: int = 0  # of each thread
    sites: list[Site] = field(default_factory=list[Site])
    ranks: Ranks = field(default_factory=Ranks)


@dataclass
class Aims:
    """Facts about the kernel, besides the memories that each of its pointers may point into."""

    follows: bool = False  # whether the kernel has to do with addresses as numbers
    fences: bool = False  # whether it has a fence, so that its threads tell each other something
    asks_who: bool = False  # whether it asks which lanes run together, which nobody promises
    cast: Origin = field(default_factory=Origin)  # the memories of addresses that became integers
    # Pointers to constants that were cast to pointers to what may change, and where.
    recast: list[tuple[Origin, Position]] = field(default_factory=list[tuple[Origin, Position]])
    # What it does with each variable of the file that it names.
    placed: dict[Variable, Origin] = field(default_factory=dict[Variable, Origin])
    # Loads, and what they may read from: those that atomicCAS also works on race by design.
    watched: list[tuple[Site, Origin]] = field(default_factory=list[tuple[Site, Origin]])


@dataclass
class Context:
    """State of the compilation of one kernel."""

    file: File
    rules: Rules  # what compiles which node
    numbers: Numbers = field(default_factory=Numbers)
    # `cuts`: whether a call in which threads wait is put in front of the piece at hand, into `ahead`.
    cuts: bool = False
    # Whether it is being found out if cuts are needed, and whether a loop was found where threads may wait.
    trial: bool = False
    waits: bool = False
    ahead: list[form.Instruction] = field(default_factory=list[form.Instruction])
    aims: Aims = field(default_factory=Aims)
    shared: dict[object, int] = field(default_factory=dict[object, int])  # where each variable ends
    frame: Frame = field(default_factory=Frame)
    # Where the form goes on.
    steps: list[form.Instruction] = field(default_factory=list[form.Instruction])
    # Functions that are being expanded, outermost first, with the arguments of their templates.
    calls: list[object] = field(default_factory=list[object])

    def __post_init__(self) -> None:
        self.scope = self.file.scope

    def fail(self, at: Position, message: str) -> NoReturn:
        self.file.source.fail(at, message)

    def unsupported(self, at: Position, message: str) -> NoReturn:
        self.file.source.unsupported(at, message)

    def elsewhere(self, name: str) -> str:
        """Say where an unknown name may come from: the host's code, or a header that was not found."""
        if name in self.file.text.aside:
            return f": {self.file.text.aside[name]} has it for the host"
        if self.file.text.missing:
            return f"; it may be{self.file.text.not_found}"
        return ""

    def expression(self, node: Expression, used: bool = True) -> Expr:
        """An expression whose value is wanted (or, with `used` False, only its effect)."""
        return self.rules.expressions[type(node)](self, node, used)

    def statement(self, node: Statement) -> None:
        self.rules.statements[type(node)](self, node)

    def type_of(self, node: Expression) -> types.CType:
        """The type of an expression that is not computed, so that its steps are dropped."""
        with self.recording(dropped=True):
            return self.expression(node).type

    def class_of(self, ctype: types.CType) -> Class | None:
        """Look up what belongs to a type, if it is a struct of the file's own."""
        return self.file.classes.get(ctype) if isinstance(ctype, types.Struct) else None

    def constructs(self, ctype: types.CType) -> bool:
        """Tell whether a constructor has to run for a value, or for each element of an array."""
        known = self.class_of(types.element_of(ctype))
        return known is not None and known.constructs

    def derives(self, ctype: types.CType, base: types.CType) -> bool:
        """Tell whether a struct is derived from another one, directly or not."""
        known = self.class_of(ctype)
        while known is not None and known.base is not None:
            known = known.base
            if known.type == base:
                return True
        return False

    def lives_in_memory(self, ctype: types.CType) -> bool:
        """Tell whether a variable of a type cannot be kept in registers."""
        known = self.class_of(ctype)
        return types.needs_memory(ctype) or (known is not None and known.exposes)

    def new_slot(self) -> int:
        """A place for a value in `Team.slots`."""
        self.numbers.slots += 1
        return self.numbers.slots - 1

    def new_exit(self) -> int:
        """A place in `Team.left` for the lanes that leave a loop or a function."""
        self.numbers.exits += 1
        return self.numbers.exits - 1

    def new_piece(self, at: Position) -> form.BasicBlock:
        """A piece of straight code."""
        self.numbers.points += 1
        return form.BasicBlock(self.numbers.points - 1, self.placed(at))

    def placed(self, at: Position) -> Position:
        """A place for messages, which say from where the kernel got there."""
        return at if self.frame.entered is None else replace(at, called=self.frame.entered)

    def new_site(
        self, at: Position, write: bool = False, volatile: bool = False, packed: bool = False,
        wide: bool = False,
    ) -> Site:  # fmt: skip
        """The number of a load or store that is compiled here."""
        site = Site(len(self.numbers.sites), self.placed(at), write, volatile, packed)
        self.numbers.sites.append(site)
        self.steps.append(form.AccessOp(site.index, wide))
        return site

    def note(self, node: N) -> N:
        self.steps.append(node)
        return node

    def work(
        self, instructions: int = 1, flops: int = 0, special: int = 0, issued: int | None = None
    ) -> None:
        """Write into the form that something is done here each time."""
        self.steps.append(form.FixedCostOp(form.Price(instructions, flops, special, issued)))

    def meet(self, by: Literal["warp", "block", "grid"], at: Position, what: str = "") -> form.Meet:
        return self.note(form.Meet(by, at, what))

    @contextmanager
    def recording(
        self, steps: list[form.Instruction] | None = None, dropped: bool = False
    ) -> Generator[list[form.Instruction]]:
        """Write into a list of its own, or `steps`, what is inside; `dropped` if nobody computes it."""
        trial, self.trial = self.trial, self.trial and not dropped
        outer, self.steps = (self.steps, self.ahead), [] if steps is None else steps
        self.ahead = []
        try:
            yield self.steps
        finally:
            self.steps, self.ahead = outer
            self.trial = trial

    @contextmanager
    def detached(self, at: Position) -> Generator[form.BasicBlock]:
        """Write into a piece of straight code what is compiled inside; the caller says where it is."""
        piece = self.new_piece(at)
        with self.recording() as piece.steps:
            yield piece
            piece.ahead = self.ahead

    @contextmanager
    def piece(self, at: Position) -> Generator[form.BasicBlock]:
        """The same, for a piece that is passed next."""
        with self.detached(at) as piece:
            yield piece
        self.steps += [*piece.ahead, piece]

    @contextmanager
    def scoped(self, step: form.Scoped | None = None) -> Generator[Scope]:
        """Names that are declared inside end with it."""
        step = step or form.Scoped()
        with self.seen_from(Scope(self.scope)) as inner, self.recording(step.steps):
            yield inner
            ahead = self.ahead
        self.ahead += ahead
        step.ends += ends(inner)
        self.steps.append(step)

    @contextmanager
    def seen_from(self, scope: Scope) -> Generator[Scope]:
        """Names mean inside what they mean in another scope."""
        outer, self.scope = self.scope, scope
        try:
            yield scope
        finally:
            self.scope = outer


def ends(scope: Scope) -> list[int]:
    """The slots of the variables in memory that end with a scope, even if a pointer to one is kept."""
    return [v.slot for v in scope.names.values() if isinstance(v, Variable) and v.thread]
