"""C's arithmetic on NumPy values.

Numbers too small for a normal float32 keep their digits, as NVRTC has it by default; CuPy compiles
with `-ftz=true`, where they become zero.

A value is a NumPy scalar where it is the same in every thread, and an array of one element a thread
where it is not. Arrays are never changed in place, so that one may stand for several variables.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from simgpu.cuda_c.lockstep.masks import varies
from simgpu.cuda_c.types import BOOL, FLOAT, HALF, INT, UINT, Scalar

LaneValue: TypeAlias = Any
BinaryFunction: TypeAlias = Callable[[LaneValue, LaneValue], LaneValue]

# NumPy's own annotations leave the element type of the result unknown.
_where: Callable[[Any, Any, Any], Any] = np.where


def select_lanes(condition: Any, yes: Any, no: Any) -> Any:
    """`yes` where a condition holds and `no` elsewhere; a NumPy scalar if all three are uniform."""
    out = _where(condition, yes, no)
    return out if out.ndim else out[()]


def converter(source: Scalar, target: Scalar) -> Callable[[LaneValue], LaneValue] | None:
    """The function that turns values of one type into another, or None where nothing changes."""
    if source.dtype == target.dtype:
        return None
    if target is BOOL:
        return lambda value: value != 0
    dtype, make = target.dtype, target.make
    if source.is_float and target.is_integer:
        return _saturating(source, target)

    def convert(value: LaneValue) -> LaneValue:
        if varies(value):
            return value.astype(dtype)
        # The way is through an array, since a NumPy scalar's constructor refuses what does not fit.
        return np.asarray(value).astype(dtype)[()] if type(value) is not make else value

    return convert


def _saturating(source: Scalar, target: Scalar) -> Callable[[LaneValue], LaneValue]:
    """Float to integer as PTX `cvt.rzi` does it: clamped.

    NaN is 0, but the highest bit alone where the float or the integer has 64 bits (PTX ISA 9.0, "cvt").

    What is smaller than an int is cut from one of 32 bits, signed or not as it is itself (tried with nvcc
    13.0); a half is clamped to what is asked for.
    """
    wide = target
    if target.size < 4 and source is not HALF:
        wide = UINT if target.kind == "uint" else INT
    low, high = wide.lowest, wide.highest
    not_a_number = 0 if max(source.size, wide.size) < 8 else low or high // 2 + 1
    # Clipping does not do, because the highest integer of 64 bits is no float64.
    above, below = float(high) + 1.0, low - 1.0

    def convert(value: LaneValue) -> LaneValue:
        raw = np.asarray(value, np.float64)
        inside = (raw > below) & (raw < above)
        whole = np.where(inside, raw, 0.0).astype(wide.dtype)
        if not inside.all():
            whole[raw >= above] = high
            whole[raw <= below] = low
            whole[np.isnan(raw)] = not_a_number
        out = whole.astype(target.dtype)
        return out if varies(value) else out[()]

    return convert


_ARITHMETIC: dict[str, Any] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "&": np.bitwise_and,
    "|": np.bitwise_or, "^": np.bitwise_xor, "<<": np.left_shift, ">>": np.right_shift,
    "%": np.fmod,  # it gives the sign of the dividend, as C wants it, of integers too
}  # fmt: skip
COMPARISONS: dict[str, Any] = {
    "==": np.equal, "!=": np.not_equal, "<": np.less, ">": np.greater, "<=": np.less_equal,
    ">=": np.greater_equal,
}  # fmt: skip


def arithmetic(op: str, kind: Scalar) -> BinaryFunction:
    """`+ - * / % & | ^ << >>` on two values of type `kind`; division by zero is not tested here."""
    ufunc = _ARITHMETIC[op]
    if kind is HALF:
        # Correctly rounded for + - * /, since float32 has more than twice the precision of float16.
        return lambda a, b: ufunc(a, b, dtype=np.float32).astype(np.float16)
    if op != "/" or kind.is_float:
        return ufunc
    return np.floor_divide if kind.kind == "uint" else _quotient


def _quotient(a: LaneValue, b: LaneValue) -> LaneValue:
    quotient = np.floor_divide(a, b)
    # NumPy rounds down, C towards zero: they differ where the signs do and something is left.
    apart = (a < 0) != (b < 0)
    return quotient + (apart & (np.remainder(a, b) != 0)) if np.count_nonzero(apart) else quotient


def fused(kind: Scalar) -> Callable[[LaneValue, LaneValue, LaneValue], LaneValue]:
    """`a * b + c` rounded once, as the GPU's FFMA and DFMA do it."""
    if kind is HALF:
        return _fused_half
    return _fused_float if kind is FLOAT else _fused_double


