"""Exercises of 16_several_machines: what each one checks.

All of it is read from the trace of a simulated cluster, whose GPUs are as far apart as processes. It has a
range for each call of a worker, with the bytes that it moved and the arrays that were then kept there.
"""

import asyncio
import inspect
import warnings
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks import operations, results, schedule
from asyncgpu_course.checks.device import moved
from asyncgpu_course.checks.operations import cuda, filled, layer, noise, step_kernel
from asyncgpu_course.checks.rejection import Rejected, case, must
from asyncgpu_course.checks.results import CheckedArray, brief
from asyncgpu_course.checks.sandbox import Observed, call, left_whole, private_fleet
from asyncgpu_course.checks.trials import runs
from asyncgpu_course.exercises.exercise import Exercise
from asyncgpu_course.internals import LocalCluster, count


async def _answered(name: str, answer: Any, *args: Any) -> Any:
    with left_whole(*args):
        it = answer(*args)
        must(inspect.isawaitable(it), f"`{name}` should be an `async def`: the cluster is awaited")
        return await it


def _tried(
    name: str, given: Callable[..., Any], home: Callable[..., Awaitable[Any]] | None = None
) -> Callable[..., Observed]:
    """Make a function that tries an answer on so many GPUs, with what is `given`; its result comes `home`."""

    def try_answer(answer: Any, *row: Any) -> Observed:
        async def attempt() -> Observed:
            async with LocalCluster("sim", None, 1, apart=True, on=fleet) as there:
                args = given(there, *row)
                args = await args if inspect.isawaitable(args) else args
                with agt.record() as trace:
                    result = await _answered(name, answer, *args)
                return Observed(await home(there, result) if home else result, trace)

        with private_fleet(row[0]) as fleet, moved() as numbers, warnings.catch_warnings():
            warnings.simplefilter("ignore", agt.errors.ByValueWarning)  # bytes are counted
            warnings.simplefilter("ignore", agt.errors.PageableCopyWarning)
            found = call(attempt)
        cause = "no kernel ran: an operation does nothing until a worker gets it, "
        must(any(span.kind == "kernel" for span in found.trace), cause + "by `await gpu(op)`")
        numbers.by_kernels(found.result, *_KNOWN)
        return found

    return try_answer


def _calls(trace: agt.Trace) -> list[agt.types.Span]:
    return sorted((s for s in trace if "sent" in s.detail), key=lambda span: span.start)


def _sum(trace: agt.Trace, way: str) -> int:
    return sum(int(str(span.detail[way])) for span in _calls(trace))


def _called(trace: agt.Trace, fewest: int, most: int, why: str) -> None:
    calls, here = _calls(trace), "`op.sync()` or `await op` runs it here"
    did = f"the workers were called {count(len(calls), 'time')}"
    cause = f"{did}, and {fewest} are needed: {why}"
    if not calls:
        cause = f"{did}: `await gpu(op)` runs an operation there, and {here}"
    must(len(calls) >= fewest, cause)
    must(len(calls) <= most, f"{did}, and {most} would do: {why}", *calls[:2])


def _let_go(trace: agt.Trace, most: int, which: str) -> None:
    """No more than so many arrays were on a worker at one time."""
    found = max(int(str(span.detail["kept"])) for span in _calls(trace))
    cause = f"at one time there were {found} arrays on the worker, and 2 are enough, {which}: "
    must(found <= most, cause + "every variable and every list that holds a handle keeps its array")


def _together(trace: agt.Trace, ranks: Sequence[int]) -> None:
    """Each of these GPUs was called before the first answer of any came."""
    end = min(span.end for span in _calls(trace))
    called = [span.detail["gpu"] for span in _calls(trace) if span.start < end]
    for rank in ranks:
        cause = f"the first answer came before GPU {rank} was called at all: send something to each GPU first"
        must(rank in called, cause)


# ------------------------------------------------------------------ one recipe
X, W = noise(5, 300), noise(16, 80, 48)
_FAR = filled(64, 50.0) + np.arange(64, dtype=np.float32)
# How far the seventh round moves, if each goes half of the way to 2.
EXACT = float(_FAR.max() - 2) / 128
BATCHES = [noise(i, 8, 80) for i in range(24)]
NUMBERED = [np.concatenate([filled(1, k), noise(k, 199)]) for k in range(6)]
_KNOWN = [X, W, _FAR, *BATCHES, *NUMBERED]  # what answers start from
_LATE = "a lambda looks up `x` when it runs, after the loop. `lambda w, x=x: ...` keeps the `x` of its round"


