"""Exercises of 03_lazy_operations: what each one checks."""

import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks import schedule
from asyncgpu_course.checks.building import built, left_alone, of_another, run_now, run_of
from asyncgpu_course.checks.device import host_arrays
from asyncgpu_course.checks.operations import JOB, job, noise
from asyncgpu_course.checks.rejection import Rejected, case, compared, must
from asyncgpu_course.checks.results import CheckedArray, equal, in_order, of_dtype
from asyncgpu_course.checks.sandbox import Observed, call, observe
from asyncgpu_course.checks.trials import cases, runs
from asyncgpu_course.exercises.exercise import Exercise
from asyncgpu_course.internals import Download, Make

# ------------------------------------------------------------------ leaves by hand
RUNS = 4


@contextmanager
def _by_hand() -> Generator[None]:
    """Reject an answer if one of the course's own leaf operations runs in the block, whatever calls it."""

    def ready_made(op: agt.DeviceOp[Any], _: object) -> None:
        cause = f"the course's own `{op.label}` did the work: build one by hand, with "
        raise Rejected(cause + "`agt.with_context` and the verbs of the `context`")

    with patch.object(Download, "_enqueue", ready_made), patch.object(Make, "_enqueue", ready_made):
        yield


def _contents(results: list[Any]) -> list[CheckedArray]:
    """Return what the device arrays hold that several runs of an operation gave."""
    for result in results:
        cause = f"an array on the device should come out, and not {type(result).__name__}"
        must(isinstance(result, agt.DeviceArray), cause)
        cause = f"the array that comes out is {result.mode}: pass on the very handle that `empty` gave you"
        must(result.mode == "owned", cause)
    cause = "two runs of the operation gave the same array: make a new one in each run, inside `enqueue`"
    must(len({id(result.memory) for result in results}) == len(results), cause)
    return [agt.d2h(result).sync() for result in results]


def _made_by_hand(
    mine: Any,
    model: Any,
    name: str,
    kind: str,
    args: Callable[[], tuple[Any, ...]],
    change: Callable[[], object] = lambda: None,
) -> list[Any]:
    """`RUNS` results of an operation that has one span of this kind a run; a `change` comes before each."""
    expected, stream = observe(model(*args()).sync).trace, agt.create_stream()
    op, results = built(name, mine, expected, *args()), list[Any]()
    of_another(mine, args())
    for number in range(RUNS):
        change()
        with _by_hand():
            run = run_now(op, stream)
        again = f"run {number + 1} of one operation" if number else ""
        with compared(run.trace, expected), case(again):
            schedule.launches(run.trace, kind, 1)
            for span in [s for s in run.trace.device_spans if s.kind != kind][:1]:
                must(False, f"`{span.name}` ran as well, and isn't needed", span)
            schedule.on_stream(run.trace, kind, stream.number, "context.stream")
        results.append(run.result)
    return results


def _host(shape: tuple[int, ...], dtype: str) -> CheckedArray:
    return agt.pin((100 * noise(1, *shape)).astype(dtype))


def _upload(mine: Any, model: Any, shape: tuple[int, ...], dtype: str) -> None:
    host = _host(shape, dtype)
    more = partial(np.add, host, 1, host)
    arrays = _made_by_hand(mine, model, "upload", "h2d", lambda: (host,), more)
    contents = _contents(arrays)
    of_dtype(arrays[0], host.dtype)
    left_alone([host], [_host(shape, dtype) + RUNS])
    with case("a host array that changed before the operation was run"):
        for age, content in enumerate(contents[::-1]):
            equal(content, host - age)


def _blank(mine: Any, model: Any, shape: tuple[int, ...], dtype: str) -> None:
    arrays = _made_by_hand(mine, model, "blank", "memset", lambda: (shape, dtype))
    for content in _contents(arrays):
        of_dtype(arrays[0], dtype)
        equal(content, np.zeros(shape, dtype))


def _download(mine: Any, model: Any, shape: tuple[int, ...], dtype: str) -> None:
    host, device = _host(shape, dtype), agt.current_device()
    arrays = [agt.h2d(host).sync() for _ in range(3)]  # one each, because an answer may use it up
    given, memory = iter(arrays), arrays[1].memory

    def change() -> None:
        np.add(host, 1, host)
        device.copy_from_host_async(memory, host, device.default_stream)
        device.synchronize()

    results = _made_by_hand(mine, model, "download", "d2h", lambda: (next(given),), change)
    equal(results[-1], host)
    of_dtype(results[-1], host.dtype)
    with case("the first of several results, looked at after the last run"):
        equal(results[0], host - RUNS + 1)


# ------------------------------------------------------------------ running
def _twice(mine: Any, model: Any, seed: int, n: int) -> None:
    """Each run of one operation uploads what the array holds by then, and computes anew."""
    x = agt.pin(noise(seed, n))
    cause, old = "these are the numbers that `x` held when the operation was built", np.sort(x)
    run_it, found = run_of("ascending", mine, model, x), list[tuple[Any, CheckedArray]]()
    for number in range(1, 12):
        x[:] = noise(seed + 10 * number, n)
        with case(f"run {number} of one operation"), run_it("h2d", "relu") as run:
            found.append((run.result, np.maximum(np.sort(x), 0)))
            must(not np.array_equal(run.result, np.maximum(old, 0)), cause)
            equal(*found[-1])
    with case("the result of run 1, looked at after the others"):
        equal(*found[0])
    _in_flight(call(mine, x), [x], lambda got, right: equal(got, np.sort(right[0])))


