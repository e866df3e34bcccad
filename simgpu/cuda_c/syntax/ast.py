"""The nodes of the syntax tree. Types are still as written, because templates fix them later."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast, dataclass_transform

from simgpu.cuda_c.text.source import Position
from simgpu.cuda_c.types import CHAR, Scalar
from simgpu.errors import KernelCompileError

CONVERSION = "operator type "  # with struct and number, the name of `operator float()` and its like


@dataclass_transform(kw_only_default=True)
@dataclass(kw_only=True)
class SyntaxNode:
    """Anything that has a place in the source. Each kind of node is a dataclass."""

    at: Position

    def __init_subclass__(cls) -> None:
        dataclass(kw_only=True)(cls)


# -- types, as written


class Attribute(SyntaxNode):
    """What lays out memory: `packed`, `aligned`, or `alignas`, which must not be less than the type's own.

    `value` are the bytes, or a type that has them; None for `aligned` alone. Or `launch_bounds`, with the
    threads of a block.
    """

    name: str
    value: TypeName | Expression | None = None


class TypeName(SyntaxNode):
    """A type before its declarator."""

    # The spelling of a built-in type, or the name of a struct, typedef or template parameter; "auto" where
    # the initialiser decides.
    base: str
    const: bool = False
    volatile: bool = False
    # The qualifiers of each `*`, inside out.
    pointers: list[set[str]] = field(default_factory=list[set[str]])
    reference: bool = False
    arguments: list[TemplateArgument] | None = None  # of a struct template
    nested: list[str] = field(default_factory=list[str])  # as in `Traits<T>::value_type`
    # Instead of `base`: a pointer to a function, or the target of a pointer to an array.
    function: FunctionType | None = None
    array: Declarator | None = None
    of: Expression | None = None  # of `decltype(...)`: that of which it is the type
    layout: list[Attribute] = field(default_factory=list[Attribute])  # of what is declared with it

    def itself(self, word: str) -> bool:
        """Tell whether a variable of this type, and not only what it points to, is constant or volatile."""
        return word in self.pointers[-1] if self.pointers else bool(getattr(self, word))


class FunctionType(SyntaxNode):
    """`returns (*)(params)`, whose value is the address of a function."""

    returns: TypeName
    params: list[Param]


# -- expressions


class Expression(SyntaxNode):
    """Has a value."""


TemplateArgument: TypeAlias = TypeName | Expression
# The size of an array; None for an empty pair of brackets.
ArrayExtent: TypeAlias = Expression | None


class Literal(Expression):
    """A number, character, `true`, `false`, or `nullptr` (whose type is None)."""

    value: int | float
    type: Scalar | None


class Text(Expression):
    """A string; `value` has a character for each of its bytes."""

    value: str

    def characters(self) -> list[Expression]:
        """The characters of an array that is made of it; the last one is 0."""
        codes = [code - 256 * (code > 127) for code in self.value.encode("latin-1")]
        return [Literal(at=self.at, value=code, type=CHAR) for code in [*codes, 0]]


class DeclRefExpr(Expression):
    """A variable, parameter or constant; or a function, perhaps with explicit template arguments."""

    name: str
    templates: list[TemplateArgument] | None = None
    away: str = ""  # the namespace that would have to be named, if it isn't a local variable


class Unary(Expression):
    """Prefix `- + ! ~ * &`."""

    op: str
    operand: Expression


class Increment(Expression):
    """`++` and `--`, before or behind."""

    op: str
    operand: Expression
    postfix: bool


class Binary(Expression):
    """`left op right`, but not assignments and not the comma."""

    op: str
    left: Expression
    right: Expression


class AssignExpr(Expression):
    """`target = value`, or `target op= value` with `op` set."""

    op: str
    target: Expression
    value: Expression


class Conditional(Expression):
    """`test ? yes : no`."""

    test: Expression
    yes: Expression
    no: Expression


class Comma(Expression):
    """`first, second`."""

    first: Expression
    second: Expression


class Index(Expression):
    """`base[index]`."""

    base: Expression
    index: Expression


class Member(Expression):
    """`base.name`, or `base.owner::name`; an arrow is written as a dereference and a dot."""

    base: Expression
    name: str
    owner: TypeName | None = None
    first: bool = False  # it gets its first value, which it may though it's const


class CallExpr(Expression):
    """A call by name; `templates` are explicit template arguments.

    A member function has an `object`, or an `owner` if it is called as `Type::name()`; any other may have
    the namespace in front of it, or one where it is `away`, and found by its arguments alone.
    """

    name: str
    arguments: list[Expression]
    templates: list[TemplateArgument] | None = None
    object: Expression | None = None
    owner: TypeName | None = None
    namespace: str = ""
    away: str = ""


class Qualified(Expression):
    """`Type::name`, a constant."""

    owner: TypeName
    name: str


class Cast(Expression):
    """`(T)x`, `T(x)`, `static_cast<T>(x)`; `style` is "c" or the keyword."""

    type: TypeName
    operand: Expression
    style: str = "c"


class SizeOf(Expression):
    """`sizeof` of a type or of an expression, or `alignof`."""

    operand: TypeName | Expression
    align: bool = False


class Braces(Expression):
    """`{a, b}`, or with a type in front `T{a, b}` and `T(a, b)`."""

    items: list[Expression]
    type: TypeName | None = None
    names: list[str] = field(default_factory=list[str])  # of `{.a = 1, .b = 2}`


# -- statements


class Statement(SyntaxNode):
    """Does something."""


class Block(Statement):
    """`{ ... }`."""

    body: Sequence[Statement]


class Declarator(SyntaxNode):
    """One name of a declaration; `dims` holds None for an empty pair of brackets."""

    name: str
    type: TypeName
    dims: list[ArrayExtent] = field(default_factory=list["ArrayExtent"])
    init: Expression | None = None


class Declaration(Statement):
    """Variables; `storage` holds the words `static extern __shared__ __constant__` and so on."""

    storage: set[str]
    items: list[Declarator]


class ExpressionStatement(Statement):
    """An expression for its effect."""

    expression: Expression


class If(Statement):
    """`if`, with `constexpr` or without."""

    test: Expression
    then: Statement
    otherwise: Statement | None
    constexpr: bool = False


class For(Statement):
    """Every loop. `after` tests behind the body, as do-while does."""

    init: Statement | None = None
    test: Expression | None = None
    step: Expression | None = None
    body: Statement
    after: bool = False


class RangeFor(Statement):
    """`for (item : array)`; the item has no value of its own yet."""

    item: Declarator
    array: Expression
    body: Statement


class SwitchCase(SyntaxNode):
    """`value:` and the statements up to the next label; value None is `default`."""

    value: Expression | None
    body: list[Statement]


class Switch(Statement):
    """`switch`, its body already cut at the labels."""

    subject: Expression
    cases: list[SwitchCase]


class Jump(Statement):
    """`break` or `continue`."""

    word: str


class Return(Statement):
    """`return`, with a value or without."""

    value: Expression | None


class StructDef(Statement):
    """A struct, class or union, at any level."""

    name: str
    # Data, static constants and types, in order; a union or struct without a name is among them.
    # With its types, and the calls of static_assert in it.
    members: list[Declaration | StructDef | Expression] = field(
        default_factory=list["Declaration | StructDef | Expression"]
    )
    # It is only said to exist: `struct S;`.
    declared: bool = False
    # A constructor is called as the struct is.
    methods: list[FunctionDecl] = field(default_factory=list["FunctionDecl"])
    layout: list[Attribute] = field(default_factory=list[Attribute])
    pack: int = 0  # the most that its members are aligned by, of `#pragma pack`
    # A derived struct begins behind it. Else it may begin in what is left behind the last member, as C++ has
    # it for structs with constructors, say. `hidden` says whether members are private here.
    plain: bool = True
    hidden: bool = False
    # Data and functions, and whether each is private or protected; nothing if it has friends.
    access: dict[str, bool] = field(default_factory=dict[str, bool])
    friends: bool = False
    closed: bool = False  # it keeps to itself what it has of its base
    opened: list[str] = field(default_factory=list[str])  # by `using Base::name`
    template: Template | None = None
    union: bool = False
    # An enumeration is written as a struct that holds nothing but these; `base` is the type that it names.
    enumerators: Declaration | None = None
    # Template arguments for which this is meant.
    specialises: list[TemplateArgument] | None = None
    variables: Declaration | None = None  # what is declared together with it
    base: TypeName | None = None  # the struct that it is derived from


# -- top level


class RefusedType(SyntaxNode):
    """A type that could not be read, and why."""

    name: str
    error: KernelCompileError


class TemplateParam(SyntaxNode):
    """`typename T` (type None) or `int N` (type set)."""

    name: str
    type: TypeName | None
    default: TypeName | Expression | None = None


# The parameters between `template<` and `>`: none for a specialisation.
Template: TypeAlias = list[TemplateParam]


class Param(SyntaxNode):
    """One parameter of a function. Array parameters keep their inner dimensions in `dims`."""

    name: str
    type: TypeName
    dims: list[Expression | None]
    default: Expression | None = None


class FunctionDecl(SyntaxNode):
    """A kernel or a device function; `body` is None for a mere declaration."""

    name: str
    returns: TypeName
    params: list[Param]
    body: Block | None
    kernel: bool = False
    c_linkage: bool = False  # extern "C"
    template: Template | None = None
    specialises: list[TemplateArgument] | None = None
    static: bool = False
    constexpr: bool = False
    explicit: bool = False
    const: bool = False
    defaulted: bool = False  # = default
    # The values that a constructor gives to members before its body.
    initial: list[tuple[str, Braces]] = field(default_factory=list[tuple[str, Braces]])
    # Why the body could not be read; raised when the function is needed.
    refusal: KernelCompileError | None = None
    namespace: tuple[str, ...] = ()  # those around it, outermost first
    bounds: Attribute | None = None  # a kernel's `__launch_bounds__`

    def defines(self, before: FunctionDecl) -> bool:
        """Tell whether this is the function that was declared before."""
        return before.body is None and self.alike(before)

    def alike(self, other: FunctionDecl) -> bool:
        """Tell whether the name and the parameters are the same."""
        heads = [(f.name, f.const, [_outline(f, p) for p in f.params]) for f in (self, other)]
        return heads[0] == heads[1]

    def take_defaults(self, before: FunctionDecl) -> None:
        """Take over what the declaration gives to arguments that are left out."""
        for param, declared in zip(self.params, before.params, strict=True):
            param.default = param.default or declared.default


def _outline(function: FunctionDecl, param: Param) -> object:
    """What tells a parameter from one of another type; one that a template leaves open is its number."""
    open_names = [one.name for one in function.template or ()]
    base: object = param.type.base
    base = open_names.index(base) if base in open_names else base
    return base, len(param.type.pointers), param.type.reference, len(param.dims)


class Lambda(Expression):
    """`[=](int a) { ... }`, its function named as the operator that calls it."""

    # For names that it uses and does not list: `=` as values, `&` by reference, or neither.
    default: str
    # The variables that it lists, with the value that it keeps. None for one that it refers to, which takes
    # nothing, because a function is expanded where it is called.
    captures: list[tuple[str, Expression | None]]
    function: FunctionDecl


@dataclass
class Unit:
    """A whole source; `namespaces` has those around a type or variable, by the identity of its node."""

    functions: list[FunctionDecl] = field(default_factory=list[FunctionDecl])
    order: list[SyntaxNode] = field(default_factory=list[SyntaxNode])
    namespaces: dict[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])


def rename(function: FunctionDecl, names: Mapping[str, str]) -> None:
    """Give the parameters of a function's template the names that they have elsewhere."""
    for part in parts_of([function.params, function.body, function.initial]):
        if isinstance(part, TypeName):
            part.base = names.get(part.base, part.base)
        elif isinstance(part, DeclRefExpr):
            part.name = names.get(part.name, part.name)


def assigning(target: Expression, value: Expression, at: Position) -> ExpressionStatement:
    """`target = value;`."""
    assignment = AssignExpr(at=at, op="", target=target, value=value)
    return ExpressionStatement(at=at, expression=assignment)


# The classes of most fields, which are no nodes and have none.
_PLAIN = {type(None), str, bool, int, float, Position, Scalar}


def parts_of(node: object) -> Iterator[SyntaxNode]:
    """A node of the tree, or several in a list, and all below."""
    todo = [node]
    while todo:
        item = todo.pop()
        if item.__class__ in _PLAIN:  # asked first, because it costs least
            continue
        if isinstance(item, SyntaxNode):
            yield item
            todo += [part for part in vars(item).values() if part.__class__ not in _PLAIN]
        elif isinstance(item, list | tuple):
            todo += cast(Sequence[object], item)
