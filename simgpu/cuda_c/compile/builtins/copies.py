"""Asynchronous copies to shared memory, and barriers with phases, which may count them.

cuda_pipeline.h has the copies, and the headers cuda/barrier and cuda/pipeline are made of both.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from simgpu.cuda_c import types
from simgpu.cuda_c.compile.builtins.common import BuiltinHandler, arguments, by_team, fenced
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.conversions import convert, nodes, typed_value
from simgpu.cuda_c.compile.form import Exchange
from simgpu.cuda_c.compile.typed import Expr
from simgpu.cuda_c.lockstep import Mask, Site, Team, by_lane, split
from simgpu.cuda_c.lockstep.values import select_lanes
from simgpu.cuda_c.memory import access
from simgpu.cuda_c.memory.copies import copies_of
from simgpu.cuda_c.memory.phases import BarrierWords, Phases, phases_of
from simgpu.cuda_c.memory.pointers import MaskedAccess, Ptr, region_of
from simgpu.cuda_c.memory.regions import ByteRegion
from simgpu.cuda_c.syntax.ast import CallExpr
from simgpu.cuda_c.text.source import Position
from simgpu.errors import BarrierError, MisalignedError, OutOfBoundsError

# The types that a copy of so many bytes moves at once.
_UNITS = {4: types.UINT, 8: types.VECTORS["uint2"], 16: types.VECTORS["uint4"]}
_SIZES = "an asynchronous copy is of 4, 8 or 16 bytes"


def copied_between(c: Context, node: CallExpr, to: Expr, source: Expr) -> tuple[Site, Site]:
    """Check that two arguments are a target and a source; the sites of the load and the store."""
    for expr in (to, source):
        if not isinstance(expr.type, types.Pointer):
            given = types.spelled(expr.type)
            c.fail(expr.at, f"{node.name}() needs an address, such as &x[i], not a '{given}'")
    assert isinstance(to.type, types.Pointer)
    if to.type.const:
        c.fail(to.at, f"{node.name}() would write to what may only be read")
    to.origin.note("written")
    to.origin.use()
    source.origin.use()
    load, store = c.new_site(node.at), c.new_site(node.at, True)
    load.apart = store.apart = True
    return load, store


def need_space(t: Team, m: Mask, ptr: Ptr, shared: bool, site: Site) -> None:
    """Refuse to copy to or from the wrong kind of memory."""
    for bits, region, name in ptr.choices(m):
        here = bits & m.bits
        if region is not None and getattr(region, "shared", False) is not shared and here.any():
            end, wanted = "to" if site.write else "from", "shared" if shared else "global"
            text = f"copies asynchronously {end} '{name}', which is not in {wanted} memory, as it has to be"
            t.fault(OutOfBoundsError, site.at, int(here.argmax()), text, array=name)


def _by_size(t: Team, m: Mask, size: Any, site: Site) -> Iterator[tuple[Mask, int]]:
    """The lanes that copy 4, 8 and 16 bytes; a fault if some copy any other number of them."""
    rest: Mask | None = m
    for nbytes in _UNITS:
        if rest is not None:
            those, rest = split(rest, size == nbytes)
            if those is not None:
                yield those, nbytes
    if rest is not None:
        lane = int(rest.index[0])
        text = f"starts an asynchronous copy of {int(t.array(size)[lane])} bytes: {_SIZES}"
        t.fault(MisalignedError, site.at, lane, text)


def copy_unit(
    t: Team, m: Mask, to: Ptr, source: Ptr, nbytes: int, zeros: Any, sites: tuple[Site, Site]
) -> None:
    """Copy 4, 8 or 16 bytes for each lane, the last `zeros` of which are not read, but made 0."""
    load, store = sites
    unit: Any = _UNITS[nbytes]
    if not np.any(m.take(zeros)):
        access.store_lanes(t, m, to, unit, access.load_lanes(t, m, source, unit, load), store)
        return
    words: list[Any] = []
    for k in range(0, nbytes, 4):
        lack, read = split(m, zeros > nbytes - 4 - k)
        word: Any = np.uint32(0)
        if read is not None:
            word = access.load_lanes(t, read, source.moved(k), types.UINT, load)
        if lack is not None and read is not None:
            word = select_lanes(read.bits, word, np.uint32(0))
        words.append(word)
    access.store_lanes(t, m, to, unit, words if nbytes > 4 else words[0], store)


def _memcpy_async(c: Context, node: CallExpr, used: bool) -> Expr:
    """`__pipeline_memcpy_async(to, from, size, zeros = 0)`."""
    args = arguments(c, node, 3, 4)
    to, source, *numbers = args
    size, *more = (convert(c, n, types.INT, n.at) for n in numbers)
    if size.constant is not None and int(size.constant) not in _UNITS:
        c.fail(size.at, f"{_SIZES}, not {int(size.constant)}")
    sites = copied_between(c, node, to, source)
    c.work()

    def evaluate(t: Team, m: Mask) -> None:
        copies_of(t)
        target, begin, count = to.run(t, m), source.run(t, m), size.run(t, m)
        zeros = more[0].run(t, m) if more else np.int32(0)
        need_space(t, m, target, True, sites[1])
        need_space(t, m, begin, False, sites[0])
        wrong = m.bits & ((zeros < 0) | (zeros > count) | (zeros % 4 != 0))
        if more and wrong.any():
            lane = int(np.argmax(wrong))
            text = (
                f"starts an asynchronous copy that makes {int(t.array(zeros)[lane])} of its bytes 0: the "
                "simulated device takes multiples of 4, up to the size of the copy"
            )
            t.fault(MisalignedError, node.at, lane, text)
        for lanes, nbytes in _by_size(t, m, count, sites[1]):
            copy_unit(t, lanes, target, begin, nbytes, zeros, sites)

    return typed_value(c, types.VOID, evaluate, node.at, args)


def _commit(t: Team, m: Mask, at: Position) -> None:
    copies_of(t).commit(t, m)


def _wait(t: Team, m: Mask, at: Position, left: Any) -> None:
    copies_of(t).wait_prior(t, m, left)


COPY_FUNCTIONS: dict[str, BuiltinHandler] = {
    "__pipeline_memcpy_async": fenced(_memcpy_async, behind=False),
    "__pipeline_commit": by_team([], types.VOID, _commit),
    "__pipeline_wait_prior": fenced(by_team([types.INT], types.VOID, _wait)),
}


def barrier_site(c: Context, node: CallExpr, expr: Expr) -> Site:
    """Check that an argument is the address of a barrier; where it is used."""
    if not isinstance(expr.type, types.Pointer) or types.size_of(expr.type.target) != 8:
        c.fail(expr.at, f"{node.name}() needs the address of a barrier, which has 8 bytes")
    expr.origin.note("written", "signals")
    expr.origin.use()
    site = c.new_site(node.at, True)
    site.scope, site.waits = 1, True
    return site


def _in_shared(t: Team, m: Mask, ptr: Ptr, site: Site) -> tuple[ByteRegion, MaskedAccess]:
    """The memory that a barrier is in, and the access to it."""
    region = region_of(t, m, ptr, site)
    if not isinstance(region, ByteRegion) or not region.shared:
        text = f"uses '{ptr.name}' as a barrier, which is not in shared memory in all threads"
        t.fault(BarrierError, site.at, int(m.index[0]), text)
    return region, MaskedAccess(t, m, ptr, types.ULLONG, site, 0)


def reach_barrier(t: Team, m: Mask, ptr: Ptr, site: Site) -> BarrierWords:
    """The words of 8 bytes that are a barrier for each lane."""
    region, a = _in_shared(t, m, ptr, site)
    access.tell(t, m, ptr, 8, site)
    return BarrierWords(region, a, region.reached(a)[1])


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
        region, a = _in_shared(t, m, ptr, site)
        access.store_lanes(t, m, ptr, types.ULLONG, np.uint64(0), site)
        region.locate(a)
        region.place(a, True)
        phases_of(t).make(BarrierWords(region, a, a.index), expected)

    return typed_value(c, types.VOID, evaluate, node.at, [bar, count])


def _at_barrier(
    does: Callable[..., Any], result: types.CType, kind: types.Scalar, instructions: int = 2
) -> BuiltinHandler:
    """What lanes do at a barrier: ask by a number, or arrive with up to two, which may be left out."""

    def handle(c: Context, node: CallExpr, used: bool) -> Expr:
        bar, *more = arguments(c, node, *((1, 2, 3) if result is types.ULLONG else (2,)))
        numbers = [convert(c, e, kind, e.at) for e in more]
        site = barrier_site(c, node, bar)
        site.write = result is not types.BOOL  # whoever asks only reads
        c.work(instructions)

        def evaluate(t: Team, m: Mask) -> Any:
            given = [numbers_of(m, e.run(t, m)) for e in numbers]
            out = does(phases_of(t), reach_barrier(t, m, bar.run(t, m), site), *given)
            return None if out is None else m.spread(out)

        parts = [bar, *numbers]
        # Who asks whether a phase is over looks at memory that others change (`compile.waiting`).
        asks = c.note(Exchange(nodes(parts), load=None)) if result is types.BOOL else None
        return typed_value(c, result, evaluate, node.at, parts, node=asks)

    return handle


def _group_copy(c: Context, node: CallExpr, used: bool) -> Expr:
    """`(to, from, bytes, rank, size, barrier)`: the share of one thread of a group in a copy.

    It is of 16, 8 or 4 bytes at once, as addresses and bytes allow. The rest, which no GPU copies
    asynchronously, is loaded and stored. Without a barrier it belongs to the thread's own group.
    """
    to, source, *numbers, bar = arguments(c, node, 6)
    size, rank, count = (convert(c, e, types.LLONG, e.at) for e in numbers)
    sites = copied_between(c, node, to, source)
    plain = c.new_site(node.at), c.new_site(node.at, True)
    by = None if bar.constant is not None else barrier_site(c, node, bar)
    c.work()

    def evaluate(t: Team, m: Mask) -> None:
        copies = copies_of(t)
        target, begin = to.run(t, m), source.run(t, m)
        nbytes, first, step = (np.asarray(e.run(t, m), np.int64) for e in (size, rank, count))
        if by is not None:
            copies.bound = phases_of(t).counting(reach_barrier(t, m, bar.run(t, m), by))
        try:
            low = np.asarray(target.address()) | np.asarray(begin.address()) | nbytes
            rest: Mask | None = m
            for unit in (16, 8, 4, 1):
                lanes = None
                if rest is not None:
                    lanes, rest = split(rest, low % unit == 0)
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


_dropping, _by_parity = partial(Phases.arrive, drop=True), partial(Phases.passed, by_parity=True)
_asked, _asked_by_parity = partial(Phases.passed, once=True), partial(_by_parity, once=True)
PHASE_FUNCTIONS: dict[str, BuiltinHandler] = {
    name: fenced(handler, behind=False)
    for name, handler in {
        "__mbarrier_init": _init,
        # `(barrier, times = 1, bytes to come = 0)`, whose value is the token of the phase.
        "__mbarrier_arrive": _at_barrier(Phases.arrive, types.ULLONG, types.INT),
        "__mbarrier_arrive_and_drop": _at_barrier(_dropping, types.ULLONG, types.INT),
        "__mbarrier_expect_tx": _at_barrier(Phases.expect, types.VOID, types.INT, 1),
        # Whether a phase is over, by its token or its parity; whoever only asks may ask too early.
        "__mbarrier_over": _at_barrier(Phases.passed, types.BOOL, types.ULLONG),
        "__mbarrier_over_parity": _at_barrier(_by_parity, types.BOOL, types.ULLONG),
        "__mbarrier_test_wait": _at_barrier(_asked, types.BOOL, types.ULLONG),
        "__mbarrier_test_wait_parity": _at_barrier(_asked_by_parity, types.BOOL, types.ULLONG),
        "__memcpy_async_share": _group_copy,
    }.items()
}
