"""Loops: every kind of them is a `For` by now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from simgpu.cuda_c.compile import typed, waiting_kernels
from simgpu.cuda_c.compile.context import CompileStatement, Context
from simgpu.cuda_c.compile.counted_loops import Counter, counted
from simgpu.cuda_c.compile.places import place_of
from simgpu.cuda_c.compile.record import Loop, Node
from simgpu.cuda_c.compile.statements import block_of, tested
from simgpu.cuda_c.compile.summing_loops import Sum, side_by_side, summed
from simgpu.cuda_c.compile.variables import Variable
from simgpu.cuda_c.lockstep.masks import Mask, join, split
from simgpu.cuda_c.lockstep.team import Team
from simgpu.cuda_c.lockstep.waiting_threads import (
    ENDLESS,
    NOWHERE,
    Apart,
    in_whole_blocks,
    unchanged,
)
from simgpu.cuda_c.syntax import ast
from simgpu.cuda_c.syntax.names import assigned_names
from simgpu.cuda_c.types import INT, Array, Scalar, spelled


def _for(c: Context, node: ast.For) -> typed.Execute:
    with c.scoped():
        init = c.statement(node.init) if node.init is not None else None
        return _turns(c, node, init)


def _range_for(c: Context, node: ast.RangeFor) -> typed.Execute:
    """`for (item : array)`, as a loop over the indices."""
    with c.recording():  # the record is dropped, because nothing of this is computed
        array = place_of(c, node.array).type
    if not isinstance(array, Array):
        c.unsupported(node.array.at, f"a range-for over a '{spelled(array)}': it works on arrays")
    at = node.at
    counter = ast.Name(at=at, name=f"index of {node.item.name}")
    element = ast.Index(at=at, base=node.array, index=counter)
    zero, last = (ast.Literal(at=at, value=n, type=INT) for n in (0, array.length))
    kind = ast.TypeName(at=at, base="int")
    start = ast.Declarator(at=at, name=counter.name, type=kind, init=zero)
    item = ast.Declaration(at=at, storage=set(), items=[replace(node.item, init=element)])
    return _for(
        c,
        ast.For(
            at=at,
            init=ast.Declaration(at=at, storage=set(), items=[start]),
            test=ast.Binary(at=at, op="<", left=counter, right=last),
            step=ast.Increment(at=at, op="+", operand=counter, postfix=False),
            body=ast.Block(at=node.body.at, body=[item, node.body]),
        ),
    )


def _turns(c: Context, node: ast.For, init: typed.Execute | None) -> typed.Execute:
    counter = None
    if isinstance(node.init, ast.Declaration) and len(node.init.items) == 1:
        counter = _variable(c, node.init.items[0].name)
    names = sorted(assigned_names([node.test, node.step, node.body]))
    changed = [_variable(c, n) for n in names]  # a reference has a name of its own
    test: typed.Evaluate | None = None
    condition: Node | None = None
    test_at = node.at if node.test is None else node.test.at
    with c.detached(test_at.line) as test_piece:
        if node.test is not None:
            expr, test = tested(c, node.test)
            condition = expr.node
            if expr.constant:
                test = None  # because it never ends the loop
    c.ranks.branch()
    leave, again = c.new_exit(), c.new_exit()
    waits, head, meetings = c.waits, c.places, c.meetings
    c.places += waits
    c.frame.breaks.append(leave)
    c.frame.continues.append(again)
    sums = summed(node)
    counter_of = _counter(c, node, sums is not None)
    c.summing, first, exits = None if sums is None else [], c.points, c.exits
    with c.recording() as body_steps:
        body = block_of(c, node.body)
    added, c.summing = c.summing, None
    if added is None or len(added) != len(sums or ()):
        sums = None  # since an operator of a class was among them
    quick = None
    if added is not None and len(added) == 1 and added[0] is not None:
        quick = added[0], first
    step: typed.Evaluate | None = None
    with c.detached(node.at.line) as step_piece:
        if node.step is not None:
            c.waits = False  # because nobody can go on in the middle of it
            step = c.expression(node.step, used=False).run
            c.waits = waits
    meets = c.meetings > meetings
    if c.places == head + 1 and not meets and not waiting_kernels.counts_none(node):
        c.places = head  # since nobody waits in here
    c.frame.breaks.pop()
    c.frame.continues.pop()
    c.steps.append(
        Loop(
            source=node,
            counter=counter,
            changed=[v for v in changed if v is not None],
            test=test_piece,
            condition=condition,
            endless=test is None,
            body=body_steps,
            step=step_piece,
        )
    )
    together = None
    if counter_of is not None and test is not None and step is not None and c.exits == exits:
        points = test_piece.point, step_piece.point
        counts = Counter(counter_of, test, step)
        together = _together(c, node, counts, sums or [], body, points, quick)
    spins = waiting_kernels.counts_none(node)
    watched, patience = _watched(node, names, changed) if spins else ([], [])
    often = 0 if not spins else 1 if waits else _SELDOM
    c.spins |= spins
    spot = head if waits else NOWHERE if c.may_wait else ENDLESS
    at, after = node.at, node.after
    test_point, step_point = test_piece.point, step_piece.point

    def run(t: Team, entered: Mask) -> Mask | None:
        meter = t.meter
        resume = t.resume
        if init is not None and resume < 0:
            init(t, entered)
        t.left[leave] = None
        finished: Mask | None = None
        first = after if resume < 0 else resume > head
        if resume == head:
            t.resume = -1
        m: Mask | None = entered
        turns = changes = 0
        if patience and t.hurried and resume >= 0:
            t.hurried = False
            waiting_kernels.leap(t, entered, patience)
        if together is not None:
            together(t, entered)
        before: list[Any] | None = None
        while True:
            turns += 1
            # Nothing tells what a turn has changed that was begun before the threads waited; and a first turn
            # that nobody has tested is no look in vain.
            if often and not turns % often and not first:
                changes, before = t.launch.changes, [t.slots[slot] for slot in watched]
            if test is not None and not first:
                meter.charge(test_point, m)
                try:
                    condition = test(t, m)
                except Apart as apart:
                    m = t.part(head, m, at, apart)
                    if m is None:
                        break
                    continue
                stay, stop = split(m, condition)
                if stop is not None:
                    meter.branch(test_point, stay, stop)
                    finished = join(finished, stop, entered)
                    if stay is None:
                        break
                m = stay
            first = False
            assert m is not None
            inside = m
            t.step(at, inside)
            t.left[again] = None
            m = join(body(t, inside), t.left[again], inside)
            # All that entered are charged, because a warp that breaks has begun the iteration too.
            meter.charge(step_point, inside)
            if m is None:
                break
            if step is not None:
                step(t, m)
            if before is not None:
                if changes == t.launch.changes:
                    now = [t.slots[slot] for slot in watched]
                    patient = bool(patience) and waiting_kernels.still_patient(t, m, patience)
                    same = unchanged(m, before, now)
                    m = t.spun(spot, m, at, in_whole_blocks(m, same) if meets else same, patient)
                    if m is None:
                        break
                before = None
        return join(finished, t.left[leave], entered)

    return run


def _together(
    c: Context,
    node: ast.For,
    counts: Counter,
    sums: list[str],
    body: typed.Execute,
    points: tuple[int, int],
    quick: tuple[Sum, int] | None,
) -> Callable[[Team, Mask], None] | None:
    """Make the function that runs turns of a summing loop side by side, if the loop is one."""
    found = [_variable(c, name) for name in sums]
    targets = [v for v in found if v is not None and not v.memory and isinstance(v.type, Scalar)]
    # A sum may be read under another name, by a reference.
    values = [part.value for part in ast.parts_of(node.body) if isinstance(part, ast.Assign)]
    read = _read(c, [node.test, node.step, *values])
    if not targets or len(targets) != len(found) or read is None or set(targets) & set(read):
        return None
    return side_by_side(counts, targets, body, points, quick)


def _watched(
    node: ast.For, names: list[str], changed: list[Variable | None]
) -> tuple[list[int], list[int]]:
    """Slots of the variables that decide whether a loop spins, and of those that count its patience."""
    decide, counters = waiting_kernels.decisive_names(node), waiting_kernels.patience_names(node)
    watched: list[int] = []
    patience: list[int] = []
    for name, v in zip(names, changed, strict=True):
        if v is not None and not v.memory and name in decide:
            counting = isinstance(v.type, Scalar) and v.type.is_integer and v.name in counters
            (patience if counting else watched).append(v.slot)
    return watched, patience


def _counter(c: Context, node: ast.For, sums: bool) -> Variable | None:
    """The counter of a loop, if it is in a register and its body, which may only sum up, leaves it alone."""
    name = counted(node)
    found = None if name is None else _variable(c, name)
    if found is None or found.memory or (not sums and name in assigned_names(node.body)):
        return None
    return found if isinstance(found.type, Scalar) and found.type.is_integer else None


def _read(c: Context, nodes: object) -> list[Variable] | None:
    """The variables that are read below some nodes; None if there may be others."""
    found: list[Variable] = []
    for name in {p.name for p in ast.parts_of(nodes) if isinstance(p, ast.Name)}:
        variable = _variable(c, name)
        if variable is not None:
            found.append(variable)
        elif not isinstance(c.scope.find(name), typed.Number | None):
            return None
    return found


def _variable(c: Context, name: str) -> Variable | None:
    binding = c.scope.find(name)
    if isinstance(binding, typed.Alias) and isinstance(binding.expr.place, typed.RegisterPlace):
        return binding.expr.place.variable
    return binding if isinstance(binding, Variable) else None


_SELDOM = 64  # turns of a loop that cannot wait, until it is asked again whether it spins

STATEMENTS: Mapping[type[ast.Statement], CompileStatement] = {
    ast.For: _for,
    ast.RangeFor: _range_for,
}
