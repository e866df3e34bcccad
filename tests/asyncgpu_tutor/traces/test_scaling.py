"""What a trace costs grows with its spans, whatever they are spread over: streams, devices or hosts."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor import Trace
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces.formats import own_json
from asyncgpu_tutor.types import Span

SHAPES: dict[str, Callable[[int], Span]] = {
    "streams at once": lambda i: Span(i, "kernel", "k", 0, 1e3, "d", i),
    "streams in turn": lambda i: Span(i, "kernel", "k", 10.0 * i, 10.0 * i + 5, "d", i),
    "copies in turn": lambda i: Span(i, "h2d", "c", 10.0 * i, 10.0 * i + 5, "d", i),
    "devices": lambda i: Span(i, "kernel", "k", i, i + 1e3, f"d{i}", 1),
    "hosts": lambda i: Span(i, "call", "c", i, i + 1, "d", detail={"host": f"h{i}"}),
    "waits": lambda i: Span(
        i, "kernel" if i % 2 else "wait", "w", i, i + 5, "d", 1 if i % 2 else None
    ),
}


def steps(trace: Trace) -> int:
    """How often Python enters a function, or goes on in a generator, for all that is told of a trace."""
    entered = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal entered
        entered += event == "call"

    sys.setprofile(count)
    try:
        assert agt.analyse(trace).table()
        assert trace.table()
        assert trace.plot().svg()
    finally:
        sys.setprofile(None)
    return entered


@pytest.mark.parametrize("shape", SHAPES)
def test_twice_the_spans_are_about_twice_the_work(shape: str) -> None:
    few, many = (steps(Trace([SHAPES[shape](i) for i in range(n)])) for n in (200, 400))
    assert many < 2.6 * few


def test_there_are_limits_in_every_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    event = '{"ph": "B", "cat": "kernel", "name": "k", "ts": 1}'
    (tmp_path / "t.json").write_text(f'{{"traceEvents": [{", ".join([event] * 5)}]}}')
    monkeypatch.setattr(own_json, "MOST_SPANS", 4)
    with pytest.raises(UsageError, match="more than 4 events, and no more are read"):
        Trace.load(tmp_path / "t.json")
    monkeypatch.setattr(own_json, "_MOST_VALUES", 20)
    with pytest.raises(UsageError, match="has 26 values, and 20 is the limit"):
        Trace.load(tmp_path / "t.json")


@pytest.mark.parametrize("field", ["host", "lane"])
def test_no_name_from_a_file_is_obeyed_by_a_terminal(field: str) -> None:
    evil = "\x1b]0;owned\x07\x9b2J"
    detail = {key: evil for key in ("lane", "host") if field == key} | {"named": "n"}
    spans = [Span(0, "call", evil, 0, 1, evil), Span(2, "range", "r", 0, 9, "", detail=detail)]
    spans.insert(1, Span(1, "kernel", evil, 1, 9, evil, 1, detail={"grid": evil}))
    about = {"clocks_within_us": evil, "within": evil, "windows": [(0, 9)], "damage": [evil]}
    trace = Trace(spans, evil, evil, about)
    analysis = agt.analyse(trace)
    told = [trace.table(), repr(trace), repr(trace.plot()), analysis.table(), repr(analysis)]
    told += map(str, analysis.findings)
    assert not any(set("\x1b\x07\x9b") & set(text) for text in told)
