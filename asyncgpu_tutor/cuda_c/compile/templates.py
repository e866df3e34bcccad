"""Templates of functions: what their parameters stand for in a call."""

from __future__ import annotations

from asyncgpu_tutor.cuda_c.compile.context import Context
from asyncgpu_tutor.cuda_c.compile.conversions import constant
from asyncgpu_tutor.cuda_c.compile.type_names import integer_constant, resolve
from asyncgpu_tutor.cuda_c.compile.typed import Number, Scope, TypeBinding
from asyncgpu_tutor.cuda_c.syntax.ast import Call, Expression, Function, TypeName
from asyncgpu_tutor.cuda_c.text.source import Position
from asyncgpu_tutor.cuda_c.types import Array, CType, Pointer, Scalar


def bind_template(c: Context, function: Function, types: list[CType], node: Call) -> Scope | None:
    """The names of a function's template parameters, for a call with arguments of these types."""
    scope = Scope(c.file_scope)
    if function.template is None:
        return None if node.templates else scope
    given = list(node.templates or [])
    for param, argument in zip(function.template.params, given, strict=False):
        scope.names[param.name] = template_argument(c, param.type, argument, node.at)
    unknown = {p.name for p in function.template.params if p.type is None}
    for param, ctype in zip(function.params, types, strict=False):
        if param.type.base in unknown and param.type.base not in scope.names:
            _deduce(param.type, ctype, scope)
    return template_defaults(c, function, scope, node.at)


def _deduce(name: TypeName, ctype: CType, scope: Scope) -> None:
    for _ in name.pointers:
        if isinstance(ctype, Pointer):
            ctype = ctype.target
        elif isinstance(ctype, Array):
            ctype = ctype.element
        else:
            return
    if isinstance(ctype, Array):
        ctype = Pointer(ctype.element, ctype.const)
    scope.names[name.base] = TypeBinding(ctype)


def template_argument(
    c: Context, kind: TypeName | None, given: TypeName | Expression, at: Position
) -> TypeBinding | Number:
    """What a parameter stands for: a type if `kind` is None, or a number of that type."""
    if kind is None:
        if not isinstance(given, TypeName):
            c.fail(at, "this template wants a type here")
        return TypeBinding(resolve(c, given))
    if isinstance(given, TypeName):
        c.fail(given.at, "this template wants a number here")
    ctype = resolve(c, kind)
    number = integer_constant(c, given, "a template argument")
    assert isinstance(ctype, Scalar)
    return Number(constant(ctype, number, at))


def template_defaults(c: Context, function: Function, scope: Scope, at: Position) -> Scope:
    """Give the parameters that are not in `scope` yet their default values."""
    assert function.template is not None
    for param in function.template.params:
        if param.name in scope.names:
            continue
        if param.default is None:
            c.fail(
                at,
                f"the template parameter '{param.name}' of '{function.name}' is not known: "
                f"write {function.name}<...>(...)",
            )
        with c.seen_from(scope):
            scope.names[param.name] = template_argument(c, param.type, param.default, at)
    return scope
