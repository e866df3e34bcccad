"""What the exercises of 09_cuda_graphs check."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from asyncgpu_tutor.arrays.handles import DeviceArray
from asyncgpu_tutor.exercises.exercise import Rejected, case, compared
from asyncgpu_tutor.exercises.schedule import launches, unordered, waits
from asyncgpu_tutor.exercises.steps import BLOCK, step, step_kernel
from asyncgpu_tutor.exercises.trial import Observed, calling, observe, private_device
from asyncgpu_tutor.exercises.values import equal
from asyncgpu_tutor.ops import CudaGraph, DeviceOp, d2h, h2d, pin, pinned, zeros
from asyncgpu_tutor.ops import zip as zip_ops
from asyncgpu_tutor.run import create_stream
from asyncgpu_tutor.traces.spans.vocabulary import count
from asyncgpu_tutor.traces.trace import Trace

__all__ = [
    "check_branches",
    "check_break_even",
    "check_first_graph",
    "check_layers",
    "check_no_allocation",
    "check_shapes",
    "check_token_loop",
    "hostile_token_loop",
]

Array = npt.NDArray[Any]


def _zeros(n: int, name: str) -> DeviceArray:
    return zeros(n, name=name).sync()


def _calls(trace: Trace, what: str) -> int:
    return sum(span.kind == "call" and span.name.startswith(what) for span in trace)


def _captures(trace: Trace) -> int:
    return _calls(trace, "instantiate ")


def _graph_launches(trace: Trace) -> int:
    return _calls(trace, "launch graph ")


def _random(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


# ------------------------------------------------------------------ the first graph
def _replay(answer: Any, times: int) -> tuple[Observed[Any], bool]:
    """Run an operation that adds 1 to an array; also whether all was done on return."""
    stream = create_stream()
    x = _zeros(1000, "x")
    if inspect.iscoroutinefunction(answer):
        raise Rejected("`replay` should be a plain function, `def`, and not `async def`")
    run = observe(lambda: (answer(step("increment", 1.0, 1.0, x, x), stream, times), stream.done))
    result, done = run.result
    return Observed(result, run.trace), done


def check_first_graph(mine: Any, model: Any) -> None:
    """One capture, as many launches as asked for, one wait at the end, and the graph comes back."""
    for times in (5, 2):
        with private_device():
            expected, _ = _replay(model, times)
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
            waits(run.trace, 1, "launches on one stream follow each other by themselves")
            if not done:
                raise Rejected(
                    "`replay` returned before the device was done: wait for the stream at the end",
                    *run.trace.find("increment")[-1:],
                )
        if not isinstance(run.result, CudaGraph):
            raise Rejected(f"`replay` should return the graph, and returned {run.result!r}")


# ------------------------------------------------------------------ the token loop
def _token_loop(answer: Any, number: int) -> tuple[Observed[Any], list[Array]]:
    x, y = _zeros(64, "x"), _zeros(64, "y")
    out = pinned(64)
    out[:] = 0
    op = zip_ops(step("model", 3.0, 1.0, x, y), d2h(y.borrow(), out=out)).last()
    graph = op.graph_on(create_stream())
    tokens = [pin(_random(seed, 64)) for seed in range(number)]
    return observe(answer, graph, x, tokens), [3 * token + 1 for token in tokens]


def _tokens(results: object, expected: list[Array]) -> None:
    number = len(expected)
    found = cast(Sequence[object], results if isinstance(results, list | tuple) else ())
    if len(found) != number:
        raise Rejected(f"`run_tokens` should return the {number} results, in a list")
    for i, (got, right) in enumerate(zip(found, expected, strict=True)):
        with case(f"{number} tokens, for token {i}"):
            equal(got, right)


def check_token_loop(mine: Any, model: Any) -> None:
    """An update and a launch for each token, nobody blocks, and each result is kept."""
    for number in (5, 2):
        with private_device():
            expected, _ = _token_loop(model, number)
        run, right = _token_loop(mine, number)
        with case(f"{number} tokens"), compared(run.trace, expected.trace):
            waits(run.trace, 0, "`sync` blocks the event loop, and with it every other task")
            launches(run.trace, "h2d", number)
            launched = _graph_launches(run.trace)
            if launched != number:
                raise Rejected(
                    f"the graph was launched {count(launched, 'time')}, for {count(number, 'token')}"
                )
        _tokens(run.result, right)


def hostile_token_loop(mine: Any, _model: Any) -> None:
    """Each result is of its own token, whatever takes how long."""
    run, right = _token_loop(mine, 4)
    _tokens(run.result, right)


# ------------------------------------------------------------------ branches
def _branches(answer: Any, number: int, n: int) -> tuple[Observed[Any], list[str]]:
    """Operation i: x = i + 1, brought to the host. Capture, and launch once."""
    names = [f"arm{i}" for i in range(number)]

    def arm(i: int) -> DeviceOp[Any]:
        x, out = _zeros(n, f"x{i}"), pinned(n)
        kept.append(x)
        return zip_ops(step(names[i], 0.0, i + 1.0, x, x), d2h(x.borrow(), out=out)).last()

    kept: list[DeviceArray] = []
    stream = create_stream()
    graph = calling(answer, [arm(i) for i in range(number)], stream)
    if not isinstance(graph, CudaGraph):
        raise Rejected(
            f"`side_by_side` should return one graph, and returned {type(graph).__name__}"
        )
    launch = cast(CudaGraph[Any], graph).launch()
    return observe(lambda: launch.sync_on(stream)), names


def check_branches(mine: Any, model: Any) -> None:
    """One graph, none of whose parts waits for another, and results in order."""
    for number, n in [(3, 100_000), (2, 1000)]:
        with private_device():
            expected, _ = _branches(model, number, n)
        run, names = _branches(mine, number, n)
        results = cast(Sequence[object], run.result)
        if len(results) != number:
            raise Rejected(
                f"a launch yields {count(len(results), 'result')}, of {number} operations"
            )
        with case(f"{number} operations"), compared(run.trace, expected.trace):
            for i in range(1, number):
                unordered(run.trace, names[i - 1], names[i])
        for i, result in enumerate(results):
            with case(f"{number} operations, for result {i}"):
                equal(result, np.full(n, i + 1, np.float32))


# ------------------------------------------------------------------ no allocation
def check_no_allocation(mine: Any, _model: Any) -> None:
    """It can be captured, and each launch reads the slot and writes `out`."""
    for n in (1000, 64):
        slot, out = pinned(n), pinned(n)
        slot[:], out[:] = -1, -1
        x, y = _zeros(n, "x"), _zeros(n, "y")
        stream = create_stream()
        op = calling(mine, slot, x, y, out)
        if not isinstance(op, DeviceOp):
            raise Rejected(f"`capturable` should return an operation, and this came: {_kind(op)}")
        graph = calling(cast(DeviceOp[Any], op).graph_on, stream)
        for launch in range(3):
            slot[:] = _random(launch, n)
            calling(graph.launch().sync_on, stream)
            with case(f"{n} elements, in `out` after launch {launch}"):
                equal(out, np.maximum(slot, 0))


def _kind(thing: object) -> str:
    return f"a {type(thing).__name__}"


# ------------------------------------------------------------------ layer by layer
COUNTS = (1, 4, 16)


def _speedups(answer: Any) -> Any:
    n = 64
    x = _zeros(n, "x")

    def make(number: int) -> DeviceOp[Any]:
        return zip_ops(*[step("layer", 0.5, 1.0, x, x) for _ in range(number)])

    return calling(answer, make, COUNTS, create_stream())


def check_layers(mine: Any, model: Any) -> None:
    """The ratios are those of the makespans of two runs, without the capture."""
    with private_device():
        expected = _speedups(model)
    got = _speedups(mine)
    gains = cast(dict[int, float], got if isinstance(got, dict) else {})
    if set(gains) != set(COUNTS):
        raise Rejected("`speedups` should return a dictionary with a number for each of the counts")
    for number in COUNTS:
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
    """The smallest number of runs for which a graph takes less, and None where there is none."""
    for capture, calls, graph in [*EVEN, *NEVER]:
        got, right = calling(mine, capture, calls, graph), model(capture, calls, graph)
        words = (
            f"a capture of {capture:.0f} µs, {calls:.0f} µs by calls and {graph:.0f} µs by graph"
        )
        with case(words):
            if right is None:
                if got is not None:
                    raise Rejected(f"no number of runs is large enough, and this came out: {got!r}")
                continue
            if isinstance(got, bool) or not isinstance(got, int):
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

    def make(slot: Array) -> DeviceOp[Array]:
        n = int(slot.size)
        flat = h2d(slot.reshape(n))
        op = doubled(n, 2.0, 0.0, flat, zeros(n).partition(BLOCK)).last().unpartition()
        return op.reshape(*slot.shape).to_host().prepare().launch()

    requests = [_random(seed, *shape) for seed, shape in enumerate(SHAPES)]

    def serve() -> list[Any]:
        server = cast(Callable[[Array], Any], answer(make, create_stream()))
        results: list[Any] = []
        for i, x in enumerate(requests):
            try:
                results.append(server(x))
            except (ValueError, IndexError) as error:
                raise Rejected(f"at request {i}, of shape {x.shape}, {error}") from error
        return results

    return observe(serve), requests


def check_shapes(mine: Any, model: Any) -> None:
    """One capture for each shape, one launch for each request, and results that stay."""
    with private_device():
        expected, _ = _serve(model)
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
