"""Calls of the file's own functions: overloads, templates, and expansion in place."""

from __future__ import annotations

from typing import Any, NoReturn

from asyncgpu_tutor.cuda_c.compile import builtins
from asyncgpu_tutor.cuda_c.compile.lower_declarations import zero_of
from asyncgpu_tutor.cuda_c.compile.lower_loops import LowerLoops
from asyncgpu_tutor.cuda_c.compile.typed import (
    Constant,
    Execute,
    Expr,
    Origin,
    Scope,
    TypeBinding,
    Variable,
)
from asyncgpu_tutor.cuda_c.lockstep.masks import Mask
from asyncgpu_tutor.cuda_c.lockstep.team import Team
from asyncgpu_tutor.cuda_c.syntax.ast import (
    Braces,
    Call,
    Expression,
    Function,
    Index,
    Member,
    Name,
    Param,
    TypeName,
    Unary,
    parts_of,
)
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

__all__ = ["LowerCalls", "addressed_names"]

_MAX_SEGMENTS = 20_000


class LowerCalls(LowerLoops):
    """Compiles calls. A device function is compiled anew at each call, as if written there.

    That is what nvcc does with small functions; it makes references and templates simple, and it
    is why recursion is refused.
    """

    def call(self, node: Call, used: bool) -> Expr:
        if node.name in self.functions:
            return self._call_own(node)
        if self.scope.find(node.name) is not None:
            self.fail(node.at, f"'{node.name}' is not a function")
        handler = builtins.find(node.name)
        if handler is None:
            self._unknown_function(node)
        if node.name.startswith(("__sync", "__thread", "atomic", "__shfl")):
            self.at_hand = set()
        found = handler(self, node, used)
        if node.name.startswith(("__sync", "__thread", "atomic")):
            self.at_hand = set()
        return found

    def _unknown_function(self, node: Call) -> NoReturn:
        name = node.name
        reason = builtins.refused(name)
        if reason is not None:
            self.unsupported(node.at, reason)
        advice = builtins.advice(name, set(self.functions))
        self.fail(node.at, f"there is no function '{name}'{advice}")

    # -- choosing

    def _call_own(self, node: Call) -> Expr:
        arguments = [self._argument(a) for a in node.arguments]
        types = [a.type for a in arguments]
        candidates = [f for f in self.functions[node.name] if f.body is not None]
        if not candidates:
            self.fail(node.at, f"'{node.name}' is declared, but has no body in this file")
        fitting: list[tuple[int, Function, Scope]] = []
        for function in candidates:
            least = sum(p.default is None for p in function.params)
            if not least <= len(types) <= len(function.params):
                continue
            names = self._bind_template(function, types, node)
            if names is None:
                continue
            score = self._score(function, names, arguments)
            if score is not None:
                fitting.append((score, function, names))
        if not fitting:
            self._no_fit(node, candidates, types)
        best = min(score for score, _, _ in fitting)
        chosen = [(f, n) for score, f, n in fitting if score == best]
        if len(chosen) > 1:
            self.fail(node.at, f"the call of '{node.name}' is ambiguous: cast the arguments")
        function, names = chosen[0]
        if function.kernel:
            self.unsupported(node.at, "a kernel cannot be called from device code")
        return self._expand(function, names, node, arguments)

    def _argument(self, node: Expression) -> Expr:
        """An argument; a place stays one, since the parameter may be a reference."""
        if isinstance(node, Braces) and node.type is None:
            self.unsupported(node.at, "lists in braces as arguments are not supported")
        if isinstance(node, (Name, Member, Index)) or (isinstance(node, Unary) and node.op == "*"):
            return self.place_of(node)
        return self.expression(node)

    def _no_fit(self, node: Call, candidates: list[Function], types: list[CType]) -> NoReturn:
        given = ", ".join(spelled(t) for t in types)
        if len(candidates) == 1:
            wanted = candidates[0].params
            if len(types) != len(wanted):
                self.fail(
                    node.at,
                    f"'{node.name}' takes {len(wanted)} arguments, {len(types)} given",
                )
        self.fail(node.at, f"no '{node.name}' takes ({given})")

    def _score(self, function: Function, names: Scope, arguments: list[Expr]) -> int | None:
        """How far the arguments are from the parameters; None if they cannot be passed."""
        outer, self.scope = self.scope, names
        try:
            score = 0
            for param, argument in zip(function.params, arguments, strict=False):
                target, source = self.param_type(param), argument.type
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
        finally:
            self.scope = outer

    def param_type(self, param: Param) -> CType:
        """The type of a parameter; an array parameter is a pointer."""
        ctype = self.resolve(param.type)
        if not param.dims:
            return ctype
        inner = self.array_type(ctype, list(param.dims[1:]))
        const = self.top_const(param.type)
        return Pointer(inner, const, self.top_volatile(param.type))

    # -- templates

    def _bind_template(self, function: Function, types: list[CType], node: Call) -> Scope | None:
        scope = Scope(self.file_scope)
        if function.template is None:
            return None if node.templates else scope
        given = list(node.templates or [])
        for k, param in enumerate(function.template.params):
            if k < len(given):
                scope.names[param.name] = self.template_argument(param.type, given[k], node.at)
        for param, ctype in zip(function.params, types, strict=False):
            self._deduce(param.type, ctype, function, scope)
        return self.template_defaults(function, scope, node.at)

    def template_argument(
        self, kind: TypeName | None, given: TypeName | Expression, at: Position
    ) -> TypeBinding | Constant:
        if kind is None:
            if not isinstance(given, TypeName):
                self.fail(at, "this template wants a type here")
            return TypeBinding(self.resolve(given))
        if isinstance(given, TypeName):
            self.fail(given.at, "this template wants a number here")
        ctype = self.resolve(kind)
        number = self.integer_constant(given, "a template argument")
        assert isinstance(ctype, Scalar)
        return Constant(self.constant(ctype, number, at))

    def template_defaults(self, function: Function, scope: Scope, at: Position) -> Scope:
        assert function.template is not None
        for param in function.template.params:
            if param.name in scope.names:
                continue
            if param.default is None:
                self.fail(
                    at,
                    f"the template parameter '{param.name}' of '{function.name}' is not known: "
                    f"write {function.name}<...>(...)",
                )
            outer, self.scope = self.scope, scope
            scope.names[param.name] = self.template_argument(param.type, param.default, at)
            self.scope = outer
        return scope

    def _deduce(self, name: TypeName, ctype: CType, function: Function, scope: Scope) -> None:
        assert function.template is not None
        types = {p.name for p in function.template.params if p.type is None}
        if name.base not in types or name.base in scope.names:
            return
        for _ in name.pointers:
            if isinstance(ctype, Pointer):
                ctype = ctype.target
            elif isinstance(ctype, Array):
                ctype = ctype.element
            else:
                return
        if isinstance(ctype, Array):
            ctype = Pointer(ctype.element, ctype.const)
        scope.names[name.base] = TypeBinding(ctype)

    # -- expansion

    def _expand(self, function: Function, names: Scope, node: Call, arguments: list[Expr]) -> Expr:
        if function.name in self.calls:
            self.unsupported(node.at, f"'{function.name}' calls itself: recursion is not supported")
        if len(self.segments) > _MAX_SEGMENTS:
            self.unsupported(node.at, "this kernel is too large once its functions are expanded")
        caller = (
            self.scope, self.in_kernel, self.break_exits, self.continue_exits, self.addressed,
        )  # fmt: skip
        outer_words, self.outer_words = self.outer_words, self.live_words()
        outer_return = (self.returns, self.return_slot, self.return_exit, self.returned)
        self.calls.append(function.name)
        entry = self._bind_parameters(function, names, node, arguments)
        self.in_kernel = False
        self.break_exits, self.continue_exits = [], []
        self.addressed = addressed_names(function.body)
        self.scope = Scope(names)
        self.returns = self.resolve(function.returns)
        if function.returns.reference:
            self.unsupported(function.at, "functions that return references are not supported")
        self.return_slot, self.return_exit = self.new_slot(), self.new_exit()
        self.returned = []
        assert function.body is not None
        body = self.sequence(function.body.body)
        result = self._call_closure(function, entry, body, node.at)
        parts = self.returned + [a for a in arguments if not isinstance(a.type, Array)]
        origin = Origin()
        for value in self.returned:
            origin.unite(value.origin)
        ctype = self.returns
        self.scope, self.in_kernel, self.break_exits, self.continue_exits, self.addressed = caller
        self.returns, self.return_slot, self.return_exit, self.returned = outer_return
        self.outer_words = outer_words
        self.calls.pop()
        return self.value(ctype, result, node.at, parts, origin=origin)

    def _bind_parameters(
        self, function: Function, names: Scope, node: Call, arguments: list[Expr]
    ) -> list[Execute]:
        steps: list[Execute] = []
        addressed = addressed_names(function.body)
        for k, param in enumerate(function.params):
            caller, self.scope = self.scope, names
            ctype = self.param_type(param)
            if k >= len(arguments):
                assert param.default is not None
                argument = self.expression(param.default)
            else:
                argument = arguments[k]
            self.scope = caller
            if param.type.reference:
                const = self.top_const(param.type)
                binding, bind = self.bind_reference(param.name, argument, ctype, const, node.at)
                names.names[param.name] = binding
                steps.append(bind)
                continue
            value = self.convert(self.decay(self.use(argument)), ctype, argument.at)
            if not param.name:
                continue
            const = self.top_const(param.type)
            if value.constant is not None and param.name not in addressed and const:
                names.names[param.name] = Constant(value)
                continue
            variable = Variable(param.name, ctype, self.new_slot(), const=const, depth=self.depth)
            wanted = param.name in addressed and not isinstance(ctype, Pointer)
            variable.memory = variable.thread = wanted or has_array(ctype)
            if variable.memory:
                variable.origin.place(near=True)
            self.note_assignment(variable, value)
            names.names[param.name] = variable
            steps.append(self.parameter_entry(variable, value))
        return steps

    def parameter_entry(self, variable: Variable, value: Expr) -> Execute:
        """What puts an argument where its parameter is."""
        if variable.memory:
            values = [value]
            if not isinstance(variable.type, Scalar):
                values = self.spread(value, variable.type)
            return self.local_memory(variable, variable.type, values, value.at)
        slot, evaluate = variable.slot, value.run

        def run(t: Team, m: Mask) -> Mask | None:
            t.slots[slot] = evaluate(t, m)
            t.born[slot] = m
            return m

        return run

    def _call_closure(
        self, function: Function, entry: list[Execute], body: Execute, at: Position
    ) -> Any:
        slot, target, name = self.return_slot, self.return_exit, function.name
        void = isinstance(self.returns, Void)
        nothing = None if void else zero_of(self.returns)

        def run(t: Team, m: Mask) -> Any:
            for step in entry:
                step(t, m)
            t.left[target] = None
            t.slots[slot] = nothing
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


def addressed_names(node: object) -> set[str]:
    """Variables whose address is taken somewhere below a node.

    By name, so that a variable is put in memory too if only its namesake needs to be.
    """
    found: set[str] = set()
    for item in parts_of(node):
        if isinstance(item, Unary) and item.op == "&":
            inner = item.operand
            while isinstance(inner, Member):  # an array is in memory anyway
                inner = inner.base
            if isinstance(inner, Name):
                found.add(inner.name)
    return found
