"""The words of a race: which two accesses, and what is missing between them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from simgpu.cuda_c.lockstep import Bits, Int64s
from simgpu.cuda_c.memory.messages import COUNTED_COPY
from simgpu.cuda_c.memory.pointers import MaskedAccess
from simgpu.errors import RaceError

if TYPE_CHECKING:
    from simgpu.cuda_c.lockstep.team import Team
    from simgpu.cuda_c.memory.regions import ByteRegion

NARROW = "updates by an atomic for its block"
_UNFENCED = "this thread has no {acquire} between its look at the flag and this access"
_UNPUBLISHED = "that one has no {release} (of the block is enough) between its access and a flag"
_APART = "another thread of its block was told, and no barrier stands between that and this"
_BUT = " but a message, or a barrier of the grid,"
_STEPS = "the data, then {release}, then an atomic flag; the reader: flag, {acquire}, data"


def report_race(
    memory: ByteRegion,
    a: MaskedAccess,
    bad: Bits,
    cells: Int64s,
    other: Int64s,
    when: Any,
    writes: bool,
    did: str,
    by_warp: bool = True,
    atomic: bool = False,
    across: bool = False,
) -> None:
    """Raise `RaceError` for the first of the lanes that are `bad`."""
    k = int(bad.argmax())
    team, lane = a.team, int(a.mask.index[k])
    mine, theirs = int(team.thread_id[lane]), int(other[k])
    # Of the two, a flag needs both.
    flags = atomic or a.site.volatile, did not in ("reads", "writes", NARROW)
    places = ""
    if writes and did == "writes" and not any(flags):
        places = " (each of the two may need a place of its own)"
    text, index, bound = memory.element(a.name, int(cells[k]) * memory.cell, a.size)
    verb, space = "writes" if writes else "reads", "shared" if memory.shared else "global"
    here, more = f"{verb} {text} in {space} memory", {"index": index, "bound": bound}
    if theirs >= COUNTED_COPY:
        here = f"{here}, {_copied(team, lane, theirs)}"
        team.fault(RaceError, a.site.at, lane, here, array=a.name, **more)
    who = f"thread {team.launch.thread_name(theirs & 1023)}"
    if mine == theirs:
        who, did = "other threads", re.sub(r"^(read|write|update)s", r"\1", did)
    if mine >> 10 == theirs >> 10 and not across:
        near = team.thread_id[a.mask.index[bad]] >> 5 == other[bad] >> 5
        # Of several warps that race, the first end the run.
        cure = _cure_in_a_block(team, theirs, by_warp and bool(near.all()))
        if team.lanes is not None and _missing(a, lane, theirs, when[k : k + 1]) == _UNFENCED:
            cure = f"and {_UNFENCED}"
        elif not writes and _unpublished(team, lane, theirs, int(when[k])):
            cure = f"and {_UNPUBLISHED}"
    else:
        block = f"block {team.launch.block_name(theirs >> 10)}"
        who = f"{who} of {'other blocks' if across else block}"
        strong = "volatile" if a.site.volatile or "volatile" in did else "atomic"
        cure = "and an atomic for one block does not reach another: take one of the device"
        if a.site.scope != 1 and did != NARROW:
            told = team.launch.watches or team.launch.messages.active
            why = _missing(a, lane, theirs, when[k : k + 1]) if told and not across else ""
            cure = _cure_of_two_blocks(team, why, flags, strong, text)
    word = "memory_order_{}" if "cuda::" in team.launch.source.text else "__threadfence()"
    cure = cure.format(release=word.format("release"), acquire=word.format("acquire"))
    here = f"{here}, which {who} {did}{places}, {cure}"
    team.fault(RaceError, a.site.at, lane, here, array=a.name, **more)


def _copied(team: Team, lane: int, theirs: int) -> str:
    """What to say of a copy that a barrier with phases counts."""
    copies = team.launch.copies
    assert copies is not None
    barrier = copies.counted[theirs - COUNTED_COPY]
    why = ""
    if barrier.early[team.layout.linear[lane]] == barrier.phase:
        why = ": it asked once, and the answer may be no: ask in a loop until it is yes"
    elif "._full[" in barrier.name:
        why = ": consumer_wait() is for the oldest stage that nobody has released"
    return (
        f"to which an asynchronous copy was made that {barrier.name} counts, and this thread has not waited "
        f"for that phase of it (phase {barrier.phase} is at hand){why}"
    )


def _cure_in_a_block(team: Team, theirs: int, in_a_warp: bool) -> str:
    """What two threads of one block lack."""
    if not in_a_warp:
        return "without a __syncthreads() between them" + _apart(team, theirs)
    if team.launch.threads <= 32:
        return "without a __syncwarp() between them"
    return (
        "without a __syncthreads() between them (these two are in one warp, for which "
        "__syncwarp() is enough, but not for two of different warps)"
    )


def _cure_of_two_blocks(
    team: Team, why: str, flags: tuple[bool, bool], strong: str, text: str
) -> str:
    """What two threads of different blocks lack; `why` is what their fences do not do, if there are any."""
    plain = ""
    if not all(flags) and (any(flags) or not why):
        plain = f"{'only one' if any(flags) else 'neither'} of the two is {strong}: if this counts "
        plain += "or signals, make both atomic. If it is data, "
    cure = f"and {plain}nothing orders two blocks"
    if not why:
        return f"{cure} of one launch: use two launches or a barrier of the grid, or send a message: {_STEPS}"
    cure += f"{_BUT} and {why}: a reader who sees the flag need not see {text}. "
    cure += "Use __syncthreads(), or __syncwarp()" if why == _APART else f"First {_STEPS}"
    if "atomic_thread_fence" in team.launch.source.text and why != _APART:
        cure += " (fence and flag in one thread, unless the fence is memory_order_seq_cst)"
    return cure + " (if this counts or signals, make both atomic)" * (not any(flags))


def _apart(team: Team, theirs: int) -> str:
    """Say so if the other thread waits at a barrier."""
    held = [group.bits for group in team.waiters.groups.values() if group.meets is not None]
    waits = any(bits[team.thread_id == theirs].any() for bits in held)
    return " (that one waits at a barrier to which this one did not come)" * waits


def _unpublished(team: Team, lane: int, theirs: int, when: int) -> bool:
    """Tell whether a thread has fenced since another's access, as for a message, and that one has not."""
    if team.lanes is None or not team.launch.watches:
        return False
    fenced, other = team.lanes.fenced[0], team.thread_id == theirs
    return bool(fenced[lane] > when and (fenced[other] <= when).all())


def _missing(a: MaskedAccess, lane: int, theirs: int, when: Int64s) -> str:
    """Name the edge between what another block did at a time and this lane that is not there."""
    team, messages = a.team, a.team.launch.messages
    block = theirs >> 10
    whole = np.flatnonzero(team.layout.block == team.layout.block[lane])
    other = np.full(len(whole), theirs)
    fence, signal = messages.fences.get(block, 0), messages.signals.get(block, 0)
    if messages.told(team, whole[:1] * 0 + lane, other[:1], when, seen=True)[0]:
        return _UNFENCED
    if messages.told(team, whole, other, when).any():
        return _APART
    if not fence:
        return "the other block has no {release} between that access and a flag"
    if when[0] <= fence and signal < fence:
        return "the other block sets no atomic or volatile flag behind its {release}"
    if when[0] > fence:
        return "the {release} of the other block stands before that access, or no barrier between"
    return "this thread saw no atomic or volatile flag that the other block set behind a {release} after it"
