"""The page for the PyTorch user is one program, which runs on a GPU; its service also on a stand-in.

What needs no GPU runs on whatever PyTorch there is, also on one for CPUs only.

The stand-in has as much of PyTorch as the service uses, made of our own operations on a simulated device.
There a result that is read before its copy is done is an error, so it tells whether the service waits.
"""

import ast
import asyncio
import gc
import json
import re
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import copy_context
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from tests.laws.kernels import SCALE, kernel
from tests.laws.test_failures import faulty
from tests.tools import blocks, page, python

TEXT = page("docs/from_pytorch.md")
SNIPPETS = blocks(TEXT)
MODELS = blocks(page("docs/from_pytorch_models.md"))
BESIDE_IT = re.compile("import answers|from answers")
OF_THE_SERVER = [snippet for snippet in SNIPPETS if not BESIDE_IT.search(snippet)]
(IMPORTS,) = (snippet for snippet in SNIPPETS if "\nimport gc\n" in snippet)
(OF_THE_MODEL,) = (snippet for snippet in SNIPPETS if "# YOUR MODEL" in snippet)
(OF_REQUESTS,) = (snippet for snippet in SNIPPETS if "def decoded" in snippet)
(OF_THE_LANES,) = (snippet for snippet in SNIPPETS if "class Lanes" in snippet)
(OF_THE_SERVICE,) = (snippet for snippet in SNIPPETS if "class Service" in snippet)
(OF_THREADS,) = (snippet for snippet in SNIPPETS if "class InThreads" in snippet)
(OF_THE_WEB,) = (snippet for snippet in SNIPPETS if "import Starlette" in snippet)
(OF_AWAITS,) = (snippet for snippet in SNIPPETS if "class Awaited" in snippet)
OF_TEXTS, OF_IMAGES, OF_FASTAPI, OF_UPLOADS = MODELS
(ITS_TEST,) = (snippet for snippet in SNIPPETS if "def test_each" in snippet)
SEEN = page("docs/see_batches.py")
SHAPE = (40_000,)
NEVER_ASKED_FOR = b"the rest of a body that is too long"
NEVER_SENT = b"the rest of a body whose client is slow"
GONE = b"the rest of a body whose client is gone"
WRONG = (
    *(b"", b"{", b"[1, 2]", b"{}", b"\xff", b"[" * 60_000, b'{"x": "12"}', b'{"x": {"a": 1}}'),
    *(b'{"x": [1]}', b'{"x": [[1, 2]]}', b'{"x": [1, [2]]}', b'{"x": [1, null]}'),
    *(b'{"x": ["1", "2"]}', b'{"x": [1, NaN]}', b'{"x": [1, 1e400]}', b'{"x": [1, %d]}' % 10**400),
    b'{"x": [1, 1%s]}' % (b"0" * 5000),  # more digits than Python reads
)
SOON_S = 60.0  # nothing here may hang


def test_each_snippet_compiles() -> None:
    for snippet in (*SNIPPETS, *MODELS):
        compile(snippet, "from_pytorch.md", "exec")


def test_nothing_runs_or_records_where_a_server_imports_the_file() -> None:
    files = (*OF_THE_SERVER, OF_AWAITS)
    top = [statement for snippet in files for statement in ast.parse(snippet).body]
    defined = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    at_import = [each for each in top if not isinstance(each, defined)]
    told = "\n".join(map(ast.unparse, at_import))
    assert "agt.use('cuda')" in told
    assert "model =" in told
    assert "app =" in told
    assert not any(word in told for word in ("asyncio.run", "record", "print", "assert"))


def test_the_file_to_download_has_the_listings_of_the_server() -> None:
    assert page("docs/answers.py") == "\n\n".join(OF_THE_SERVER)
    assert not re.search(r"\bagt\b|asyncgpu_tutor as", page("docs/answers.py"))


def test_the_picture_is_that_of_the_page() -> None:
    drawn = page("docs/torch_batches.svg")
    one, batches = re.findall(r"one by one ([\d.]+) ms, in batches ([\d.]+) ms\n", TEXT)[0]
    took = re.findall(r"NVIDIA H200  \u00b7  ([\d.]+) (ms|\u00b5s)", drawn)
    assert [f"{float(n) / (1 if unit == 'ms' else 1000):.1f}" for n, unit in took] == [one, batches]
    assert drawn.count(">lane 1</text>") == drawn.count(">lane 2</text>") == 2


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Import a file of the page's, as somebody does who has it beside a program."""

    def imported(text: str, name: str = "answers") -> ModuleType:
        module = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        exec(compile(text, f"{name}.py", "exec"), module.__dict__)
        module.gc = SimpleNamespace(collect=int, freeze=int)  # type: ignore[attr-defined]
        return module  # and these tests go on

    yield imported
    gc.collect()


