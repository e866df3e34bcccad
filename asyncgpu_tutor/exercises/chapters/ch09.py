"""Exercises of 09_cuda_graphs: what each one checks."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from itertools import pairwise
from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.checks.building import built
from asyncgpu_tutor.exercises.checks.operations import (
    BLOCK,
    filled,
    long_step,
    noise,
    step,
    step_kernel,
)
from asyncgpu_tutor.exercises.checks.results import Array, a_number, brief, equal, in_order, listed
from asyncgpu_tutor.exercises.checks.schedule import below, launches, never_blocks, waits
from asyncgpu_tutor.exercises.exercise import Exercise, Rejected, case
from asyncgpu_tutor.exercises.internals import count
from asyncgpu_tutor.exercises.sandbox import Observed, call, observe, on_fresh_device, tried


def _zeros(n: int, name: str) -> agt.DeviceArray:
    return agt.zeros(n, name=name).sync()


def _calls(trace: agt.Trace, what: str) -> int:
    return sum(span.kind == "call" and span.name.startswith(what) for span in trace)


def _captures(trace: agt.Trace) -> int:
    return _calls(trace, "instantiate ")


def _graph_launches(trace: agt.Trace) -> int:
    return _calls(trace, "launch graph ")


# ------------------------------------------------------------------ the first graph
def _replay(answer: Any, times: int) -> tuple[Observed[Any], bool]:
    """Try an answer on an operation that adds 1 to an array, and tell also whether all was done on return."""
    stream = agt.create_stream()
    x = _zeros(16_000, "x")
    if inspect.iscoroutinefunction(answer):
        raise Rejected("`replay` should be a plain function, `def`, and not `async def`")
    device = agt.current_device()

    def replay() -> tuple[Any, float]:
        begun = device.now()
        op = long_step("increment", 1.0, 1.0, x, x)  # still at work when nobody has waited
        return answer(op, stream, times), device.now() - begun

    run = observe(replay)
    result, returned = run.result
    done = all(span.end <= returned for span in run.trace.device_spans)
    return Observed(result, run.trace), done


def check_first_graph(mine: Any, model: Any) -> None:
    """There are one capture, as many launches as asked for and one wait at the end; the graph comes back."""
    for times in (5, 2):
        with tried(_replay, mine, model, times, words=f"times={times}") as (run, done):
            captured = _captures(run.trace)
            if captured > 1:
                raise Rejected(
                    f"the operation was captured {count(captured, 'time')}, and once is enough: capture it "
                    "before the loop"
                )
            if _calls(run.trace, "launch increment"):
                raise Rejected(
                    "the host called the driver for `increment` itself: run `graph.launch()`, and not the "
                    "operation that the graph was made of"
                )
            launches(run.trace, "increment", times)
            launched = _graph_launches(run.trace)
            if launched != times:
                raise Rejected(
                    f"the graph was launched {count(launched, 'time')}, and {count(times, 'time')} is right: "
                    "capture the operation as it is, and launch in a loop"
                )
            waits(run.trace, 1, "launches on one stream follow each other by themselves")
            if not done:
                raise Rejected(
                    "`replay` returned before the device was done: wait for the stream at the end",
                    *run.trace.find("increment")[-1:],
                )
        if not isinstance(run.result, agt.CudaGraph):
            raise Rejected(f"`replay` should return the graph, and returned {run.result!r}")


# ------------------------------------------------------------------ the token loop
def _token_loop(answer: Any, number: int) -> tuple[Observed[Any], list[Array], bool]:
    """Run an answer beside another task; the last thing returned is whether that got a turn meanwhile."""
    x, y = _zeros(64, "x"), _zeros(64, "y")
    out = agt.pinned(64)
    out[:] = 0
    op = agt.zip(step("model", 3.0, 1.0, x, y), agt.d2h(y.borrow(), out=out)).last()
    graph = op.graph_on(agt.create_stream())
    tokens = [agt.pin(noise(seed, 64)) for seed in range(number)]
    right = [3 * token + 1 for token in tokens]
    turn, turns = asyncio.Event(), list[bool]()

    async def neighbour() -> None:
        turn.set()

    async def beside() -> Any:
        task = asyncio.create_task(neighbour())
        results: Any = answer(graph, x, tokens)
        if asyncio.iscoroutine(cast(object, results)):
            results = await results
        turns.append(turn.is_set())
        await task
        return results

    run = observe(cast(Callable[[], Any], beside))
    return run, right, turns[0]


def _tokens(results: object, expected: list[Array]) -> None:
    in_order("run_tokens", results, expected, f"{len(expected)} tokens, for token")


def check_token_loop(mine: Any, model: Any) -> None:
    """Each token has an update and a launch, the host never blocks, and each result is kept."""
    for number in (5, 2):
        words = f"{number} tokens"
        with tried(_token_loop, mine, model, number, words=words) as (run, right, let_in):
            never_blocks(run.trace)
            launches(run.trace, "h2d", number)
            launched = _graph_launches(run.trace)
            if launched != number:
                raise Rejected(
                    f"the graph was launched {count(launched, 'time')}, for {count(number, 'token')}"
                )
            if not let_in:
                raise Rejected(
                    "no other task got a turn while the tokens were under way: `await` each launch, and do "
                    "not ask in a loop whether it is done"
                )
        _tokens(run.result, right)


def hostile_token_loop(mine: Any, _model: Any) -> None:
    """Each result belongs to its own token, however long anything takes."""
    run, right, _ = _token_loop(mine, 4)
    _tokens(run.result, right)


# ------------------------------------------------------------------ no allocation
def check_no_allocation(mine: Any, model: Any) -> None:
    """Describing it runs nothing, it can be captured, each launch reads the slot, and the arrays are lent."""
    for n in (1000, 64):
        slot, out = agt.pinned(n), agt.pinned(n)
        slot[:], out[:] = -1, -1
        x, y = _zeros(n, "x"), _zeros(n, "y")
        stream = agt.create_stream()
        expected = observe(model(slot, x, y, out).sync).trace
        graph = call(built("capturable", mine, expected, slot, x, y, out).graph_on, stream)
        for launch in range(3):
            slot[:] = noise(launch, n)
            call(graph.launch().sync_on, stream)
            with case(f"{n} elements, in `out` after launch {launch}"):
                equal(out, np.maximum(slot, 0))
        for name, array in [("x", x), ("y", y)]:
            try:
                array.borrow()
            except agt.errors.UseAfterMoveError:
                raise Rejected(
                    f"`{name}` is gone, and its owner goes on using it: lend it, with `{name}.borrow()`"
                ) from None


# ------------------------------------------------------------------ break even
def _even(answer: Any, number: int, size: int) -> Any:
    """Have an answer measure an operation of so many copies to the device, of so many floats."""
    x, host = _zeros(size, "x"), agt.pin(filled(size, 1))

    def make() -> agt.DeviceOp[Any]:
        return agt.zip(*[agt.memcpy(x.borrow(), host) for _ in range(number)])

    return call(answer, make, agt.create_stream())


def check_break_even(mine: Any, model: Any) -> None:
    """The smallest number of runs comes out for which a graph takes less, however long the work is."""
    for number, size, words in [
        (8, 64, "8 small copies"),
        (8, 500_000, "8 copies that take longer than a call"),
        (20, 64, "20 small copies"),
        (3, 500_000, "3 copies that take longer than a call"),
    ]:
        right = on_fresh_device(_even, model, number, size)
        got = _even(mine, number, size)
        with case(words):
            a_number(got, "a number of runs", whole=True)
            if abs(got - right) > right // 6:  # people measure a little differently
                raise Rejected(
                    f"the answer is {right}, and not {got}: does each of your three times hold what it "
                    "should, and end when the device is done?"
                )


# ------------------------------------------------------------------ a graph for each shape
SHAPES = [(4, 16), (2, 16), (4, 16), (4, 8), (64,), (2, 16), (2, 4, 8), (4, 16)]
SECOND = 2  # requests to a second server


def _serve(answer: Any) -> tuple[Observed[list[Any]], list[Array]]:
    """Send requests of all shapes to a server that doubles, and some to another one, that triples.

    Both multiply by the number of rows as well, so that a shape is not taken for another of the same size.
    """

    def maker(name: str, factor: float) -> Callable[[Array], agt.DeviceOp[Array]]:
        kernel = step_kernel(name)

        def make(slot: Array) -> agt.DeviceOp[Array]:
            n = int(slot.size)
            flat = agt.h2d(slot.reshape(n))
            op = kernel(n, factor * len(slot), 0.0, flat, agt.zeros(n).partition(BLOCK)).output()
            return op.reshape(*slot.shape).to_host().prepare().launch()

        return make

    requests = [noise(seed, *shape) for seed, shape in enumerate(SHAPES)]
    right = [2 * len(x) * x for x in requests] + [3 * len(x) * x for x in requests[:SECOND]]

    def serve() -> list[Any]:
        stream = agt.create_stream()
        servers = [
            answer(maker(name, factor), stream)
            for name, factor in [("doubled", 2.0), ("tripled", 3.0)]
        ]
        if not callable(servers[0]):
            raise Rejected(
                f"`make_server` should return the function `answer`, and returned {brief(servers[0])}"
            )
        first, second = cast(list[Callable[[Array], Any]], servers)
        results: list[Any] = []
        for server, x in [(first, x) for x in requests] + [(second, x) for x in requests[:SECOND]]:
            try:
                results.append(server(x))
            except (ValueError, IndexError) as error:
                raise Rejected(f"at request {len(results)}, of shape {x.shape}, {error}") from error
        return results

    return observe(serve), right


def check_shapes(mine: Any, model: Any) -> None:
    """Each server captures each shape once, each request has one launch, and results stay as they are."""
    with tried(_serve, mine, model) as (run, right):
        launched, captured = _graph_launches(run.trace), _captures(run.trace)
        if launched != len(right):
            raise Rejected(
                f"a graph was launched {count(launched, 'time')}, for {count(len(right), 'request')}"
            )
        if captured > len(set(SHAPES)) + SECOND:
            raise Rejected(
                f"the pipeline was captured {count(captured, 'time')}, and "
                f"{len(set(SHAPES)) + SECOND} shapes came up: look whether there is a graph for the shape"
            )
    for i, (result, numbers) in enumerate(zip(run.result, right, strict=True)):
        server = "first" if i < len(SHAPES) else "second"
        with case(f"two servers, at the {server} one for request {i}, of shape {numbers.shape}"):
            equal(result, numbers)


# ------------------------------------------------------------------ the challenge
MODELS, LAYERS, TOKENS, GOAL_US = 4, 8, 12, 2000


def _talked(answer: Any) -> tuple[Observed[Any], list[list[Array]]]:
    """Have models talk, each of which adds a number of its own in each layer and shrinks what is there."""
    models: list[tuple[agt.DeviceOp[Any], agt.DeviceArray, agt.DeviceArray]] = []
    prompts: list[Array] = []
    right: list[list[Array]] = []
    for i in range(MODELS):
        kernel = step_kernel("layer")
        arrays = [_zeros(64, f"x{n}") for n in range(LAYERS + 1)]
        layers = [
            kernel(64, 0.9, i - 1.5, a.borrow(), b.borrow().partition(64))
            for a, b in pairwise(arrays)
        ]
        models.append((agt.zip(*layers).named(f"model {i}"), arrays[0], arrays[-1]))
        prompts.append(agt.pin(noise(i, 64)))
        word, words = prompts[i], list[Array]()
        for _ in range(TOKENS):
            for _ in range(LAYERS):
                word = np.float32(0.9) * word + np.float32(i - 1.5)
            words.append(word)
        right.append(words)
    return observe(answer, models, prompts, TOKENS), right


def check_challenge(mine: Any, model: Any) -> float:
    """Each token of each model is right; returns the time that all took, the capture included, in us."""
    with tried(_talked, mine, model) as (run, right):
        for i, words in enumerate(listed("talk", run.result, MODELS)):
            in_order("talk", words, right[i], f"model {i}, token")
        return below(GOAL_US, run.trace)


EXERCISES = (
    Exercise("09-first-graph", "Your first graph", "replay", check_first_graph),
    Exercise("09-token-loop", "A token loop", "run_tokens", check_token_loop, hostile_token_loop),
    Exercise("09-no-allocation", "Fit for a graph", "capturable", check_no_allocation),
    Exercise("09-break-even", "From how many runs on?", "break_even", check_break_even),
    Exercise("09-shapes", "A graph for each shape", "make_server", check_shapes),
    Exercise("09-challenge", "Challenge: four conversations", "talk", check_challenge),
)
