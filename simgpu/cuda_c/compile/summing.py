"""The pass that finds loops which only add up, and the run of their turns side by side.

Each operation of the interpreter costs Python as much for 32 threads as for thousands. Most loops of matrix
products and reductions only add up: `s += a[i] * b[i]`, where nothing on the right depends on what an
earlier turn has done. So what stands on the right is computed for many turns at once: the counter becomes an
array with a row for each turn, and with it whatever is computed from it, addresses and loads included. Then
the turns run one after the other, as always, and take their rows: so sums are rounded, and everything is
counted and checked, as if each turn had loaded for itself. Should anything fail, the loop is run again turn
by turn, and fails where it should.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simgpu.cuda_c.compile import form
from simgpu.cuda_c.compile.form import Evaluate, Execute, Instruction, IRValue, Loop, Total
from simgpu.cuda_c.compile.variables import Variable
from simgpu.cuda_c.lockstep import Mask, Team, varies
from simgpu.cuda_c.memory import access
from simgpu.cuda_c.types import Scalar
from simgpu.errors import KernelFault

LANES = 16384  # threads times turns that are computed at once, at most
# Of so many parts of the budget of steps, a loop takes one before it is asked for its end.
_OFTEN = 64
_DOUBLINGS = 128  # turns in which any whole number is 0 or beyond its type, times or by 2
LEAST = 4  # turns for which it is worth it to compute them at once
# Operators whose operands may have a row for each turn; a division looks at each lane.
_OPERATORS = {
    "+", "-", "*", "&", "|", "^", "<<", ">>", "<", "<=", ">", ">=", "==", "!=", "negate", "!", "~", "fused",
}  # fmt: skip
_REGISTERS = form.Constant, form.Read, form.Coordinate, form.Convert
_MEMORY = form.Address, form.Element, form.Part, form.Followed, form.Cell, form.Load
_FUNCTIONS = {"expf", "__expf", "fabsf", "sqrtf", "fmaxf", "fminf", "fmaf", "__fmaf_rn"}


@dataclass(frozen=True)
class Summing:
    """A loop that only adds up: its counter, with its test and step, and its sums with their points."""

    counter: Variable
    test: Evaluate
    step: Evaluate
    totals: Sequence[tuple[int, Total]]


def summing(steps: Sequence[Instruction]) -> dict[Loop, Summing]:
    """Find the loops of a kernel that only add up."""
    loops = [step for step in form.instructions_below(steps) if isinstance(step, Loop)]
    found = {loop: _summing(loop) for loop in loops}
    return {loop: sums for loop, sums in found.items() if sums is not None}


def _summing(loop: Loop) -> Summing | None:
    totals, counter = _totals(loop.body), _counter(loop)
    test, step = loop.test.run, loop.step.run
    if totals is None or counter is None or test is None or step is None or loop.after:
        return None
    added = list(form.nodes_of(*[total.value for _, total in totals]))
    read = form.read_by(*loop.test.steps, *loop.step.steps, *added)
    targets = {total.variable for _, total in totals}
    registers = all(isinstance(v.type, Scalar) and not v.memory for v in targets)
    if not registers or targets & (read | {counter}):
        return None
    return Summing(counter, test, step, totals) if all(map(_by_lane, added)) else None


def ends_in_time(loop: Loop) -> Callable[[Team, Mask, int, int], None] | None:
    """Make the function that notes if a loop, some turns after a step, cannot end within the budget of steps.

    It is known where a counter goes to a bound, and a turn changes neither that nor its pace; else None.
    """
    counter, test, step = _counter(loop, "*/+-<<>>"), loop.test.run, loop.step.run
    bound = None if loop.condition is None else form.bare(loop.condition)
    given = (form.RegisterWrite, form.ReferenceBind)
    below = form.instructions_below(loop.body)
    changed = {s.variable for s in below if isinstance(s, given)}
    if counter is None or test is None or step is None or not isinstance(bound, form.Operation):
        return None
    read = {counter} | form.read_by(*loop.test.steps, *loop.step.steps)
    meets = _other_side(bound, counter) if bound.op == "!=" else None
    if bound.op not in ("<", "<=", ">", ">=", "!=") or changed & read:
        return None
    kind, slot = counter.type, counter.slot
    assert isinstance(kind, Scalar)
    adds = (form.counting(loop.step) or (None, "", None))[1] in ("+", "-")
    wide = np.int64 if kind.is_integer else np.float64

    def evaluate(t: Team, m: Mask, turns: int, begun: int) -> None:
        budget, taken, start = t.launch.limits.step_budget, t.steps - begun, t.slots[slot]
        if t.endless or taken <= max(budget // _OFTEN, 0):
            return
        if not adds:  # a number that doubles or halves is at its end long before
            t.endless = kind.is_integer and turns > _DOUBLINGS
            return
        if bound.op == "!=" and meets is None:  # nothing tells, so it's charged late
            t.endless = taken > budget // 8
            return
        step(t, m)
        begin = np.asarray(start, wide)
        stride = np.asarray(t.slots[slot], wide) - begin
        most = 1 + (budget - t.steps) * turns // taken
        if meets is not None:
            t.slots[slot] = start
            left = np.asarray(meets(t), wide) - begin
            away = left / np.where(stride == 0, np.nan, stride)  # turns until it is on its bound
            lands = (left == 0) | (away >= 0) & (away <= most) & (away % 1 == 0)
            t.endless = not t.array(lands)[m.index].all()
            return
        far = begin + stride * most
        t.slots[slot] = far.astype(start.dtype)[()]
        goes_on = t.array(test(t, m))[m.index].any()
        t.slots[slot], here = start, m.take(far)
        holds = not kind.is_integer or kind.lowest <= np.min(here) <= np.max(here) <= kind.highest
        t.endless = bool(goes_on and holds)

    return evaluate


def _other_side(bound: form.Operation, counter: Variable) -> Callable[[Team], Any] | None:
    """What a counter is compared with, if that is a constant or a register."""
    sides = [form.bare(part) for part in bound.parts]
    mine = [isinstance(side, form.Read) and side.variable is counter for side in sides]
    if sum(mine) != 1:
        return None
    other = sides[mine[0]]  # of two, the one that is not mine
    if isinstance(other, form.Constant):
        return lambda t: other.value
    if isinstance(other, form.Read) and other.whole and not other.variable.memory:
        return lambda t: t.slots[other.variable.slot]
    return None


def _totals(steps: Sequence[Instruction]) -> list[tuple[int, Total]] | None:
    """The sums of a loop's body, or None if something else is done there."""
    out: list[tuple[int, Total]] = []
    for step in steps:
        if isinstance(step, form.Scoped) and not step.ends:
            inner = _totals(step.steps)
            if inner is None:
                return None
            out += inner
        elif isinstance(step, form.BasicBlock) and step.total is not None:
            out.append((step.point, step.total))
        else:
            return None
    return out or None