def _stage(i: int, x: agt.DeviceArray) -> agt.DeviceOp[Any]:
    kernel, numbers = step_kernel(f"stage_{i}"), (x.size, 0.5 + i, i - 1.0)
    return agt.zeros(x.size).and_then(lambda y: kernel(*numbers, x, y.partition(128)).output())


async def _chain(there: Any, _gpus: int, stages: int) -> Any:
    each = 2 * [partial(_stage, i) for i in range(4)]  # a stage may come again
    return there[1], await there[1].put(X, "x"), each[:stages]


def _one_call(run: Observed, _gpus: int, stages: int) -> None:
    """All stages ran, in order, and the worker was called once."""
    right = X
    order = [i % 4 for i in range(stages)]
    last = len(run.trace.find(f"stage_{order[-1]}"))
    must(last < stages or stages == 1, f"the last stage ran {last} times: {_LATE}")
    for i in order:
        schedule.launches(run.trace, f"stage_{i}", order.count(i))
        cause = f"`stage_{i}` ran on the GPU of this process: send every stage to the worker, where x lives"
        must(all(s.device == "sim:1" for s in run.trace.find(f"stage_{i}")), cause)
        right = right * np.float32(0.5 + i) + np.float32(i - 1.0)
    results.equal(run.result, right)
    _called(run.trace, 1, 1, "chain the stages with `and_then`, and send what comes out")


# ------------------------------------------------------------------ data once, and two at once
def _weights_here(there: Any, _gpus: int, number: int) -> Any:
    return there, W, BATCHES[:number], layer


async def _weights_there(there: Any, _gpus: int, number: int) -> Any:
    return there, [await gpu.put(W, "w") for gpu in there], BATCHES[:number], layer


def _dealt(name: str, run: Observed, gpus: int, number: int) -> tuple[int, int]:
    """All batches are done, in order, about as many on each GPU; bytes sent, and how many are enough."""
    right = [x @ W for x in BATCHES[:number]]
    found = results.listed(name, run.result, number)
    ends = [np.shape(y) == (8, 48) and np.allclose(y, right[-1], atol=1e-3) for y in found]
    cause = f"{sum(ends)} of the {number} results are those of the last batch: "
    must(sum(ends) <= 1, cause + _LATE)
    results.each_equal(found, right, "batch")
    schedule.launches(run.trace, "sgemm_naive", number)
    ran = [sum(s.device == f"sim:{k}" for s in run.trace.find("sgemm_naive")) for k in range(gpus)]
    cause = f"the GPUs ran {ran} of the {number} batches, and each should have about as many as the others"
    must(max(ran) - min(ran) <= 1, cause)
    return _sum(run.trace, "sent"), gpus * W.nbytes + number * BATCHES[0].nbytes


def _sent_once(run: Observed, gpus: int, number: int) -> None:
    """The weights go to each GPU once, and each batch to one of them."""
    sent, enough = _dealt("score_all", run, gpus, number)
    cause = f"{sent:,} bytes were sent, and {enough:,} are enough: `put` the weights ({W.nbytes:,}) on each "
    must(sent <= enough, cause + "GPU once, and let each recipe refer to nothing but its own batch")


def _at_once(run: Observed, gpus: int, number: int) -> float:
    """All GPUs are at work at the same time, and it is quick."""
    sent, enough = _dealt("spread", run, gpus, number)
    why = "Every call has its millisecond. Have them all under way before you await the first"
    if sent > enough:
        why = f"{sent:,} bytes were sent, and {enough:,} are enough: let each recipe refer to its own batches"
    elif run.trace.metrics().makespan < 3000:
        why = "All calls are under way, but each costs something here: a recipe can hold several batches"
    return schedule.below(2600, run.trace, why)


# ------------------------------------------------------------------ handles
def _settles(rate: float, x: agt.DeviceArray) -> agt.DeviceOp[Any]:
    kernel = agt.Kernel(cuda("16_settle"))
    done = kernel(x.size, rate, x, agt.zeros(x.size), agt.zeros(1), grid=1, block=1)
    return done.map(lambda arrays: arrays[1:])


