"""Answers that are right in another way than the solution, or faster, are accepted."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises import check, solved


def _two_devices(change: Callable[[Any], Any], take: Callable[[Any], Any] = lambda x: x) -> Any:
    async def on_both(recipe: Any, batches: Any, weights: Any, devices: Any) -> Any:
        copies: list[Any] = []
        for device in devices:
            with agt.using(device):
                copies.append(await agt.h2d(weights).share())
        tasks: list[Any] = []
        for i, x in enumerate(batches):
            with agt.using(devices[i % 2]):
                tasks.append(agt.spawn(change(recipe(x, copies[i % 2]))))
        return [take(result) for result in await asyncio.gather(*tasks)]

    return on_both


def _limited(change: Callable[[Any], Any], take: Callable[[Any], Any] = lambda x: x) -> Any:
    async def run_limited(ops: Any, limit: int) -> Any:
        gate = asyncio.Semaphore(limit)

        async def run(op: Any) -> Any:
            async with gate:
                return take(await change(op))

        return await asyncio.gather(*[run(op) for op in ops])

    return run_limited


async def _as_they_come(ops: Any, use: Any) -> None:
    for done in asyncio.as_completed([agt.spawn(op.named("mine")) for op in ops]):
        use(await done)


async def _all_submitted(n: int, prepare: Any, process: Any) -> Any:
    tasks: list[Any] = []
    for i in range(n):
        tasks.append(agt.spawn(process(prepare(i))))
        await asyncio.sleep(0)
    return await asyncio.gather(*tasks)


async def _heart_of_its_own(op: Any, beat: Callable[[], None]) -> Any:
    async def heart() -> None:
        while True:
            beat()
            await agt.sleep(50)

    beating = asyncio.create_task(heart())
    try:
        return await op
    finally:
        beating.cancel()


async def _heart_in_a_group(op: Any, beat: Callable[[], None]) -> Any:
    """An error of the operation cancels the heart, and comes out in a group."""

    async def heart() -> None:
        while True:
            beat()
            await agt.sleep(50)

    async with asyncio.TaskGroup() as group:
        beating = group.create_task(heart())
        result = await op
        beating.cancel()
    return result


async def _errors_among_results(ops: Any) -> Any:
    """No `try` at all."""

    def told(outcome: Any) -> tuple[str, Any]:
        if isinstance(outcome, agt.DeviceError):
            return "device", outcome
        return ("program" if isinstance(outcome, Exception) else "done"), outcome

    return [told(outcome) for outcome in await asyncio.gather(*ops, return_exceptions=True)]


async def _patient(op: Any, us: float) -> Any:
    task, clock = agt.spawn(op), asyncio.create_task(agt.sleep(us))
    done, late = await asyncio.wait({task, clock}, return_when=asyncio.FIRST_COMPLETED)
    for other in late:
        other.cancel()
    return task.result() if task in done else None


def _stage(output: Any) -> Any:
    blocks = output.partition(32)
    return agt.relu(output.size, blocks, blocks).last().unpartition()


def _lines(hidden: Any, w1: Any, output: Any) -> Any:
    rows, columns = hidden.shape
    return (
        agt.matvec_naive(rows, columns, hidden, w1, output, grid=rows, block=1).last().named("mine")
    )


def _straight(x: Any, w0: Any, w1: Any, gemm: Any, matvec: Any, relu: Any) -> Any:
    """Room is made stage by stage, and not in advance."""
    rows, columns = len(x), w0.shape[1]

    def hidden(x: Any) -> Any:
        return agt.zeros((rows, columns)).and_then(lambda room: gemm(x, w0, room))

    def output(hidden: Any) -> Any:
        return agt.zeros(rows).and_then(lambda room: matvec(hidden, w1, room))

    return agt.h2d(x).and_then(hidden).and_then(output).and_then(relu).and_then(agt.d2h)


def _fused(mlp: Any, batches: Any, w0: Any, w1: Any) -> Any:
    """One copy there and one back, and the weights multiplied first."""
    inputs, outputs = agt.pinned((8, 64, 64)), agt.pinned(512)
    places = [agt.zeros(inputs.shape).sync(), agt.zeros(512).sync()]
    kernel = agt.Kernel(ONE_KERNEL)
    steps = agt.zip(
        agt.memcpy(places[0].borrow(), inputs),
        kernel(places[0].borrow(), w0, w1, places[1].borrow().partition(64)),
        agt.d2h(places[1].borrow(), out=outputs),
    )
    graph = steps.graph_on(agt.create_stream())

    async def go() -> Any:
        for there, batch in zip(inputs, batches, strict=True):
            there[:] = batch
        await graph.launch()
        return list(outputs.reshape(8, 64))

    return go


ONE_KERNEL = r"""
extern "C" __global__ void fused(const float* x, const float* w0, const float* w1, float* y)
{
    __shared__ float v[64];
    unsigned int t = threadIdx.x, row = blockIdx.x * 64 + t;
    float sum = 0.0f, score = 0.0f;
    for (unsigned int j = 0; j < 64; j++) sum += w0[t * 64 + j] * w1[j];
    v[t] = sum;
    __syncthreads();
    for (unsigned int j = 0; j < 64; j++) score += x[row * 64 + j] * v[j];
    y[row] = score > 0.0f ? score : 0.0f;
}
"""


async def _gathered(first: Any, second: Any) -> Any:
    return await asyncio.gather(first.schedule(), second.schedule())


async def _job_among_tasks(trips: Any, job: Any) -> Any:
    async def work() -> None:
        job()

    *results, _ = await asyncio.gather(*[agt.spawn(trip) for trip in trips], work())
    return results


def _two_uploads(a: Any, x: Any) -> Any:
    m, n = a.shape
    a_there, x_there = agt.overlap(agt.h2d(a), agt.h2d(x)).unzip()
    product = agt.matvec_naive(m, n, a_there, x_there, agt.zeros(m).partition(128))
    return agt.relu(m, product.output(), agt.zeros(m).partition(128)).output().to_host()


FUSED = r"""
extern "C" __global__ void fused(unsigned int m, unsigned int n, const float* a, const float* x, float* y)
{
    unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < m) {
        float sum = 0.0f;
        for (unsigned int j = 0; j < n; j++) sum += a[row * n + j] * x[j];
        y[row] = sum > 0.0f ? sum : 0.0f;
    }
}
"""


def _one_kernel(a: Any, x: Any) -> Any:
    m, n = a.shape
    y = agt.zeros(m).partition(128)
    return agt.Kernel(FUSED)(m, n, agt.h2d(a), agt.h2d(x), y).output().to_host()


def _in_a_task(op: Any, job: Any) -> Any:
    async def both() -> Any:
        task = agt.spawn(op)
        await asyncio.sleep(0)
        job()
        return await task

    return asyncio.run(both())


def _polled(op: Any, job: Any) -> Any:
    stream = agt.create_stream()
    result = op.async_on(stream)
    job()
    while not stream.done:
        pass
    return result


class _Upload(agt.DeviceOp[Any]):
    def __init__(self, host: Any) -> None:
        self._built("h2d", sys._getframe(1))
        self.host = host

    def _enqueue(self, context: Any) -> Any:
        array = context.empty(self.host.shape, self.host.dtype)
        context.copy_from_host(array, self.host)
        return array


def _upload_with_context(host: Any) -> Any:
    def full(context: Any, x: Any) -> Any:  # a name that the course uses as well
        array = context.empty(np.ones(x.shape).shape, x.dtype)
        context.copy_from_host(array, x)
        return agt.value(array)

    return agt.value(host).and_then_with_context(full)


def _blank_from_value(shape: Any, dtype: Any) -> Any:
    def full(context: Any, _: Any) -> Any:
        array = context.empty(shape, dtype)
        context.memset(array)
        return agt.value(array)

    return agt.value(None).and_then_with_context(full)


def _download_named(array: Any) -> Any:
    def d2h(context: Any, given: Any) -> Any:
        return agt.value(context.copy_to_host(given))

    return agt.value(array).and_then_with_context(d2h).named("mine")


def _job_in_between(load: Any, fetch: Any, job: Any, stream: Any) -> Any:
    load.async_on(stream)
    job()
    return fetch.sync_on(stream)


async def _asking_again(op: Any) -> Any:
    stream = agt.create_stream()
    numbers = op.async_on(stream)
    while not stream.done:  # noqa: ASYNC110 - a device's stream sets no asyncio.Event
        await asyncio.sleep(0)
    return numbers.max()


def _one_letter(hosts: Any) -> Any:
    def enqueue(context: Any) -> Any:
        letter = context.empty((16, 1000), np.float32)
        context.copy_from_host(letter, agt.pin(np.stack(hosts)))
        blocks = letter.reshape(letter.size).partition(250)
        return agt.relu(16_000, blocks, blocks).output().reshape(16, 1000).to_host()

    return agt.with_context(enqueue)


def _by_default(x: Any, factors: Any, scaled: Any) -> Any:
    return agt.zip(
        *[agt.h2d(x).and_then(lambda array, f=f: scaled(array, f)).to_host() for f in factors]
    )


def _kept_in_a_closure(x: Any, add: Any) -> Any:
    n = x.size

    def both(array: Any) -> Any:
        positive = agt.relu(n, array.borrow(), agt.zeros(n).partition(64)).output()
        return positive.and_then(lambda p: add(n, array, p, agt.zeros(n).partition(64)).output())

    return agt.h2d(x).and_then(both).to_host()


def _beside_its_copy(x: Any, add: Any) -> Any:
    n = x.size
    there = agt.h2d(x).shared()
    positive = agt.relu(n, there, agt.zeros(n).partition(256)).output()
    both = agt.overlap(there, positive)
    return both.and_then(lambda xs: add(n, *xs, agt.zeros(n).partition(256)).output()).to_host()


def _uploads_on_two_streams(saxpy: Any, a: Any, x: Any, y: Any) -> Any:
    x_there, y_there = agt.overlap(agt.h2d(x), agt.h2d(y)).unzip()
    return saxpy(x.size, a, x_there, y_there.partition(256)).output().to_host()


def _one_of_two_arms(source: Any, left: Any, right: Any, join: Any) -> Any:
    s = source.shared()
    sides = agt.overlap(right(s).named("mine"), left(s), agt.value(0))
    return sides.and_then(lambda found: join(found[1], found[0]))


def _halves_shared(pair: Any, f: Any, g: Any) -> Any:
    s = pair.shared()
    return agt.overlap(f(s.map(lambda p: p[0])), g(s.map(lambda p: p[1])))


def _shared_at_run(matrix: Any, xs: Any) -> Any:
    n = xs[0].size
    weights = agt.value(matrix).share().shared()

    def one(x: Any) -> Any:
        return agt.matvec_naive(n, n, weights, agt.h2d(x), agt.zeros(n).partition(16)).output()

    return tuple(one(x).to_host().named("mine") for x in xs)


class _FirstComeFirstServed(agt.SchedulingPolicy):
    """Round robin, written with a generator, without the constructor of the class that it is derived from."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.turns: Any = None

    def _forever(self) -> Any:
        streams = [self.device.create_stream() for _ in range(self.size)]
        while True:
            yield from streams

    def next_stream(self) -> Any:
        self.turns = self.turns or self._forever()
        return next(self.turns)


