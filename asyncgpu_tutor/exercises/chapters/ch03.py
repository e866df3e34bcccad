"""Exercises of 03_lazy_operations: what each one checks."""

from __future__ import annotations

from types import CodeType
from typing import Any

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.checks import (
    built,
    equal,
    launches,
    never_blocks,
    noise,
    of_dtype,
    overlapping,
    waits,
)
from asyncgpu_tutor.exercises.exercise import Exercise, Rejected, case, compared
from asyncgpu_tutor.exercises.internals import WithContext, count
from asyncgpu_tutor.exercises.sandbox import call_plain, observe

__all__ = ["EXERCISES"]

JOB = "job"


OWN_LEAVES = frozenset({"arange", "d2h", "full", "h2d", "ones", "to_host", "zeros"})


def _names(code: object) -> set[str]:
    """The names that a function's code uses, and those that functions inside of it use."""
    if not isinstance(code, CodeType):
        return set()
    return set(code.co_names).union(*(_names(constant) for constant in code.co_consts))


def _by_hand(op: agt.DeviceOp[Any]) -> None:
    """Some part of the operation was made with `with_context`."""
    parts = [op]
    while parts:
        part = parts.pop()
        if isinstance(part, WithContext):
            return
        parts.extend(part._parts())
    raise Rejected(
        f"that is the course's own `{op.label}`: build one by hand, with `agt.with_context`"
    )


def _with_verbs(op: agt.DeviceOp[Any]) -> None:
    """The function that was given to `with_context` leaves nothing to the course's own operations."""
    function = op._function if isinstance(op, WithContext) else None
    borrowed = OWN_LEAVES.intersection(_names(getattr(function, "__code__", None)))
    if borrowed:
        raise Rejected(
            f"the function calls the course's own `{min(borrowed)}`: use the verbs of the `context` that "
            "it is given"
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
            _by_hand(op)
            host[...] = host + 1
            run = observe(op.sync)
            with compared(run.trace, expected):
                launches(run.trace, "h2d", 1)
            array = _on_device(run.result)
            of_dtype(array, host.dtype)
            _with_verbs(op)
        with case("a host array that changed before the operation was run"):
            equal(_content(array), host)


def check_blank(mine: Any, model: Any) -> None:
    """Building runs nothing; the run has one memset, and yields zeros of this shape and dtype."""
    for shape, dtype in [((1000,), "float32"), ((3, 4), "int32"), ((5, 7), "float64")]:
        expected = observe(model(shape, dtype).sync).trace
        with case(f"shape {shape} and dtype {dtype}"):
            op = built("blank", mine, expected, shape, dtype)
            run = observe(op.sync)
            with compared(run.trace, expected):
                launches(run.trace, "memset", 1)
            array = _on_device(run.result)
            of_dtype(array, dtype)
            _by_hand(op)
            _with_verbs(op)
            equal(_content(array), np.zeros(shape, dtype))


def check_download(mine: Any, model: Any) -> None:
    """Building runs nothing; the run copies once, and yields a NumPy array to whoever ran it."""
    for host in _arrays():
        expected = observe(model(agt.h2d(host).sync()).sync).trace
        with case(f"an array of shape {host.shape} and dtype {host.dtype}"):
            op = built("download", mine, expected, agt.h2d(host).sync())
            run = observe(op.sync)
            with compared(run.trace, expected):
                launches(run.trace, "d2h", 1)
            equal(run.result, host)
            of_dtype(run.result, host.dtype)
            _by_hand(op)
            _with_verbs(op)


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
                        f"`{span.name}` ran on stream {span.stream}, and the stream that was given is "
                        f"number {number}",
                        span,
                    )
            launches(trace, "h2d", 1)
            if len(trace.find(JOB)) != 1:
                raise Rejected(
                    f"the job was done {count(len(trace.find(JOB)), 'time')}, and once is right"
                )
            overlapping(trace, JOB, "start `load`, do the job, and only then fetch and wait")
            waits(trace, 1, "the stream keeps `fetch` behind `load`, so wait for `fetch` alone")
        with case(f"{n} elements"):
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

    run_ = observe(run)
    return run_.result, run_.trace, stream.number


def hostile_which_way(mine: Any, _model: Any) -> None:
    """The result is complete, however long the device takes."""
    host = agt.pin(noise(3, 1000))
    _loaded_and_fetched(mine, host, 10.0)


def check_largest(mine: Any, model: Any) -> None:
    """The largest number comes back, without a blocking wait."""
    for seed, n, middle in [(1, 1000, 0), (2, 100_000, -10)]:
        x = agt.pin(noise(seed, n) + np.float32(middle))
        expected = observe(model, agt.h2d(x).to_host()).trace
        run = observe(mine, agt.h2d(x).to_host())
        with compared(run.trace, expected):
            launches(run.trace, "d2h", 1)
            never_blocks(run.trace)
        _is_largest(run.result, x)


def hostile_largest(mine: Any, _model: Any) -> None:
    """The number is there, however long the device takes."""
    x = agt.pin(noise(3, 1000) - 10)
    _is_largest(observe(mine, agt.h2d(x).to_host()).result, x)


def _is_largest(result: Any, x: Any) -> None:
    if np.ndim(result) or result != x.max():
        shown = type(result).__name__ if np.ndim(result) else repr(result)
        raise Rejected(f"the largest number is {x.max():.6g}, and this came back: {shown}")


EXERCISES = (
    Exercise("03-h2d", "By hand: a copy to the device", "upload", check_upload),
    Exercise("03-zeros", "By hand: an array of zeros", "blank", check_blank),
    Exercise("03-d2h", "By hand: a copy to the host", "download", check_download),
    Exercise("03-recipe-twice", "A recipe that can be cooked twice", "positive", check_twice),
    Exercise(
        "03-which-way", "Which way to run?", "load_and_fetch", check_which_way, hostile_which_way
    ),
    Exercise(
        "03-largest", "Look inside, without blocking", "largest", check_largest, hostile_largest
    ),
)
