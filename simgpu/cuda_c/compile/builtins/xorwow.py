"""Jumps of the generator XORWOW, for the header curand_kernel.h.

A step of the generator is linear: each of its 160 bits is the exclusive or of some of them before. So many
steps are one product with a power of the step's matrix. The matrices are made by squaring when they are first
needed; a product takes the vector byte by byte, with a table for each.
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.compile import conversions, type_names
from simgpu.cuda_c.compile.builtins.common import BuiltinHandler, arguments
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.typed import Expr
from simgpu.cuda_c.lockstep import Mask, Team
from simgpu.cuda_c.memory import access
from simgpu.cuda_c.syntax.ast import CallExpr
from simgpu.cuda_c.types import UINT, ULLONG, VOID, Pointer

_WORDS = 5

# Two bits of the distance at a time, each a product with a matrix of 160 by 160 bits, of which a thread takes
# some 100 instructions for each word. How many there are depends on the distance: this is for one of 4 bits.
_INSTRUCTIONS = 1600


def _step(state: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """One step for each row of five words."""
    first, last = state[:, 0], state[:, 4]
    t = first ^ (first >> np.uint32(2))
    new = (last ^ (last << np.uint32(4))) ^ (t ^ (t << np.uint32(1)))
    return np.column_stack([state[:, 1:], new])


def _tables(images: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Expand a matrix, given its value for each single bit, into its values for each value of each byte."""
    tables = np.zeros((4 * _WORDS, 256, _WORDS), np.uint32)
    for bit in range(8):
        with_bit = np.arange(256) >> bit & 1 == 1
        tables[:, with_bit] ^= images[bit::8][:, None, :]
    return tables


def _product(tables: NDArray[np.uint32], state: NDArray[np.uint32]) -> NDArray[np.uint32]:
    out = np.zeros_like(state)
    for k in range(4 * _WORDS):
        byte = state[:, k // 4] >> np.uint32(k % 4 * 8) & np.uint32(255)
        out ^= tables[k, byte]
    return out


@cache
def _power(k: int) -> NDArray[np.uint32]:
    """Tables of the matrix of 2**k steps."""
    bits = np.zeros((32 * _WORDS, _WORDS), np.uint32)
    number = np.arange(32 * _WORDS)
    bits[number, number // 32] = np.uint32(1) << (number % 32).astype(np.uint32)
    if not k:
        return _tables(_step(bits))
    half = _power(k - 1)
    return _tables(_product(half, _product(half, bits)))


def skip_ahead(
    state: NDArray[np.uint32], count: NDArray[np.uint64], unit: int
) -> NDArray[np.uint32]:
    """States of shape (n, 5), each `count` times 2**unit steps later."""
    state = state.copy()
    for k in range(int(count.max(initial=0)).bit_length()):
        chosen = (count >> np.uint64(k) & np.uint64(1)).astype(np.bool_)
        if chosen.any():
            state[chosen] = _product(_power(unit + k), state[chosen])
    return state


def _jump(c: Context, node: CallExpr, used: bool) -> Expr:
    """`__xorwow_jump(count, unit, words)`."""
    count, _, words = arguments(c, node, 3)
    unit = type_names.integer_constant(c, node.arguments[1], "the unit of a jump")
    assert words.type == Pointer(UINT)
    words.origin.note("written")
    words.origin.use()
    c.work(_INSTRUCTIONS)
    read, write = c.new_site(node.at), c.new_site(node.at, write=True)
    number, where = conversions.convert(c, count, ULLONG, node.at).run, words.run

    def evaluate(t: Team, m: Mask) -> None:
        distance = np.broadcast_to(np.asarray(m.take(number(t, m)), np.uint64), (m.n,))
        if not distance.any():
            return
        ptr = where(t, m)
        places = [ptr.moved(UINT.size * k) for k in range(_WORDS)]
        state = np.empty((m.n, _WORDS), np.uint32)
        for k, place in enumerate(places):
            state[:, k] = m.take(access.load_lanes(t, m, place, UINT, read))
        state = skip_ahead(state, distance, unit)
        for k, place in enumerate(places):
            new: Any = np.ascontiguousarray(state[:, k])
            access.store_lanes(t, m, place, UINT, m.spread(new), write)

    return conversions.typed_value(c, VOID, evaluate, node.at, [count, words])


XORWOW_FUNCTIONS: dict[str, BuiltinHandler] = {"__xorwow_jump": _jump}
