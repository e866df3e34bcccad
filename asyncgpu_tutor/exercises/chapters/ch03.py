"""Exercises of 03_lazy_operations: what each one checks."""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from contextlib import contextmanager
from typing import Any, cast
from unittest.mock import patch

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.checks.building import built
from asyncgpu_tutor.exercises.checks.operations import noise
from asyncgpu_tutor.exercises.checks.results import equal, in_order, of_dtype
from asyncgpu_tutor.exercises.checks.schedule import (
    a_kernel_ran,
    below,
    launches,
    never_blocks,
    overlapping,
    waits,
)
from asyncgpu_tutor.exercises.exercise import Exercise, Rejected, case, compared
from asyncgpu_tutor.exercises.internals import Download, Make, lane_of
from asyncgpu_tutor.exercises.sandbox import Observed, call_plain, neighbour, observe

JOB = "job"
TURNS = 100


@contextmanager
def _by_hand() -> Generator[None]:
    """Reject an answer if one of the course's own leaf operations runs in the block, whatever calls it."""
    ran: list[str] = []

    def noted(kind: type[agt.DeviceOp[Any]]) -> Any:
        plain = kind._enqueue

        def enqueue(op: agt.DeviceOp[Any], context: agt.types.ExecutionContext) -> Any:
            ran.append(op.label)
            return plain(op, context)

        return patch.object(kind, "_enqueue", enqueue)

    with noted(Download), noted(Make):
        yield
    if ran:
        raise Rejected(
            f"the course's own `{ran[0]}` did the work: build one by hand, with `agt.with_context` and the "
            "verbs of the `context`"
        )


def _on_device(result: object) -> agt.DeviceArray:
    if not isinstance(result, agt.DeviceArray):
        raise Rejected(
            f"an array on the device should come out, and this did: {type(result).__name__}"
        )
    return result


def _content(array: agt.DeviceArray) -> Any:
    return agt.d2h(array).sync()


# ------------------------------------------------------------------ leaves by hand
def _arrays() -> list[Any]:
    return [
        agt.pin(noise(1, 1000)),
        agt.pin(np.arange(12, dtype=np.int32).reshape(3, 4)),
        agt.pin(noise(2, 5, 7).astype(np.float64)),
    ]


def check_upload(mine: Any, model: Any) -> None:
    """Building runs nothing; the run copies, once, what the host array holds by then."""
    for host in _arrays():
        expected = observe(model(host).sync).trace
        with case(f"an array of shape {host.shape} and dtype {host.dtype}"):
            op = built("upload", mine, expected, host)
            host[...] = host + 1
            with _by_hand():
                run = observe(op.sync)
            with compared(run.trace, expected):
                launches(run.trace, "h2d", 1)
            array = _on_device(run.result)
            of_dtype(array, host.dtype)
        with case("a host array that changed before the operation was run"):
            equal(_content(array), host)


def check_blank(mine: Any, model: Any) -> None:
    """Building runs nothing; the run has one memset, and yields zeros of this shape and dtype."""
    for shape, dtype in [((1000,), "float32"), ((3, 4), "int32"), ((5, 7), "float64")]:
        expected = observe(model(shape, dtype).sync).trace
        with case(f"shape {shape} and dtype {dtype}"):
            op = built("blank", mine, expected, shape, dtype)
            with _by_hand():
                run = observe(op.sync)
            with compared(run.trace, expected):
                launches(run.trace, "memset", 1)
            array = _on_device(run.result)
            of_dtype(array, dtype)
            equal(_content(array), np.zeros(shape, dtype))


def check_download(mine: Any, model: Any) -> None:
    """Building runs nothing; the run copies once, and yields a NumPy array to whoever ran it."""
    for host in _arrays():
        expected = observe(model(agt.h2d(host).sync()).sync).trace
        with case(f"an array of shape {host.shape} and dtype {host.dtype}"):
            op = built("download", mine, expected, agt.h2d(host).sync())
            with _by_hand():
                run = observe(op.sync)
            with compared(run.trace, expected):
                launches(run.trace, "d2h", 1)
            equal(run.result, host)
            of_dtype(run.result, host.dtype)


# ------------------------------------------------------------------ running
def check_twice(mine: Any, model: Any) -> None:
    """Each of three runs of one operation uploads what the array holds by then, and computes anew."""
    for seed, n in [(1, 1000), (2, 333)]:
        x = agt.pin(noise(seed, n))
        expected = observe(model(x).sync).trace
        op = built("positive", mine, expected, x)
        for number in (1, 2, 3):
            x[:] = noise(seed + 10 * number, n)
            with case(f"run {number} of one operation"):
                run = observe(op.sync)
                with compared(run.trace, expected):
                    launches(run.trace, "h2d", 1)
                    launches(run.trace, "relu", 1)
                equal(run.result, np.maximum(x, 0))


