"""Bulk copies in one dimension: one thread moves many bytes, and a barrier or a group of its own counts them.

And what inline assembly says of all copies: shared memory by addresses of 32 bits, and the fence between what
threads write and what copies read, which go by ways of their own (PTX ISA, "Proxies").
"""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c import types
from simgpu.cuda_c.compile.builtins import copies
from simgpu.cuda_c.compile.builtins.common import BuiltinHandler, arguments, by_team, fenced
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.conversions import convert, typed_value
from simgpu.cuda_c.compile.typed import Expr
from simgpu.cuda_c.lockstep import Mask, Site, Team, varies
from simgpu.cuda_c.memory import access
from simgpu.cuda_c.memory.copies import BULK_READ, BULK_WRITTEN, copies_of
from simgpu.cuda_c.memory.phases import phases_of
from simgpu.cuda_c.memory.pointers import MaskedAccess, Ptr, Together, one_region, region_of
from simgpu.cuda_c.memory.regions import ByteRegion
from simgpu.cuda_c.syntax.ast import CallExpr
from simgpu.cuda_c.text.source import Position
from simgpu.errors import MisalignedError, OutOfBoundsError, RaceError

_UNIT = 16  # bytes: PTX ISA, "cp.async.bulk"
_WINDOW = 18  # bits of an address in shared memory; the bits above say which variable, from 1 on


def _stretch(
    t: Team, m: Mask, ptr: Ptr, nbytes: NDArray[np.int64], site: Site
) -> tuple[ByteRegion, MaskedAccess]:
    """Find the words from each lane's address on, as an access by as many lanes."""
    region = region_of(t, m, ptr, site)
    if not isinstance(region, ByteRegion):
        text = f"copies in bulk by a pointer, '{ptr.name}', that differs in its array from thread to thread"
        t.fault(OutOfBoundsError, site.at, int(m.index[0]), text)
    whole = m.spread(nbytes) if m.n > 1 else nbytes[0]
    for place in (ptr, ptr.plus(whole - 4, 1)):  # the first and the last word are there
        region.locate(MaskedAccess(t, m, place, types.UINT, site, 4))
    words, start = nbytes // 4, copies.numbers_of(m, ptr.address()).astype(np.int64) // 4
    before = np.asarray(np.cumsum(words), np.int64) - words
    part = np.asarray(np.repeat(start - before, words) + np.arange(int(words.sum())), np.int64)
    a = MaskedAccess(t, Together(np.repeat(m.index, words)), ptr, types.UINT, site, 4, part=part)
    access.tell(t, a.mask, replace(ptr, offset=part, stride=4, base=0), 4, site)
    t.meter.bulk(site, int(nbytes.sum()), region.shared)
    return region, a


def _move(
    t: Team, m: Mask, to: Ptr, source: Ptr, nbytes: Any, sites: tuple[Site, Site], stored: bool
) -> None:
    load, store = sites
    copies.need_space(t, m, to, not stored, store)
    copies.need_space(t, m, source, stored, load)
    for ptr, site in ((source, load), (to, store)):
        wrong = (copies.numbers_of(m, ptr.address()) | nbytes) % _UNIT != 0
        wrong |= nbytes <= 0
        if wrong.any():
            k = int(wrong.argmax())
            text = (
                f"starts a bulk copy of {int(nbytes[k])} bytes with an address in '{ptr.name}': address and "
                f"size have to be multiples of {_UNIT}, and not 0"
            )
            t.fault(MisalignedError, site.at, int(m.index[k]), text, array=ptr.name)
    begin, read = _stretch(t, m, source, nbytes, load)
    end, write = _stretch(t, m, to, nbytes, store)
    under_way = copies_of(t)
    if stored:
        under_way.bound = under_way.own(t, BULK_READ)
        _require_fence(t, begin, replace(read))
    found = begin.read_stretch(read)
    if stored:
        under_way.bound = under_way.own(t, BULK_WRITTEN)
    end.write_stretch(write, found)


def _require_fence(t: Team, region: ByteRegion, a: MaskedAccess) -> None:
    """Refuse to copy what a thread wrote without a fence behind it, by that thread or by this one."""
    region.place(a, False)
    known = region.last_writes(a)
    if known is None:
        return
    writer, when = known
    lanes, fenced = a.mask.index, copies_of(t).fenced(t)
    inside = (writer >= 0) & (writer >> 10 == a.threads >> 10)
    theirs = lanes + inside * ((writer & 1023) - t.layout.linear[lanes])
    bad = inside & (fenced[theirs] < when) & (fenced[lanes] < when)
    if bad.any():
        k = int(bad.argmax())
        who = t.launch.thread_name(int(writer[k]) & 1023)
        text, _, _ = region.element(a.name, int(a.part[k]) * 4, max(4, region.cell))
        text = (
            f"starts a bulk copy from {text}, which thread {who} writes without a fence.proxy.async behind "
            "it: a bulk copy may read what was there before. Fence, then meet at a barrier, then copy"
        )
        t.fault(RaceError, a.site.at, int(lanes[k]), text, array=a.name)


