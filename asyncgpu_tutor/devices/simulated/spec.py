"""The constants that the simulated device's times are made of, each with its source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

GUIDE = "CUDA C++ Programming Guide, technical specifications per compute capability"
THROUGHPUT = "CUDA C++ Programming Guide, throughput of native arithmetic instructions"
DATASHEET = "NVIDIA H200 datasheet"
LUO = (
    'Luo et al., "Benchmarking and dissecting the NVIDIA Hopper GPU architecture via '
    'microbenchmarking", 2024'
)
GRAPH = (
    "measured: H200, driver 580.159, CuPy 14.2.0, 2026-11-21, median time a node of a CUDA graph of "
    "twenty equal ones"
)
GRAPHS = "measured by asyncgpu_tutor/devices/cuda/measure.py: H200, driver 580.159, CuPy 14.2.0, 2026-11-21"
BRANCHES = (
    "measured without a profiler: H200, driver 580.159, CuPy 14.2.0, 2026-11-22, 1 to 8 branches of 1 to 8 "
    "kernels, medians of 50 launches"
)
FITTED = "fitted to one half of the kernels in docs/fidelity.md: H200, driver 580.159, 2026-11-21"
MLP = "fitted to one half of the runs of the MLP in docs/fidelity.md: H200, Python 3.12, 2026-11-22"
CALLS = (
    "measured by asyncgpu_tutor/commands/calibrate through this package's own calls (H200, Python 3.12, "
    "2026-11-22), times a factor "
    "fitted to one half of the runs of the MLP: what runs once is slower than a loop"
)
MEASURED = "measured: H200, driver 580.159, CuPy 14.2.0, Python 3.12, 2026-11-20, medians"


@dataclass(frozen=True)
class DeviceSpec:
    """A GPU and the host in front of it, as far as the model of time knows them.

    Attributes
    ----------
    name : str
        For people.
    memory_bytes : int
        Device memory.
    sms : int
        Streaming multiprocessors.
    clock_mhz : float
        Clock of the SMs.
    threads_per_sm, blocks_per_sm, shared_bytes_per_sm, registers_per_sm : int
        What one SM can hold at once; together they limit occupancy.
    issue_per_clock : float
        Warp instructions that one SM issues in a clock.
    alu_per_clock, special_per_clock, doubles_per_clock : float
        Of these, such as compare, shift or work on bits; such as are special functions of the hardware; and
        such as compute in double precision.
    sectors_per_clock : float
        32-byte sectors of global memory that the load-store units of one SM pass in a clock.
    request_clocks : float
        Clocks that these units need for a request, besides one for each line of L1 that it touches.
    block_clocks : float
        Clocks that an SM needs to start a block.
    l2_bytes, l2_gb_s, l2_write_gb_s, dram_gb_s : int, float, float, float
        Size of the L2 cache; what it delivers, and what it takes in whole sectors; and what device memory
        delivers, in 1e9 bytes a second.
    launch_us : float
        Shortest time that a kernel takes on the device.
    start_us : float
        From the host's call to the start of the work on an idle device.
    pause_us, switch_us : float
        On one stream, from the end of a kernel to the start of the next; and between a copy and a kernel,
        or copies of both directions.
    unit_clocks : float
        Clocks that a warp which is alone needs for each clock that its instructions keep a unit busy. Where
        its results wait for each other longer than that, `Counts.chain_latency` holds.
    double_clocks : float
        Clocks that an instruction in double precision adds to that.
    first_load_clocks, load_clocks, hit_clocks : float
        Clocks until a warp's first load from global memory arrives; what each further round of loads
        adds where new sectors are needed, which a compiler's unrolling hides in part; and what one adds
        that waits for another and finds its sector in L1.
    barrier_clocks : float
        What a barrier adds to the longest warp.
    shared_atomic_clocks, atomic_queue_clocks : float
        What an atomic in shared memory adds to it, for each lane that has to wait its turn; and what one in
        global memory adds for each on the same word.
    atomics_per_clock : float
        Atomic operations on global memory that L2 does in a clock, where they go to few places.
    overlap : float
        How well the chain of the longest warp overlaps with what throughput limits: the exponent of the norm
        in which the two are added. 1: one waits for the other; infinity: the longer is all that counts.
    h2d_gb_s, d2h_gb_s, h2d_us, d2h_us : float
        Copies over the bus: bandwidth in 1e9 bytes a second, and the fixed time of one copy.
    fill_us : float
        The fixed time of a memset, and of a copy within the device.
    pageable_us, pageable_gb_s : float
        What a copy of pageable memory costs the host besides; and the rate at which it stages the bytes.
    submit_us : float
        What the host pays for running an operation at all.
    call_launch_us, call_h2d_us, call_d2h_us, call_memset_us, call_malloc_us : float
        What it pays for each piece of work in it, from building it to the driver's call.
    call_event_us, call_query_us : float
        The same for an event, and for asking whether it has passed.
    replay_us : float
        What it pays for each piece of work of a prepared pipeline, besides its submission.
    graph_launch_us : float
        What the host pays for launching a CUDA graph once more, however many nodes its one branch has.
    graph_branch_us : float
        What it pays for each further branch. The driver hands them to the device one after the other, so
        that the first node of a branch begins that much later than the one of the branch before.
    graph_node_us : float
        On the device, from the end of a kernel to the start of the next one in a graph, in place of
        `pause_us`. Between copies and kernels it is `switch_us`, as on a stream.
    graph_instantiate_us : float
        What the host pays for each node when a captured graph is made ready to be launched.
    sync_us : float
        From the end of the work to the return of a blocking wait.
    wake_us : float
        From the end of the work to the resumption of an awaiting task, which keeps the host busy.
    sources : tuple of (str, str)
        For each constant, where it is from.
    """

    name: str
    memory_bytes: int
    sms: int
    clock_mhz: float
    threads_per_sm: int
    blocks_per_sm: int
    shared_bytes_per_sm: int
    registers_per_sm: int
    issue_per_clock: float
    alu_per_clock: float
    special_per_clock: float
    doubles_per_clock: float
    sectors_per_clock: float
    request_clocks: float
    block_clocks: float
    l2_bytes: int
    l2_gb_s: float
    l2_write_gb_s: float
    dram_gb_s: float
    launch_us: float
    start_us: float
    pause_us: float
    switch_us: float
    unit_clocks: float
    double_clocks: float
    first_load_clocks: float
    load_clocks: float
    hit_clocks: float
    barrier_clocks: float
    shared_atomic_clocks: float
    atomic_queue_clocks: float
    atomics_per_clock: float
    overlap: float
    h2d_gb_s: float
    d2h_gb_s: float
    h2d_us: float
    d2h_us: float
    fill_us: float
    pageable_us: float
    pageable_gb_s: float
    submit_us: float
    call_launch_us: float
    call_h2d_us: float
    call_d2h_us: float
    call_memset_us: float
    call_malloc_us: float
    call_event_us: float
    call_query_us: float
    replay_us: float
    graph_launch_us: float
    graph_branch_us: float
    graph_node_us: float
    graph_instantiate_us: float
    sync_us: float
    wake_us: float
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
    request_clocks=(0.2815, FITTED),
    block_clocks=(151.8, FITTED),
    l2_bytes=(60 * 2**20, "reported by the device (cudaDeviceProp.l2CacheSize)"),
    l2_gb_s=(5047, FITTED),
    l2_write_gb_s=(2692, FITTED),
    dram_gb_s=(4800.0, DATASHEET),
    launch_us=(1.109, FITTED),
    start_us=(2.392, MLP),
    pause_us=(0.86, f"{GRAPH}, and the same kernels on a stream: relu, matvec_naive"),
    switch_us=(4.2, f"{GRAPH}, and the same on a stream: copies and kernels in turns"),
    unit_clocks=(1.562, FITTED),
    double_clocks=(2.804, FITTED),
    first_load_clocks=(146.6, FITTED),
    load_clocks=(296, FITTED),
    hit_clocks=(40.0, f"{LUO}, latency of L1"),
    barrier_clocks=(13.3, FITTED),
    shared_atomic_clocks=(150.1, FITTED),
    atomic_queue_clocks=(0.1118, FITTED),
    atomics_per_clock=(10.75, FITTED),
    overlap=(2.803, FITTED),
    h2d_gb_s=(55.0, f"{MEASURED}: 256 MiB, pinned"),
    d2h_gb_s=(55.0, f"{MEASURED}: 256 MiB, pinned"),
    h2d_us=(2.5, f"{GRAPH}: 4 to 256 KiB"),
    d2h_us=(1.7, f"{GRAPH}: 4 to 256 KiB"),
    fill_us=(1.15, f"{GRAPH}: 16 to 256 KiB"),
    pageable_us=(10.42, MLP),
    pageable_gb_s=(9.855, MLP),
    submit_us=(0.7896, CALLS),
    call_launch_us=(16.27, CALLS),
    call_h2d_us=(6.384, CALLS),
    call_d2h_us=(14.76, CALLS),
    call_memset_us=(3.652, CALLS),
    call_malloc_us=(2.268, CALLS),
    call_event_us=(4.166, CALLS),
    call_query_us=(1.832, CALLS),
    replay_us=(3.0, "an estimate"),
    graph_launch_us=(1.9, f"{BRANCHES}: the call, with one branch"),
    graph_branch_us=(0.75, f"{BRANCHES}: the call 0.8 longer, the first nodes 0.73 apart"),
    graph_node_us=(0.2, f"{GRAPHS}: kernels and fills in turns, 0.1 to 0.4"),
    graph_instantiate_us=(0.7, f"{GRAPHS}: the slope from 1 to 200 kernels"),
    sync_us=(2.778, MLP),
    wake_us=(24.2, MLP),
)