def check_which_way(mine: Any, model: Any) -> None:
    """Both run on the given stream, the job is done while the first is at work, and the host waits once."""
    for seed, n, us in [(1, 1_000_000, 60.0), (2, 500_000, 40.0)]:
        host = agt.pin(noise(seed, n))
        expected = _loaded_and_fetched(model, host, us)[1]
        result, trace, number = _loaded_and_fetched(mine, host, us)
        with compared(trace, expected):
            for span in trace.device_spans:
                if span.stream != number:
                    raise Rejected(
                        f"`{span.name}` ran on {lane_of(trace, span)}, which is not the stream that was "
                        "given",
                        span,
                    )
            launches(trace, "h2d", 1)
            launches(trace, JOB, 1)
            overlapping(trace, JOB, "start both, do the job, and only then wait")
            waits(trace, 1, "the stream keeps `fetch` behind `load`, so wait once, at the end")
        _complete(result, host)


def _complete(result: Any, host: Any) -> None:
    with case(f"{host.size} elements"):
        equal(result, host)


def _loaded_and_fetched(answer: Any, host: Any, us: float) -> tuple[Any, agt.Trace, int]:
    """Try an answer on a copy to the device and one back: its result, its trace, its stream's number."""
    array, stream = agt.zeros(host.size).sync(), agt.create_stream()

    def enqueue(context: agt.types.ExecutionContext) -> agt.DeviceOp[None]:
        context.copy_from_host(array, host)
        return agt.value(None)

    load = agt.with_context(enqueue).named("load")
    fetch = agt.d2h(array.borrow()).named("fetch")

    def run() -> Any:
        got = call_plain(answer, load, fetch, lambda: agt.work(us, JOB), stream)
        return np.asarray(got)  # raises if the copy has not arrived

    observed = observe(run)
    return observed.result, observed.trace, stream.number


def hostile_which_way(mine: Any, _model: Any) -> None:
    """The result is complete, however long the device takes."""
    host = agt.pin(noise(3, 1000))
    _complete(_loaded_and_fetched(mine, host, 10.0)[0], host)


def check_largest(mine: Any, model: Any) -> None:
    """The largest number comes back, and other tasks have their turns meanwhile."""
    # Large enough that the copies outlast the calls: only then does anybody wait.
    for seed, n, middle in [(1, 100_000, 0), (2, 400_000, -10)]:
        x = agt.pin(noise(seed, n) + np.float32(middle))
        expected = _with_neighbour(model, x).trace
        run = _with_neighbour(mine, x)
        with compared(run.trace, expected):
            launches(run.trace, "d2h", 1)
            never_blocks(run.trace)
        found, turns = run.result
        if not turns:
            raise Rejected(
                "no other task had a turn while this one waited: a loop that asks again and again keeps "
                "everybody waiting, too"
            )
        _is_largest(found, x)


def hostile_largest(mine: Any, _model: Any) -> None:
    """The number is there, however long the device takes."""
    x = agt.pin(noise(3, 1000) - 10)
    _is_largest(_with_neighbour(mine, x).result[0], x)


def _with_neighbour(answer: Any, x: Any) -> Observed[tuple[Any, int]]:
    """Try an answer on a round trip of `x`: its result, and how many turns another task had meanwhile."""
    op = agt.h2d(x).to_host()

    async def main() -> Any:
        async with neighbour(TURNS) as turns:
            waiting = answer(op)
            if not isinstance(waiting, Awaitable):
                raise Rejected("`largest` should be a coroutine: write it with `async def`")
            before = turns()
            found = await cast(Awaitable[Any], waiting)
            return found, turns() - before

    return cast(Observed[tuple[Any, int]], observe(main))


def _is_largest(result: Any, x: Any) -> None:
    if np.ndim(result) or result != x.max():
        shown = type(result).__name__ if np.ndim(result) else repr(result)
        raise Rejected(f"the largest number is {x.max():.6g}, and this came back: {shown}")


# ------------------------------------------------------------------ challenge
SMALL_ARRAYS_US = 200.0


def check_small_arrays(mine: Any, model: Any) -> float:
    """Each run computes, on the device, with what the arrays hold by then, and takes few calls."""
    hosts = [agt.pin(noise(seed, 1000)) for seed in range(16)]
    expected = observe(model(hosts).sync).trace
    op = built("small_arrays", mine, expected, hosts)
    run = observe(op.sync)
    for number in (1, 2):
        for seed, host in enumerate(hosts):
            host[:] = noise(seed + 100 * number, 1000)
        with case(f"what the arrays hold in run {number}"):
            run = observe(op.sync)
            result: Any = run.result
            rows = list(result) if np.ndim(result) == 2 else result
            in_order("small_arrays", rows, [np.maximum(host, 0) for host in hosts], "array")
    with compared(run.trace, expected):
        a_kernel_ran(run.trace)
        return below(SMALL_ARRAYS_US, run.trace)


EXERCISES = (
    Exercise("03-h2d", "By hand: a copy to the device", "upload", check_upload),
    Exercise("03-zeros", "By hand: an array of zeros", "blank", check_blank),
    Exercise("03-d2h", "By hand: a copy to the host", "download", check_download),
    Exercise("03-recipe-twice", "Good for any number of runs", "positive", check_twice),
    Exercise(
        "03-which-way", "Which way to run?", "load_and_fetch", check_which_way, hostile_which_way
    ),
    Exercise(
        "03-largest", "Look inside, without blocking", "largest", check_largest, hostile_largest
    ),
    Exercise("03-challenge", "Challenge: sixteen small arrays", "small_arrays", check_small_arrays),
)
