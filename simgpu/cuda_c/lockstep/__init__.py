"""All threads at once: which of them execute, what they compute, and the state of a batch of blocks."""

from simgpu.cuda_c.lockstep.masks import WARP, Mask, join, split, varies
from simgpu.cuda_c.lockstep.meter import Site
from simgpu.cuda_c.lockstep.team import Team

__all__ = ["WARP", "Mask", "Site", "Team", "join", "split", "varies"]
