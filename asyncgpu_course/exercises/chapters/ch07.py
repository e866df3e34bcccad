"""Exercises of 07_async_mlp: what each one checks."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks import results, sandbox, schedule
from asyncgpu_course.checks.building import built
from asyncgpu_course.checks.device import host_arrays, moved
from asyncgpu_course.checks.operations import cuda, filled, noise, own_sizes
from asyncgpu_course.checks.rejection import Rejected, case, compared, must
from asyncgpu_course.checks.results import CheckedArray, brief, equal
from asyncgpu_course.checks.sandbox import Observed, observe, on_fresh_device
from asyncgpu_course.checks.trials import cases, runs, timed
from asyncgpu_course.exercises.exercise import Exercise
from asyncgpu_course.internals import count, happens_before


# ------------------------------------------------------------------ the chain
def _shared(*hosts: CheckedArray) -> list[agt.DeviceArray]:
    return [agt.h2d(agt.pin(host)).sync().share() for host in hosts]


def _gemm(x: Any, w0: Any, hidden: Any) -> agt.DeviceOp[Any]:
    (m, k), n = x.shape, hidden.shape[1]
    return agt.sgemm_naive(m, n, k, 1.0, x, w0, 0.0, hidden.partition(16, 16)).output()


def _matvec(hidden: Any, w1: Any, output: Any) -> agt.DeviceOp[Any]:
    return agt.matvec_naive(*hidden.shape, hidden, w1, output.partition(256)).output()


def _relu(output: Any) -> agt.DeviceOp[Any]:
    part = output.partition(256)
    return agt.relu(output.size, part, part).output()


def _forward(x: CheckedArray, w0: CheckedArray, w1: CheckedArray) -> CheckedArray:
    return np.maximum(x @ w0 @ w1, 0)


_CHAIN = ("h2d", "sgemm_naive", "matvec_naive", "relu", "d2h")


def _chained(
    answer: Any, expected: agt.Trace, x: CheckedArray, weights: Sequence[agt.DeviceArray]
) -> Observed:
    """Have a chain made of stages that are noted, and run it."""
    called = set[Any]()

    def noted(stage: Any) -> Any:
        def its(*args: Any) -> Any:
            called.add(stage)
            return stage(*args)

        return its

    stages = _gemm, _matvec, _relu
    op = built("chain", answer, expected, x, *weights, *map(noted, stages))
    x += np.float32(0.5)  # the operation reads what is there by then
    run = observe(op.sync)
    for stage in stages:
        cause = f"`chain` didn't call the `{stage.__name__[1:]}` it was given, "
        must(stage in called, cause + "and we'll swap one of them later")
    return run


def _chain(mine: Any, model: Any, rows: int, inner: int, outer: int) -> None:
    """One lazy operation on one stream, that leaves the weights where they are for the next."""
    x = agt.pin(noise(4, rows, inner) / np.float32(8))
    w0, w1 = noise(5, inner, outer) / np.float32(8), noise(6, outer)
    expected = on_fresh_device(lambda: _chained(model, agt.Trace(), x, _shared(w0, w1)).trace)
    weights = _shared(w0, w1)
    for _ in range(2):  # the weights are there for the second batch, too
        run = _chained(mine, expected, x, weights)
        with compared(run.trace, expected):
            schedule.each_once(run.trace, *_CHAIN)
            schedule.launches(run.trace, "d2d", 0)
            schedule.one_stream(run.trace)
            schedule.ordered(run.trace, *_CHAIN)
        equal(run.result, _forward(x, w0, w1))


def _upload(mine: Any, model: Any, dim: int) -> None:
    """One operation, one copy of each, and any number of users."""
    hosts = noise(7, dim, dim), noise(8, dim)
    expected = on_fresh_device(observe, lambda: model(*map(agt.pin, hosts)).sync())
    late = [agt.pinned(host.shape) for host in hosts]
    op = built("upload", mine, expected.trace, *late)
    list(map(np.copyto, late, hosts))
    run = observe(op.sync)
    cause = "`upload` should yield both weights, W0 and then W1, and it yielded "
    found = results.tuple_of(run.result, 2, cause, list)
    schedule.launches(run.trace, "h2d", 2)
    cause = "`upload` should yield shared arrays, for any number of batches, and it yielded "
    for i, (array, host) in enumerate(zip(found, hosts, strict=True)):
        with case(f"W{i} (whose host array was filled after `upload` had returned)"):
            shared = isinstance(array, agt.DeviceArray) and array.mode == "shared"
            must(shared, cause + brief(array))
            equal(agt.d2h(array).sync(), host)


# ------------------------------------------------------------------ somebody waits
def _mlp(x: Any, w0: Any, w1: Any) -> agt.DeviceOp[Any]:
    n = len(x)

    def stages(arrays: Any) -> agt.DeviceOp[Any]:
        x, hidden, output = arrays
        chain = _gemm(x, w0, hidden).and_then(lambda hidden: _matvec(hidden, w1, output))
        return chain.and_then(_relu)

    room = agt.zip(agt.h2d(x, "x"), agt.zeros((n, w0.shape[1])), agt.zeros(n))
    return room.and_then(stages).to_host()


@sandbox.private_device(stand_in_above=1e4)  # NumPy computes what is large
def _urgent(answer: Any, batches: list[CheckedArray], *weights: CheckedArray) -> Observed:
    shared = _shared(*weights)
    ops = [_mlp(agt.pin(x), *shared).named(f"batch {i}") for i, x in enumerate(batches)]
    agt.zip(*ops)  # parts of something: nobody is warned of those that stay unrun
    return observe(answer, ops)


def _first_come(mine: Any, model: Any, number: int, first: int) -> None:
    """The first is ready as soon as if it were alone, and the others take no longer than they must."""
    inputs = agt.data.seed_inputs(1024)
    given = inputs.w0, inputs.w1
    batches = [inputs.batches[i % 4, : first - 8 * i * i] for i in range(number)]
    run, expected = (_urgent(answer, batches, *given) for answer in (mine, model))
    with compared(run.trace, expected.trace):
        schedule.never_blocks(run.trace)
        right = [_forward(x, *given) for x in batches]
        results.in_order("urgent", run.result, right, "operation")
        (soon, last), (due, end) = (
            (schedule.stretches(o.trace, [first])[0][1], max(s.end for s in o.trace.device_spans))
            for o in (run, expected)
        )
        cause = f"the urgent one was ready after {soon:.0f} µs, and {due:.0f} are enough if nothing else "
        must(soon < 1.05 * due, cause + "is on the device before it is done")
        cause = f"all were ready after {last:.0f} µs, and {end:.0f} are enough: once the urgent one is done, "
        must(last < 1.05 * end, cause + "nobody needs to wait for anybody else")
    batches[-1] = batches[-1][:, :8].copy()  # a row too short for the weights
    try:
        _urgent(mine, batches, *given)
    except Rejected:
        return
    raise Rejected("the last operation failed, and the error doesn't come out of your function")


# ------------------------------------------------------------------ as a graph
def _captured(answer: Any, number: int) -> tuple[Any, agt.types.Stream, list[CheckedArray]]:
    stream = agt.create_stream()
    hosts = [agt.pin(filled(100_000 + i, i)) for i in range(number)]
    ops = [agt.h2d(host).to_host().named(f"op {i}") for i, host in enumerate(hosts)]
    run = observe(answer, ops, stream)
    cause = "`capture` ran something on the device: capturing only writes down what a launch "
    must(not run.trace.device_spans, cause + "will run", *run.trace.device_spans[:1])
    return run.result, stream, hosts


def _launch(graph: Any, stream: agt.types.Stream, *_: object) -> Observed:
    return observe(lambda: [one.copy() for one in host_arrays(graph.launch().sync_on(stream))])


def _capture(mine: Any, model: Any, number: int) -> None:
    """One call starts all; no branch waits for another; each launch reads what the host has by then."""
    expected = on_fresh_device(lambda: _launch(*_captured(model, number)).trace)
    graph, stream, hosts = _captured(mine, number)
    results.a_graph("capture", graph, stream)
    for launch in (1, 2):
        right = [filled(host.size, 10 * launch + i) for i, host in enumerate(hosts)]
        for host, numbers in zip(hosts, right, strict=True):
            host[:] = numbers
        with case(f"launch {launch}"):
            run = _launch(graph, stream)
            results.in_order("graph.launch()", run.result, right)
            with compared(run.trace, expected):
                ends = schedule.results(run.trace, [host.size for host in hosts])
                cause = "the graph runs two in a row: `zip` keeps an order, `overlap` makes a branch of each"
                for one, two in combinations(sorted(ends, key=lambda span: span.id), 2):
                    free = one.stream != two.stream and not happens_before(run.trace, one, two)
                    must(free, cause, one, two)


# ------------------------------------------------------------------ the race
RUNNERS, PAR = 8, 45.0


def _race(answer: Any) -> Observed:
    """The second run, on other numbers than the first had; both have to be right, and this one quick."""
    inputs = agt.data.seed_inputs(64, RUNNERS)
    batches = [agt.pin(batch) for batch in inputs.batches]
    go = sandbox.call(answer, _mlp, batches, *_shared(inputs.w0, inputs.w1))

    async def once() -> list[CheckedArray]:
        returned: Any = go()
        cause = "`race` should return an `async def` function that can run again and again"
        must(asyncio.iscoroutine(returned), cause)
        given.append([*results.listed("go", await returned, RUNNERS)])
        return [np.array(result) for result in given[-1]]

    run, before, given = Observed(None, agt.Trace()), list[CheckedArray](), list[list[Any]]()
    others = np.concatenate([inputs.batches[:1], inputs.batches[:0:-1] + np.float32(0.25)])
    for numbers in (inputs.batches, others):  # whose first batch is the same
        for pinned, batch in zip(batches, numbers, strict=True):
            pinned[:] = batch
        with moved() as there:
            run = observe(once)
        schedule.never_blocks(run.trace)
        right = [_forward(batch, inputs.w0, inputs.w1) for batch in numbers]
        stale = any(map(np.array_equal, run.result[1:], before[1:]))
        again = "other numbers in a second run, and results of the first came again"
        with case(again if stale else ""):
            results.each_equal(run.result, right, f"{RUNNERS} batches, for batch")
        before = before or run.result
        cause = "the second run has overwritten results of the first, which belong to the caller: "
        must(all(map(np.array_equal, given[0], before)), cause + "return copies")
        there.by_kernels(run.result, numbers)
    return replace(run, trace=run.trace.from_first())


# ------------------------------------------------------------------ two devices
def _sum(n: int, w: CheckedArray, y: CheckedArray) -> CheckedArray:
    return y[:n] + w[:n]


def _recipe(x: Any, w: Any) -> agt.DeviceOp[Any]:
    out, add = agt.zeros(x.size).partition(256), agt.Kernel(cuda("07_add"), reference=_sum)
    positive = agt.relu(x.size, agt.h2d(x), out).output()
    return positive.and_then(lambda y: add(y.size, w, y.partition(256)).output()).to_host()


def _on_both(answer: Any, number: int, size: int) -> Observed:
    with sandbox.private_fleet(2, stand_in_above=1e4) as both:  # NumPy computes what is large
        batches, weights = _batches(number, size)
        sandbox.call(answer, _recipe, [weights, weights], agt.pin(0 * weights), both)
        return observe(answer, _recipe, list(map(agt.pin, batches)), weights, both)


def _batches(number: int, size: int) -> tuple[list[CheckedArray], CheckedArray]:
    """The first is long, so that it isn't ready first."""
    sizes = [size + MORE, *own_sizes(number - 1, size)]
    batches = [filled(n, i) for i, n in enumerate(sizes)]
    return batches, agt.pin(np.arange(size + MORE, dtype=np.float32))


