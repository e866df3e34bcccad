"""A launch under way: its blocks, batch after batch, and those again who had to wait for others."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.compile.kernels import Code
from simgpu.cuda_c.cost.counts import Counts
from simgpu.cuda_c.cost.tally import Tally
from simgpu.cuda_c.lockstep import Int64s, Mask, Team, join
from simgpu.cuda_c.lockstep.team import LaunchState
from simgpu.cuda_c.lockstep.waiting_threads import WaitingLanes
from simgpu.cuda_c.memory.allocation import GlobalMemory
from simgpu.cuda_c.memory.global_region import GlobalRegion
from simgpu.cuda_c.text.source import text_of
from simgpu.errors import DeadlockError

_LOCAL_ROOM = 1 << 29  # bytes of local memory that are there at once, if a single block takes less


@dataclass(frozen=True)
class LaunchResult:
    """The outcome of a launch, apart from what it wrote."""

    counts: Counts  # what it did
    printed: str  # what it printed, in the order of its threads
    # For each argument that is memory, the bytes that it touched there, as bits, if that was noted.
    touched: Sequence[NDArray[np.uint8]] = ()


@dataclass(eq=False)
class Execution:
    """A launch under way: it runs on until it has ended, or waits for somebody else to write to memory.

    As many of its blocks are under way as fit on the device.
    """

    launch: LaunchState
    _code: Code
    tally: Tally
    regions: Mapping[int, GlobalRegion]  # by the `id` of their memories
    _facts: dict[str, int]
    _values: Mapping[int, Any]  # what the slots of the parameters hold
    _wanted: Int64s | range  # numbers of the blocks, in the order in which they begin
    _first: int = 0  # of those that have not begun
    _spent: float = 0.0  # seconds of interpreting

    def go_on(self, *, last: bool = False, host: bool = False) -> bool:
        """Run on, since others (`host`: only the host) wrote, or with `last` never will; True if it ended.

        If not, its threads look at memory in vain until somebody else writes to it. Raises `DeadlockError`,
        `BarrierError` or another `KernelFault`.
        """
        launch = self.launch
        for region in launch.talk if host else ():
            region.answered()
        launch.since = time.monotonic() - self._spent
        try:
            with np.errstate(all="ignore"):
                if last:
                    self._hurry()
                else:
                    launch.changes += 1
                    launch.naps = False
                return self._run()
        except KeyboardInterrupt as interrupt:
            interrupt.add_note(launch.progress())
            raise
        finally:
            self._spent = time.monotonic() - launch.since
            for region in launch.talk:
                region.held = region.data.copy()

    def finish(self) -> LaunchResult:
        """Run to the end, with nobody else there; what it wrote until a `KernelFault` stays written."""
        last = False
        while not self.go_on(last=last):
            last = True
        return self.result()

    def result(self, by_line: bool = True) -> LaunchResult:
        """The outcome so far; with `by_line`, also for each line of the source."""
        loaded = stored = 0
        for region in self.regions.values():
            if not region.memory.fully_initialised:
                region.memory.settle()
            ours = region.needed()
            loaded, stored = loaded + ours[0], stored + ours[1]
        printed = text_of("".join(self.launch.printed)) if self.launch.printed else ""
        if self.launch.dropped_lines:
            printed += f"... and {self.launch.dropped_lines} more calls of printf\n"
        return LaunchResult(self.tally.counts(self._facts, (loaded, stored), by_line), printed)

    def touched(self, memory: GlobalMemory) -> NDArray[np.uint8]:
        """The bytes of a memory that were loaded or stored so far, as bits."""
        return np.packbits(self.regions[id(memory)].touched())

    def _hurry(self) -> None:
        """Nobody else will ever write: have threads that count how long they wait leap, and give up.

        Where one loop counts the ends of another, they leap again and again.
        """
        launch, begun = self.launch, self.launch.leapt
        changes, most = launch.changes, launch.limits.leap
        while launch.changes == changes and (most is None or launch.leapt < most):
            patient = [(team, group) for team, group in self._spinning() if group.patient]
            if not patient:
                break
            team, group = patient[0]
            team.resume, team.hurried = group.place, True
            self._enter(team, team.waiters.take(group, group.bits))
        if launch.leapt == begun:
            self.stuck()

    def _run(self) -> bool:
        launch = self.launch
        most = min(launch.limits.batch_lanes, _LOCAL_ROOM // max(1, self._code.local_bytes))
        most = max(1, most // launch.threads) if launch.hostile is None else 1
        self._go_on()
        while (count := min(most, self._free())) > 0:
            self._first += count
            self._begin(np.asarray(self._wanted[self._first - count : self._first]))
            self._go_on()
        if launch.teams and not self._spinning():
            self.stuck()
        return not launch.teams

    def _groups(self) -> list[tuple[Team, WaitingLanes]]:
        return [(team, g) for team in self.launch.teams for g in team.waiters.groups.values()]

    def _spinning(self) -> list[tuple[Team, WaitingLanes]]:
        return [(team, g) for team, g in self._groups() if g.meets is None]

    def _free(self) -> int:
        left, resident = len(self._wanted) - self._first, self.launch.limits.resident_blocks
        if not left or resident is None or not self._code.watches:
            return left
        return min(left, resident - sum(_alive(team) for team in self.launch.teams))

    def _begin(self, numbers: Int64s) -> None:
        team = Team(self.launch, numbers, self._code.slots, self._code.exits)
        if self.launch.begun:
            self.launch.look()  # many blocks that do little take long, too
        self.launch.begun += len(numbers)
        self.tally.begin_batch(team.layout)
        for slot, value in self._values.items():
            team.slots[slot] = value
            team.born[slot] = team.full
        for step in self._code.entry:
            step(team, team.full)
        self.launch.teams.append(team)
        self._enter(team, team.full)

    def _enter(self, team: Team, mask: Mask, woken: bool = False) -> None:
        """Run lanes of a team until they end or wait."""
        self.tally.enter(team.layout, mask if woken else None)
        self.launch.more = self._code.watches and self._free() > 0
        team.clock = team.charged = self.launch.clock  # what others did is not its work
        team.since = self.tally.progress() if self._code.watches else 0
        through = self._code.body(team, mask)
        team.exited = join(through, team.exited)
        if team.apart and through is not None:
            team.waiters.ended |= through.bits
        self.launch.clock = team.clock
        if not team.apart or not team.waiters.groups:
            if self.launch.copies is not None:
                self.launch.copies.end(team)
            self.tally.end_batch(team.layout)
            self.launch.teams.remove(team)
            team.end()

    def _go_on(self) -> None:
        """Run whoever need not wait any more, until there is none."""
        hostile = self.launch.hostile
        if hostile is not None and self._free() > 0 and hostile.random.random() < 0.5:
            return  # others begin first
        while True:
            if hostile is not None:
                hostile.random.shuffle(self.launch.teams)
            for team in self.launch.teams:
                found = team.waiters.ready(self.launch.changes, team.exited)
                if found is not None:
                    break
            else:
                if not self.launch.teams or not self._meet():
                    return
                continue
            group, bits = found
            if group.turn and self._code.watches and self._free() > 0:
                return  # others begin first
            team.resume = group.place
            woken = group.meets is None and not group.turn
            self._enter(team, team.waiters.take(group, bits), woken)

    def _meet(self) -> bool:
        """Let all blocks pass the barrier of the grid, if all have come."""
        launch, teams = self.launch, [*self.launch.teams]
        x, y, z = launch.grid
        waiting = [team.waiters.groups for team in teams]
        here = [next(iter(groups.values())) for groups in waiting if len(groups) == 1]
        places = {group.place for group in here if group.meets and group.meets.by == "grid"}
        blocks = sum(_alive(team) for team in teams)
        if len(here) < len(waiting) or len(places) != 1 or blocks < x * y * z:
            return False
        launch.clock += 1
        launch.messages.meet(teams, launch.clock)
        if launch.hostile is not None:
            launch.hostile.forget()
        for team, group in zip(teams, here, strict=True):
            team.block_time = team.warp_time = launch.clock
            team.resume, team.grid_met = group.place, True
            self._enter(team, team.waiters.take(group, group.bits))
        return True

    def stuck(self) -> NoReturn:
        """Report that nobody can go on."""
        left = len(self._wanted) - self._first
        groups, spinning = self._groups(), self._spinning()
        grid = [(team, g) for team, g in groups if g.meets is not None and g.meets.by == "grid"]
        if grid and not spinning:
            team, group = grid[0]
            text = "waits forever at this barrier of the grid: not all threads of all blocks come to it"
            team.fault(DeadlockError, group.at, int(group.bits.argmax()), text)
        if not spinning:
            team, group = groups[0]
            team.resume, team.forced = group.place, True
            self._enter(team, team.waiters.take(group, group.bits))
            raise AssertionError("threads that were waited for have come")
        team, group = spinning[0]
        more = int(sum(np.count_nonzero(g.bits) for _, g in groups)) - 1
        others = f" (and {more} more threads wait)" if more else ""
        why = "whatever could change it, be it a thread or the host, has ended or waits itself"
        lane = int(group.bits.argmax())
        lacking = None if team.phases is None else team.phases.lacking(lane)
        if lacking is not None:
            team.fault(DeadlockError, group.at, lane, f"waits for ever{others}: {lacking}")
        if left:
            resident = self.launch.limits.resident_blocks
            others_begin = "other one begins" if left == 1 else f"{left} others begin"
            why = (
                f"{resident} blocks fit on the device at once, all of them wait, and the {others_begin} "
                "only when one of these ends. Launch no more blocks than fit, or let a block wait only "
                "for blocks that began before it, by numbers from an atomic counter"
            )
        text = f"waits forever in this loop for memory to change{others}: {why}"
        team.fault(DeadlockError, group.at, int(group.bits.argmax()), text)


def _alive(team: Team) -> int:
    """Blocks of a team that have not ended."""
    layout = team.layout
    if team.exited is None:
        return layout.blocks
    ended = team.exited.bits.reshape(layout.blocks, layout.threads).all(axis=1)
    return layout.blocks - int(np.count_nonzero(ended))
