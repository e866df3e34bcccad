"""Loops with a counter: how many turns there are still, and what the counter is in each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from simgpu.cuda_c.compile.typed import Evaluate
from simgpu.cuda_c.compile.variables import Variable
from simgpu.cuda_c.lockstep.masks import Mask
from simgpu.cuda_c.lockstep.team import Team
from simgpu.cuda_c.lockstep.values import varies
from simgpu.cuda_c.memory import access
from simgpu.cuda_c.syntax import ast
from simgpu.cuda_c.types import Scalar

LEAST = 4  # turns for which it is worth it to compute them at once
_CALLS = {"__ldg", "expf", "__expf", "fabsf", "sqrtf", "fmaxf", "fminf", "fmaf", "__fmaf_rn"}
_PLAIN = (ast.Name, ast.Literal, ast.Index, ast.Member, ast.Binary, ast.Unary, ast.Call)
_OPERATORS = {"+", "-", "*", "&", "|", "^", "<<", ">>", "<", "<=", ">", ">=", "==", "!="}


def counted(node: ast.For) -> str | None:
    """The counter of a loop that goes up or down by the same at each turn."""
    step = node.step
    target = None
    if isinstance(step, ast.Increment):
        target = step.operand
    elif isinstance(step, ast.Assign) and step.op in ("+", "-") and plain(step.value, False):
        names = {p.name for p in ast.parts_of(step.value) if isinstance(p, ast.Name)}
        if isinstance(step.target, ast.Name) and step.target.name not in names:
            target = step.target
    if not isinstance(target, ast.Name) or node.test is None or not plain(node.test, False):
        return None
    return target.name


def plain(node: ast.Expression, memory: bool = True) -> bool:
    """Tell whether each lane computes an expression without effects; without `memory`, from registers."""
    for item in ast.parts_of(node):
        if not isinstance(item, _PLAIN) or (not memory and isinstance(item, ast.Index | ast.Call)):
            return False
        if isinstance(item, ast.Binary | ast.Unary) and item.op not in _OPERATORS:
            return False
        if isinstance(item, ast.Call) and item.name not in _CALLS:
            return False
    return True


@dataclass(frozen=True, slots=True)
class Turns:
    """The next turns of a loop that all lanes take."""

    number: int
    rows: Any  # the counter, a row for each turn
    after: Any  # the counter behind them
    more: bool  # whether there may be more of them


class Counter:
    """A variable in a register that counts the turns of a loop, by the same step in each."""

    def __init__(self, variable: Variable, test: Evaluate, step: Evaluate) -> None:
        self.slot = variable.slot
        assert isinstance(variable.type, Scalar)
        self._kind = variable.type
        self._test = test
        self._step = step

    def turns(self, t: Team, m: Mask, most: int) -> Turns | None:
        """The next turns that all lanes of a mask take, at most so many; None if they are not known."""
        slot = self.slot
        start: Any = t.slots[slot]
        self._step(t, m)
        stride = np.asarray(t.slots[slot], np.int64) - np.asarray(start, np.int64)
        rows = np.arange(most)[:, None] * stride + np.asarray(start, np.int64)
        t.slots[slot] = start
        if rows.min() < self._kind.lowest or rows.max() > self._kind.highest:
            return None
        ahead = rows.astype(start.dtype)
        t.slots[slot] = ahead
        goes_on: Any = np.asarray(self._test(t, m))
        t.slots[slot] = start
        if goes_on.ndim != 2:
            return None
        each = m.take(goes_on).all(axis=1)
        number = most if each.all() else int(each.argmin())
        if not number:
            return None
        last = ahead[number - 1]
        t.slots[slot] = last if varies(start) else last[0]
        self._step(t, m)
        after = t.slots[slot] if m.full else access.merge(m, t.slots[slot], start)
        t.slots[slot] = start
        return Turns(number, ahead[:number], after, number == most)
