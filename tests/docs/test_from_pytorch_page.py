"""The page for the PyTorch user is one program, which runs on a GPU; its service also on a stand-in.

What needs no GPU runs on whatever PyTorch there is, also on one for CPUs only.

The stand-in has as much of PyTorch as the service uses, made of our own operations on a simulated device.
There a result that is read before its copy is done is an error, so it tells whether the service waits.
"""

import ast
import asyncio
import math
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import copy_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from tests.laws.kernels import SCALE, kernel
from tests.laws.test_failures import faulty
from tests.tools import blocks, page

SNIPPETS = blocks(page("docs/from_pytorch.md"))
(OF_THE_WEB,) = (snippet for snippet in SNIPPETS if "starlette" in snippet)
(OF_THE_SERVICE,) = (snippet for snippet in SNIPPETS if "class Service" in snippet)
(OF_THREADS,) = (snippet for snippet in SNIPPETS if "class Uncaptured" in snippet)
OF_THE_SERVER = [*SNIPPETS[:2], OF_THE_SERVICE, OF_THE_WEB]
SHAPE = (40_000,)
NEVER_ASKED_FOR = b"the rest of a body that is too long"
NEVER_SENT = b"the rest of a body whose client is slow"
SOON_S = 60.0  # nothing here may hang


def test_each_snippet_compiles() -> None:
    for snippet in SNIPPETS:
        compile(snippet, "from_pytorch.md", "exec")


def test_nothing_runs_or_records_where_a_server_imports_the_file() -> None:
    top = [statement for snippet in OF_THE_SERVER for statement in ast.parse(snippet).body]
    defined = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    at_import = [each for each in top if not isinstance(each, defined)]
    told = "\n".join(map(ast.unparse, at_import))
    assert "agt.use('cuda')" in told
    assert "model =" in told
    assert "app =" in told
    assert not any(word in told for word in ("asyncio.run", "record", "print", "assert"))


def test_the_file_to_download_has_the_listings_of_the_server() -> None:
    assert page("docs/answers.py") == "\n".join(OF_THE_SERVER)


def test_the_pictures_name_what_the_page_speaks_of() -> None:
    told = re.findall(
        r"stood still for ([\d.]+) ms, and for ([\d.]+)\n", page("docs/from_pytorch.md")
    )
    item = [f"{each} ms" for each in told[0]]
    reuse = ["ones", "zeros, in the same memory", "sum", "side"]
    for name, words in (("item", item), ("reuse", reuse), ("capture", ["default"])):
        drawn = page(f"docs/torch_{name}.svg")
        assert [word for word in words if f">{word}</text>" not in drawn] == []


async def answers_of(service: Any, asked: list[Any]) -> list[Any]:
    """Let it serve until all have their answers."""
    with running(service) as task:
        answers = await asyncio.gather(*(service(x) for x in asked))
    await asyncio.wait([task])
    return answers


