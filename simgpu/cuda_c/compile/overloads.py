"""Which of several functions of one name a call means: that with parameters nearest to its arguments.

What the parameters of a template stand for in a call is found first.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from simgpu.cuda_c import types
from simgpu.cuda_c.compile import type_names
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.type_names import (
    TemplateArguments,
    deduced,
    deduced_array,
    identity,
    param_type,
)
from simgpu.cuda_c.compile.typed import Class, Expr, Given, Scope, TypeBinding
from simgpu.cuda_c.syntax import ast
from simgpu.cuda_c.text.source import Position
from simgpu.errors import KernelCompileError

Functions: TypeAlias = Sequence[ast.FunctionDecl]
_Fitting: TypeAlias = tuple[tuple[int, bool], ast.FunctionDecl, Scope]
_UNLIKELY = 1_000  # for a pointer that becomes another one by a cast alone
_IMPOSSIBLE = 1_000_000  # for arguments that do not fit at all


def bind_template(
    c: Context, function: ast.FunctionDecl, kinds: Sequence[types.CType], given: TemplateArguments | None,
    at: Position, outer: Scope,
) -> Scope | None:  # fmt: skip
    """Bind a function's template parameters for arguments of these types; None if they do not fit."""
    scope = Scope(outer)
    if function.template is None:
        return None if given is not None else scope
    if len(given or []) > len(function.template):
        return None
    type_names.give_arguments(c, function.template, given, scope, at)
    open_names = {p.name for p in function.template} - scope.names.keys()
    unknown = {p.name for p in function.template}
    for param, ctype in zip(function.params, kinds, strict=False):
        with c.seen_from(scope):
            fits = _deduce(c, param, ctype, unknown, scope)
        if not fits and param.type.base in open_names and param.type.base in scope.names:
            return None  # two arguments say different things of one parameter
    type_names.give_defaults(c, function.name, function.template, scope, at)
    return scope


def _deduce(
    c: Context, param: ast.Param, ctype: types.CType, unknown: set[str], scope: Scope
) -> bool:
    dims = param.dims
    if isinstance(ctype, types.ArrayType) and not param.type.reference:
        ctype = types.Pointer(ctype.element, ctype.const)
    if dims and not param.type.reference:  # T rows[][N], which is T (*rows)[N]
        if not isinstance(ctype, types.Pointer):
            return False
        ctype, dims = ctype.target, dims[1:]
    return bool(param.type.nested) or deduced_array(c, param.type, dims, ctype, unknown, scope)


def specialised(
    c: Context, function: ast.FunctionDecl, names: Scope, others: Functions, at: Position
) -> ast.FunctionDecl:
    """The definition that is meant for just these template arguments, or the template's own."""
    if function.template is None:
        return function
    params = function.template
    arguments = [cast(Given, names.names[p.name]) for p in params]
    for other in others:
        whole = other.body is not None and len(other.params) == len(function.params)
        if other.template != [] or not whole:
            continue
        given = other.specialises
        if given is None:  # template <> float f(float): the arguments are told by the parameters
            found, unknown = Scope(c.file.scope), {p.name for p in params}
            with c.seen_from(c.file.scope):
                pairs = zip(function.params, other.params, strict=True)
                kinds = [(mine.type, TypeBinding(param_type(c, theirs))) for mine, theirs in pairs]
                made = TypeBinding(type_names.resolve_type(c, other.returns))
                kinds.append((function.returns, made))
                fits = all(m.nested or deduced(c, m, kind, unknown, found) for m, kind in kinds)
            theirs = [found.names.get(p.name) for p in params]
        else:
            pairs = zip(params, given, strict=False)
            theirs = [type_names.template_argument(c, p.type, g, at, names) for p, g in pairs]
            fits = True
        keys = [identity(t) for t in theirs if isinstance(t, Given)]
        if fits and keys == [identity(a) for a in arguments[: len(theirs)]]:
            return other
    return function


