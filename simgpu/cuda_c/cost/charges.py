"""The results of the walk over a kernel's form."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.compile.variables import Variable

WIDE = 4  # words of 4 bytes that a thread loads at once
# For counts of the longest warp, the fields of a `Charge` that are added up for each warp, a row for each.
ADDED = {
    "longest_chain": "instructions", "chain_load_rounds": "rounds", "chain_doubles": "doubles",
    "chain_latency": "latency", "chain_busy": "busy", "chain_fused": "fused",
}  # fmt: skip
# For counts of the whole launch, the fields of a `Charge` that are added up for each warp, or for each lane.
OF_WARPS = {
    "warp_instructions": "instructions", "double_instructions": "doubles", "issued": "issued",
    "fused": "fused", "alu_instructions": "alu", "branches": "branch", "loop_iterations": "loop",
}  # fmt: skip
OF_LANES = {"flops": "flops", "special_functions": "special"}


@dataclass(eq=False)
class Charge:
    """The cost for a warp of one pass through a straight piece of code; `flops` and `special`: for a lane."""

    line: int = 0
    instructions: int = 0
    rounds: float = 0  # global loads that follow each other
    near: float = 0  # loads of shared memory that do
    flops: int = 0
    special: int = 0
    doubles: int = 0
    # Turns of the unrolled loops around it whose loads go out together: of global memory, which take long
    # enough to be worth registers, and of shared memory.
    overlap: int = 1
    room: int = 1
    nesting: int = 0  # number of the loops around it
    carried: bool = False  # an address comes from a load of an earlier turn: turns do not overlap
    issued: float = 0.0  # instructions as a compiler makes them
    alu: float = 0.0  # those of them that compare, shift or work on bits
    fused: float = 0.0  # those that multiply floats and add, in one
    busy: float = 0.0  # clocks for which they keep the units of one warp scheduler (`state`)
    # Clocks by which it makes the longest chain of dependent results longer (`path`). In the walk, slack is
    # the part for which no turn of a loop has to wait for the one before. In the end latency has all.
    latency: float = 0.0
    slack: float = 0.0
    whole: int = 1  # turns of the loops around it that are unrolled whole
    branch: bool = False  # whether it ends with a branch
    loop: bool = False  # whether it ends the turn of a loop


@dataclass(eq=False)
class SiteCost:
    """The cost of a load or store: its piece, whether it is free, its width and place, and its pointer."""

    charge: Charge | None = None
    free: bool = False
    wide: bool = False  # whether a compiler makes one access of four
    rolled: bool = False  # whether it is in a loop that is not unrolled
    base: Variable | None = None


@dataclass
class Costs:
    """Of a whole kernel: charges by point, accesses by number, and registers of a thread."""

    charges: list[Charge]
    sites: list[SiteCost]
    registers: int

    @cached_property
    def columns(self) -> list[NDArray[np.float64]]:
        """For each charge, what of it is added up for each warp: see `ADDED`."""
        return [
            np.array([(float(getattr(c, name)),) for name in ADDED.values()]) for c in self.charges
        ]

    @cached_property
    def fields(self) -> dict[str, NDArray[np.float64]]:
        """For each field of a `Charge` that is summed over the launch, what each charge has of it."""
        names = "line", *OF_WARPS.values(), *OF_LANES.values()
        return {name: np.array([float(getattr(c, name)) for c in self.charges]) for name in names}
