"""Atomic operations.

Lanes take their turns in ascending order, which is one of the orders that a GPU may choose. Sums of
floats are rounded in that order, so that a result is always the same here; on a GPU it may differ in
its last bits from run to run. Where memory is hostile, a seed draws another order for each instruction,
so that a kernel that relies on the order of threads is found out.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c import types
from simgpu.cuda_c.compile.builtins.common import BuiltinHandler, arguments, fenced
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.conversions import convert, nodes, typed_value
from simgpu.cuda_c.compile.form import Exchange
from simgpu.cuda_c.compile.storage import load_place
from simgpu.cuda_c.compile.typed import Evaluate, Expr
from simgpu.cuda_c.lockstep import Mask, Site, Team, by_lane
from simgpu.cuda_c.lockstep.values import select_lanes
from simgpu.cuda_c.memory.access import region_of, tell, words_of
from simgpu.cuda_c.memory.pointers import MaskedAccess
from simgpu.cuda_c.syntax.ast import CallExpr

AtomicOperation: TypeAlias = Callable[[Any, Any], Any] | Callable[[Any, Any, Any], Any]
Ints = (types.INT, types.UINT, types.ULLONG)
_ONE = np.uint32(1)
# Atomics that commute with themselves, on whole numbers: the rounding of sums of floats depends on order.
_COMMUTE = {f"atomic{name}" for name in ("Add", "Sub", "Min", "Max", "And", "Or", "Xor")}


def _add_bfloats(a: Any, b: Any) -> Any:
    """The bits of a sum of two bfloat16, of which the bits are given."""
    total = np.add(*[(np.asarray(x, np.uint32) << 16).view(np.float32) for x in (a, b)])
    bits = total.view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(total), 0x7FFF, rounded).astype(np.uint16)


def _swapped(old: Any, wanted: Any, new: Any) -> Any:
    return select_lanes(old == wanted, new, old)


# For each name, the types that NVRTC 12.9 takes, and the operation.
_OPERATIONS: dict[str, tuple[tuple[types.Scalar, ...], AtomicOperation]] = {
    "atomicAdd": ((*Ints, types.FLOAT, types.DOUBLE, types.HALF), np.add),
    "_atomicAddBfloat": ((types.USHORT,), _add_bfloats),  # for the header
    "atomicSub": ((types.INT, types.UINT), np.subtract),
    "atomicMin": ((types.INT, types.UINT, types.LLONG, types.ULLONG), np.minimum),
    "atomicMax": ((types.INT, types.UINT, types.LLONG, types.ULLONG), np.maximum),
    "atomicAnd": (Ints, np.bitwise_and),
    "atomicOr": (Ints, np.bitwise_or),
    "atomicXor": (Ints, np.bitwise_xor),
    "atomicExch": ((*Ints, types.FLOAT), lambda old, new: new),
    "atomicCAS": ((types.INT, types.UINT, types.ULLONG, types.USHORT), _swapped),
    "atomicInc": ((types.UINT,), lambda x, top: select_lanes(x >= top, np.uint32(0), x + _ONE)),
    "atomicDec": ((types.UINT,), lambda x, top: select_lanes((x == 0) | (x > top), top, x - _ONE)),
}


def _address(
    c: Context, node: CallExpr, kinds: tuple[types.Scalar, ...], args: list[Expr]
) -> types.Scalar:
    pointer = args[0]
    if not isinstance(pointer.type, types.Pointer):
        given = types.spelled(pointer.type)
        c.fail(pointer.at, f"{node.name}() needs an address first, such as &x[i], not a '{given}'")
    target = pointer.type.target
    if pointer.type.const:
        c.fail(pointer.at, f"{node.name}() would change what may only be read")
    if not isinstance(target, types.Scalar) or target not in kinds:
        have = ", ".join(t.name for t in kinds)
        c.fail(node.at, f"{node.name}() has no form for '{types.spelled(target)}'; it takes {have}")
    pointer.origin.note("written", "signals")
    return target


def _atomic(name: str) -> BuiltinHandler:
    kinds, operation = _OPERATIONS[name]
    swaps = operation is _swapped

    def handle(c: Context, node: CallExpr, used: bool) -> Expr:
        args = arguments(c, node, 3 if swaps else 2)
        kind = _address(c, node, kinds, args)
        if swaps:
            args[0].origin.note("compared")
        c.work(flops=int(kind.is_float and operation is np.add))
        pointer, operands = args[0].run, [convert(c, a, kind, a.at).run for a in args[1:]]
        site = c.new_site(node.at, write=True)
        site.scope = 1 if node.name.endswith("_block") else 2

        def change(view: NDArray[Any], index: NDArray[np.int64], *parts: Any) -> Any:
            if asks or not isinstance(operation, np.ufunc):
                return _in_turn(view, index, operation, *parts)
            operation.at(view, index, *parts)  # nobody wants the old values
            return None

        asks = used or swaps
        blind = name == "atomicExch" and not used  # it only stores
        run = _changing(pointer, kind, site, operands, change, asks, blind)
        # The old value comes from memory, but no warp waits for it unless it is used.
        waited = load_place(c, args[0], args[0].origin) if asks else None
        # The sum depends on how long a number is, and what is largest on its type.
        of = kind.name if operation in (np.minimum, np.maximum) else kind.size
        commutes = node.name in _COMMUTE and kind.is_integer and not asks
        args[0].origin.use(f"{node.name} {of}" if commutes else "")
        done = c.note(Exchange(nodes(args), load=waited))
        return typed_value(c, kind, run, node.at, args, node=done)

    return handle


def _changing(
    pointer: Evaluate, kind: types.Scalar, site: Site, of: list[Evaluate], change: Callable[..., Any],
    used: bool, blind: bool,
) -> Evaluate:  # fmt: skip
    """Apply `change` to a view of the memory, the index of each lane, and the operands `of` it.

    What is `blind` may meet memory that nobody has written.
    """
    site.waits = used

    def evaluate(t: Team, m: Mask) -> Any:
        ptr = pointer(t, m)
        given = [operand(t, m) for operand in of]
        region = region_of(t, m, ptr, site)
        tell(t, m, ptr, kind.size, site)
        view, index = region.cells(MaskedAccess(t, m, ptr, kind, site, kind.size, blind))
        parts = [by_lane(m.take(value), m.n) for value in given]
        messages = t.launch.messages
        before = view[index] if t.launch.watches or messages.active else None
        turns, hostile = t.launch.turns, t.launch.hostile
        # Messages of several blocks are passed on in the order of lanes.
        if turns is None or (before is not None and hostile is None):
            out = change(view, index, *parts)
        else:
            order, does = turns.permutation(m.n), change
            if hostile is not None:
                does = hostile.exchanging(t.thread_id[m.index[order]], site.scope, used, change)
            out = does(view, index[order], *[part[order] for part in parts])
            out = None if out is None else out[np.argsort(order)]
        if before is not None:  # note whether it changed anything, and that these threads looked
            changed = before != view[index]
            if out is not None:  # turns of several threads may lead back to where a word was
                changed = changed | np.isin(index, index[out != before])
            if changed.any():
                t.launch.changed(m)
            if messages.active:
                messages.exchange(t, m.index, words_of(t, m, ptr), site.scope, changed, used, False)
        return None if out is None else m.spread(out)

    return evaluate


def _rounds(index: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Groups of lanes that do not meet, such that lanes of one element keep their order."""
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    if len(starts) == len(index):
        return [np.arange(len(index))]
    # For each lane, how many lanes before it work on the same element.
    ranks = np.empty(len(index), np.int64)
    sizes = np.diff(np.concatenate((starts, [len(index)])))
    ranks[order] = np.arange(len(index)) - np.repeat(starts, sizes)
    order = np.argsort(ranks, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(ranks[order])) + 1)


