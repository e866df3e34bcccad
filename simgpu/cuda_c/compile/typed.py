"""The records that the compiler keeps of a name and of an expression.

C decides by types what an operator does, where a conversion stands and whether something may be assigned
to. All of that is known before a kernel runs. So lowering an expression gives an `Expr`, which has the
type, the closure that computes the value for the lanes of a mask, and its node in the form for the passes.
The closure never looks at a type again: it was made for that one. That's why a plain interpreter, which
walks the tree and asks for types at each step, isn't enough. It would ask thousands of times what was
settled once.

A place is apart from a value, because `x = y` needs to know where `x` is and what `y` holds. Registers
aren't memory: they have no address, and no other thread sees them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from simgpu.cuda_c.compile.form import Evaluate, IRValue, Total
from simgpu.cuda_c.compile.variables import Origin, Variable
from simgpu.cuda_c.lockstep import Mask, Site, Team
from simgpu.cuda_c.memory.pointers import Ptr
from simgpu.cuda_c.syntax.ast import Braces, Expression, FunctionDecl, StructDef
from simgpu.cuda_c.text.source import Position
from simgpu.cuda_c.types import ArrayType, CType, FunctionPointer, Struct
from simgpu.errors import KernelCompileError

# Names that no source can have: the object whose function is being compiled, its class, and the object that
# it is only the base of, which CRTP asks for by a cast of `this`.
THIS, INSIDE, WHOLE = "*this", "*class", "*whole"


@dataclass
class RegisterPlace:
    """A variable in registers, or `count` leaves of a struct; `before` is a call that has to run first."""

    variable: Variable
    first: int = 0
    count: int | None = None  # all of it
    const: bool = False
    before: Evaluate | None = None


@dataclass
class MemoryPlace:
    """A place in memory, and its address; `checked` refuses an index that leaves its row of an array."""

    pointer: Callable[[Team, Mask], Ptr]
    node: IRValue
    origin: Origin
    const: bool = False
    volatile: bool = False
    packed: bool = False  # its address may be none that a type of its kind has elsewhere
    checked: Callable[[Team, Mask], Ptr] | None = None

    @property
    def accessed(self) -> Callable[[Team, Mask], Ptr]:
        return self.checked or self.pointer


Place: TypeAlias = RegisterPlace | MemoryPlace


@dataclass
class Expr:
    """An expression, ready to run."""

    type: CType  # of its value; the value of an array is a pointer to its first element
    run: Evaluate  # computes it for the lanes of a mask
    at: Position
    node: IRValue  # its name in the form
    constant: Any = None  # its value as a NumPy scalar, if that is known now
    place: Place | None = None  # where it is, if it may stand on the left of an assignment
    origin: Origin = field(default_factory=Origin)  # of a pointer
    site: Site | None = None  # where it loads, if it does
    text: str | None = None  # of a string literal
    # The factors, if it is a floating-point product that an addition may swallow.
    product: tuple[Evaluate, Evaluate] | None = None
    rank: float = 0  # its place where the operands of a sum are sorted (`contraction`)
    lost: bool = False  # a copy of one of several variables, in the place of a reference to it
    total: Total | None = None  # of a `target += value`


@dataclass
class Number:
    """A name for a number that is known now."""

    expr: Expr

    def at(self, place: Position) -> Expr:
        """The number, where it is named."""
        known = self.expr
        return Expr(known.type, known.run, place, known.node, constant=known.constant)


@dataclass
class Alias:
    """A reference: another name for a place."""

    expr: Expr


@dataclass
class TypeBinding:
    """A name for a type: typedef, struct, or template parameter."""

    type: CType


@dataclass
class Shorthand:
    """A name for something longer: a member of the object whose function is being compiled."""

    node: Expression


@dataclass
class StructTemplate:
    """A name for a template of structs: the template itself, then what it is for certain arguments."""

    definitions: list[StructDef]
    around: Scope | None = None  # of the class that it is a member of
    instances: dict[tuple[object, ...], Struct] = field(
        default_factory=dict[tuple[object, ...], Struct]
    )


# What a parameter of a template stands for.
Given: TypeAlias = Number | TypeBinding | StructTemplate


@dataclass
class Refused:
    """A name for a type that is not supported, and why."""

    error: KernelCompileError


@dataclass(frozen=True, eq=False)
class Target:
    """A function whose address is taken."""

    key: object
    function: FunctionDecl
    names: Scope  # its template's parameters, in the scope in which it stands
    type: FunctionPointer  # the type of its address
    # The kernel (a `Context`) in which a lambda stands, because its names mean nothing elsewhere.
    kernel: object = None


@dataclass(eq=False)
class Class:
    """The functions and names that belong to a struct besides its data."""

    type: Struct
    name: str
    # The names inside of it: its types, its static constants, the arguments of its template.
    scope: Scope
    methods: dict[str, list[FunctionDecl]]  # constructors are called as the struct is
    initial: dict[str, Expression]  # values that members get if nobody gives them others
    # The struct that it is derived from. An object begins with that part, a field without a name.
    base: Class | None
    end: int  # where the members of a derived struct may begin, which is behind all of it if it is `plain`
    plain: bool
    # `template` and `arguments`: of an instance of a template.
    template: StructTemplate | None = None
    arguments: Sequence[Given] = ()
    parts: bool = False  # whether making one of its members takes more than values
    private: Collection[str] = ()  # members that functions of the file may not use

    @property
    def constructors(self) -> list[FunctionDecl]:
        return self.methods.get(self.name, [])

    def having(self, name: str) -> Class | None:
        """The nearest class of its line that has a function of this name."""
        if name in self.methods:
            return self
        return None if self.base is None else self.base.having(name)

    @property
    def exposes(self) -> bool:
        """Tell whether a function gives out a reference to a member, so that objects live in memory."""
        return (self.base is not None and self.base.exposes) or any(
            f.returns.reference and f.returns.base != self.name and not f.returns.const
            for functions in self.methods.values()
            for f in functions
        )

    @property
    def constructs(self) -> bool:
        """Tell whether a constructor has to run to make one."""
        return self.parts or bool(self.initial or self.constructors)

    def zeroes(self, given: Sequence[object]) -> bool:
        """Tell whether `S{}` is all zero first, as nobody wrote what its constructor does."""
        made = self.constructors
        return not given and (not made or any(function.defaulted for function in made))

    def takes_over(self, given: Expression | None) -> bool:
        """Tell whether a constructor takes this, rather than each member a value of the list."""
        items = given.items if isinstance(given, Braces) else []
        if isinstance(given, Braces) and given.names:
            return bool(self.constructors)
        nested = any(isinstance(item, Braces) and item.type is None for item in items)
        nested |= any(isinstance(field.type, ArrayType) for field in self.type.fields[: len(items)])
        return bool(self.constructors) or (self.constructs and not nested)


Binding: TypeAlias = (
    Variable | Number | Alias | TypeBinding | Shorthand | StructTemplate | Refused | Class
)


class Scope:
    """Names, innermost first."""

    def __init__(self, outer: Scope | None = None) -> None:
        self.outer = outer
        self.names: dict[str, Binding] = {}

    def find(self, name: str) -> Binding | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return None

    def find_type(self, name: str) -> Binding | None:
        """As `find`, where something else by this name hides none, as behind the word struct."""
        found = self.names.get(name)
        if isinstance(found, TypeBinding | StructTemplate | Refused) or self.outer is None:
            return found
        return self.outer.find_type(name)

    def outermost(self) -> Scope:
        """The names of the file."""
        scope = self
        while scope.outer is not None:
            scope = scope.outer
        return scope

    def visible(self) -> set[str]:
        """All names that mean something here."""
        outer: set[str] = set() if self.outer is None else self.outer.visible()
        return outer | self.names.keys()
