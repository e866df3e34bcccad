"""The state of one batch of blocks while it runs in lockstep."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.lockstep import waiting_threads
from simgpu.cuda_c.lockstep.masks import Bits, Int64s, Mask, ThreadLayout, by_lane, varies
from simgpu.cuda_c.text.source import Position, Source, shortened
from simgpu.errors import FaultSite, KernelFault, RunawayKernelError
from simgpu.interrupts import Held, end_if_told

if TYPE_CHECKING:
    from simgpu.cuda_c.cost.tally import Tally
    from simgpu.cuda_c.memory.addresses import Addresses
    from simgpu.cuda_c.memory.copies import Copies
    from simgpu.cuda_c.memory.messages import Lanes, Messages
    from simgpu.cuda_c.memory.phases import Phases
    from simgpu.cuda_c.memory.shared_region import SharedRegion

Extent3 = tuple[int, int, int]
TURN = 2000  # clocks, about 1 us, which is also what a look at memory takes
# What is said of a loop that waits in vain, where its threads cannot be set aside.
_STUCK = {
    waiting_threads.ENDLESS: (
        "does not end: a turn of this loop changes nothing that the loop looks at, so all turns are "
        "the same. If it waits for another thread, what it looks at must be volatile, or be read "
        "with an atomic, because a compiler may load anything else only once"
    ),
    waiting_threads.NOWHERE: (
        "waits here for another thread, in a function that is called within a larger expression, "
        "where the simulated device cannot let others go on: give its result to a variable first"
    ),
}


@dataclass
class Site:
    """One load or store in the source: where messages point, and under what number it is counted.

    Two `volatile` accesses do not race, since threads signal each other by them; and `relaxed` reads are not
    checked, because they are in a compare-and-swap loop. A read `polls` if it is in a loop that waits by
    it. What is `packed` is moved byte by byte. The `scope` of an atomic is 1 for its block alone, or 2 for
    the device; it `waits` if its result is needed. The two of a copy that goes on by itself are `apart` from
    their thread.
    """

    index: int
    at: Position
    write: bool = False
    volatile: bool = False
    packed: bool = False
    relaxed: bool = False
    polls: bool = False
    scope: int = 0
    waits: bool = False
    apart: bool = False


@dataclass(frozen=True)
class InterpreterLimits:
    """How far a launch may go, and what is checked."""

    # Loop iterations that one batch of blocks, all its threads in lockstep, may take together.
    step_budget: int = 500_000
    # Turns by which threads that count how long they wait leap where nobody will come, in all, until the host
    # writes. By default they leap until they give up.
    leap: int | None = None
    # Threads that run side by side. Affects speed and memory, and no result of a correct kernel.
    batch_lanes: int = 32768
    printed_lines: int = 10_000  # calls of printf that are kept; the ones beyond are counted only
    # Blocks that fit on the device at once; matters where blocks wait for each other.
    resident_blocks: int | None = None
    # Of memory that is as late as CUDA allows (`memory.hostile`). Blocks then begin one by one.
    hostile: int | None = None
    patience: float = 10.0  # seconds until a line on stderr says that this takes long
    # Told of each access to global or shared memory before it is made, so also of one that fails: team,
    # mask, pointer, bytes, and where in the source it is.
    watcher: Callable[[Team, Mask, Any, int, Site], None] | None = None
    meter: Callable[[Any, list[Site]], Tally] | None = None  # made instead of a `Tally`


@dataclass
class LaunchState:
    """The state that all batches of a launch share."""

    kernel: str
    source: Source
    grid: Extent3
    block: Extent3
    limits: InterpreterLimits
    meter: Tally
    dynamic_shared: int
    # Made when somebody asks for them: see `addresses` and `messages`.
    made_addresses: Callable[[], Addresses]
    made_messages: Callable[[], Messages]
    named: list[tuple[Any, str, Any]] = field(default_factory=list[tuple[Any, str, Any]])
    printed: list[str] = field(default_factory=list[str])
    letters: int = 0  # in what was printed
    dropped_lines: int = 0
    leapt: int = 0  # turns, see `InterpreterLimits`
    clock: int = 1
    # Counts what changes memory, in kernels whose loops may spin (`watches`).
    changes: int = 0
    watches: bool = False
    # In such kernels: how often a clock was read, how many clocks it waited for the host until now, and
    # whether threads sleep until a clock has gone on.
    clock_reads: int = 0
    waited: int = 0
    naps: bool = False
    # Told of each write to memory that the host sees, before it is made: by which clock.
    writes: Callable[[int, bool], None] | None = None
    hostile: Any = None  # the memory, if it is a hostile one (`memory.hostile`)
    copies: Copies | None = None  # those that go on by themselves, once there is one
    talk: list[Any] = field(default_factory=list[Any])  # memories by which it talks with the host
    begun: int = 0  # blocks
    more: bool = False  # whether others may begin
    teams: list[Team] = field(default_factory=list["Team"])  # that have begun, and have not ended
    since: float = field(default_factory=time.monotonic)
    literals: dict[str, Any] = field(default_factory=dict[str, Any])  # pointers to them, by text
    at: Position | None = None  # the loop whose turn was counted last
    told: bool = False

    @cached_property
    def addresses(self) -> Addresses:
        """Pointers as numbers; those that the kernel was given have a place from the beginning."""
        made = self.made_addresses()
        for region, name, memory in self.named:
            made.place(region, name, memory)
        return made

    @cached_property
    def turns(self) -> np.random.Generator | None:
        """What draws in hostile memory who comes first where lanes exchange."""
        seed = self.limits.hostile
        return None if seed is None else np.random.default_rng(seed)

    @cached_property
    def messages(self) -> Messages:
        """The knowledge that threads have of each other (`memory.messages`)."""
        return self.made_messages()

    @property
    def known(self) -> tuple[int, int]:
        """How often memory has changed, and a clock was read."""
        return self.changes, self.clock_reads

    def progress(self) -> str:
        """How far it is, in words. A loop is quoted: its number counts lines of headers, too."""
        x, y, z = self.grid
        loop = f", and it is in `{self.source.quoted(self.at.line)}`" if self.at else ""
        return (
            f"The simulated GPU has been at kernel '{self.kernel}' for {time.monotonic() - self.since:.1f} "
            f"s of your time: {self.begun} of {x * y * z} blocks have begun{loop}"
        )

    def changed(self, mask: Mask) -> None:
        """Note that lanes have changed memory."""
        self.changes += 1
        if self.watches:
            self.meter.changed(mask)

    def look(self) -> None:
        """Say once that this takes long, if it does."""
        if Held.ending:
            end_if_told()
        if not self.told and time.monotonic() - self.since > self.limits.patience:
            self.told = True
            sys.stderr.write(f"{self.progress()}. Wait, or interrupt it (Ctrl-C, or Stop).\n")

    @cached_property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    def thread_name(self, number: int) -> Extent3:
        """`threadIdx` of the thread of that number in its block."""
        return place_in(self.block, number)

    def block_name(self, number: int) -> Extent3:
        """`blockIdx` of the block of that number in the grid."""
        return place_in(self.grid, number)


def place_in(size: Extent3, number: Any) -> tuple[Any, Any, Any]:
    """The place of one of so many, counted row by row; or of each of several."""
    x, y, _ = size
    return number % x, number // x % y, number // (x * y)


class Team:
    """A batch of blocks in lockstep."""

    def __init__(self, launch: LaunchState, numbers: Int64s, slots: int, exits: int):
        self.launch = launch
        self.meter = launch.meter
        self.layout = layout = ThreadLayout(launch.threads, numbers)
        self.full = layout.full
        self.slots: list[Any] = [None] * slots  # of the variables, where the compiler put them
        # For each slot, the threads that declared it: a write by exactly these needs no merging.
        self.born: list[Mask | None] = [None] * slots
        self.defined: list[Any] = [True] * slots
        # Threads that left a loop or function by `break`, `continue` or `return`; and the kernel.
        self.left: list[Mask | None] = [None] * exits
        self.exited: Mask | None = None
        self.steps = 0
        self.endless = False  # a loop is known to take more steps than it may
        # How many turns of a loop are side by side, the one at hand, and what was computed for all of them
        # (`compile.summing`).
        self.turns = self.turn = 0
        self.rows: dict[object, Any] = {}
        # Number of the access or barrier at hand, which orders them in time.
        self.clock = self.charged = launch.clock  # `charged`: as far as `step` has counted accesses
        # When each lane last passed a barrier of its block, or of its warp.
        self.block_time: Any = 0
        self.warp_time: Any = 0
        # When it last met each lane of its warp, once masks have named some; and that mask.
        self.met: tuple[Int64s, NDArray[np.uint32]] | None = None
        self.apart = False  # whether lanes were set aside: variables hold values of these as well
        self.alone: tuple[object, ...] = ()  # what was known when nobody else could go on
        self.since: Any = 0  # how far each of its warps was when it went on last
        # The place at which lanes go on for which the kernel is entered again, or -1.
        self.resume = -1
        # Nobody else will come to that place; all blocks have come to the barrier of the grid; the loop that
        # is entered again counts its turns, and has counted for very long.
        self.forced = self.grid_met = self.hurried = False
        self.paces: dict[
            int, Int64s
        ] = {}  # how far counters of loops that wait went in the last turn
        self.lanes: Lanes | None = None  # what each lane knows, once somebody fences
        self.phases: Phases | None = None  # its barriers that have phases, once there is one
        # Who wrote what each lane polled last, and when.
        self.heard: Int64s | None = None
        self.shared: dict[Any, SharedRegion] = {}  # memories that a block has in common
        bx, by, bz = launch.block
        t = layout.linear
        self.thread_index = [
            (t % bx).astype(np.uint32) if bx > 1 else np.uint32(0),
            (t // bx % by).astype(np.uint32) if by > 1 else np.uint32(0),
            (t // (bx * by)).astype(np.uint32) if bz > 1 else np.uint32(0),
        ]
        self.block_index: list[Any] = []
        for part in place_in(launch.grid, numbers):
            one = layout.blocks == 1 or bool((part == part[0]).all())
            index = np.uint32(part[0]) if one else np.repeat(part.astype(np.uint32), layout.threads)
            self.block_index.append(index)
        self.block_dim = [np.uint32(x) for x in launch.block]
        self.grid_dim = [np.uint32(x) for x in launch.grid]
        self._scaled_blocks: dict[int, Int64s] = {}
        # The number of each thread in the launch. A block has 10 bits, since it has at most 1024 threads.
        self.thread_id: Int64s = (numbers[layout.block] << 10) | layout.linear

    def end(self) -> None:
        """Let go of what it knows, now that its blocks are over.

        Memories know who read them, masks know their layout, barriers their team, and all these refer to each
        other in circles. Python frees circles when there are many objects, however large: a server that
        interpreted a few hundred launches kept hundreds of megabytes of them.
        """
        for region in self.shared.values():
            region.log.clear()
        self.slots.clear()
        self.shared.clear()
        self.phases = None
        del self.layout.full

    def block_base(self, stride: int) -> Int64s:
        """For each lane, the number of its block in the batch times `stride`."""
        base = self._scaled_blocks.get(stride)
        if base is None:
            base = self._scaled_blocks[stride] = self.layout.block * stride
        return base

    def met_at(self, lanes: Int64s) -> tuple[Int64s, Int64s]:
        """When these lanes last met all of their block, and all of their warp."""
        block, warp = (by_lane(x, self.layout.lanes) for x in (self.block_time, self.warp_time))
        return block[lanes], warp[lanes]

    @cached_property
    def waiters(self) -> waiting_threads.Waiters:
        """Those of its lanes who wait."""
        return waiting_threads.Waiters(self.layout)

    def park(
        self,
        place: int,
        mask: Mask,
        at: Position,
        bits: Bits,
        meets: waiting_threads.Apart | None = None,
        patient: bool = False,
        turn: int = 0,
    ) -> Mask | None:
        """Set those lanes of `mask` aside that are in `bits`, as a `Group`; the rest goes on."""
        bits, self.apart = bits & mask.bits, True
        seen = self.launch.changes
        self.waiters.park(waiting_threads.WaitingLanes(place, bits, at, meets, seen, patient, turn))
        return waiting_threads.some_lanes(self.layout, mask.bits & ~bits)

    def take_turns(self, place: int, mask: Mask, at: Position) -> Mask | None:
        """Set the lanes of `mask` aside if they have run for long, and others can go on: it is their turn."""
        launch = self.launch
        known = launch.changes, self.waiters.count, self.exited
        # Nobody else could go on when we last asked, and nothing has changed since. With hostile memory the
        # seed decides which block goes on (`Execution._go_on`), and turns by the clock would even that out.
        if known == self.alone or launch.hostile is not None:
            return mask
        ready = (team.waiters.ready(launch.changes, team.exited) for team in launch.teams)
        if not launch.more and not any(ready):
            self.alone = known
            return mask
        if (self.meter.progress() - self.since)[mask.warps].max() < TURN:
            return mask
        launch.teams.remove(self)
        launch.teams.append(self)  # behind those of others
        return self.park(place, mask, at, mask.bits, turn=self.waiters.count + 1)

    def spun(self, place: int, mask: Mask, at: Position, stuck: Bits, patient: bool) -> Mask | None:
        """Set lanes of `mask` aside that have looked in vain; the rest goes on."""
        if not stuck.any():
            return mask
        if place in _STUCK:
            self.fault(RunawayKernelError, at, int(stuck.argmax()), _STUCK[place])
        return self.park(place, mask, at, stuck, patient=patient)

    def array(self, value: Any) -> NDArray[Any]:
        """A value as an array over all lanes."""
        return value if varies(value) else np.full(self.layout.lanes, value)

    def take_step(self, at: Position, mask: Mask, counted: bool) -> None:
        """Count one loop iteration of the lanes of `mask`.

        A loop that is not `counted`, because nothing says when it ends, is charged for its work as well:
        accesses take 20 to 50 times as long as a turn without any, atomics more, and all of them longer for
        many lanes. So is every loop once one is known not to end in time.
        """
        self.steps += 1
        if not counted or self.endless:
            accesses = self.clock - self.charged
            self.steps += mask.n // 8192 + accesses * (3 + mask.n // 1024)
        self.charged = self.clock
        self.launch.at = at
        if not self.steps & 15:
            self.launch.look()
        if self.steps > self.launch.limits.step_budget:
            text = (
                f"does not end, or not soon: this loop is still running after {self.steps - 1} iterations, "
                "where an access to memory may count as several, and those of all loops count. "
                "Either its condition never becomes false, or its threads wait for each other "
                "(a lock between threads of one warp, or a wait for another block)"
            )
            self.fault(RunawayKernelError, at, int(mask.index[0]), text)

    def fault(
        self, kind: type[KernelFault], at: Position, lane: int | None, what: str, **more: Any
    ) -> NoReturn:
        """Raise a `KernelFault` of class `kind`.

        `lane` is the offending lane of the batch, if one can be named; `what` is what the kernel did, as
        the rest of a sentence that begins with its name; `more` are fields of `FaultSite`: array, index,
        bound.
        """
        launch, layout = self.launch, self.layout
        block, thread, who = None, None, ""
        if lane is not None:
            block = launch.block_name(int(layout.numbers[layout.block[lane]]))
            thread = launch.thread_name(int(layout.linear[lane]))
            who = f": block {block}, thread {thread}"
        line = launch.source.quoted(at.line)
        file, number = launch.source.place(at.line)
        where = f"line {number}" + f" of {file}" * (file != launch.source.filename)
        if at.called is not None and at.called.line != at.line:
            there, number = launch.source.place(at.called.line)
            where += f", from line {number}" + f" of {there}" * (there != file)
        text = shortened(f"kernel '{launch.kernel}'{who} {what}") + f"\n    {where}: {line}"
        raise kind(text, FaultSite(launch.kernel, at.line, block, thread, **more))
