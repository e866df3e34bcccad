"""Exercises of 09_cuda_graphs: what each one checks."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from itertools import count as counter
from itertools import pairwise
from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks import operations, results, sandbox, schedule
from asyncgpu_course.checks.building import built
from asyncgpu_course.checks.device import moved
from asyncgpu_course.checks.operations import noise
from asyncgpu_course.checks.rejection import Rejected, case, must
from asyncgpu_course.checks.results import CheckedArray, brief, each_equal, equal, in_order
from asyncgpu_course.checks.sandbox import Observed, held, observe
from asyncgpu_course.checks.trials import cases, counted, runs, timed
from asyncgpu_course.exercises.answers import slips
from asyncgpu_course.exercises.exercise import Exercise


def _zeros(n: int, name: str) -> agt.DeviceArray:
    return agt.zeros(n, name=name).sync()


def _launched(trace: agt.Trace, right: int, why: str = "") -> None:
    found = schedule.driver_calls(trace, "launch graph ")
    counted("a graph was launched", found, "time", right, why)


# ------------------------------------------------------------------ the first graph
def _replay(answer: Any, times: int) -> tuple[Observed, CheckedArray]:
    """Try an answer on an operation that takes long and adds 1 to an array, which comes out at last."""
    stream, x, y = agt.create_stream(), _zeros(16_000, "x"), _zeros(64, "y")
    sandbox.call(answer, operations.step("other", 1.0, 2.0, y, y), stream, 1)
    run = observe(lambda: answer(operations.long_step("increment", 1.0, 1.0, x, x), stream, times))
    schedule.only_on(run.trace, stream)
    return run, agt.d2h(x.borrow()).sync_on(stream)


def _replayed(found: tuple[Observed, CheckedArray], times: int) -> None:
    """There are one capture, as many launches as asked for and one wait at the end; the graph comes back."""
    run, numbers = found
    schedule.captures(run.trace, 1, "capture it before the loop")
    cause = "the host called the driver for `increment` itself: run `graph.launch()` instead of the operation"
    must(not schedule.driver_calls(run.trace, "launch increment"), cause)
    schedule.launches(run.trace, "increment", times)
    _launched(run.trace, times, "capture the operation as it is, and launch in a loop")
    schedule.waits(run.trace, 1, "launches on one stream follow each other anyway")
    schedule.is_done(run, "replay", ": wait for the stream at the end")
    cause = f"`replay` should return the graph, and returned {run.result!r}"
    must(isinstance(run.result, agt.CudaGraph), cause)
    equal(numbers, operations.filled(16_000, times))


# ------------------------------------------------------------------ the token loop
def _token_loop(answer: Any, number: int) -> Observed:
    """Run an answer beside another task; what comes out also tells whether that one got a turn meanwhile."""
    x, y, out = _zeros(64, "x"), _zeros(64, "y"), agt.pinned(64)
    out[:] = 0
    op = agt.zip(operations.step("model", 3.0, 1.0, x, y), agt.d2h(y.borrow(), out=out)).last()
    graph = op.graph_on(agt.create_stream())
    tokens = list(map(agt.pin, _words(number)))

    async def beside() -> Any:
        async with sandbox.neighbour(1) as turns:
            with sandbox.left_whole(tokens):
                found: Any = answer(graph, x, tokens)
                if asyncio.iscoroutine(found):
                    found = await found
            return found, turns() > 0

    run = observe(beside)
    each_equal(tokens, _words(number), "a caller's token after the call, number")
    return run


def _words(number: int) -> list[CheckedArray]:
    return [np.round(8 * noise(seed % 4, 64)) / np.float32(8) for seed in range(number)]


def _looped(run: Observed, number: int) -> None:
    """Each token has an update and a launch, the host never blocks, and each result is kept."""
    schedule.never_blocks(run.trace)
    schedule.launches(run.trace, "h2d", number)
    _launched(run.trace, number)
    cause = "no other task got a turn while the tokens were under way: "
    must(run.result[1], cause + "`await` each launch, and don't ask in a loop whether it's done")
    _tokens(run, number)


def _tokens(run: Observed, number: int) -> None:
    in_order("run_tokens", run.result[0], [3 * word + 1 for word in _words(number)], "token")


def _no_allocation(mine: Any, model: Any, n: int) -> None:
    """Describing it runs nothing, it can be captured, each launch reads the slot, and the arrays are lent."""
    slot, out = agt.pinned(n), agt.pinned(n)
    slot[:], out[:] = -1, -1
    x, y = _zeros(n, "x"), _zeros(n, "y")
    stream = agt.create_stream()
    expected = observe(model(slot, x, y, out).sync).trace
    graph = sandbox.call(built("capturable", mine, expected, slot, x, y, out).graph_on, stream)
    for launch in range(3):
        slot[:] = noise(launch, n)
        sandbox.call(graph.launch().sync_on, stream)
        for name, got, least in ("slot", slot, -np.inf), ("out", out, 0):
            with case(f"`{name}` after launch {launch}"):
                equal(got, np.maximum(noise(launch, n), np.float32(least)))
    for name, array in ("x", x), ("y", y):
        cause = f"`{name}` is gone, and its owner goes on using it: lend it, with `{name}.borrow()`"
        must(not array.moved, cause)


def _even(answer: Any, number: int, size: int, us: int) -> Any:
    """Have an answer measure an operation of so many copies to the device, of so many floats."""
    x, host = _zeros(size, "x"), agt.pin(operations.filled(size, 1))
    turns = counter(number)  # of describing it, of which some take much longer than others

    def make() -> agt.DeviceOp[Any]:
        agt.work(us + 37 if next(turns) % 7 in (1, 2, 4) else us, "describe")
        return agt.zip(*[agt.memcpy(x.borrow(), host) for _ in range(number)])

    return sandbox.call(answer, make, agt.create_stream())


def _break_even(mine: Any, model: Any, number: int, size: int, us: int, _words: str) -> None:
    """The smallest number of runs comes out for which a graph takes less, however long the work is."""
    right = sandbox.on_fresh_device(_even, model, number, size, us)
    got = _even(mine, number, size, us)
    results.a_number(got, "a number of runs", whole=True)
    if abs(got - right) > right // 6:  # people measure a little differently
        raise Rejected(f"the answer is {right}, and not {got}. {_mistake(mine)}")


def _mistake(mine: Any) -> str:
    """Say why of a usual mistake that gives the same as this for all of the work, or else ask a question."""
    with suppress(Rejected):
        rows = [(row[:3], sandbox.on_fresh_device(_even, mine, *row[:3])) for row in WORK[1:]]
        for why, slip in slips("09-break-even", "break_even"):
            if all(sandbox.on_fresh_device(_even, slip, *row) == got for row, got in rows):
                return why
    cause = "Does each of your three times include what it should, end when the device is "
    return cause + "done, and come from the quickest of five? (1.2 runs are 2.)"


# ------------------------------------------------------------------ a graph for each shape
_SHAPES: list[tuple[int, ...]] = [(4, 16), (2, 16), (4, 16), (4, 8), (64,), (2, 4, 8), (16, 4)]
_SHAPES.extend([(64, 1), (2, 2, 16), (3, 5), (2, 2, 8), (2, 2, 8, 1)])
_SHAPES.extend((n,) for n in range(1, 31))  # more than somebody may think to keep
SECOND = 2  # requests to a second server


def _maker(name: str, factor: float) -> Callable[[CheckedArray], agt.DeviceOp[CheckedArray]]:
    """A pipeline that multiplies by its shape, too, so that no shape is taken for another."""
    kernel = operations.step_kernel(name)

    def make(slot: CheckedArray) -> agt.DeviceOp[CheckedArray]:
        n = int(slot.size)
        flat = agt.h2d(slot.reshape(n))
        a = factor * (len(slot) + slot.shape[-1] / 64)
        op = kernel(n, a, 0.0, flat, agt.zeros(n).partition(operations.BLOCK)).output()
        return op.reshape(*slot.shape).to_host().prepare().launch()

    return make


def _serve(answer: Any) -> tuple[Observed, list[CheckedArray]]:
    """Send all shapes to a server that doubles, some to one that triples, and the first array, refilled.

    At last the second array comes once more, after the caller has written into what came of it.
    """
    requests = [noise(seed, *shape) for seed, shape in enumerate(_SHAPES)]
    refilled = np.concatenate([requests[0][:1], 2 * requests[0][1:]])
    given = [(2, x) for x in requests] + [(3, x) for x in requests[:SECOND]]
    given += [(2, refilled), (2, requests[1])]
    right = [np.float32(factor * (len(x) + x.shape[-1] / 64)) * x for factor, x in given]
    stream = agt.create_stream()

    def serve() -> list[Any]:
        made = ("doubled", 2.0), ("tripled", 3.0)
        first, second = [answer(_maker(*each), stream) for each in made]
        cause = "`make_server` should return the function `answer`, and returned "
        must(callable(first), cause + brief(first))
        came: list[Any] = []
        servers = [first] * len(requests) + [second] * SECOND + [first] * 2
        for server, x in zip(servers, [*requests, *requests[:SECOND], *requests[:2]], strict=True):
            if len(came) == len(right) - 2:
                x[:] = refilled
            try:
                if len(came) == len(right) - 1 and isinstance(came[1], np.ndarray):
                    kept = held(cast(Any, came[1]))
                    came[1][...] = -1  # by the caller
                    came[1] = kept
                came.append(server(x))
            except (ValueError, IndexError) as error:
                raise Rejected(f"at request {len(came)}, of shape {x.shape}, {error}") from error
        return came

    run = observe(serve)
    schedule.only_on(run.trace, stream)
    return run, right


def _each_shape(found: tuple[Observed, list[CheckedArray]]) -> None:
    """Each server captures each shape once, each request has one launch, and results stay as they are."""
    run, right = found
    most = len(set(_SHAPES)) + SECOND
    schedule.captures(run.trace, most, "for each shape, look whether it has a graph already")
    for i, (result, numbers) in enumerate(zip(run.result, right, strict=True)):
        server = "second" if 0 <= i - len(_SHAPES) < SECOND else "first"
        with case(f"two servers, at the {server} one for request {i}, of shape {numbers.shape}"):
            equal(result, numbers)
    _launched(run.trace, len(right), "one for each request")


# ------------------------------------------------------------------ the challenge
MODELS, LAYERS, TOKENS, GOAL_US = 4, 8, 12, 1850  # the last with the capture


def _talked(answer: Any, tokens: int, number: int = MODELS) -> Observed:
    """Have models talk, each of which adds a number of its own in each layer and shrinks what is there."""
    models: list[tuple[agt.DeviceOp[Any], agt.DeviceArray, agt.DeviceArray]] = []
    prompts = [agt.pin(noise(i, 64 + 32 * (i % 3))) for i in range(number)]
    given = list(map(np.copy, prompts))
    right: list[list[CheckedArray]] = []
    for i, word in enumerate(prompts):
        kernel = operations.step_kernel("layer")
        arrays = [_zeros(word.size, f"x{n}") for n in range(LAYERS + 1)]
        each = word.size, 0.9, i - 1.5
        layers = [kernel(*each, a.borrow(), b.borrow().partition(64)) for a, b in pairwise(arrays)]
        models.append((agt.zip(*layers).named(f"model {i}"), arrays[0], arrays[-1]))
        words = [word]
        for _ in range(tokens * LAYERS):
            words.append(np.float32(0.9) * words[-1] + np.float32(i - 1.5))
        right.append(words[LAYERS::LAYERS])
    with moved() as numbers:
        run = observe(answer, models, prompts, tokens)
    for i, words in enumerate(results.listed("talk", run.result, number)):
        in_order("talk", words, right[i], f"model {i}, token")
        with case(f"the prompt of model {i}, which belongs to the caller, after the call"):
            equal(prompts[i], given[i])
    numbers.by_kernels(run.result, prompts)
    return run


WORK = [
    (8, 64, 3, "8 small copies"),
    (8, 500_000, 3, "8 copies that take longer than a call"),
    (20, 64, 3, "20 small copies"),
    (2, 200_000, 3, "2 copies that take longer than a call"),
    (6, 500_000, 20, "6 copies that take longer than a call"),
    (8, 64, 150, "8 small copies and a `make` that takes long"),
]
CHAPTER_09 = (
    Exercise("09-first-graph", "Your first graph", "replay",
             runs(_replay, _replayed, [(5,), (11,), (1,)], "times={}")),
    Exercise("09-token-loop", "A token loop", "run_tokens",
             runs(_token_loop, _looped, [(5,), (9,), (13,)], "{} tokens"),
             runs(_token_loop, _tokens, [(4,)], "")),
    Exercise("09-no-allocation", "Fit for a graph", "capturable",
             cases(_no_allocation, [(1001,), (4999,), (1,)], "{} elements")),
    Exercise("09-break-even", "From how many runs on?", "break_even", cases(_break_even, WORK, "{3}")),
    Exercise("09-shapes", "A graph for each shape", "make_server",
             runs(_serve, _each_shape, [()], ""), runs(_serve, _each_shape, [()], "")),
    Exercise("09-challenge", "Challenge: four conversations", "talk",
             timed(_talked, [(5, 6), (TOKENS, MODELS)], "{} tokens of {} models", GOAL_US),
             timed(_talked, [(3, 2)], "")),
)  # fmt: skip
