"""Traces of PyTorch's profiler, reduced to what is special about them."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asyncgpu_tutor as agt
from asyncgpu_tutor import Trace
from asyncgpu_tutor.errors import UsageError
from tests.asyncgpu_tutor.traces.invariants import hold

VECTOR = "void at::native::vectorized_elementwise_kernel<4, at::native::Add<float> >(int, char*)"


def event(
    cat: str, name: str, ts: object, dur: object, tid: object = 1, **args: Any
) -> dict[str, Any]:
    place = {"ph": "X", "pid": 9, "tid": tid, "args": args}
    return {"cat": cat, "name": name, "ts": ts, "dur": dur, **place}


def step() -> list[dict[str, Any]]:
    """A step with one operator in another, a pageable copy, and a wait; it ends before the work does."""
    place: dict[str, Any] = {"device": 0, "stream": 7}
    return [
        {"ph": "M", "name": "process_name", "pid": 9, "args": {"name": "python"}},
        event("user_annotation", "ProfilerStep#1", 100, 60),
        event("cpu_op", "aten::add_", 110, 30),
        event("cpu_op", "aten::empty", 112, 2),
        event("cuda_runtime", "cudaLaunchKernel", 120, 5, correlation=3),
        event("kernel", VECTOR, 130.5, 10.25, 7, correlation=3, grid=[4, 1, 1], block=[128, 1, 1], **place),
        event("cuda_runtime", "cudaMemcpyAsync", 145, 5, correlation=4),
        event("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 150, 4, 7, correlation=4, bytes=64, **place),
        event("cuda_runtime", "cudaStreamSynchronize", 151, 5, correlation=5),
        event("gpu_user_annotation", "ProfilerStep#1", 130, 24, 7),
    ]  # fmt: skip


def load(tmp_path: Path, body: object, name: str = "t.json") -> Trace:
    raw = json.dumps(body).encode()
    (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return Trace.load(tmp_path / name)


@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_work_calls_waits_and_ranges(name: str, tmp_path: Path) -> None:
    gpu = {"name": "NVIDIA A100", "numSms": 108, "maxThreadsPerMultiprocessor": 2048}
    body = {"traceEvents": step(), "deviceProperties": [gpu]}
    trace = load(tmp_path, body, name)
    assert (trace.clock, trace.device) == ("PyTorch profiler", "NVIDIA A100")
    assert [(s.kind, s.name, s.start, s.end) for s in trace.device_spans] == [
        ("kernel", "vectorized_elementwise_kernel", 30.5, 40.75),
        ("d2h", "d2h", 50.0, 54.0),
    ]
    assert [s.name for s in trace if s.kind == "range"] == ["ProfilerStep#1", "aten::add_"]
    assert [s.name for s in trace if s.kind == "wait"] == ["synchronize stream"]
    assert trace.device_spans[1].detail == {"bytes": 64, "pageable": True, "cuda_stream": 7}
    assert trace.about["threads_at_once"] == 108 * 2048
    (kernel, _) = trace.device_spans
    assert kernel.label == "aten::add_"
    assert kernel.detail["full_name"] == VECTOR


OLD = {"kernel": "Kernel", "gpu_memcpy": "Memcpy", "gpu_memset": "Memset", "cuda_runtime": "Runtime",
       "cpu_op": "Operator"}  # fmt: skip


def test_categories_of_older_versions_are_known(tmp_path: Path) -> None:
    """PyTorch 1.8 and 1.9 have other names, with capitals."""
    fill = event("gpu_memset", "Memset (Device)", 155, 1, 7, device=0, stream=7, correlation=6)
    events = [*step(), fill]
    old = [{**e, "cat": OLD.get(e.get("cat", ""), e.get("cat", ""))} for e in events]
    found = load(tmp_path, {"traceEvents": old})
    assert found.spans == load(tmp_path, {"traceEvents": events}).spans
    assert [s.kind for s in found.device_spans] == ["kernel", "d2h", "memset"]


@pytest.mark.parametrize("number", [-1, 10**30, "none"])
def test_a_device_that_has_no_number_is_the_first(tmp_path: Path, number: object) -> None:
    fill = event("gpu_memset", "Memset (Device)", 1, 1, 7, device=number, stream=7, correlation=6)
    assert [s.device for s in load(tmp_path, {"traceEvents": [fill]}).device_spans] == ["cuda:0"]


def test_events_of_any_program_in_chromes_form_are_ranges(tmp_path: Path) -> None:
    """Begin and end may be two events, and the last one may be missing."""
    rows = (("B", 10, "outer"), ("B", 12, "inner"), ("E", 15, ""), ("X", 16, "whole"), ("E", 20, ""),
        ("E", 21, ""), ("B", 22, "open"),
    )  # fmt: skip
    place = {"pid": 1, "tid": 2, "cat": "mine", "dur": 2}
    events = [{"ph": ph, "ts": ts, "name": name, **place} for ph, ts, name in rows]
    found = {s.name: (s.start, s.end) for s in load(tmp_path, {"traceEvents": events})}
    assert found == {"outer": (0, 10), "inner": (2, 5), "whole": (6, 8), "open": (12, 12)}


CATEGORIES = st.sampled_from(
    ["kernel", "gpu_memcpy", "Memset", "cuda_runtime", "Runtime", "cpu_op"]
)


@given(rows=st.lists(st.tuples(CATEGORIES, *[st.integers(0, 900)] * 2, *[st.integers(0, 3)] * 2)))
def test_no_timeline_is_impossible(rows: list[tuple[Any, ...]], tmp_path: Path) -> None:
    events = [
        event(cat, "cudaDeviceSynchronize", start, took, device=on % 2, stream=on, correlation=call)
        for cat, start, took, call, on in rows
    ]
    hold(load(tmp_path, [event("cpu_op", "op", 0, 9), *events]))


def test_events_may_stand_alone_and_times_may_be_text(tmp_path: Path) -> None:
    events = [e | {key: str(e[key]) for key in ("ts", "dur") if key in e} for e in step()]
    assert len(load(tmp_path, events).device_spans) == 2


def test_arguments_of_an_event_may_be_called_as_fields_of_one_are(tmp_path: Path) -> None:
    args: dict[str, Any] = {"ph": "X", "device": 1, "stream": 13, "correlation": 3}
    (span,) = load(tmp_path, {"traceEvents": [event("kernel", "k", 10, 5, **args)]})
    assert (span.device, span.detail["cuda_stream"]) == ("cuda:1", 13)


def test_whole_numbers_may_be_written_as_fractions(tmp_path: Path) -> None:
    """As another program may write them that has filtered the file."""
    exact = load(tmp_path, {"traceEvents": step()}).spans
    text = json.dumps({"traceEvents": step()})
    loose = json.loads(text, parse_int=float)
    assert load(tmp_path, loose).spans == exact


def test_numbers_that_nothing_can_have_and_halves_of_letters_are_left_out(tmp_path: Path) -> None:
    huge = 10**400
    odd = event("kernel", "k\ud800", 1, 2, 7, grid=[huge, 1, 1], block=[1, 1, 1], bytes=huge)
    trace = load(tmp_path, {"traceEvents": [odd], "deviceProperties": [{"numSms": huge}]})
    (span,) = trace
    assert span.name == "k?"
    assert span.detail.keys() == {"block", "cuda_stream"}
    assert agt.analyse(trace).table()
    assert trace.plot().svg().encode()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"traceEvents": []}, "neither GPU work nor ranges"),
        ({"traceEvents": [{"ph": ["X"]}]}, "neither GPU work nor ranges"),
        ({"traceEvents": [event("kernel", "k", "soon", 1)]}, "ts is 'soon'"),
        ({"nodes": []}, "not a trace"),
        (3, "not an object"),
    ],
)
def test_what_is_none_is_refused(body: object, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        load(tmp_path, body)


def test_events_that_are_read_in_several_pieces_are_all_there(tmp_path: Path) -> None:
    """Three million characters, with events of which nothing is told between those that count."""
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "ts": 0, "dur": 1, "pid": 0, "tid": 7}
    noise = {"ph": "X", "cat": "python_function", "name": "x" * 200, "ts": 0, "dur": 1}
    events = [
        e for i in range(5_000) for e in (noise, noise, {**kernel, "ts": 2 * i}, {"note": "]}"})
    ]
    gpu = [{"name": "GPU", "id": 0}]
    for body in (
        {"deviceProperties": gpu, "traceEvents": events},
        {"traceEvents": events, "deviceProperties": gpu},
        events,
    ):
        path = tmp_path / "large.json"
        path.write_text(json.dumps(body))
        trace = Trace.load(path)
        assert len(trace) == 5_000
        assert trace.device == ("unknown GPU" if isinstance(body, list) else "GPU")
    path.write_text(json.dumps(events)[:-100])
    with pytest.raises(UsageError, match="not JSON"):
        Trace.load(path)


@pytest.mark.parametrize(("words", "kind"), [("DtoD", "d2d"), ("PtoP", "peer"), ("HtoD", "h2d")])
def test_a_copy_to_another_gpu_goes_over_a_link(words: str, kind: str, tmp_path: Path) -> None:
    copy = event(
        "gpu_memcpy", f"Memcpy {words} (Device -> Device)", 150, 4, 7, device=0, stream=7, bytes=64
    )
    trace = load(tmp_path, {"traceEvents": [copy]})
    assert [span.kind for span in trace.device_spans] == [kind]
    assert trace.plot().svg()
