"""Functions as values: their addresses, which are numbers, and what a number stands for.

The numbers are a program's own, and the same in all its kernels: 1 for the first function whose address
something takes, and so on. The host may read one from a variable and pass it to a kernel of the program.
"""

from __future__ import annotations

from asyncgpu_tutor.cuda_c.compile.context import Context
from asyncgpu_tutor.cuda_c.compile.conversions import constant
from asyncgpu_tutor.cuda_c.compile.templates import bind_template, specialised
from asyncgpu_tutor.cuda_c.compile.type_names import identity, pointer_type
from asyncgpu_tutor.cuda_c.compile.typed import Expr, Number, Target, TypeBinding
from asyncgpu_tutor.cuda_c.syntax.ast import Function, Name
from asyncgpu_tutor.cuda_c.types import FunctionPointer


def function_address(c: Context, node: Name) -> Expr:
    """`name` or `name<...>` of a function, where it is not called: its address."""
    given = node.templates
    functions = [
        f
        for f in c.functions[node.name]
        if f.body is not None and (f.template is not None) == (given is not None)
    ]
    functions = [f for f in functions if f.template is None or f.template.params]
    if not functions:
        c.unsupported(node.at, f"'{node.name}' without its arguments: write {node.name}<...>")
    if len(functions) > 1:
        c.unsupported(node.at, f"'{node.name}' has several forms: give one another name")
    (function,) = functions
    if function.refusal is not None:
        raise function.refusal
    if function.kernel:
        c.unsupported(node.at, "the address of a kernel in device code")
    names = bind_template(c, function, (), given, node.at, c.file_scope)
    if names is None:
        c.fail(node.at, f"'{node.name}' does not take these template arguments")
    function = specialised(c, function, names, c.functions[node.name], node.at)
    bound = [b for b in names.names.values() if isinstance(b, TypeBinding | Number)]
    key = (function.at, *[identity(b) for b in bound])
    number = next((k for k, target in enumerate(c.targets, 1) if target.key == key), 0)
    if not number:
        c.targets.append(Target(key, function, names))
        number = len(c.targets)
    return constant(type_of(c, c.targets[number - 1]), number, node.at)


def type_of(c: Context, target: Target) -> FunctionPointer:
    """The type of a function's address."""
    function = target.function
    if function.returns.base == "auto":
        c.unsupported(function.at, f"the address of '{function.name}', which returns auto")
    with c.seen_from(target.names):
        return pointer_type(c, function.returns, function.params)


def take_addresses(c: Context, names: list[Name]) -> None:
    """Give numbers to the functions of the file that are named somewhere without being called.

    So a call by an address that is not known knows all functions that it may reach, also those whose address
    is taken behind it. Templates are left to the place that names them.
    """
    for node in names:
        plain = [f for f in c.functions.get(node.name, []) if _has_address(f)]
        if len(plain) == 1 and node.templates is None:
            function_address(c, node)


def _has_address(function: Function) -> bool:
    usable = function.body is not None and function.refusal is None and not function.kernel
    return usable and function.template is None and function.returns.base != "auto"
