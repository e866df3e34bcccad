"""The results of the walk over a kernel's record."""

from __future__ import annotations

from dataclasses import dataclass

from simgpu.cuda_c.compile.variables import Variable


@dataclass(eq=False)
class Charge:
    """The cost of one pass through a straight piece of code for a warp; `flops` and `special` are for a lane.

    Attributes
    ----------
    rounds, dependent : float, int
        Global loads that follow each other, and those of them that wait for a value loaded before.
    overlap : int
        Turns of the unrolled loops around it, whose loads go out together.
    nesting : int
        The number of loops around it.
    carried : bool
        An address comes from a load of an earlier turn, so that turns do not overlap.
    issued, alu : float
        Instructions as a compiler makes them; and those of them that compare, shift or work on bits.
    busy : float
        Clocks for which they keep the units of one warp scheduler: see `units`.
    latency, slack : float
        Clocks by which it makes the longest chain of dependent results longer (`path`); in the walk, slack
        is the part for which no turn of a loop has to wait for the one before. In the end latency has all.
    whole : int
        Turns of the loops around it that are unrolled whole.
    turns : (int, int, int), optional
        Of a loop around it that is unrolled in part: the points of its test and its step, and how many of its
        turns are done at once at most.
    branch, loop : bool
        It ends with a branch; it ends the turn of a loop.
    """

    line: int = 0
    instructions: int = 0
    rounds: float = 0
    dependent: int = 0
    flops: int = 0
    special: int = 0
    doubles: int = 0
    overlap: int = 1
    nesting: int = 0
    carried: bool = False
    issued: float = 0.0
    alu: float = 0.0
    busy: float = 0.0
    latency: float = 0.0
    slack: float = 0.0
    whole: int = 1
    turns: tuple[int, int, int] | None = None
    branch: bool = False
    loop: bool = False


@dataclass(eq=False)
class SiteCost:
    """Of a load or store: the charge of its piece, the turns that go together, and whether it is free.

    What a free one loads is at hand already. `base` is the pointer that it goes by, if that is a name.
    """

    charge: Charge | None = None
    overlap: int = 1
    free: bool = False
    base: Variable | None = None


@dataclass
class Costs:
    """Of a whole kernel: charges by point, accesses by number, and registers of a thread."""

    charges: list[Charge]
    sites: list[SiteCost]
    registers: int
