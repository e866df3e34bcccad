"""Calls in which threads wait, put in front of the expression that they stand in.

Threads are set aside at a piece of code, which they enter again as a whole (`waiting`). In `x[i] =
next(queue) + last(flags)`, threads that wait in `last` would call `next` once more when they come back. So
a call in which threads wait has to be a piece of its own, in front of the expression: `auto r =
last(flags)`, and then `r` stands in its place. What is to its left in a sum or product is computed before
it, as compilers do. A right side of `&&` goes into a branch, because it may not run at all, and the test of
a loop into its body, because it runs each time.

To cut every expression like this would be simpler, and would cost each kernel more steps and slots, and its
loops their chance to be summed side by side. So a kernel is lowered without cuts first. If a wait inside of
an expression turns up (`NeedsCuts`), what was lowered is dropped, and the kernel is lowered a second time,
with them.
"""

from typing import Any

from simgpu.cuda_c.compile import conversions, form, rooms, waiting
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.storage import put
from simgpu.cuda_c.compile.typed import Evaluate, Expr
from simgpu.cuda_c.lockstep import Mask, Team
from simgpu.cuda_c.memory import access
from simgpu.cuda_c.syntax.ast import CallExpr
from simgpu.cuda_c.text.source import Position
from simgpu.cuda_c.types import CType, Pointer, Scalar, Void


class NeedsCuts(Exception):
    """Threads wait within an expression, so that the kernel has to be lowered with `cuts`."""


def try_out(c: Context, piece: form.BasicBlock) -> None:
    """Stop at the first piece that needs cuts, as what is lowered until then is dropped."""
    if c.trial and c.waits and waiting.waits_apart(piece):
        raise NeedsCuts


def cut_calls(c: Context, mark: int, body: form.Expansion, run: Evaluate, void: bool) -> Evaluate:
    """Put a call whose steps begin at `mark` in front, if threads wait in it; return what has its result."""
    if not c.cuts or not waiting.waits_within(body):
        return run
    assert body.call is not None
    return _in_front(c, mark, run, void, body.call.at, body.call)


def cut_meeting(c: Context, mark: int, out: Expr) -> Expr:
    """Put a function of a warp, whose steps begin at `mark`, in front, since lanes may wait in it."""
    if not c.cuts or not any(isinstance(s, form.Meet) and s.by == "warp" for s in c.steps[mark:]):
        return out
    run = _in_front(c, mark, out.run, isinstance(out.type, Void), out.at)
    return conversions.typed_value(c, out.type, run, out.at, [out])


def _in_front(
    c: Context, mark: int, run: Evaluate, void: bool, at: Position, call: CallExpr | None = None
) -> Evaluate:
    slot, piece = c.new_slot(), c.new_piece(at)
    piece.steps, piece.call = c.steps[mark:], call
    del c.steps[mark:]
    piece.run = run if void else put(slot, run)
    c.ahead.append(piece)
    return _reader(slot, void)


def kept(c: Context, expr: Expr, mark: int) -> Expr:
    """Compute a value in front of what has been put there since `mark`, and keep it."""
    if expr.constant is not None or not isinstance(expr.type, Scalar | Pointer):
        return expr
    slot = c.new_slot()
    done_before(c, put(slot, expr.run), expr, mark)
    return conversions.typed_value(c, expr.type, _reader(slot), expr.at, [expr], origin=expr.origin)


def done_before(c: Context, run: Evaluate, expr: Expr, mark: int) -> None:
    """Do something in front of what has been put there since `mark`."""
    piece = c.new_piece(expr.at)
    piece.run = run
    c.ahead.insert(mark, piece)


def branched(
    c: Context, test: Expr, yes: form.BasicBlock | None, no: form.BasicBlock | None, ctype: CType
) -> Expr:
    """`test ? yes : no` as a branch in front; a side that is missing gives the test itself."""
    decided, result, head = c.new_slot(), c.new_slot(), c.new_piece(test.at)
    first, void = c.new_piece(test.at), isinstance(ctype, Void)
    begin = [put(decided, test.run)]
    if not void:
        zero = rooms.zero_of(ctype)
        begin.append(put(result, (lambda t, m: zero) if yes and no else _reader(decided)))
    first.run = lambda t, m: [step(t, m) for step in begin]
    head.run = _reader(decided)
    sides: list[list[form.Instruction]] = []
    for side in (yes, no):
        if side is not None and not void:
            assert side.run is not None
            side.run = _into(result, side.run)
        sides.append([] if side is None else [*side.ahead, side])
    c.ahead += [first, form.Branch(head, test.node, *sides)]
    return conversions.typed_value(c, ctype, _reader(result, void), test.at, [test])


def test_inside(c: Context, loop: form.Loop) -> None:
    """Put the test of a loop into its body."""
    test, condition = loop.test, loop.condition
    assert condition is not None
    inside = form.instructions_below(loop.body, calls=False)
    jumps = any(isinstance(step, form.Leave) and step.exit == loop.again for step in inside)
    if loop.after and jumps:
        text = "threads wait in a function that this condition calls"
        c.unsupported(test.at, f"{text}: give its result to a variable in the loop")
    checks = [*test.ahead, form.Branch(test, condition, [], [form.Leave(loop.leave)])]
    loop.body = [*loop.body, *checks] if loop.after else [*checks, *loop.body]
    loop.test, loop.condition, loop.endless = c.new_piece(test.at), None, True


def _reader(slot: int, void: bool = False) -> Evaluate:
    return (lambda t, m: None) if void else lambda t, m: t.slots[slot]


def _into(slot: int, run: Evaluate) -> Evaluate:
    def write(t: Team, m: Mask) -> Any:
        t.slots[slot] = access.merge(m, run(t, m), t.slots[slot])

    return write