def kinds(module: Any, answers: Any) -> tuple[type, type, type]:
    """Each way to wait that the page has."""
    awaiting = answers(page("docs/answers_await.py"), "answers_await")
    return module.InThreads, module.Uncaptured, awaiting.Awaited


def run_its_test(module: Any, *services: type, text: str = ITS_TEST, fails: bool = False) -> None:
    """Run the test that the page has for its readers, for each of these, or for its own."""
    names: dict[str, Any] = {}
    exec(compile(text, "test_answers.py", "exec"), names)
    for service in services or (module.SERVICE,):
        module.SERVICE = service
        with pytest.raises(AssertionError, match="not close") if fails else nullcontext():
            names["test_each_request_gets_the_answer_of_the_model"]()


async def answers_of(service: Any, asked: list[Any]) -> list[Any]:
    """Let it serve until all have their answers."""
    with running(service) as task:
        answers = await asyncio.gather(*(service(x) for x in asked))
    await asyncio.wait([task])
    return answers


@pytest.mark.gpu
def test_the_readers_test_runs_on_a_gpu(cuda: Device, answers: Any) -> None:
    pytest.importorskip("starlette")
    run_its_test(module := answers(page("docs/answers.py")), *kinds(module, answers))
    run_its_test(answers(page("docs/answers.py").replace("end.synchronize()", "pass")), fails=True)


