"""Lambdas: structs that keep what is captured, with one function.

What a lambda only refers to is found by its name, in the scope in which the lambda stands, because functions
are expanded where they are called.
"""

from __future__ import annotations

from simgpu.cuda_c.compile import conversions, places, storage
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.type_names import StructLayout
from simgpu.cuda_c.compile.typed import THIS, Alias, Class, Expr, Scope
from simgpu.cuda_c.compile.variables import Origin, Variable
from simgpu.cuda_c.syntax import ast
from simgpu.cuda_c.types import ArrayType, Struct


def closure(c: Context, node: ast.Lambda, used: bool) -> Expr:
    """Compile a lambda."""
    if c.scope.find(THIS) is not None:
        where = "lambdas in member functions and in lambdas"
        c.unsupported(node.at, f"{where} are not supported: write a struct with an operator()")
    parts: list[Expr] = []
    origin, layout = Origin(), StructLayout(c)
    for name, given in _kept(c, node):
        kept = storage.use_storage(c, places.place_of(c, given))
        if isinstance(kept.type, ArrayType):
            text = f"'{name}' is an array, which a lambda does not copy: write [&{name}]"
            c.unsupported(given.at, text)
        layout.place(name, kept.type, given.at)
        parts += storage.spread(c, kept, kept.type)
        origin.unite(kept.origin)
    name = f"lambda of line {node.at.line}"
    # Each time that it is compiled it is a type of its own: what it refers to may be another variable.
    key = -1 - c.new_slot()
    ctype = Struct(name, tuple(layout.fields), layout.size, layout.align, key=key)
    methods = {"operator()": [node.function]}
    around = Scope(c.scope.outer)
    around.names |= c.scope.names  # but not what is declared below it
    c.file.classes[ctype] = Class(ctype, name, around, methods, {}, None, ctype.size, False)
    return conversions.typed_value(c, ctype, storage.joined(parts), node.at, parts, origin=origin)


def _kept(c: Context, node: ast.Lambda) -> list[tuple[str, ast.Expression]]:
    """The variables of which a lambda keeps the value, and what that is."""
    out = {name: given for name, given in node.captures if given is not None}
    if node.default == "&":
        return list(out.items())
    named = {name for name, _ in node.captures}
    body = list(ast.parts_of(node.function.body))
    own = {param.name for param in node.function.params}
    own |= {part.name for part in body if isinstance(part, ast.Declarator)}
    own |= {p.name for part in body if isinstance(part, ast.Lambda) for p in part.function.params}
    unevaluated: list[ast.SyntaxNode] = [
        part.operand for part in body if isinstance(part, ast.SizeOf)
    ]
    unevaluated += [part.of for part in body if isinstance(part, ast.TypeName) and part.of]
    measured = [id(p) for operand in unevaluated for p in ast.parts_of(operand)]
    for part in body:
        if not isinstance(part, ast.DeclRefExpr | ast.CallExpr) or id(part) in measured:
            continue
        if part.name not in named | own | out.keys():
            found = c.scope.find(part.name)
            # Variables of the block and of the file are shared by all who know their names.
            local = isinstance(found, Variable) and (found.thread or not found.memory)
            if not local and not isinstance(found, Alias):
                continue
            if not node.default:
                c.fail(part.at, f"this lambda does not capture '{part.name}': write [{part.name}]")
            out[part.name] = ast.DeclRefExpr(at=part.at, name=part.name)
    return list(out.items())