def _two_lists(jobs: Any) -> None:
    lanes = [agt.create_stream() for _ in range(3)]
    for op, stream in zip([op for op, us in jobs if us > 100], lanes, strict=True):
        op.named("long").async_on(stream)
    agt.zip(*[op for op, us in jobs if us <= 100]).async_on(agt.create_stream())


def _waits_for_each(prepare: Any, process: Any, chunks: Any, streams: Any) -> Any:
    table, results, marks = prepare.async_on(streams[0]), [], []
    ready = streams[0].record()
    for i, chunk in enumerate(chunks):
        stream = streams[i % len(streams)]
        stream.wait_event(ready)
        results.append(process(chunk, table).async_on(stream))
        marks.append(stream.record())
    for mark in marks:
        mark.synchronize()
    return [result.numpy() for result in results]


def _join_as_you_go(prepare: Any, branches: Any, combine: Any, main: Any, streams: Any) -> Any:
    prepare.async_on(main)
    ready = main.record()
    for branch, stream in zip(branches, streams, strict=True):
        stream.wait_event(ready)
        branch.async_on(stream)
        main.wait_event(stream.record())
    return combine.async_on(main)


def _unequal_parts(process: Any, data: Any) -> Any:
    streams = [agt.create_stream() for _ in range(6)]
    parts = np.split(data, [700_000, 1_500_000, 2_300_000, 3_200_000])
    results = [process(part).async_on(stream) for part, stream in zip(parts, streams, strict=False)]
    for stream in streams:
        stream.synchronize()
    return [result.numpy() for result in results]


