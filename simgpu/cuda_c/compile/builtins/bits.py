"""Functions of the bits of a number."""

from functools import partial
from operator import methodcaller
from typing import Any

import numpy as np

from simgpu.cuda_c.compile.builtins.common import BuiltinHandler, arguments, by_thread, elementwise
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.conversions import convert
from simgpu.cuda_c.compile.form import Price
from simgpu.cuda_c.compile.typed import Expr
from simgpu.cuda_c.syntax.ast import CallExpr
from simgpu.cuda_c.types import DOUBLE, FLOAT, INT, LLONG, UINT, ULLONG, VECTORS

_FREE = Price(0)


def _popc(x: Any) -> Any:
    return np.bitwise_count(_unsigned(x)).astype(np.int32)


def _unsigned(x: Any) -> Any:
    return x.view(np.uint32 if x.dtype.itemsize == 4 else np.uint64)


def _clz(x: Any) -> Any:
    """Leading zeros: fill everything below the highest one, and count what is left."""
    filled = _unsigned(x)
    bits = x.dtype.itemsize * 8
    for shift in (1, 2, 4, 8, 16, 32)[: 5 if bits == 32 else 6]:
        filled = filled | (filled >> filled.dtype.type(shift))
    return (bits - np.bitwise_count(filled).astype(np.int32)).astype(np.int32)


def _ffs(x: Any) -> Any:
    """Place of the lowest one, from 1; 0 if there is none."""
    u = _unsigned(x)
    one = u.dtype.type(1)
    below = np.bitwise_count((u & (~u + one)) - one).astype(np.int32)
    return np.where(u == 0, np.int32(0), below + np.int32(1)).astype(np.int32)[()]


def _brev(x: Any) -> Any:
    u = _unsigned(x)
    make = u.dtype.type
    for shift, pattern in ((1, 0x55), (2, 0x33), (4, 0x0F)):
        whole = make(int.from_bytes(bytes([pattern]) * u.dtype.itemsize, "little"))
        u = ((u >> make(shift)) & whole) | ((u & whole) << make(shift))
    return u.byteswap()


def _mulhi(a: Any, b: Any) -> Any:
    wide = np.int64 if a.dtype.kind == "i" else np.uint64
    return ((a.astype(wide) * b.astype(wide)) >> wide(32)).astype(a.dtype)


def _byte_perm(a: Any, b: Any, select: Any) -> Any:
    both = a.astype(np.uint64) | (b.astype(np.uint64) << np.uint64(32))
    out = np.uint32(0)
    for k in range(4):
        which = (select >> np.uint32(4 * k)) & np.uint32(7)
        byte = (both >> (which.astype(np.uint64) * np.uint64(8))) & np.uint64(255)
        out = out | (byte.astype(np.uint32) << np.uint32(8 * k))
    return out


def _funnel(left: bool, low: Any, high: Any, shift: Any) -> Any:
    """Shift two words to the right, as one, and take the lower; to the left, take the upper."""
    both = (high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)
    places = shift & np.uint32(31)
    places = np.uint32(32) - places if left else places
    return (both >> places.astype(np.uint64)).astype(np.uint32)


def _dot_of_bytes(c: Context, node: CallExpr, used: bool) -> Expr:
    """Four products of bytes, added to a sum (`dp4a`): of integers, or of `char4` and `uchar4`."""
    args = arguments(c, node, 3)
    first = args[0].type
    of_bytes = first in (VECTORS["char4"], VECTORS["uchar4"])
    unsigned = first == VECTORS["uchar4"] or sum(a.type is UINT for a in args) > 1
    kind = UINT if unsigned else INT
    args = [convert(c, a, first if of_bytes and k < 2 else kind, a.at) for k, a in enumerate(args)]

    def dot(a: Any, b: Any, add: Any) -> Any:
        for k in range(4):
            if of_bytes:
                x, y = a[k].astype(kind.dtype), b[k].astype(kind.dtype)
            else:  # a shift to the left and back again leaves one byte, with its sign if it has one
                left, right = kind.make(24 - 8 * k), kind.make(24)
                x, y = (a << left) >> right, (b << left) >> right
            add = add + x * y
        return add

    return elementwise(c, node, args, kind, dot)


BIT_FUNCTIONS: dict[str, BuiltinHandler] = {
    "__popc": by_thread([UINT], INT, _popc),
    "__popcll": by_thread([ULLONG], INT, _popc),
    "__clz": by_thread([INT], INT, _clz),
    "__clzll": by_thread([LLONG], INT, _clz),
    "__ffs": by_thread([INT], INT, _ffs, Price(3)),
    "__ffsll": by_thread([LLONG], INT, _ffs, Price(3)),
    "__brev": by_thread([UINT], UINT, _brev),
    "__brevll": by_thread([ULLONG], ULLONG, _brev),
    "__mulhi": by_thread([INT, INT], INT, _mulhi),
    "__umulhi": by_thread([UINT, UINT], UINT, _mulhi),
    "__byte_perm": by_thread([UINT, UINT, UINT], UINT, _byte_perm),
    "__funnelshift_l": by_thread([UINT, UINT, UINT], UINT, partial(_funnel, True)),
    "__funnelshift_r": by_thread([UINT, UINT, UINT], UINT, partial(_funnel, False)),
    "__int_as_float": by_thread([INT], FLOAT, methodcaller("view", np.float32), _FREE),
    "__uint_as_float": by_thread([UINT], FLOAT, methodcaller("view", np.float32), _FREE),
    "__float_as_int": by_thread([FLOAT], INT, methodcaller("view", np.int32), _FREE),
    "__float_as_uint": by_thread([FLOAT], UINT, methodcaller("view", np.uint32), _FREE),
    "__longlong_as_double": by_thread([LLONG], DOUBLE, methodcaller("view", np.float64), _FREE),
    "__double_as_longlong": by_thread([DOUBLE], LLONG, methodcaller("view", np.int64), _FREE),
    "__dp4a": _dot_of_bytes,
    "__double2float_rn": by_thread([DOUBLE], FLOAT, methodcaller("astype", FLOAT.dtype)),
    **{
        f"__{word}2{target.name}_rn": by_thread(
            [kind], target, methodcaller("astype", target.dtype)
        )
        for word, kind in (("int", INT), ("uint", UINT), ("ll", LLONG), ("ull", ULLONG))
        for target in (FLOAT, DOUBLE)
    },
}
