"""All threads at once: which of them execute, what they compute, and the state of a batch of blocks."""

from simgpu.cuda_c.lockstep.masks import WARP, Bits, Int64s, Mask, by_lane, join, split, varies
from simgpu.cuda_c.lockstep.team import Site, Team

__all__ = ["WARP", "Bits", "Int64s", "Mask", "Site", "Team", "by_lane", "join", "split", "varies"]
