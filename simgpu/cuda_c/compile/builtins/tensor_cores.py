"""Products of matrices on tensor cores: what the header mma.h calls, a warp at a time.

A tensor core doesn't round as a chain of fused operations does. It takes the sixteen products of a sum as
they are, shifts them and the accumulator to the largest exponent among them, drops what is below the bits
that it has, adds up, and drops again. So a result is the same on each run, and not what `fmaf` in any order
gives. NumPy's float64 has room for all of this: products of two halves have 22 bits and are exact in it.

How many products, how many bits, and that the exponent of a product is the sum of its factors' was found by
asking an H200 with CUDA 13. Of 60 ways to do it, this one alone has all of 327,680 results to the last bit:
halves in all three shapes and bfloat16 in one, sums that cancel, that are tiny, and that are of all sizes.
"""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c import types
from simgpu.cuda_c.compile.builtins.common import BuiltinHandler, arguments, fenced
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.conversions import convert, typed_value
from simgpu.cuda_c.compile.form import Price
from simgpu.cuda_c.compile.type_names import integer_constant
from simgpu.cuda_c.compile.typed import Expr
from simgpu.cuda_c.lockstep import WARP, Mask, Site, Team, varies
from simgpu.cuda_c.memory import access
from simgpu.cuda_c.memory.pointers import Ptr
from simgpu.cuda_c.syntax.ast import CallExpr
from simgpu.errors import MisalignedError, WarpError

