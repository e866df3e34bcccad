"""Loops: every kind of them is a `For` by now."""

from __future__ import annotations

from dataclasses import replace

from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.cuts import tested_inside
from simgpu.cuda_c.compile.form import Loop, Node
from simgpu.cuda_c.compile.places import place_of
from simgpu.cuda_c.compile.statements import block_of, tested
from simgpu.cuda_c.compile.variables import Variable
from simgpu.cuda_c.syntax import ast
from simgpu.cuda_c.types import INT, Array, spelled


def loop(c: Context, node: ast.For) -> None:
    """Compile `for`, `while` or `do`."""
    with c.scoped():
        if node.init is not None:
            c.statement(node.init)
        _turns(c, node)


def range_for(c: Context, node: ast.RangeFor) -> None:
    """`for (item : array)`, as a loop over the indices."""
    with c.recording():  # the steps are dropped, because nothing of this is computed
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
    init = ast.Declaration(at=at, storage=set(), items=[start])
    test = ast.Binary(at=at, op="<", left=counter, right=last)
    step = ast.Increment(at=at, op="+", operand=counter, postfix=False)
    body = ast.Block(at=node.body.at, body=[item, node.body])
    loop(c, ast.For(at=at, init=init, test=test, step=step, body=body))


def _turns(c: Context, node: ast.For) -> None:
    counter = None
    if isinstance(node.init, ast.Declaration) and len(node.init.items) == 1:
        binding = c.scope.find(node.init.items[0].name)
        counter = binding if isinstance(binding, Variable) else None
    condition: Node | None = None
    with c.detached(node.at if node.test is None else node.test.at) as test:
        if node.test is not None:
            expr, run = tested(c, node.test)
            condition = expr.node
            test.run = None if expr.constant else run  # a constant never ends the loop
    c.numbers.ranks.branch()
    leave, again = c.new_exit(), c.new_exit()
    c.frame.breaks.append(leave)
    c.frame.continues.append(again)
    body = block_of(c, node.body)
    if test.ahead and condition is not None:
        test, body = tested_inside(c, test, condition, body, (leave, again), node.after)
        condition = None
    with c.detached(node.at) as step:
        if node.step is not None:
            cuts, c.cuts = c.cuts, False  # because nobody can go on in the middle of it
            step.run = c.expression(node.step, used=False).run
            c.cuts = cuts
    c.frame.breaks.pop()
    c.frame.continues.pop()
    c.steps.append(
        Loop(
            at=node.at,
            after=node.after,
            counter=counter,
            test=test,
            condition=condition,
            endless=test.run is None,
            body=body,
            step=step,
            leave=leave,
            again=again,
        )
    )
