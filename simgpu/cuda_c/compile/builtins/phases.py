"""Barriers with phases, by the primitives that the headers cuda/barrier and cuda/pipeline are made of."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from simgpu.cuda_c import types
from simgpu.cuda_c.compile.builtins.common import BuiltinHandler, arguments, fenced
from simgpu.cuda_c.compile.builtins.copies import copied_between, copy_unit, need_space
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.conversions import convert, nodes, typed_value
from simgpu.cuda_c.compile.form import Exchange
from simgpu.cuda_c.compile.typed import Expr
from simgpu.cuda_c.lockstep import Mask, Site, Team, split, varies
from simgpu.cuda_c.lockstep.masks import by_lane
from simgpu.cuda_c.memory import access
from simgpu.cuda_c.memory.copies import copies_of
from simgpu.cuda_c.memory.mixed_region import region_of
from simgpu.cuda_c.memory.phases import phases_of
from simgpu.cuda_c.memory.pointers import MaskedAccess, Ptr
from simgpu.cuda_c.memory.regions import ByteRegion
from simgpu.cuda_c.syntax.ast import CallExpr
from simgpu.errors import BarrierError

Reached = tuple[ByteRegion, MaskedAccess, Any]


def barrier_site(c: Context, node: CallExpr, expr: Expr) -> Site:
    """Check that an argument is the address of a barrier; where it is used."""
    if not isinstance(expr.type, types.Pointer) or types.size_of(expr.type.target) != 8:
        c.fail(expr.at, f"{node.name}() needs the address of a barrier, which has 8 bytes")
    expr.origin.note("written", "signals")
    site = c.new_site(node.at, True)
    site.scope, site.waits = 1, True
    return site


def reach_barrier(t: Team, m: Mask, ptr: Ptr, site: Site) -> Reached:
    """The memory that a barrier is in, the access to it, and the numbers of its words of 8 bytes."""
    region = region_of(t, m, ptr, site)
    if not isinstance(region, ByteRegion) or not region.shared:
        text = (
            f"uses '{ptr.name}' as a barrier, which is not in shared memory (or not in all threads)"
        )
        t.fault(BarrierError, site.at, int(m.index[0]), text)
    access.tell(t, m, ptr, 8, site)
    a = MaskedAccess(t, m, ptr, types.ULLONG, site, 0)
    return region, a, region.reached(a)[1]


def numbers_of(m: Mask, value: Any) -> Any:
    """A value for each lane of a mask."""
    return by_lane(m.take(value), m.n)


def _init(c: Context, node: CallExpr, used: bool) -> Expr:
    bar, count = arguments(c, node, 2)
    site, count = barrier_site(c, node, bar), convert(c, count, types.INT, count.at)
    site.scope = 0
    c.work()

    def evaluate(t: Team, m: Mask) -> None:
        ptr, expected = bar.run(t, m), numbers_of(m, count.run(t, m))
        access.store_lanes(t, m, ptr, types.ULLONG, np.uint64(0), site)
        region = region_of(t, m, ptr, site)
        if not isinstance(region, ByteRegion) or not region.shared:
            text = (
                f"makes a barrier of '{ptr.name}', which is not in shared memory, as it has to be"
            )
            t.fault(BarrierError, site.at, int(m.index[0]), text)
        a = MaskedAccess(t, m, ptr, types.ULLONG, site, 0)
        region.locate(a)
        region.place(a, True)
        phases_of(t).make(region, a, a.index, expected)

    return typed_value(c, types.VOID, evaluate, node.at, [bar, count])


def _arrive(drop: bool, c: Context, node: CallExpr, used: bool) -> Expr:
    """`(barrier, times = 1, bytes to come = 0)`, whose value is the token of the phase."""
    bar, *more = arguments(c, node, 1, 2, 3)
    numbers = [convert(c, e, types.INT, e.at) for e in more]
    site = barrier_site(c, node, bar)
    c.work(2)

    def evaluate(t: Team, m: Mask) -> Any:
        said = [e.run(t, m) for e in numbers]
        times, nbytes = *said, *(np.int32(1), np.int32(0))[len(said) :]
        region, a, words = reach_barrier(t, m, bar.run(t, m), site)
        given = numbers_of(m, times).astype(np.int64), numbers_of(m, nbytes).astype(np.int64)
        return m.spread(phases_of(t).arrive(region, a, words, *given, drop))

    return typed_value(c, types.ULLONG, evaluate, node.at, [bar, *numbers])


def _expect(c: Context, node: CallExpr, used: bool) -> Expr:
    bar, count = arguments(c, node, 2)
    site, count = barrier_site(c, node, bar), convert(c, count, types.INT, count.at)
    c.work()

    def evaluate(t: Team, m: Mask) -> None:
        region, a, words = reach_barrier(t, m, bar.run(t, m), site)
        phases_of(t).expect(region, a, words, numbers_of(m, count.run(t, m)).astype(np.int64))

    return typed_value(c, types.VOID, evaluate, node.at, [bar, count])


def _passed(by_parity: bool, c: Context, node: CallExpr, used: bool) -> Expr:
    """Whether a phase is over, by its token or its parity."""
    bar, given = arguments(c, node, 2)
    site, asked = barrier_site(c, node, bar), convert(c, given, types.ULLONG, given.at)
    c.work(2)

    def evaluate(t: Team, m: Mask) -> Any:
        token = numbers_of(m, asked.run(t, m))
        region, a, words = reach_barrier(t, m, bar.run(t, m), site)
        return m.spread(phases_of(t).passed(region, a, words, token, by_parity))

    node_of_it = c.note(Exchange(nodes([bar, asked]), load=None))
    return typed_value(c, types.BOOL, evaluate, node.at, [bar, asked], node=node_of_it)


def _group_copy(c: Context, node: CallExpr, used: bool) -> Expr:
    """`(to, from, bytes, rank, size, barrier)`: the share of one thread of a group in a copy.

    It is of 16, 8 or 4 bytes at once, as addresses and bytes allow. The rest, which no GPU copies
    asynchronously, is loaded and stored. Without a barrier it belongs to the thread's own group.
    """
    to, source, *numbers, bar = arguments(c, node, 6)
    size, rank, count = (convert(c, e, types.LLONG, e.at) for e in numbers)
    sites, plain = (
        copied_between(c, node, to, source),
        (c.new_site(node.at), c.new_site(node.at, True)),
    )
    by = None if bar.constant is not None else barrier_site(c, node, bar)
    c.work()

    def evaluate(t: Team, m: Mask) -> None:
        copies = copies_of(t)
        target, begin = to.run(t, m), source.run(t, m)
        nbytes, first, step = (np.asarray(e.run(t, m), np.int64) for e in (size, rank, count))
        if by is not None:
            copies.bound = phases_of(t).counting(*reach_barrier(t, m, bar.run(t, m), by))
        try:
            low = np.asarray(target.address()) | np.asarray(begin.address()) | nbytes
            rest: Mask | None = m
            for unit in (16, 8, 4, 1):
                lanes = None
                if rest is not None:
                    lanes, rest = split(
                        rest, low % unit == 0 if varies(low) else np.bool_(low % unit == 0)
                    )
                if lanes is not None:
                    _share(t, lanes, target, begin, nbytes, first, step, unit)
        finally:
            copies.bound = None

    def _share(
        t: Team, m: Mask, target: Ptr, begin: Ptr, nbytes: Any, first: Any, step: Any, unit: int
    ) -> None:
        here, place = m, first * unit
        while True:
            now, _ = split(here, place < nbytes)
            if now is None:
                return
            here = now
            pair = target.plus(place[()], 1), begin.plus(place[()], 1)
            if unit == 1:
                byte = access.load_lanes(t, here, pair[1], types.UCHAR, plain[0])
                access.store_lanes(t, here, pair[0], types.UCHAR, byte, plain[1])
            else:
                need_space(t, here, pair[0], True, sites[1])
                need_space(t, here, pair[1], False, sites[0])
                copy_unit(t, here, *pair, unit, np.int32(0), sites)
            place = place + step * unit

    return typed_value(c, types.VOID, evaluate, node.at, [to, source, size, rank, count, bar])


PHASE_FUNCTIONS: dict[str, BuiltinHandler] = {
    "__mbarrier_init": fenced(_init, behind=False),
    "__mbarrier_arrive": fenced(partial(_arrive, False), behind=False),
    "__mbarrier_arrive_and_drop": fenced(partial(_arrive, True), behind=False),
    "__mbarrier_expect_tx": fenced(_expect, behind=False),
    "__mbarrier_test_wait": fenced(partial(_passed, False), behind=False),
    "__mbarrier_test_wait_parity": fenced(partial(_passed, True), behind=False),
    "__memcpy_async_share": fenced(_group_copy, behind=False),
}
