"""Compiling kernels whose threads may wait for each other.

Where a kernel has a loop that may spin (`may_wait`), each of its statements has a number, its place, and so
has the test of each loop. Places are numbered in the order of the source, hence those within a statement are
a range, and a statement that is entered again for lanes which wait inside knows where to pass them on.
`lockstep.waiting_threads` has the whole story. Kernels without such a loop pay nothing for any of this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.compile.typed import Execute
from simgpu.cuda_c.lockstep.masks import Mask
from simgpu.cuda_c.lockstep.team import Team
from simgpu.cuda_c.lockstep.waiting_threads import Apart
from simgpu.cuda_c.syntax import ast
from simgpu.cuda_c.syntax.names import assigned_names, grown

if TYPE_CHECKING:
    from simgpu.cuda_c.compile.context import Context

GRID = {"this_grid"}  # how cooperative groups name all blocks
# A thread sleeps only to wait for others.
_LOOKS = ("atomic", "__ldcg", "__ldcv", "__ldca", "__ldlu", "__nanosleep")
_LONG = 1 << 30  # turns


def may_wait(
    function: ast.Function, functions: dict[str, list[ast.Function]], members: set[str]
) -> bool:
    """Tell whether a loop of a kernel, or of a function that it calls, may wait for another thread.

    Such a loop counts no turns, or sleeps in each, and looks at memory by an atomic, a volatile or an
    uncached load. `members` are names, of structs and of the file, that lead to volatile memory.
    """
    reached = _reached(function, functions)
    if meets_as_grid(function, functions):
        return True
    volatile = members | {
        item.name
        for body in reached
        for item in ast.parts_of(body)
        if isinstance(item, ast.Declarator | ast.Param) and item.type.volatile
    }
    # Functions that look, or call one that does.
    looking = grown(set(), lambda known: {f.name for f in reached if _looks(f, volatile, known)})
    return any(
        isinstance(item, ast.For) and counts_none(item) and _looks(item, volatile, looking)
        for body in reached
        for item in ast.parts_of(body)
    )


def meets_as_grid(function: ast.Function, functions: dict[str, list[ast.Function]]) -> bool:
    """Tell whether a kernel, or a function that it calls, has a barrier of the whole grid."""
    return any(_calls(body, GRID) for body in _reached(function, functions))


def counts_none(loop: ast.For) -> bool:
    """Tell whether a loop may never end, as it has no counter, or one that counts how long it sleeps."""
    return loop.step is None or _sleeps(loop)


def patience_names(loop: ast.For) -> set[str]:
    """Variables of a loop that sleeps which only count its turns up to a bound: they are for giving up.

    A thread that does nothing but count has not got on. So it waits, as one without a counter would, and
    its counter leaps when nobody else can go on (`leap`).
    """
    if not _sleeps(loop):
        return set()
    parts = list(ast.parts_of([loop.test, loop.body, loop.step]))
    seen = [item.name for item in parts if isinstance(item, ast.Name)]
    known: list[str] = []
    counted: set[str] = set()
    for item in parts:
        operands: list[ast.Expression] = []
        if isinstance(item, ast.Increment) and item.op == "+":
            operands = [item.operand]
            counted |= _names(item.operand)
        elif isinstance(item, ast.Binary) and item.op in ("<", "<=", ">", ">="):
            # The counter of `++n > most` is found as an increment.
            operands = [item.left, item.right]
        known += [o.name for o in operands if isinstance(o, ast.Name)]
    return {name for name in counted if seen.count(name) == known.count(name)}


def leap(t: Team, m: Mask, slots: Sequence[int]) -> None:
    """Let these threads have counted as if they had waited for very long."""
    for slot in slots:
        value = t.array(t.slots[slot]).copy()
        value[m.index] = _far(value)
        t.slots[slot] = value


def _far(value: NDArray[Any]) -> int:
    return min(_LONG, np.iinfo(value.dtype).max - 1)


def still_patient(t: Team, m: Mask, slots: Sequence[int]) -> bool:
    """Tell whether these threads count how long they wait, and have not leapt yet."""
    counts = [t.array(t.slots[slot])[m.index] for slot in slots]
    return any(bool((count < _far(count)).any()) for count in counts)


def _sleeps(loop: ast.For) -> bool:
    """Tell whether a loop sleeps between looks at something; otherwise it is a delay, and ends by itself."""
    parts = list(ast.parts_of([loop.test, loop.body, loop.step]))
    called = {item.name for item in parts if isinstance(item, ast.Call)}
    follows = any(
        isinstance(item, ast.Index) or (isinstance(item, ast.Unary) and item.op == "*")
        for item in parts
    )
    return "__nanosleep" in called and (follows or len(called) > 1)


def decisive_names(loop: ast.For) -> set[str]:
    """Variables on which it depends whether a loop goes on; their values decide together with memory."""
    parts = list(ast.parts_of([loop.body, loop.step]))
    if any(isinstance(item, ast.Jump | ast.Return) for item in parts):
        return _names([loop.test, loop.body, loop.step])
    changing = [
        ({item.name} if isinstance(item, ast.Declarator) else assigned_names(item), _names(item))
        for item in parts
        if isinstance(item, ast.Assign | ast.Increment | ast.Call | ast.Declarator)
    ]
    return grown(
        _names(loop.test),
        lambda found: {name for own, read in changing if found & own for name in read},
    )


def _names(node: object) -> set[str]:
    return {item.name for item in ast.parts_of(node) if isinstance(item, ast.Name)}


def _reached(
    function: ast.Function, functions: dict[str, list[ast.Function]]
) -> list[ast.Function]:
    out, todo = [function], [function]
    while todo:
        for item in ast.parts_of(todo.pop()):
            for other in functions.get(item.name, []) if isinstance(item, ast.Call) else []:
                if not any(other is known for known in out):
                    out.append(other)
                    todo.append(other)
    return out


def _looks(node: object, volatile: set[str], looking: set[str]) -> bool:
    return any(_look(item, volatile, looking) for item in ast.parts_of(node))


def _look(item: object, volatile: set[str], looking: set[str]) -> bool:
    if isinstance(item, ast.Call):
        return item.name.startswith(_LOOKS) or item.name in looking
    if isinstance(item, ast.TypeName):
        return item.volatile
    return isinstance(item, ast.Name | ast.Member) and item.name in volatile


def parts_at_barriers(function: ast.Function, functions: dict[str, list[ast.Function]]) -> bool:
    """Tell whether some threads of a block may come to one barrier of the source, and others to another."""
    reached = _reached(function, functions)
    meeting = grown({"__syncthreads"}, lambda known: {f.name for f in reached if _calls(f, known)})
    return any(
        isinstance(item, ast.If)
        and not item.constexpr
        and item.otherwise is not None
        and _calls(item.then, meeting)
        and _calls(item.otherwise, meeting)
        for body in reached
        for item in ast.parts_of(body)
    )


def _calls(node: object, names: set[str]) -> bool:
    return any(isinstance(item, ast.Call) and item.name in names for item in ast.parts_of(node))


# -- statements


def waiting_statement(
    c: Context, node: ast.Statement, rule: Callable[[Context, Any], Execute]
) -> Execute:
    """A statement at which lanes may be set aside, and may go on later."""
    place = c.places
    c.places += 1
    meetings = c.meetings
    outer, c.resumable = c.resumable, call_of(node)
    run = rule(c, node)
    c.resumable = outer
    if c.places == place + 1 and c.meetings == meetings:
        c.places = place  # since nobody waits in here
        return run
    at = node.at

    def attempt(t: Team, m: Mask) -> Mask | None:
        if t.resume == place:
            t.resume = -1
        current: Mask | None = m
        while current is not None:
            count = t.waiters.count
            try:
                out = run(t, current)
            except Apart as apart:
                current = t.part(place, current, at, apart)
                continue
            return out if t.waiters.count == count else t.waiters.without(out)
        return None

    return attempt


def call_of(node: ast.Statement) -> ast.Expression | None:
    """The call that is all of a statement, but for an assignment of its value to a variable."""
    expression = None
    if isinstance(node, ast.ExpressionStatement):
        expression = node.expression
        if isinstance(expression, ast.Assign):
            plain = not expression.op and isinstance(expression.target, ast.Name)
            expression = expression.value if plain else None
    elif isinstance(node, ast.Declaration) and len(node.items) == 1:
        expression = node.items[0].init
    return expression if isinstance(expression, ast.Call) else None


def resumable_sequence(body: Sequence[Execute], marks: Sequence[int]) -> Execute:
    """Statements one after the other; the places of number `k` begin at `marks[k]`."""

    def run(t: Team, m: Mask) -> Mask | None:
        parts: Iterable[Execute] = body
        if t.resume >= 0:
            first = 0
            while marks[first + 1] <= t.resume:
                first += 1
            parts = body[first:]
        current: Mask | None = m
        for part in parts:
            current = part(t, current)
            if current is None:
                return None
        return current

    return run


def resumable_branch(
    run: Execute, then: Execute, otherwise: Execute | None, marks: tuple[int, int, int]
) -> Execute:
    """An `if`, whose sides have the places from `marks[0]` and from `marks[1]` on."""
    first, middle, last = marks
    if first == last:
        return run

    def resumed(t: Team, m: Mask) -> Mask | None:
        if t.resume < first:
            return run(t, m)
        if t.resume < middle or otherwise is None:
            return then(t, m)
        return otherwise(t, m)

    return resumed
