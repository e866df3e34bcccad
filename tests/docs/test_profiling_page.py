"""The claims of docs/profiling.md hold: its programs run, its tables are right, its numbers are measured."""

import re
from itertools import pairwise

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor import Trace
from tests.tools import blocks, page, tool

_programs = tool("course_programs")
RUNS, same_work = _programs.RUNS, _programs.same_work
TEXT = page("docs/profiling.md")
(EXAMPLE,), (SHOWN,) = blocks(TEXT), blocks(TEXT, "text")
(ADDED,) = blocks(page("CONTRIBUTING.md"))
NAME = "07_async_mlp"


def test_the_example_runs_and_finds_what_it_is_about(capsys: pytest.CaptureFixture[str]) -> None:
    exec(EXAMPLE, {})
    assert capsys.readouterr().out == SHOWN


def test_a_program_is_added_as_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    found = tool("course_programs.programs")
    monkeypatch.setattr(found, "RUNS", dict(RUNS))
    exec(ADDED.replace("from .", "from course_programs."), {"agt": agt})
    with agt.using("sim"):
        assert [s.label for s in found.trace_of("10_my_chapter").device_spans] == ["mine"]


def test_each_defect_is_in_the_table_with_a_program_that_has_it() -> None:
    rows = re.findall(r"^\| `([a-z ]+)` \|.*\| `(08_\w+)` \|$", TEXT, re.MULTILINE)
    assert len(rows) == 7
    for finding, program in rows:
        assert program[3:].replace("_", " ") == finding
        assert f"{program}_repaired" in RUNS
    assert {p for _, p in rows} == {n for n in RUNS if n.startswith("08_") and "repaired" not in n}


def test_the_three_clocks_compare_as_the_table_says() -> None:
    cupti = Trace.load_recording(NAME)
    nsys = Trace.from_nsys(Trace.recorded_file(f"{NAME}.sqlite"), within=NAME)
    events = Trace.load(Trace.recorded_file(f"{NAME}.events.json"))
    traces = [cupti, nsys, events]
    assert [trace.clock for trace in traces] == ["CUPTI", "Nsight Systems", "CUDA events"]
    pairs, missing, same_order = same_work(*traces)
    assert missing == [[], [], []]
    assert same_order
    assert len(pairs) == 28
    for c, n, e in pairs:
        assert abs(c.duration - n.duration) < 1
        assert 2 < e.duration - n.duration < 12


def test_the_ranges_that_are_named_are_there_and_last_across_the_await() -> None:
    trace = Trace.from_nsys(Trace.recorded_file(f"{NAME}.sqlite"))
    ranges = [span for span in trace if span.kind == "range"]
    assert {span.detail["domain"] for span in ranges} == {"asyncgpu_tutor"}
    (whole,) = (span for span in ranges if span.name == NAME)
    last = {span.name: span for span in ranges if span.start >= whole.start}
    for number in range(4):
        submitted, flight = last[f"batch {number}"], last[f"batch {number} in flight"]
        work = [s for s in trace.device_spans if s.op == submitted.op]
        assert len(work) == 7
        assert flight.start <= submitted.start
        assert flight.end >= max(span.end for span in work)
    # Tasks interleave, so these ranges overlap without nesting: only start/end ranges can.
    flights = [last[f"batch {number} in flight"] for number in range(4)]
    assert all(early.start < late.start < early.end for early, late in pairwise(flights))


def test_the_picture_is_of_three_traces_of_the_same_work() -> None:
    picture = tool("profiling_picture")
    traces = picture.three()
    assert picture.PICTURE.exists()
    assert not any(same_work(*traces).missing)
    metrics = [trace.metrics() for trace in traces]
    assert metrics[0].device_makespan == min(m.device_makespan for m in metrics)
    assert metrics[0].device_idle == min(m.device_idle for m in metrics)
