"""The time that a kernel takes, from what the interpreter counted.

One sum and some bounds. The longest warp has to go through its own instructions, loads and barriers one
after another, and no sooner than its block has started; once for every wave of blocks, if that takes
longer than starting them. Meanwhile the SMs issue only so many instructions, of some kinds fewer, and
look up only so many lines of L1 and words of shared memory in a clock. L2 delivers and takes only so many
bytes a second, and memory fewer. (The classical view: Hong and Kim, "An analytical model for a GPU
architecture", ISCA 2009; Volkov, "Understanding latency hiding on GPUs", 2016.)
How well this predicts a real GPU is in docs/fidelity.md.
"""

import math
from dataclasses import dataclass
from itertools import repeat

from simgpu.cuda_c import Counts
from simgpu.queues import ResourceDemand
from simgpu.spec import DeviceSpec

INLINE = 64 << 10  # bytes
_SECTOR = 32  # bytes
SCHEDULERS = 4  # of an SM
# Issue slots that a fused multiplication and addition of floats takes. In listings of nvcc 13.0 for the rungs
# in asyncgpu_course/ladder, one reads 1.14 to 1.26 registers out of the busier of two banks. On GPUs of two
# generations before, a bank delivers one register of a warp in a clock (Huerta et al., "Analyzing Modern
# NVIDIA GPU cores", 2025, arXiv 2503.20481, who say that they found no rule for all cases).
FUSED_CLOCKS = 1.2
# The next two are inferred from the times that they explain, and from no measurement of their own: the rungs'
# in asyncgpu_course/ladder/h200.json (H200), by the differences between 256, 512 and 1024.
# Clocks that one warp needs for one. With one warp a scheduler, `larger` took 2.07 to 2.33.
FUSED_OF_A_WARP = 2.0
# Of an SM, to start a warp's asynchronous copy of 4 or 8 bytes a lane: for each, `copies` took 6.7 to 9.5
# longer than `larger`.
ASYNC_CLOCKS = 8.0
# Between an SM and L2 in a clock. An A100 reads 5120 from L2, out of two halves with 40 slices each, so a
# slice delivers that much. That an SM takes as much is assumed, and fits the rungs.
L2_BYTES = 64
# What each SM has for itself.
PER_SM = ("blocks", "issue", "alu", "special", "doubles", "sectors", "shared")


@dataclass(frozen=True, slots=True)
class KernelTime:
    """A kernel's modelled time on an otherwise idle device."""

    # In us: "latency" (the longest warp), "blocks" (starting them, or further waves), "issue", "alu"
    # (comparisons, shifts and bits), "special" (special functions), "doubles" (double precision), "sectors"
    # (global memory, as the load-store units see it), "shared" (shared memory), "atomics" (on global memory)
    # and "memory" (L2 or device memory).
    bounds: dict[str, float]
    # For the engine. Its time is the first two together or the largest of the others, and more the nearer
    # both are, behind the shortest time of a launch. Its demand is what it leaves to nobody else: of the
    # places, or of the throughput of the SMs or the memory, whichever is most.
    work: ResourceDemand

    @property
    def bound(self) -> str:
        """The name of the bound that holds, which is the longest time."""
        return max(self.bounds, key=self.bounds.__getitem__)

    @property
    def us(self) -> float:
        """How long it takes."""
        return self.work.us


