"""Exercises of 07_async_mlp: what each one checks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import combinations
from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.chapters import ch07_kernels
from asyncgpu_tutor.exercises.checks.building import built
from asyncgpu_tutor.exercises.checks.operations import filled, noise, own_sizes
from asyncgpu_tutor.exercises.checks.results import (
    Array,
    brief,
    each_equal,
    equal,
    in_order,
    listed,
)
from asyncgpu_tutor.exercises.checks.schedule import (
    a_kernel_ran,
    all_in_flight,
    below,
    in_flight,
    launches,
    never_blocks,
    one_stream,
    ordered,
    results,
)
from asyncgpu_tutor.exercises.exercise import Exercise, Rejected, case, compared
from asyncgpu_tutor.exercises.internals import SimDevice, count
from asyncgpu_tutor.exercises.sandbox import (
    Observed,
    call,
    call_plain,
    observe,
    on_fresh_device,
    private_device,
    tried,
)


# ------------------------------------------------------------------ the stages
def _on_device(*hosts: Array) -> list[agt.DeviceArray]:
    return [agt.h2d(agt.pin(host)).sync() for host in hosts]


def _stage(
    name: str, answer: Any, hosts: Sequence[Array], expected: agt.Trace | None = None
) -> Observed[Any]:
    """Describe a stage and run it, with a copy of what it yields to the host behind it."""
    arrays = _on_device(*hosts)
    if name == "matvec":
        arrays[1] = arrays[1].share()

    def checked(array: object) -> object:
        if not isinstance(array, agt.DeviceArray):
            raise Rejected(
                f"`{name}` should yield the one array that its kernel has written, and yields "
                f"{brief(array)}: `.output()` picks that one"
            )
        return agt.d2h(array)

    op = built(name, answer, expected or agt.Trace(), *arrays)
    return observe(lambda: op.and_then(cast(Any, checked)).sync())


def check_stages(mine: Any, model: Any) -> None:
    """Each is lazy, has one kernel, and yields its output, whatever the shape of the matrix."""
    if not isinstance(mine, tuple) or len(cast(tuple[Any, ...], mine)) != 2:
        raise Rejected(f"`stages` should be the pair `matvec, relu`, and is {brief(mine)}")
    for rows, columns in ((64, 64), (300, 70), (70, 300)):
        matrix, vector, numbers = noise(1, rows, columns), noise(2, columns), noise(3, rows)
        cases = [
            ("matvec", "matvec_naive", (matrix, vector, filled(rows, 7.0)), matrix @ vector),
            ("relu", "relu", (numbers,), np.maximum(numbers, 0)),
        ]
        for i, (name, kernel, hosts, right) in enumerate(cases):
            expected = on_fresh_device(_stage, name, model[i], hosts).trace
            with case(f"{rows} rows of {columns}, for `{name}`"):
                run = _stage(name, cast(tuple[Any, Any], mine)[i], hosts, expected)
                launches(run.trace, kernel, 1)
                equal(run.result, right)


def _gemm(x: Any, w0: Any, hidden: Any) -> agt.DeviceOp[Any]:
    m, k = x.shape
    n = hidden.shape[1]
    return agt.sgemm_naive(m, n, k, 1.0, x, w0, 0.0, hidden.partition(16, 16)).output()


def _matvec(hidden: Any, w1: Any, output: Any) -> agt.DeviceOp[Any]:
    m, n = hidden.shape
    return agt.matvec_naive(m, n, hidden, w1, output.partition(64)).output()


def _relu(output: Any) -> agt.DeviceOp[Any]:
    part = output.partition(64)
    return agt.relu(output.size, part, part).output()


def _forward(x: Array, w0: Array, w1: Array) -> Array:
    return np.maximum(x @ w0 @ w1, 0)


def _shared(*hosts: Array) -> list[agt.DeviceArray]:
    return [array.share() for array in _on_device(*hosts)]


CHAIN = ("h2d", "sgemm_naive", "matvec_naive", "relu", "d2h")


def _chained(
    answer: Any, expected: agt.Trace, x: Array, weights: Sequence[agt.DeviceArray]
) -> Observed[Any]:
    stages = _gemm, _matvec, _relu
    return observe(built("chain", answer, expected, x, *weights, *stages).sync)


def check_chain(mine: Any, model: Any) -> None:
    """One lazy operation on one stream, that leaves the weights where they are for the next."""
    for rows, inner, outer in ((64, 64, 64), (48, 32, 80)):
        x = agt.pin(noise(4, rows, inner) / np.float32(8))
        w0, w1 = noise(5, inner, outer) / np.float32(8), noise(6, outer)

        def known(x: Array = x, hosts: Sequence[Array] = (w0, w1)) -> agt.Trace:
            return _chained(model, agt.Trace(), x, _shared(*hosts)).trace

        expected, weights = on_fresh_device(known), _shared(w0, w1)
        with case(f"a batch of {rows} x {inner} and weights of {inner} x {outer}"):
            for _ in range(2):  # the weights are there for the second batch, too
                run = _chained(mine, expected, x, weights)
                with compared(run.trace, expected):
                    for name in CHAIN:
                        launches(run.trace, name, 1)
                    one_stream(run.trace)
                    ordered(run.trace, *CHAIN)
                equal(run.result, _forward(x, w0, w1))


def check_upload(mine: Any, model: Any) -> None:
    """One operation, one copy of each, and any number of users."""
    for dim in (64, 48):
        w0, w1 = noise(7, dim, dim), noise(8, dim)
        expected = on_fresh_device(
            observe, lambda w0=w0, w1=w1: model(agt.pin(w0), agt.pin(w1)).sync()
        )
        op = built("upload", mine, expected.trace, agt.pin(w0), agt.pin(w1))
        run = observe(op.sync)
        found: Any = run.result
        if not isinstance(found, tuple) or len(cast(tuple[Any, ...], found)) != 2:
            raise Rejected(
                f"both weights should come out, W0 and then W1, and this did: {brief(found)}"
            )
        launches(run.trace, "h2d", 2)
        for name, array, host in zip(("W0", "W1"), cast(Any, found), (w0, w1), strict=True):
            with case(name):
                if not isinstance(array, agt.DeviceArray) or array.mode != "shared":
                    raise Rejected(
                        f"a shared array should come out, which any number of batches may use, and this "
                        f"did: {brief(array)}"
                    )
                equal(agt.d2h(array).sync(), host)


# ------------------------------------------------------------------ as a graph
def _captured(answer: Any, number: int) -> tuple[Any, agt.types.Stream, list[Array]]:
    stream = agt.create_stream()
    hosts = [agt.pin(filled(100_000 + i, i)) for i in range(number)]
    ops = [agt.h2d(host).to_host().named(f"op {i}") for i, host in enumerate(hosts)]
    return call(call_plain, answer, ops, stream), stream, hosts


def _launch(graph: Any, stream: agt.types.Stream) -> Observed[Any]:
    return observe(lambda: [np.array(result) for result in graph.launch().sync_on(stream)])


def check_capture(mine: Any, model: Any) -> None:
    """One call starts all; no branch waits for another; each launch reads what the host has by then."""
    for number in (4, 2):

        def known(number: int = number) -> agt.Trace:
            graph, stream, _ = _captured(model, number)
            return _launch(graph, stream).trace

        expected = on_fresh_device(known)
        graph, stream, hosts = _captured(mine, number)
        if not isinstance(graph, agt.CudaGraph):
            raise Rejected(
                f"`capture` should return a graph, and returned {brief(graph)}: `graph_on(stream)` makes one"
            )
        for launch in (1, 2):
            for i, host in enumerate(hosts):
                host[:] = 10 * launch + i
            with case(f"{number} operations, launch {launch}"):
                run = _launch(graph, stream)
                right = [filled(host.size, 10 * launch + i) for i, host in enumerate(hosts)]
                in_order("graph.launch()", run.result, right)
                with compared(run.trace, expected):
                    _side_by_side(results(run.trace, [host.size for host in hosts]))


def _side_by_side(ends: Sequence[agt.types.Span]) -> None:
    """No operation of a graph comes after another."""
    for one, other in combinations(ends, 2):
        if one.stream == other.stream:
            raise Rejected(
                "the operations are in one branch of the graph, one behind the other: `zip` is order, and "
                "`overlap` gives each a branch of its own",
                one,
                other,
            )


# ------------------------------------------------------------------ the race
RUNNERS, PAR = 8, 100.0


def _race(answer: Any) -> Observed[Any]:
    """The second run, on other numbers than the first had; both have to be right."""
    inputs = agt.data.seed_inputs(64, RUNNERS)
    batches = [agt.pin(batch) for batch in inputs.batches]
    w0, w1 = _shared(inputs.w0, inputs.w1)

    def mlp(x: Any, w0: Any, w1: Any) -> agt.DeviceOp[Any]:
        n = len(x)

        def stages(arrays: Any) -> agt.DeviceOp[Any]:
            x, hidden, output = arrays
            chain = _gemm(x, w0, hidden).and_then(lambda hidden: _matvec(hidden, w1, output))
            return chain.and_then(_relu)

        room = agt.zip(agt.h2d(x, "x"), agt.zeros((n, n)), agt.zeros(n))
        return room.and_then(stages).to_host()

    go = call(call_plain, answer, mlp, batches, w0, w1)

    async def once() -> list[Array]:
        returned: Any = go()
        if not asyncio.iscoroutine(returned):
            raise Rejected(
                "`race` should return an `async def` function, to be run again and again"
            )
        found = listed("go", await returned, RUNNERS)
        return [np.array(result) for result in found]

    run: Observed[Any] = Observed(None, agt.Trace())
    for numbers in (inputs.batches, inputs.batches[::-1] + np.float32(0.25)):
        for pinned, batch in zip(batches, numbers, strict=True):
            pinned[:] = batch
        run = cast(Observed[Any], observe(once))
        never_blocks(run.trace)
        right = [_forward(batch, inputs.w0, inputs.w1) for batch in numbers]
        each_equal(run.result, right, f"{RUNNERS} batches, for batch")
        a_kernel_ran(run.trace)
    return run


def check_race(mine: Any, model: Any) -> float:
    """The answer is right twice, on different numbers, and the second time it is quick."""
    with tried(_race, mine, model) as run:
        return below(PAR, run.trace, "Where does the time go?")


# ------------------------------------------------------------------ two devices
def _two() -> tuple[agt.types.Device, agt.types.Device]:
    first = cast(SimDevice, agt.current_device())
    return first, SimDevice(1, machine=first.machine, stand_in_above=first.stand_in_above)


def _recipe(x: Any, w: Any) -> agt.DeviceOp[Any]:
    out = agt.zeros(x.size).partition(256)
    product = agt.relu(x.size, agt.h2d(x), out).output()
    return product.and_then(lambda y: _added(y, w)).to_host()


def _sum(n: int, w: Array, y: Array) -> Array:
    return y[:n] + w[:n]


ADD = r"""
extern "C" __global__ void add(unsigned int n, const float* w, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += w[i];
}
"""


def _added(y: Any, w: Any) -> agt.DeviceOp[Any]:
    return agt.Kernel(ADD, reference=_sum)(y.size, w, y.partition(256)).output()


def _on_both(answer: Any, batches: Sequence[Array], weights: Array) -> Observed[Any]:
    devices = _two()
    # A recording covers the current device and those that the process knows. It does not know the second one,
    # so that one is recorded apart.
    with agt.using(devices[1]), agt.record() as other, agt.using(devices[0]):
        run = observe(answer, _recipe, batches, weights, devices)
    spans = sorted([*run.trace, *other], key=lambda span: span.id)
    return Observed(run.result, agt.Trace(spans, run.trace.clock, run.trace.device))


@private_device(stand_in_above=1e6)  # NumPy computes what is large
def check_on_both(mine: Any, model: Any) -> None:
    """Even batches run here and odd ones there, at the same time, with one copy of the weights on each."""
    for number, size in [(4, 2_500_000), (3, 300_000)]:
        sizes = own_sizes(number, size)
        batches = [agt.pin(filled(n, i)) for i, n in enumerate(sizes)]
        weights = agt.pin(np.arange(size + number, dtype=np.float32))
        expected = _on_both(model, batches, weights)
        run = _on_both(mine, batches, weights)
        with compared(run.trace, expected.trace):
            launches(run.trace, "relu", number)
            never_blocks(run.trace)
            for i, span in enumerate(results(run.trace, sizes)):
                right = f"sim:{i % 2}"
                if span.device != right:
                    raise Rejected(
                        f"batch {i} ran on device {span.device}, and belongs on {right}: even ones on the "
                        "first, odd ones on the second",
                        span,
                    )
            copies = len(run.trace.find("h2d")) - number
            if copies != 2:
                raise Rejected(
                    f"the weights were copied {count(copies, 'time')}: once to each device is right, and "
                    "all batches there share them",
                    *run.trace.find("h2d")[:1],
                )
            all_in_flight(run.trace, sizes, in_flight(expected.trace, sizes))
        right = [np.maximum(batch, 0) + weights[: batch.size] for batch in batches]
        in_order("on_both", run.result, right, f"{number} batches, for batch")


EXERCISES = (
    Exercise("07-stages", "Two stages", "stages", check_stages),
    Exercise("07-chain", "The chain", "chain", check_chain),
    Exercise("07-upload", "Weights for everybody", "upload", check_upload),
    Exercise("07-capture", "All of them in one graph", "capture", check_capture),
    ch07_kernels.TILED,
    Exercise("07-race", "The race: eight batches", "race", check_race),
    ch07_kernels.SOFTMAX,
    Exercise("07-two-devices", "Two devices", "on_both", check_on_both),
)