def _unsettled(there: Any, _gpus: int, limit: float, rate: float) -> Any:
    return there[0], _FAR, partial(_settles, rate), limit


def _stayed(run: Observed, _gpus: int, limit: float, rate: float) -> None:
    """It stops in the right round, and x goes there and comes back once."""
    x, rounds, change = _FAR, 0, np.inf
    while change >= limit:
        moves = np.float32(rate) * (2 - x)
        change, x, rounds = np.abs(moves).max(), x + moves, rounds + 1
    schedule.launches(run.trace, "settle", rounds)
    results.equal(run.result, x)
    for way, words in (("sent", "were sent to the GPU"), ("received", "came back")):
        cause = f"{_sum(run.trace, way):,} bytes {words} in {rounds} rounds, and x has {_FAR.nbytes}: leave "
        cause += "x there between two rounds, and bring home the one number that you look at"
        must(_sum(run.trace, way) <= _FAR.nbytes + 8 * rounds, cause)
    why = "a recipe makes one step, and can yield the array and, by `d2h`, the number"
    _called(run.trace, rounds, rounds + 2, why)
    _let_go(run.trace, 4, "the one before a step and the one after it")


# ------------------------------------------------------------------ memory
def _candidates(there: Any, _gpus: int, *scores: float) -> Any:
    arrays = [agt.full(500, i + 0.5).named(f"candidate {i}") for i in range(len(scores))]
    scored = [agt.full(1, score).to_host() for score in scores]
    recipes = [agt.zip(*both) for both in zip(arrays, scored, strict=True)]
    agt.zip(*recipes)  # parts of something: nobody is warned of those that an error leaves unrun
    return there[0], recipes


async def _best(there: Any, best: Any) -> Any:
    cause = f"`best` should return a handle (`RemoteArray`), and returned {brief(best)}"
    must(isinstance(best, agt.types.RemoteArray), cause)
    return await there[0](best.op().to_host())


def _forgot(run: Observed, _gpus: int, *scores: float) -> None:
    """The best array comes out, each was made once, and no more than two were ever there."""
    results.equal(run.result, filled(500, scores.index(max(scores)) + 0.5))
    _called(run.trace, len(scores), len(scores), "send each recipe once")
    _let_go(run.trace, 2, "the best one and a new one")


# ------------------------------------------------------------------ a worker dies
class _Enough(BaseException):
    """Ends an answer that asks again and again, whatever it catches."""


def _recipes(fails: int) -> Callable[[CheckedArray], agt.DeviceOp[Any]]:
    asked = [0] * len(NUMBERED)

    def recipe(x: CheckedArray) -> agt.DeviceOp[Any]:
        k = int(x[0])
        asked[k] += 1
        if asked[k] > (most := 1 if k == fails else 20):
            raise _Enough(f"`recipe` was asked for batch {k} more than {count(most, 'time')}")
        kernel, room = step_kernel(f"batch_{k}"), agt.zip(agt.h2d(agt.pin(x)), agt.zeros(x.size))
        done = room.and_then(lambda a: kernel(x.size, 2.0, 1.0, a[0], a[1].partition(64)).output())
        if k == 0 <= fails:  # which takes much longer than the one that fails
            return agt.zip(*[operations.computed_result(1, 19_000, 1.0) for _ in range(6)])
        return operations.out_of_bounds() if k == fails else done.to_host()

    return recipe


def _careful(answer: Any, gpus: int, number: int, us: int, *lost: int, fails: int = -1) -> Observed:
    """Try an answer on GPUs of which some are lost after so many microseconds."""

    async def watched(there: Any, *args: Any) -> Any:
        async def unplug() -> None:
            await agt.sleep(us)
            for rank in lost:
                there[rank].lose("somebody has pulled the plug")

        plug = asyncio.ensure_future(unplug())
        try:
            if not us:
                await plug
            return await _answered("careful", answer, there, *args)
        except agt.errors.WorkerLostError as error:
            cause = f"a `WorkerLostError` came out ({error.args[0].partition(', and')[0]}), and a GPU is "
            cause += "left: catch it where you await, and try another GPU, until none is left"
            must(len(lost) == gpus, cause)
            raise
        except _Enough as enough:
            cause = f"{enough}: a GPU that is gone stays gone, and an error that is none of "
            raise Rejected(cause + "the cluster's is the caller's") from None
        finally:
            plug.cancel()

    def given(there: Any, _gpus: int) -> Any:
        return there, _recipes(fails), NUMBERED[:number]

    return _tried("careful", given)(watched, gpus)