def _fused_float(a: LaneValue, b: LaneValue, c: LaneValue) -> LaneValue:
    """Compute in float64, where the product is exact.

    The sum is rounded twice. That differs from once only where it falls on the middle of two float32 values.
    """
    if varies(a):
        exact: Any = a.astype(np.float64)
        exact *= b  # in place: at these sizes allocating costs more than multiplying
    elif varies(b):
        exact = b.astype(np.float64)
        exact *= a
    else:
        exact = np.float64(a) * np.float64(b)
    exact += c
    if (exact.view(np.uint64) << np.uint64(35) == _MIDDLE).any():
        exact = _to_odd(np.multiply(a, b, dtype=np.float64), c)
    return exact.astype(np.float32)


def _fused_half(a: LaneValue, b: LaneValue, c: LaneValue) -> LaneValue:
    # From the largest half to a part of the smallest there are 39 bits: where it matters, the sum is exact.
    exact = np.multiply(a, b, dtype=np.float64) + np.asarray(c, np.float64)
    return exact.astype(np.float16)


def _to_odd(a: Any, c: LaneValue) -> Any:
    """`a + c` in float64, where it is not exact with an odd last bit: rounded again, it was rounded once.

    Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008; the rest is Knuth's.
    """
    c = np.asarray(c, np.float64)
    total = np.asarray(a + c)
    t = total - a
    rest = (a - (total - t)) + (c - t)
    bits = total.view(np.int64)
    change = np.isfinite(total) & (rest != 0) & (bits % 2 == 0)
    odd = bits + change * np.where((rest > 0) == (total > 0), 1, -1)
    return odd.view(np.float64)[()]


_MIDDLE = np.uint64(1 << 63)
_SPLITTER = 134217729.0  # 2**27 + 1 (Veltkamp)


def _fused_double(a: LaneValue, b: LaneValue, c: LaneValue) -> LaneValue:
    """Compute by Dekker's product and Knuth's sum (Ogita, Rump, Oishi 2005, algorithms 3.3 and 3.1)."""
    product = a * b
    t = _SPLITTER * a
    a_high = t - (t - a)
    a_low = a - a_high
    t = _SPLITTER * b
    b_high = t - (t - b)
    b_low = b - b_high
    error = a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)
    total = product + c
    z = total - product
    rest = (product - (total - z)) + (c - z)
    out = total + (rest + error)
    # If the splitting overflowed, the correction is no number, so the plain result stands.
    return select_lanes(np.isfinite(out), out, product + c)


_WHOLE: dict[str, BinaryFunction] = {
    "*": np.multiply, "/": np.divide, "sqrt": lambda a, b: np.sqrt(a), "cast": lambda a, b: a,
}  # fmt: skip


def directed(op: str, kind: Scalar, way: str) -> Callable[..., LaneValue]:
    """`a + b`, `- * /`, `sqrt`, `fma` of floats, or `cast` of a double, rounded up, down or to zero (`way`).

    The nearest number is one of the two neighbours of the exact value, and the sign of what is left says on
    which side. A sum leaves what Knuth's algorithm says; all else what one more `fma` does, of mantissas,
    because a rest below the smallest double would vanish.
    """

    def evaluate(a: LaneValue, b: LaneValue = 0, c: LaneValue = 0) -> LaneValue:
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        if op == "fma":
            a, b = a * b, np.asarray(c, np.float64)  # exact: a double has room for the product
        b = -b if op == "-" else b
        whole = _WHOLE.get(op, np.add)(a, b)
        near = np.asarray(whole, kind.dtype)
        wide = near.astype(np.float64)
        if op in ("*", "/", "sqrt"):
            (a, up_a), (b, up_b) = np.frexp(a), np.frexp(b)
            odd = up_a % 2
            by = {"*": up_a + up_b, "/": up_a - up_b, "sqrt": (up_a - odd) // 2}[op]
            wide = np.ldexp(wide, -by)
            if op == "*":
                rest = _fused_double(a, b, -wide)
            elif op == "/":
                rest = _fused_double(-wide, b, a) * np.sign(b)
            else:
                rest = _fused_double(-wide, wide, np.ldexp(a, odd))
        else:
            t = whole - a
            rest = (whole - wide) + ((a - (whole - t)) + (b - t))
            rest = _where(np.isinf(whole) & np.isfinite(a) & np.isfinite(b), -whole, rest)
            if way == "d" and op != "cast":  # its one rule of its own: a sum that is zero is -0
                nothing = (rest == 0) & (near == 0) & (np.signbit(a) | np.signbit(b))
                near = _where(nothing, np.copysign(near, -1), near)
        up: Any = np.signbit(near) if way == "z" else np.asarray(way == "u")
        goal = np.where(up, np.inf, -np.inf).astype(kind.dtype)
        return select_lanes(np.where(up, rest > 0, rest < 0), np.nextafter(near, goal), near)

    return evaluate
