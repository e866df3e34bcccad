"""The file for the Perfetto UI, in Chrome's format."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from asyncgpu_tutor import Trace
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.types import Span
from tests.tools import tool

trace_of = tool("course_programs").trace_of


@pytest.fixture
def trace(sim: Device) -> Trace:
    return trace_of("02_streams_and_events")


def written(trace: Trace, tmp_path: Path) -> list[dict[str, Any]]:
    path = tmp_path / "trace.json"
    trace.to_perfetto(path)
    return json.loads(path.read_text("utf-8"))["traceEvents"]


def lanes(events: list[dict[str, Any]]) -> dict[str, list[str]]:
    """The names of spans by the name of their row, both in order."""
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    order = {e["tid"]: e["args"]["sort_index"] for e in events if e["name"] == "thread_sort_index"}
    rows = {names[tid]: list[str]() for tid in sorted(names, key=order.__getitem__)}
    for event in events:
        if event["ph"] == "X":
            rows[names[event["tid"]]].append(event["name"])
    return rows


def test_each_lane_is_a_row_with_its_name_and_order(trace: Trace, tmp_path: Path) -> None:
    events = written(trace, tmp_path)
    assert events[0]["args"]["name"] == "simulated H200 (modelled)"
    assert list(lanes(events)) == ["host", *(f"sim:0 stream {n}" for n in trace.streams)]


def test_ranges_are_in_rows_above_the_calls_of_the_host(tmp_path: Path) -> None:
    times = {"a": (0, 9), "across": (1, 12), "nested": (2, 8)}
    host = [Span(i, "range", n, *times[n], "") for i, n in enumerate(times)]
    other = Span(5, "range", "r", 0, 1, "sim:0", detail={"host": "sim:0"})
    trace = Trace([*host, Span(4, "call", "c", 2, 3, ""), other])
    rows = lanes(written(trace.with_lane("mine", [(0, 1, "m")]), tmp_path))
    expected = {f"ranges, row {i}": [n] for i, n in enumerate(times, 1)} | {"host": ["c"]}
    assert rows == {**expected, "sim:0 ranges": ["r"], "mine": ["m"]}


def test_spans_of_a_stream_that_overlap_by_an_imprecise_clock_all_show(tmp_path: Path) -> None:
    pair = [Span(1, "kernel", "a", 0, 3, "cuda:0", 1), Span(2, "kernel", "b", 2, 4, "cuda:0", 1)]
    found = lanes(written(Trace(pair, "CUDA events", "GPU"), tmp_path))
    assert found == {"cuda:0 stream 1, row 1": ["a"], "cuda:0 stream 1, row 2": ["b"]}


def test_arrows_go_from_calls_to_work_and_between_streams(trace: Trace, tmp_path: Path) -> None:
    by_id = {span.id: span for span in trace}
    ends = {"s": dict[int, float](), "f": dict[int, float]()}
    for event in written(trace, tmp_path):
        if event["ph"] in ends:
            ends[event["ph"]][event["id"]] = event["ts"]
    found = Counter((start, ends["f"][number]) for number, start in ends["s"].items())
    assert found == Counter(
        (by_id[i].start, span.start)
        for span in trace
        for i in span.after
        if (by_id[i].device, by_id[i].stream) != (span.device, span.stream)
        and by_id[i].start <= span.start
    )


def test_work_that_begins_with_what_it_waited_for_has_an_arrow(tmp_path: Path) -> None:
    pair = [Span(1, "kernel", "a", 5, 9, "cuda:0", 1)]
    pair.append(Span(2, "kernel", "b", 5, 9, "cuda:0", 2, after=(1,)))
    assert [e["ph"] for e in written(Trace(pair), tmp_path) if e["name"] == "dependency"] == [
        "s",
        "f",
    ]


def test_an_empty_trace_and_odd_names_are_written(tmp_path: Path) -> None:
    assert lanes(written(Trace(), tmp_path)) == {}
    odd = Span(2**62, "kernel", "\ud800 ü", 0.0, 0.0, "cuda:0", 1, detail={"n": -1, "x": [1.5]})
    (event,) = (e for e in written(Trace([odd]), tmp_path) if e["ph"] == "X")
    assert (event["args"]["n"], event["args"]["x"]) == (-1, "[1.5]")


def test_the_file_is_for_viewers_and_not_read_back(trace: Trace, tmp_path: Path) -> None:
    trace.to_perfetto(tmp_path / "trace.json")
    with pytest.raises(UsageError, match="load what `save` wrote"):
        Trace.load(tmp_path / "trace.json")


FACTS: list[dict[str, Any]] = [
    {"ph": 7},
    {"ph": "X", "ts": 1, "more": {"ph": "M", "pid": 1}},
    {"traceEvents": {"ph": "X", "ts": 1, "more": 2}},
]


@pytest.mark.parametrize("facts", FACTS)
def test_facts_may_be_called_as_fields_of_chromes_events_are(
    facts: dict[str, Any], trace: Trace, tmp_path: Path
) -> None:
    spans = [replace(span, detail=facts) for span in trace]
    told = replace(trace, spans=spans, about=facts)
    told.save(tmp_path / "t.json")
    assert Trace.load(tmp_path / "t.json") == told


@pytest.mark.parametrize("fact", [float("nan"), np.int64(3), {1, 2}])
@pytest.mark.parametrize("write", [Trace.save, Trace.to_perfetto])
def test_what_json_has_not_is_refused_where_it_is_written(
    write: Any, fact: object, trace: Trace, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=r"cannot be written as JSON: .*finite numbers"):
        write(replace(trace, about={"fact": fact}), tmp_path / "t.json")
