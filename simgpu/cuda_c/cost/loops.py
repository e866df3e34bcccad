"""The effects of an optimising compiler on a loop, as far as counts depend on them.

A loop whose bounds are known is unrolled if it is short: its counter then costs nothing, and an index made of
it is part of an instruction. A value that no turn of a loop changes is computed once, in front of it.
"""

import operator
from collections.abc import Callable, Sequence

from simgpu.cuda_c.compile import form
from simgpu.cuda_c.compile.variables import Variable

UNROLLED = 32  # turns up to which a loop with known bounds counts as unrolled ...
SHORTLY = 128  # ... and those if it is short ...
_LONGEST = 900  # ... so that it has no more operations
# Turns that nvcc 13.0 does at once where a signed counter goes up one by one, as its listings show.
MOST_UNROLLED = 16
PARTLY = 4  # turns that are done at once where their number is not known: LLVM's choice

_TESTS: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "!=": operator.ne,
}  # fmt: skip
_TURNED = str.maketrans("<>", "><")
_STEPS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda a, b: a // b if b > 0 and a >= 0 else a,
    "<<": lambda a, b: a << b if 0 <= b < 32 else a,
    ">>": lambda a, b: a >> b if b >= 0 else a,
}


def unrolled_turns(
    loop: form.Loop, begins: Sequence[int], known: Callable[[form.IRValue], float | None]
) -> int | None:
    """The turns of a loop that a compiler unrolls whole; else None.

    Its counter begins with one of these, the least and the greatest: lanes begin at different places, as in
    ``for (j = lane; j < 128; j += 32)``, but take as many turns.
    """
    test, counting = loop.condition, form.counting(loop.step)
    if counting is None or loop.after or not isinstance(test, form.Operation):
        return None
    sides, compares = test.parts, test.op
    if isinstance(form.bare(sides[0]), form.Constant):  # 8 > k
        sides, compares = sides[::-1], compares.translate(_TURNED)
    counted = form.bare(sides[0])
    if not isinstance(counted, form.Read):
        return None
    counter, op, amount = counting
    below = [*form.instructions_below(loop.body)]
    inside = [step.variable for step in below if isinstance(step, form.RegisterWrite)]
    holds = _TESTS.get(compares)
    values = (known(node) for node in (sides[1], amount))
    limit, by = (int(v) if v is not None and v == int(v) else None for v in values)
    if not counter is loop.counter is counted.variable or counter in inside or op not in _STEPS:
        return None
    if holds is None or limit is None or by is None:
        return None
    works = form.Operation | form.Load | form.Intrinsic
    work = sum(isinstance(step, works) for step in below)
    most, found = max(UNROLLED, min(SHORTLY, _LONGEST // max(work, 1))), set[int]()
    for value in begins:
        turns = 0
        while turns <= most and holds(value, limit):
            turns, value = turns + 1, _STEPS[op](value, by)  # noqa: PLW2901 - the counter goes on
        found.add(turns)
    turns = found.pop() if len(found) == 1 else most + 1
    return turns if turns <= most else None


def fetched_ahead(loop: form.Loop) -> set[form.IRValue]:
    """The loads of a turn whose value nobody uses before the next one."""
    found: dict[Variable, set[form.IRValue]] = {}
    for step in form.instructions_below(loop.body):
        if isinstance(step, form.Read | form.Address):
            found.pop(step.variable, None)
        elif isinstance(step, form.RegisterWrite | form.Store):
            to = [step.variable] if isinstance(step, form.RegisterWrite) else _own(step.cell)
            given = (form.bare(part) for part in (step.value, *step.value.parts))
            loads = {it for it in given if isinstance(it, form.Load) and not it.origin.near}
            read = {n.variable for n in form.nodes_of(step.value) if isinstance(n, form.Read)}
            if loads and read.isdisjoint(to):  # a list's next one is no such load
                for variable in to:
                    found.setdefault(variable, set()).update(loads)
    return set[form.IRValue]().union(*found.values())


def _own(cell: form.IRValue) -> list[Variable]:
    """The arrays of a thread that a place is in."""
    return [
        n.variable for n in form.nodes_of(cell) if isinstance(n, form.Address) and n.variable.thread
    ]


def partly_unrolled(loop: form.Loop, known: Callable[[form.IRValue], bool], nested: bool) -> bool:
    """Tell whether a compiler does four turns of a loop at once, and so has the loads of four under way.

    LLVM unrolls an innermost loop with one exit if it can tell the number of turns cheaply: for that the
    counter has to go in steps known at compile time. (llvm/lib/Transforms/Utils/LoopUnrollRuntime.cpp)
    With `nested`, loops inside do not count, because they are unrolled whole.
    """
    inside = list(form.instructions_below(loop.body, calls=False))
    loops = [step for step in inside if isinstance(step, form.Loop)]
    on = {loop.again, *(inner.again for inner in loops)}
    leaves = any(isinstance(step, form.Leave) and step.exit not in on for step in inside)
    counting = form.counting(loop.step)
    steady = counting is not None and counting[1] in ("+", "-") and known(counting[2])
    return steady and not leaves and not (loops and not nested) and not loop.after