@dataclass(frozen=True)
class Invocation:
    """A call with its compiled arguments; of a member of class `known`, for the object `this` or without."""

    node: ast.CallExpr
    arguments: Sequence[Expr]
    known: Class | None = None
    this: Expr | None = None
    whole: Expr | None = None  # the object that `this` is the base of


def resolve_overload(
    c: Context, call: Invocation, functions: Functions
) -> tuple[ast.FunctionDecl, Scope] | None:
    """The function whose parameters are nearest to these arguments; None if none fits."""
    node = call.node
    bodies = [f for f in functions if f.body is not None]
    if any(f.template == [] for f in bodies):
        # A template may be no more than declared, with a body for some arguments each.
        bodies += [f for f in functions if f.template is not None and f.body is None]
    if not bodies:
        c.fail(node.at, f"'{node.name}' is declared, but has no body in this file")
    fitting = _fitting(c, call, bodies)
    if not fitting:
        refused = next((f.refusal for f in bodies if f.refusal is not None), None)
        if refused is not None:
            raise refused
        return None
    best = min(rank for rank, _, _ in fitting)
    near = [(f, n) for rank, f, n in fitting if rank == best]
    fixed = [argument.place is None or argument.place.const for argument in call.arguments]

    def binds(function: ast.FunctionDecl) -> int:
        # `T&` is for what may be changed, `const T&` for what may not. By value it's the same for both.
        return -sum(
            param.type.reference
            and param.type.itself("const") != still
            and (still or all(other.params[k].type.reference for other, _ in near))
            for k, (param, still) in enumerate(zip(function.params, fixed, strict=False))
        )

    chosen = _best(near, binds)
    # A function whose body comes later is also in the list as a declaration.
    further_on = {len(f.params) for f, _ in chosen if f.body is not None}
    chosen = [(f, n) for f, n in chosen if f.body is not None or len(f.params) not in further_on]
    if all(f.template for f, _ in chosen):
        chosen = _best(chosen, _said)  # f(T*) is meant for fewer types than f(T)
    if len(chosen) > 1:
        c.fail(node.at, f"the call of '{node.name}' is ambiguous: cast the arguments")
    function, names = chosen[0]
    function = specialised(c, function, names, bodies, node.at)
    if function.body is None:
        c.fail(node.at, f"'{node.name}' is declared, but has no body for these types in this file")
    return function, names


def _best(
    found: list[tuple[ast.FunctionDecl, Scope]], mark: Callable[[ast.FunctionDecl], int]
) -> list[tuple[ast.FunctionDecl, Scope]]:
    """Those with the highest mark."""
    return [(f, n) for f, n in found if mark(f) == max(mark(other) for other, _ in found)]


def _said(function: ast.FunctionDecl) -> int:
    """How much a template's parameters say of types: the most specialised of several says most.

    C++ compares them in pairs. Counting says the same wherever one is more specialised than another.
    """
    types = [item for item in ast.parts_of(function.params) if isinstance(item, ast.TypeName)]
    own = {param.name for param in function.template or ()}
    said = sum(len(t.pointers) + (t.base not in own) + t.const * bool(t.pointers) for t in types)
    return said + sum(len(param.dims) for param in function.params)


def _fitting(c: Context, call: Invocation, bodies: Functions) -> list[_Fitting]:
    """The functions that take these arguments: how near they are, and their templates' names."""
    this, node = call.this, call.node
    kinds = [argument.type for argument in call.arguments]
    outer = c.file.scope if call.known is None else call.known.scope
    constant = this is not None and this.place is not None and this.place.const
    fitting: list[_Fitting] = []
    for function in bodies:
        least = sum(p.default is None for p in function.params)
        if not least <= len(kinds) <= len(function.params) or function.template == []:
            continue  # one for certain arguments is found by way of its template
        try:
            names = bind_template(c, function, kinds, node.templates, node.at, outer)
            if names is None:
                continue
            with c.seen_from(names):
                score = _score(c, function, kinds)
                if function.returns.nested:  # such as enable_if<...>::type, if there is one
                    type_names.resolve_type(c, function.returns)
        except KernelCompileError:
            if len(bodies) == 1:
                raise
            continue  # a template that these arguments do not fit
        if score < _IMPOSSIBLE:
            score += function.const != constant if this is not None else 0
            fitting.append(((score, function.template is not None), function, names))
    return fitting


