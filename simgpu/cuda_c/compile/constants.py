"""Constants that a constexpr function computes: it is run, by one thread, while the file is compiled."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.conversions import constant, convert
from simgpu.cuda_c.compile.typed import Alias, Expr, Number
from simgpu.cuda_c.compile.variables import Variable
from simgpu.cuda_c.lockstep import Team, varies
from simgpu.cuda_c.lockstep.team import InterpreterLimits, LaunchState
from simgpu.cuda_c.memory.addresses import Addresses
from simgpu.cuda_c.syntax import ast
from simgpu.cuda_c.types import ArrayType, Pointer, Scalar, element_of
from simgpu.errors import KernelFault

_NUMBERS = ast.Literal | ast.Qualified | ast.TypeName
_PLAIN = _NUMBERS | ast.Binary | ast.Unary | ast.Cast | ast.Conditional
_RUNNING = ("threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize")  # no constants in C++
_MOST_TURNS = 10_000, 100_000  # of loops, in one constant and in all


class _Unpaid:
    exact_left = 0
    barriers = 0

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *given: None


def evaluated(c: Context, expr: Expr, node: ast.Expression) -> Expr:
    """An expression as a number, if nothing but constants and constexpr functions is in it."""
    if expr.constant is not None or not isinstance(expr.type, Scalar):
        return expr
    plain = _with_numbers(c, node)
    if plain is not node:
        return evaluated(c, convert(c, c.expression(plain), expr.type, expr.at), plain)
    if not all(_constant(c, part) for part in ast.parts_of(node)):
        return expr
    found = computed_early(c, [expr])
    return expr if found is None else constant(expr.type, found[0], expr.at)


def computed_early(c: Context, exprs: list[Expr]) -> list[Any] | None:
    """The values of expressions, which one thread computes; None if it fails."""
    one, unpaid = (1, 1, 1), cast("Any", _Unpaid())
    limits = InterpreterLimits(step_budget=min(_MOST_TURNS[0], _MOST_TURNS[1] - sum(c.file.turns)))
    given = unpaid, 0, lambda: Addresses(lambda number: None), unpaid
    launch = LaunchState("a constant", c.file.source, one, one, limits, *given)
    team = Team(launch, np.zeros(1, np.int64), c.numbers.slots, c.numbers.exits)
    try:
        with np.errstate(all="ignore"):
            values = [expr.run(team, team.full) for expr in exprs]
    except KernelFault:
        return None
    finally:
        c.file.turns.append(team.steps)
    return [value[0] if varies(value) else value for value in values]


def known_elements(variable: Variable, values: Sequence[Expr]) -> list[Any]:
    """The elements of a constant array of numbers, if they are known."""
    numbers = [value.constant for value in values]
    known = variable.const and isinstance(element_of(variable.type), Scalar)
    return numbers if known and all(number is not None for number in numbers) else []


def _with_numbers(c: Context, node: ast.Expression) -> ast.Expression:
    """An expression in which each element of a constant array that is known now is a number."""
    if isinstance(node, ast.Index):
        indices, base = list[ast.Expression](), node
        while isinstance(base, ast.Index):
            indices, base = [base.index, *indices], base.base
        found = c.scope.find(base.name) if isinstance(base, ast.DeclRefExpr) else None
        place, kind = 0, found.type if isinstance(found, Variable) and found.numbers else None
        for index in indices if isinstance(kind, ArrayType) else ():
            number = evaluated(c, c.expression(index), index).constant
            if not isinstance(kind, ArrayType) or number is None or not 0 <= number < kind.length:
                return node
            place, kind = place * kind.length + int(number), kind.element
        if isinstance(found, Variable) and isinstance(kind, Scalar):
            return ast.Literal(at=node.at, value=found.numbers[place], type=kind)
        return node
    changed: dict[str, Any] = {}
    for name, part in vars(node).items():
        parts = cast("list[Any]", part if isinstance(part, list) else [part])
        new = [_with_numbers(c, p) if isinstance(p, ast.Expression) else p for p in parts]
        if any(one is not old for one, old in zip(new, parts, strict=True)):
            changed[name] = new if isinstance(part, list) else new[0]
    return replace(node, **changed) if changed else node


def refuse_running(c: Context, item: ast.Declarator) -> None:
    """Refuse a value for a constexpr variable that is known only when the kernel runs."""
    parts = list(ast.parts_of(item.init))
    # What is measured or asked for its size is not read.
    named = [part.operand for part in parts if isinstance(part, ast.SizeOf)]
    objects = [part.object for part in parts if isinstance(part, ast.CallExpr)]
    unread = {id(part) for part in ast.parts_of([named, objects])}
    for part in (part for part in parts if id(part) not in unread):
        if isinstance(part, ast.CallExpr):
            own = [f for f in c.file.called.get(part.name, ()) if f.at.line > 0]
            if own and not any(function.constexpr for function in own):
                text = f"'{part.name}' is no constexpr function, and '{item.name}' is constexpr"
                c.fail(part.at, f"{text}: make the function constexpr, or the variable const")
        elif isinstance(part, ast.DeclRefExpr):
            found = c.scope.find(part.name)
            read = found.expr if isinstance(found, Alias) else found
            runs = found is None and part.name in _RUNNING
            if isinstance(read, Variable | Expr) and isinstance(read.type, Scalar | Pointer):
                # A constant whose address is taken is in memory.
                constant = isinstance(read, Variable) and read.const
                kept = isinstance(read, Variable) and read.memory
                runs = not (constant and (kept or isinstance(read.type, Pointer)))
            if runs:
                text = f"'{part.name}' is known only when the kernel runs"
                c.fail(part.at, f"{text}, and '{item.name}' is constexpr: make it const")


def _constant(c: Context, part: ast.SyntaxNode) -> bool:
    if isinstance(part, ast.CallExpr):
        known = c.file.functions if part.owner is None else c.file.called  # with members
        functions = known.get(part.name, [])
        return bool(functions) and all(function.constexpr for function in functions)
    if isinstance(part, ast.DeclRefExpr):
        return isinstance(c.scope.find(part.name), Number)
    return isinstance(part, _PLAIN)
