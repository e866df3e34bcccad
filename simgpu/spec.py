"""The constants that the simulated device's times are made of, each with its source.

What they mean is here, and what they are in constants.toml.
"""

import math
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CONSTANTS = tomllib.loads(Path(__file__).with_name("constants.toml").read_text(encoding="utf-8"))
GUIDE: str = CONSTANTS["texts"]["GUIDE"]
THROUGHPUT: str = CONSTANTS["texts"]["THROUGHPUT"]


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
    # A copy by an engine: its fixed time in us, and 1e9 bytes a second. Infinite where there is no such copy.
    copy_us: float
    copy_gb_s: float
    event_us: float  # from an event of one GPU to what waits for it on the other
    # For collectives: for little data, which flags go with, for more, and for much. Of those that NCCL would
    # take for so many bytes, the quickest one runs.
    protocols: tuple[ProtocolSpec, ...]
    sends: tuple[ProtocolSpec, ...]  # the same for a send and its recv
    sms: int  # that a collective holds while it runs
    sources: tuple[tuple[str, str], ...]


def _constants(name: str) -> dict[str, Any]:
    """What the file has of a GPU or a link."""
    rows = CONSTANTS[name].items()
    sources = tuple((key, source.format(**CONSTANTS["texts"])) for key, (_, source) in rows)
    return {"name": name, "sources": sources, **{key: value for key, (value, _) in rows}}


def _link(name: str) -> LinkSpec:
    known = _constants(name)
    for way in ("protocols", "sends"):
        known[way] = tuple(ProtocolSpec(**row) for row in known[way])
    return LinkSpec(**known)


H200 = DeviceSpec(**_constants("H200"))
NVLINK, NETWORK = _link("NVLink"), _link("network")
