"""Exercises of 05_scheduling: what each one checks."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.checks.results import a_number
from asyncgpu_tutor.exercises.checks.schedule import below, launches
from asyncgpu_tutor.exercises.exercise import Exercise, Rejected, case, compared
from asyncgpu_tutor.exercises.internals import count, find_spec, lane_of
from asyncgpu_tutor.exercises.sandbox import call, observe, private_device

# Each step needs the one before it, so a job takes as long as one likes and still fills one block only.
WALK = r"""
extern "C" __global__ void NAME(unsigned int steps, const unsigned int* next, unsigned int* place)
{
    unsigned int here = place[threadIdx.x];
    for (unsigned int s = 0; s < steps; s++) {
        here = next[here];
    }
    place[threadIdx.x] = here;
}
"""
STEP_US = 1.0


@contextmanager
def _slow_memory() -> Generator[None]:
    """A device on which a step takes about `STEP_US`, so that long jobs are quickly simulated."""
    spec = find_spec("h200")
    spec = replace(spec, name="H200 with slow memory", load_clocks=STEP_US * spec.clock_mhz)
    with private_device(spec=spec):
        yield


def _walks(steps: Sequence[int]) -> list[agt.DeviceOp[Any]]:
    """A job for each entry, with a kernel of its own name that walks so many steps."""
    rng = np.random.default_rng(0)
    slips = agt.h2d(rng.permutation(4096).astype(np.uint32), "next").sync().share()
    ops: list[agt.DeviceOp[Any]] = []
    for i, number in enumerate(steps):
        place = agt.h2d(np.arange(32, dtype=np.uint32), f"place{i}").sync()
        kernel = agt.Kernel(WALK.replace("NAME", f"job{i}"))
        ops.append(kernel(number, slips, place.borrow(), grid=1, block=32).named(f"job{i}"))
    return ops


def _policy(answer: Callable[..., object], name: str, *args: Any) -> agt.SchedulingPolicy:
    if isinstance(answer, agt.SchedulingPolicy):
        raise Rejected(
            f"the class is wanted here, and this is a policy that was made of one: hand over `{name}` "
            "itself, and the check makes its own"
        )
    policy = call(answer, *args)
    if not isinstance(policy, agt.SchedulingPolicy):
        raise Rejected(f"`{name}` should be a subclass of `agt.SchedulingPolicy`")
    return policy


def _run(policy: agt.SchedulingPolicy, steps: Sequence[int]) -> agt.Trace:
    """Have the policy place a job for each entry; it is told beforehand how long each one takes."""
    ops = _walks(steps)
    policy.bind(agt.current_device())

    def place_all() -> None:
        for op, number in zip(ops, steps, strict=True):
            cast(Any, policy).expect(number * STEP_US)
            op.async_on(policy.next_stream())
        agt.synchronize()

    return observe(place_all).trace


def _jobs(trace: agt.Trace) -> list[agt.types.Span]:
    return [span for span in trace.device_spans if span.kind == "kernel"]


def _at_most(trace: agt.Trace, size: int) -> None:
    if len(trace.streams) > size:
        extra = trace.streams[size]
        raise Rejected(
            f"{count(len(trace.streams), 'stream')} were used, and the pool has {size}",
            *[span for span in _jobs(trace) if span.stream == extra][:1],
        )


# ------------------------------------------------------------------ round robin
def _turns(policy: agt.SchedulingPolicy, number: int) -> agt.Trace:
    """Run operations one by one, as any program does that uses this policy."""
    ops = _walks([1] * number)

    def run_all() -> None:
        with agt.using(policy=policy):
            for op in ops:
                op.sync()

    return observe(run_all).trace


@_slow_memory()
def check_round_robin(mine: Any, model: Any) -> None:
    """The policy uses so many streams, each in its turn, and none of them is another pool's."""
    for size in (3, 1, 4):
        number = 2 * size + 1
        expected = _turns(model(size), number)
        policy = _policy(mine, "RoundRobin", size)
        trace = _turns(policy, number)
        with case(f"a pool of {size}"), compared(trace, expected):
            _at_most(trace, size)
            jobs = _jobs(trace)
            for i, job in enumerate(jobs):
                before = [other for other in jobs[:i] if other.stream == job.stream]
                if i < size and before:
                    raise Rejected(
                        f"`{job.name}` went to the stream of `{before[0].name}`, and a stream that had "
                        "nothing yet was there",
                        before[0],
                        job,
                    )
                if i >= size and job.stream != jobs[i - size].stream:
                    raise Rejected(
                        f"`{job.name}` did not go to the stream of `{jobs[i - size].name}`, whose turn "
                        "it was",
                        jobs[i - size],
                        job,
                    )
        other = _turns(_policy(mine, "RoundRobin", size), 1)
        if set(other.streams) & set(trace.streams):
            raise Rejected(
                "two pools share a stream: what belongs to one policy is made in its `__init__`, and "
                "kept in `self`"
            )
    early = _policy(mine, "RoundRobin", 2)
    with private_device(), case("a policy that was made before its device was chosen"):
        _turns(early, 2)


