"""Calls of functions that may wait, taken out of larger expressions.

Threads are set aside between statements, and go on at the statement where they were (`waiting`). So
a call in which they may wait has to be a statement. `x[i] = 2 * last(flags)` becomes `auto r = last(flags);
x[i] = 2 * r`. A right side of `&&` goes into an `if`, and the test of a loop to the start of its body. What
stands to the left of the call in a sum or product is computed before it, as compilers do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from simgpu.cuda_c.compile.typed import TypeBinding
from simgpu.cuda_c.syntax import ast
from simgpu.cuda_c.text.source import Position
from simgpu.cuda_c.types import INT, CType, Void
from simgpu.errors import KernelCompileError

if TYPE_CHECKING:
    from simgpu.cuda_c.compile.context import Context


def hoisted(c: Context, node: ast.Statement) -> Iterator[ast.Statement]:
    """Split a statement, one by one, so that a call that may wait is a statement or gives a variable."""
    if isinstance(node, ast.Declaration) and len(node.items) > 1:
        for item in node.items:
            yield from hoisted(c, replace(node, items=[item]))
        return
    out: list[ast.Statement] = []
    rest = _Hoister(c, out).statement(node)
    yield from out
    yield from rest


def call_of(node: ast.Statement) -> ast.Call | None:
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


class _Hoister:
    def __init__(self, c: Context, out: list[ast.Statement]) -> None:
        self.c = c
        self.out = out

    # -- statements

    def statement(self, node: ast.Statement) -> list[ast.Statement]:
        """Return what is left of a statement; the statements that go before it are in `out`."""
        if isinstance(node, ast.Return) and node.value is not None and self._inside(node.value):
            value = node.value
            if isinstance(value, ast.Call) and self._returns_nothing(value):
                return [replace(node, value=self._arguments(value))]
            return [replace(node, value=self.expression(value))]
        if isinstance(node, ast.ExpressionStatement) and self._inside(node.expression):
            return [replace(node, expression=self._top(node.expression, call_of(node)))]
        if isinstance(node, ast.Declaration) and "typedef" not in node.storage:
            (item,) = node.items
            if item.init is not None and self._inside(item.init) and not item.type.reference:
                item = replace(item, init=self._top(item.init, call_of(node)))
                return [replace(node, items=[item])]
        if isinstance(node, ast.If) and not node.constexpr and self._inside(node.test):
            return [replace(node, test=self.expression(node.test))]
        if isinstance(node, ast.Switch) and self._inside(node.subject):
            return [replace(node, subject=self.expression(node.subject))]
        if isinstance(node, ast.For) and node.test is not None and self._inside(node.test):
            return [self._loop(node, node.test)]
        return [node]

    def _loop(self, node: ast.For, test: ast.Expression) -> ast.Statement:
        body: list[ast.Statement] = []
        inner = _Hoister(self.c, body)
        over = ast.Unary(at=test.at, op="!", operand=inner.expression(test))
        leave = ast.Jump(at=test.at, word="break")
        body.append(ast.If(at=test.at, test=over, then=leave, otherwise=None))
        jumps = [p.word for p in ast.parts_of(node.body) if isinstance(p, ast.Jump)]
        if node.after and "continue" in jumps:
            return node
        parts = [node.body, *body] if node.after else [*body, node.body]
        return replace(node, test=None, after=False, body=ast.Block(at=node.at, body=parts))

    # -- expressions

    def _top(self, node: ast.Expression, alone: ast.Expression | None) -> ast.Expression:
        """The expression of a statement, in which the call `alone` may stay where it is."""
        if alone is not None and node is alone and isinstance(node, ast.Call):
            return self._arguments(node)
        if isinstance(node, ast.Assign) and alone is not None and node.value is alone:
            return replace(node, value=self._top(node.value, alone))
        return self.expression(node)

    def expression(self, node: ast.Expression) -> ast.Expression:
        """An expression without calls that may wait."""
        if not self._inside(node):
            return node
        if isinstance(node, ast.Call) and node.name in self.c.waiting:
            return self._kept(self._arguments(node))
        if isinstance(node, ast.Binary) and node.op in ("&&", "||"):
            return self._short(node)
        if isinstance(node, ast.Binary):
            left = self.expression(node.left)
            if self._inside(node.right) and not isinstance(left, ast.Literal):
                left = self._kept(left)
            return replace(node, left=left, right=self.expression(node.right))
        if isinstance(node, ast.Assign):
            value = self.expression(node.value)
            return replace(node, value=value, target=self.expression(node.target))
        if isinstance(node, ast.Comma):
            first = self.expression(node.first)
            self.out.append(ast.ExpressionStatement(at=node.at, expression=first))
            return self.expression(node.second)
        if isinstance(node, ast.Conditional):
            return self._conditional(node)
        if isinstance(node, ast.Lambda):
            return node
        return self._parts(node)

    def _short(self, node: ast.Binary) -> ast.Expression:
        left = self.expression(node.left)
        if not self._inside(node.right):
            return replace(node, left=left)
        at = node.at
        truth = ast.TypeName(at=at, base="bool")
        result = self._kept(left, truth)
        inner: list[ast.Statement] = []
        right = _Hoister(self.c, inner).expression(node.right)
        inner.append(ast.assigning(result, right, at))
        test = result if node.op == "&&" else ast.Unary(at=at, op="!", operand=result)
        then = ast.Block(at=at, body=inner)
        self.out.append(ast.If(at=at, test=test, then=then, otherwise=None))
        return result

    def _conditional(self, node: ast.Conditional) -> ast.Expression:
        at = node.at
        test = self.expression(node.test)
        if not self._inside([node.yes, node.no]):
            return replace(node, test=test)
        c, known = self.c, (self.c.frame, list(self.c.calls))
        try:
            with c.recording():  # the record is dropped, because only the type is wanted
                ctype = c.expression(node).type
        except KernelCompileError:  # it names what the loop declares of which it is the test
            c.frame, c.calls = known
            return replace(node, test=test)  # for now: it is looked at again in the loop's body
        void = isinstance(ctype, Void)
        result = None if void else self._kept(ast.Braces(at=at, items=[]), self._named(at, ctype))
        sides: list[ast.Statement] = []
        for side in (node.yes, node.no):
            inner: list[ast.Statement] = []
            value = _Hoister(self.c, inner)._top(side, side)  # which is all of a statement
            if result is not None:
                value = ast.Assign(at=at, op="", target=result, value=value)
            inner.append(ast.ExpressionStatement(at=at, expression=value))
            sides.append(ast.Block(at=at, body=inner))
        then, otherwise = sides
        self.out.append(ast.If(at=at, test=test, then=then, otherwise=otherwise))
        return ast.Literal(at=at, value=0, type=INT) if result is None else result

    def _named(self, at: Position, ctype: CType) -> ast.TypeName:
        """A name for a type that nobody has spelled."""
        name = f"type {self.c.new_slot()}"
        self.c.scope.names[name] = TypeBinding(ctype)
        return ast.TypeName(at=at, base=name)

    def _arguments(self, node: ast.Call) -> ast.Call:
        arguments = [self.expression(a) for a in node.arguments]
        inner = None if node.object is None else self.expression(node.object)
        return replace(node, arguments=arguments, object=inner)

    def _parts(self, node: ast.Expression) -> ast.Expression:
        changed: dict[str, Any] = {}
        for name, part in vars(node).items():
            if isinstance(part, ast.Expression):
                changed[name] = self.expression(part)
            elif isinstance(part, list):
                several = cast("list[object]", part)
                changed[name] = [
                    self.expression(p) if isinstance(p, ast.Expression) else p for p in several
                ]
        return replace(node, **changed)

    def _kept(self, value: ast.Expression, ctype: ast.TypeName | None = None) -> ast.Name:
        """A name for a value that is computed here."""
        at = value.at
        name = f"result {self.c.new_slot()}"
        ctype = ctype or ast.TypeName(at=at, base="auto")
        item = ast.Declarator(at=at, name=name, type=ctype, init=value)
        self.out.append(ast.Declaration(at=at, storage=set(), items=[item]))
        return ast.Name(at=at, name=name)

    # -- questions

    def _inside(self, node: object) -> bool:
        return any(self._hoistable(item) for item in ast.parts_of(node))

    def _hoistable(self, item: ast.Node) -> bool:
        if not isinstance(item, ast.Call) or item.name not in self.c.waiting:
            return False
        return not any(f.returns.reference for f in self.c.file.called.get(item.name, []))

    def _returns_nothing(self, node: ast.Call) -> bool:
        returns = [f.returns for f in self.c.file.called.get(node.name, [])]
        return any(name.base == "void" and not name.pointers for name in returns)
