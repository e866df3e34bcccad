"""Functions as values: their addresses, which are numbers, and what a number stands for.

The numbers are a program's own, and the same in all its kernels: 1 for the first function whose address
something takes, and so on. The host may read one from a variable and pass it to a kernel of the program.
"""

import numpy as np

from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.conversions import constant
from simgpu.cuda_c.compile.form import IRValue
from simgpu.cuda_c.compile.overloads import bind_template, specialised
from simgpu.cuda_c.compile.type_names import identity, pointer_type, resolve_type
from simgpu.cuda_c.compile.typed import Expr, Number, Scope, Target, TypeBinding
from simgpu.cuda_c.syntax.ast import DeclRefExpr, FunctionDecl
from simgpu.cuda_c.text.source import Position
from simgpu.cuda_c.types import CType, FunctionPointer, overloaded_function
from simgpu.errors import KernelCompileError


def function_address(c: Context, node: DeclRefExpr) -> Expr:
    """`name` or `name<...>` of a function, where it is not called: its address."""
    given = node.templates
    functions = [f for f in c.file.functions[node.name] if f.body is not None and f.template != []]
    if given is not None:
        functions = [f for f in functions if f.template is not None]
    if len(functions) != 1 or (functions[0].template is not None and given is None):
        if given is not None or not functions:
            c.unsupported(node.at, f"'{node.name}' has several forms: give one another name")
        kind = overloaded_function(node.name)
        return Expr(kind, lambda t, m: np.uint64(0), node.at, c.note(IRValue()))
    (function,) = functions
    if function.kernel:
        c.unsupported(node.at, "the address of a kernel in device code")
    names = bind_template(c, function, (), given, node.at, c.file.scope)
    if names is None:
        c.fail(node.at, f"'{node.name}' does not take these template arguments")
    function = specialised(c, function, names, c.file.functions[node.name], node.at)
    if function.returns.base == "auto":
        c.unsupported(function.at, f"the address of '{function.name}', which returns auto")
    return _address(c, function, names, _type_of(c, function, names), node.at)


def address_as(c: Context, source: CType, target: FunctionPointer, at: Position) -> Expr | None:
    """Find the function of a type that has an overloaded name, or that a lambda without captures is."""
    known = c.class_of(source)
    if known is not None:
        functions = [f for f in known.methods.get("operator()", []) if f.static]
    elif isinstance(source, FunctionPointer) and source.overloaded:
        functions = c.file.functions[source.overloaded]
    else:
        return None
    found: list[tuple[FunctionDecl, Scope]] = []
    outer = c.file.scope if known is None else known.scope
    for function in functions:
        fits = len(function.params) == len(target.params) and function.template != []
        if function.body is None or function.kernel or not fits:
            continue
        try:
            names = bind_template(c, function, target.params, None, at, outer)
            if names is not None and _type_of(c, function, names, target.returns) == target:
                found.append((function, names))
        except KernelCompileError:
            continue  # a template that these types do not fit
    found = [f for f in found if f[0].template is None] or found
    if len(found) != 1:
        return None
    ((function, names),) = found
    if known is None:
        function = specialised(c, function, names, functions, at)
    return _address(c, function, names, target, at, None if known is None else source)


def _address(
    c: Context, function: FunctionDecl, names: Scope, ctype: FunctionPointer, at: Position,
    closure: CType | None = None,
) -> Expr:  # fmt: skip
    """The number of a function, or of one of a lambda's type."""
    if function.refusal is not None:
        raise function.refusal
    bound = [b for b in names.names.values() if isinstance(b, TypeBinding | Number)]
    key = (function.name, function.at, closure, ctype, *[identity(b) for b in bound])
    kernel = None if closure is None else c
    for number, target in enumerate(c.file.targets, 1):
        if target.key == key and target.kernel is kernel:
            return constant(ctype, number, at)
    c.file.targets.append(Target(key, function, names, ctype, kernel))
    return constant(ctype, len(c.file.targets), at)


def _type_of(
    c: Context, function: FunctionDecl, names: Scope, automatic: CType | None = None
) -> FunctionPointer:
    """The type of a function's address; `automatic` is what one returns that does not say it."""
    with c.seen_from(names):
        returns = automatic if function.returns.base == "auto" else None
        return pointer_type(c, returns or resolve_type(c, function.returns), function.params)


def take_addresses(c: Context, names: list[DeclRefExpr]) -> None:
    """Give numbers to the functions of the file that are named somewhere without being called."""
    # So a call by an address that is not known knows all functions that it may reach, also those whose
    # address is taken behind it. Templates are left to the place that names them.
    for name in {node.name: node for node in names if node.templates is None}.values():
        for function in c.file.functions.get(name.name, []):
            usable = function.body is not None and function.refusal is None and not function.kernel
            if usable and function.template is None and function.returns.base != "auto":
                scope = Scope(c.file.scope)
                _address(c, function, scope, _type_of(c, function, scope), name.at)
