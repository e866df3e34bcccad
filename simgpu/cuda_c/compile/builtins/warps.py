"""Functions by which the lanes of a warp look at each other."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.compile.builtins import common
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.conversions import convert, typed_value
from simgpu.cuda_c.compile.storage import passed_on
from simgpu.cuda_c.compile.typed import Evaluate, Expr
from simgpu.cuda_c.lockstep import WARP, Mask, Team, varies
from simgpu.cuda_c.lockstep.values import select_lanes
from simgpu.cuda_c.lockstep.waiting_threads import Apart, Meeting, some_lanes
from simgpu.cuda_c.memory import access
from simgpu.cuda_c.memory.holes import Holed, holed, missing_in, require, taken_holes
from simgpu.cuda_c.syntax.ast import CallExpr
from simgpu.cuda_c.text.source import Position
from simgpu.cuda_c.types import BOOL, HALF, INT, UINT, Pointer, Scalar, Struct, leaves, promoted
from simgpu.errors import WarpError

# Structs of 16 bits each, which cuda_fp16.h and cuda_bf16.h can shuffle.
_PAIRS = {"half2", "__nv_bfloat16", "__nv_bfloat162"}


# What those who meet have in common: the masks, who they are, what they give, and whether it is new.
Met: TypeAlias = tuple[Any, Mask, Any, bool]


def meeting(
    c: Context, node: CallExpr, mask: Expr | None, offered: Evaluate, kind: str = ""
) -> Callable[[Team, Mask], Met]:
    """Lanes of a warp meet at a call, or wait for each other; or it is refused."""
    names: Evaluate = lambda t, m: np.uint32(0xFFFFFFFF)
    if mask is not None:
        names = convert(c, mask, UINT, mask.at).run
    at, name, meet = node.at, node.name, c.meet("warp", node.at, node.name)
    key = f"{name.lstrip('_')} of {kind}"  # only the same kind of shuffle can meet

    def evaluate(t: Team, m: Mask) -> Met:
        whole = m.full or m.n == WARP * m.n_warps
        if meet.waits and (not whole or t.waiters.meetings.get(key)):
            return _gathered(t, m, names, offered, at, name, key)
        those = names(t, m)
        if not whole or varies(those) or int(those) != 0xFFFFFFFF:
            _require_named(t, m, those, at, name)
            expected = t.layout.full.bits if t.exited is None else ~t.exited.bits
            absent = those & _by_warp(t, expected & ~m.bits)
            _require_all(t, np.where(m.bits, absent, 0), those, at, name)
            _require_alike(t, m, those, at, name)
        return those, m, offered(t, m), True

    return evaluate


def _gathered(
    t: Team, m: Mask, names: Evaluate, offered: Evaluate, at: Position, what: str, key: str
) -> Met:
    """Lanes meet others that have come to another call, or wait for these."""
    meetings = t.waiters.meetings.setdefault(key, [])
    fresh = m.bits.copy()
    for one in meetings:
        fresh &= ~one.here
    new = some_lanes(t.layout, fresh)
    if new is not None:
        those = t.array(names(t, new))
        _require_named(t, new, those, at, what)
        given = offered(t, new)
        for mask in np.unique(those[fresh]):  # only lanes with one mask can meet
            # First where some of their warp wait for them, because another warp's meeting may be older.
            near = [(one, one.near(mask)) for one in meetings]
            every = [(one, ~bits) for one, bits in near] + [(Meeting(t.layout), fresh)]
            for one, bits in near + every:
                come = some_lanes(t.layout, fresh & bits & (those == mask) & one.open_to(mask))
                if come is not None:
                    one.join(come.bits, those)
                    one.given = access.merge_member(come, given, one.given)
                    fresh = fresh & ~come.bits
                    meetings += [one] * (one not in meetings)
    one = next(one for one in meetings if one.here[m.index[0]])
    mine, short = m.bits & one.here, one.short(t.waiters.left(t.exited))
    if t.forced:
        _require_all(t, np.where(mine, short, 0), one.names, at, what)
    later = m.bits & (~mine | (short != 0))
    if later.any():
        raise Apart(later, "warp", what=key)
    near = t.layout.words(mine)[t.layout.warp] != 0
    party, before = some_lanes(t.layout, one.bits & near), one.done
    assert party is not None
    those, given = one.names, one.given
    one.leave(mine)
    if not one.bits.any():
        meetings.remove(one)
    return those, party, given, not (before & party.bits).any()


def _require_named(t: Team, m: Mask, names: Any, at: Position, what: str) -> None:
    """Refuse a call by a lane that its mask does not name."""
    bad = m.bits & ((names >> t.layout.lane.astype(np.uint32)) & np.uint32(1) == 0)
    if bad.any():
        lane = int(bad.argmax())
        text = (
            f"calls {what} as lane {int(t.layout.lane[lane])}, which the mask "
            f"0x{int(t.array(names)[lane]):08x} does not name"
        )
        t.fault(WarpError, at, lane, text)


def _require_alike(t: Team, m: Mask, names: Any, at: Position, what: str) -> None:
    """Refuse a call by lanes whose mask names others that pass another mask."""
    if not varies(names):
        return
    layout, here = t.layout, t.layout.words(m.bits)[t.layout.warp]
    for mask in np.unique(names[m.index]):
        same = m.bits & (names == mask)
        others = np.where(same, mask & here & ~layout.words(same)[layout.warp], 0)
        if others.any():
            lane = int((others != 0).argmax())
            other = (int(others[lane]) & -int(others[lane])).bit_length() - 1
            text = (
                f"calls {what} with the mask 0x{int(mask):08x}, and lane {other}, which it names, "
                "passes another mask: the result is undefined, or the warp hangs. All lanes "
                "that are named must pass the same mask"
            )
            t.fault(WarpError, at, lane, text)


def _require_all(t: Team, absent: NDArray[Any], names: Any, at: Position, what: str) -> None:
    """Refuse a call without a lane that is named: those that are `absent`, for each lane."""
    if absent.any():
        lane = int((absent != 0).argmax())
        away = int(absent[lane])
        text = (
            f"calls {what} with the mask 0x{int(t.array(names)[lane]):08x}, and lane "
            f"{(away & -away).bit_length() - 1}, which it names, does not: the result is undefined, or the "
            "warp hangs. Name only the lanes that get here, or move the call out of the branch"
        )
        t.fault(WarpError, at, lane, text)


def _shuffle(way: str, structs: bool, c: Context, node: CallExpr, used: bool) -> Expr:
    """`structs` is for the groups of a warp, whose functions move any value that is small."""
    args = common.arguments(c, node, 3, 4)
    whole = args[1].type
    if isinstance(whole, Struct) and (structs or whole.name in _PAIRS):
        kind: Scalar | Struct = whole
    else:
        kind = common.number_argument(c, node, args[1])
        kind = kind if kind is HALF else promoted(kind)
    offered = convert(
        c, passed_on(args[1]), kind, args[1].at
    ).run  # whom nobody asks need not have it
    callers = meeting(c, node, args[0], offered, kind.name)
    distance = convert(c, args[2], INT, args[2].at).run
    width = convert(c, args[3], INT, args[3].at) if len(args) == 4 else None
    known = 32 if width is None or width.constant is None else int(width.constant)
    if known not in (1, 2, 4, 8, 16, 32):
        c.fail(args[3].at, "the width of a shuffle must be a power of two up to 32")
    group = width.run if width is not None else None
    c.work(kind.size // 4 if kind.size > 4 else 1)
    at, name = node.at, node.name

    def evaluate(t: Team, m: Mask) -> Any:
        _, party, given, _ = callers(t, m)
        size = np.int64(32) if group is None else np.asarray(group(t, m), np.int64)
        source = _source(way, t.layout.lane, np.asarray(distance(t, m), np.int64), size)
        target = t.layout.index - t.layout.lane + source
        _present(t, m, party, source, target, at, name)
        if type(given) is Holed:
            asked = np.zeros(t.layout.lanes, np.bool_)
            asked[target[m.index]] = True
            given = require(t, asked, given, args[1].at)
        here = np.minimum(target, t.layout.lanes - 1)
        if isinstance(given, list):
            members = zip(cast("list[Any]", given), leaves(kind), strict=True)
            return [_taken(t, m, member, leaf, here, at) for member, (leaf, _) in members]
        return given.take(here) if varies(given) else given

    return typed_value(c, kind, evaluate, at, args)


def _taken(t: Team, m: Mask, value: Any, leaf: Scalar | Pointer, lanes: Any, at: Position) -> Any:
    """A member of a struct, for each lane that of another one."""
    if isinstance(leaf, Pointer):
        number, missing = t.array(t.launch.addresses.number(value)), missing_in(value)
        if missing is not None:
            number = holed(number, missing, value.what)
        return access.pointed(t, m, taken_holes(number, lanes), leaf, at)
    return taken_holes(value, lanes) if varies(value) else value


def _source(way: str, lane: Any, distance: Any, size: Any) -> Any:
    """Lane to take from; its own where the distance leads out of the group (PTX shfl.sync)."""
    place = lane & (size - 1)
    if way == "idx":
        return lane - place + (distance & (size - 1))
    if way == "up":
        return select_lanes(place >= distance, lane - distance, lane)
    if way == "down":
        return select_lanes(place + distance < size, lane + distance, lane)
    partner = lane ^ distance
    return select_lanes(partner < lane - place + size, partner, lane)


def _present(
    t: Team, m: Mask, party: Mask, source: Any, target: Any, at: Position, name: str
) -> None:
    layout = t.layout
    there = (source >= 0) & (source < WARP) & (target < layout.lanes)
    within = np.where(there, target, 0)
    there &= party.bits[within] & (layout.warp[within] == layout.warp)
    bad = m.bits & ~there
    if bad.any():
        lane = int(bad.argmax())
        text = (
            f"asks lane {int(source[lane])} for its value with {name}, and that lane does not "
            "execute it, so the result is undefined"
        )
        t.fault(WarpError, at, lane, text)


def _by_warp(t: Team, bits: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """For each lane, the set lanes of its warp as a number."""
    return t.layout.words(bits)[t.layout.warp]


def _vote(
    result: Scalar, finish: Callable[[Any, Any], Any], c: Context, node: CallExpr, used: bool
) -> Expr:
    args = common.arguments(c, node, 2)
    callers = meeting(c, node, args[0], convert(c, args[1], BOOL, args[1].at).run)
    c.work()

    def evaluate(t: Team, m: Mask) -> Any:
        those, party, test, _ = callers(t, m)
        yes = _by_warp(t, party.bits & t.array(test)) & those
        here = _by_warp(t, party.bits) & those
        return finish(yes, here).astype(result.dtype)

    return typed_value(c, result, evaluate, node.at, args)


def _activemask(c: Context, node: CallExpr, used: bool) -> Expr:
    c.aims.asks_who = True
    return common.by_team([], UINT, _together)(c, node, used)


def _together(t: Team, m: Mask, at: Position) -> Any:
    active, hostile = _by_warp(t, m.bits), t.launch.hostile
    if hostile is None:
        return active
    # It promises nothing about lanes that could be converged: some may come later.
    part = np.uint32(hostile.random.getrandbits(32))
    first = part >> t.layout.lane.astype(np.uint32) & np.uint32(1)
    return active & np.where(first != 0, part, ~part)


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


def _match(c: Context, node: CallExpr, used: bool) -> Expr:
    args = common.arguments(c, node, 2)
    common.number_argument(c, node, args[1])
    callers = meeting(c, node, args[0], args[1].run)
    c.work(2)

    def evaluate(t: Team, m: Mask) -> Any:
        those, party, given, _ = callers(t, m)
        return those & _groups(t, party, given)

    return typed_value(c, UINT, evaluate, node.at, args)


def _reduce(ufunc: Any, types: tuple[Scalar, ...], c: Context, node: CallExpr, used: bool) -> Expr:
    args = common.arguments(c, node, 2)
    kind = common.number_argument(c, node, args[1])
    if kind not in types:
        c.fail(node.at, f"{node.name}() has no form for '{kind.name}'")
    callers = meeting(c, node, args[0], args[1].run, kind.name)
    c.work(2)

    def evaluate(t: Team, m: Mask) -> Any:
        those, m, given, _ = callers(t, m)
        # Lanes of a warp that name the same ones are a group.
        key = t.layout.warp[m.index] << 32 | t.array(those)[m.index].astype(np.int64)
        order = np.argsort(key, kind="stable")
        ordered = key[order]
        first = np.concatenate(([True], ordered[1:] != ordered[:-1]))
        totals = ufunc.reduceat(t.array(given)[m.index][order], np.flatnonzero(first))
        out = np.zeros(m.n, kind.dtype)
        out[order] = totals[np.cumsum(first) - 1]
        return m.spread(out)

    return typed_value(c, kind, evaluate, node.at, args)


WARP_FUNCTIONS: dict[str, common.BuiltinHandler] = {
    **{
        f"{start}shfl_{word}sync": common.fenced(partial(_shuffle, way, start == "_"), behind=False)
        for start in ("__", "_")
        for word, way in (("", "idx"), ("up_", "up"), ("down_", "down"), ("xor_", "xor"))
    },
    "__ballot_sync": partial(_vote, UINT, lambda yes, here: yes),
    "__any_sync": partial(_vote, INT, lambda yes, here: yes != 0),
    "__all_sync": partial(_vote, INT, lambda yes, here: yes == here),
    "__uni_sync": partial(_vote, INT, lambda yes, here: (yes == here) | (yes == 0)),
    "__activemask": _activemask,
    "__match_any_sync": _match,
    "__reduce_add_sync": partial(_reduce, np.add, (INT, UINT)),
    "__reduce_min_sync": partial(_reduce, np.minimum, (INT, UINT)),
    "__reduce_max_sync": partial(_reduce, np.maximum, (INT, UINT)),
    "__reduce_and_sync": partial(_reduce, np.bitwise_and, (UINT,)),
    "__reduce_or_sync": partial(_reduce, np.bitwise_or, (UINT,)),
    "__reduce_xor_sync": partial(_reduce, np.bitwise_xor, (UINT,)),
}
