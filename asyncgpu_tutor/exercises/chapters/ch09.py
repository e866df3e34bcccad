"""Exercises of 09_cuda_graphs: what each one checks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.checks import (
    BLOCK,
    Array,
    brief,
    each_equal,
    equal,
    filled,
    in_order,
    is_number,
    launches,
    never_blocks,
    noise,
    step,
    step_kernel,
    unordered,
    waits,
)
from asyncgpu_tutor.exercises.exercise import Exercise, Rejected, case, compared
from asyncgpu_tutor.exercises.internals import count
from asyncgpu_tutor.exercises.sandbox import Observed, call, observe, on_fresh_device

__all__ = ["EXERCISES"]


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
    x = _zeros(4_000_000, "x")  # long enough to be at work still when nobody has waited
    if inspect.iscoroutinefunction(answer):
        raise Rejected("`replay` should be a plain function, `def`, and not `async def`")
    device = agt.current_device()

    def replay() -> tuple[Any, float]:
        begun = device.now()
        return answer(step("increment", 1.0, 1.0, x, x), stream, times), device.now() - begun

    run = observe(replay)
    result, returned = run.result
    done = all(span.end <= returned for span in run.trace.device_spans)
    return Observed(result, run.trace), done


def check_first_graph(mine: Any, model: Any) -> None:
    """There are one capture, as many launches as asked for and one wait at the end; the graph comes back."""
    for times in (5, 2):
        expected, _ = on_fresh_device(_replay, model, times)
        run, done = _replay(mine, times)
        with case(f"times={times}"), compared(run.trace, expected.trace):
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
def _token_loop(answer: Any, number: int) -> tuple[Observed[Any], list[Array]]:
    x, y = _zeros(64, "x"), _zeros(64, "y")
    out = agt.pinned(64)
    out[:] = 0
    op = agt.zip(step("model", 3.0, 1.0, x, y), agt.d2h(y.borrow(), out=out)).last()
    graph = op.graph_on(agt.create_stream())
    tokens = [agt.pin(noise(seed, 64)) for seed in range(number)]
    return observe(answer, graph, x, tokens), [3 * token + 1 for token in tokens]


def _tokens(results: object, expected: list[Array]) -> None:
    in_order("run_tokens", results, expected, f"{len(expected)} tokens, for token")


def check_token_loop(mine: Any, model: Any) -> None:
    """Each token has an update and a launch, the host never blocks, and each result is kept."""
    for number in (5, 2):
        expected, _ = on_fresh_device(_token_loop, model, number)
        run, right = _token_loop(mine, number)
        with case(f"{number} tokens"), compared(run.trace, expected.trace):
            never_blocks(run.trace)
            launches(run.trace, "h2d", number)
            launched = _graph_launches(run.trace)
            if launched != number:
                raise Rejected(
                    f"the graph was launched {count(launched, 'time')}, for {count(number, 'token')}"
                )
        _tokens(run.result, right)


def hostile_token_loop(mine: Any, _model: Any) -> None:
    """Each result belongs to its own token, however long anything takes."""
    run, right = _token_loop(mine, 4)
    _tokens(run.result, right)


# ------------------------------------------------------------------ branches
def _branches(answer: Any, number: int, n: int) -> tuple[Observed[Any], list[str]]:
    """Have an answer capture operations, of which number i sets x to i + 1 and copies it, and launch once."""
    names = [f"arm{i}" for i in range(number)]

    def arm(i: int) -> agt.DeviceOp[Any]:
        x, out = _zeros(n, f"x{i}"), agt.pinned(n)
        kept.append(x)
        return agt.zip(step(names[i], 0.0, i + 1.0, x, x), agt.d2h(x.borrow(), out=out)).last()

    kept: list[agt.DeviceArray] = []
    stream = agt.create_stream()
    graph = call(answer, [arm(i) for i in range(number)], stream)
    if not isinstance(graph, agt.CudaGraph):
        raise Rejected(
            f"`side_by_side` should return one graph, and returned {type(graph).__name__}"
        )
    launch = cast(agt.CudaGraph[Any], graph).launch()
    return observe(lambda: launch.sync_on(stream)), names


def check_branches(mine: Any, model: Any) -> None:
    """None of the graph's parts waits for another, and its results are in order."""
    for number, n in [(3, 100_000), (2, 1000)]:
        expected, _ = on_fresh_device(_branches, model, number, n)
        run, names = _branches(mine, number, n)
        returned: object = run.result
        results = cast(Sequence[object], returned if isinstance(returned, tuple | list) else ())
        if len(results) != number:
            raise Rejected(
                f"a launch should yield {count(number, 'result')}, and yields {brief(returned)}"
            )
        with case(f"{number} operations"), compared(run.trace, expected.trace):
            for i in range(1, number):
                unordered(run.trace, names[i - 1], names[i])
        right = [filled(n, i + 1) for i in range(number)]
        each_equal(results, right, f"{number} operations, for result")


# ------------------------------------------------------------------ no allocation
def check_no_allocation(mine: Any, _model: Any) -> None:
    """It can be captured, and each launch reads the slot and writes `out`."""
    for n in (1000, 64):
        slot, out = agt.pinned(n), agt.pinned(n)
        slot[:], out[:] = -1, -1
        x, y = _zeros(n, "x"), _zeros(n, "y")
        stream = agt.create_stream()
        op = call(mine, slot, x, y, out)
        if not isinstance(op, agt.DeviceOp):
            raise Rejected(f"`capturable` should return an operation, and this came: {_kind(op)}")
        graph = call(cast(agt.DeviceOp[Any], op).graph_on, stream)
        for launch in range(3):
            slot[:] = noise(launch, n)
            call(graph.launch().sync_on, stream)
            with case(f"{n} elements, in `out` after launch {launch}"):
                equal(out, np.maximum(slot, 0))