def _by_sql(trace: Any) -> Any:
    ((speed,),) = trace.sql(
        "select sum(bytes) / sum(duration) / 1000 from spans where kind = 'h2d'"
    )
    return np.float32(speed)


async def _with_names(i: Any, prepare: Any, process: Any) -> Any:
    with agt.ranges.across("request"):
        with agt.ranges.span("prepare"):
            x = prepare(i)
        return await process(x).named("mine")


async def _forked(requests: Any, score: Any) -> Any:
    """One operation with an arm for each request; seven streams are enough to be fast."""
    arms = [agt.h2d(agt.pin(x)).and_then(score).to_host() for x in requests]
    return list(await agt.overlap(*arms).schedule(agt.StreamPoolRoundRobin(7)))


AMERICAN = {
    "A": "hidden synchronization",
    "B": "too few streams",
    "C": "null stream",
    "D": "pageable copy",
    "E": "lazy module loading",
    "G": "one big kernel",
}
SUMS = """
with kernels as (select * from spans where kind = 'kernel')
select name, count(id), total(end - start) as us from kernels group by name order by us desc
"""


def _prepared_first(op: Any, stream: Any, times: Any) -> Any:
    graph = op.prepare().launch().graph_on(stream)
    for _ in range(times - 1):
        graph.launch().async_on(stream)
    graph.launch().sync_on(stream)
    return graph


