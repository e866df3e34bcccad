"""A recording of everything, on a stand-in for CUPTI: what the host's lane shows of other libraries."""

import enum
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.traces.spans import Span, SpanLog
from asyncgpu_tutor.traces.trace import Trace

MODULE = "asyncgpu_tutor.devices.cuda.cupti"
Kind = enum.IntEnum(
    "Kind", "MEMCPY MEMCPY2 MEMSET DRIVER RUNTIME CONCURRENT_KERNEL EXTERNAL_CORRELATION"
)
Runtime = enum.IntEnum(
    "Runtime",
    "INVALID cudaLaunchKernel_v7000 cudaMemcpyAsync_v3020 cudaMemsetAsync_v3020 cudaStreamSynchronize_v3020 "
    "cudaGetDevice_v3020 cudaMalloc_v3020 cudaHostAlloc_v3020 cudaDeviceSynchronize_v3020 SIZE",
)
Driver = enum.IntEnum("Driver", "INVALID cuLaunchKernel cuModuleLoadData cuCtxGetCurrent SIZE")
NULL_STREAM = 7


class Cupti(ModuleType):
    """Hands over what a program did, at the next flush. Its clock goes on by 1 us whenever it is read."""

    ActivityKind, runtime_api_trace_cbid, driver_api_trace_cbid = Kind, Runtime, Driver
    ExternalCorrelationKind = SimpleNamespace(CUSTOM0=1, CUSTOM1=2)

    def __init__(self) -> None:
        super().__init__("cupti")
        self.cupti = self
        self.now = 1000
        self.numbers = iter(range(1, 1000))
        self.pending: list[SimpleNamespace] = []
        self.off: set[str] = set()
        self.pushed: dict[object, list[int]] = {1: [], 2: []}  # by kind
        self.current = 0  # the device
        self.in_use = {0, 1}
        self.contexts: list[int] = []  # where work is recorded
        self.take: Callable[[list[SimpleNamespace]], None]

    def get_timestamp(self) -> int:
        self.now += 1000
        return self.now

    def activity_register_callbacks(self, asked: object, take: Any) -> None:
        self.take = take

    def activity_enable_runtime_api(self, number: int, on: int) -> None:
        self.off.add(Runtime(number).name)

    def activity_enable_driver_api(self, number: int, on: int) -> None:
        self.off.add(Driver(number).name)

    def activity_enable_context(self, context: int, kind: object) -> None:
        if kind == Kind.MEMCPY:
            self.contexts.append(context)

    def activity_flush_all(self, flag: int) -> None:
        pending, self.pending = self.pending, []
        self.take(pending)

    def activity_push_external_correlation_id(self, kind: object, number: int) -> None:
        self.pushed[kind].append(number)

    def activity_pop_external_correlation_id(self, kind: object) -> int:
        return self.pushed[kind].pop()

    def __getattr__(self, name: str) -> Any:  # to subscribe, to enable and the like
        return lambda *_: 1

    # what a program does
    def call(self, api: enum.IntEnum, took: int = 4000, thread: int = 1) -> int:
        kind = Kind.RUNTIME if isinstance(api, Runtime) else Kind.DRIVER
        number, start = next(self.numbers), self.now
        self.now += took
        if api.name not in self.off:
            for kind_of_id, pushed in self.pushed.items():
                for mark in pushed[-1:]:
                    ours = SimpleNamespace(correlation_id=number, external_id=mark)
                    ours.kind, ours.external_kind = Kind.EXTERNAL_CORRELATION, kind_of_id
                    self.pending.append(ours)
            when: dict[str, Any] = {"start": start, "end": self.now, "thread_id": thread}
            self.pending.append(SimpleNamespace(kind=kind, cbid=api, correlation_id=number, **when))
        return number

    def work(self, number: int, kind: Kind, name: str = "", stream: int = 9, on: int = 0) -> None:
        done = SimpleNamespace(
            kind=kind, correlation_id=number, start=self.now, end=self.now + 2000, name=name,
            graph_node_id=0, device_id=on, stream_id=stream, copy_kind=2, src_kind=3, dst_kind=2,
        )  # fmt: skip
        self.pending.append(done)


