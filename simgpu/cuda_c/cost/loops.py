"""The effects of an optimising compiler on a loop, as far as counts depend on them.

A loop whose bounds are known is unrolled if it is short: its counter then costs nothing, and an index made of
it is part of an instruction. A value that no turn of a loop changes is computed once, in front of it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from simgpu.cuda_c.syntax import ast
from simgpu.cuda_c.syntax.names import assigned_names

UNROLLED = 32  # turns up to which a loop with known bounds counts as unrolled
MOST = 16  # turns that nvcc 13.0 does at once where a signed counter goes up one by one, as its listings show
PARTLY = 4  # turns that are done at once where their number is not known: LLVM's choice

_TESTS: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "!=": operator.ne,
}  # fmt: skip
_STEPS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda a, b: a // b if b > 0 and a >= 0 else a,
    "<<": lambda a, b: a << b if 0 <= b < 32 else a,
    ">>": lambda a, b: a >> b if b >= 0 else a,
}


def unrolled_turns(node: ast.For, constant: Callable[[ast.Expression], int | None]) -> int | None:
    """The turns of a loop that a compiler unrolls whole; else None. `constant` evaluates an expression."""
    init, test, step = node.init, node.test, node.step
    if not isinstance(init, ast.Declaration) or len(init.items) != 1 or node.after:
        return None
    name, first = init.items[0].name, init.items[0].init
    if first is None or isinstance(first, ast.Braces) or not isinstance(test, ast.Binary):
        return None
    holds = _TESTS.get(test.op)
    known = isinstance(test.left, ast.Name) and test.left.name == name
    if holds is None or not known or name in assigned_names(node.body):
        return None
    value, limit = constant(first), constant(test.right)
    if isinstance(step, ast.Increment):
        target, op, by = step.operand, step.op[0], 1
    elif isinstance(step, ast.Assign) and step.op in _STEPS:
        target, op, by = step.target, step.op, constant(step.value)
    else:
        return None
    if not isinstance(target, ast.Name) or target.name != name or None in (value, limit, by):
        return None
    assert value is not None
    assert limit is not None
    assert by is not None
    for turns in range(UNROLLED + 1):
        if not holds(value, limit):
            return turns
        value = _STEPS[op](value, by)
    return None


def partly_unrolled(
    node: ast.For, fixed: Callable[[ast.Expression], bool], nested: bool = False
) -> bool:
    """Tell whether a compiler does four turns of a loop at once, and so has the loads of four under way.

    LLVM unrolls an innermost loop with one exit if it can tell the number of turns cheaply: for that the
    counter has to go in steps known at compile time. (llvm/lib/Transforms/Utils/LoopUnrollRuntime.cpp)
    With `nested`, loops inside do not count, because they are unrolled whole.
    """
    step = node.step
    if isinstance(step, ast.Assign):
        steady = step.op in ("+", "-") and fixed(step.value)
    else:
        steady = isinstance(step, ast.Increment)
    inner = any(
        isinstance(part, ast.Return)
        or (isinstance(part, ast.For) and not nested)
        or (isinstance(part, ast.Jump) and part.word == "break")
        for part in ast.parts_of(node.body)
    )
    return steady and not inner and not node.after


def rounds_of(turns: float, most: int) -> float:
    """How many pieces of a loop follow each other that does up to `most` turns at once, then fewer."""
    rounds = 0.0
    while most >= PARTLY:
        rounds += turns // most
        turns, most = turns % most, most // 2
    return rounds + turns


def is_plain(node: ast.Expression) -> bool:
    """Tell whether an expression is made of names and numbers only."""
    others = ast.Assign | ast.Call | ast.Increment | ast.Index | ast.Member
    return not any(isinstance(part, others) for part in ast.parts_of(node))