async def _two_awaits(graph: Any, x: Any, tokens: Any) -> Any:
    results = []
    for token in tokens:
        await agt.memcpy(x.borrow(), token)
        results.append(np.array(await graph.launch()))
    return results


async def _one_chain(graph: Any, x: Any, tokens: Any) -> Any:
    fed = [agt.memcpy(x.borrow(), token).and_then(lambda _: graph.launch()) for token in tokens]
    return [(await op).copy() for op in fed]


async def _looks_and_lets_others_go_on(graph: Any, x: Any, tokens: Any) -> Any:
    stream, results = agt.create_stream(), []
    for token in tokens:
        graph.update(agt.memcpy(x.borrow(), token))
        answer = graph.launch().async_on(stream)
        while not stream.done:  # noqa: ASYNC110 - to look again and again is what is tried here
            await asyncio.sleep(0)
        results.append(np.array(answer.numpy()))
    return results


def _in_place(slot: Any, x: Any, y: Any, out: Any) -> Any:
    n = slot.size
    copied = agt.memcpy(x.borrow(), slot)
    cut = copied.and_then(lambda _: agt.relu(n, x.borrow(), x.borrow().partition(64)))
    return cut.and_then(lambda _: agt.d2h(x.borrow(), out=out))


def _even_by_recordings(make: Any, stream: Any) -> int:
    def us(run: Any) -> float:
        with agt.record() as trace:
            run()
        return trace.metrics().makespan

    graph = make().graph_on(stream)
    capture = us(lambda: make().graph_on(stream))
    saved = us(lambda: make().sync_on(stream)) - us(lambda: graph.launch().sync_on(stream))
    return next(runs for runs in range(1, 1000) if runs * saved > capture)