@pytest.fixture
def cupti(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cupti]:
    fake = Cupti()

    def memset(*_: object) -> None:
        number = fake.call(Runtime.cudaMemsetAsync_v3020)
        fake.work(number, Kind.MEMSET, "", NULL_STREAM + fake.current, fake.current)

    runtime = SimpleNamespace(
        malloc=lambda size: 0,
        free=lambda memory: None,
        memsetAsync=memset,
        memcpyAsync=lambda *_: None,
        deviceSynchronize=lambda: fake.call(Runtime.cudaDeviceSynchronize_v3020),
        getDeviceCount=lambda: 2,
        setDevice=lambda ordinal: setattr(fake, "current", ordinal),
    )
    bindings = ModuleType("cuda.bindings")
    state = SimpleNamespace(cuDevicePrimaryCtxGetState=lambda device: (0, 0, device in fake.in_use))
    vars(bindings)["driver"] = state
    cupy, cuda = ModuleType("cupy"), ModuleType("cupy.cuda")
    vars(cuda)["runtime"] = runtime
    vars(cuda)["driver"] = SimpleNamespace(ctxGetCurrent=lambda: fake.current + 1)
    kept = sys.modules.pop(MODULE, None)
    modules = {"cupy": cupy, "cupy.cuda": cuda, "cupti": fake, "cuda.bindings": bindings}
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    recorder = importlib.import_module(MODULE)
    clock = SimpleNamespace(perf_counter_ns=lambda: fake.now, sleep=lambda seconds: None)
    monkeypatch.setattr(recorder, "time", clock)
    monkeypatch.setattr(recorder, "profiler_attached", lambda: "")
    monkeypatch.setattr(recorder.metadata, "version", lambda name: "13.0.1")
    fake.recorder = recorder
    yield fake
    del sys.modules[MODULE]
    if kept is not None:
        sys.modules[MODULE] = kept


@contextmanager
def recording(cupti: Cupti, everything: bool = True) -> Iterator[tuple[Any, SpanLog]]:
    log = SpanLog("cuda:0")
    recorder = cupti.recorder.CuptiRecorder(log, 0, everything)
    yield recorder, log
    recorder.settle()
    recorder.close()


def recorded(cupti: Cupti, program: Callable[[], object], everything: bool = True) -> list[Span]:
    with recording(cupti, everything) as (_, log):
        program()
    return sorted(log.spans, key=lambda span: span.id)


def launch(cupti: Cupti, name: str = "cupy_tanh", stream: int = 9, thread: int = 1) -> None:
    number = cupti.call(Driver.cuLaunchKernel, thread=thread)
    cupti.work(number, Kind.CONCURRENT_KERNEL, name, stream, cupti.current)


def test_each_piece_of_work_comes_after_the_call_that_asked_for_it(cupti: Cupti) -> None:
    def program() -> None:
        cupti.call(Driver.cuModuleLoadData)
        launch(cupti)
        for api, kind in (
            (Runtime.cudaMemcpyAsync_v3020, Kind.MEMCPY),
            (Runtime.cudaMemcpyAsync_v3020, Kind.MEMCPY2),
            (Runtime.cudaMemsetAsync_v3020, Kind.MEMSET),
        ):
            cupti.work(cupti.call(api), kind)
        cupti.call(Runtime.cudaGetDevice_v3020)
        cupti.call(Runtime.cudaStreamSynchronize_v3020)

    _, call, kernel, ask, copy, *_ = spans = recorded(cupti, program)
    assert [(s.kind, s.name) for s in spans] == [
        ("call", "load module"), ("call", "launch cupy_tanh"), ("kernel", "cupy_tanh"),
        ("call", "enqueue d2h"), ("d2h", "d2h"), ("call", "enqueue peer"), ("peer", "peer"),
        ("call", "enqueue memset"), ("memset", "memset"), ("wait", "synchronize stream"),
    ]  # fmt: skip
    assert kernel.after == (call.id,)
    assert copy.after == (ask.id,)
    assert call.detail["api"] == "cuLaunchKernel"
    assert call.duration == pytest.approx(4.0)
    assert kernel.start >= call.start