_DEPTH = 16  # products of a sum, in one instruction of an H200
# Bits of an aligned summand below those of a float, and the least exponents of the inputs.
_GUARD = 2
_LEAST = {types.HALF: -14, types.USHORT: -126}
# Of a fragment of 16 x 16 x 16: instructions, operations of each lane, and clocks of a scheduler's tensor
# core, which does 256 products in one (NVIDIA H100 Tensor Core GPU Architecture, "H100 SM").
_MULTIPLY = Price(2, flops=2 * 4096 // WARP, issued=16)
# The lane that holds an element, by the one that has its number: another one than a thread would take that
# loads or stores by its own number, because who did so without a barrier must not be right by chance.
_HOLDER = np.arange(WARP) ^ 21
_ALIGNED = 32  # bytes: CUDA C++ Programming Guide, "Warp Matrix Functions"


def _number_of(c: Context, node: CallExpr, pointer: Expr) -> types.Scalar:
    """The type of the numbers at an address; a bfloat16 as its bits."""
    target = pointer.type.target if isinstance(pointer.type, types.Pointer) else None
    if getattr(target, "name", "") == "__nv_bfloat16":
        return types.USHORT
    if target not in (types.HALF, types.FLOAT):
        c.fail(pointer.at, f"a fragment is not of this type: '{types.spelled(pointer.type)}'")
    assert isinstance(target, types.Scalar)
    return target


def _require_warps(t: Team, m: Mask, what: str, site: Site, *same: Any) -> None:
    """Refuse a call that not all lanes of a warp make, with the same numbers."""
    first = t.layout.index - t.layout.lane
    for value in same:
        apart = m.bits & (value != value[first]) if varies(value) else None
        if apart is not None and apart.any():
            text = f"calls {what} with an address or a pitch of its own: all lanes of a warp pass the same"
            t.fault(WarpError, site.at, int(apart.argmax()), text)
    if m.n != WARP * m.n_warps:
        away = int((~m.bits & m.warps[t.layout.warp]).argmax())
        text = f"does not call {what}, and other lanes of its warp do: all 32 have to, or nothing is defined"
        t.fault(WarpError, site.at, away, text)


def _places(
    t: Team, m: Mask, ptr: Ptr, kind: types.Scalar, shape: tuple[int, int], pitch: Any, turned: Any,
    what: str, site: Site,
) -> list[Ptr]:  # fmt: skip
    """Where each lane's elements are in memory."""
    _require_warps(t, m, what, site, ptr.address(), pitch, turned)
    where, step = np.asarray(m.take(ptr.address())), np.asarray(m.take(pitch))
    if np.any(where % _ALIGNED):
        text = (
            f"calls {what} with an address in '{ptr.name}' that is no multiple of {_ALIGNED} bytes"
        )
        t.fault(MisalignedError, site.at, int(m.index[0]), text, array=ptr.name)
    if np.any(step % (16 // kind.size)):
        text = f"calls {what} with a pitch of {int(np.max(step))}, and no multiple of {16 // kind.size}"
        t.fault(MisalignedError, site.at, int(m.index[0]), text, array=ptr.name)
    out: list[Ptr] = []
    for k in range(shape[0] * shape[1] // WARP):
        row, column = divmod(k * WARP + _HOLDER[t.layout.lane], shape[1])
        along, across = np.where(turned, column, row), np.where(turned, row, column)
        far = np.asarray(along * np.int64(1) * pitch + across, np.int64)
        out.append(ptr.plus(far, kind.size))
    return out


def _sides(c: Context, node: CallExpr, first: int) -> tuple[int, int]:
    """The rows and the columns of a matrix, which are arguments from this one on."""
    rows, columns = node.arguments[first : first + 2]
    return integer_constant(c, rows, "rows"), integer_constant(c, columns, "columns")


def _move(loads: bool, c: Context, node: CallExpr, used: bool) -> Expr:
    """Load a fragment, or store it: `(memory, elements, rows, columns, how many elements, pitch, turned)`."""
    memory, held, *_, pitch, turned = args = arguments(c, node, 7)
    what = "load_matrix_sync" if loads else "store_matrix_sync"
    kind, site = _number_of(c, node, memory), c.new_site(node.at, not loads, wide=loads)
    kept, shape = c.new_site(node.at, loads), _sides(c, node, 2)
    if not loads:
        memory.origin.note("written")
    elements = integer_constant(c, node.arguments[4], "elements")
    pitch = convert(c, pitch, types.UINT, pitch.at)
    turned = convert(c, turned, types.BOOL, turned.at)
    c.work(2)

    def evaluate(t: Team, m: Mask) -> None:
        given = pitch.run(t, m), turned.run(t, m)
        places = _places(t, m, memory.run(t, m), kind, shape, *given, what, site)
        start = held.run(t, m)
        if loads:
            found = [access.load_lanes(t, m, place, kind, site) for place in places]
            for k in range(elements):
                to = start.moved(k * kind.size)
                access.store_lanes(t, m, to, kind, found[k % len(found)], kept)
            return
        for k, place in enumerate(places):
            value = access.load_lanes(t, m, start.moved(k * kind.size), kind, kept)
            access.store_lanes(t, m, place, kind, value, site)

    return typed_value(c, types.VOID, evaluate, node.at, args)


def _multiply(c: Context, node: CallExpr, used: bool) -> Expr:
    """`(d, a, b, c, rows, columns)`: d = a * b + c."""
    into, first, second, third, *_ = arguments(c, node, 6)
    kinds = [_number_of(c, node, e) for e in (into, first, second, third)]
    if kinds[0] is not types.FLOAT or kinds[3] is not types.FLOAT or kinds[1] is not kinds[2]:
        text = "tensor cores take two matrices of half or of bfloat16, and add floats"
        c.unsupported(node.at, text)
    rows, columns = _sides(c, node, 4)
    kind, site, kept = kinds[1], c.new_site(node.at), c.new_site(node.at, True)
    c.work(*_MULTIPLY)

    def matrix(
        t: Team, m: Mask, expr: Expr, of: types.Scalar, shape: tuple[int, int]
    ) -> NDArray[Any]:
        ptr, found = expr.run(t, m), list[NDArray[Any]]()
        for k in range(shape[0] * shape[1] // WARP):
            value = access.load_lanes(t, m, ptr.moved(k * of.size), of, site)
            found.append(m.take(t.array(value)).reshape(-1, WARP))
        return np.stack(found, 1)[..., _HOLDER].reshape(-1, *shape)

    def evaluate(t: Team, m: Mask) -> None:
        _require_warps(t, m, "mma_sync", site)
        a = matrix(t, m, first, kind, (rows, _DEPTH))
        b = matrix(t, m, second, kind, (_DEPTH, columns))
        out = tensor_product(a, b, matrix(t, m, third, types.FLOAT, (rows, columns)), _LEAST[kind])
        to, parts = into.run(t, m), out.reshape(len(out), -1, WARP)[..., _HOLDER]
        for k in range(parts.shape[1]):
            value = m.spread(np.ascontiguousarray(parts[:, k]).reshape(-1))
            access.store_lanes(t, m, to.moved(4 * k), types.FLOAT, value, kept)

    return typed_value(c, types.VOID, evaluate, node.at, [into, first, second, third])


def tensor_product(a: Any, b: Any, c: Any, least: int) -> NDArray[np.float32]:
    """`a @ b + c` of stacks of matrices, rounded as an H200's tensor cores do.

    `a` and `b` are of shapes (n, rows, 16) and (n, 16, columns), float16 or the bits of bfloat16 as uint16;
    `c` and the result (n, rows, columns), float32. `least` is the least exponent of a normal number of `a`.
    """
    if a.dtype == np.uint16:
        a, b = ((x.astype(np.uint32) << 16).view(np.float32) for x in (a, b))
    left, right = a.astype(np.float64)[:, :, None, :], b.astype(np.float64).swapaxes(1, 2)[:, None]
    # Where nothing is, the exponent is less than any.
    exponents = [
        np.where(x == 0, np.int32(-4096), np.maximum(np.frexp(x)[1] - 1, low))
        for x, low in ((left, least), (right, least), (c, -126))
    ]
    top = np.maximum((exponents[0] + exponents[1]).max(-1), exponents[2])
    unit = np.ldexp(1.0, np.where(top < -1000, 0, top) - 23 - _GUARD)
    total = np.trunc(left * right / unit[..., None]).sum(-1) + np.trunc(c.astype(np.float64) / unit)
    exact = total * unit
    near: NDArray[np.float32] = np.asarray(exact, np.float32)
    over = np.isfinite(near) & (np.abs(near.astype(np.float64)) > np.abs(exact))
    return np.where(over, np.nextafter(near, np.float32(0)), near).astype(np.float32)


TENSOR_FUNCTIONS: dict[str, BuiltinHandler] = {
    "__wmma_load": fenced(partial(_move, True), behind=False),
    "__wmma_store": fenced(partial(_move, False), behind=False),
    "__wmma_multiply": _multiply,
}