def _score(c: Context, function: ast.FunctionDecl, kinds: list[types.CType]) -> int:
    """How far the arguments are from the parameters."""
    score = 0
    for param, given in zip(function.params, kinds, strict=False):
        target, source = param_type(c, param), given
        if isinstance(source, types.ArrayType):
            source = types.Pointer(source.element, source.const, source.volatile)
        if source == target:
            continue
        if isinstance(target, types.FunctionPointer):
            found = c.rules.address_as(c, source, target, function.at)
            score += _IMPOSSIBLE if found is None else 50 if isinstance(source, types.Struct) else 0
        elif isinstance(source, types.FunctionPointer):
            score += _IMPOSSIBLE
        elif c.derives(source, target):
            score += 5
        elif isinstance(source, types.Struct) or isinstance(target, types.Struct):
            score += 50 if _converts(c, source, target) else _IMPOSSIBLE
        elif isinstance(source, types.Scalar) and isinstance(target, types.Scalar):
            far = _IMPOSSIBLE if types.wants_cast(source, target) else 10
            score += 1 if types.promoted(source) == target and far == 10 else far
        elif isinstance(source, types.Pointer) and isinstance(target, types.Pointer):
            score += _distance(c, source, target)
        else:  # the null pointer, or a truth
            number = isinstance(target, types.Scalar) and target is not types.BOOL
            score += _UNLIKELY if number else 100
    return score


def _distance(c: Context, source: types.Pointer, target: types.Pointer) -> int:
    """How far a pointer is from another one."""
    if types.qualifies(source, target):
        return 1
    void = isinstance(source.target, types.Void) or isinstance(target.target, types.Void)
    base, more = c.derives(source.target, target.target), target.const - source.const
    if not (void or base) or more < 0 or source.volatile > target.volatile:
        return _UNLIKELY
    return 10 * (5 if base else 6) + more


def _converts(c: Context, source: types.CType, target: types.CType) -> bool:
    """Tell whether a struct is converted from or to another type without a cast."""
    into = c.class_of(target)
    for function, scope in [(f, into.scope) for f in into.constructors] if into is not None else ():
        if function.explicit:
            continue
        needed = sum(p.default is None for p in function.params)
        # A conversion of the source's own would be a second one.
        free = not isinstance(source, types.Struct) or function.template is not None
        if not function.params or needed > 1:
            continue
        with c.seen_from(scope):
            wanted = source if free else param_type(c, function.params[0])
        if wanted == source or c.derives(source, wanted):
            return True
    return conversion(c, source, target) is not None


def conversion(
    c: Context, source: types.CType, target: types.CType | None, explicit: bool = False
) -> str | None:
    """The function by which a struct becomes something else; a number or pointer, if it is not said what."""
    found: list[str] = []
    hidden: list[types.CType] = []  # what a more derived struct converts to, too
    known = c.class_of(source)
    while known is not None:
        for name, (function, *_) in known.methods.items():
            if not name.startswith(ast.CONVERSION):
                continue
            with c.seen_from(known.scope):
                made = type_names.resolve_type(c, function.returns)
            reached = target is not None and types.qualifies(made, target)
            if function.explicit and not (explicit and (made == target or reached)):
                continue
            if made == target:
                return name
            if made in hidden:
                continue
            hidden.append(made)
            any_pointer = target in (None, types.BOOL) and isinstance(made, types.Pointer)
            number = isinstance(made, types.Scalar) and isinstance(target, types.Scalar | None)
            if number or any_pointer or reached:
                found.append(name)
        known = known.base
    return found[0] if len(found) == 1 else None
