"""Loads of the turns to come: what makes few threads fast, beside `summing_loops` and `kept_addresses`.

A loop over tiles loads in each turn what lies one step further in global memory. Where nothing in the kernel
writes to that memory, a load does not care when it is done. So the first turn computes the addresses of many
turns at once, with the counter as an array that has a row for each, checks them, and loads. The turns take
their rows; what a load counts is counted when its turn comes, by the lanes that are there. Where this cannot
be done, or would fail, each turn loads for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from simgpu.cuda_c.compile import summing_loops
from simgpu.cuda_c.compile.counted_loops import LEAST, Counter
from simgpu.cuda_c.compile.kept_addresses import Address, same, variables_of
from simgpu.cuda_c.compile.typed import Evaluate, MemoryPlace
from simgpu.cuda_c.lockstep.masks import Mask
from simgpu.cuda_c.lockstep.meter import Site
from simgpu.cuda_c.lockstep.team import Team
from simgpu.cuda_c.lockstep.values import varies
from simgpu.cuda_c.memory.global_region import GlobalRegion
from simgpu.cuda_c.types import CType, Scalar
from simgpu.errors import KernelFault

if TYPE_CHECKING:
    from simgpu.cuda_c.compile.context import Context


@dataclass(slots=True)
class Coming:
    """The turns of a loop from one of them on."""

    numbers: list[int]  # of the counter, in each
    rows: Any  # the same as an array with a row for each; None if they are too few
    turn: int  # the one at hand, and its counter
    now: Any


@dataclass(slots=True)
class Ahead:
    """What an access loads in these turns, for the lanes of a mask and such values of other variables."""

    coming: Coming
    mask: Mask
    values: tuple[Any, ...]
    region: GlobalRegion | None  # None if each turn has to load for itself
    shift: int = 0
    parts: Sequence[Any] = ()
    loaded: Sequence[Any] = ()


def looking_ahead(counter: Counter) -> Callable[[Team, Mask], None]:
    """What is done at the beginning of each turn of a loop in which something may be loaded ahead."""
    slot = counter.slot

    def turn(t: Team, m: Mask) -> None:
        coming: Coming | None = t.coming.get(slot)
        now = t.slots[slot]
        if coming is not None:
            following = coming.turn + 1
            numbers = coming.numbers
            if following < len(numbers) and not varies(now) and numbers[following] == now:
                coming.turn, coming.now = following, now
                return
            del t.coming[slot]
        most = summing_loops.LANES // t.layout.lanes
        watched = t.launch.watches or t.launch.limits.watcher is not None
        if not t.few or most < LEAST or watched or t.turns or varies(now):
            return
        turns = counter.turns(t, m, most)
        if turns is not None and turns.rows.shape[1] == 1:
            rows = turns.rows if turns.number >= LEAST else None
            t.coming[slot] = Coming(turns.rows[:, 0].tolist(), rows, 0, now)

    return turn


def loading_ahead(
    c: Context, run: Evaluate, pointer: Address, place: MemoryPlace, ctype: CType, site: Site
) -> Evaluate:
    """A load whose value may be at hand, if its address depends on registers and the counter of a loop."""
    variables = variables_of(place.node) or set()
    slots = [v.slot for v in variables]
    counters = [slot for slot in c.counters if slot in slots]
    plain = isinstance(ctype, Scalar) and not place.volatile and not c.may_wait
    if place.origin.near or not plain or not counters or any(v.unset for v in variables):
        return run
    assert isinstance(ctype, Scalar)
    scalar, counter = ctype, counters[-1]  # of the innermost loop
    c.counters[counter] = True
    others = [slot for slot in slots if slot != counter] or [counter]
    pick = itemgetter(*others, others[0])

    def load(t: Team, m: Mask) -> Any:
        coming: Coming | None = t.coming.get(counter)
        if coming is None or coming.rows is None or t.turns or coming.now is not t.slots[counter]:
            return run(t, m)
        known: Ahead | None = t.kept.get(load)
        if (
            known is None
            or known.coming is not coming
            or known.mask is not m
            or not same(pick(t.slots), known.values)
        ):
            known = t.kept[load] = look(t, m, coming)
        if known.region is None:
            return run(t, m)
        turn = coming.turn
        known.region.read_ahead(t, m, known.shift, known.parts[turn], scalar.size, site)
        return known.loaded[turn]

    def look(t: Team, m: Mask, coming: Coming) -> Ahead:
        values = pick(t.slots)
        now, t.slots[counter], t.turns = t.slots[counter], coming.rows, len(coming.numbers)
        try:
            ptr = pointer(t, m)
        except KernelFault:
            return Ahead(coming, m, values, None)
        finally:
            t.slots[counter], t.turns = now, 0
        region = ptr.region
        found = region.look_ahead(m, ptr, scalar) if isinstance(region, GlobalRegion) else None
        if found is None or not isinstance(region, GlobalRegion):
            return Ahead(coming, m, values, None)
        return Ahead(coming, m, values, region, *found)

    return load