def _bulk(stores: bool, c: Context, node: CallExpr, used: bool) -> Expr:
    """`(to, from, bytes, barrier)` from global to shared memory, or `(to, from, bytes)` if it `stores`."""
    to, source, size, *bar = arguments(c, node, 3 if stores else 4)
    size, sites = convert(c, size, types.LLONG, size.at), copies.copied_between(c, node, to, source)
    by = None if stores else copies.barrier_site(c, node, bar[0])
    c.work(2)

    def evaluate(t: Team, m: Mask) -> None:
        nbytes = copies.numbers_of(m, size.run(t, m)).astype(np.int64)
        target, begin, under_way = to.run(t, m), source.run(t, m), copies_of(t)
        counter: Any = bar[0].run(t, m) if bar else None
        if by is not None:
            under_way.bound = phases_of(t).counting(copies.reach_barrier(t, m, counter, by))
        try:
            _move(t, m, target, begin, nbytes, sites, stores)
        finally:
            under_way.bound = None
        if by is not None:
            phases_of(t).expect(copies.reach_barrier(t, m, counter, by), -nbytes)

    return typed_value(c, types.VOID, evaluate, node.at, [to, source, size, *bar])


def _bulk_commit(t: Team, m: Mask, at: Position) -> None:
    for kind in (BULK_READ, BULK_WRITTEN):
        copies_of(t).commit(t, m, kind)


def _bulk_wait(t: Team, m: Mask, at: Position, left: Any, read: Any) -> None:
    """Wait until so many groups are under way at most, or if `read`, have yet to be read."""
    for kind in (BULK_READ,) if read else (BULK_READ, BULK_WRITTEN):
        copies_of(t).wait_prior(t, m, left, kind)


def _proxy_fence(t: Team, m: Mask, at: Position) -> None:
    t.clock += 1
    copies_of(t).fenced(t)[m.index] = t.clock


def _to_shared(c: Context, node: CallExpr, used: bool) -> Expr:
    """`__cvta_generic_to_shared`: a number of the window in which a block sees its shared memory."""
    (ptr,) = arguments(c, node, 1)
    if not isinstance(ptr.type, types.Pointer):
        c.fail(ptr.at, f"{node.name}() needs an address, not a '{types.spelled(ptr.type)}'")
    c.work()

    def evaluate(t: Team, m: Mask) -> Any:
        where = ptr.run(t, m)
        known, out = [*t.shared.values()], np.zeros(t.layout.lanes, np.uint64)
        for bits, region, name in where.choices(m):
            if region not in known:
                text = f"takes '{name}' for shared memory, which it is not"
                t.fault(OutOfBoundsError, node.at, int((bits & m.bits).argmax()), text, array=name)
            number = np.asarray(where.address()) + (known.index(region) + 1 << _WINDOW)
            out = np.where(bits, number.astype(np.uint64), out)
        return out if varies(where.address()) or where.mixed else out[int(m.index[0])]

    return typed_value(c, types.ULLONG, evaluate, node.at, [ptr], origin=ptr.origin)


def _at(target: types.CType, step: int, c: Context, node: CallExpr, used: bool) -> Expr:
    """The pointer that a number of that window is."""
    (number,) = arguments(c, node, 1)
    where = convert(c, number, types.UINT, number.at)

    def evaluate(t: Team, m: Mask) -> Any:
        value = t.array(where.run(t, m)).astype(np.int64)
        known, choices = list[Any](t.shared.values()), list[Any]()
        which = (value >> _WINDOW) - 1
        for k in np.unique(which[m.index]).tolist():
            here = m.bits & (which == k)
            if not 0 <= k < len(known):
                text = "takes a number for a shared address that __cvta_generic_to_shared() did not give"
                t.fault(OutOfBoundsError, node.at, int(here.argmax()), text)
            choices.append((here, known[k], next(iter(known[k].types))))
        offset: Any = (value & (1 << _WINDOW) - 1) // step
        return Ptr(one_region(choices), offset, step, 0, choices[0][2])

    out = typed_value(c, types.Pointer(target), evaluate, node.at, [number])
    out.origin.note("near", "written")
    return out


BULK_FUNCTIONS: dict[str, BuiltinHandler] = {
    "__bulk_copy": fenced(partial(_bulk, False), behind=False),
    "__bulk_store": fenced(partial(_bulk, True), behind=False),
    "__bulk_commit": by_team([], types.VOID, _bulk_commit),
    "__bulk_wait": fenced(by_team([types.INT, types.BOOL], types.VOID, _bulk_wait)),
    "__proxy_fence": fenced(by_team([], types.VOID, _proxy_fence), behind=False),
    "__cvta_generic_to_shared": _to_shared,
    "__shared_byte_at": partial(_at, types.UCHAR, 1),
    "__shared_word_at": partial(_at, types.ULLONG, 8),
}
