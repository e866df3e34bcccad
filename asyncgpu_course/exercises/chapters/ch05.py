"""Exercises of 05_scheduling: what each one checks."""

from collections.abc import Callable, Sequence
from typing import Any, cast
from unittest.mock import patch

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks import schedule
from asyncgpu_course.checks.operations import busy, cuda, round_trip
from asyncgpu_course.checks.rejection import Rejected, compared, must
from asyncgpu_course.checks.results import a_number
from asyncgpu_course.checks.sandbox import SLOW_US, call, observe, private_device, slow_memory
from asyncgpu_course.checks.trials import cases, runs
from asyncgpu_course.exercises.exercise import Exercise
from asyncgpu_course.internals import count


def _walks(steps: Sequence[int]) -> list[agt.DeviceOp[Any]]:
    """A job for each entry, with a kernel of its own name that walks so many steps."""
    rng = np.random.default_rng(0)
    slips = agt.h2d(rng.permutation(4096).astype(np.uint32), "next").sync().share()
    ops: list[agt.DeviceOp[Any]] = []
    for i, number in enumerate(steps):
        place = agt.h2d(np.arange(32, dtype=np.uint32), f"place{i}").sync()
        kernel = agt.Kernel(cuda("05_walk").replace("NAME", f"job{i}"))
        ops.append(kernel(number, slips, place.borrow(), grid=1, block=32))
    return ops


def _policy(answer: Callable[..., Any], name: str, *args: Any) -> agt.SchedulingPolicy:
    cause = f"this is a policy, made from your class: hand over `{name}` itself, without calling it"
    must(not isinstance(answer, agt.SchedulingPolicy), cause)
    policy = call(answer, *args)
    cause = f"`{name}` should be a subclass of `agt.SchedulingPolicy`"
    must(isinstance(policy, agt.SchedulingPolicy), cause)
    return policy


def _at_home(answer: Callable[..., Any], name: str, *args: Any) -> None:
    """Its streams are of the device that a policy belongs to, which need not be the current one."""
    policy = _policy(answer, name, *args)
    with private_device() as home:
        policy.bind(home)
    if hasattr(policy, "expect"):
        call(cast(Any, policy).expect, 1e6)
    stream = call(policy.next_stream)
    cause = "of a policy for another device than the current one, the stream isn't on that device: "
    must(stream.device is home, cause + "make it by `self.device.create_stream()`")


def _run_policy(policy: agt.SchedulingPolicy, steps: Sequence[int]) -> agt.Trace:
    """Have the policy place a job for each entry; it is told beforehand how long each one takes."""
    ops = _walks(steps)
    policy.bind(agt.current_device())

    def place_all() -> None:
        for op, number in zip(ops, steps, strict=True):
            cast(Any, policy).expect(number * SLOW_US)
            op.async_on(policy.next_stream())

    return observe(place_all).trace


def _jobs(trace: agt.Trace) -> list[agt.types.Span]:
    return [span for span in trace.device_spans if span.kind == "kernel"]


def _at_most(trace: agt.Trace, size: int) -> None:
    cause = f"{count(len(trace.streams), 'stream')} were used, and the pool has {size}"
    extra = [span for span in _jobs(trace) if span.stream not in trace.streams[:size]]
    must(len(trace.streams) <= size, cause, *extra[:1])


# ------------------------------------------------------------------ round robin
def _turns(policy: agt.SchedulingPolicy, number: int) -> agt.Trace:
    """Run operations one by one, as any program does that uses this policy."""
    ops = _walks([1] * number)
    busy()

    def run_all() -> None:
        cause = "the course's own `StreamPoolRoundRobin` picked the stream: write your own"
        own = patch.object(agt.StreamPoolRoundRobin, "next_stream", side_effect=Rejected(cause))
        with own, agt.using(policy=policy):
            for op in ops:
                op.sync()

    return observe(run_all).trace