def _kind(thing: object) -> str:
    return f"a {type(thing).__name__}"


# ------------------------------------------------------------------ layer by layer
COUNTS = (1, 4, 16)


def _speedups(answer: Any) -> Any:
    n = 64
    x = _zeros(n, "x")

    def make(number: int) -> agt.DeviceOp[Any]:
        return agt.zip(*[step("layer", 0.5, 1.0, x, x) for _ in range(number)])

    return call(answer, make, COUNTS, agt.create_stream())


def check_layers(mine: Any, model: Any) -> None:
    """The ratios are those of the makespans of two runs, the capture not counted."""
    expected = on_fresh_device(_speedups, model)
    got = _speedups(mine)
    gains = cast(dict[int, float], got if isinstance(got, dict) else {})
    if set(gains) != set(COUNTS):
        raise Rejected("`speedups` should return a dictionary with a number for each of the counts")
    for number in COUNTS:
        if not is_number(gains[number]):
            raise Rejected(f"a gain should be a number, and one is {brief(gains[number])}")
        gain, right = float(gains[number]), float(expected[number])
        if np.isclose(gain, right, rtol=0.01):
            continue
        words = f"with {count(number, 'layer')}, the gain is {right:.2f}, and not {gain:.2f}"
        if np.isclose(gain, 1 / right, rtol=0.01):
            raise Rejected(f"{words}: it is upside down, so divide calls by graph")
        if np.isclose(gain, 1, rtol=0.01):
            raise Rejected(
                f"{words}: that compares the kernels alone, and they take as long in a graph. Divide the "
                "makespans"
            )
        raise Rejected(
            f"{words}: record a run of each, and nothing besides, and divide the makespans"
        )


# ------------------------------------------------------------------ break even
EVEN = [(100.0, 30.0, 10.0), (242.0, 242.0, 46.0), (10.0, 30.0, 10.0), (0.0, 2.0, 1.0)]
NEVER = [(100.0, 10.0, 10.0), (100.0, 10.0, 12.0)]


def check_break_even(mine: Any, model: Any) -> None:
    """The smallest number of runs comes out for which a graph takes less, and None where there is none."""
    for capture, calls, graph in [*EVEN, *NEVER]:
        got, right = call(mine, capture, calls, graph), model(capture, calls, graph)
        words = (
            f"a capture of {capture:.0f} µs, {calls:.0f} µs by calls and {graph:.0f} µs by graph"
        )
        with case(words):
            if right is None:
                if got is not None:
                    raise Rejected(f"no number of runs is large enough, and this came out: {got!r}")
                continue
            if not is_number(got, whole=True):
                raise Rejected(f"a number of runs is an `int`, and this came out: {got!r}")
            if got != right:
                raise Rejected(
                    f"{count(got, 'run')} take {got * calls:.0f} µs by calls and "
                    f"{capture + got * graph:.0f} µs by graph, so the answer is {right}"
                )


# ------------------------------------------------------------------ a graph for each shape
SHAPES = [(4, 16), (2, 16), (4, 16), (4, 8), (2, 16), (4, 16)]


def _serve(answer: Any) -> tuple[Observed[list[Any]], list[Array]]:
    doubled = step_kernel("doubled")

    def make(slot: Array) -> agt.DeviceOp[Array]:
        n = int(slot.size)
        flat = agt.h2d(slot.reshape(n))
        op = doubled(n, 2.0, 0.0, flat, agt.zeros(n).partition(BLOCK)).output()
        return op.reshape(*slot.shape).to_host().prepare().launch()

    requests = [noise(seed, *shape) for seed, shape in enumerate(SHAPES)]

    def serve() -> list[Any]:
        server = cast(Callable[[Array], Any], answer(make, agt.create_stream()))
        results: list[Any] = []
        for i, x in enumerate(requests):
            try:
                results.append(server(x))
            except (ValueError, IndexError) as error:
                raise Rejected(f"at request {i}, of shape {x.shape}, {error}") from error
        return results

    return observe(serve), requests


def check_shapes(mine: Any, model: Any) -> None:
    """Each shape is captured once, each request has one launch, and results stay as they are."""
    expected, _ = on_fresh_device(_serve, model)
    run, requests = _serve(mine)
    with compared(run.trace, expected.trace):
        launched, captured = _graph_launches(run.trace), _captures(run.trace)
        if launched != len(SHAPES):
            raise Rejected(f"a graph was launched {count(launched, 'time')}, for 6 requests")
        if captured > len(set(SHAPES)):
            raise Rejected(
                f"the pipeline was captured {count(captured, 'time')}, and 3 shapes came up: look whether "
                "there is a graph for the shape"
            )
    for i, (result, x) in enumerate(zip(run.result, requests, strict=True)):
        with case(f"6 requests, for request {i}, of shape {x.shape}"):
            equal(result, 2 * x)


EXERCISES = (
    Exercise("09-first-graph", "Your first graph", "replay", check_first_graph),
    Exercise("09-token-loop", "A token loop", "run_tokens", check_token_loop, hostile_token_loop),
    Exercise("09-branches", "Branches", "side_by_side", check_branches),
    Exercise("09-no-allocation", "Fit for a graph", "capturable", check_no_allocation),
    Exercise("09-layers", "The gain, layer by layer", "speedups", check_layers),
    Exercise("09-break-even", "From how many runs on?", "break_even", check_break_even),
    Exercise("09-shapes", "A graph for each shape", "make_server", check_shapes),
)
