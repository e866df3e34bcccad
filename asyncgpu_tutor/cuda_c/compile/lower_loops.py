"""Loops to closures, and what a compiler would make of them to what is charged."""

from __future__ import annotations

from typing import Any

from asyncgpu_tutor.cuda_c.compile.lower_statements import LowerStatements
from asyncgpu_tutor.cuda_c.compile.typed import Alias, Execute, Expr, RegisterPlace, Scope, Variable
from asyncgpu_tutor.cuda_c.cost.loops import PARTLY, assigned_names, partly_unrolled, unrolled_turns
from asyncgpu_tutor.cuda_c.lockstep.masks import Mask, join, split
from asyncgpu_tutor.cuda_c.lockstep.team import Team
from asyncgpu_tutor.cuda_c.syntax.ast import (
    Assign,
    Block,
    Call,
    Expression,
    For,
    Increment,
    Index,
    Member,
    parts_of,
)

__all__ = ["LowerLoops"]


class LowerLoops(LowerStatements):
    """Compiles loops."""

    def loop(self, node: For) -> Execute:
        self.scope = Scope(self.scope)
        unrolled = unrolled_turns(node, self._known)
        init = self.statement(node.init) if node.init is not None else None
        before = (self.depth, self.overlap)
        self.nesting += 1
        self.at_hand = set()
        changed = self._enter_loop(node, unrolled)
        test_node, step_node = node.test, node.step
        test_at = test_node.at if test_node is not None else node.at
        reads: frozenset[Variable] = frozenset()
        test: Any = None
        test_segment = self.new_segment(test_at.line)
        if test_node is not None:
            test, reads, known = self.within(test_segment, lambda: self.test(test_node))
            if known:
                test = None  # for ever, as far as the condition is concerned
        test_segment.branch = test is not None
        self.ranks.branch()
        leave, again = self.new_exit(), self.new_exit()
        self.break_exits.append(leave)
        self.continue_exits.append(again)
        self.control.append(reads)
        body = self.block(Block(at=node.body.at, body=[node.body]))
        step: Any = None
        step_segment = self.new_segment(node.at.line)
        step_segment.loop = True
        if step_node is not None:
            step = self.within(step_segment, lambda: self.expression(step_node, used=False)).run
        if unrolled is not None:
            test_segment.instructions = step_segment.instructions = 0
        for variable, depth in changed:
            variable.depth = depth
        self.depth, self.overlap = before
        self.nesting -= 1
        self.at_hand = set()
        self.control.pop()
        self.break_exits.pop()
        self.continue_exits.pop()
        assert self.scope.outer is not None
        self.scope = self.scope.outer
        at, after = node.at, node.after

        def run(t: Team, entered: Mask) -> Mask | None:
            tally = t.tally
            if init is not None:
                init(t, entered)
            t.left[leave] = None
            finished: Mask | None = None
            first = after
            m: Mask | None = entered
            while True:
                if test is not None and not first:
                    tally.charge(test_segment, m)
                    stay, stop = split(m, test(t, m))
                    if stop is not None:
                        tally.branch(test_segment, stay, stop)
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
                # Charged for what was entered: a warp that breaks has begun the iteration too.
                tally.charge(step_segment, inside)
                if m is None:
                    break
                if step is not None:
                    step(t, m)
            return join(finished, t.left[leave], entered)

        return run

    def _known(self, node: Expression) -> int | None:
        """The value of an integer expression, if it is known now; nothing is charged for it."""
        value = self._looked_at(node)
        if value is None or value.constant is None or value.constant != int(value.constant):
            return None
        return int(value.constant)

    def _fixed(self, node: Expression) -> bool:
        """Whether a compiler knows the value of an expression."""
        value = self._looked_at(node)
        return value is not None and value.changes < 0

    def _looked_at(self, node: Expression) -> Expr | None:
        """A simple expression, without charging for it; None for any other."""
        if any(isinstance(p, Assign | Call | Increment | Index | Member) for p in parts_of(node)):
            return None
        scratch = self.new_segment(node.at.line)
        value = self.within(scratch, lambda: self.expression(node))
        scratch.instructions = scratch.flops = scratch.rounds = scratch.doubles = 0
        self.loads.pop(scratch.index, None)
        return value

    def _enter_loop(
        self, node: For, unrolled: tuple[str, int] | None
    ) -> list[tuple[Variable, int]]:
        """Note what changes in each turn; variables, and how deep they changed before."""
        if unrolled is not None:
            name, turns = unrolled
            self.overlap *= max(1, turns)
            counter = self.scope.find(name)
            if not isinstance(counter, Variable):
                return []
            before, counter.depth = counter.depth, -1
            return [(counter, before)]
        self.depth += 1
        if partly_unrolled(node, self._fixed):
            self.overlap *= PARTLY
        found: list[tuple[Variable, int]] = []
        for name in sorted(assigned_names([node.test, node.step, node.body])):
            binding = self.scope.find(name)
            if isinstance(binding, Alias) and isinstance(binding.expr.place, RegisterPlace):
                binding = binding.expr.place.variable
            if isinstance(binding, Variable):
                found.append((binding, binding.depth))
                binding.depth = self.depth
        return found
