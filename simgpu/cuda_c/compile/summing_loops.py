"""The turns of a summing loop side by side: what makes few threads fast.

Each operation of the interpreter costs Python as much for 32 threads as for thousands. Most loops of matrix
products and reductions only add up: `s += a[i] * b[i]`, where nothing on the right depends on what an
earlier turn has done. So what stands on the right is computed for many turns at once: the counter becomes an
array with a row for each turn, and with it whatever is computed from it, addresses and loads included. Then
the turns run one after the other, as always, and take their rows: so sums are rounded, and everything is
counted and checked, as if each turn had loaded for itself. Should anything fail, the loop is run again turn
by turn, and fails where it should.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.compile.counted_loops import LEAST, Counter, counted, plain
from simgpu.cuda_c.compile.typed import Evaluate, Execute, Expr, RegisterPlace
from simgpu.cuda_c.compile.variables import Variable
from simgpu.cuda_c.lockstep.masks import Mask
from simgpu.cuda_c.lockstep.team import Team
from simgpu.cuda_c.memory import access
from simgpu.cuda_c.syntax import ast
from simgpu.cuda_c.types import DOUBLE, FLOAT, INT, LLONG, UINT, ULLONG, Scalar
from simgpu.errors import KernelFault

if TYPE_CHECKING:
    from simgpu.cuda_c.compile.context import Context

LANES = 16384  # threads times turns that are computed at once, at most


def summed(node: ast.For) -> list[str] | None:
    """The variables in which a loop sums up, if it does nothing else; otherwise None."""
    counter = counted(node)
    body = node.body.body if isinstance(node.body, ast.Block) else [node.body]
    sums: list[str] = []
    for statement in body:
        item = statement.expression if isinstance(statement, ast.ExpressionStatement) else None
        if not isinstance(item, ast.Assign) or not item.op or not isinstance(item.target, ast.Name):
            return None
        if not plain(item.value):
            return None
        sums.append(item.target.name)
    added = [p.value for p in ast.parts_of(node.body) if isinstance(p, ast.Assign)]
    read = ast.parts_of([node.test, node.step, added])
    names = {p.name for p in read if isinstance(p, ast.Name)}
    if counter is None or not sums or not names.isdisjoint(sums) or node.after:
        return None
    return sums


def by_turns(by: Expr) -> Expr:
    """Return the expression that is added in each turn; where turns are side by side, it reads its row."""
    factors = by.product and (_row(by.product[0]), _row(by.product[1]))
    return replace(by, run=_row(by.run), product=factors)


def added(c: Context, target: Expr, op: str, by: Expr) -> Sum | None:
    """`target op= by` as a sum that needs no closures in each turn, if it is one."""
    place, kind = target.place, target.type
    if not isinstance(place, RegisterPlace) or place.count is not None or op not in ("+", "-"):
        return None
    if kind != by.type or kind not in (FLOAT, DOUBLE, INT, UINT, LLONG, ULLONG):
        return None
    assert isinstance(kind, Scalar)
    fused = bool(c.contract and kind.is_float and by.product is not None)
    if fused and kind is not FLOAT:
        return None
    return Sum(place.variable, op == "-", by.run, by.product if fused else None)


@dataclass(frozen=True)
class Sum:
    """`variable += run`; `factors` are those of a product that is fused with the addition."""

    variable: Variable
    minus: bool
    run: Evaluate
    factors: tuple[Evaluate, Evaluate] | None = None

    def turns(self, t: Team, m: Mask) -> Any:
        """Compute the variable after all turns."""
        total = t.slots[self.variable.slot]
        if self.factors is None:
            terms = self.run(t, m)
            if np.ndim(terms) == 2 and terms.shape[1] > 1:
                return self._in_order(total, terms.copy())
        else:
            # A fused product is exact, since float64 has more than twice the digits (`lockstep.values`).
            first, second = (factor(t, m) for factor in self.factors)
            terms = np.multiply(first, second, dtype=np.float64)
        if self.minus:
            terms = np.negative(terms)
        if np.ndim(terms) < 2:
            rows = [terms] * t.turns
        else:
            rows = terms if terms.shape[1] > 1 else terms[:, 0]
        for row in rows:
            total = total + row if self.factors is None else (row + total).astype(np.float32)
        return total

    def _in_order(self, total: Any, rows: NDArray[Any]) -> Any:
        """`total` and then row after row, as a loop adds them; the first row is used up.

        NumPy sums in pairs only along the axis that is contiguous in memory (its notes on `numpy.sum`).
        Along the first axis it adds row to row, for all columns side by side; a test compares the bits.
        """
        add = np.subtract if self.minus else np.add
        add(total, rows[0], out=rows[0])
        return add.reduce(rows, axis=0, dtype=rows.dtype)


def _row(run: Evaluate) -> Evaluate:
    def read(t: Team, m: Mask) -> Any:
        if not t.turns:
            return run(t, m)
        rows = t.rows.get(read)
        if rows is None:
            value: Any = run(t, m)
            if np.ndim(value) < 2:
                rows = [value] * t.turns
            else:
                rows = value if value.shape[1] > 1 else value[:, 0]
            t.rows[read] = rows
        return rows[t.turn]

    return read


def side_by_side(
    counter: Counter,
    sums: list[Variable],
    body: Execute,
    points: tuple[int, int],
    quick: tuple[Sum, int] | None,
) -> Callable[[Team, Mask], None]:
    """Make the function that runs as many turns as it can, and leaves the loop as it is before the next one.

    If the body does nothing but one `Sum`, `quick` is that sum and the point of its code.
    """
    slot = counter.slot
    kept = [slot, *(v.slot for v in sums)]

    def run(t: Team, m: Mask) -> None:
        # A watcher wants to be told of each access in its turn, so turns go one by one.
        most = LANES // t.layout.lanes if t.launch.limits.watcher is None else 0
        while most >= LEAST and t.defined[slot] is True:
            turns = counter.turns(t, m, most)
            if turns is None or turns.number < LEAST:
                return
            number = turns.number
            if t.steps + number > t.launch.limits.step_budget:
                return
            before = [(s, t.slots[s], t.defined[s]) for s in kept]
            t.slots[slot], t.turns, t.rows = turns.rows, number, {}
            try:
                if quick is not None and t.defined[quick[0].variable.slot] is True:
                    _add(t, m, *quick)
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
            for point in points:
                t.meter.charge(point, m, number)
            t.slots[slot] = turns.after
            if not turns.more:
                return  # because the next turn is not one for all lanes

    def _add(t: Team, m: Mask, total: Sum, point: int) -> None:
        place = total.variable.slot
        new = total.turns(t, m)
        whole = m.full or t.born[place] is m
        t.slots[place] = new if whole else access.merge(m, new, t.slots[place])
        t.meter.charge(point, m, t.turns)

    return run
