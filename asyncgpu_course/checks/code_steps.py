"""What the code of a learner's kernel does, in order, read with the parser of `simgpu` and not run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from simgpu.cuda_c.syntax import ast
from simgpu.cuda_c.syntax.parser import parse
from simgpu.cuda_c.text.preprocessor import preprocess
from simgpu.cuda_c.text.source import Source


@dataclass(frozen=True)
class CodeStep:
    """A call, or an access to memory by a pointer, in the order in which a function makes them."""

    kind: str  # "call", "read" or "write"
    name: str  # of the function that is called; else empty
    value: int | None  # the element, or a call's only argument, where it is a number in the code
    depth: int  # the number of loops around it; the test of a loop is in it


ATOMICS = "load", "store", "exchange", "fetch_", "compare_"  # methods of `cuda::atomic_ref`


def steps(source: str, name: str) -> list[CodeStep]:
    """Calls and accesses of a function and of those that it calls, each loop going round once.

    The test of a loop is there again behind its body, as it is made before the code goes on.
    """
    text = Source(source)
    unit = parse(text, preprocess(text))
    functions = {f.name: f for f in unit.functions if f.body is not None}
    return list(_steps(functions[name].body, functions, 0)) if name in functions else []


def with_commas(source: str) -> list[str]:
    """The pointers, by name, of which an element is asked for as in ``a[i, j]``. In C that is ``a[j]``."""
    text = Source(source)
    parts = ast.parts_of(parse(text, preprocess(text)).functions)
    bases = [p.base for p in parts if isinstance(p, ast.Index) and isinstance(p.index, ast.Comma)]
    return sorted({base.name for base in bases if isinstance(base, ast.DeclRefExpr)})


def waits_early(source: str, name: str, given: set[str]) -> int:
    """The line where a loop of a kernel waits, before its work, for numbers that it has just asked for; or 0.

    It asks `given` arrays, and its work is to read others. If it branches on such numbers before that, or its
    work depends on them, it waits. So it does if it sleeps.
    """
    text = Source(source)
    functions = [f for f in parse(text, preprocess(text)).functions if f.name == name]
    for loop in [part for part in ast.parts_of(functions) if isinstance(part, ast.For)]:
        late = set[str]()  # variables with such numbers, or with what is computed from them
        for node in _in_order(loop):
            read = ["value", "init", "test", *["target"] * bool(getattr(node, "op", ""))]
            parts = [*_in_order([getattr(node, part, None) for part in read])]
            needs = late & {part.name for part in parts if isinstance(part, ast.DeclRefExpr)}
            arrays = {_array_of(part) for part in parts if isinstance(part, ast.Index)}
            sleeps = isinstance(node, ast.CallExpr) and node.name == "__nanosleep"
            if sleeps or (needs and (hasattr(node, "test") or arrays - given)):
                return node.at.line
            if needs or arrays & given:
                late.add(getattr(getattr(node, "target", node), "name", ""))
            if isinstance(node, ast.Index) and _array_of(node) not in given:
                late.clear()
    return 0


def _in_order(node: object) -> Iterator[ast.SyntaxNode]:
    """A node and all below, without what only has its address taken, and without loops that poll."""
    polls = isinstance(node, ast.For) and {*map(type, ast.parts_of(node.test))} & {ast.CallExpr}
    address = isinstance(node, ast.Unary) and node.op == "&"
    if isinstance(node, ast.SyntaxNode) and not polls and not address:
        yield node
        node = [*vars(node).values()]
    for part in cast(list[object], node if isinstance(node, list) else []):
        yield from _in_order(part)


def _array_of(node: object) -> str:
    return _array_of(node.base) if isinstance(node, ast.Index) else getattr(node, "name", "")


def _number(node: object) -> int | None:
    return node.value if isinstance(node, ast.Literal) and isinstance(node.value, int) else None


def _element(node: object) -> tuple[ast.Expression, int | None] | None:
    """A pointer and the number of its element, if this is an access by it."""
    if isinstance(node, ast.Index):
        return node.base, _number(node.index)
    if not isinstance(node, ast.Unary) or node.op != "*":
        return None
    at = node.operand
    if isinstance(at, ast.Binary) and at.op == "+":
        return at.left, _number(at.right)
    return at, 0 if isinstance(at, ast.DeclRefExpr | ast.Cast) else None


def _steps(node: object, known: dict[str, ast.FunctionDecl], depth: int) -> Iterator[CodeStep]:
    def below(*parts: object, more: int = 0) -> Iterator[CodeStep]:
        for part in parts:
            yield from _steps(part, known, depth + more)

    if isinstance(node, list | tuple):
        yield from below(*cast(Sequence[object], node))
    elif isinstance(node, ast.For):
        yield from below(node.init)
        first = () if node.after else (node.test,)
        yield from below(*first, node.body, node.step, node.test, more=1)
    elif isinstance(node, ast.AssignExpr | ast.Increment):
        target = node.target if isinstance(node, ast.AssignExpr) else node.operand
        if isinstance(node, ast.AssignExpr):
            yield from below(node.value)
        access = _element(target)
        if node.op:
            yield from below(target)
        elif isinstance(target, ast.Index):
            yield from below(target.index)
        if access is not None:
            yield CodeStep("write", "", access[1], depth)
    elif isinstance(node, ast.Unary) and node.op == "&":
        return
    elif (access := _element(node)) is not None:
        yield from below(*[x for x in vars(node).values() if isinstance(x, ast.SyntaxNode)])
        yield CodeStep("read", "", access[1], depth)
    elif isinstance(node, ast.CallExpr):
        yield from below(node.object, node.arguments)
        alone = node.arguments[0] if len(node.arguments) == 1 else None
        relaxed = any(getattr(a, "name", "") == "memory_order_relaxed" for a in node.arguments)
        ordered = node.object is not None and node.name.startswith(ATOMICS) and not relaxed
        fence = [CodeStep("call", "atomic_thread_fence", None, depth)] * ordered  # as good as one
        yield from (*fence, CodeStep("call", node.name, _number(alone), depth), *fence)
        others = {name: function for name, function in known.items() if name != node.name}
        if len(others) < len(known):
            yield from _steps(known[node.name].body, others, depth)
    elif isinstance(node, ast.SyntaxNode):
        yield from below(*vars(node).values())
