"""Lists in braces: values and initialisers."""

from __future__ import annotations

from asyncgpu_tutor.cuda_c.compile.lower_operators import LowerOperators
from asyncgpu_tutor.cuda_c.compile.typed import Evaluate, Expr, Origin
from asyncgpu_tutor.cuda_c.memory import access
from asyncgpu_tutor.cuda_c.syntax.ast import Braces, Expression
from asyncgpu_tutor.cuda_c.text.source import Position
from asyncgpu_tutor.cuda_c.types import Array, CType, Pointer, Scalar, Struct, leaves, spelled

__all__ = ["LowerBraces"]


class LowerBraces(LowerOperators):
    """Compiles what is written in braces."""

    def braces_value(self, node: Braces, ctype: CType) -> Expr:
        """`{a, b}` as a value of a struct or number; what is left out is zero."""
        if isinstance(ctype, Scalar):
            if len(node.items) > 1:
                self.fail(node.at, f"too many values for one '{spelled(ctype)}'")
            if not node.items:
                return self.constant(ctype, 0, node.at)
            return self.convert(self.expression(node.items[0]), ctype, node.at)
        if not isinstance(ctype, Struct):
            self.fail(node.at, f"'{spelled(ctype)}' cannot be made from a list")
        parts = self.initialise(node, ctype)
        runs = [p.run for p in parts]
        return self.value(ctype, lambda t, m: [r(t, m) for r in runs], node.at, parts)

    def initialise(self, node: Expression, ctype: CType) -> list[Expr]:
        """One expression for each leaf of `ctype`, from a braced list; C's rules for nesting."""
        if isinstance(ctype, (Scalar, Pointer)):
            if isinstance(node, Braces):
                return [self.braces_value(node, ctype)]
            return [self.convert(self.expression(node), ctype, node.at)]
        if not isinstance(node, Braces):
            whole = self.expression(node)
            if whole.type != ctype:
                self.fail(
                    node.at, f"no conversion from '{spelled(whole.type)}' to '{spelled(ctype)}'"
                )
            return self.spread(whole, ctype)
        if node.type is not None and self.resolve(node.type) == ctype:
            node = Braces(at=node.at, items=node.items)
        items = list(node.items)
        out = self._fill(items, ctype, node.at)
        if items:
            self.fail(items[0].at, f"too many values for '{spelled(ctype)}'")
        return out

    def _fill(self, items: list[Expression], ctype: CType, at: Position) -> list[Expr]:
        parts: list[CType]
        if isinstance(ctype, Array):
            parts = [ctype.element] * ctype.length
        else:
            assert isinstance(ctype, Struct)
            parts = [f.type for f in ctype.fields]
        out: list[Expr] = []
        for k, part in enumerate(parts):
            if not items:
                rest = [leaf for p in parts[k:] for leaf, _ in leaves(p)]
                return out + [self._zero(leaf, at) for leaf in rest]
            if (
                isinstance(part, (Scalar, Pointer))
                or isinstance(items[0], Braces)
                or (isinstance(part, Struct) and self._type_of(items[0]) == part)
            ):
                out += self.initialise(items.pop(0), part)
            else:
                out += self._fill(items, part, at)  # braces left out
        return out

    def _type_of(self, node: Expression) -> CType:
        return self.unevaluated(node.at, lambda: self.expression(node))

    def _zero(self, leaf: Scalar | Pointer, at: Position) -> Expr:
        if isinstance(leaf, Pointer):
            return Expr(leaf, lambda t, m: access.NULL, at, origin=Origin())
        return self.constant(leaf, 0, at)

    def spread(self, whole: Expr, ctype: CType) -> list[Expr]:
        out: list[Expr] = []
        for k, (leaf, _) in enumerate(leaves(ctype)):
            run = whole.run
            pick: Evaluate = lambda t, m, k=k, run=run: run(t, m)[k]
            out.append(self.value(leaf, pick, whole.at, [whole]))
        return out