@pytest.mark.gpu
def test_the_program_runs(cuda: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for snippet in SNIPPETS:
        if snippet is not OF_THE_WEB:
            exec(compile(snippet, "from_pytorch.md", "exec"), names)
    blocked, awaited = names["stood_still"]
    assert blocked > 2 * awaited
    assert names["wrong"] != names["right"] == names["n"]
    ones, zeros, total = (
        next(s for s in names["reused"].device_spans if s.label == label)
        for label in ("ones", "zeros", "sum")
    )
    assert ones.end <= zeros.end < total.start
    assert names["shows"] == [0.0, 10.0]
    drawn = {"torch_item.svg", "torch_reuse.svg", "torch_capture.svg"}
    assert {path.name for path in tmp_path.iterdir()} == drawn
    asked = [torch.rand(4096) for _ in range(200)]
    for kind in ("Service", "Threaded", "Uncaptured"):
        answers = asyncio.run(answers_of(names[kind](names["model"], names["SHAPE"]), asked))
        with torch.inference_mode():
            right = names["model"](torch.stack(asked).cuda()).cpu()
            torch.testing.assert_close(torch.stack(answers), right)


# ---------------------------------------------------------------------- PyTorch for CPUs will do
def test_a_mode_leaks_over_an_await() -> None:
    torch = pytest.importorskip("torch")

    async def neighbour() -> bool:
        return bool(torch.is_inference_mode_enabled())

    async def leaks() -> bool:
        with torch.inference_mode():
            return await asyncio.create_task(neighbour())

    assert asyncio.run(leaks())

    async def within(mode: Any, turns: int) -> None:
        with mode():
            for _ in range(turns):
                await asyncio.sleep(0)

    async def overlapping(mode: Any, asked: Callable[[], bool]) -> bool:
        await asyncio.gather(within(mode, 1), within(mode, 2))
        return asked()

    with ThreadPoolExecutor(1) as thread:  # whose modes nobody else has
        for mode, asked in (
            (torch.no_grad, lambda: not torch.is_grad_enabled()),
            (torch.inference_mode, torch.is_inference_mode_enabled),  # no gradients either
        ):
            assert thread.submit(asyncio.run, overlapping(mode, asked)).result()
    assert not torch.is_inference_mode_enabled()


def test_a_mode_above_an_async_function_does_nothing() -> None:
    torch = pytest.importorskip("torch")

    @torch.inference_mode()
    async def handler() -> bool:
        return bool(torch.is_inference_mode_enabled())

    assert not asyncio.run(handler())


async def test_a_body_becomes_a_tensor() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("starlette")
    asked: list[Any] = []

    async def service(x: Any) -> Any:
        asked.append(x)
        return x

    names: dict[str, Any] = {"asyncio": asyncio, "math": math, "torch": torch}
    names |= {"Unavailable": LookupError, "SHAPE": (2, 512), "DTYPE": torch.int64}
    exec(OF_THE_WEB, names)
    names["app"].state.service = service
    numbers = np.random.default_rng(3).integers(0, 2**40, (2, 512))
    assert await post(names["app"], numbers.tobytes()) == (200, best(numbers.argmax()))
    assert asked[0].dtype == torch.int64
    assert asked[0].tolist() == numbers.tolist()


# ---------------------------------------------------------------------- the service, on a stand-in
class OnGpu:
    """A tensor on the GPU."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.array = agt.zeros(shape).sync()

    def copy_(self, host: Any, non_blocking: bool) -> None:
        assert non_blocking
        agt.memcpy(self.array.borrow(), np.asarray(host)).async_on(current.on.ours)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def dtype(self) -> Any:
        return self.array.dtype


class Pinned:
    """Pinned memory that answers are copied to."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, pin_memory: bool) -> None:
        assert pin_memory
        self.memory = self.copied = agt.pinned(shape, dtype)

    def copy_(self, source: OnGpu, non_blocking: bool) -> "Pinned":
        assert non_blocking
        copied = agt.d2h(source.array.borrow(), out=self.memory)
        self.copied = copied.async_on(current.on.ours)
        return self

    def clone(self) -> Any:
        return np.array(self.copied)


class Stream:
    """A stream of PyTorch's."""

    def __init__(self) -> None:
        self.ours = agt.create_stream()

    def wait_stream(self, other: "Stream") -> None:
        self.ours.wait_event(other.ours.record())

    def record_event(self) -> Any:
        return SimpleNamespace(ours=self.ours.record())


class Graph:
    """What is called in its capture is called in each replay, unless that is to fail.

    A fault is a fault of the GPU: the replay returns, and waiting for it tells.
    """

    calls: list[Callable[[], Any]]
    fails = faults = 0

    def replay(self) -> None:
        if Graph.fails:
            Graph.fails -= 1
            raise RuntimeError("not today")
        if Graph.faults:
            Graph.faults -= 1
            faulty().async_on(current.on.ours)
        for call in self.calls:
            call()


class Current(threading.local):
    """Where a thread enqueues: on a stream, or into a capture."""

    on: Any = None


current = Current()


@contextmanager
def on_stream(stream: Stream | Graph) -> Iterator[None]:
    before, current.on = current.on, stream
    try:
        yield
    finally:
        current.on = before


def graph(captured: Graph, stream: Stream) -> AbstractContextManager[None]:
    captured.calls = []
    return on_stream(captured)


def zeros(*shape: int, dtype: Any, pin_memory: bool = False, device: str = "cpu") -> Any:
    assert pin_memory is (device == "cpu")
    return agt.pin(np.zeros(shape, dtype)) if pin_memory else OnGpu(shape)


TORCH = SimpleNamespace(
    Size=tuple,
    Tensor=object,
    float32=np.dtype(np.float32),
    device=str,  # NumPy's arrays say "cpu"
    frombuffer=np.frombuffer,
    set_num_threads=lambda number: None,
    zeros=zeros,
    empty=Pinned,
    stack=lambda rows, out: np.stack(rows, out=out),
    inference_mode=nullcontext,
    cuda=SimpleNamespace(
        Stream=Stream, stream=on_stream, CUDAGraph=Graph, graph=graph, synchronize=agt.synchronize
    ),
)


def twice(x: OnGpu) -> OnGpu:
    """The model."""
    y = OnGpu(x.array.shape)

    def call() -> None:
        n, arrays = x.array.size, (x.array.borrow(), y.array.borrow())
        op = kernel(SCALE)(n, 2.0, *arrays, grid=-(-n // 256), block=256)
        op.async_on(current.on.ours)

    if isinstance(current.on, Graph):
        current.on.calls.append(call)
    elif current.on:
        call()
    return y


class Reached(SimpleNamespace):
    """Our package, for a stream of the stand-in, or an event."""

    def reached(self, point: Any) -> Any:
        return agt.reached(point.ours)

    def current_device(self) -> Any:
        return SimpleNamespace()  # whose patience is set


def page_names(*listings: str) -> dict[str, Any]:
    """What the page's listings define, with the stand-in in place of PyTorch."""
    ours = Reached(ranges=agt.ranges, DeviceError=agt.DeviceError)
    names: dict[str, Any] = {"asyncio": asyncio, "math": math, "torch": TORCH, "agt": ours}
    for listing in listings or (OF_THE_SERVICE,):
        exec(listing, names)
    return names


@pytest.fixture
def names(sim: Device) -> dict[str, Any]:
    return page_names()


@pytest.fixture
def service(names: dict[str, Any]) -> Callable[..., Any]:
    return names["Service"]


@contextmanager
def running(service: Any) -> Iterator[asyncio.Task[None]]:
    task = asyncio.ensure_future(service.run())
    yield task
    task.cancel()


def request(number: int) -> np.ndarray[Any, Any]:
    return np.full(SHAPE, number, np.float32)


async def test_each_request_gets_its_own_answer_out_of_a_batch(service: Any) -> None:
    serving = service(twice, SHAPE)
    with running(serving), agt.record() as trace:
        answers = await asyncio.gather(*(serving(request(number)) for number in range(70)))
    assert [(float(y[0]), float(y[-1])) for y in answers] == [(2.0 * n, 2.0 * n) for n in range(70)]
    copies = [span for span in trace.device_spans if span.kind == "h2d"]
    assert len(copies) == 3  # two of 32, and the rest
    kernels = [span for span in trace.device_spans if span.kind == "kernel"]
    beside = [c for c in copies if any(c.start < k.start < c.end for k in kernels)]
    assert beside  # one is copied while another is computed


async def test_what_fails_is_told_to_its_own_batch(service: Any) -> None:
    serving = service(twice, SHAPE, max_batch=2)
    Graph.fails = 1
    with running(serving):
        told = await asyncio.gather(
            *(serving(request(number)) for number in range(4)), return_exceptions=True
        )
        with pytest.raises(ValueError, match=r"is \(\(40000,\).*32.*, not \(\(3,\).*64.*"):
            await serving(np.zeros(3))
    assert [str(error) for error in told[:2]] == ["not today"] * 2
    assert [float(y[0]) for y in told[2:]] == [4.0, 6.0]


async def test_nobody_waits_for_ever(service: Any, names: dict[str, Any]) -> None:
    serving = service(twice, SHAPE, max_batch=2)
    with running(serving) as task:
        asked = [asyncio.ensure_future(serving(request(number))) for number in range(9)]
        await asyncio.sleep(0)
        asked[0].cancel()  # a client that has gone
        assert float((await asked[1])[0]) == 2.0
    async with asyncio.timeout(SOON_S):
        told = await asyncio.gather(*asked, return_exceptions=True)
    assert isinstance(told[0], asyncio.CancelledError)
    assert isinstance(told[-1], names["Unavailable"])
    await asyncio.wait([task])
    assert task.cancelled()
    assert serving.computing.ours.done  # nothing uses its memory any more
    with pytest.raises(names["Unavailable"], match="has ended"):
        await asyncio.wait_for(serving(request(1)), SOON_S)


async def test_those_that_the_gpu_computes_for_are_told_too(
    service: Any, names: dict[str, Any]
) -> None:
    serving = service(twice, SHAPE)
    enqueue, busy = serving.enqueue, asyncio.Event()

    def enqueued(*args: Any) -> Any:
        busy.set()
        return enqueue(*args)

    serving.enqueue = enqueued
    with running(serving) as task:
        asked = [asyncio.ensure_future(serving(request(number))) for number in range(3)]
        await busy.wait()
        assert not serving.computing.ours.done
    async with asyncio.timeout(SOON_S):
        told = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(error) for error in told] == [names["Unavailable"]] * 3
    await asyncio.wait([task])
    assert serving.computing.ours.done


async def test_there_is_room_for_so_many(service: Any, names: dict[str, Any]) -> None:
    serving = service(twice, SHAPE, max_queue=3)
    asked = [asyncio.ensure_future(serving(request(number))) for number in range(4)]
    await asyncio.sleep(0)
    with pytest.raises(names["Unavailable"], match="too many"):
        await asked[3]
    with running(serving):
        assert [float(y[0]) for y in await asyncio.gather(*asked[:3])] == [0.0, 2.0, 4.0]


async def test_who_is_gone_takes_no_row_of_a_batch(service: Any) -> None:
    serving = service(twice, SHAPE, max_batch=2)
    batches: list[list[float]] = []
    enqueue = serving.enqueue

    def enqueued(rows: Any, lane: Any) -> Any:
        batches.append([float(x[0]) for x in rows])
        return enqueue(rows, lane)

    serving.enqueue = enqueued
    asked = [asyncio.ensure_future(serving(request(number))) for number in range(9)]
    await asyncio.sleep(0)
    for number in (0, 1, 2, 5, 6, 8):  # also a whole batch of them, at the front and at the end
        asked[number].cancel()
    await asyncio.sleep(0)
    with running(serving):
        await asyncio.wait(asked, timeout=SOON_S)
        alone = await serving(request(9))
    assert [float(asked[number].result()[0]) for number in (3, 4, 7)] == [6.0, 8.0, 14.0]
    assert batches == [[3.0, 4.0], [7.0], [9.0]]
    assert float(alone[0]) == 18.0


async def test_a_fault_of_the_gpu_ends_the_service(service: Any, names: dict[str, Any]) -> None:
    serving = service(twice, SHAPE, max_batch=2)
    Graph.faults = 1
    task = asyncio.ensure_future(serving.run())
    async with asyncio.timeout(SOON_S):
        asked = [asyncio.ensure_future(serving(request(number))) for number in range(9)]
        told = await asyncio.gather(*asked, return_exceptions=True)
        await asyncio.wait([task])
    assert isinstance(told[0], agt.DeviceError)
    assert isinstance(told[-1], names["Unavailable"])
    assert task.exception() is not None
    assert serving.closed
    with pytest.raises(names["Unavailable"], match="has ended"):
        await asyncio.wait_for(serving(request(1)), SOON_S)


class Threads(ThreadPoolExecutor):
    """Threads with the current device of who hands them work."""

    def submit(self, act: Callable[..., Any], /, *args: Any) -> Any:  # type: ignore[override]
        return super().submit(copy_context().run, act, *args)


async def test_a_turn_of_the_loop_wakes_few_handlers(service: Any) -> None:
    serving, turns = service(twice, SHAPE), [0]

    async def counts() -> None:
        while True:
            turns.append(0)
            await asyncio.sleep(0)

    async def asks(number: int) -> None:
        await serving(request(number))
        turns[-1] += 1

    counting = asyncio.ensure_future(counts())
    with running(serving):
        await asyncio.gather(*map(asks, range(32)))
    counting.cancel()
    assert (max(turns), sum(turns)) == (8, 32)


async def test_a_batch_that_takes_too_long_is_no_health(service: Any) -> None:
    serving = service(twice, SHAPE)
    process, healthy = serving.process, list[bool]()

    async def processed(rows: Any, lane: Any) -> Any:
        healthy.append(serving.healthy())
        lane.begun -= 10.0
        healthy.append(serving.healthy())
        return await process(rows, lane)

    serving.process = processed
    with running(serving):
        await serving(request(1))
        healthy.append(serving.healthy())
    assert healthy == [True, False, True]


@pytest.fixture(params=["Threaded", "Uncaptured"])
def threaded(sim: Device, request: pytest.FixtureRequest) -> Callable[..., Any]:
    names = page_names(OF_THE_SERVICE, OF_THREADS)
    names["ThreadPoolExecutor"] = Threads
    return names[request.param]


async def test_a_thread_enqueues_also_what_cannot_be_captured(threaded: Any) -> None:
    serving = threaded(twice, SHAPE, max_batch=2)
    asked = [request(number) for number in range(5)]
    answers = await answers_of(serving, asked)
    assert [float(y[-1]) for y in answers] == [0.0, 2.0, 4.0, 6.0, 8.0]


async def test_a_batch_of_a_thread_waits_for_no_other_one(threaded: Any) -> None:
    serving = threaded(twice, SHAPE, max_batch=1)
    marked, behind, large = serving.marked, list[Any](), OnGpu((4_000_000,))

    def with_more_behind(rows: Any, lane: Any) -> Any:
        found = marked(rows, lane)
        with on_stream(serving.computing):  # as another batch, before the loop has its turn
            large.copy_(agt.pin(np.zeros(large.shape, np.float32)), non_blocking=True)
        behind.append(serving.computing.record_event())
        return found

    serving.marked = with_more_behind
    with running(serving):
        assert float((await serving(request(3)))[0]) == 6.0
        assert not behind[0].ours.done


async def test_the_end_waits_for_what_a_thread_still_enqueues(threaded: Any) -> None:
    serving = threaded(twice, SHAPE, max_batch=2)
    compute, began, goes_on = serving.compute, asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def computes(lane: Any) -> Any:
        loop.call_soon_threadsafe(began.set)
        assert goes_on.wait(SOON_S)
        return compute(lane)

    serving.compute = computes
    with running(serving) as task:
        asked = asyncio.ensure_future(serving(request(3)))
        await began.wait()
    for _ in range(2000):  # without the wait it ends after some 140
        await asyncio.sleep(0)
    assert not task.done()
    goes_on.set()
    async with asyncio.timeout(SOON_S):
        await asyncio.wait([task, asked])
    assert task.cancelled()
    assert serving.computing.ours.done
    assert str(asked.exception()) == "the service has ended"


async def post(app: Any, *parts: bytes, path: str = "/", how: str = "POST") -> tuple[int, bytes]:
    """The status and the body of an answer."""
    left, sent = list(parts), list[Any]()

    async def receive() -> Any:
        part = left.pop(0)
        assert part is not NEVER_ASKED_FOR
        if part is NEVER_SENT:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": part, "more_body": bool(left)}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": how, "path": path, "headers": [], "query_string": b""}
    await app(scope, receive, send)
    return sent[0]["status"], sent[1]["body"]


def best(number: Any) -> bytes:
    return b'{"best":%d}' % number


def served(names: dict[str, Any]) -> Any:
    """The page's app, in front of our model."""
    names |= {"model": twice, "SHAPE": (4096,), "DTYPE": TORCH.float32}
    exec(OF_THE_WEB, names)
    names["gc"] = SimpleNamespace(collect=lambda: None, freeze=lambda: None)  # these tests go on
    return names["app"]


async def test_a_browser_gets_its_answer(names: dict[str, Any]) -> None:
    pytest.importorskip("starlette")
    app = served(names)
    numbers = np.arange(4096, dtype=np.float32) % 2913
    body = numbers.tobytes()
    async with names["lifespan"](app):
        assert await post(app, body) == (200, best(2912))
        assert await post(app, body[:5000], body[5000:]) == (200, best(2912))
        for wrong in (b"", body[:-1], b"[1, 3, 2]"):
            status, told = await post(app, wrong)
            assert status == 422
            assert b"send 4096 numbers" in told
        assert (await post(app, body, b"x", NEVER_ASKED_FOR))[0] == 422
        Graph.fails = 1
        with pytest.raises(RuntimeError, match="not today"):  # the model's fault, not the client's
            await post(app, body)
        app.state.service.queue = asyncio.Queue(1)
        app.state.service.queue.put_nowait((numbers, left := asyncio.Future[Any]()))
        assert (await post(app, body))[0] == 503
    assert isinstance(left.exception(), names["Unavailable"])
    ended = await asyncio.wait_for(post(app, body), SOON_S)
    assert ended == (503, b'{"error":"the service has ended"}')


async def test_a_deadline_and_a_fault_have_their_status(
    names: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("starlette")
    app = served(names)
    body, health = np.ones(4096, np.float32).tobytes(), {"path": "/health", "how": "GET"}
    async with names["lifespan"](app):
        assert await post(app, b"", **health) == (200, b'{"healthy":true}')
        names["DEADLINE_S"] = 0.0
        async with asyncio.timeout(SOON_S):
            assert (await post(app, body[:5000], NEVER_SENT))[0] == 504
        assert (await post(app, body))[0] == 504
        names["DEADLINE_S"] = SOON_S
        assert (await post(app, body))[0] == 200
        Graph.faults = 1
        with pytest.raises(agt.DeviceError):
            await post(app, body)
        for _ in range(2000):  # the other lane's turns, and those in which time goes on
            await asyncio.sleep(0)
        assert "the service has ended" in caplog.text
        assert await post(app, b"", **health) == (503, b'{"healthy":false}')
        assert (await post(app, body))[0] == 503


async def test_a_gpu_that_hangs_does_not_hold_up_the_end(names: dict[str, Any]) -> None:
    pytest.importorskip("starlette")
    app, body = served(names), np.ones(4096, np.float32).tobytes()
    names["SHUTDOWN_S"], waiting = 0.0, asyncio.Event()

    async def never(point: Any) -> None:
        waiting.set()
        await asyncio.Event().wait()

    names["agt"].reached = never
    async with asyncio.timeout(SOON_S):
        async with names["lifespan"](app):
            asked = asyncio.ensure_future(post(app, body))
            await waiting.wait()
        for _ in range(20):  # until the lanes have ended, as they have in ten seconds
            await asyncio.sleep(0)
        for task in (left := asyncio.all_tasks() - {asyncio.current_task(), asked}):
            task.cancel()  # as asyncio.run does
        await asyncio.wait(left)
        assert await asked == (503, b'{"error":"the service has ended"}')
