"""Helpers that the handlers of built-in functions share.

A handler compiles a call: it takes the context, the call, and whether its value is used. To add a function,
write its handler, or a call of a maker such as `by_thread`, into the table of the file of its kind: that
says what it computes, and by `Price` or `Context.work` what a warp pays for it.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.conversions import computed, convert, decay, fold, nodes, typed_value
from simgpu.cuda_c.compile.form import Fence, Intrinsic, Price
from simgpu.cuda_c.compile.typed import Evaluate, Expr
from simgpu.cuda_c.syntax.ast import CallExpr
from simgpu.cuda_c.text.source import Position
from simgpu.cuda_c.types import CType, Scalar, spelled

BuiltinHandler: TypeAlias = Callable[[Context, CallExpr, bool], Expr]
_Maker: TypeAlias = Callable[[list[Evaluate], Position], Evaluate]  # of arguments, and where

_USUAL = Price()


def fenced(handler: BuiltinHandler, *, behind: bool = True) -> BuiltinHandler:
    """Make a meeting of threads: what was loaded before it is loaded again, with `behind` behind it too."""

    def handle(c: Context, node: CallExpr, used: bool) -> Expr:
        c.steps.append(Fence(all_threads=behind))
        out = handler(c, node, used)
        if behind:
            c.steps.append(Fence())
        return out

    return handle


def need_count(c: Context, node: CallExpr, *counts: int) -> None:
    """Check the number of arguments."""
    n = len(node.arguments)
    if n not in counts:
        wanted = " or ".join(str(c) for c in counts)
        plural = "" if counts == (1,) else "s"
        c.fail(node.at, f"{node.name}() takes {wanted} argument{plural}, {n} given")


def arguments(c: Context, node: CallExpr, *counts: int) -> list[Expr]:
    """The arguments, compiled; arrays as pointers."""
    need_count(c, node, *counts)
    return [decay(c.expression(a)) for a in node.arguments]


def number_argument(c: Context, node: CallExpr, expr: Expr) -> Scalar:
    """The type of an argument that must be a number."""
    if not isinstance(expr.type, Scalar):
        c.fail(expr.at, f"{node.name}() needs a number, not a '{spelled(expr.type)}'")
    return expr.type


def typed(c: Context, node: CallExpr, types: Sequence[CType]) -> list[Expr]:
    """The arguments, converted to these types."""
    given = arguments(c, node, len(types))
    return [convert(c, e, t, e.at) for e, t in zip(given, types, strict=True)]


def elementwise(
    c: Context, node: CallExpr, args: list[Expr], result: Scalar, function: Callable[..., Any],
    price: Price = _USUAL,
) -> Expr:  # fmt: skip
    """A function of each thread's own numbers."""
    done = c.note(Intrinsic(nodes(args), name=node.name, price=price, type=result))
    runs = [a.run for a in args]
    if len(runs) == 1:
        one = runs[0]
        run: Evaluate = lambda t, m: function(one(t, m))
    elif len(runs) == 2:
        x, y = runs
        run = lambda t, m: function(x(t, m), y(t, m))
    else:
        run = lambda t, m: function(*[r(t, m) for r in runs])
    if any(isinstance(a.type, Scalar) and a.type.is_float for a in args):
        run = computed(c, result, run)
    return fold(typed_value(c, result, run, node.at, args, node=done), args)


def by_value(
    types: Sequence[CType], result: CType, function: Callable[..., Any], price: Price = _USUAL
) -> BuiltinHandler:
    """A function of arguments of these types, of which some are structs, or its value is."""
    make: _Maker = lambda runs, at: lambda t, m: function(*[r(t, m) for r in runs])
    return _with_price(types, result, make, price)


def by_team(
    types: Sequence[CType], result: CType, does: Callable[..., Any], price: Price = _USUAL
) -> BuiltinHandler:
    """What the lanes of a mask do: a function of the team, the mask, the place, and these arguments."""
    make: _Maker = lambda runs, at: lambda t, m: does(t, m, at, *[r(t, m) for r in runs])
    return _with_price(types, result, make, price)


def _with_price(
    types: Sequence[CType], result: CType, make: _Maker, price: Price
) -> BuiltinHandler:
    def handle(c: Context, node: CallExpr, used: bool) -> Expr:
        args = typed(c, node, types)
        if price.instructions:
            c.work(*price)
        return typed_value(c, result, make([a.run for a in args], node.at), node.at, args)

    return handle


def by_thread(
    types: Sequence[Scalar], result: Scalar, function: Callable[..., Any], price: Price = _USUAL
) -> BuiltinHandler:
    """`elementwise` of arguments of these types: the handler of most functions."""

    def handle(c: Context, node: CallExpr, used: bool) -> Expr:
        return elementwise(c, node, typed(c, node, types), result, function, price)

    return handle