class _Lanes:
    def __init__(self, make: Any, stream: Any) -> None:
        self.make, self.stream = make, stream
        self.lanes: dict[Any, Any] = {}

    def __call__(self, x: Any) -> Any:
        if x.shape not in self.lanes:
            slot = agt.pin(x)
            self.lanes[x.shape] = slot, self.make(slot).named("mine").graph_on(self.stream).launch()
        slot, launch = self.lanes[x.shape]
        np.copyto(slot, x)
        return np.array(launch.sync_on(self.stream))


KEEP = r"""
extern "C" __global__ void keep(unsigned int n, const float* y, float* x, unsigned int* turn, float* history)
{
    unsigned int i = threadIdx.x;
    history[turn[i] * n + i] = y[i];
    x[i] = y[i];
    turn[i] += 1;
}
"""


def _remembered_on_the_device(models: Any, prompts: Any, steps: Any) -> Any:
    stream, keep = agt.create_stream(), agt.Kernel(KEEP)
    arms, histories = [], []
    for op, x, y in models:
        n = y.size
        turn = agt.zeros(n, np.uint32).sync_on(stream)
        histories.append(agt.zeros((steps, n)).sync_on(stream))
        kept = keep(n, y.borrow(), x.borrow(), turn, histories[-1].borrow(), grid=1, block=n)
        arms.append(agt.zip(op, kept))
    launch = agt.overlap(*arms).graph_on(stream).launch()
    for (_, x, _), prompt in zip(models, prompts, strict=True):
        agt.memcpy(x.borrow(), prompt).async_on(stream)
    for _ in range(steps):
        launch.async_on(stream)
    return [list(agt.d2h(history.borrow()).sync_on(stream)) for history in histories]


async def _by_threads(first: Any, second: Any) -> Any:
    """As by `asyncio.to_thread`, which would start its threads where no test is on the stack."""
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(2) as pool:
        found = [loop.run_in_executor(pool, copy_context().run, op.sync) for op in (first, second)]
        return [await task for task in found]


TRANSPOSE = """
extern "C" __global__ void my_transpose(unsigned int m, unsigned int n, const float* a, float* out)
{
    __shared__ float tile[32][33];
    unsigned int row = blockIdx.y * blockDim.y + threadIdx.y;
    unsigned int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n && col < m) tile[threadIdx.y][threadIdx.x] = a[col * n + row];
    __syncthreads();
    if (row < n && col < m) out[row * m + col] = tile[threadIdx.y][threadIdx.x];
}
"""
REVERSE = """
extern "C" __global__ void my_reverse(unsigned int n, const float* x, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x, other = n - 1 - i;
    if (2 * i >= n) return;
    float first = x[i];
    y[i] = x[other];
    y[other] = first;
}
"""
RELU = """
extern "C" __global__ void my_relu(unsigned int n, const float* x, float* y)
{
    __shared__ float own[1024];
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    own[threadIdx.x] = i < n ? x[i] : 0.0f;
    if (own[threadIdx.x] < 0.0f) own[threadIdx.x] = 0.0f;
    if (i < n) y[i] = own[threadIdx.x];
}
"""


def _stream_by_stream(prepare: Any, process: Any, chunks: Any, streams: Any) -> Any:
    """Chunks in turn, put into one queue after the other."""
    table, results = prepare.async_on(streams[0]), dict[int, Any]()
    ready = streams[0].record()
    for first, stream in enumerate(streams):
        stream.wait_event(ready)
        for i in range(first, len(chunks), len(streams)):
            results[i] = process(chunks[i], table).async_on(stream)
    for stream in streams:
        stream.synchronize()
    return [results[i].numpy() for i in range(len(chunks))]


async def _pieces_as_tasks(process: Any, data: Any) -> Any:
    with agt.using(policy=agt.StreamPoolRoundRobin(3)):
        return list(await asyncio.gather(*[process(part) for part in np.array_split(data, 5)]))


