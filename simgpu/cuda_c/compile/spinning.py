"""Questions to the syntax tree: which loops may spin, and what decides whether one goes on."""

from __future__ import annotations

from simgpu.cuda_c.syntax import ast
from simgpu.cuda_c.syntax.names import assigned_names, grown

GRID = {"this_grid"}  # how cooperative groups name all blocks
_LOOKS = ("atomic", "__ldcg", "__ldcv", "__ldca", "__ldlu")


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
