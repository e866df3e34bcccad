"""Threads that wait for others: how a team lets some of its threads rest while others go on.

All threads of a batch run in lockstep: a statement is one operation of NumPy, with a mask. That can't run a
kernel whose threads wait for each other. If lane 0 spins on a flag that lane 1 sets behind the loop, the
loop never ends. A thread of Python's for each of the GPU's, or a generator for each, would do it, and be
far slower for all other kernels, because a call of NumPy costs as much for 32 threads as for thousands.

But all that a thread knows is in the slots of its team and in memory, and where it is, is a place in the
source: a number that the compiler gave to a statement, or to the test of a loop. So threads that have to
wait are set aside with their place (`Waiters.park`), and the rest goes on as if they had left. Later the
kernel is entered again for them alone. Each statement between the top and their place only passes them on
(`Team.resume`). That gives them what Volta's hardware has, independent progress.

Two things make threads wait. They meet others, at a barrier or in a function of a warp, and not all have
come. Or they spin: a turn of a loop has changed no variable of theirs and no memory, so the next turn would
be the same one, and whatever they wait for must come from somebody else. They look again when memory has
changed, by other threads, by other kernels or by the host (`run.execution`), and when others wait to meet
them, because the loop may come to where these are. If nobody is left who could change it, that is a
deadlock, which we can say at once, unless they count their turns in order to give up. Then their counter
leaps to its end.

Nothing is polled. But threads that run on in a loop let others who may go on have a turn once a microsecond
(`Team.take_turns`), because on a GPU all of them run side by side, and share what a queue holds. A
statement that is left by `Apart` runs again as a whole, so it must not have had any effect by then.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.lockstep.masks import Bits, Mask, ThreadLayout
from simgpu.cuda_c.text.source import Position

ENDLESS, NOWHERE = -1, -2  # instead of a place: nobody waits in this kernel, or not here


@dataclass(eq=False)
class Apart(Exception):
    """Raised within a statement that has had no effect yet: these lanes wait at it for others.

    They meet all of their block or grid; or some of their warp, in a function `what` (`Meeting`). Others of
    the block may be at another barrier of the source, unless it gathers something from all (`alone`).
    """

    bits: Bits
    by: Literal["warp", "block", "grid"]
    alone: bool = False
    what: str = ""


class Meeting:
    """Lanes of a warp that call one function, wherever each of them calls it.

    Since Volta it doesn't matter where (PTX ISA, "shfl.sync", asks for the same instruction and mask). What a
    lane has brought, `given`, is kept until all have gone on, and is computed only once.
    """

    def __init__(self, layout: ThreadLayout) -> None:
        self.layout, self.given = layout, None
        self.names = np.zeros(layout.lanes, np.uint32)
        self.bits, self.done = np.zeros((2, layout.lanes), np.bool_)  # who has come, and gone on

    def join(self, bits: Bits, names: NDArray[np.uint32]) -> None:
        """Lanes come, each with a mask of those whom it will meet."""
        self.bits = self.bits | bits
        self.names = np.where(bits, names, self.names)

    def open_to(self, names: np.uint32) -> Bits:
        """The lanes that may join with a mask, if none in their warp differs and overlaps."""
        unlike = self.bits & (self.names != names) & (self.names & names != 0)
        return ~self.bits & (self.layout.words(unlike)[self.layout.warp] == 0)

    def near(self, names: np.uint32) -> Bits:
        """The lanes of whose warp some have come with this mask."""
        return self.layout.words(self.bits & (self.names == names))[self.layout.warp] != 0

    @property
    def here(self) -> Bits:
        """The lanes that have come, and have not gone on."""
        return self.bits & ~self.done

    def short(self, left: Bits) -> NDArray[np.uint32]:
        """For each lane, whom it names in vain, but for those who have `left` the kernel."""
        absent = self.layout.words(~(self.bits | left))[self.layout.warp]
        return np.where(self.here, self.names & absent, np.uint32(0))

    def leave(self, bits: Bits) -> None:
        """Lanes go on; those of a warp of which all have gone on may meet anew."""
        self.done = self.done | bits
        left = self.layout.words(self.here)[self.layout.warp] != 0
        self.bits, self.done = self.bits & left, self.done & left


@dataclass
class WaitingLanes:
    """Lanes that wait at one place: to meet others, or (`meets` None) for memory to change."""

    place: int
    bits: Bits
    at: Position
    meets: Apart | None
    seen: int  # `Launch.changes` when they last looked
    patient: bool = False  # whether they count how long they have waited, and will give up
    turn: int = 0  # if they wait for nothing, and let others have a turn: the number of theirs

    @property
    def key(self) -> tuple[int, bool]:
        """What tells their group from others: at the test of a loop, some may look in vain and some meet."""
        return self.place, self.meets is not None


class Waiters:
    """Those of a team who wait."""

    def __init__(self, layout: ThreadLayout) -> None:
        self.layout = layout
        # By place, and whether they wait there to meet others.
        self.groups: dict[tuple[int, bool], WaitingLanes] = {}
        self.bits: Bits = np.zeros(layout.lanes, np.bool_)
        # `met` and `passed`: lanes that may pass their barrier, since the rest of their block has come to
        # another one; and those of them for whom it has been noted that they met.
        self.met: Bits = np.zeros(layout.lanes, np.bool_)
        self.passed: Bits = np.zeros(layout.lanes, np.bool_)
        self.count = 0  # how often lanes have been set aside
        self.ended: Bits = np.zeros(layout.lanes, np.bool_)  # lanes that came to the kernel's end
        self.meetings: dict[str, list[Meeting]] = {}  # of lanes of warps, by function

    def park(self, new: WaitingLanes) -> None:
        """Set lanes aside."""
        self.count += 1
        self.bits = self.bits | new.bits
        if new.meets is not None:
            self._call(new.bits)
        group = self.groups.setdefault(new.key, new)
        if group is new:
            return
        group.bits, group.meets = group.bits | new.bits, new.meets
        group.seen, group.turn = min(group.seen, new.seen), group.turn or new.turn

    def _call(self, bits: Bits) -> None:
        """Have those of a block who look in vain go on to where these lanes wait, if they come to it."""
        blocks = self.layout.block[bits]
        for group in self.groups.values():
            if group.meets is None and np.isin(self.layout.block[group.bits], blocks).any():
                group.seen = -1

    def left(self, exited: Mask | None) -> Bits:
        """Those who have left the kernel by a `return`, rather than at its end, where they are missed."""
        return self.ended & False if exited is None else exited.bits & ~self.ended

    def without(self, mask: Mask | None) -> Mask | None:
        """Those of `mask` who have not been set aside."""
        if mask is None or not (mask.bits & self.bits).any():
            return mask
        return some_lanes(self.layout, mask.bits & ~self.bits)

    def take(self, group: WaitingLanes, bits: Bits) -> Mask:
        """Lanes of a group go on."""
        self.bits = self.bits & ~bits
        group.bits = group.bits & ~bits
        if not group.bits.any():
            del self.groups[group.key]
        return Mask(self.layout, bits, int(np.count_nonzero(bits)))

    def ready(self, changes: int, exited: Mask | None) -> tuple[WaitingLanes, Bits] | None:
        """The lanes that may go on, of the group furthest behind, without those of `exited`."""
        # Those that let others have a turn come last.
        for group in sorted(self.groups.values(), key=lambda group: (group.turn, group.place)):
            if group.meets is None:
                if group.turn or changes > group.seen:
                    return group, group.bits
            else:
                bits = group.bits & self.met
                if not bits.any():
                    bits = self._complete(group, group.meets, exited)
                if bits.any():
                    return group, bits
        return None

    def curious(self, changes: int) -> bool:
        """Tell whether some wait for memory to change, and have not looked since it has."""
        waits = (g for g in self.groups.values() if g.meets is None and not g.turn)
        return any(changes > group.seen for group in waits)

    def _complete(self, group: WaitingLanes, meets: Apart, exited: Mask | None) -> Bits:
        layout = self.layout
        here = group.bits if exited is None else group.bits | exited.bits
        if meets.by == "grid":  # see `run.execution`
            return np.zeros_like(here)
        if meets.by == "block":
            here = here & ~self.met
            if not meets.alone:
                here = here | self._elsewhere(group)
            full: Bits = np.asarray(here.reshape(layout.blocks, layout.threads).all(axis=1))
            if not meets.alone:
                self._meet(full)
            return group.bits & full[layout.block]
        known = self.meetings[meets.what]
        left = self.left(exited)
        able = np.logical_or.reduce([one.here & (one.short(left) == 0) for one in known])
        return group.bits & able

    def _at_barriers(self) -> list[Bits]:
        """The lanes that wait at barriers of a block and have not met the others yet, place by place."""
        meetings = [(g.bits, g.meets) for g in self.groups.values() if g.meets is not None]
        return [b & ~self.met for b, meets in meetings if meets.by == "block" and not meets.alone]

    def _elsewhere(self, group: WaitingLanes) -> Bits:
        """Those at other barriers than a group; not of its warps, because a warp comes to one barrier."""
        layout = self.layout
        warps = np.zeros(int(layout.warp.max()) + 1, np.bool_)
        warps[layout.warp[group.bits]] = True
        others = np.logical_or.reduce(self._at_barriers()) & ~group.bits
        return others & ~warps[layout.warp]

    def _meet(self, full: Bits) -> None:
        """Let blocks pass whose threads have come to several barriers."""
        at = [bits & full[self.layout.block] for bits in self._at_barriers()]
        several = np.zeros(self.layout.blocks, np.int64)
        for bits in at:
            several[np.unique(self.layout.block[bits])] += 1
        self.met |= np.logical_or.reduce(at) & (several > 1)[self.layout.block]


def some_lanes(layout: ThreadLayout, bits: Bits) -> Mask | None:
    """A set of lanes, or None."""
    n = int(np.count_nonzero(bits))
    return Mask(layout, bits, n) if n else None


def in_whole_blocks(mask: Mask, same: Bits) -> Bits:
    """The lanes of `same` whose whole block is in it, since others may learn by a vote or a shuffle."""
    block = mask.layout.block
    moved = np.zeros(mask.layout.blocks, np.bool_)
    moved[block[mask.bits & ~same]] = True
    return same & ~moved[block]


def unchanged(mask: Mask, before: Sequence[Any], after: Sequence[Any]) -> Bits:
    """The lanes of `mask` for which values are what they were; lists are of a struct's leaves."""
    same = mask.bits
    for old, new in zip(before, after, strict=True):
        if old is new:
            continue
        if isinstance(new, list):
            same = same & unchanged(mask, old, cast("list[Any]", new))
        elif not isinstance(new, np.ndarray | np.generic):  # a pointer that has moved
            return np.zeros_like(same)
        else:
            same = same & (old == new)
        if not same.any():
            break
    return same