def _in_flight(
    op: Any, hosts: list[CheckedArray], judge: Callable[[Any, list[CheckedArray]], None]
) -> None:
    """Three runs at the same time are right, each with other numbers in the host arrays."""
    runs = list[tuple[Any, list[CheckedArray]]]()
    with case("three runs in flight, each with numbers of its own"), warnings.catch_warnings():
        warnings.simplefilter("ignore", agt.errors.PageableCopyWarning)
        for number in (3, 4, 5):
            right = _refilled(hosts, number)
            runs.append((call(op.async_on, agt.create_stream()), right))
        call(agt.synchronize)
        for handles, right in runs:
            found = host_arrays(handles)
            judge(found[0] if len(found) == 1 else found, right)


def _refilled(hosts: list[CheckedArray], number: int) -> list[CheckedArray]:
    """Fill the arrays with other numbers, and return what should come of these."""
    for seed, host in enumerate(hosts):
        host[:] = noise(seed + 100 * number, host.size)
    return [np.maximum(host, 0) for host in hosts]


WayToRun = tuple[Observed, agt.types.Stream, CheckedArray]


def _loaded_and_fetched(answer: Any, seed: int, n: int, us: float) -> WayToRun:
    """Try an answer on a copy to the device and one back; its stream and the right result, too."""
    host, array, stream = agt.pin(noise(seed, n)), agt.zeros(n).sync(), agt.create_stream()

    def enqueue(context: agt.types.ExecutionContext) -> agt.DeviceOp[None]:
        context.copy_from_host(array, host)
        return agt.value(None)

    load = agt.with_context(enqueue).named("load")
    fetch = agt.d2h(array.borrow()).named("fetch")

    def run_answer() -> Any:
        return np.asarray(call(answer, load, fetch, job(us), stream))  # raises if not there yet

    return observe(run_answer), stream, host


def _which_way(found: WayToRun, *_sizes: float) -> None:
    """Both run on the given stream, the job is done while the first is at work, and the host waits once."""
    run, given, _ = found
    schedule.only_on(run.trace, given)
    schedule.each_once(run.trace, "h2d", "d2h", JOB)
    schedule.overlapping(run.trace, JOB, "start both, do the job, and only then wait")
    job = run.trace.find(JOB)[0]
    late = [span for span in run.trace.find("enqueue d2h") if span.start > job.start]
    cause = "`fetch` was handed over only after the job, "
    must(not late, cause + "and the device had nothing to do when `load` was done", job, *late[:1])
    early = [span for span in run.trace if span.kind == "wait" and span.start < job.start]
    must(not early, "Python waited before the job: do the job meanwhile", *early[:1], job)
    schedule.waits(run.trace, 1, "the stream keeps `fetch` behind `load`, so wait once, at the end")
    _complete(found)
    end = max(span.end for span in run.trace.device_spans)
    slept = any(span.kind == "wait" and span.start < end for span in run.trace)
    cause = "the host was busy until the device was done, asking again and again, or with a pause: "
    must(slept, cause + "wait once, by `synchronize` or a `sync`")


def _complete(found: WayToRun, *_sizes: float) -> None:
    equal(found[0].result, found[2])


# ------------------------------------------------------------------ challenge
SMALL_ARRAYS_US = 200.0


def _rows(result: Any, right: list[CheckedArray]) -> None:
    if hasattr(result, "shape") and result.shape != (len(right), right[0].size):
        equal(result, np.stack(right))
    in_order("small_arrays", list(result) if np.ndim(result) == 2 else result, right, "array")


def check_small_arrays(mine: Any, model: Any) -> float:
    """Each run computes, on the device, with what the arrays hold by then, and takes few calls."""
    hosts = [agt.pin(noise(seed, 1000)) for seed in range(16)]
    run_it = run_of("small_arrays", mine, model, hosts)
    for number in (1, 2):
        right = _refilled(hosts, number)
        with case(f"what the arrays hold in run {number}"), run_it() as run:
            _rows(run.result, right)
    with run_it() as run:
        took = schedule.below(SMALL_ARRAYS_US, run.trace)
    _in_flight(call(mine, hosts), hosts, _rows)
    return took


ARRAYS = [((1000,), "float32"), ((3, 4), "int32"), ((), "float64"), ((2, 3, 4), "int16")]
OF = "shape {} and dtype {}"
_WAYS = [(1, 1_000_000, 100.0), (2, 1_000_000, 30.0)]

CHAPTER_03 = (Exercise("03-h2d", "By hand: a copy to the device", "upload", cases(_upload, ARRAYS, OF)),
    Exercise("03-zeros", "By hand: an array of zeros", "blank", cases(_blank, ARRAYS, OF)),
    Exercise("03-d2h", "By hand: a copy to the host", "download", cases(_download, ARRAYS, OF)),
    Exercise("03-recipe-twice", "Good for any number of runs", "ascending",
             cases(_twice, [(1, 1000), (2, 333)], "{1} elements")),
    Exercise("03-which-way", "Which way to run?", "load_and_fetch",
             runs(_loaded_and_fetched, _which_way, _WAYS, "{1} elements"),
             runs(_loaded_and_fetched, _complete, [(3, 1000, 10.0)], "")),
    Exercise("03-challenge", "Challenge: sixteen small arrays", "small_arrays", check_small_arrays),
)  # fmt: skip