def _in_turn(
    view: NDArray[Any], index: NDArray[np.int64], operation: AtomicOperation, *parts: NDArray[Any]
) -> NDArray[Any]:
    out = np.empty(len(index), view.dtype)
    first = index[0]
    alone = len(index) > 1 and bool((index == first).all())
    if alone and isinstance(operation, np.ufunc):
        # All are on one element, so the running result, rounded at each step, is what the turns give. Of its
        # type, since NumPy would add up 32-bit integers in 64 bits, where they don't wrap around.
        start = view[first : first + 1]
        chain = operation.accumulate(np.concatenate((start, *parts)), dtype=view.dtype)
        view[first] = chain[-1]
        return chain[:-1]
    if alone and operation is _swapped and len(index) > 64:
        current = view[first]
        for k, (wanted, new) in enumerate(zip(*parts, strict=True)):
            out[k] = current
            current = new if current == wanted else current
        view[first] = current
        return out
    for lanes in _rounds(index):
        where = index[lanes]
        old = out[lanes] = view[where]
        view[where] = operation(old, *[part[lanes] for part in parts])
    return out


ATOMIC_FUNCTIONS: dict[str, BuiltinHandler] = {
    name + scope: fenced(_atomic(name))
    for name in _OPERATIONS
    for scope in ("", "_block", "_system")
}
