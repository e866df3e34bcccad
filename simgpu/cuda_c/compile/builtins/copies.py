"""Asynchronous copies to shared memory, as cuda_pipeline.h has them: a copy, a commit, a wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from simgpu.cuda_c import types
from simgpu.cuda_c.compile.builtins.common import BuiltinHandler, arguments, by_team, fenced
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.conversions import convert, typed_value
from simgpu.cuda_c.compile.typed import Expr
from simgpu.cuda_c.lockstep import Mask, Site, Team, split
from simgpu.cuda_c.lockstep.values import select_lanes
from simgpu.cuda_c.memory import access
from simgpu.cuda_c.memory.copies import copies_of
from simgpu.cuda_c.memory.pointers import Ptr
from simgpu.cuda_c.syntax.ast import CallExpr
from simgpu.errors import MisalignedError, OutOfBoundsError

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
        wrong = np.any(zeros) and m.bits & ((zeros < 0) | (zeros > count) | (zeros % 4 != 0))
        if np.any(wrong):
            lane = int(np.argmax(wrong))
            text = (
                f"starts an asynchronous copy that makes {int(t.array(zeros)[lane])} of its bytes 0: the "
                "simulated device takes multiples of 4, up to the size of the copy"
            )
            t.fault(MisalignedError, node.at, lane, text)
        for lanes, nbytes in _by_size(t, m, count, sites[1]):
            copy_unit(t, lanes, target, begin, nbytes, zeros, sites)

    return typed_value(c, types.VOID, evaluate, node.at, args)


_commit: Callable[..., None] = lambda t, m, at: copies_of(t).commit(t, m)
_wait: Callable[..., None] = lambda t, m, at, left: copies_of(t).wait_prior(t, m, left)
COPY_FUNCTIONS: dict[str, BuiltinHandler] = {
    "__pipeline_memcpy_async": fenced(_memcpy_async, behind=False),
    "__pipeline_commit": by_team([], types.VOID, _commit),
    "__pipeline_wait_prior": fenced(by_team([types.INT], types.VOID, _wait)),
}