# ------------------------------------------------------------------ pool size
def check_pool_size(mine: Any, model: Any) -> None:
    """There are enough streams for no job to wait for one, and none that the device has no room for."""
    rng = np.random.default_rng(0)
    drawn = [tuple(int(n) for n in rng.integers(1, high)) for high in [(900, 90, 40)] * 60]
    for length, pace, room in [(120, 40, 16), (100, 40, 16), (35, 40, 16), (1000, 25, 3), *drawn]:
        got, right = call(mine, length, pace, room), model(length, pace, room)
        with case(f"jobs of {length} µs, one every {pace} µs, and room for {room}"):
            a_number(got, "a number of streams", whole=True)
            if got < right:
                raise Rejected(
                    f"{count(got, 'stream')} will not do: a job would wait for a stream while the device has "
                    "room"
                )
            if got > right:
                raise Rejected(
                    f"{count(got, 'stream')} are more than can be of use: {right} will do"
                )


# ------------------------------------------------------------------ least loaded
MIXES = [
    (3, [900, 150, 150] * 3),
    (2, [600, 600, 200, 200, 200, 200, 900, 100]),
    (4, [300, 700, 100, 900, 200, 800, 400, 600, 150, 500, 250, 1000]),
]
CLOSE = 0.9


def _score(trace: agt.Trace, size: int) -> float:
    """The least time that `size` streams can take for these jobs, divided by the time that they took."""
    lengths = [span.duration for span in _jobs(trace)]
    return max(*lengths, sum(lengths) / size) / trace.metrics().device_makespan


@_slow_memory()
def check_least_loaded(mine: Any, model: Any) -> None:
    """The score is at least nine tenths of the solution's, on each mix."""
    for size, steps in MIXES:
        expected = _run(model(size), steps)
        trace = _run(_policy(mine, "LeastLoaded", size), steps)
        with (
            case(f"{len(steps)} jobs on {count(size, 'stream')}"),
            compared(trace, expected),
        ):
            _at_most(trace, size)
            got, right = _score(trace, size), _score(expected, size)
            if got < CLOSE * right:
                last = max(_jobs(trace), key=lambda span: span.end)
                raise Rejected(
                    f"the score is {got:.2f}, and {right:.2f} can be had: `{last.name}` ends last, on a "
                    "stream that had more to do than others",
                    last,
                )


# ------------------------------------------------------------------ express lanes
@_slow_memory()
def check_express(mine: Any, model: Any) -> None:
    """Short jobs never stand behind long ones, and take turns on all streams but one."""
    for size, limit, steps in [
        (3, 100, [600, 50, 50, 600, 50, 50, 50, 50, 600]),
        (2, 100, [50, 700, 50, 50, 700]),
        (3, 100, [50, 600, 50, 600, 50, 600, 50]),
        (4, 300, [500, 200, 150, 300, 500, 200, 300]),
    ]:
        expected = _run(model(size, float(limit)), steps)
        trace = _run(_policy(mine, "Express", size, float(limit)), steps)
        with (
            case(f"{len(steps)} jobs on {count(size, 'stream')} and a limit of {limit} µs"),
            compared(trace, expected),
        ):
            _at_most(trace, size)
            jobs = _jobs(trace)
            long = [job for job, us in zip(jobs, steps, strict=True) if us > limit]
            short = [job for job in jobs if job not in long]
            for job in short:
                ahead = [other for other in long if other.stream == job.stream]
                if ahead:
                    us = steps[jobs.index(job)]
                    raise Rejected(
                        f"`{job.name}` takes {us} µs, which is not more than the limit, and shares "
                        f"{lane_of(trace, job)} with `{ahead[0].name}`, which is long",
                        ahead[0],
                        job,
                    )
            if len({job.stream for job in long}) > 1:
                raise Rejected("the long jobs belong on one stream", *long[:2])
            turns = size - 1
            for i in range(len(short) - turns + 1):
                row = short[i : i + turns]
                if len({job.stream for job in row}) < turns:
                    names = ", ".join(f"`{job.name}`" for job in row)
                    raise Rejected(
                        f"the short jobs should take turns on {count(turns, 'stream')}, and of {names}, "
                        "which came one after the other, two went to the same stream",
                        *row,
                    )