@pytest.mark.gpu
def test_the_programs_run(
    cuda: Device, answers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch, _ = (pytest.importorskip(module) for module in ("torch", "starlette"))
    monkeypatch.chdir(tmp_path)
    module = answers(page("docs/answers.py"))
    asked = list(torch.rand(200, *module.SHAPE))
    with torch.inference_mode():
        right = module.model(torch.stack(asked).cuda()).cpu()
    for kind in kinds(module, answers):
        given = asyncio.run(answers_of(kind(module.model, module.SHAPE), asked))
        torch.testing.assert_close(torch.stack(given), right, rtol=1e-3, atol=1e-3)
    names: dict[str, Any] = {}
    exec(compile(SEEN, "see_batches.py", "exec"), names)
    one_by_one, in_batches = names["took"]
    assert one_by_one > 3 * in_batches
    copies = [[s for s in trace.device_spans if s.kind == "h2d"] for trace in names["traces"]]
    assert list(map(len, copies)) == [64, 2]
    assert (tmp_path / "torch_batches.svg").stat().st_size > 0


FAULT = """
import asyncio, sys, types
from pathlib import Path
sys.modules["answers"] = answers = types.ModuleType("answers")
exec(Path("docs/answers.py").read_text("utf-8").replace("4096", "64"), vars(answers))
if sys.argv[1] == "Awaited":
    exec(Path("docs/answers_await.py").read_text("utf-8"))
torch = answers.torch

async def main():
    service = answers.SERVICE(torch.nn.Embedding(10, 4).cuda(), (3,), torch.int64)
    running = asyncio.create_task(service.run())
    print(tuple((await service(torch.tensor([1, 2, 3]))).shape))
    try:
        await service(torch.tensor([1, 2, 99]))  # no such row
    except Exception as error:
        print(type(error).__name__, type(error.__cause__).__name__, flush=True)
    await asyncio.wait([running], timeout=20.0)
    print(running.done(), service.healthy(), flush=True)

asyncio.run(main())
"""


@pytest.mark.gpu
@pytest.mark.parametrize(("kind", "error"), [("Awaited", "Device"), ("InThreads", "Accelerator")])
def test_a_fault_of_the_gpu_ends_the_page_s_service(kind: str, error: str, cuda: Device) -> None:
    for module in ("torch", "starlette"):
        pytest.importorskip(module)
    said = python("-c", FAULT, kind, check=False).stdout  # its GPU is of no more use to a process
    assert said.splitlines() == ["(3, 4)", f"Failed {error}Error", "True False"]


# ---------------------------------------------------------------------- PyTorch for CPUs will do
@pytest.fixture
def torch_for_cpus(monkeypatch: pytest.MonkeyPatch) -> Any:
    """PyTorch, whose GPU is its CPU: what is enqueued is done, and a graph calls its model again."""
    torch = pytest.importorskip("torch")

    class Again:
        def replay(self) -> None:
            model, given, y = self.call
            y.copy_(model(*given))

    @contextmanager
    def captured(graph: Any, stream: Any) -> Iterator[None]:
        def note(*call: Any) -> None:
            graph.call = call  # the last is that of the whole model

        hook = torch.nn.modules.module.register_module_forward_hook(note)
        yield
        hook.remove()

    def on_the_cpu(make: Any) -> Any:
        return lambda *shape, dtype, **where: make(*shape, dtype=dtype)

    for name in ("zeros", "empty"):
        monkeypatch.setattr(torch, name, on_the_cpu(getattr(torch, name)))
    for kind in (torch.nn.Module, torch.Tensor):
        monkeypatch.setattr(kind, "cuda", lambda self: self)
    event = SimpleNamespace(record=lambda stream: None, synchronize=lambda: None)
    ours = {"CUDAGraph": Again, "graph": captured, "Stream": object, "synchronize": lambda: None}
    ours |= {"stream": nullcontext, "Event": lambda blocking: event}
    for name, stands_in in ours.items():
        monkeypatch.setattr(torch.cuda, name, stands_in)

    async def reached(point: Any) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr(agt, "reached", reached)
    monkeypatch.setattr(agt, "use", lambda name: None)
    monkeypatch.setattr(agt, "current_device", SimpleNamespace)
    return torch


def test_the_readers_test_finds_each_answer_and_a_wrong_graph(
    torch_for_cpus: Any, answers: Any
) -> None:
    pytest.importorskip("starlette")
    module = answers(page("docs/answers.py").replace("4096", "128"))
    run_its_test(module, *kinds(module, answers))
    compute = module.InThreads.compute
    for wrong in (1, 8, 32):  # rows of a graph that computes nothing anew

        def computes(self: Any, x: Any, graph: Any, y: Any, wrong: int = wrong) -> Any:
            return y.zero_() if len(x) == wrong else compute(self, x, graph, y)

        module.InThreads.compute = computes
        run_its_test(module, module.InThreads, fails=True)


def test_the_readers_test_gives_no_false_alarm(torch_for_cpus: Any, answers: Any) -> None:
    pytest.importorskip("starlette")
    text = page("docs/answers.py").replace("4096", "128").replace("InThreads, 32", "InThreads, 70")
    one = text.replace("model = toy()", "model = torch.nn.Sequential(toy(), torch.nn.Flatten(0))")
    for right in (text, one.replace("4096, 10", "4096, 1").replace("128, 10", "128, 1")):
        run_its_test(answers(right))
    with pytest.raises(AssertionError, match="take requests with different ones"):
        run_its_test(answers(text.replace("torch.rand(rows", "torch.ones(rows")))


@pytest.fixture(params=["torch_for_cpus", pytest.param("cuda", marks=pytest.mark.gpu)])
def where(request: pytest.FixtureRequest) -> None:
    """On a stand-in for the GPU, and on one."""
    request.getfixturevalue(request.param)


def hugging_face(torch: Any) -> Any:
    """As much of `transformers` as the page's classifier takes."""

    class Words(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, name: str, dtype: Any) -> None:
            super().__init__()
            self.words = torch.nn.Embedding(100, 8, dtype=dtype)

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            words = self.words(input_ids) * attention_mask[..., None]
            return SimpleNamespace(logits=words.sum(1))

        config = SimpleNamespace(id2label=dict(enumerate("abcdefgh")))

    class Tokenizer(SimpleNamespace):
        def __call__(self, text: str, max_length: int, **options: Any) -> Any:
            pad = [0] * (max_length - len(ids := [*map(len, text.split())]))
            return {"input_ids": ids + pad, "attention_mask": [1] * len(ids) + pad}

    tokenizer, kind = (SimpleNamespace(from_pretrained=it) for it in (lambda _: Tokenizer(), Words))
    return SimpleNamespace(AutoTokenizer=tokenizer, AutoModelForSequenceClassification=kind)


def posts(module: Any, *bodies: bytes) -> tuple[list[int], Any]:
    """What the file's app says to these, one after the other: each status, and the first answer."""

    async def each() -> list[tuple[int, bytes]]:
        async with module.lifespan(module.app):
            return [await post(module.app, body) for body in bodies]

    told = asyncio.run(each())
    return [status for status, _ in told], json.loads(told[0][1])


def test_an_answer_that_json_cannot_say_is_a_failure(
    torch_for_cpus: Any, answers: Any, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("starlette")
    module = answers(page("docs/answers.py").replace("4096", "128"))
    told = posts(
        module, asks([3e38, -3e38] * 32), b'{"y": 1}'
    )  # finite, and what is made of it isn't
    assert told == ([500, 400], {"detail": "the model's answer isn't finite"})
    failed, refused = [each for each in caplog.records if each.levelname in ("WARNING", "ERROR")]
    assert failed.message == "the model's answer isn't finite"
    assert refused.message == "refused"
    assert refused.exc_info is not None
    assert refused.exc_info[0] is KeyError  # with its traceback, since it may be the reader's own


def classifier(answers: Any, listing: str) -> Any:
    """The file, with one of the other page's listings in place of the toy."""
    text = page("docs/answers.py").replace(f"{OF_THE_MODEL}\n\n{OF_REQUESTS}", listing)
    assert "toy" not in text
    module = answers(text)
    run_its_test(module, *kinds(module, answers), text=ITS_TEST.replace("1e-3", "0.05"))
    return module


def test_a_classifier_takes_the_place_of_the_toy(
    where: Any, answers: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("starlette")
    monkeypatch.setitem(sys.modules, "transformers", hugging_face(pytest.importorskip("torch")))
    monkeypatch.chdir(tmp_path)
    texts = ["a " * (1 + i % 9) + "bb " * (i % 7) + "c" * (1 + i % 80) for i in range(64)]
    Path("texts.txt").write_text("\n".join(texts), "utf-8")
    module = classifier(answers, OF_TEXTS)
    assert module.decoded({"text": "a good film"}).sum(1).tolist() == [9, 3]
    told = posts(module, b'{"text": "a good film"}', b'{"x": [1]}')
    assert (told[0], told[1]["label"] in "abcdefgh") == ([200, 400], True)


def test_images_take_the_place_of_the_toy(
    where: Any, answers: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    torch, picture, _ = map(pytest.importorskip, ("torch", "PIL.Image", "starlette"))
    made = [torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten(), torch.nn.Linear(12, 5)]
    weights = SimpleNamespace(DEFAULT=SimpleNamespace(meta={"categories": "abcde"}))
    models = {"ResNet50_Weights": weights, "resnet50": lambda weights: torch.nn.Sequential(*made)}
    monkeypatch.setitem(sys.modules, "torchvision.models", SimpleNamespace(**models))
    monkeypatch.chdir(tmp_path)
    Path("pictures").mkdir()
    for number, form in enumerate(("RGB", "L", "P", "RGBA") * 4):
        color = (number * 97 % 256, number * 41 % 256, number * 200 % 256)
        plain = picture.new("RGB", (300 + number, 280), color).convert(form)
        plain.save(f"pictures/{number:02}.png")
    module = classifier(answers, OF_IMAGES)
    body, large = (Path(f"pictures/0{number}.png").read_bytes() for number in (0, 1))
    x, module.PIXELS = module.decoded(body), 300 * 280
    assert (x.shape, x.dtype) == (module.SHAPE, torch.uint8)
    told = posts(module, body, b"", body[:50], b"{}", large)
    assert (told[0], told[1]["label"] in "abcde") == ([200, 400, 400, 400, 400], True)


async def test_fastapi_takes_the_file_as_it_is(torch_for_cpus: Any, answers: Any) -> None:
    for package in ("starlette", "fastapi"):
        pytest.importorskip(package)
    module = answers(page("docs/answers.py").replace("4096", "128"))
    app, x = answers(OF_FASTAPI, "api").app, module.example(1)[0]
    body, wrong = asks(x), (b'{"x": [1]}', b"{}", b'{"x": [1e39%s]}' % (b", 1" * 63))
    async with module.lifespan(app):
        assert await post(app, path="/health", how="GET") == (200, b'{"healthy":true}')
        status, said = await post(app, body)
        assert status == 200
        assert json.loads(said)["scores"] == pytest.approx(module.model(x).tolist(), abs=1e-3)
        assert [(await post(app, each))[0] for each in wrong] == [422, 422, 400]
        app.state.service.process = None  # which fails
        assert await post(app, body) == (500, b'{"detail":"the model failed"}')
        module.DEADLINE_S = 0.0
        assert (await post(app, body))[0] == 504


async def test_a_body_becomes_a_tensor() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("starlette")
    asked: list[Any] = []

    async def service(x: Any) -> Any:
        asked.append(x)
        return x

    names = page_names(torch=torch) | {"SHAPE": (2, 3), "DTYPE": torch.int64}
    exec(OF_REQUESTS + OF_THE_WEB, names)
    names["app"].state.service = service
    numbers = [[1, 2, 30], [4, 5, 2**40]]
    assert await post(names["app"], asks(numbers)) == (200, told(numbers))
    assert asked[0].dtype == torch.int64
    assert asked[0].tolist() == numbers
    for wrong in ([[1, 2, 3.7], [4, 5, 6]], [[1, 2], [4, 5]]):  # nobody's token is 3.7
        assert (await post(names["app"], json.dumps({"x": wrong}).encode()))[0] == 400


@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
async def test_what_is_no_request_is_the_clients_error(wrong: bytes) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("starlette")
    names = page_names(torch=torch) | {"SHAPE": (2,), "DTYPE": torch.float32}
    exec(OF_REQUESTS + OF_THE_WEB, names)
    names["app"].state.service = None
    status, said = await post(names["app"], wrong)
    assert status == 400
    assert b"shape (2,)" in said


# ---------------------------------------------------------------------- the service, on a stand-in
NOT_HERE = ("import torch", "import answers", "import asyncgpu_tutor as agt")


class Threads(ThreadPoolExecutor):
    """Threads with the current device of who hands them work."""

    def submit(self, act: Callable[..., Any], /, *args: Any) -> Any:  # type: ignore[override]
        return super().submit(copy_context().run, act, *args)


class Sliced:
    """What has its first rows as something of its own, the same each time."""

    def __getitem__(self, rows: slice) -> Any:
        parts = self.__dict__.setdefault("parts", {})
        if rows.stop not in parts:
            parts[rows.stop] = type(self)((rows.stop, *self.shape[1:]))
        return parts[rows.stop]

    shape: tuple[int, ...]


class OnGpu(Sliced):
    """A tensor on the GPU."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.array, self.shape = agt.zeros(shape).sync(), shape

    def copy_(self, host: Any, non_blocking: bool) -> None:
        assert non_blocking
        agt.memcpy(self.array.borrow(), np.asarray(host)).async_on(current.on.ours)

    @property
    def dtype(self) -> Any:
        return self.array.dtype


class Pinned(Sliced):
    """Pinned memory that answers are copied to."""

    def __init__(
        self, shape: tuple[int, ...], dtype: Any = np.float32, pin_memory: bool = True
    ) -> None:
        assert pin_memory
        self.shape = shape
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


class Event:
    """An event of PyTorch's."""

    def __init__(self, blocking: bool) -> None:
        assert blocking

    def record(self, stream: Stream) -> None:
        self.ours = stream.ours.record()

    def synchronize(self) -> None:
        self.ours.synchronize()


class Graph:
    """What is called in its capture is called in each replay."""

    calls: list[Callable[[], Any]]

    def replay(self) -> None:
        for call in self.calls:
            call()


class Trouble:
    """So many calls of the model fail at once; or with a fault of the GPU, which waiting for it tells."""

    fails = faults = 0


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
    Tensor=OnGpu,
    float32=np.dtype(np.float32),
    device=str,  # NumPy's arrays say "cpu"
    set_num_threads=lambda number: None,
    tensor=np.array,
    can_cast=lambda given, wanted: np.can_cast(given, wanted, "same_kind"),
    isfinite=np.isfinite,
    AcceleratorError=agt.DeviceError,
    zeros=zeros,
    empty=Pinned,
    stack=lambda rows, out: np.stack(rows, out=out),
    inference_mode=nullcontext,
    cuda=SimpleNamespace(Stream=Stream, stream=on_stream, CUDAGraph=Graph, graph=graph),
)
TORCH.cuda.Event, TORCH.cuda.synchronize = Event, agt.synchronize


def twice(x: OnGpu) -> OnGpu:
    """The model."""
    y = OnGpu(x.array.shape)

    def call() -> None:
        if Trouble.fails:
            Trouble.fails -= 1
            raise RuntimeError("not today")
        if Trouble.faults:
            Trouble.faults -= 1
            faulty().async_on(current.on.ours)
        n, arrays = x.array.size, (x.array.borrow(), y.array.borrow())
        op = kernel(SCALE)(n, 2.0, *arrays, grid=-(-n // 256), block=256)
        op.async_on(current.on.ours)

    if isinstance(current.on, Graph):
        current.on.calls.append(call)
    elif current.on:
        call()
    return y


def page_names(torch: Any = TORCH) -> dict[str, Any]:
    """What the page's listings define, with the stand-in in place of PyTorch."""
    names: dict[str, Any] = {"torch": torch}
    ours = {"reached": lambda point: agt.reached(point.ours), "DeviceError": agt.DeviceError}
    ours |= {"use": lambda name: None, "current_device": SimpleNamespace}  # whose patience is set
    names["agt"] = SimpleNamespace(**ours)
    for listing in (IMPORTS, OF_THE_LANES, OF_THE_SERVICE, OF_THREADS, OF_AWAITS):
        names["answers"] = SimpleNamespace(Service=names.get("Service"), app=None)
        exec("\n".join(line for line in listing.splitlines() if line not in NOT_HERE), names)
        names["ThreadPoolExecutor"] = Threads
        names["gc"] = SimpleNamespace(collect=int, freeze=int)  # these tests go on
    return names


@pytest.fixture
def names(sim: Device) -> dict[str, Any]:
    return page_names()


@pytest.fixture(params=["Awaited", "InThreads", "Uncaptured"])
def service(names: dict[str, Any], request: pytest.FixtureRequest) -> Callable[..., Any]:
    return names[request.param]


@pytest.fixture
def awaited(names: dict[str, Any]) -> Callable[..., Any]:
    return names["Awaited"]


@contextmanager
def running(service: Any) -> Iterator[asyncio.Task[None]]:
    task = asyncio.ensure_future(service.run())
    yield task
    task.cancel()


def idle(service: Any) -> bool:
    """Whether nothing uses its memory any more."""
    return all(lane.stream.ours.done for lane in service.lanes)


def request(number: int) -> np.ndarray[Any, Any]:
    return np.full(SHAPE, number, np.float32)


async def test_each_request_gets_its_own_answer_out_of_a_batch(service: Any) -> None:
    serving = service(twice, SHAPE)
    with running(serving), agt.record() as trace:
        answers = await asyncio.gather(*(serving(request(number)) for number in range(70)))
    assert [(float(y[0]), float(y[-1])) for y in answers] == [(2.0 * n, 2.0 * n) for n in range(70)]
    copies = [span for span in trace.device_spans if span.kind == "h2d"]
    assert len(copies) == 3  # two of 32, and the rest
    if service.__name__ == "Awaited":  # a thread that waits moves the simulated clock
        kernels = [span for span in trace.device_spans if span.kind == "kernel"]
        beside = [c for c in copies if any(c.start < k.start < c.end for k in kernels)]
        assert beside  # one is copied while another is computed


async def test_a_small_batch_has_a_graph_of_its_own(awaited: Any) -> None:
    serving, sizes = awaited(twice, SHAPE), list[int]()
    enqueue = serving.enqueue

    def enqueued(*args: Any) -> Any:
        y = enqueue(*args)
        sizes.append(y.shape[0])
        return y

    serving.enqueue = enqueued
    with running(serving):
        for asked in (1, 2, 8, 9, 32):
            answers = await asyncio.gather(*(serving(request(number)) for number in range(asked)))
            assert [float(y[-1]) for y in answers] == [2.0 * number for number in range(asked)]
    assert sizes == [1, 8, 8, 32, 32]
    assert [awaited(twice, SHAPE, max_batch=most).sizes for most in (1, 2)] == [[1], [1, 2]]


async def test_what_fails_is_told_to_its_own_batch(service: Any, names: dict[str, Any]) -> None:
    serving = service(twice, SHAPE, max_batch=2)
    Trouble.fails = 1
    with running(serving):
        told = await asyncio.gather(
            *(serving(request(number)) for number in range(4)), return_exceptions=True
        )
        with pytest.raises(ValueError, match=r"is \(\(40000,\).*32.*, not \(\(3,\).*64.*"):
            await serving(np.zeros(3))
    failed = [isinstance(each, names["Failed"]) for each in told]
    causes = {str(each.__cause__) for each in told if isinstance(each, Exception)}
    assert causes == {"not today"}
    assert len({id(each) for each in told}) == 4  # each has its own
    assert failed in ([True, True, False, False], [False, False, True, True])  # of two threads
    for number, each in enumerate(told):
        assert failed[number] or float(each[0]) == 2.0 * number


async def test_what_a_failed_batch_still_copies_is_waited_for(
    service: Any, names: dict[str, Any]
) -> None:
    serving = service(twice, SHAPE)
    process, ended = serving.process, list[bool]()

    async def processed(rows: Any, lane: Any) -> Any:
        try:
            return await process(rows, lane)
        finally:
            ended.append(lane.stream.ours.done)

    serving.process = processed
    Trouble.fails = 1
    with running(serving):
        with pytest.raises(names["Failed"]):
            await serving(request(3))
        assert float((await serving(request(4)))[0]) == 8.0
    assert ended == [True, True]


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
    assert idle(serving)  # nothing uses its memory any more
    with pytest.raises(names["Unavailable"], match="has ended"):
        await asyncio.wait_for(serving(request(1)), SOON_S)


async def test_those_that_the_gpu_computes_for_are_told_too(
    awaited: Any, names: dict[str, Any]
) -> None:
    serving = awaited(twice, SHAPE)
    enqueue, busy = serving.enqueue, asyncio.Event()

    def enqueued(*args: Any) -> Any:
        busy.set()
        return enqueue(*args)

    serving.enqueue = enqueued
    with running(serving) as task:
        asked = [asyncio.ensure_future(serving(request(number))) for number in range(3)]
        await busy.wait()
        assert not idle(serving)
    async with asyncio.timeout(SOON_S):
        told = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(error) for error in told] == [names["Unavailable"]] * 3
    await asyncio.wait([task])
    assert idle(serving)


async def test_there_is_room_for_so_many(service: Any, names: dict[str, Any]) -> None:
    serving = service(twice, SHAPE, max_queue=3)
    asked = [asyncio.ensure_future(serving(request(number))) for number in range(4)]
    await asyncio.sleep(0)
    with pytest.raises(names["Unavailable"], match="too many"):
        await asked[3]
    with running(serving):
        assert [float(y[0]) for y in await asyncio.gather(*asked[:3])] == [0.0, 2.0, 4.0]


async def test_who_is_gone_takes_no_row_of_a_batch(awaited: Any) -> None:
    serving = awaited(twice, SHAPE, max_batch=2)
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
    Trouble.faults = 1
    task = asyncio.ensure_future(serving.run())
    async with asyncio.timeout(SOON_S):
        asked = [asyncio.ensure_future(serving(request(number))) for number in range(9)]
        told = await asyncio.gather(*asked, return_exceptions=True)
        await asyncio.wait([task])
    # Of two threads, either may be the first, and the other may be done before the fault.
    failed = [told[number] for number in (0, 2) if isinstance(told[number], names["Failed"])]
    assert any(isinstance(each.__cause__, agt.DeviceError) for each in failed)
    assert isinstance(told[-1], names["Unavailable"])
    assert task.exception() is not None
    assert serving.closed
    with pytest.raises(names["Unavailable"], match="has ended"):
        await asyncio.wait_for(serving(request(1)), SOON_S)


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


@pytest.mark.parametrize("kind", ["InThreads", "Uncaptured"])
@pytest.mark.parametrize("fails", [0, 1])
async def test_the_end_waits_for_what_a_thread_still_enqueues(
    kind: str, fails: int, names: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    serving = names[kind](twice, SHAPE, max_batch=2)
    Trouble.fails = fails
    compute, began, goes_on = serving.compute, asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def computes(*given: Any) -> Any:
        loop.call_soon_threadsafe(began.set)
        assert goes_on.wait(SOON_S)
        return compute(*given)

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
    assert idle(serving)
    assert str(asked.exception()) == "the service has ended"
    assert ("the last batch failed" in caplog.text, "not today" in caplog.text) == (fails, fails)


def test_who_cannot_be_captured_is_told_what_to_do(names: dict[str, Any]) -> None:
    def looks(x: OnGpu) -> OnGpu:
        if isinstance(current.on, Graph):
            raise ValueError("operation not permitted when stream is capturing")
        return twice(x)

    with pytest.raises(RuntimeError, match="set SERVICE to Uncaptured") as told:
        names["InThreads"](looks, SHAPE)
    assert "not permitted" in str(told.value.__cause__)
    assert names["Uncaptured"](looks, SHAPE).lanes


def test_each_graph_has_to_have_its_rows(names: dict[str, Any]) -> None:
    def eight(x: OnGpu) -> OnGpu:
        return OnGpu((8, 3))

    with pytest.raises(ValueError, match=r"for 1 rows .* as many, not \(8, 3\)"):
        names["InThreads"](eight, SHAPE)
    with pytest.raises(ValueError, match="as many, not SimpleNamespace"):
        names["InThreads"](lambda x: SimpleNamespace(logits=x), SHAPE, max_batch=8)


def asks(numbers: Any) -> bytes:
    """The body of a request."""
    return json.dumps({"x": np.asarray(numbers).tolist()}).encode()


def told(numbers: Any) -> bytes:
    """The body of an answer."""
    scores = np.asarray(numbers)
    answer = {"best": int(scores.argmax()), "scores": scores.tolist()}
    return json.dumps(answer, separators=(",", ":")).encode()


async def post(app: Any, *parts: bytes, path: str = "/", how: str = "POST") -> tuple[int, bytes]:
    """The status and the body of an answer."""
    left, sent = list(parts), list[Any]()

    async def receive() -> Any:
        part = left.pop(0)
        assert part is not NEVER_ASKED_FOR
        if part is GONE:
            return {"type": "http.disconnect"}
        if part is NEVER_SENT:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": part, "more_body": bool(left)}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": how, "path": path, "query_string": b""}
    scope |= {"headers": [(b"content-type", b"application/json")]}
    await app(scope, receive, send)
    return sent[0]["status"], sent[1]["body"]


def served(names: dict[str, Any], kind: str = "Awaited") -> Any:
    """The page's app, in front of our model."""
    pytest.importorskip("starlette")
    names |= {"model": twice, "SHAPE": (40,), "DTYPE": TORCH.float32}
    exec(OF_REQUESTS + OF_THE_WEB, names)
    names["SERVICE"] = names[kind]
    return names["app"]


@pytest.mark.parametrize("kind", ["Awaited", "InThreads", "Uncaptured"])
async def test_a_client_gets_its_answer(kind: str, names: dict[str, Any]) -> None:
    app = served(names, kind)
    names["LANES"] = 1
    numbers = np.arange(40) % 29
    body, right = asks(numbers), (200, told(2.0 * numbers))
    async with names["lifespan"](app):
        assert len(app.state.service.lanes) == 1
        assert await post(app, body) == right
        assert await post(app, body[:50], body[50:]) == right
        status, said = await post(app, asks([1, 3, 2]))
        assert status == 400
        assert b"shape (40,)" in said
        largest = body + b" " * (65_536 - len(body))
        assert await post(app, largest) == right
        assert (await post(app, largest, b" ", NEVER_ASKED_FOR))[0] == 413
        assert (await post(app, body[:50], GONE))[0] == 400  # an answer, and no traceback
        Trouble.fails = 1
        assert await post(app, body) == (500, b'{"detail":"the model failed"}')
        app.state.service.queue = asyncio.Queue(1)
        app.state.service.queue.put_nowait((numbers, left := asyncio.Future[Any]()))
        assert (await post(app, body))[0] == 503
    assert isinstance(left.exception(), names["Unavailable"])
    ended = await asyncio.wait_for(post(app, body), SOON_S)
    assert ended == (503, b'{"detail":"the service has ended"}')


@pytest.mark.parametrize("kind", ["Awaited", "InThreads"])
async def test_a_deadline_and_a_fault_have_their_status(
    kind: str, names: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    app = served(names, kind)
    body, health = asks([1.0] * 40), {"path": "/health", "how": "GET"}
    async with names["lifespan"](app):
        assert await post(app, b"", **health) == (200, b'{"healthy":true}')
        names["DEADLINE_S"] = 0.0
        async with asyncio.timeout(SOON_S):
            assert (await post(app, body[:50], NEVER_SENT))[0] == 504
        assert (await post(app, body))[0] == 504
        names["DEADLINE_S"] = SOON_S
        assert (await post(app, body))[0] == 200
        Trouble.faults = 1
        assert (await post(app, body))[0] == 500
        for _ in range(2000):  # the other lane's turns, and those in which time goes on
            await asyncio.sleep(0)
        assert "the service has ended" in caplog.text
        assert await post(app, b"", **health) == (503, b'{"healthy":false}')
        assert (await post(app, body))[0] == 503


async def test_a_gpu_that_hangs_does_not_hold_up_the_end(names: dict[str, Any]) -> None:
    app, body = served(names), asks([1.0] * 40)
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
        assert await asked == (503, b'{"detail":"the service has ended"}')
