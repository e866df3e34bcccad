"""Operators on values: arithmetic, comparisons, pointers."""

from typing import Any

import numpy as np

from simgpu.cuda_c import types
from simgpu.cuda_c.compile import contraction, places
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.conversions import (
    computed,
    convert,
    decay,
    fold,
    itself,
    nodes,
    related,
    typed_value,
)
from simgpu.cuda_c.compile.form import Operation
from simgpu.cuda_c.compile.typed import Evaluate, Expr
from simgpu.cuda_c.lockstep import Mask, Team, varies
from simgpu.cuda_c.lockstep.values import COMPARISONS, BinaryFunction, arithmetic
from simgpu.cuda_c.text.source import Position
from simgpu.cuda_c.types import HALF, CType, Pointer, Scalar, Void, promoted, size_of, spelled
from simgpu.errors import DivisionByZeroError

_INTEGER_ONLY = {"%", "&", "|", "^", "<<", ">>"}


def binary_operation(
    c: Context, op: str, kind: CType, result: CType, run: Evaluate, at: Position, parts: list[Expr]
) -> Expr:
    """An operator on values of type `kind`, as an expression of type `result`."""
    runs = tuple([part.run for part in parts])
    node = c.note(Operation(nodes(parts), op=op, type=kind, runs=runs))
    return typed_value(c, result, computed(c, result, run), at, parts, node=node)


def operate(c: Context, op: str, left: Expr, right: Expr, at: Position) -> Expr:
    """`left op right` for everything that evaluates both sides."""
    left, right = (decay(itself(c, side, at)) for side in (left, right))
    for side in (left, right):
        if isinstance(side.type, types.FunctionPointer):
            if op not in ("==", "!="):
                c.fail(at, f"operator '{op}' cannot take the address of a function")
            x, y = (convert(c, operand, side.type, at) for operand in (left, right))
            return _compare(c, op, x, y, side.type, at)
    if isinstance(left.type, Pointer) or isinstance(right.type, Pointer):
        return _pointer_operation(c, op, left, right, at)
    a, b = (_number(c, op, side, at) for side in (left, right))
    if a != b or op not in COMPARISONS:
        refuse_scoped(c, op, a, at)
        refuse_scoped(c, op, b, at)
    kind = promoted(a) if op in ("<<", ">>") else types.usual_type(a, b)
    for number in (a, b) if op in _INTEGER_ONLY else ():
        if number.is_float:
            c.fail(at, f"operator '{op}' needs integers, not '{number.name}'")
    if HALF in (a, b) and a != b:
        other = b if a is HALF else a
        cure = "convert one side, for instance by __half2float()"
        c.fail(at, f"operator '{op}' between half and {other.name} is ambiguous: {cure}")
    x = convert(c, left, kind, at, explicit=True)
    y = convert(c, right, promoted(b) if op in ("<<", ">>") else kind, at, explicit=True)
    if op in ("<<", ">>"):
        return _shift(c, op, x, y, kind, at)
    if op in COMPARISONS:
        return _compare(c, op, x, y, kind, at)
    return _arithmetic(c, op, x, y, kind, at)


def refuse_scoped(c: Context, op: str, kind: CType, at: Position) -> None:
    """Refuse to compute with an `enum class`, unless the file has an operator for it."""
    if isinstance(kind, types.Enumeration) and kind.scoped:
        cure = "cast it to a number, or define the operator"
        c.fail(at, f"operator '{op}' cannot take a '{kind.name}', which is an enum class: {cure}")


def _number(c: Context, op: str, side: Expr, at: Position) -> Scalar:
    if isinstance(side.type, Scalar):
        return side.type
    hint = ""
    if isinstance(side.type, types.Struct) and side.type.vector:
        hint = ": CUDA C has no operators for vector types, work on .x, .y and so on"
    c.fail(at, f"operator '{op}' cannot take a '{spelled(side.type)}'{hint}")


def _compare(c: Context, op: str, x: Expr, y: Expr, kind: Scalar, at: Position) -> Expr:
    run = _both(COMPARISONS[op], x, y)
    return fold(binary_operation(c, op, kind, types.BOOL, run, at, [x, y]), [x, y])


def _both(function: BinaryFunction, x: Expr, y: Expr) -> Evaluate:
    """A function of two operands, of which one that is a constant is not computed each time."""
    a, b, left, right = x.run, y.run, x.constant, y.constant
    if right is not None:
        return lambda t, m: function(a(t, m), right)
    if left is not None:
        return lambda t, m: function(left, b(t, m))
    return lambda t, m: function(a(t, m), b(t, m))


def _shift(c: Context, op: str, x: Expr, y: Expr, kind: Scalar, at: Position) -> Expr:
    # In PTX a count of the width or more gives 0, or the sign, and a negative count is a large one. NumPy
    # does the same if both sides are of one type, so a count of another type is cut to the width first.
    function = arithmetic(op, kind)
    a, b = x.run, y.run
    make, width = kind.dtype, kind.size * 8

    def evaluate(t: Team, m: Mask) -> Any:
        count = b(t, m)
        if count.dtype != make:
            count = np.asarray(np.where((count < 0) | (count >= width), width, count))
            count = count.astype(make)
            count = count if count.ndim else count[()]
        return function(a(t, m), count)

    return fold(binary_operation(c, op, kind, kind, evaluate, at, [x, y]), [x, y])