def _carried_on(run: Observed, gpus: int, number: int, us: int, *lost: int) -> None:
    """All results are there, none was computed twice on a GPU that lives, and all of these were at work."""
    results.in_order("careful", run.result, [2 * x + 1 for x in NUMBERED[:number]], "batch")
    living = [rank for rank in range(gpus) if rank not in lost]
    for k in range(number):
        ran = [s for s in run.trace.find(f"batch_{k}") if s.device in [f"sim:{r}" for r in living]]
        cause = f"batch {k} ran {count(len(ran), 'time')} on GPUs that were never lost: "
        must(len(ran) <= 1, cause + "keep what you have, and do again only what was lost", *ran)
    _together(run.trace, living)


def check_careful(mine: Any, model: Any) -> None:
    """GPUs that are lost before, on the way there and on the way back; an error; and none that is left."""
    rows = [(2, 4, 700, 1), (2, 4, 200, 0), (2, 3, 0, 0), (3, 6, 700, 2), (3, 6, 700, 0, 1),
            (5, 5, 0, 0, 1, 2, 3)]  # fmt: skip
    runs(_careful, _carried_on, rows, "{0:GPU}, number {3} lost after {2} µs")(mine, model)
    _comes_out(mine, agt.errors.OutOfBoundsError, "a recipe that fails", fails=2)
    _comes_out(mine, agt.errors.WorkerLostError, "no GPU that is left", 0, 1)


def _comes_out(mine: Any, kind: type[Exception], words: str, *lost: int, fails: int = -1) -> None:
    came: list[Exception] = []

    async def caught(*args: Any) -> list[Any]:
        try:
            await _answered("careful", mine, *args)
        except Exception as error:  # noqa: BLE001 - whatever comes out is looked at
            came.append(error)
            agt.work(1, "came out")
        return []

    with case(words):
        trace = _careful(caught, 2, 4, 700, *lost, fails=fails).trace
        instead = f", and {brief(came[0])} did" if came else ""
        group = ExceptionGroup("", came or [KeyError()]).subgroup(kind) is not None
        right = (group and fails >= 0) or (bool(came) and isinstance(came[0], kind))
        why = "a `TaskGroup` wraps it" if group else "you can do nothing here"
        must(right, f"`{kind.__name__}` should come out{instead}: {why}")
        slow, out = trace.find("matvec_naive"), trace.find("came out")[0]
        cause = "the bug came out only when batch 0, which takes longer, was done: `gather` "
        must(fails < 0 or not slow or out.start < slow[-1].end, cause + "lets it out at once")


CHAPTER_16 = (
    Exercise("16-recipe", "One call instead of many", "in_one",
             runs(_tried("in_one", _chain), _one_call, [(2, 3), (2, 6), (2, 1)], "{1:stage}")),
    Exercise("16-place", "Once for each GPU", "score_all", runs(_tried("score_all", _weights_here),
                  _sent_once, [(2, 4), (3, 8), (1, 3)], "{:GPU} and {} batches")),
    Exercise("16-handles", "Leave it there", "settle", runs(_tried("settle", _unsettled), _stayed,
                  [(1, EXACT, 0.5), (1, 0.002, 0.07), (1, 60, 0.5)], "a limit of {1}")),
    Exercise("16-drop", "Only the best", "best", runs(_tried("best", _candidates, _best), _forgot,
                  [(1, -2, -1, 0.5, 0.75), (1, 4, 3, 2, 1), (1, -3e30, -1e30, -4e30, -2e30),
                   (1, -2, 0, -1, -0.5, -3), (1, -7)], "scores from {1} on")),
    Exercise("16-challenge", "All of them at once", "spread", runs(_tried("spread", _weights_there), _at_once,
                  [(2, 24), (3, 4), (2, 24)], "{:GPU} and {} batches")),
    Exercise("16-dies", "Carry on", "careful", check_careful, lets_errors_out=False),
)  # fmt: skip
