"""Templates of functions: what their parameters stand for in a call."""

from __future__ import annotations

from collections.abc import Sequence

from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.conversions import constant
from simgpu.cuda_c.compile.type_names import (
    TemplateArguments,
    deduced,
    give_arguments,
    give_defaults,
    identity,
    param_type,
    resolve_type,
    template_argument,
)
from simgpu.cuda_c.compile.typed import Given, Number, Scope, TypeBinding
from simgpu.cuda_c.syntax.ast import DeclRefExpr, FunctionDecl, Param
from simgpu.cuda_c.text.source import Position
from simgpu.cuda_c.types import INT, ArrayType, CType, Pointer


def bind_template(
    c: Context, function: FunctionDecl, types: Sequence[CType], given: TemplateArguments | None,
    at: Position, outer: Scope,
) -> Scope | None:  # fmt: skip
    """Bind a function's template parameters for arguments of these types; None if they do not fit."""
    scope = Scope(outer)
    if function.template is None:
        return None if given else scope
    if len(given or []) > len(function.template):
        return None
    give_arguments(c, function.template, given, scope, at)
    open_names = {p.name for p in function.template} - scope.names.keys()
    unknown = {p.name for p in function.template}
    for param, ctype in zip(function.params, types, strict=False):
        with c.seen_from(scope):
            fits = _deduce(c, param, ctype, unknown, scope)
        if not fits and param.type.base in open_names and param.type.base in scope.names:
            return None  # two arguments say different things of one parameter
    give_defaults(c, function.name, function.template, scope, at)
    return scope


def _deduce(c: Context, param: Param, ctype: CType, unknown: set[str], scope: Scope) -> bool:
    if param.dims and param.type.reference:  # T (&values)[N]
        for dim in param.dims:
            if not isinstance(ctype, ArrayType):
                return False
            if isinstance(dim, DeclRefExpr) and dim.name in unknown:
                length = Number(constant(INT, ctype.length, param.at))
                scope.names.setdefault(dim.name, length)
            ctype = ctype.element
    elif isinstance(ctype, ArrayType) and not param.type.reference:
        ctype = Pointer(ctype.element, ctype.const)
    return bool(param.type.nested) or deduced(c, param.type, TypeBinding(ctype), unknown, scope)


def specialised(
    c: Context, function: FunctionDecl, names: Scope, others: Sequence[FunctionDecl], at: Position
) -> FunctionDecl:
    """The definition that is meant for just these template arguments, or the template's own."""
    if function.template is None:
        return function
    params = function.template
    bound = [names.names[p.name] for p in params]
    arguments = [b for b in bound if isinstance(b, Given)]
    for other in others:
        whole = other.body is not None and len(other.params) == len(function.params)
        if other.template != [] or not whole:
            continue
        given = other.specialises
        if given is None:  # template <> float f(float): the arguments are told by the parameters
            found, unknown = Scope(c.file.scope), {p.name for p in params}
            with c.seen_from(c.file.scope):
                pairs = zip(function.params, other.params, strict=True)
                types = [(mine.type, TypeBinding(param_type(c, theirs))) for mine, theirs in pairs]
                types += [(function.returns, TypeBinding(resolve_type(c, other.returns)))]
                fits = all(m.nested or deduced(c, m, kind, unknown, found) for m, kind in types)
            theirs = [found.names.get(p.name) for p in params]
        else:
            pairs = zip(params, given, strict=False)
            theirs, fits = [template_argument(c, p.type, g, at, names) for p, g in pairs], True
        keys = [identity(t) for t in theirs if isinstance(t, Given)]
        if fits and keys == [identity(a) for a in arguments[: len(theirs)]]:
            return other
    return function
