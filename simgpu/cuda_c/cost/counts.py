"""Counts of what a launch did, for a timing model and for people."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

# These fields of `Counts` are of the longest warp, of one word, or of each block or thread, so that more
# blocks and more launches do not add to them.
NOT_SUMMED = frozenset((
    "longest_chain", "chain_load_rounds", "chain_doubles", "chain_fresh_loads",
    "chain_latency", "chain_busy", "chain_fused", "chain_hot",
    "atomic_lines", "atomic_queue", "shared_bytes", "registers",
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
    turns, or 128 short ones, with constant bounds counts as unrolled: its counter, comparison and branch
    are free, so are indices that are made of nothing else, and an array of one thread with such indices is in
    registers. What does not change in a loop is computed in front of it, and not counted. A value that has
    been loaded is not loaded again, and not counted again, before something is stored or assigned.

    Exact are all numbers but those marked *sampled*. These are measured on the first 16 executions of each
    access in the source, 16 from each power of 4 on, and each 13th one, and scaled, for each access, by its
    exact number of requests. Of each execution, up to 8 warps are looked at that have all lanes, evenly
    spread, and 8 that have not, and each kind is scaled by its number.
    """

    # Of the launch. The last warp of a block may have fewer than 32 threads.
    threads: int = 0
    warps: int = 0
    blocks: int = 0
    warp_instructions: int = 0  # issued, over all warps
    longest_chain: int = 0  # instructions of the warp that issues the most
    # On that warp's path: global loads that follow each other, where the loads of one statement whose
    # addresses do not depend on each other count as one round, and so do those of all turns of an unrolled
    # loop. An innermost loop with constant steps and one exit is unrolled up to sixteen times.
    chain_load_rounds: int = 0
    chain_doubles: int = 0  # instructions on that warp's path that compute in double precision
    # Loads for which a warp needs a sector that the same pointer has led none of its block to before: of the
    # warp that has most of them. Loads that go together count as one, as in `chain_load_rounds`. *Sampled*.
    chain_fresh_loads: int = 0
    # Clocks of that warp if no other is there, for its own arithmetic and shared memory: how long results
    # wait for each other. Turns of unrolled loops overlap, but for what one turn hands to the next.
    chain_latency: int = 0
    # Clocks for which its instructions, as a compiler makes them, keep the units of its scheduler busy.
    chain_busy: int = 0
    chain_fused: int = 0  # those of its instructions that multiply floats and add, in one
    loop_iterations: int = 0  # loop bodies entered, over all warps
    # Floating-point additions, subtractions, multiplications, divisions and calls of mathematical functions
    # by active lanes; a fused multiply-add is 2.
    flops: int = 0
    special_functions: int = 0  # of these, divisions, square roots and transcendental functions
    double_instructions: int = 0  # that compute in double precision, over all warps
    # Instructions that a compiler makes of them, over all warps: otherwise than in `warp_instructions`,
    # functions and divisions count as long as they are.
    issued: int = 0
    fused: int = 0  # of these, multiplications and additions in one, of floats
    # Of these, comparisons, shifts and operations on bits, for which an SM has fewer units.
    alu_instructions: int = 0
    # Loads and stores of global memory issued by a warp. Atomics are not among them.
    global_load_requests: int = 0
    global_store_requests: int = 0
    # Of the loads, those of asynchronous copies of less than 16 bytes a lane.
    async_requests: int = 0
    # 32-byte sectors that these requests touch. *Sampled.*
    load_sectors: int = 0
    store_sectors: int = 0
    once_stored: int = 0  # of these, what is stored in no loop, or in an unrolled one
    # Of those that loads touch, such as their block has not had by the same pointer before. *Sampled*.
    fresh_sectors: int = 0
    # 128-byte lines that they touch. *Sampled.*
    load_lines: int = 0
    store_lines: int = 0
    # Bytes that active lanes ask for.
    load_bytes: int = 0
    store_bytes: int = 0
    # Different bytes among them, which is what a perfect cache would move. Exact for the first 8 million lane
    # accesses of a launch; beyond these, every byte between the lowest and the highest one that was touched
    # is counted.
    load_bytes_needed: int = 0
    store_bytes_needed: int = 0
    shared_requests: int = 0  # loads and stores of shared memory issued by a warp
    # Extra passes (wavefronts) that these need: for each request, the greatest number of different 4-byte
    # words in one bank, less 1; of wide elements, less the passes that any order takes. *Sampled.*
    bank_conflicts: int = 0
    # Passes that all of them take: one for each 4 bytes of a lane, and more for conflicts. *Sampled.*
    shared_passes: int = 0
    # Passes (wavefronts) of the accesses as they are written, as an H200 takes them: fewer for wide ones, if
    # neighbours ask for the same. Those above are what the model of time charges. *Sampled.*
    shared_wavefronts: int = 0
    # Atomic operations by lanes, and as issued by warps.
    atomics: int = 0
    atomic_requests: int = 0
    global_atomics: int = 0  # of the operations by lanes, those on global memory
    # Of the requests those to shared memory, each as often as it names one word: lanes that meet in one take
    # turns.
    shared_atomic_passes: int = 0
    # Passes that those on global memory take: for each request and each sector, as many as lanes of it meet
    # in one word.
    atomic_passes: int = 0
    atomic_lines: int = 0  # lines of 128 bytes that these are spread over
    # Clocks by which those who needed results of a word kept it busy longer than it took them to come: over
    # the words that the first warp of the launch waited for; and the longest queue that nobody waits for.
    chain_hot: int = 0
    atomic_queue: int = 0  # operations on that word of global memory which gets the most of them
    barriers: int = 0  # block barriers passed, over all blocks
    # Conditions evaluated by a warp, and those on which its lanes did not agree.
    branches: int = 0
    divergent_branches: int = 0
    shared_bytes: int = 0  # shared memory of a block, static and dynamic
    # An estimate of the registers of a thread: the most that its variables take which are in scope at once,
    # and 8. Variables that are no longer needed count; what unrolling needs more does not.
    registers: int = 0
    # The same by line of the source.
    lines: Mapping[int, LineCounts] = field(default_factory=dict[int, LineCounts])


def combined(counts: Sequence[Counts], make: Callable[[str, list[int]], int]) -> Counts:
    """Counts made of several; `make` gets the name of each number, also of a line, and its values in all."""
    numbers = [field.name for field in fields(Counts) if field.name != "lines"]
    lines: dict[int, LineCounts] = {}
    for number in sorted({line for one in counts for line in one.lines}):
        each = [vars(one.lines[number]) for one in counts if number in one.lines]
        lines[number] = LineCounts(
            **{name: make(name, [e[name] for e in each]) for name in each[0]}
        )
    whole = {name: make(name, [getattr(one, name) for one in counts]) for name in numbers}
    return Counts(**whole, lines=lines)


_OF_ALL = {"threads", "warps", "blocks", "shared_bytes", "registers", "lines"}  # the same all along
_GROWN = [field.name for field in fields(Counts) if field.name not in _OF_ALL]


def counted_since(before: Counts, now: Counts) -> Counts:
    """What a launch did between two looks at its counts; what is of its blocks and threads stays as it is."""
    then, told = vars(before), vars(now)
    # Another warp may be the longest one by now.
    grown: dict[str, Any] = {name: max(0, told[name] - then[name]) for name in _GROWN}
    return Counts(**{**told, **grown})
