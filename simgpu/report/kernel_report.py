"""Launches of one kernel added up, and what follows from the sums."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from simgpu.common import LaunchDim
from simgpu.cuda_c import NOT_SUMMED, Counts, combined
from simgpu.launches import Launched
from simgpu.spec import DeviceSpec
from simgpu.times import block_limits, resident_blocks

_SECTOR = 32  # bytes
_WARP = 32  # threads


@dataclass(frozen=True)
class KernelReport:
    """All launches of one kernel with one grid, block and shared memory."""

    spec: DeviceSpec  # the GPU that they ran on
    launches: tuple[Launched, ...]  # at least one

    @property
    def name(self) -> str:
        """Of the kernel."""
        return self.launches[0].kernel

    @property
    def grid(self) -> LaunchDim:
        """Number of blocks, (x, y, z)."""
        return self.launches[0].grid

    @property
    def block(self) -> LaunchDim:
        """Threads of a block, (x, y, z)."""
        return self.launches[0].block

    @cached_property
    def counts(self) -> Counts:
        """Summed over the launches; of chains and shared memory the largest."""
        return add_up([launch.counts for launch in self.launches])

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return math.prod(self.block)

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block, static and dynamic, in bytes."""
        return self.counts.shared_bytes

    @property
    def blocks_per_sm(self) -> int:
        """How many of its blocks one SM holds at once."""
        return resident_blocks(self.spec, self.threads, self.shared_bytes, self.counts.registers)

    @property
    def occupancy(self) -> float:
        """Part of the warps that an SM can hold which it holds when the grid is large enough, 0 to 1."""
        warps = self.blocks_per_sm * math.ceil(self.threads / _WARP)
        return warps / (self.spec.threads_per_sm // _WARP)

    @property
    def occupancy_limits(self) -> tuple[str, ...]:
        """Of "threads", "blocks", "shared memory" and "registers", those that an SM has least of."""
        allowed = block_limits(self.spec, self.threads, self.shared_bytes, self.counts.registers)
        least = min(allowed.values())
        return tuple(name for name, blocks in allowed.items() if blocks == least)

    @property
    def waves(self) -> float:
        """The grid in units of what the whole device holds at once; below 1 a part stays empty."""
        return math.prod(self.grid) / (self.spec.sms * self.blocks_per_sm)

    @property
    def flops(self) -> int:
        """Floating-point operations, over all launches; a fused multiply-add is 2."""
        return self.counts.flops

    @property
    def bytes_needed(self) -> int:
        """Different bytes that it loads, and different bytes that it stores."""
        return self.counts.load_bytes_needed + self.counts.store_bytes_needed

    @property
    def bytes_moved(self) -> int:
        """Sectors that its loads and stores touch, times 32 bytes; atomics are not among them."""
        return (self.counts.load_sectors + self.counts.store_sectors) * _SECTOR

    @property
    def load_sectors_per_request(self) -> float:
        """32-byte sectors that one load of a warp touches: 4 is perfect for 4-byte elements."""
        return _ratio(self.counts.load_sectors, self.counts.global_load_requests)

    @property
    def store_sectors_per_request(self) -> float:
        """The same for stores."""
        return _ratio(self.counts.store_sectors, self.counts.global_store_requests)

    @property
    def conflicts_per_request(self) -> float:
        """Extra passes that an access of a warp to shared memory needs, on average."""
        return _ratio(self.counts.bank_conflicts, self.counts.shared_requests)

    @property
    def divergence(self) -> float:
        """Part of the branches on which the lanes of a warp did not agree, 0 to 1."""
        return _ratio(self.counts.divergent_branches, self.counts.branches)

    @property
    def us(self) -> float:
        """Modelled time of one launch with the device to itself, in us; the mean of all launches."""
        return math.fsum(launch.time.us for launch in self.launches) / len(self.launches)

    @property
    def bounds(self) -> dict[str, float]:
        """The bounds of the model for one launch, in us, by name; the largest one holds."""
        each = [launch.time.bounds for launch in self.launches]
        return {name: math.fsum(b[name] for b in each) / len(each) for name in each[0]}

    @property
    def bound(self) -> str:
        """The bound that holds."""
        bounds = self.bounds
        return max(bounds, key=lambda name: bounds[name])

    @property
    def gflops(self) -> float:
        """1e9 floating-point operations a second, modelled."""
        return self.flops / len(self.launches) / self.us / 1e3

    @property
    def intensity(self) -> float:
        """Floating-point operations for each byte needed: how far a perfect cache would get it."""
        return _ratio(self.flops, self.bytes_needed)

    @property
    def intensity_moved(self) -> float:
        """Floating-point operations for each byte moved between the SMs and the caches."""
        return _ratio(self.flops, self.bytes_moved)

    @property
    def roof(self) -> float:
        """The device's limit at `intensity`, in 1e9 floating-point operations a second.

        Memory is the L2 cache, where what one launch needs fits into it, else device memory.
        The roofline: Williams, Waterman, Patterson, CACM 52(4), 2009; with a roof for each memory.
        """
        fits = self.bytes_needed <= self.spec.l2_bytes * len(self.launches)
        memory_gb_s = self.spec.l2_gb_s if fits else self.spec.dram_gb_s
        return min(peak_gflops(self.spec), self.intensity * memory_gb_s)

    @property
    def under_roof(self) -> float:
        """`gflops` as a part of `roof`, 0 to 1; 0 where there is no floating-point arithmetic."""
        return _ratio(self.gflops, self.roof)


def peak_gflops(spec: DeviceSpec) -> float:
    """Fused float32 multiply-adds by every lane in every clock, in 1e9 operations a second."""
    return spec.sms * spec.issue_per_clock * _WARP * 2 * spec.clock_mhz / 1e3


def load_store_gb_s(spec: DeviceSpec) -> float:
    """Throughput of the load-store units of all SMs, in 1e9 bytes a second."""
    return spec.sms * spec.sectors_per_clock * _SECTOR * spec.clock_mhz / 1e3


def add_up(counts: Sequence[Counts]) -> Counts:
    """Counts of several launches as if they were one."""
    return combined(counts, lambda name, each: max(each) if name in NOT_SUMMED else sum(each))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