def test_work_of_others_has_the_name_of_its_range(cupti: Cupti) -> None:
    def program() -> None:
        with agt.ranges.span("forward"):
            launch(cupti, "gemm")
            with agt.ranges.across("request"), agt.ranges.span("head"):
                launch(cupti, "softmax")
        launch(cupti, "tanh")

    with agt.ranges.into(before := SimpleNamespace()):
        spans = [span for span in recorded(cupti, program) if span.on_device]
        assert agt.ranges.current_domain is before
        launch(cupti)
    assert [(s.name, s.label, s.detail.get("named")) for s in spans] == [
        ("gemm", "forward", "forward"), ("softmax", "head", "head"), ("tanh", "", None),
    ]  # fmt: skip
    assert all(span.detail["foreign"] for span in spans)
    with recording(cupti):
        spanning = agt.ranges.span("too long")
        spanning.__enter__()
    spanning.__exit__(None, None, None)
    assert agt.ranges.current_domain is None
    # Only the recording of everything needs them.
    recorded(cupti, lambda: None, everything=False)


def test_a_call_of_the_driver_inside_of_one_of_the_runtime_is_that_one(cupti: Cupti) -> None:
    def program() -> None:
        begin = cupti.now
        launch(cupti, "gemm")
        inner = cupti.now
        cupti.now = begin
        cupti.call(Runtime.cudaLaunchKernel_v7000, took=inner - begin + 1000)

    call, kernel = recorded(cupti, program)
    assert call.detail["api"] == "cudaLaunchKernel_v7000"
    assert kernel.after == (call.id,)


