"""Counts of what a launch did, for a timing model and for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# These fields of `Counts` are of the longest warp, of one word, or of each block or thread, so that more
# blocks and more launches do not add to them.
NOT_SUMMED = frozenset((
    "longest_chain", "chain_load_rounds", "chain_dependent_loads", "chain_doubles", "chain_fresh_loads",
    "chain_latency", "chain_busy", "chain_leftover_loads",
    "atomic_queue", "shared_bytes", "registers",
))  # fmt: skip


@dataclass(frozen=True)
class LineCounts:
    """Counts of one line of the source; the fields mean what they mean in `Counts`."""

    warp_instructions: int = 0
    flops: int = 0
    global_requests: int = 0
    global_sectors: int = 0
    shared_requests: int = 0
    bank_conflicts: int = 0
    divergent_branches: int = 0


@dataclass(frozen=True)
class Counts:
    """Dynamic counts of one launch.

    An *instruction* is an operation of the source as a compiler without much imagination would
    issue it for one warp: an arithmetic operation, comparison, branch, load, store, or a step of
    address arithmetic counts 1, a multiplication whose result is added counts 1 together with the
    addition; an integer division counts 16, a floating-point division, square root or
    transcendental function 8. A branch that splits a warp is charged on both sides. A loop of up to 32
    turns with constant bounds counts as unrolled: its counter, comparison and branch are free, so are
    indices that are made of nothing else, and an array of one thread with such indices is in
    registers. What does not change in a loop is computed in front of it, and not counted. A value that has
    been loaded is not loaded again, and not counted again, before something is stored or assigned.

    Exact are all numbers but those marked *sampled*. These are measured on up to 8 warps of each
    batch of blocks, evenly spread, on the first 16 executions of each access in the source and on
    each 13th one behind them, and scaled, for each access, by its exact number of requests.

    Attributes
    ----------
    threads, warps, blocks : int
        Of the launch. The last warp of a block may have fewer than 32 threads.
    warp_instructions : int
        Instructions issued, over all warps.
    longest_chain : int
        Instructions of the warp that issues the most.
    chain_load_rounds : int
        On that warp's path: global loads that follow each other, where the loads of one statement
        whose addresses do not depend on each other count as one round, and so do those of all turns of
        an unrolled loop. An innermost loop with constant steps and one exit is unrolled four times.
    chain_dependent_loads : int
        Those of these rounds whose address, or the branch that led to them, depends on a value
        loaded before: the ones that a compiler or a warp cannot overlap.
    chain_doubles : int
        Instructions on that warp's path that compute in double precision.
    chain_fresh_loads : int
        Loads of a warp, on average, for which its block needs a sector that the same load has not asked
        for before. Loads that go together count as one, as in `chain_load_rounds`. *Sampled*, on the first
        16 executions of each load.
    chain_latency : int
        Clocks of that warp if no other is there, for its own arithmetic and shared memory: how long results
        wait for each other. Turns of unrolled loops overlap, but for what one turn hands to the next.
    chain_busy : int
        Clocks for which its instructions, as a compiler makes them, keep the units of its scheduler busy.
    chain_leftover_loads : int
        Rounds of loads that come to these for a warp, on average, because the last turns of a loop that is
        unrolled four times go one by one. Below 0 where a compiler unrolls it more often.
    loop_iterations : int
        Loop bodies entered, over all warps.
    flops : int
        Floating-point additions, subtractions, multiplications, divisions and calls of mathematical
        functions by active lanes; a fused multiply-add is 2.
    special_functions : int
        Of these, divisions, square roots and transcendental functions.
    double_instructions : int
        Instructions that compute in double precision, over all warps.
    issued : int
        Instructions that a compiler makes of them, over all warps: otherwise than in `warp_instructions`,
        functions and divisions count as long as they are.
    alu_instructions : int
        Of these, comparisons, shifts and operations on bits, for which an SM has fewer units.
    global_load_requests, global_store_requests : int
        Loads and stores of global memory issued by a warp. Atomics are not among them.
    load_sectors, store_sectors : int
        32-byte sectors that these requests touch. *Sampled.*
    load_lines, store_lines : int
        128-byte lines that they touch. *Sampled.*
    fresh_sectors : int
        Of those that loads touch, such as their block has not had by the same load before. *Sampled*, on the
        first 16 executions of each load.
    load_bytes, store_bytes : int
        Bytes that active lanes ask for.
    load_bytes_needed, store_bytes_needed : int
        Different bytes among them, which is what a perfect cache would move. Exact for the first
        8 million lane accesses of a launch; beyond these, every byte between the lowest and the
        highest one that was touched is counted.
    shared_requests : int
        Loads and stores of shared memory issued by a warp.
    bank_conflicts : int
        Extra passes (wavefronts) that these need: for each request, the greatest number of
        different 4-byte words in one bank, less 1. *Sampled.*
    atomics, atomic_requests : int
        Atomic operations by lanes, and as issued by warps.
    global_atomics : int
        Of these operations those on global memory.
    shared_atomic_passes : int
        Of the requests those to shared memory, each as often as it names one word: lanes that meet in one
        take turns.
    atomic_queue : int
        Atomic operations on that word of global memory which gets the most of them.
    barriers : int
        Block barriers passed, over all blocks.
    branches, divergent_branches : int
        Conditions evaluated by a warp, and those on which its lanes did not agree.
    shared_bytes : int
        Shared memory of a block, static and dynamic.
    registers : int
        An estimate of the registers of a thread: the most that its variables take which are in scope at
        once, and 8. Variables that are no longer needed count; what unrolling needs more does not.
    lines : mapping of int to LineCounts
        The same by line of the source.
    """

    threads: int = 0
    warps: int = 0
    blocks: int = 0
    warp_instructions: int = 0
    longest_chain: int = 0
    chain_load_rounds: int = 0
    chain_dependent_loads: int = 0
    chain_doubles: int = 0
    chain_fresh_loads: int = 0
    chain_latency: int = 0
    chain_busy: int = 0
    chain_leftover_loads: int = 0
    loop_iterations: int = 0
    flops: int = 0
    special_functions: int = 0
    double_instructions: int = 0
    issued: int = 0
    alu_instructions: int = 0
    global_load_requests: int = 0
    global_store_requests: int = 0
    load_sectors: int = 0
    store_sectors: int = 0
    fresh_sectors: int = 0
    load_lines: int = 0
    store_lines: int = 0
    load_bytes: int = 0
    store_bytes: int = 0
    load_bytes_needed: int = 0
    store_bytes_needed: int = 0
    shared_requests: int = 0
    bank_conflicts: int = 0
    atomics: int = 0
    atomic_requests: int = 0
    global_atomics: int = 0
    shared_atomic_passes: int = 0
    atomic_queue: int = 0
    barriers: int = 0
    branches: int = 0
    divergent_branches: int = 0
    shared_bytes: int = 0
    registers: int = 0
    lines: Mapping[int, LineCounts] = field(default_factory=dict[int, LineCounts])
