"""What the handlers of built-in functions share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from asyncgpu_tutor.cuda_c.compile.typed import Expr
from asyncgpu_tutor.cuda_c.lockstep.masks import Mask
from asyncgpu_tutor.cuda_c.lockstep.team import Team
from asyncgpu_tutor.cuda_c.syntax.ast import Call
from asyncgpu_tutor.cuda_c.types import DOUBLE, CType, Scalar, spelled

if TYPE_CHECKING:
    from asyncgpu_tutor.cuda_c.compile.lower_calls import LowerCalls

__all__ = ["Handler", "arguments", "elementwise", "need_count", "number", "typed"]

Handler: TypeAlias = "Callable[[LowerCalls, Call, bool], Expr]"


def need_count(lo: LowerCalls, node: Call, *counts: int) -> None:
    """Check the number of arguments."""
    n = len(node.arguments)
    if n not in counts:
        wanted = " or ".join(str(c) for c in counts)
        plural = "" if counts == (1,) else "s"
        lo.fail(node.at, f"{node.name}() takes {wanted} argument{plural}, {n} given")


def arguments(lo: LowerCalls, node: Call, *counts: int) -> list[Expr]:
    """The arguments, lowered; arrays as pointers."""
    need_count(lo, node, *counts)
    return [lo.decay(lo.expression(a)) for a in node.arguments]


def number(lo: LowerCalls, node: Call, expr: Expr) -> Scalar:
    """The type of an argument that must be a number."""
    if not isinstance(expr.type, Scalar):
        lo.fail(expr.at, f"{node.name}() needs a number, not a '{spelled(expr.type)}'")
    return expr.type


def typed(lo: LowerCalls, node: Call, types: Sequence[CType]) -> list[Expr]:
    """The arguments, converted to these types."""
    given = arguments(lo, node, len(types))
    return [lo.convert(e, t, e.at) for e, t in zip(given, types, strict=True)]


def elementwise(
    lo: LowerCalls,
    node: Call,
    args: list[Expr],
    result: Scalar,
    function: Callable[..., Any],
    *,
    instructions: int = 1,
    flops: int = 0,
    special: int = 0,
) -> Expr:
    """A function of each thread's own numbers."""
    lo.cost(instructions, flops, special, of=args, doubles=result is DOUBLE)
    runs = [a.run for a in args]
    if len(runs) == 1:
        one = runs[0]
        out = lo.value(result, lambda t, m: function(one(t, m)), node.at, args)
    elif len(runs) == 2:
        x, y = runs
        out = lo.value(result, lambda t, m: function(x(t, m), y(t, m)), node.at, args)
    else:

        def run(t: Team, m: Mask) -> Any:
            return function(*[r(t, m) for r in runs])

        out = lo.value(result, run, node.at, args)
    return lo.fold(out, args)