def test_what_cannot_begin_is_off(cupti: Cupti, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(size: int) -> int:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(cupti.recorder.runtime, "malloc", full)
        with pytest.raises(MemoryError):
            cupti.recorder.CuptiRecorder(SpanLog("cuda:0"), 0)
    spans = recorded(cupti, lambda: launch(cupti))
    assert [span.kind for span in spans] == ["call", "kernel"]  # opened again, for everything


def test_the_null_stream_of_others_is_ours(cupti: Cupti) -> None:
    spans = recorded(cupti, lambda: (launch(cupti, stream=NULL_STREAM), launch(cupti)))
    assert [span.stream for span in spans if span.on_device] == [0, 1009]


def test_a_wait_of_a_thread_that_asks_for_nothing_holds_up_nobody(cupti: Cupti) -> None:
    def program() -> None:
        launch(cupti)
        cupti.call(Runtime.cudaStreamSynchronize_v3020, thread=2)

    assert [span.kind for span in recorded(cupti, program)] == ["call", "kernel"]


def ours(cupti: Cupti, recorder: Any, log: SpanLog) -> None:
    """A launch of this package's own."""
    number, called = recorder.before(None), cupti.now
    launch(cupti, "relu")
    recorder.after(None)
    recorder.add([log.draft("kernel", "relu", 1)], number, None, called / 1e3)


def test_our_own_calls_and_waits_are_told_of_under_names_of_ours_alone(cupti: Cupti) -> None:
    with recording(cupti) as (recorder, log):
        wait = log.draft("wait", "op", None)
        ours(cupti, recorder, log)
        begin = cupti.now
        cupti.call(Runtime.cudaStreamSynchronize_v3020)
        recorder.add_host(wait, begin / 1e3, cupti.now / 1e3)
        launch(cupti, "cupy_tanh")
        ours(cupti, recorder, log)
        cupti.call(Runtime.cudaStreamSynchronize_v3020)  # another library waits for our work
    assert [(span.kind, span.name, span.stream) for span in log.spans] == [
        ("wait", "op", None),
        ("kernel", "relu", 1),
        ("kernel", "relu", 1),
        ("call", "launch cupy_tanh", None),
        ("kernel", "cupy_tanh", 1),  # it was lent our stream
        ("wait", "synchronize stream", None),
    ]


def test_a_thread_of_others_waits_while_one_of_ours_does(cupti: Cupti) -> None:
    with recording(cupti) as (recorder, log):
        ours(cupti, recorder, log)
        launch(cupti, thread=2)
        begin = cupti.now
        cupti.call(Runtime.cudaStreamSynchronize_v3020, thread=2)
        cupti.now = begin
        cupti.call(Runtime.cudaStreamSynchronize_v3020)
        recorder.add_host(log.draft("wait", "op", None), begin / 1e3, cupti.now / 1e3)
    waits = [(span.name, span.detail.get("thread")) for span in log.spans if span.kind == "wait"]
    assert waits == [("op", None), ("synchronize stream", 1)]


def test_what_we_allocate_without_a_span_is_not_told_of_as_that_of_others(cupti: Cupti) -> None:
    with recording(cupti) as (recorder, log):
        with recorder.own():
            cupti.call(Runtime.cudaHostAlloc_v3020)
        cupti.call(Runtime.cudaHostAlloc_v3020)
    assert [(span.name, span.detail["foreign"]) for span in log.spans] == [("malloc host", True)]


def test_earlier_work_of_others_says_nothing_of_streams_of_a_second_device(cupti: Cupti) -> None:
    logs = [SpanLog(f"cuda:{k}") for k in (0, 1)]
    first = cupti.recorder.CuptiRecorder(logs[0], 0, True)
    cupti.current = 1
    launch(cupti, stream=9)
    second = cupti.recorder.CuptiRecorder(logs[1], 1, True)
    launch(cupti, stream=9)
    launch(cupti, stream=NULL_STREAM + 1)
    for recorder in (first, second):
        recorder.settle()
        recorder.close()
    assert [span.stream for span in logs[1].spans if span.on_device] == [1009, 0]


def test_only_contexts_of_recorded_devices_are_watched(cupti: Cupti) -> None:
    # CUPTI may break a context that it was told to watch and that nobody has warmed up.
    cupti.recorder.CuptiRecorder(SpanLog("cuda:0"), 0).close()
    assert cupti.contexts == [1]


def test_a_gpu_that_is_first_used_in_a_recording_is_named(cupti: Cupti) -> None:
    cupti.in_use = {0}
    with pytest.warns(UserWarning, match="cuda:1 worked as well"), recording(cupti):
        cupti.in_use = {0, 1}


def test_work_of_a_gpu_that_is_not_recorded_is_not_left_out_silently(cupti: Cupti) -> None:
    def program() -> None:
        launch(cupti)
        cupti.pending[-1].device_id = 1

    with pytest.warns(UserWarning, match=r"cuda:1 worked as well.*agt\.use\('cuda:1'\)"):
        assert recorded(cupti, program) == []


def test_calls_are_not_told_of_where_only_our_own_work_is_recorded(cupti: Cupti) -> None:
    assert recorded(cupti, lambda: launch(cupti), everything=False) == []
    assert "cudaStreamSynchronize_v3020" in cupti.off


def test_without_cupti_it_says_what_to_install_or_that_nothing_would_help(
    cupti: Cupti, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cupti", None)
    for driver, advice in (
        (13000, r"install it with: python -m pip install 'cupti-python==13\.\*'"),
        (12080, "needs a driver for CUDA 13, that is 580 or later, and this one is for CUDA 12.8"),
    ):
        asked = lambda driver=driver: driver  # noqa: E731
        monkeypatch.setattr(cupti.recorder.runtime, "driverGetVersion", asked, raising=False)
        with pytest.raises(cupti.recorder.CuptiRefusedError, match=advice):
            cupti.recorder.CuptiRecorder(SpanLog("cuda:0"), 0, True)


def test_a_program_of_others_that_asks_too_slowly_is_host_bound(cupti: Cupti) -> None:
    def program() -> None:
        for _ in range(40):
            launch(cupti)
            cupti.now += 30_000  # Python

    trace = Trace(recorded(cupti, program), "CUPTI", "a GPU", about={"everything": True})
    assert "host-bound" in {finding.name for finding in agt.diagnose(trace)}
    late = agt.analyse(trace).host_late
    assert late["own code"] > late["CUDA call"] > 0
