"""Exports of other people's programs: what they have that ours have not, reduced to the smallest export."""

import math
from pathlib import Path
from typing import Any

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor import Trace
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces.analysis.idle import Evidence
from asyncgpu_tutor.traces.formats import database
from asyncgpu_tutor.types import Span

from .nsys_export import COPY, KERNEL, RUNTIME, THREAD, Export, read, small

PROCESS = 1 << 24


# ------------------------------------------------------------------ each piece of work once
def test_a_call_that_the_driver_lists_again_asks_for_its_work_once(tmp_path: Path) -> None:
    export = small()
    export.add(RUNTIME, start=2_050, end=2_250, eventClass=67, globalTid=THREAD, correlationId=11,
               nameId=export.text("cuLaunchKernel"), returnValue=0)  # fmt: skip
    trace = read(export, tmp_path)
    assert [s.name for s in trace.device_spans] == ["h2d", "relu", "matvec"]
    assert len([s for s in trace if s.name == "launch relu"]) == 1


def two_processes() -> Export:
    """Both count their calls from 10 on; the second one's device 0 is the machine's second GPU."""
    export = Export()
    for number, shift in ((1, 0), (2, 50)):
        thread = number * PROCESS + 7
        export.call("cudaLaunchKernel_v7000", 1_000 + shift, 1_100 + shift, 10, thread=thread)
        export.kernel(f"k{number}", 1_500 + shift, 2_500 + shift, 7, 10)
        export.tables[KERNEL][-1]["globalPid"] = number * PROCESS
        export.call("cudaDeviceSynchronize_v3020", 1_200, 2_600 + shift, 11, thread=thread)
        export.add("TARGET_INFO_CUDA_DEVICE", gpuId=number - 1, cudaId=0, pid=number)
    return export


def test_processes_that_count_alike_are_kept_apart(tmp_path: Path) -> None:
    export = two_processes()
    trace = read(export, tmp_path)
    by_id = {span.id: span for span in trace}
    assert sorted(s.name for s in trace.device_spans) == ["k1", "k2"]
    for span in trace.device_spans:
        (call,) = (by_id[i] for i in span.after)
        assert call.name == f"launch {span.name}"
        assert call.start < span.start
    export.kernel("late", 9_000, 9_500, 7, 0)
    export.tables[KERNEL][-1]["globalPid"] = 2 * PROCESS
    analysis = agt.analyse(read(export, tmp_path))
    assert list(analysis.devices) == ["cuda:0", "cuda:1"]
    for report in analysis.devices.values():
        assert math.isclose(sum(report.idle_by_cause.values()), report.metrics.device_idle)
    text = analysis.table()
    assert text.count("Why the device stood still") == 2
    assert "===== cuda:1" in text


def test_a_range_that_was_left_open_lasts_to_the_end_of_all_that_ran(tmp_path: Path) -> None:
    export = Export()
    export.range("all", 1_000, None, nested=False)
    export.launch("k", 1_500, 2_000, 9_000, 10)
    (found,) = (s for s in read(export, tmp_path) if s.kind == "range")
    assert (found.start, found.end) == (0.0, 8.0)
    assert [s.name for s in read(export, tmp_path, within="all")] == ["launch k", "k"]


# ------------------------------------------------------------------ unified memory
def migrating(cause: int = 2) -> Export:
    """Pages move to the device while a kernel runs, and back when the host reads them."""
    export = Export()
    export.launch("k", 1_000, 2_000, 9_000, 10)
    for kind, start in ((11, 2_100), (11, 3_000), (12, 30_000)):
        export.copy(kind, start, start + 500, 0, 0)
        export.tables[COPY][-1]["migrationCause"] = cause
    return export


def test_pages_of_unified_memory_have_a_lane_and_a_cause_of_their_own(tmp_path: Path) -> None:
    trace = read(migrating(), tmp_path)
    assert [s.name for s in trace if s.stream == -1] == ["pages h2d", "pages h2d", "pages d2h"]
    analysis = agt.analyse(trace)
    assert {c: us for c, us in analysis.idle_by_cause.items() if us} == {"page": 21.0}
    assert "unified memory" in trace.table()
    assert "unified memory: " in analysis.table()
    found = {finding.name: finding for finding in analysis.findings}
    assert "moved between host and device 3 times" in found["page migration"].sentence
    asked_for = agt.diagnose(read(migrating(cause=1), tmp_path))
    assert "page migration" not in {finding.name for finding in asked_for}


# ------------------------------------------------------------------ a range that repeats
def loop() -> Export:
    """Three steps of a loop with a pause of the device in each, and other work between and within them."""
    export = Export()
    for step in range(3):
        at = 100_000 * step
        export.range("step", at + 1_000, at + 20_000)
        export.launch("a", at + 2_000, at + 3_000, at + 8_000, 10 * step + 1)
        export.launch("b", at + 11_000, at + 12_000, at + 16_000, 10 * step + 2)
        export.launch("between", at + 50_000, at + 51_000, at + 60_000, 10 * step + 3)
    export.launch("other", 90_000, 109_000, 110_000, 99)
    return export