def _counter(loop: Loop, ops: str = "+-") -> Variable | None:
    """The variable that goes on by the same at each turn, and on registers alone does it depend."""
    steps = [*loop.test.steps, *loop.step.steps]
    counts = form.RegisterWrite | form.Result | form.FixedCostOp
    rest = [step for step in steps if not isinstance(step, counts)]
    if not all(isinstance(step, IRValue) and _by_lane(step, False) for step in rest):
        return None
    variable, op, amount = form.counting(loop.step) or (None, "", None)
    if variable is None or amount is None or op not in ops or variable.memory:
        return None
    number = isinstance(variable.type, Scalar) and (variable.type.is_integer or len(ops) > 2)
    return variable if number and variable not in form.read_by(amount) else None


def _by_lane(node: IRValue, memory: bool = True) -> bool:
    """Tell whether each lane computes a value by itself, without an effect; or also without `memory`."""
    match node:
        case form.Operation():
            return node.op in _OPERATORS
        case form.Intrinsic():
            return memory and node.name in _FUNCTIONS
        case form.Old():
            return not memory
        case _:
            return isinstance(node, _REGISTERS) or (memory and isinstance(node, _MEMORY))


def row(run: Evaluate) -> Evaluate:
    """Compute a value, or where turns are side by side, read its row for the turn at hand."""

    def evaluate(t: Team, m: Mask) -> Any:
        if not t.turns:
            return run(t, m)
        rows = t.rows.get(evaluate)
        if rows is None:
            rows = t.rows[evaluate] = _rows(run(t, m), t.turns)
        return rows[t.turn]

    return evaluate


def _rows(value: Any, turns: int) -> Any:
    """The value of each turn, of one that may have a row for each."""
    if np.ndim(value) < 2:
        return [value] * turns
    return value if value.shape[1] > 1 else value[:, 0]