def block_limits(
    spec: DeviceSpec, threads: int, shared_bytes: int, registers: int
) -> dict[str, int]:
    """How many blocks an SM has room for, by each of its limits.

    Threads are counted in whole warps, which get registers in portions of 8 for each thread.
    """
    whole = math.ceil(threads / 32) * 32
    limits = {"threads": spec.threads_per_sm // whole, "blocks": spec.blocks_per_sm}
    if shared_bytes:
        limits["shared memory"] = spec.shared_bytes_per_sm // shared_bytes
    limits["registers"] = spec.registers_per_sm // (math.ceil(max(registers, 1) / 8) * 8 * whole)
    return limits


def resident_blocks(spec: DeviceSpec, threads: int, shared_bytes: int, registers: int = 0) -> int:
    """The number of blocks that one SM holds at once, at least 1."""
    return max(1, min(block_limits(spec, threads, shared_bytes, registers).values()))


def kernel_time(spec: DeviceSpec, counts: Counts, threads: int, shared_bytes: int) -> KernelTime:
    """The time of one launch with blocks of `threads` threads and `shared_bytes` bytes each."""
    slots = spec.sms * resident_blocks(spec, threads, shared_bytes, counts.registers)
    waves = math.ceil(counts.blocks / slots)
    # Blocks of a later wave start one by one, as others end, and not all behind the slowest.
    later = waves - 1
    # The SM that has most to do.
    most = math.ceil(counts.blocks / spec.sms)
    share = most / max(counts.blocks, 1)
    beside, warps = min(most, slots // spec.sms), -(-threads // 32)
    resident = beside * warps / SCHEDULERS
    # Clocks of the longest warp, for its own arithmetic and shared memory if nobody else is there.
    alone = counts.chain_busy * max(1.0, min(spec.unit_clocks, resident))
    work = max(alone, counts.chain_fused * FUSED_OF_A_WARP, counts.chain_latency)
    waits = chain_waits(spec, counts, waves)
    chain = work + waits
    clocks = {
        "latency": chain,
        "blocks": max(most * spec.block_clocks, later * chain),
        "issue": share * max(counts.issued, counts.fused * FUSED_CLOCKS) / spec.issue_per_clock,
        "alu": share * counts.alu_instructions / spec.alu_per_clock,
        "special": share * counts.special_functions / 32 / spec.special_per_clock,
        "doubles": share * counts.double_instructions / spec.doubles_per_clock,
        "sectors": share * _lookups(spec, counts),
        "shared": share * (counts.shared_passes + counts.shared_atomic_passes),
        "atomics": _atomics(spec, counts),
    }
    bounds = {name: value / spec.clock_mhz for name, value in clocks.items()}
    bounds["memory"] = _traffic(spec, counts)
    # What throughput limits overlaps; the chain of the longest warp does so only in part.
    throughput = max([value for name, value in bounds.items() if name not in ("latency", "blocks")])
    # The longest warp waits for the instructions of others, which its scheduler has besides.
    others = max(0.0, 1 - 1 / resident) * throughput
    least = _norm(spec, bounds["latency"] + bounds["blocks"], others)
    # Where each round of loads has a barrier behind it, a block waits as one: other blocks' work fills that
    # time, and its own does not. That half of the barriers count, and how blocks share a scheduler, was
    # chosen with the ladder's rungs and the kernels of docs/fidelity.md in view, so neither tests it.
    if counts.barriers and warps > 1:
        # Of two barriers of a step, one is behind what it loads. Where it loads nothing new, nobody waits.
        steps = counts.barriers / counts.blocks / 2
        loads = min(1.0, counts.chain_fresh_loads / steps)
        shown = min(1.0, counts.chain_load_rounds / steps)
        part = 1 / beside / waves  # of an SM's work, for one block at a time
        waits += _at_once(counts, share * part, warps, shown)
        # It waits for other warps of its block at their scheduler, and in shared memory.
        units = max([bounds[name] for name in ("issue", "alu", "special", "doubles")]) * part
        units *= max(0.0, 1 - beside / max(resident, beside))
        near = (1 - 1 / warps) * part * bounds["shared"]
        block = _norm(spec, work / spec.clock_mhz, units, near) + waits / spec.clock_mhz
        started = max(most * spec.block_clocks / spec.clock_mhz, later * block)
        together = _norm(spec, block + started, (1 - 1 / beside) * throughput)
        behind = loads * min(1.0, steps / max(counts.chain_load_rounds, 1))
        least += behind * max(0.0, together - least)
    us = spec.launch_us + max(throughput, least)
    busy = max([bounds[name] for name in PER_SM]) / us
    places = min(1.0, counts.blocks / slots)
    demand = max(places, busy * min(spec.sms, counts.blocks) / spec.sms, bounds["memory"] / us)
    # When the last block gets a place, those before it are at all stages: on average half of a block is left.
    drain = us / (1 + later) / 2 if waves > 1 else 0.0
    busiest = max([bounds[name] for name in PER_SM if name != "blocks"])
    turn = max(1.0, busiest / bounds["issue"]) if bounds["issue"] else 1.0
    return KernelTime(bounds, ResourceDemand(us, places, min(1.0, demand), drain, turn))


def _norm(spec: DeviceSpec, *parts: float) -> float:
    """The time of what overlaps as well as `DeviceSpec.overlap` says."""
    return sum(map(pow, parts, repeat(spec.overlap))) ** (1 / spec.overlap)


def round_clocks(spec: DeviceSpec, counts: Counts) -> float:
    """Clocks that each round of loads behind the first adds to the longest warp."""
    # What is known of warps on average is more for the longest one.
    longer = counts.longest_chain * counts.warps / max(counts.warp_instructions, 1)
    rounds = counts.chain_load_rounds
    fresh = min(counts.chain_fresh_loads * longer * _new(spec, counts), rounds)
    part = fresh / rounds if rounds else 0.0
    lines = max(counts.load_lines / max(counts.global_load_requests, 1) - 1, 0)
    return part * (spec.load_clocks + lines) + (1 - part) * spec.hit_clocks


def chain_waits(spec: DeviceSpec, counts: Counts, waves: int) -> float:
    """Clocks for which the longest warp waits for loads, barriers and atomics."""
    per_warp, rounds = 1 / max(counts.warps, 1), counts.chain_load_rounds
    return (
        min(rounds, 1) * spec.first_load_clocks
        + ((rounds - 1) * round_clocks(spec, counts) if rounds > 1 else 0.0)
        + counts.shared_atomic_passes * per_warp * spec.shared_atomic_clocks
        + counts.barriers / max(counts.blocks, 1) * spec.barrier_clocks
        + counts.chain_hot / max(waves, 1)
    )


def _at_once(counts: Counts, share: float, warps: int, shown: float) -> float:
    """Clocks for what all warps of a block do at the same time.

    They fetch, and wait for so much of that as is `shown`; start asynchronous copies; and store what a block
    stores once, since then nobody computes any more.
    """
    started = counts.async_requests * ASYNC_CLOCKS / max(1.0, warps / SCHEDULERS)
    moved = shown * counts.fresh_sectors + counts.once_stored
    return share * (started + moved * _SECTOR / L2_BYTES)


def _new(spec: DeviceSpec, counts: Counts) -> float:
    """The part of the sectors that a block has not had, of those that it had not at the first turns."""
    # Lanes that are far apart need a sector each for a few bytes.
    apart = max(1.0, counts.load_sectors * _SECTOR / max(counts.load_bytes, 1))
    needed = min(apart, _SECTOR / 4) * counts.load_bytes_needed
    again = max(0.0, 1 - counts.blocks * needed / _SECTOR / max(counts.fresh_sectors, 1))
    kept = min(1.0, spec.shared_bytes_per_sm / max(needed, 1))
    return 1 - again * kept


def _traffic(spec: DeviceSpec, counts: Counts) -> float:
    """Time, in us, in which L2 and device memory deliver what is needed.

    L1 keeps what a block has loaded, and passes on whatever is stored, sector by sector. What is read and
    what is written go by ways of their own.
    """
    needed = counts.load_bytes_needed + counts.store_bytes_needed
    read = max(counts.load_bytes_needed, min(counts.fresh_sectors, counts.load_sectors) * _SECTOR)
    beyond = needed / spec.dram_gb_s if needed > spec.l2_bytes else 0.0
    written = counts.store_sectors * _SECTOR
    return max(read / spec.l2_gb_s, written / spec.l2_write_gb_s, beyond) / 1e3


def _lookups(spec: DeviceSpec, counts: Counts) -> float:
    """Clocks that the load-store units of one SM would need for all requests to global memory."""
    requests = counts.global_load_requests + counts.global_store_requests
    lines = counts.load_lines + counts.store_lines
    sectors = counts.load_sectors + counts.store_sectors
    return requests * spec.request_clocks + max(lines, sectors / spec.sectors_per_clock)


def _atomics(spec: DeviceSpec, counts: Counts) -> float:
    """Clocks that L2 takes for all atomics on global memory.

    Lines are spread over its slices, and a slice makes one pass after the other. In a pass it serves any
    words of a sector, each for one lane. A word that gets more than its share keeps a slice busy alone.
    """
    lines = max(counts.atomic_lines, 1)
    spread = min(spec.line_atomics_per_clock * lines**spec.atomic_spread, spec.atomics_per_clock)
    each = min(1 / spread, spec.atomic_queue_clocks)
    more = max(0.0, counts.atomic_queue - counts.atomic_passes / lines)
    return counts.atomic_passes * each + more * (spec.atomic_queue_clocks - each)


def copy_time(spec: DeviceSpec, kind: str, nbytes: int) -> float:
    """The time, in us, of one copy (``"h2d"``, ``"d2h"``, ``"d2d"``) or fill (``"memset"``)."""
    rates = {"h2d": spec.h2d_gb_s, "d2h": spec.d2h_gb_s, "memset": spec.dram_gb_s}
    fixed = {"h2d": spec.h2d_us, "d2h": spec.d2h_us}
    # Within the device every byte is read and written.
    rate = rates.get(kind, spec.dram_gb_s / 2)
    return fixed.get(kind, spec.fill_us) + nbytes / (rate * 1e3)


def staging_time(spec: DeviceSpec, nbytes: int) -> float:
    """The host's time, in us, for a copy from pageable memory, on top of one from pinned memory.

    Up to 64 KiB a call returns without waiting for a staging buffer (CUDA Runtime API, "API
    synchronization behavior"); the fixed cost is taken to grow up to there.
    """
    return spec.pageable_us * min(1.0, nbytes / INLINE) + nbytes / (spec.pageable_gb_s * 1e3)


def unstaging_time(spec: DeviceSpec, nbytes: int) -> float:
    """The host's time, in us, for a copy to pageable memory behind the end of the copy itself.

    It empties the staging buffer while the bus fills it, and is the slower of the two.
    """
    return max(0.0, nbytes / (spec.pageable_gb_s * 1e3) - nbytes / (spec.d2h_gb_s * 1e3))