def test_each_window_of_a_range_counts_for_itself(tmp_path: Path) -> None:
    trace = read(loop(), tmp_path, within="step")
    assert [s.name for s in trace.device_spans] == ["a", "b", "a", "other", "b", "a", "b"]
    m = trace.metrics()
    assert m.device_makespan == 3 * 13.0
    # 4 us in each step, but for the second, where other work fills 1 us of them.
    assert m.device_idle == pytest.approx(11.0)
    assert math.fsum(i.duration for i in Evidence(trace).idle) == pytest.approx(m.device_idle)
    assert [round(i.duration, 3) for i in Evidence(trace).idle if i.cause == "host late"]


def test_a_range_that_repeats_is_summed_and_saved_by_its_windows(tmp_path: Path) -> None:
    trace = read(loop(), tmp_path, within="step")
    m = trace.metrics()
    assert "Metrics, of 3 windows (clock: Nsight" in trace.table()
    assert f"{m.device_active:.2f}, idle {m.device_idle:.2f}\n" in trace.table()
    # What lies within a window by chance is called other work.
    assert [s.name for s in trace.device_spans if s.detail.get("other")] == ["other"]
    assert {row.name for row in agt.analyse(trace).sums.kernels} == {"a", "b"}
    trace.save(tmp_path / "t.json")
    assert Trace.load(tmp_path / "t.json").metrics() == m


def test_the_limit_is_asked_of_what_is_wanted(tmp_path: Path) -> None:
    assert len(read(loop(), tmp_path, within="step", limit=10).device_spans) == 7
    with pytest.raises(UsageError, match="and limit is 5: profile a shorter stretch"):
        read(loop(), tmp_path, within="step", limit=5)


# ------------------------------------------------------------------ honest costs
def test_a_pageable_copy_is_charged_from_when_it_could_have_begun(tmp_path: Path) -> None:
    export = Export()
    export.launch("long", 1_000, 2_000, 900_000, 10)
    export.call("cudaMemcpyAsync_v3020", 2_000, 902_000, 11)
    export.copy(2, 900_500, 901_500, 13, 11, host=0)
    (found,) = (f for f in agt.diagnose(read(export, tmp_path)) if f.name == "pageable copy")
    assert found.cost == pytest.approx(2.0)


def test_the_host_is_late_in_three_ways_that_add_up(tmp_path: Path) -> None:
    export = Export()
    export.launch("a", 1_000, 2_000, 5_000, 10)
    export.call("cudaStreamSynchronize_v3020", 1_500, 7_000, 11)
    export.launch("b", 10_000, 11_000, 12_000, 12)
    analysis = agt.analyse(read(export, tmp_path))
    parts = {part: round(us, 3) for part, us in analysis.host_late.items()}
    assert parts == {"CUDA call": 0.1, "waiting": 2.0, "own code": 3.0}
    assert sum(parts.values()) == pytest.approx(analysis.idle_by_cause["host late"])


# ------------------------------------------------------------------ sums
def test_sums_have_shares_and_rates_and_ranges_are_projected_on_the_device(tmp_path: Path) -> None:
    table = agt.analyse(read(small(), tmp_path)).sums
    kernels = [(r.name, r.count, round(r.share, 3)) for r in table.kernels]
    assert kernels == [("matvec", 1, 0.639), ("relu", 1, 0.361)]
    assert table.copies[0].rate == pytest.approx(1024 / 1000)
    assert table.calls[0].name == "synchronize stream 2"
    (step,) = (r for r in agt.analyse(read(loop(), tmp_path)).sums.ranges if r.name == "step")
    assert (step.count, step.pieces) == (3, 6)
    assert (step.host, step.device, step.work) == pytest.approx((57.0, 39.0, 27.0))


# ------------------------------------------------------------------ SQL
def test_a_trace_answers_questions_that_nobody_foresaw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = read(small(), tmp_path)
    rows = trace.sql(
        "select work.name, call.name, json_extract(work.detail, '$.cuda_stream') from spans work "
        "join spans call on work.call = call.id order by work.start"
    )
    copied, *launched = rows
    monkeypatch.setattr(database, "_MOST_ROWS", 3)
    with pytest.raises(UsageError, match="more than 3 rows answer this: ask for less"):
        trace.sql("with recursive n(i) as (select 1 union all select i + 1 from n) select i from n")
    assert copied == ("h2d", "enqueue h2d", 13)
    assert launched == [("relu", "launch relu", 13), ("matvec", "launch matvec", 14)]
    assert ">relu</td>" in rows._repr_html_()


def test_half_of_a_letter_in_a_name_is_no_obstacle_and_a_query_is_text() -> None:
    half = Trace([Span(1, "kernel", "\ud800", 0, 1, "cuda:0", 1)])
    assert half.sql("select id, name from spans") == [(1, "?")]
    query: Any = None
    with pytest.raises(UsageError, match=r"sql takes a query, .* and got None"):
        half.sql(query)


@pytest.mark.parametrize(
    "query",
    ["drop table spans", "attach 'x.sqlite' as x", "select nothing from spans", "", "pragma user_version = 3",
     "with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) from n"],
)  # fmt: skip
def test_what_would_change_something_or_never_ends_is_refused(
    query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_MOST_LOOKS", 3)
    trace = read(small(), tmp_path)
    if query:
        with pytest.raises(UsageError, match="one table, spans, with the columns id, kind"):
            trace.sql(query)
    else:
        assert trace.sql(query) == []
        assert "<table>" in trace.sql(query)._repr_html_()
