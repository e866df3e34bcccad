"""Functions by which the lanes of a warp look at each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncgpu_tutor.cuda_c.compile.builtins.common import (
    Handler,
    arguments,
    fenced,
    need_count,
    number,
)
from asyncgpu_tutor.cuda_c.compile.context import Context
from asyncgpu_tutor.cuda_c.compile.conversions import convert, value
from asyncgpu_tutor.cuda_c.compile.typed import Expr
from asyncgpu_tutor.cuda_c.lockstep.masks import WARP, Mask
from asyncgpu_tutor.cuda_c.lockstep.team import Team
from asyncgpu_tutor.cuda_c.lockstep.values import choose, varies
from asyncgpu_tutor.cuda_c.memory import access
from asyncgpu_tutor.cuda_c.syntax.ast import Call
from asyncgpu_tutor.cuda_c.text.source import Position
from asyncgpu_tutor.cuda_c.types import (
    BOOL,
    HALF,
    INT,
    UINT,
    Pointer,
    Scalar,
    promoted,
    spelled,
)
from asyncgpu_tutor.errors import WarpError


def _named(t: Team, m: Mask, names: Any, at: Position, what: str) -> None:
    """Each lane that calls must be named in the mask that it gives.

    Raises
    ------
    WarpError
        If one is not.
    """
    if not varies(names) and int(names) == 0xFFFFFFFF:
        return
    lanes = t.layout.lane.astype(np.uint32)
    mine = (names >> lanes) & np.uint32(1)
    bad = m.bits & (mine == 0)
    if bad.any():
        lane = int(bad.argmax())
        t.fault(
            WarpError,
            at,
            lane,
            f"calls {what} as lane {int(t.layout.lane[lane])}, which the mask "
            f"0x{int(t.array(names)[lane]):08x} does not name",
        )


def _shuffle(way: str) -> Handler:
    def handle(c: Context, node: Call, used: bool) -> Expr:
        args = arguments(c, node, 3, 4)
        kind = number(c, node, args[1])
        kind = kind if kind is HALF else promoted(kind)
        names = convert(c, args[0], UINT, args[0].at).run
        offered = convert(c, args[1], kind, args[1].at).run
        distance = convert(c, args[2], INT, args[2].at).run
        width = convert(c, args[3], INT, args[3].at) if len(args) == 4 else None
        known = 32 if width is None or width.constant is None else int(width.constant)
        if known not in (1, 2, 4, 8, 16, 32):
            c.fail(args[3].at, "the width of a shuffle must be a power of two up to 32")
        group = width.run if width is not None else None
        c.work(kind.size // 4 if kind.size > 4 else 1)
        at, name = node.at, node.name

        def run(t: Team, m: Mask) -> Any:
            _named(t, m, names(t, m), at, name)
            given = offered(t, m)
            size = np.int64(32) if group is None else np.asarray(group(t, m), np.int64)
            source = _source(way, t.layout.lane, np.asarray(distance(t, m), np.int64), size)
            target = t.layout.index - t.layout.lane + source
            _present(t, m, source, target, at, name)
            if not varies(given):
                return given
            return given.take(np.minimum(target, t.layout.lanes - 1))

        return value(c, kind, run, at, args)

    return handle


def _source(way: str, lane: Any, distance: Any, size: Any) -> Any:
    """Lane to take from; its own where the distance leads out of the group (PTX shfl.sync)."""
    place = lane & (size - 1)
    if way == "idx":
        return lane - place + (distance & (size - 1))
    if way == "up":
        return choose(place >= distance, lane - distance, lane)
    if way == "down":
        return choose(place + distance < size, lane + distance, lane)
    partner = lane ^ distance
    return choose(partner < lane - place + size, partner, lane)


def _present(t: Team, m: Mask, source: Any, target: Any, at: Position, name: str) -> None:
    layout = t.layout
    there = (source >= 0) & (source < WARP) & (target < layout.lanes)
    within = np.where(there, target, 0)
    there &= m.bits[within] & (layout.warp[within] == layout.warp)
    bad = m.bits & ~there
    if bad.any():
        lane = int(bad.argmax())
        t.fault(
            WarpError,
            at,
            lane,
            f"asks lane {int(source[lane])} for its value by {name}, and that lane does not "
            "execute it: what comes back is undefined",
        )


def _by_warp(t: Team, m: Mask, bits: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """For each lane, the set lanes of its warp as a number."""
    layout = t.layout
    powers = np.where(bits & m.bits, np.uint32(1) << layout.lane.astype(np.uint32), np.uint32(0))
    words = np.bitwise_or.reduceat(powers, layout.warp_start)
    return words[layout.warp]


def _vote(result: Scalar, finish: Callable[[Any, Any], Any]) -> Handler:
    def handle(c: Context, node: Call, used: bool) -> Expr:
        args = arguments(c, node, 2)
        names = convert(c, args[0], UINT, args[0].at).run
        test = convert(c, args[1], BOOL, args[1].at).run
        c.work()
        at, name = node.at, node.name

        def run(t: Team, m: Mask) -> Any:
            _named(t, m, names(t, m), at, name)
            yes = _by_warp(t, m, t.array(test(t, m)))
            here = _by_warp(t, m, m.bits)
            return finish(yes, here).astype(result.dtype)

        return value(c, result, run, at, args)

    return handle


def _activemask(c: Context, node: Call, used: bool) -> Expr:
    need_count(c, node, 0)
    c.work()
    return value(c, UINT, lambda t, m: _by_warp(t, m, m.bits), node.at)


def _groups(t: Team, m: Mask, value: Any) -> NDArray[np.uint32]:
    """For each lane, those of its warp that hold the same value."""
    layout = t.layout
    numbers = np.unique(t.array(value), return_inverse=True)[1].reshape(-1)
    key = layout.warp * (int(numbers.max()) + 1) + numbers
    group = np.unique(key, return_inverse=True)[1].reshape(-1)
    words = np.zeros(int(group.max()) + 1, np.uint32)
    powers = np.where(m.bits, np.uint32(1) << layout.lane.astype(np.uint32), np.uint32(0))
    np.bitwise_or.at(words, group, powers)
    return words[group]


def _match_any(c: Context, node: Call, used: bool) -> Expr:
    args = arguments(c, node, 2)
    number(c, node, args[1])
    names = convert(c, args[0], UINT, args[0].at).run
    offered = args[1].run
    c.work(2)
    at, name = node.at, node.name

    def run(t: Team, m: Mask) -> Any:
        _named(t, m, names(t, m), at, name)
        return _groups(t, m, offered(t, m))

    return value(c, UINT, run, at, args)


def _match_all(c: Context, node: Call, used: bool) -> Expr:
    args = arguments(c, node, 3)
    number(c, node, args[1])
    if args[2].type != Pointer(INT):
        c.fail(args[2].at, f"{node.name}() needs an int* last, not a '{spelled(args[2].type)}'")
    names = convert(c, args[0], UINT, args[0].at).run
    offered, pointer = args[1].run, args[2].run
    if args[2].origin is not None:
        args[2].origin.write()
    c.work(2)
    at, name = node.at, node.name
    site = c.new_site(at, write=True)

    def run(t: Team, m: Mask) -> Any:
        _named(t, m, names(t, m), at, name)
        here = _by_warp(t, m, m.bits)
        same = _groups(t, m, offered(t, m)) == here
        access.store(t, m, pointer(t, m), INT, same.astype(np.int32), site)
        return np.where(same, here, np.uint32(0))

    return value(c, UINT, run, at, args)


def _reduce(ufunc: Any, types: tuple[Scalar, ...]) -> Handler:
    def handle(c: Context, node: Call, used: bool) -> Expr:
        args = arguments(c, node, 2)
        kind = number(c, node, args[1])
        if kind not in types:
            c.fail(node.at, f"{node.name}() has no form for '{kind.name}'")
        names = convert(c, args[0], UINT, args[0].at).run
        offered = args[1].run
        c.work(2)
        at, name = node.at, node.name

        def run(t: Team, m: Mask) -> Any:
            _named(t, m, names(t, m), at, name)
            given = t.array(offered(t, m))[m.index]
            warps = t.layout.warp[m.index]
            starts = np.flatnonzero(np.concatenate(([True], warps[1:] != warps[:-1])))
            out = np.zeros(t.layout.warps, kind.dtype)
            out[warps[starts]] = ufunc.reduceat(given, starts)
            return out[t.layout.warp]

        return value(c, kind, run, at, args)

    return handle


TABLE: dict[str, Handler] = {
    "__shfl_sync": fenced(_shuffle("idx"), behind=False),
    "__shfl_up_sync": fenced(_shuffle("up"), behind=False),
    "__shfl_down_sync": fenced(_shuffle("down"), behind=False),
    "__shfl_xor_sync": fenced(_shuffle("xor"), behind=False),
    "__ballot_sync": _vote(UINT, lambda yes, here: yes),
    "__any_sync": _vote(INT, lambda yes, here: yes != 0),
    "__all_sync": _vote(INT, lambda yes, here: yes == here),
    "__uni_sync": _vote(INT, lambda yes, here: (yes == here) | (yes == 0)),
    "__activemask": _activemask,
    "__match_any_sync": _match_any,
    "__match_all_sync": _match_all,
    "__reduce_add_sync": _reduce(np.add, (INT, UINT)),
    "__reduce_min_sync": _reduce(np.minimum, (INT, UINT)),
    "__reduce_max_sync": _reduce(np.maximum, (INT, UINT)),
    "__reduce_and_sync": _reduce(np.bitwise_and, (UINT,)),
    "__reduce_or_sync": _reduce(np.bitwise_or, (UINT,)),
    "__reduce_xor_sync": _reduce(np.bitwise_xor, (UINT,)),
}