RIGHT: list[tuple[str, Any]] = [
    ("00-both", _by_threads),
    ("01-transpose", agt.Kernel(TRANSPOSE)),
    ("01-reverse", agt.Kernel(REVERSE)),
    ("01-relu", agt.Kernel(RELU)),
    ("02b-chunked-overlap", _stream_by_stream),
    ("02b-challenge", _pieces_as_tasks),
    ("02-fork-join", _join_as_you_go),
    ("02b-chunked-overlap", _waits_for_each),
    ("02b-challenge", _unequal_parts),
    ("01-one-wait", _two_uploads),
    ("01-one-wait", _one_kernel),
    ("01-meanwhile", _in_a_task),
    ("01-meanwhile", _polled),
    ("00-both", _gathered),
    ("00-challenge", _job_among_tasks),
    ("01-grid", lambda n, threads: np.int64(-(-n // threads))),
    ("03-h2d", _Upload),
    ("03-h2d", _upload_with_context),
    ("03-zeros", _blank_from_value),
    ("03-d2h", _download_named),
    (
        "03-recipe-twice",
        lambda x: agt.relu(x.size, agt.h2d(x), agt.zeros(x.size).partition(256)).output().to_host(),
    ),
    ("03-which-way", _job_in_between),
    ("03-largest", _asking_again),
    ("03-challenge", _one_letter),
    ("04-loop", _by_default),
    ("04-baton", _kept_in_a_closure),
    ("04-baton", _beside_its_copy),
    ("04-saxpy", _uploads_on_two_streams),
    (
        "04-zip-or-overlap",
        lambda a, b, join: agt.overlap(b.named("mine"), a).and_then(
            lambda got: join(got[1], got[0])
        ),
    ),
    ("04-diamond", _one_of_two_arms),
    ("04b-unzip", _halves_shared),
    ("04b-workers", _shared_at_run),
    ("05-round-robin", _FirstComeFirstServed),
    ("05-pool-size", lambda length, pace, room: np.int64(min(-(-length // pace), room))),
    ("05-when-it-pays", lambda trace: np.float32(solved("05-when-it-pays")(trace))),
    ("05-challenge", _two_lists),
    ("06-prepare", _all_submitted),
    ("06-responsive", _heart_of_its_own),
    ("06-responsive", _heart_in_a_group),
    ("06-three-arms", _errors_among_results),
    ("06-cancel", _patient),
    ("06-as-completed", _as_they_come),
    ("07-stages", (_lines, _stage)),
    ("07-chain", _straight),
    ("07-race", _fused),
    (
        "08-gap",
        lambda trace: [[0.0, 0.0], *((g.start, g.end) for g in agt.analyse(trace).gaps[:1])][-1],
    ),
    ("08-rate", _by_sql),
    ("08-annotate", _with_names),
    ("08-suspects", AMERICAN),
    ("08-sql", SUMS),
    ("08-challenge", _forked),
    ("06-limited", _limited(lambda op: op.named("mine"))),
    ("06-limited", _limited(lambda op: agt.zip(op, agt.value(0)), lambda pair: pair[0])),
    ("07-two-devices", _two_devices(lambda op: op.named("mine"))),
    (
        "07-two-devices",
        _two_devices(lambda op: agt.overlap(op, agt.value(0)), lambda pair: pair[0]),
    ),
    ("09-first-graph", _prepared_first),
    ("09-token-loop", _two_awaits),
    ("09-token-loop", _one_chain),
    ("09-token-loop", _looks_and_lets_others_go_on),
    (
        "07-capture",
        lambda ops, stream: agt.overlap(
            *[op.named("mine").prepare().launch() for op in ops]
        ).graph_on(stream),
    ),
    ("09-no-allocation", _in_place),
    ("09-break-even", _even_by_recordings),
    ("09-shapes", _Lanes),
    ("09-challenge", _remembered_on_the_device),
]


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_it_passes(name: str, answer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # The course's own solutions meet all adversaries, in `test_course`.
    monkeypatch.setattr("asyncgpu_tutor.exercises.api.ADVERSARIES", (1,))
    outcome = check(name, answer)

    assert outcome.accepted, outcome.cause
