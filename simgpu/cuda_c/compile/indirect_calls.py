"""Calls by a function's address.

Where the address is known, which it is for a function that is passed as an argument and not assigned to,
the function is expanded as if it had been called by its name. Elsewhere all functions of the file that have
the type, and whose address something takes, are expanded, and each thread runs the one that it has come with:
threads of one warp that call different functions run them one after the other, as on a GPU.
"""

from typing import Any

import numpy as np

from simgpu.cuda_c.compile.calls import argument, expand
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.conversions import convert, decay, typed_value
from simgpu.cuda_c.compile.form import BasicBlock, Choice
from simgpu.cuda_c.compile.overloads import Invocation
from simgpu.cuda_c.compile.rooms import first_value
from simgpu.cuda_c.compile.storage import put, read_variable, use_storage
from simgpu.cuda_c.compile.typed import Evaluate, Expr, Target
from simgpu.cuda_c.compile.variables import Origin, Variable
from simgpu.cuda_c.lockstep import Mask, Team, split, varies
from simgpu.cuda_c.memory import access
from simgpu.cuda_c.syntax.ast import CallExpr
from simgpu.cuda_c.text.source import Position
from simgpu.cuda_c.types import FunctionPointer, Void, spelled
from simgpu.errors import KernelFault

# Fetching the address, the jump, and the way back; registers that are saved are not counted.
_INSTRUCTIONS = 4


def call_by_address(c: Context, node: CallExpr, address: Expr) -> Expr:
    """`address(...)`."""
    ctype = address.type
    assert isinstance(ctype, FunctionPointer)
    if ctype.overloaded:
        c.fail(node.at, f"call '{ctype.overloaded}' by its name")
    wanted, count = len(ctype.params), len(node.arguments)
    if count != wanted:
        c.fail(node.at, f"'{spelled(ctype)}' takes {wanted} arguments, {count} given")
    arguments = [argument(c, a) for a in node.arguments]
    if address.constant is not None:
        if not address.constant:
            c.fail(node.at, "the null pointer cannot be called")
        return _expanded(c, c.file.targets[int(address.constant) - 1], node, arguments)
    if "&" in ctype.name:
        c.unsupported(node.at, "calls by an address whose function takes or returns references")
    entry: list[Evaluate] = []
    given: list[Expr] = []
    for k, (argued, wanted) in enumerate(zip(arguments, ctype.params, strict=True)):
        new = convert(c, decay(use_storage(c, argued)), wanted, argued.at)
        variable = Variable(f"argument {k}", wanted, c.new_slot(), const=True)
        first_value(c, variable, new)
        entry.append(put(variable.slot, new.run))
        given.append(read_variable(c, variable, argued.at))
    c.work(_INSTRUCTIONS)
    which = use_storage(c, address)
    bodies: dict[int, tuple[BasicBlock, Expr]] = {}
    for number, target in enumerate(list(c.file.targets), 1):
        known = target.function.refusal is None and target.kernel in (None, c)
        if known and target.type == ctype:
            with c.detached(node.at) as piece:
                inner = CallExpr(at=node.at, name=target.function.name, arguments=node.arguments)
                bodies[number] = piece, _expanded(c, target, inner, given)
    pieces, results = [piece for piece, _ in bodies.values()], [r for _, r in bodies.values()]
    if any(piece.ahead for piece in pieces):  # a wait would stand in front of them
        c.unsupported(node.at, "waiting in a function called by its address: call it by its name")
    c.steps.append(Choice(which.node, tuple(pieces)))
    runs = {number: (piece.point, result.run) for number, (piece, result) in bodies.items()}
    run = _calling(which.run, entry, runs, ctype, node.at)
    origin = Origin(*[result.origin for result in results])
    return typed_value(c, ctype.returns, run, node.at, [which, *given, *results], origin=origin)


def _calling(
    which: Evaluate, entry: list[Evaluate], bodies: dict[int, tuple[int, Evaluate]],
    ctype: FunctionPointer, at: Position,
) -> Evaluate:  # fmt: skip
    """Let the threads that have come with each number run its function, one after the other."""
    void, name = isinstance(ctype.returns, Void), spelled(ctype)

    def evaluate(t: Team, m: Mask) -> Any:
        numbers = which(t, m)
        for give in entry:
            give(t, m)
        out: Any = None
        left: Mask | None = m
        for number in np.unique(m.take(numbers)) if varies(numbers) else [numbers]:
            assert left is not None
            mine, left = split(left, numbers == number)
            assert mine is not None
            if int(number) not in bodies:
                what = f"{int(number):#x}, which is no function of this file that is a '{name}'"
                what = what if number else "a null pointer to a function"
                t.fault(KernelFault, at, int(mine.index[0]), f"calls {what}")
            point, body = bodies[int(number)]
            t.meter.charge(point, mine)
            result = body(t, mine)
            out = None if void else access.merge(mine, result, out)
        return out

    return evaluate


def _expanded(c: Context, target: Target, node: CallExpr, arguments: list[Expr]) -> Expr:
    result = expand(c, Invocation(node, arguments), target.function, target.names)
    if target.function.returns.base == "auto" and result.type != target.type.returns:
        text = f"this returns a '{spelled(result.type)}', and is used as a '{spelled(target.type)}'"
        c.fail(target.function.at, text)
    return result
