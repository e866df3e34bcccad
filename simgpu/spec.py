"""The constants that the simulated device's times are made of, each with its source."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

GUIDE = "CUDA C++ Programming Guide, technical specifications per compute capability"
THROUGHPUT = "CUDA C++ Programming Guide, throughput of native arithmetic instructions"
DATASHEET = "NVIDIA H200 datasheet"
GRAPH = (
    "measured: H200, driver 580.159, CuPy 14.2.0, 2026-11-21, median time a node of a CUDA graph of "
    "twenty equal ones"
)
GRAPHS = "measured by tools/measure_gpu.py: H200, driver 580.159, CuPy 14.2.0, 2026-11-21"
BRANCHES = (
    "measured without a profiler: H200, driver 580.159, CuPy 14.2.0, 2026-11-22, 1 to 8 branches of 1 to 8 "
    "kernels, medians of 50 launches"
)
CHAINS = "measured: H200, driver 580.159, 2026-11-23, loops of loads that each need the one before"
FITTED = "fitted to one half of the kernels in docs/fidelity.md: H200, driver 580.159, 2026-11-23"
_WORDS = "set by hand from patterns of tools/fidelity/contention.py: H200, CuPy 14.2, 2026-11-28"
_MLP = (
    "fitted to one half of the runs of the MLP in docs/fidelity.md: H200, Python 3.12, 2026-11-22"
)
_CALLS = (
    "measured by tools/calibrate.py through this package's own calls (H200, Python 3.12, "
    "2026-11-22), times a factor "
    "fitted to one half of the runs of the MLP: what runs once is slower than a loop"
)
_LINKS = "fitted to half of the sizes in docs/fidelity.md: two H200, NCCL 2.28.9, 2026-11-27"
SOCKETS = f"{_LINKS}, NCCL over sockets of one host, which stand for a network"
TUNING = "NCCL's own model of its latencies: NVIDIA/nccl, src/graph/tuning.cc"
TABLE = (
    "the largest are where NCCL 2.28.9 expects its last protocol (8.4 us, 3.4 a step, 360 GB/s) to overtake "
    "its first (6.6, 0.6, 141): NCCL_DEBUG_SUBSYS=TUNING, two H100, 2026-11-27"
)
CHANNEL = "a second channel from 16 KB on: NCCL_DEBUG_SUBSYS=TUNING, two H100, 2026-11-27"
DECIDED = (
    "measured without a profiler: H100 80GB HBM3, driver 580.159, CuPy 14.2.0, 2026-11-27, medians"
)
PREPARED = (
    "measured: H200, driver 580.159, CuPy 14.2.0, Python 3.12, 2026-11-29, a prepared step of the language "
    "model, medians"
)
MEASURED = "measured: H200, driver 580.159, CuPy 14.2.0, Python 3.12, 2026-11-20, medians"


@dataclass(frozen=True)
class DeviceSpec:
    """A GPU and the host in front of it, as far as the model of time knows them.

    Times are in us, sizes in bytes, and bandwidths in 1e9 bytes a second. What is done in a clock is done by
    one SM.
    """

    name: str  # for people
    memory_bytes: int  # device memory
    sms: int  # streaming multiprocessors
    clock_mhz: float  # of the SMs
    # What one SM can hold at once; together they limit occupancy.
    threads_per_sm: int
    blocks_per_sm: int
    shared_bytes_per_sm: int
    registers_per_sm: int

    issue_per_clock: float  # warp instructions that are issued in a clock
    alu_per_clock: float  # of these, such as compare, shift or work on bits
    special_per_clock: float  # such as are special functions of the hardware
    doubles_per_clock: float  # such as compute in double precision
    # 32-byte sectors of global memory that the load-store units pass in a clock; and what these need for a
    # request, besides one clock for each line of L1 that it touches.
    sectors_per_clock: float
    request_clocks: float
    block_clocks: float  # to start a block
    l2_bytes: int
    l2_gb_s: float  # what the L2 cache delivers
    l2_write_gb_s: float  # what it takes, in whole sectors
    dram_gb_s: float  # what device memory delivers

    launch_us: float  # the shortest time that a kernel takes on the device
    start_us: float  # from the host's call to the start of the work on an idle device
    pause_us: float  # on one stream, from the end of a kernel to the start of the next
    switch_us: float  # the same between a copy and a kernel, or copies of both directions
    # Clocks that a warp needs for each clock that its instructions keep a unit busy, if its scheduler has so
    # many warps. Where its results wait for each other longer than that, `Counts.chain_latency` holds.
    unit_clocks: float
    first_load_clocks: float  # until a warp's first load from global memory arrives
    load_clocks: float  # what each further round of loads adds that needs new sectors
    hit_clocks: float  # what one adds that finds its sectors in L1
    barrier_clocks: float  # what a barrier adds to the longest warp
    shared_atomic_clocks: float  # an atomic in shared memory, for each lane that waits its turn
    atomic_queue_clocks: float  # one in global memory, for each on the same word
    atomics_per_clock: float  # on global memory, by L2 and for the whole device, at most
    # The same on several lines is this much times their number to the power of `atomic_spread`, and at least
    # what one word takes.
    line_atomics_per_clock: float
    atomic_spread: float
    # How well the chain of the longest warp overlaps with what throughput limits: the exponent of the norm in
    # which the two are added. 1: one waits for the other; infinity: the longer is all that counts.
    overlap: float

    # Copies over the bus: bandwidth, and the fixed time of one copy.
    h2d_gb_s: float
    d2h_gb_s: float
    h2d_us: float
    d2h_us: float
    fill_us: float  # the fixed time of a memset, and of a copy within the device
    pageable_us: float  # what a copy of pageable memory costs the host besides
    pageable_gb_s: float  # the rate at which it stages the bytes

    submit_us: float  # what the host pays for running an operation at all
    # What it pays for each piece of work in it, from building it to the driver's call.
    call_launch_us: float
    call_h2d_us: float
    call_d2h_us: float
    call_memset_us: float
    call_malloc_us: float
    call_event_us: float  # the same for an event
    call_query_us: float  # and for asking whether it has passed
    replay_us: float  # for each piece of work of a prepared pipeline, besides its submission
    # For launching a CUDA graph once more, however many nodes its one branch has.
    graph_launch_us: float
    # For each further branch. The driver hands them to the device one after the other, so that the first node
    # of a branch begins that much later than the one of the branch before.
    graph_branch_us: float
    # On the device, from the end of a kernel to the start of the next one in a graph, in place of `pause_us`.
    # Between copies and kernels it is `switch_us`, as on a stream.
    graph_node_us: float
    # A conditional node, from the end of what is before it until what it has chosen can start; and a loop
    # that comes round, with what reads its condition.
    graph_decide_us: float
    graph_turn_us: float
    graph_instantiate_us: float  # for each node when a captured graph is made ready to be launched
    sync_us: float  # from the end of the work to the return of a blocking wait
    # From the end of the work to the resumption of an awaiting task; the host is busy.
    wake_us: float
    sources: tuple[tuple[str, str], ...]  # for each constant, where it is from

    @property
    def shared_bytes_per_block(self) -> int:
        """The most that a block gets if its launch asks for it: all but 1 KB of an SM's, since Ampere.

        CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
        """
        return self.shared_bytes_per_sm - (1024 if self.shared_bytes_per_sm > 96 * 1024 else 0)


@dataclass(frozen=True)
class ProtocolSpec:
    """One of the protocols by which a collective moves its bytes: a start, then steps over the links."""

    base_us: float  # before the first step
    step_us: float  # of each step, besides its bytes
    gb_s: float  # in one direction, 1e9 bytes a second
    # NCCL takes it for so many bytes that a rank sends at most, and so many more for each step.
    largest: float = math.inf
    largest_step: float = 0.0


@dataclass(frozen=True)
class LinkSpec:
    """A link between two GPUs. Each direction has its rate to itself."""

    name: str
    # A copy by an engine: its fixed time in us, and 1e9 bytes a second. None where there is no such copy.
    copy_us: float | None
    copy_gb_s: float
    event_us: float  # from an event of one GPU to what waits for it on the other
    # For collectives: for little data, which flags go with, for more, and for much. Of those that NCCL would
    # take for so many bytes, the quickest one runs.
    protocols: tuple[ProtocolSpec, ...]
    sends: tuple[ProtocolSpec, ...]  # the same for a send and its recv
    sms: int  # that a collective holds while it runs
    sources: tuple[tuple[str, str], ...]


def _with_sources(name: str, **constants: tuple[float, str]) -> DeviceSpec:
    values: dict[str, Any] = {key: value for key, (value, _) in constants.items()}
    return DeviceSpec(name, sources=tuple((k, s) for k, (_, s) in constants.items()), **values)


H200 = _with_sources(
    "H200",
    memory_bytes=(141 * 10**9, DATASHEET),
    sms=(132, "reported by the device (cudaDeviceProp.multiProcessorCount)"),
    clock_mhz=(1980.0, "read under load with nvidia-smi"),
    threads_per_sm=(2048, GUIDE),
    blocks_per_sm=(32, GUIDE),
    shared_bytes_per_sm=(228 * 1024, GUIDE),
    registers_per_sm=(64 * 1024, GUIDE),
    issue_per_clock=(4.0, "four warp schedulers an SM: NVIDIA H100 Tensor Core GPU Architecture"),
    alu_per_clock=(2.0, f"{THROUGHPUT}: compare, shift, logical: 64 results a clock"),
    special_per_clock=(0.5, f"{THROUGHPUT}: reciprocal, square root, exponential, sine: 16"),
    doubles_per_clock=(2.0, f"{THROUGHPUT}: 64 results a clock, 32 threads a warp"),
    sectors_per_clock=(4.0, "128 bytes: NVIDIA H100 Tensor Core GPU Architecture, L1 cache"),
    request_clocks=(0.3392, FITTED),
    block_clocks=(149.5, FITTED),
    l2_bytes=(60 * 2**20, "reported by the device (cudaDeviceProp.l2CacheSize)"),
    l2_gb_s=(5047, FITTED),
    l2_write_gb_s=(2692, FITTED),
    dram_gb_s=(4800.0, DATASHEET),
    launch_us=(1.067, FITTED),
    start_us=(2.392, _MLP),
    pause_us=(0.86, f"{GRAPH}, and the same kernels on a stream: relu, matvec_naive"),
    switch_us=(4.2, f"{GRAPH}, and the same on a stream: copies and kernels in turns"),
    unit_clocks=(1.677, FITTED),
    first_load_clocks=(211.8, FITTED),
    load_clocks=(290.0, CHAINS),
    hit_clocks=(40.0, CHAINS),
    barrier_clocks=(5.66, FITTED),
    shared_atomic_clocks=(97.1, FITTED),
    atomic_queue_clocks=(1.455, _WORDS),
    atomics_per_clock=(37.0, _WORDS),
    line_atomics_per_clock=(0.38, _WORDS),
    atomic_spread=(0.72, _WORDS),
    overlap=(2.335, FITTED),
    h2d_gb_s=(55.0, f"{MEASURED}: 256 MiB, pinned"),
    d2h_gb_s=(55.0, f"{MEASURED}: 256 MiB, pinned"),
    h2d_us=(2.5, f"{GRAPH}: 4 to 256 KiB"),
    d2h_us=(1.7, f"{GRAPH}: 4 to 256 KiB"),
    fill_us=(1.15, f"{GRAPH}: 16 to 256 KiB"),
    pageable_us=(10.42, _MLP),
    pageable_gb_s=(9.855, _MLP),
    submit_us=(0.7896, _CALLS),
    call_launch_us=(16.27, _CALLS),
    call_h2d_us=(6.384, _CALLS),
    call_d2h_us=(14.76, _CALLS),
    call_memset_us=(3.652, _CALLS),
    call_malloc_us=(2.268, _CALLS),
    call_event_us=(4.166, _CALLS),
    call_query_us=(1.832, _CALLS),
    replay_us=(3.4, f"{PREPARED}: 25 launches, less what one takes"),
    graph_launch_us=(1.9, f"{BRANCHES}: the call, with one branch"),
    graph_branch_us=(0.75, f"{BRANCHES}: the call 0.8 longer, the first nodes 0.73 apart"),
    graph_node_us=(0.2, f"{GRAPHS}: kernels and fills in turns, 0.1 to 0.4"),
    graph_decide_us=(7.7, f"{DECIDED}: `if` nodes in a row 8.54 apart, less 0.88 for a kernel"),
    graph_turn_us=(4.5, f"{DECIDED}: turns of a `while` node with one, two and eight kernels"),
    graph_instantiate_us=(0.7, f"{GRAPHS}: the slope from 1 to 200 kernels"),
    sync_us=(2.778, _MLP),
    wake_us=(24.2, _MLP),
)

NVLINK = LinkSpec(
    "NVLink",
    copy_us=3.01,
    copy_gb_s=394.6,
    event_us=5.2,
    protocols=(
        ProtocolSpec(5.98, 0.6, 164.6, largest=417e3, largest_step=649e3),
        ProtocolSpec(14.54, 1.9, 292.8),
        ProtocolSpec(101.3, 3.4, 341.0),
    ),
    sends=(ProtocolSpec(4.84, 0.6, 182.4), ProtocolSpec(4.91, 3.4, 364.6)),
    sms=24,
    sources=(
        *((name, _LINKS) for name in ("copy_us", "copy_gb_s", "event_us", "sends")),
        ("protocols", f"{_LINKS}; the steps, as those of sends: {TUNING}, ring on NVLink; {TABLE}"),
        ("sms", "NCCL's channels between two H200, a block each: NCCL_DEBUG=INFO, 2026-11-27"),
    ),
)
NETWORK = LinkSpec(
    "network",
    copy_us=None,
    copy_gb_s=4.68,
    event_us=0.0,
    # With flags on one channel, then on two, and without: flags take half of the link.
    protocols=(
        ProtocolSpec(4.79, 14.4, 1.79, largest=16 * 1024 - 1),
        ProtocolSpec(34.1, 14.4, 1.79, largest=32 * 1024),
        ProtocolSpec(11.2, 47.7, 3.581),
    ),
    sends=(ProtocolSpec(0.0, 14.4, 4.68),),
    sms=4,
    sources=(
        ("copy_us", "no GPU copies to the memory of another machine's by itself"),
        ("event_us", "no GPU waits for an event of another machine's"),
        *((name, SOCKETS) for name in ("copy_gb_s", "sends")),
        ("protocols", f"{SOCKETS}; the steps: {TUNING}, over a network; {CHANNEL}"),
        ("sms", "an estimate: NCCL's channels, a block each"),
    ),
)