def _took_turns(run: Observed, number: int, size: int) -> None:
    """Even batches run here and odd ones there, at the same time, with one copy of the weights on each."""
    sizes = [size + MORE, *own_sizes(number - 1, size)]
    schedule.launches(run.trace, "relu", number)
    schedule.never_blocks(run.trace)
    for i, span in enumerate(schedule.results(run.trace, sizes)):
        right = f"sim:{i % 2}"
        cause = f"batch {i} ran on device {span.device}, but belongs on {right}: they take turns"
        must(span.device == right, cause, span)
    spans = run.trace.find("h2d")
    copies = count(len(spans) - number, "time")
    cause = f"the weights were copied {copies}: once to each device is right, for all batches of this call "
    must(len(spans) - number == 2, cause + "(the next call's weights are others)", *spans[:1])
    if size == LONG:
        schedule.all_in_flight(run.trace, sizes, number)
    batches, weights = _batches(number, size)
    right = [np.maximum(batch, 0) + weights[: batch.size] for batch in batches]
    results.in_order("on_both", run.result, right, f"{number} batches, for batch")


LONG, MORE = 2_200_000, 900_000  # elements: such copies go on while the host starts others
BATCHES, SHAPES = [(4,), (2,), (7,), (11,)], [(64, 64, 64), (48, 32, 80)]
CHAPTER_07 = (
    Exercise("07-chain", "The chain", "chain",
             cases(_chain, SHAPES, "a batch of {0} x {1} and weights of {1} x {2}")),
    Exercise("07-upload", "Weights for everybody", "upload",
             cases(_upload, [(64,), (48,)], "weights of {0} x {0}")),
    Exercise("07-urgent", "One of them is urgent", "urgent",
             cases(_first_come, [(6, 300), (4, 960)], "{} operations")),
    Exercise("07-capture", "All of them in one graph", "capture", cases(_capture, BATCHES, "{} operations")),
    Exercise("07-race", "The race: eight batches", "race",
             timed(_race, [()], "", PAR, "Where does the time go?")),
    Exercise("07-two-devices", "Two devices", "on_both",
             runs(_on_both, _took_turns, [(7, 3_000), (5, LONG)], "")),
)  # fmt: skip
