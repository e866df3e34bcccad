"""The page for the PyTorch user is one program, which runs on a GPU; its service also on a stand-in.

The stand-in has as much of PyTorch as the service uses, made of our own operations on a simulated device.
There a result that is read before its copy is done is an error, so it tells whether the service waits.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
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
SHAPE = (40_000,)


def test_each_snippet_compiles() -> None:
    for snippet in SNIPPETS:
        compile(snippet, "from_pytorch.md", "exec")


@pytest.mark.gpu
def test_the_program_runs(cuda: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "page"}
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


# ---------------------------------------------------------------------- the service, on a stand-in
class OnGpu:
    """A tensor on the GPU."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.array = agt.zeros(shape).sync()

    def copy_(self, host: Any, non_blocking: bool) -> None:
        assert non_blocking
        agt.memcpy(self.array.borrow(), np.asarray(host)).async_on(current[-1].ours)

    def to(self, where: str, non_blocking: bool) -> Any:
        assert (where, non_blocking) == ("cpu", True)
        return agt.d2h(self.array.borrow()).async_on(current[-1].ours)


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


current: list[Any] = []


@contextmanager
def on_stream(stream: Stream) -> Iterator[None]:
    current.append(stream)
    yield
    current.pop()


@contextmanager
def graph(captured: Graph) -> Iterator[None]:
    captured.calls = []
    current.append(captured)
    yield
    current.pop()


def zeros(*shape: int, pin_memory: bool = False, device: str = "cpu") -> Any:
    assert pin_memory is (device == "cpu")
    return agt.pin(np.zeros(shape, np.float32)) if pin_memory else OnGpu(shape)


TORCH = SimpleNamespace(
    Size=tuple,
    float32=np.dtype(np.float32),
    zeros=zeros,
    stack=lambda rows, out: np.stack(rows, out=out),
    inference_mode=nullcontext,
    cuda=SimpleNamespace(Stream=Stream, stream=on_stream, CUDAGraph=Graph, graph=graph),
)


def twice(x: OnGpu) -> OnGpu:
    """The model."""
    y = OnGpu(x.array.shape)

    def call() -> None:
        n, arrays = x.array.size, (x.array.borrow(), y.array.borrow())
        op = kernel(SCALE)(n, 2.0, *arrays, grid=-(-n // 256), block=256)
        op.async_on(current[-1].ours)

    if current and isinstance(current[-1], Graph):
        current[-1].calls.append(call)
    return y


@pytest.fixture
def service(sim: Device) -> Iterator[Callable[..., Any]]:
    """The page's class, with the stand-in in place of PyTorch."""

    class Reached(SimpleNamespace):
        def reached(self, stream: Stream) -> Any:
            return agt.reached(stream.ours)

    names: dict[str, Any] = {"asyncio": asyncio, "torch": TORCH, "agt": Reached(ranges=agt.ranges)}
    exec(next(snippet for snippet in SNIPPETS if "class Service" in snippet), names)
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
        with pytest.raises(ValueError, match=r"has shape \(40000,\) of .*, not \(3,\)"):
            await serving(np.zeros(3))
    assert [str(error) for error in told[:2]] == ["not today"] * 2
    assert [float(y[0]) for y in told[2:]] == [4.0, 6.0]


async def test_nobody_waits_for_ever(service: Any) -> None:
    serving = service(twice, SHAPE, most=2)
    with running(serving) as task:
        asked = [asyncio.ensure_future(serving(request(number))) for number in range(9)]
        await asyncio.sleep(0)
        asked[0].cancel()  # a client that has gone
        assert float((await asked[1])[0]) == 2.0
    told = await asyncio.gather(*asked, return_exceptions=True)
    assert isinstance(told[0], asyncio.CancelledError)
    assert isinstance(told[-1], asyncio.CancelledError)
    await asyncio.wait([task])
    assert task.cancelled()


async def test_a_browser_gets_its_answer(service: Any) -> None:
    pytest.importorskip("starlette")

    def tensor(numbers: Any, dtype: Any) -> Any:
        return np.resize(np.asarray(numbers, dtype), SHAPE if len(numbers) > 1 else 1)

    torch = SimpleNamespace(**vars(TORCH), tensor=tensor)
    names: dict[str, Any] = {"asyncio": asyncio, "torch": torch, "model": twice}
    names["Service"] = lambda model, shape: service(model, SHAPE)
    exec(OF_THE_WEB, names)

    async def post(body: bytes) -> tuple[int, bytes]:
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": body}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "POST", "path": "/", "headers": [], "query_string": b""}
        await names["app"](scope, receive, send)
        return sent[0]["status"], sent[1]["body"]

    async with names["lifespan"](names["app"]):
        assert await post(b"[1, 3, 2]") == (200, b'{"best":1}')
        status, told = await post(b"[1]")
        assert status == 422
        assert b"has shape (40000,) of torch.float32, not (1,)" in told
