"""How long a kernel takes, from what the interpreter counted.

Four bounds, the largest of which holds. The longest warp has to go through its own instructions and
loads one after another, once for every wave of blocks. The SMs issue only so many instructions a clock.
Their load-store units pass only so many 32-byte sectors a clock. Memory delivers only so many bytes a
second. (The classical view: Hong and Kim, "An analytical model for a GPU architecture", ISCA 2009;
Volkov, "Understanding latency hiding on GPUs", 2016.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from asyncgpu_tutor.cuda_c import Counts
from asyncgpu_tutor.sim.engine import Work
from asyncgpu_tutor.sim.spec import DeviceSpec

__all__ = ["KernelTime", "copy_time", "kernel_time", "resident_blocks"]


@dataclass(frozen=True, slots=True)
class KernelTime:
    """A kernel's modelled time on an otherwise idle device.

    Attributes
    ----------
    latency_us, issue_us, sectors_us, memory_us : float
        The four bounds.
    us : float
        The largest of them, behind the shortest time of a launch.
    demand : float
        The part of the device's block slots that the launch fills, 0 to 1.
    """

    latency_us: float
    issue_us: float
    sectors_us: float
    memory_us: float
    us: float
    demand: float

    @property
    def bound(self) -> str:
        """Which of the four it is."""
        bounds = {
            "latency": self.latency_us,
            "issue": self.issue_us,
            "sectors": self.sectors_us,
            "memory": self.memory_us,
        }
        return max(bounds, key=lambda name: bounds[name])

    @property
    def work(self) -> Work:
        """For the engine."""
        return Work(self.us, self.demand)


def resident_blocks(spec: DeviceSpec, threads: int, shared_bytes: int) -> int:
    """How many blocks of `threads` threads and `shared_bytes` bytes one SM holds at once; at least 1.

    Threads are counted in whole warps. Registers are not modelled.
    """
    by_threads = spec.threads_per_sm // (math.ceil(threads / 32) * 32)
    by_shared = spec.shared_bytes_per_sm // shared_bytes if shared_bytes else spec.blocks_per_sm
    return max(1, min(spec.blocks_per_sm, by_threads, by_shared))


def kernel_time(spec: DeviceSpec, counts: Counts, threads: int, shared_bytes: int) -> KernelTime:
    """The time of one launch with blocks of `threads` threads and `shared_bytes` bytes each."""
    slots = spec.sms * resident_blocks(spec, threads, shared_bytes)
    waves = math.ceil(counts.blocks / slots)
    rounds = counts.chain_load_rounds
    clocks = (
        counts.longest_chain * spec.step_clocks
        + max(rounds - 1, 0) * spec.load_clocks
        + min(rounds, 1) * spec.first_load_clocks
    )
    latency = waves * clocks / spec.clock_mhz
    sms = min(spec.sms, counts.blocks)
    issue = counts.warp_instructions / (sms * spec.issue_per_clock) / spec.clock_mhz
    requests = counts.global_load_requests + counts.global_store_requests
    passes = max(2 * requests, counts.load_sectors + counts.store_sectors)
    sectors = passes / (sms * spec.sectors_per_clock) / spec.clock_mhz
    needed = counts.load_bytes_needed + counts.store_bytes_needed
    memory = needed / (spec.dram_gb_s * 1e3)
    us = spec.launch_us + max(latency, issue, sectors, memory)
    return KernelTime(latency, issue, sectors, memory, us, min(1.0, counts.blocks / slots))


def copy_time(spec: DeviceSpec, kind: str, nbytes: int) -> float:
    """The time, in us, of one copy (``"h2d"``, ``"d2h"``, ``"d2d"``) or fill (``"memset"``)."""
    rates = {"h2d": spec.h2d_gb_s, "d2h": spec.d2h_gb_s, "memset": spec.dram_gb_s}
    fixed = {"h2d": spec.h2d_us, "d2h": spec.d2h_us}
    # Within the device every byte is read and written.
    rate = rates.get(kind, spec.dram_gb_s / 2)
    return fixed.get(kind, spec.fill_us) + nbytes / (rate * 1e3)