@slow_memory()
def _round_robin(mine: Any, model: Any, size: int) -> None:
    """The policy uses so many streams, each in its turn, and none of them is another pool's."""
    number = 4 * size + 1
    expected = _turns(model(size), number)
    trace = _turns(_policy(mine, "RoundRobin", size), number)
    with compared(trace, expected):
        schedule.waits(trace, number, "a policy says which stream is next, and waits for nobody")
        _at_most(trace, size)
        jobs = _jobs(trace)
        for i, job in enumerate(jobs[:size]):
            before = [other for other in jobs[:i] if other.stream == job.stream]
            if before:
                cause = f"`{job.name}` went to the stream of `{before[0].name}`, although "
                raise Rejected(cause + "there was a stream that had no job yet", before[0], job)
        for turn, job in zip(jobs, jobs[size:], strict=False):
            cause = f"`{job.name}` did not go to the stream of `{turn.name}`, whose turn it was"
            must(job.stream == turn.stream, cause, turn, job)
    pools = [_policy(mine, "RoundRobin", size) for _ in range(2)]
    for pool in pools:
        pool.bind(agt.current_device())
    found = [call(pool.next_stream).number for _ in range(size) for pool in pools]
    cause = "two pools share a stream, or a turn: make each stream by `create_stream()`, "
    must(len(set(found)) == 2 * size, cause + "and keep it in `self`")
    _at_home(mine, "RoundRobin", size)


# ------------------------------------------------------------------ pool size
def _pool_size(mine: Any, model: Any, *sizes: int) -> None:
    """There are enough streams for no job to wait for one, and none that the device has no room for."""
    got, right = call(mine, *sizes), model(*sizes)
    a_number(got, "a number of streams", whole=True)
    cause = f"{count(got, 'stream')} won't be enough: a job would wait for a stream while the device has room"
    must(got >= right, cause)
    must(got <= right, f"{count(got, 'stream')} would be more than you can use: {right} will do")


DRAWN = np.random.default_rng(0).integers(1, (900, 90, 40), (60, 3)).tolist()
EXTREMES = [(100.9, 25.2, 16), (100.01, 25, 16), (1000, 10, 200), (0, 40, 16)]
POOLS = [(120, 40, 16), (100, 40, 16), (35, 40, 16), (1000, 25, 3), *EXTREMES, *map(tuple, DRAWN)]


# ------------------------------------------------------------------ least loaded
_CLOSE = 0.9


def _score(trace: agt.Trace, size: int) -> float:
    """The least time that `size` streams can take for these jobs, divided by the time that they took."""
    lengths = [span.duration for span in _jobs(trace)]
    return max(*lengths, sum(lengths) / size) / trace.metrics().device_makespan


@slow_memory()
def _least_loaded(mine: Any, model: Any, size: int, steps: Sequence[int], _beside: str) -> None:
    """The score is at least nine tenths of the solution's."""
    expected = _run_policy(model(size), steps)
    trace = _run_policy(_policy(mine, "LeastLoaded", size), steps)
    with compared(trace, expected):
        _at_most(trace, size)
        got, right = _score(trace, size), _score(expected, size)
        last = max(_jobs(trace), key=lambda span: span.end)
        cause = f"the score is {got:.2f}, and {right:.2f} is possible: `{last.name}` ends last, "
        must(got >= _CLOSE * right, cause + "on a stream that had more to do than the others", last)
    _at_home(mine, "LeastLoaded", size)


# ------------------------------------------------------------------ when it pays
HOST = "the host's calls are the highest wall"
ENGINE = "the copy engine of one direction is the highest wall"
SMS = "the SMs, which the kernels fill, are the highest wall"
_LONGEST = "the longest job is the highest wall"


def _copies(up: int, down: int, size: int = 1_000_000) -> list[agt.DeviceOp[Any]]:
    source = agt.pin(np.ones(size, np.float32))
    uploads: list[agt.DeviceOp[Any]] = [agt.h2d(source) for _ in range(up)]
    return uploads + [agt.d2h(agt.zeros(size).sync()) for _ in range(down)]


def _relus(size: int, block: int, number: int) -> list[agt.DeviceOp[Any]]:
    arrays = [agt.zeros(size).sync().partition(block) for _ in range(number)]
    return [agt.relu(size, blocks, blocks) for blocks in arrays]


def _wide(number: int) -> list[agt.DeviceOp[Any]]:
    """Jobs with blocks for a third of the device each."""
    rows, columns = 1400, 600
    given = [array.sync().share() for array in (agt.ones((rows, columns)), agt.ones(columns))]
    out = [agt.zeros(rows).sync().partition(1) for _ in range(number)]
    return [agt.matvec_naive(rows, columns, *given, y) for y in out]