def _arithmetic(c: Context, op: str, x: Expr, y: Expr, kind: Scalar, at: Position) -> Expr:
    if c.file.contract and kind.is_float and kind is not HALF and op in "+-":
        run = contraction.contracted(op, x, y, kind)
        if run is not None:
            return binary_operation(c, "fused", kind, kind, run, at, [x, y])
    function = arithmetic(op, kind)
    if op in "/%" and kind.is_integer and not y.constant:
        return _divide(c, op, function, x, y, kind, at)
    out = binary_operation(c, op, kind, kind, _both(function, x, y), at, [x, y])
    if op == "*":
        out.product = x.run, y.run
    return fold(out, [x, y])


def _divide(
    c: Context, op: str, function: BinaryFunction, x: Expr, y: Expr, kind: Scalar, at: Position
) -> Expr:
    a, b = x.run, y.run

    def evaluate(t: Team, m: Mask) -> Any:
        divisor = b(t, m)
        zero = np.equal(m.take(divisor), 0)
        if np.count_nonzero(zero):
            lane = int(m.index[int(np.argmax(np.broadcast_to(zero, (m.n,))))])
            text = "divides an integer by zero, which a GPU answers with an arbitrary value"
            t.fault(DivisionByZeroError, at, lane, text)
        return function(a(t, m), divisor)

    return binary_operation(c, op, kind, kind, evaluate, at, [x, y])


def common_type(c: Context, a: Expr, b: Expr, at: Position) -> CType:
    """The type of `test ? a : b`."""
    if a.type == b.type:
        return a.type
    for side, other in ((a, b), (b, a)):
        if isinstance(side.type, Pointer | types.FunctionPointer) and other.constant == 0:
            return side.type
    if isinstance(a.type, Scalar) and isinstance(b.type, Scalar) and HALF not in (a.type, b.type):
        return types.usual_type(a.type, b.type)
    if isinstance(a.type, Pointer) and isinstance(b.type, Pointer):
        const, volatile = a.type.const or b.type.const, a.type.volatile or b.type.volatile
        for one, other in ((a.type, b.type), (b.type, a.type)):
            known = other.target in (one.target, types.VOID) or types.qualifies(one, other)
            if known or c.derives(one.target, other.target):
                return Pointer(other.target, const, volatile)
    c.fail(at, f"the sides of ':' do not fit: '{spelled(a.type)}' and '{spelled(b.type)}'")


def _pointer_operation(c: Context, op: str, left: Expr, right: Expr, at: Position) -> Expr:
    if op in COMPARISONS:
        return _compare_pointers(c, op, left, right, at)
    if op == "-" and isinstance(right.type, Pointer):
        if not isinstance(left.type, Pointer):
            c.fail(at, "a pointer cannot be subtracted from a number")
        return _distance(c, left, right, left.type.target, right.type.target, at)
    if op not in "+-":
        c.fail(at, f"operator '{op}' cannot take a pointer")
    pointer, number = (left, right) if isinstance(left.type, Pointer) else (right, left)
    if not isinstance(number.type, Scalar) or not number.type.is_integer:
        c.fail(at, f"only an integer can be added to a pointer, not a '{spelled(number.type)}'")
    assert isinstance(pointer.type, Pointer)
    number = places.index_value(c, number, at)
    step = size_of(pointer.type.target)
    start, forward = pointer.run, number.run
    backward: Evaluate = lambda t, m: -np.asarray(forward(t, m), np.int64)[()]
    offset = backward if op == "-" else forward
    evaluate: Evaluate = lambda t, m: start(t, m).plus(offset(t, m), step)
    out = binary_operation(c, op, pointer.type, pointer.type, evaluate, at, [pointer, number])
    out.origin = pointer.origin
    return out


def _distance(
    c: Context, left: Expr, right: Expr, target: CType, other: CType, at: Position
) -> Expr:
    if types.unqualified(target) != types.unqualified(other):
        c.fail(at, f"'{spelled(left.type)}' and '{spelled(right.type)}' point to different things")
    step = size_of(target)
    a, b = left.run, right.run
    c.work()

    def evaluate(t: Team, m: Mask) -> Any:
        apart: Any = a(t, m).address() - b(t, m).address()
        return apart // step if varies(apart) else np.int64(apart // step)

    return typed_value(c, types.LONG, evaluate, at, [left, right])


def _compare_pointers(c: Context, op: str, left: Expr, right: Expr, at: Position) -> Expr:
    if isinstance(left.type, Scalar):
        left, right = right, left
    if isinstance(right.type, Scalar):
        right = convert(c, right, left.type, at)
    assert isinstance(left.type, Pointer)
    assert isinstance(right.type, Pointer)
    void = isinstance(left.type.target, Void) or isinstance(right.type.target, Void)
    if not related(c, left.type.target, right.type.target) and not void:
        c.fail(at, f"'{spelled(left.type)}' and '{spelled(right.type)}' cannot be compared")
    function = COMPARISONS[op]
    a, b = left.run, right.run
    c.work()

    def evaluate(t: Team, m: Mask) -> Any:
        p, q = a(t, m), b(t, m)
        if p.region is q.region:
            out = function(p.address(), q.address())
        elif op in ("==", "!=") and not p.mixed and not q.mixed:
            return np.bool_(op == "!=")
        else:
            addresses = t.launch.addresses
            out = function(addresses.number(p), addresses.number(q))
        return out if varies(out) else np.bool_(out)

    return typed_value(c, types.BOOL, evaluate, at, [left, right])