# ------------------------------------------------------------------ when it pays
def _programs() -> dict[str, tuple[str, Callable[[], list[agt.DeviceOp[Any]]]]]:
    """By name, what limits each program, and a function that makes its operations."""
    size = 1_000_000
    source = agt.pinned(size)
    source[:] = 1.0
    small = agt.zeros(64, name="small").sync()
    large = agt.zeros(150_000, name="large").sync()
    data = agt.zeros(size, name="data").sync()

    def relus(array: Any, block: int, number: int) -> list[agt.DeviceOp[Any]]:
        blocks = array.borrow().partition(block)
        return [agt.relu(array.size, blocks, blocks) for _ in range(number)]

    return {
        "many small kernels": (HOST, lambda: relus(small, 64, 10)),
        "uploads": (ENGINE, lambda: [agt.h2d(source) for _ in range(4)]),
        "downloads, and one upload": (
            ENGINE,
            lambda: [agt.h2d(source), *[agt.d2h(data.borrow()) for _ in range(3)]],
        ),
        "kernels that fill the device": (SMS, lambda: relus(large, 1, 4)),
        "long and narrow jobs": (LONGEST, lambda: _walks([400] * 4)),
        "one very long job": (LONGEST, lambda: _walks([50, 1500, 50, 50])),
        "jobs, of which one has many pieces": (LONGEST, lambda: _pieces([300] * 5, 400)),
    }


def _pieces(steps: Sequence[int], alone: int) -> list[agt.DeviceOp[Any]]:
    """A job that walks in pieces, one after the other, and one in a single piece that is longer than each."""
    *pieces, other = _walks([*steps, alone])
    return [agt.zip(*pieces), other]


HOST = "the host's calls are the highest wall"
ENGINE = "the copy engine of one direction is the highest wall"
SMS = "the SMs, which the kernels fill, are the highest wall"
LONGEST = "the longest job is the highest wall"


@_slow_memory()
def check_when_it_pays(mine: Any, model: Any) -> None:
    """The bound is the solution's, for programs that different things hold up."""
    for name, (wall, make) in _programs().items():
        ops = make()
        stream = agt.current_device().create_stream()

        def on_one(ops: list[agt.DeviceOp[Any]] = ops, stream: Any = stream) -> None:
            for op in ops:
                op.async_on(stream)
            stream.synchronize()

        trace = observe(on_one).trace
        got, right = call(mine, trace), model(trace)
        a_number(got, "a time in µs")
        if abs(got - right) > 0.01 * right:
            raise Rejected(
                f"for a program of {name}, {got:.0f} µs came out, and {right:.0f} µs is right: {wall} there"
            )


# ------------------------------------------------------------------ challenge
CHALLENGE = [258, 16, 16, 16] * 3  # µs, every fourth long, as in the first picture of the chapter
EARLY_US = 430.0


@_slow_memory()
def check_run_jobs(mine: Any, model: Any) -> float:
    """Each job runs once, and all are done before the last would be that came in the given order."""
    expected = _challenged(model)
    trace = _challenged(mine)
    with compared(trace, expected):
        for i in range(len(CHALLENGE)):
            launches(trace, f"job{i}", 1)
        return below(EARLY_US, trace)


def _challenged(answer: Any) -> agt.Trace:
    jobs = list(zip(_walks(CHALLENGE), map(float, CHALLENGE), strict=True))
    return observe(answer, jobs).trace


EXERCISES = (
    Exercise("05-round-robin", "A policy: round robin", "RoundRobin", check_round_robin),
    Exercise("05-pool-size", "How many streams?", "streams_needed", check_pool_size),
    Exercise("05-least-loaded", "A policy: least loaded", "LeastLoaded", check_least_loaded),
    Exercise("05-express", "A policy: express lanes", "Express", check_express),
    Exercise("05-when-it-pays", "How far down can it go?", "best_possible", check_when_it_pays),
    Exercise("05-challenge", "Challenge: close the shop early", "run_jobs", check_run_jobs),
)