def _pieces(steps: Sequence[int], alone: int) -> list[agt.DeviceOp[Any]]:
    """A job that walks in pieces, one after the other, and one in a single piece that is longer than each."""
    *pieces, other = _walks([*steps, alone])
    return [agt.zip(*pieces), other]


# In words, what limits each program, and a function that makes its operations.
PROGRAMS: list[tuple[str, str, Callable[[], list[agt.DeviceOp[Any]]]]] = [
    ("many small kernels", HOST, lambda: _relus(64, 64, 10)),
    ("small uploads", HOST, lambda: _copies(10, 0, 64)),
    ("uploads", ENGINE, lambda: _copies(4, 0)),
    ("downloads, and one upload", ENGINE, lambda: _copies(1, 3)),
    ("kernels that fill the device", SMS, lambda: _relus(150_000, 1, 4)),
    ("wide kernels and narrow ones", SMS, lambda: [*_wide(12), *_walks([200] * 3)]),
    ("long and narrow jobs", _LONGEST, lambda: _walks([400] * 4)),
    ("one very long job", _LONGEST, lambda: _walks([50, 1500, 50, 50])),
    ("jobs, of which one has many pieces", _LONGEST, lambda: _pieces([390, 250, 380, 300], 400)),
    ("a round trip", _LONGEST, lambda: [round_trip(1_000_000, 1.0)]),
]


@slow_memory(ordinal=1)
def _bound(mine: Any, model: Any, _name: str, wall: str, make: Callable[[], Any]) -> None:
    """The bound is the solution's, for programs that different things hold up."""
    ops, stream = make(), agt.create_stream()
    trace = observe(lambda: [*[op.async_on(stream) for op in ops], stream.synchronize()]).trace
    got, right = call(mine, trace), model(trace)
    a_number(got, "a time in µs")
    cause = f"{got:.0f} µs came out, and it should be {right:.0f} µs: in this program, {wall}"
    must(abs(got - right) <= 0.01 * right, cause)


# ------------------------------------------------------------------ challenge
CHALLENGE = [264, 16, 16, 16] * 3  # µs, every fourth long, as in the first picture of the chapter
SHOPS = [(CHALLENGE,), (CHALLENGE[::-1],), ([100] * 15,), (CHALLENGE,)]
_EARLY_US = 340.0


@slow_memory()
def _challenged(answer: Any, lengths: Sequence[int]) -> agt.Trace:
    walks = _walks([round((us - 1) / 1.018) for us in lengths])  # 1.018 µs a step, 1 µs to start
    return observe(answer, list(zip(walks, map(float, lengths), strict=True))).trace


def _closed_early(trace: agt.Trace, lengths: Sequence[int]) -> float | None:
    """Each job runs once; where some are long, none is left until the others are done."""
    schedule.each_once(trace, *(f"job{i}" for i in range(len(lengths))))
    last = max(trace.device_spans, key=lambda span: span.end).name
    hint = f"`{last}` ends last: what did it wait for?"
    return schedule.below(_EARLY_US, trace, hint) if max(lengths) > min(lengths) else None


BESIDE = ", after another policy got a very long one (what a policy knows belongs in `self`)"
MIXES = [
    (3, [900, 150, 150] * 3, ""),
    (3, [900, 150, 150] * 3, BESIDE),
    (3, [450, *[45] * 20], ""),
    (2, [600, 600, 200, 200, 200, 200, 900, 100], ""),
    (4, [300, 700, 100, 900, 200, 800, 400, 600, 150, 500, 250, 1000], ""),
]

CHAPTER_05 = (
    Exercise("05-round-robin", "A policy: round robin", "RoundRobin",
             cases(_round_robin, [(3,), (1,), (10,)], "a pool of {}")),
    Exercise("05-pool-size", "How many streams?", "streams_needed",
             cases(_pool_size, POOLS, "jobs of {} µs, one every {} µs, and room for {}")),
    Exercise("05-least-loaded", "A policy: least loaded", "LeastLoaded", cases(_least_loaded, MIXES,
                   "{1:job} on {0:stream}{2}")),
    Exercise("05-when-it-pays", "How far down can it go?", "best_possible",
             cases(_bound, PROGRAMS, "a program of {0}")),
    Exercise("05-challenge", "Challenge: close the shop early", "run_jobs",
             runs(_challenged, _closed_early, SHOPS, "jobs of {} µs")),
)  # fmt: skip
