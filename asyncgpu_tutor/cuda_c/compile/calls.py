"""Calls of the file's own functions: overloads, and expansion in place.

A device function is compiled anew at each call, as if written there. That is what nvcc does with small
functions; it makes references and templates simple, and it is why recursion is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from asyncgpu_tutor.cuda_c.compile import builtins
from asyncgpu_tutor.cuda_c.compile.context import Compile, Context, Frame
from asyncgpu_tutor.cuda_c.compile.conversions import convert, decay, value
from asyncgpu_tutor.cuda_c.compile.declarations import (
    bind_reference,
    parameter_entry,
    zero_of,
)
from asyncgpu_tutor.cuda_c.compile.places import place_of
from asyncgpu_tutor.cuda_c.compile.record import Bind, Declare
from asyncgpu_tutor.cuda_c.compile.statements import sequence
from asyncgpu_tutor.cuda_c.compile.storage import assigned, use
from asyncgpu_tutor.cuda_c.compile.templates import bind_template
from asyncgpu_tutor.cuda_c.compile.type_names import param_type, resolve, top_const
from asyncgpu_tutor.cuda_c.compile.typed import Evaluate, Execute, Expr, Number, Scope
from asyncgpu_tutor.cuda_c.compile.variables import Origin, Variable
from asyncgpu_tutor.cuda_c.lockstep.masks import Mask
from asyncgpu_tutor.cuda_c.lockstep.team import Team
from asyncgpu_tutor.cuda_c.syntax import ast
from asyncgpu_tutor.cuda_c.syntax.names import addressed_names
from asyncgpu_tutor.cuda_c.text.source import Position
from asyncgpu_tutor.cuda_c.types import (
    Array,
    CType,
    Pointer,
    Scalar,
    Void,
    has_array,
    promoted,
    spelled,
)
from asyncgpu_tutor.errors import UninitialisedReadError

_MOST_POINTS = 20_000  # pieces of code in a kernel once its functions are expanded


def _call(c: Context, node: ast.Call, used: bool) -> Expr:
    if node.name in c.functions:
        return _call_own(c, node)
    if c.scope.find(node.name) is not None:
        c.fail(node.at, f"'{node.name}' is not a function")
    builtin = builtins.find(node.name)
    if builtin is None:
        reason = builtins.refused(node.name)
        if reason is not None:
            c.unsupported(node.at, reason)
        advice = builtins.advice(node.name, set(c.functions)) or c.elsewhere(node.name)
        if node.name in c.text.aside:
            advice = (
                f"{c.elsewhere(node.name)}: write __device__ in front, so that a kernel can call it"
            )
        c.fail(node.at, f"there is no function '{node.name}'{advice}")
    return builtin(c, node, used)


# -- choosing


def _call_own(c: Context, node: ast.Call) -> Expr:
    arguments = [_argument(c, a) for a in node.arguments]
    types = [a.type for a in arguments]
    candidates = [f for f in c.functions[node.name] if f.body is not None]
    if not candidates:
        c.fail(node.at, f"'{node.name}' is declared, but has no body in this file")
    fitting: list[tuple[int, ast.Function, Scope]] = []
    for function in candidates:
        least = sum(p.default is None for p in function.params)
        if not least <= len(types) <= len(function.params):
            continue
        names = bind_template(c, function, types, node)
        if names is None:
            continue
        with c.seen_from(names):
            score = _score(c, function, types)
        fitting.append((score, function, names))
    if not fitting:
        _no_fit(c, node, candidates, types)
    best = min(score for score, _, _ in fitting)
    chosen = [(f, n) for score, f, n in fitting if score == best]
    if len(chosen) > 1:
        c.fail(node.at, f"the call of '{node.name}' is ambiguous: cast the arguments")
    function, names = chosen[0]
    if function.kernel:
        c.unsupported(node.at, "a kernel cannot be called from device code")
    return _expand(c, function, names, node, arguments)


def _argument(c: Context, node: ast.Expression) -> Expr:
    """An argument; a place stays one, since the parameter may be a reference."""
    if isinstance(node, ast.Braces) and node.type is None:
        c.unsupported(node.at, "lists in braces as arguments are not supported")
    return place_of(c, node)


def _no_fit(
    c: Context, node: ast.Call, candidates: list[ast.Function], types: list[CType]
) -> NoReturn:
    given = ", ".join(spelled(t) for t in types)
    if len(candidates) == 1:
        wanted = candidates[0].params
        if len(types) != len(wanted):
            c.fail(node.at, f"'{node.name}' takes {len(wanted)} arguments, {len(types)} given")
    c.fail(node.at, f"no '{node.name}' takes ({given})")


def _score(c: Context, function: ast.Function, types: list[CType]) -> int:
    """How far the arguments are from the parameters."""
    score = 0
    for param, given in zip(function.params, types, strict=False):
        target, source = param_type(c, param), given
        if isinstance(source, Array):
            source = Pointer(source.element, source.const, source.volatile)
        if source == target:
            continue
        if isinstance(source, Scalar) and isinstance(target, Scalar):
            score += 1 if promoted(source) == target else 10
        elif isinstance(source, Pointer) and isinstance(target, Pointer):
            score += 1 if source.target == target.target else 100
        else:
            score += 100
    return score


# -- expansion


def _expand(
    c: Context, function: ast.Function, names: Scope, node: ast.Call, arguments: list[Expr]
) -> Expr:
    if function.name in c.calls:
        c.unsupported(node.at, f"'{function.name}' calls itself: recursion is not supported")
    if c.points > _MOST_POINTS:
        c.unsupported(node.at, "this kernel is too large once its functions are expanded")
    assert function.body is not None
    addressed = addressed_names(function.body)
    caller = c.frame
    c.calls.append(function.name)
    with c.seen_from(names), c.scoped():
        entry = _bind_parameters(c, function, names, node, arguments, addressed)
        frame = Frame(False, resolve(c, function.returns), addressed=addressed)
        if function.returns.reference:
            c.unsupported(function.at, "functions that return references are not supported")
        frame.slot, frame.exit = c.new_slot(), c.new_exit()
        c.frame = frame
        body = sequence(c, function.body.body)
        c.frame = caller
    c.calls.pop()
    parts = frame.returned + [a for a in arguments if not isinstance(a.type, Array)]
    origin = Origin()
    for result in frame.returned:
        origin.unite(result.origin)
    run = _expanded(function.name, frame, entry, body, node.at)
    return value(c, frame.returns, run, node.at, parts, origin=origin)


def _bind_parameters(
    c: Context,
    function: ast.Function,
    names: Scope,
    node: ast.Call,
    arguments: list[Expr],
    addressed: set[str],
) -> list[Execute]:
    entry: list[Execute] = []
    for k, param in enumerate(function.params):
        with c.seen_from(names):
            ctype = param_type(c, param)
            if k < len(arguments):
                argument = arguments[k]
            else:
                assert param.default is not None
                argument = c.expression(param.default)
        const = top_const(param.type)
        if param.type.reference:
            binding, fix = bind_reference(c, param.name, argument, ctype, const, node.at)
            names.names[param.name] = binding
            if isinstance(binding, Variable):
                c.steps.append(Declare(binding, parameter=True))
            entry.append(fix)
            continue
        new = convert(c, decay(use(c, argument)), ctype, argument.at)
        if not param.name:
            continue
        if new.constant is not None and param.name not in addressed and const:
            names.names[param.name] = Number(new)
            continue
        variable = Variable(param.name, ctype, c.new_slot(), const=const)
        wanted = param.name in addressed and not isinstance(ctype, Pointer)
        variable.memory = variable.thread = wanted or has_array(ctype)
        if variable.memory:
            variable.origin.place(near=True)
        assigned(variable, new)
        names.names[param.name] = variable
        c.steps += [Bind(variable, new.node), Declare(variable, parameter=True)]
        entry.append(parameter_entry(c, variable, new))
    return entry


def _expanded(
    name: str, frame: Frame, entry: list[Execute], body: Execute, at: Position
) -> Evaluate:
    slot, target, void = frame.slot, frame.exit, isinstance(frame.returns, Void)
    unset = None if void else zero_of(frame.returns)

    def run(t: Team, m: Mask) -> Any:
        for step in entry:
            step(t, m)
        t.left[target] = None
        t.slots[slot] = unset
        fell_off = body(t, m)
        if fell_off is not None and not void and t.launch.limits.check_uninitialised:
            t.fault(
                UninitialisedReadError,
                at,
                int(fell_off.index[0]),
                f"reaches the end of '{name}', which returns no value there",
                array=name,
            )
        return t.slots[slot]

    return run


EXPRESSIONS: Mapping[type[ast.Expression], Compile] = {ast.Call: _call}