def sums_side_by_side(
    loop: Summing, body: Execute, points: tuple[int, int]
) -> Callable[[Team, Mask], None]:
    """Make the function that runs as many turns as it can, up to the one that is not for all lanes."""
    slot = loop.counter.slot
    kept = [slot, *(total.variable.slot for _, total in loop.totals)]
    ((point, only), *more) = loop.totals
    alone, place = only.plain and not more, only.variable.slot

    def evaluate(t: Team, m: Mask) -> None:
        # A watcher wants to be told of each access in its turn, so turns go one by one.
        most = LANES // t.layout.lanes if t.launch.limits.watcher is None else 0
        while most >= LEAST and t.defined[slot] is True:
            turns = _ahead(loop, t, m, most)
            if turns is None or turns.number < LEAST:
                return
            number = turns.number
            if t.steps + number > t.launch.limits.step_budget:
                return
            before = [(s, t.slots[s], t.defined[s]) for s in kept]
            t.slots[slot], t.turns, t.rows = turns.rows, number, {}
            try:
                if alone and t.defined[place] is True:  # no closure is run for each turn
                    new, whole = _after(only, t, m), m.full or t.born[place] is m
                    t.slots[place] = new if whole else access.merge(m, new, t.slots[place])
                    t.meter.charge(point, m, number)
                else:
                    for k in range(number):
                        t.turn = k
                        body(t, m)
            except KernelFault:
                for s, value, defined in before:
                    t.slots[s], t.defined[s] = value, defined
                return
            finally:
                t.turns, t.rows = 0, {}
            t.steps += number - 1
            for passed in points:
                t.meter.charge(passed, m, number)
            t.slots[slot] = turns.after
            if not turns.more:
                return  # because the next turn is not one for all lanes

    return evaluate


def _after(added: Total, t: Team, m: Mask) -> Any:
    """Compute the variable of a sum after all turns."""
    total = t.slots[added.variable.slot]
    if added.factors is None:
        terms = added.run(t, m)
        if np.ndim(terms) == 2 and terms.shape[1] > 1:
            # NumPy sums in pairs only along the axis that is contiguous in memory (its notes on `numpy.sum`).
            # Along the first one it adds row to row, for all columns side by side; a test compares the bits.
            add, rows = np.subtract if added.minus else np.add, terms.copy()
            add(total, rows[0], out=rows[0])
            return add.reduce(rows, axis=0, dtype=rows.dtype)
    else:
        # A fused product is exact, since float64 has more than twice the digits (`lockstep.values`).
        first, second = (factor(t, m) for factor in added.factors)
        terms = np.multiply(first, second, dtype=np.float64)
    if added.minus:
        terms = np.negative(terms)
    for row in _rows(terms, t.turns):
        total = total + row if added.factors is None else (row + total).astype(np.float32)
    return total


@dataclass(frozen=True, slots=True)
class _Turns:
    """The next turns of a loop that all lanes take."""

    number: int
    rows: Any  # the counter, a row for each turn
    after: Any  # the counter behind them
    more: bool  # whether there may be more of them


def _ahead(loop: Summing, t: Team, m: Mask, most: int) -> _Turns | None:
    """The next turns that all lanes of a mask take, at most so many; None if they are not known."""
    kind, slot = loop.counter.type, loop.counter.slot
    assert isinstance(kind, Scalar)
    start: Any = t.slots[slot]
    loop.step(t, m)
    stride = np.asarray(t.slots[slot], np.int64) - np.asarray(start, np.int64)
    rows = np.arange(most)[:, None] * stride + np.asarray(start, np.int64)
    t.slots[slot] = start
    if rows.min() < kind.lowest or rows.max() > kind.highest:
        return None
    ahead = rows.astype(start.dtype)
    t.slots[slot] = ahead
    goes_on: Any = np.asarray(loop.test(t, m))
    t.slots[slot] = start
    if goes_on.ndim != 2:
        return None
    each = m.take(goes_on).all(axis=1)
    number = most if each.all() else int(each.argmin())
    if not number:
        return None
    last = ahead[number - 1]
    t.slots[slot] = last if varies(start) else last[0]
    loop.step(t, m)
    after = t.slots[slot] if m.full else access.merge(m, t.slots[slot], start)
    t.slots[slot] = start
    return _Turns(number, ahead[:number], after, number == most)
