"""The compiler's common ground: context, costs, conversions, types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np

from asyncgpu_tutor.cuda_c.compile.lower_costs import LowerCosts
from asyncgpu_tutor.cuda_c.compile.typed import (
    CHANGING,
    Alias,
    Constant,
    Evaluate,
    Execute,
    Expr,
    Origin,
    Scope,
    TypeBinding,
    Variable,
)
from asyncgpu_tutor.cuda_c.lockstep.values import converter
from asyncgpu_tutor.cuda_c.memory.access import NULL
from asyncgpu_tutor.cuda_c.syntax.ast import Expression, Function, Name, StructDef, TypeName
from asyncgpu_tutor.cuda_c.text.source import Position, Source
from asyncgpu_tutor.cuda_c.types import (
    BOOL,
    DOUBLE,
    SCALARS,
    VECTORS,
    VOID,
    Array,
    CType,
    Field,
    Pointer,
    Scalar,
    Struct,
    Void,
    align_of,
    size_of,
    spelled,
)

__all__ = ["LowerBase"]

# What an operation costs a warp in instructions; see `Counts`.
INTEGER_DIVISION = 16
SLOW_FLOAT = 8


class LowerBase(LowerCosts):
    """State of the compilation of one kernel.

    Parameters
    ----------
    source : Source
        For messages.
    functions : dict
        All functions of the file by name.
    outer : Scope
        Names of the file.
    fmad : bool
        Whether a product and a sum may become one fused operation.
    """

    def __init__(
        self, source: Source, functions: dict[str, list[Function]], outer: Scope, fmad: bool
    ) -> None:
        super().__init__(outer)
        self.source = source
        self.functions = functions
        self.file_scope = outer
        self.fmad = fmad
        self.has_half = False
        self.slots = 0
        self.exits = 0
        self.addressed: set[str] = set()
        self.calls: list[str] = []
        self.shared_total = 0
        self.shared_seen: set[tuple[int, CType | None]] = set()
        # What the file's own __shared__ variables need at the start of a kernel.
        self.file_entry: list[Execute] = []

    # -- messages

    def fail(self, at: Position, message: str) -> NoReturn:
        self.source.fail(at, message)

    def unsupported(self, at: Position, message: str) -> NoReturn:
        self.source.unsupported(at, message)

    # -- resources

    def new_slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def new_exit(self) -> int:
        self.exits += 1
        return self.exits - 1

    # -- expressions

    def value(
        self, ctype: CType, run: Evaluate, at: Position, parts: Iterable[Expr] = (), **more: Any
    ) -> Expr:
        """An expression that depends on others."""
        parts = list(parts)
        reads, rounds = Expr.joined(parts)
        more.setdefault("rounds", rounds)
        more.setdefault("rank", max((p.rank for p in parts), default=-1) + 1)
        more.setdefault("depth", max((p.changes for p in parts), default=CHANGING))
        return Expr(ctype, run, at, reads=reads, **more)

    def constant(self, ctype: Scalar, number: Any, at: Position) -> Expr:
        value = np.asarray(number).astype(ctype.dtype)[()]
        return Expr(ctype, lambda t, m: value, at, constant=value)

    def fold(self, expr: Expr, parts: Iterable[Expr]) -> Expr:
        """Compute now what depends on constants only."""
        if any(p.constant is None for p in parts) or not isinstance(expr.type, Scalar):
            return expr
        with np.errstate(all="ignore"):
            value: Any = expr.run(None, None)  # pyright: ignore[reportArgumentType] - constants look at neither
        return self.constant(expr.type, value, expr.at)

    def convert(self, expr: Expr, target: CType, at: Position, explicit: bool = False) -> Expr:
        """An expression as a value of another type, as an assignment or a cast does it.

        Raises
        ------
        KernelCompileError
            Where C++ has no such conversion.
        """
        source = expr.type
        if source == target:
            return expr
        if isinstance(target, Void):
            return expr if not explicit else self.value(VOID, expr.run, at, [expr])
        if isinstance(source, Scalar) and isinstance(target, Scalar):
            return self._convert_scalar(expr, source, target, at)
        if isinstance(source, (Pointer, Array)) or isinstance(target, Pointer):
            return self._convert_pointer(expr, target, at, explicit)
        if isinstance(target, Struct) and target.name == "dim3" and isinstance(source, Scalar):
            x = self.convert(expr, target.fields[0].type, at).run
            one = np.uint32(1)
            return self.value(target, lambda t, m: [x(t, m), one, one], at, [expr])
        self.fail(at, f"no conversion from '{spelled(source)}' to '{spelled(target)}'")

    def _convert_scalar(self, expr: Expr, source: Scalar, target: Scalar, at: Position) -> Expr:
        change = converter(source, target)
        if change is None:
            return Expr(
                target,
                expr.run,
                at,
                expr.constant,
                None,
                None,
                expr.reads,
                expr.rounds,
                expr.product if source == target else None,
                expr.rank,
                depth=expr.depth,
                key=expr.key,
            )
        run = expr.run
        if target is not BOOL and expr.constant is None and source is not BOOL:
            self.cost(of=[expr], doubles=DOUBLE in (source, target))
        key = None if expr.key is None else (target.name, expr.key)
        out = self.value(target, lambda t, m: change(run(t, m)), at, [expr], key=key)
        return self.fold(out, [expr])

    def _convert_pointer(self, expr: Expr, target: CType, at: Position, explicit: bool) -> Expr:
        source = expr.type
        if isinstance(source, Array):
            expr = self.decay(expr)
            source = expr.type
        if target is BOOL and isinstance(source, Pointer):
            run = expr.run
            return self.value(BOOL, lambda t, m: np.bool_(run(t, m).region is not None), at, [expr])
        zero = expr.constant is not None and expr.constant == 0
        if zero and not explicit and not isinstance(source, Pointer):
            return Expr(target, lambda t, m: NULL, at, origin=Origin())
        if not isinstance(source, Pointer) or not isinstance(target, Pointer):
            if explicit and (isinstance(source, Scalar) or isinstance(target, Scalar)):
                self.unsupported(at, "casts between pointers and numbers are not supported")
            self.fail(
                at,
                f"a value of type '{spelled(source)}' cannot be used as '{spelled(target)}'"
                + (": a pointer and a number are different things" if not explicit else ""),
            )
        same = source.target == target.target
        if not explicit:
            if not same and not isinstance(target.target, Void) and not _is_null(expr):
                self.fail(
                    at,
                    f"a value of type '{spelled(source)}' cannot be used as '{spelled(target)}': "
                    "say reinterpret_cast if you mean it",
                )
            if source.const and not target.const:
                self.fail(
                    at,
                    f"'{spelled(source)}' points to constants, '{spelled(target)}' would let them "
                    "be changed",
                )
        elif source.const and not target.const:
            self.unsupported(at, "casting 'const' away is not supported")
        return Expr(
            target, expr.run, at, origin=expr.origin, reads=expr.reads, rounds=expr.rounds,
            depth=expr.depth, key=expr.key,
        )  # fmt: skip

    def decay(self, expr: Expr) -> Expr:
        """An array as a pointer to its first element."""
        if not isinstance(expr.type, Array):
            return expr
        ctype = Pointer(expr.type.element, expr.type.const, expr.type.volatile)
        return Expr(
            ctype, expr.run, expr.at, origin=expr.origin, reads=expr.reads, rounds=expr.rounds,
            depth=expr.depth, key=expr.key,
        )  # fmt: skip

    def condition(self, expr: Expr) -> Evaluate:
        """An expression as a test."""
        if isinstance(expr.type, (Struct, Void)):
            self.fail(expr.at, f"'{spelled(expr.type)}' is neither true nor false")
        return self.convert(expr, BOOL, expr.at).run

    # -- types

    def resolve(self, name: TypeName) -> CType:
        """The type that a type name means here; a reference is that of what it refers to.

        Raises
        ------
        KernelCompileError
            An unknown name.
        """
        if name.base == "void":
            ctype: CType = VOID
        elif name.base in SCALARS:
            ctype = SCALARS[name.base]
        else:
            found = self.scope.find(name.base)
            if name.arguments is not None:
                ctype = self.struct_template(name)
            elif isinstance(found, TypeBinding):
                ctype = found.type
            elif name.base in VECTORS:
                ctype = VECTORS[name.base]
            else:
                self.fail(name.at, f"unknown type name '{name.base}'")
        const, volatile = name.const, name.volatile
        for qualifiers in name.pointers:
            ctype = Pointer(ctype, const, volatile)
            const, volatile = "const" in qualifiers, "volatile" in qualifiers
        return ctype

    def top_const(self, name: TypeName) -> bool:
        """Whether a variable of this type is itself constant."""
        return "const" in name.pointers[-1] if name.pointers else name.const

    def top_volatile(self, name: TypeName) -> bool:
        return "volatile" in name.pointers[-1] if name.pointers else name.volatile

    def struct_template(self, name: TypeName) -> CType:
        self.unsupported(name.at, "templates of structs are not supported")

    def define_struct(self, node: StructDef) -> Struct:
        """Lay out a struct as a C compiler does: each member at a multiple of its alignment."""
        fields: list[Field] = []
        offset, align = 0, 1
        for declaration in node.members:
            for item in declaration.items:
                if item.type.reference:
                    self.unsupported(item.at, "references in structs are not supported")
                if item.init is not None:
                    self.unsupported(item.at, "default values of members are not supported")
                ctype = self.array_type(self.resolve(item.type), item.dims)
                if any(f.name == item.name for f in fields):
                    self.fail(item.at, f"'{item.name}' is declared twice in this struct")
                need = align_of(ctype)
                offset = -(-offset // need) * need
                fields.append(Field(item.name, ctype, offset))
                offset += size_of(ctype)
                align = max(align, need)
        if node.align is not None:
            wanted = self.integer_constant(node.align, "an alignment")
            if wanted < 1 or wanted & (wanted - 1):
                self.fail(node.align.at, f"an alignment of {wanted} bytes is no power of two")
            if wanted < align:
                self.unsupported(node.align.at, f"an alignment below that of the members ({align})")
            align = wanted
        size = max(1, -(-offset // align) * align)
        return Struct(node.name, tuple(fields), size, align, key=id(node))

    def array_type(
        self, element: CType, dims: list[Expression | None], const: bool = False
    ) -> CType:
        for dim in reversed(dims):
            length = 0 if dim is None else self.integer_constant(dim, "the size of an array")
            if dim is not None and length <= 0:
                self.fail(dim.at, f"an array of {length} elements is not possible")
            element = Array(element, length, const)
        return element

    def integer_constant(self, node: Expression, what: str) -> int:
        """Value of a constant expression.

        Raises
        ------
        KernelCompileError
            If it is not an integer known at compile time.
        """
        expr = self.expression(node)
        if expr.constant is None:
            hint = ""
            if isinstance(node, Name):
                hint = f": '{node.name}' is known only when the kernel runs"
            self.fail(node.at, f"{what} must be a constant{hint}")
        if not isinstance(expr.type, Scalar) or not expr.type.is_integer:
            self.fail(node.at, f"{what} must be an integer, not '{spelled(expr.type)}'")
        return int(expr.constant)

    # -- supplied by the classes above

    def expression(self, node: Expression, used: bool = True) -> Expr:
        raise NotImplementedError

    def declare(self, name: str, binding: Variable | Constant | Alias | TypeBinding) -> None:
        if name in self.scope.names:
            raise KeyError(name)
        self.scope.names[name] = binding


def _is_null(expr: Expr) -> bool:
    return (
        isinstance(expr.type, Pointer)
        and isinstance(expr.type.target, Void)
        and (expr.constant is not None)
    )
