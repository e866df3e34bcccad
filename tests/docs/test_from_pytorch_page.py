"""The page for the PyTorch user is one program, which runs on a GPU; its service also on a stand-in.

What needs no GPU runs on whatever PyTorch there is, also on one for CPUs only.

The stand-in has as much of PyTorch as the service uses, made of our own operations on a simulated device.
There a result that is read before its copy is done is an error, so it tells whether the service waits.
"""

import ast
import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from tests.laws.kernels import SCALE, kernel
from tests.tools import blocks, page

SNIPPETS = blocks(page("docs/from_pytorch.md"))
(OF_THE_WEB,) = (snippet for snippet in SNIPPETS if "starlette" in snippet)
(OF_THE_SERVICE,) = (snippet for snippet in SNIPPETS if "class Service" in snippet)
SHAPE = (40_000,)
NEVER_ASKED_FOR = b"the rest of a body that is too long"
SOON_S = 60.0  # nothing here may hang


def test_each_snippet_compiles() -> None:
    for snippet in SNIPPETS:
        compile(snippet, "from_pytorch.md", "exec")


def test_nothing_runs_or_records_where_a_server_imports_the_file() -> None:
    imported = SNIPPETS[: SNIPPETS.index(OF_THE_WEB) + 1]
    top = [statement for snippet in imported for statement in ast.parse(snippet).body]
    guarded = [each for each in top if isinstance(each, ast.If)]
    assert len(guarded) == 3
    assert {ast.unparse(each.test) for each in guarded} == {"__name__ == '__main__'"}
    defined = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    at_import = [each for each in top if not isinstance(each, ast.If | defined)]
    told = "\n".join(map(ast.unparse, at_import))
    assert "agt.use('cuda')" in told
    assert "model =" in told
    assert "app =" in told
    assert not any(word in told for word in ("asyncio.run", "record", "print", "assert"))


@pytest.mark.gpu
def test_the_program_runs(cuda: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
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
    assert {span.label for span in names["service_trace"].device_spans} >= {"batch"}
    drawn = {"torch_service.svg", "torch_item.svg", "torch_reuse.svg", "torch_capture.svg"}
    assert {path.name for path in tmp_path.iterdir()} == drawn


# ---------------------------------------------------------------------- PyTorch for CPUs will do
def test_a_mode_leaks_over_an_await(capsys: pytest.CaptureFixture[str]) -> None:
    torch = pytest.importorskip("torch")
    (leaks,) = (snippet for snippet in SNIPPETS if "def leaks" in snippet)
    names: dict[str, Any] = {"__name__": "__main__", "asyncio": asyncio, "torch": torch}
    exec(leaks, names)
    assert capsys.readouterr().out in blocks(page("docs/from_pytorch.md"), "text")

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


async def test_a_body_becomes_a_tensor() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("starlette")
    asked: list[Any] = []

    async def service(x: Any) -> Any:
        asked.append(x)
        return x

    names: dict[str, Any] = {"asyncio": asyncio, "torch": torch, "Unavailable": LookupError}
    exec(OF_THE_WEB, names)
    names["app"].state.service = service
    numbers = np.random.default_rng(3).random(4096, np.float32)
    assert await post(names["app"], numbers.tobytes()) == (200, best(numbers.argmax()))
    assert asked[0].dtype == torch.float32
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


class Graph:
    """What is called in its capture is called in each replay, unless that is to fail."""

    calls: list[Callable[[], Any]]
    fails = 0

    def replay(self) -> None:
        if Graph.fails:
            Graph.fails -= 1
            raise RuntimeError("not today")
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


def graph(captured: Graph) -> AbstractContextManager[None]:
    captured.calls = []
    return on_stream(captured)


def zeros(*shape: int, pin_memory: bool = False, device: str = "cpu") -> Any:
    assert pin_memory is (device == "cpu")
    return agt.pin(np.zeros(shape, np.float32)) if pin_memory else OnGpu(shape)


TORCH = SimpleNamespace(
    Size=tuple,
    float32=np.dtype(np.float32),
    device=str,  # NumPy's arrays say "cpu"
    frombuffer=np.frombuffer,
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
    """Our package, for a stream of the stand-in."""

    def reached(self, stream: Stream) -> Any:
        return agt.reached(stream.ours)

    def current_device(self) -> Any:
        return SimpleNamespace()  # whose patience is set


def page_names(listing: str = OF_THE_SERVICE) -> dict[str, Any]:
    """What the page's listing defines, with the stand-in in place of PyTorch."""
    names: dict[str, Any] = {"asyncio": asyncio, "torch": TORCH, "agt": Reached(ranges=agt.ranges)}
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


async def test_one_alone_waits_for_no_other(service: Any) -> None:
    serving = service(twice, SHAPE)
    with running(serving):
        assert float((await serving(request(3)))[0]) == 6.0


async def test_what_fails_is_told_to_its_own_batch(service: Any) -> None:
    serving = service(twice, SHAPE, most=2)
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
    serving = service(twice, SHAPE, most=2)
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
    serving = service(twice, SHAPE, room=3)
    asked = [asyncio.ensure_future(serving(request(number))) for number in range(4)]
    await asyncio.sleep(0)
    with pytest.raises(names["Unavailable"], match="too many"):
        await asked[3]
    with running(serving):
        assert [float(y[0]) for y in await asyncio.gather(*asked[:3])] == [0.0, 2.0, 4.0]


async def test_a_model_that_cannot_be_captured_is_called_in_a_thread(sim: Device) -> None:
    listing = OF_THE_SERVICE
    for was, now in (
        (
            "with torch.cuda.graph(graph):\n                y = self.model(x)\n",
            "torch.cuda.synchronize()\n",
        ),
        ("graph.replay()", "y = self.model(x)"),
        ("found = self.enqueue(", "found = await asyncio.to_thread(self.enqueue, "),
    ):
        assert listing.count(was) == 1
        listing = listing.replace(was, now)
    serving = page_names(listing)["Service"](twice, SHAPE, most=2)
    with running(serving):
        answers = await asyncio.gather(*(serving(request(number)) for number in range(5)))
    assert [float(y[-1]) for y in answers] == [0.0, 2.0, 4.0, 6.0, 8.0]


async def post(app: Any, *parts: bytes) -> tuple[int, bytes]:
    """The status and the body of an answer."""
    left, sent = list(parts), list[Any]()

    async def receive() -> Any:
        part = left.pop(0)
        assert part is not NEVER_ASKED_FOR
        return {"type": "http.request", "body": part, "more_body": bool(left)}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/", "headers": [], "query_string": b""}
    await app(scope, receive, send)
    return sent[0]["status"], sent[1]["body"]


def best(number: Any) -> bytes:
    return b'{"best":%d}' % number


async def test_a_browser_gets_its_answer(names: dict[str, Any]) -> None:
    pytest.importorskip("starlette")
    names["model"] = twice
    exec(OF_THE_WEB, names)
    app = names["app"]
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
        app.state.service.waiting = asyncio.Queue(1)
        app.state.service.waiting.put_nowait((numbers, left := asyncio.Future[Any]()))
        assert (await post(app, body))[0] == 503
    assert isinstance(left.exception(), names["Unavailable"])
    ended = await asyncio.wait_for(post(app, body), SOON_S)
    assert ended == (503, b'{"error":"the service has ended"}')
