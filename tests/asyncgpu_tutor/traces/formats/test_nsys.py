"""Exports of Nsight Systems become traces; other files, an error for people."""

import sqlite3
import stat
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncgpu_tutor import Trace
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces.spans.relations import happens_before
from tests.asyncgpu_tutor.traces.invariants import hold

from .nsys_export import COPY, FILL, KERNEL, RUNTIME, SYNC, THREAD, Export, place, read, small


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return small().write(tmp_path / "small.sqlite")


def test_work_is_on_its_stream_and_belongs_to_the_range_of_its_call(file: Path) -> None:
    trace = Trace.from_nsys(file)
    assert (trace.clock, trace.device) == ("Nsight Systems", "NVIDIA H200")
    assert [
        (s.kind, s.name, s.stream, s.start, s.end, s.op, s.label) for s in trace.device_spans
    ] == [
        ("h2d", "h2d", 1, 0.8, 1.8, 1, "one"),
        ("kernel", "relu", 1, 1.9, 4.1, 1, "one"),
        ("kernel", "matvec", 2, 4.2, 8.1, 2, "two"),
    ]
    assert trace.about["profiler"] == "2025.3.2.0"
    assert trace.about["threads_at_once"] == 132 * 64 * 32


def test_calls_waits_and_ranges_are_on_the_host_and_the_rest_is_left_out(file: Path) -> None:
    trace = Trace.from_nsys(file)
    assert [(s.kind, s.name) for s in trace if not s.on_device] == [
        ("range", "record"), ("range", "one"), ("call", "enqueue h2d"), ("call", "launch relu"),
        ("range", "two"), ("call", "launch matvec"), ("wait", "synchronize stream 2"),
    ]  # fmt: skip


def test_a_range_that_is_pushed_is_of_a_thread_and_one_that_is_started_of_none(
    tmp_path: Path,
) -> None:
    export = small()
    export.launch("late", 9_400, 9_500, 9_600, 20)
    export.call("cudaDeviceSynchronize_v3020", 9_700, 9_800, 21, thread=THREAD + 1)
    export.call("cuLaunchKernel", 9_900, 9_950, 22, thread=THREAD + 1)
    export.kernel("other", 9_960, 9_990, 13, 22)
    ranges = [span for span in read(export, tmp_path) if span.kind == "range"]
    assert [s.name for s in ranges if "thread" not in s.detail] == ["record"]


def test_each_span_names_what_it_had_to_wait_for(file: Path) -> None:
    trace = Trace.from_nsys(file)
    copy, relu, matvec = trace.device_spans
    by_id = {span.id: span for span in trace}
    (wait,) = (span for span in trace if span.kind == "wait")
    assert [by_id[i].name for i in copy.after] == ["enqueue h2d"]
    assert {by_id[i].name for i in relu.after} == {"h2d", "launch relu"}
    assert {by_id[i].name for i in matvec.after} == {"relu", "launch matvec"}
    assert wait.after == (matvec.id,)
    assert happens_before(trace, copy, matvec)


def test_within_a_range_there_is_only_what_was_asked_for_in_it(tmp_path: Path) -> None:
    export = small()
    export.range("record", 30_000, 40_000, nested=False)
    export.launch("outside", 25_000, 31_000, 32_000, 30)
    export.launch("inside", 39_000, 41_000, 42_000, 31)
    trace = read(export, tmp_path, within="record")
    assert [s.name for s in trace.device_spans] == ["h2d", "relu", "matvec", "inside"]
    assert trace.find("h2d")[0].start == 0.8
    assert trace.find("record") == []


def test_a_call_belongs_to_the_range_that_is_open(tmp_path: Path) -> None:
    export = small()
    export.range("program", 10_000, 90_000)
    for number in range(100):
        export.range("step", 11_000 + 500 * number, 11_400 + 500 * number)
    export.launch("late", 80_000, 81_000, 82_000, 60)
    export.launch("alone", 95_000, 96_000, 97_000, 61)
    export.range("open", 9_000, None, nested=False)
    trace = read(export, tmp_path)
    assert trace.find("late")[0].label == "program"
    assert trace.find("alone")[0].op is None
    assert trace.find("open")[0].end == 96.1  # it never ended, so it lasts as long as all that ran


def test_a_range_that_is_not_there_is_refused_with_the_names_of_the_others(file: Path) -> None:
    with pytest.raises(UsageError, match=r"no NVTX range 'batch'.*'one', 'record', 'two'"):
        Trace.from_nsys(file, within="batch")


@pytest.mark.parametrize("absent", small().tables)
def test_any_table_may_be_absent(absent: str, tmp_path: Path) -> None:
    export = small()
    del export.tables[absent]
    trace = read(export, tmp_path)
    assert {span.kind for span in trace.device_spans} == {"h2d", "kernel"} - {
        {COPY: "h2d", KERNEL: "kernel"}.get(absent)
    }
    assert trace.metrics().makespan > 0


@pytest.mark.parametrize(
    ("table", "column", "needed"),
    [(KERNEL, "gridX", False), (COPY, "srcKind", False), ("NVTX_EVENTS", "domainId", False),
     (SYNC, "eventSyncId", False), (KERNEL, "streamId", True)],
)  # fmt: skip
def test_columns_that_other_versions_lack_may_be_absent_and_those_needed_are_named(
    table: str, column: str, needed: bool, tmp_path: Path
) -> None:
    export = small()
    for row in export.tables[table]:
        del row[column]
    if needed:
        with pytest.raises(UsageError, match=f"table {table} has no column {column}"):
            read(export, tmp_path)
    else:
        assert len(read(export, tmp_path).device_spans) == 3


def test_the_null_stream_is_stream_0(tmp_path: Path) -> None:
    export = small()
    export.call("cudaMemsetAsync_v3020", 10_000, 10_100, 40)
    export.add(FILL, start=10_200, end=10_300, bytes=4, **place(7, 40))
    assert read(export, tmp_path).find("memset")[0].stream == 0
    export.add("TARGET_INFO_CUDA_CONTEXT_INFO", nullStreamId=13)
    assert [s.stream for s in read(export, tmp_path).device_spans] == [0, 0, 2, 1]


def test_pageable_copies_say_so_and_allocations_and_loads_are_calls(tmp_path: Path) -> None:
    export = small()
    export.call("cudaMalloc_v3020", 1_010, 1_050, 5)
    export.call("cuModuleLoadData", 1_060, 1_090, 6)
    export.call("cudaMemcpyAsync_v3020", 10_000, 10_100, 40)
    export.copy(2, 10_200, 10_300, 13, 40, host=0)
    trace = read(export, tmp_path)
    pageable = [span.detail.get("pageable") for span in trace.device_spans]
    assert pageable == [None, None, None, True]
    assert [s.name for s in trace if s.kind == "call"][:2] == ["malloc", "load module"]


def test_a_wait_that_holds_up_nobody_is_none(tmp_path: Path) -> None:
    """Of a thread that enqueues nothing; and a query, which CUPTI lists although it returns at once."""
    export = small()
    export.call("cudaEventSynchronize_v3020", 5_000, 9_500, 50, thread=THREAD + 1)
    export.call("cudaEventQuery_v3020", 90_000, 91_000, 77)
    assert [s.name for s in read(export, tmp_path) if s.kind == "wait"] == ["synchronize stream 2"]


def test_a_graph_that_is_traced_as_a_whole_is_one_span(tmp_path: Path) -> None:
    export = small()
    export.call("cudaGraphLaunch_v10000", 10_000, 10_100, 40)
    kind = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
    export.add(kind, start=10_200, end=12_000, graphId=3, **place(13, 40))
    graph = read(export, tmp_path).device_spans[-1]
    assert (graph.kind, graph.stream, graph.end) == ("graph", 1, 11.1)


def with_a_graph(**columns: int) -> Export:
    """A launch on stream 13 whose second branch runs on 27, between a copy and a kernel on 13."""
    export = small()
    export.call("cudaGraphLaunch_v10000", 10_000, 10_100, 40)
    node = 5 << 32
    export.kernel("left", 10_200, 10_900, 13, 40, node)
    export.kernel("left", 11_000, 11_900, 13, 40, node + 1)
    export.kernel("right", 10_300, 12_400, 27, 40, node + 2)
    for row in export.tables[KERNEL][-3:]:
        row.update(columns)
    export.launch("after", 13_000, 13_200, 13_900, 41)
    return export


def test_nodes_of_a_graph_are_in_the_order_of_their_capture(tmp_path: Path) -> None:
    """They come after what its stream held and before what comes next."""
    trace = read(with_a_graph(), tmp_path)
    relu = trace.find("relu")[0]
    *nodes, after = trace.device_spans[3:]
    left, second, right = nodes
    assert [(s.name, s.detail["node"]) for s in nodes] == [("left", 0), ("left", 1), ("right", 2)]
    assert (left.stream, right.stream) == (1, 3)
    assert [s.name for s in trace if s.kind == "call"][-2:] == ["launch graph", "launch after"]
    for node in (left, right):
        assert happens_before(trace, relu, node)
    for node in (second, right):
        assert happens_before(trace, node, after)
    assert not happens_before(trace, left, right)


def test_nodes_whose_numbers_are_in_no_order_come_as_they_ran(tmp_path: Path) -> None:
    export = with_a_graph(graphId=5)
    first, second = export.tables[KERNEL][-4:-2]
    first["graphNodeId"], second["graphNodeId"] = second["graphNodeId"], first["graphNodeId"]
    trace = read(export, tmp_path)
    assert [s.name for s in trace.device_spans[3:6]] == ["left", "right", "left"]
    for stream in trace.streams:
        line = [span for span in trace if span.stream == stream]
        assert [s.start for s in line] == sorted(s.start for s in line)
    # Versions that say which graph it was are believed.
    assert [s.detail.get("graph") for s in trace.device_spans] == [None] * 3 + ["5"] * 3 + [None]
    assert trace.find("launch graph 5")


# ------------------------------------------------------------------ files of strangers
def test_reading_leaves_the_file_and_its_folder_as_they_were(file: Path) -> None:
    before = file.read_bytes()
    file.chmod(stat.S_IRUSR)
    Trace.from_nsys(file)
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


def test_a_report_is_told_to_be_exported_first(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nsys export --type sqlite -o report\.sqlite"):
        Trace.from_nsys(tmp_path / "report.nsys-rep")


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"SQLite format 3\0", b"SQLite format 3\0" + b"\0" * 600]
)
def test_what_is_no_database_is_refused(body: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    path.write_bytes(body)
    with pytest.raises(UsageError, match="an export of Nsight Systems"):
        Trace.from_nsys(path)


def test_a_database_of_others_or_without_gpu_work_is_refused(tmp_path: Path) -> None:
    export, lonely = Export(), Export()
    export.add("moz_places", url="https://example.org")
    with pytest.raises(UsageError, match="is a SQLite database, but not an export"):
        read(export, tmp_path)
    lonely.range("lonely", 0, 10)
    for severity, said in (
        (1, "Profiling has started."),
        (3, "CUDA tracing needs a newer driver."),
    ):
        lonely.add("DIAGNOSTIC_EVENT", timestamp=0, severity=severity, text=said)
    with pytest.raises(
        UsageError, match=r"holds no GPU work.*says: CUDA tracing needs a newer"
    ) as e:
        read(lonely, tmp_path)
    assert "Profiling has started" not in str(e.value)


@pytest.mark.parametrize(
    ("table", "name", "told"),
    [
        ("EXPORT_META_DATA", "EXPORT_SCHEMA_VERSION", "schema 2.7.1"),
        ("OTHER", "EXPORT_PRODUCT_VERSION", "before 2023.3"),
    ],
)
def test_versions_that_do_not_name_themselves_are_told(
    table: str, name: str, told: str, tmp_path: Path
) -> None:
    export = small()
    del export.tables["META_DATA_EXPORT"]
    export.add(table, name=name, value="2.7.1")
    assert told in str(read(export, tmp_path).about["profiler"])


def test_views_triggers_and_virtual_tables_are_not_looked_at(tmp_path: Path) -> None:
    path = small().write(tmp_path / "x.sqlite")
    connection = sqlite3.connect(path)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
    connection.execute(f"ALTER TABLE {KERNEL} RENAME TO kept")
    connection.execute(f"CREATE VIEW {KERNEL} AS {endless} SELECT i AS start FROM n")
    connection.execute(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start, end AS (zeroblob(1000000000)), bytes)"
    )
    connection.commit()
    connection.close()
    assert {span.kind for span in Trace.from_nsys(path).device_spans} == {"h2d"}


@pytest.mark.parametrize(
    ("table", "column", "value", "message"),
    [
        (KERNEL, "start", "soon", "start is 'soon'"),
        (KERNEL, "end", 1, "it ends before it starts, such as 'relu'"),
        (KERNEL, "streamId", None, "streamId is None"),
        (KERNEL, "deviceId", 1.5, "deviceId is 1.5"),
        (COPY, "bytes", b"x", "bytes is b'x'"),
        (RUNTIME, "end", -5, "it ends before it starts, such as 'cudaMemcpyAsync_v3020'"),
        ("NVTX_EVENTS", "end", "x", "end is 'x'"),
        (KERNEL, "end", 2**62, "it lasts more than a year, such as 'relu'"),
    ],
)
def test_a_damaged_row_is_left_out_and_named(
    table: str, column: str, value: object, message: str, tmp_path: Path
) -> None:
    export = small()
    row = next(row for row in export.tables[table] if row[column] is not None)
    row[column] = value
    (said,) = cast("list[str]", read(export, tmp_path).about["damage"])
    assert said.startswith("1 record left out: ")
    assert message in said


NUMBERS = st.none() | st.integers(-(2**62), 2**62) | st.floats()
VALUES = NUMBERS | st.text(max_size=9) | st.binary(max_size=9)


@given(data=st.data())
def test_any_value_anywhere_is_read_or_refused(data: st.DataObject, tmp_path: Path) -> None:
    export = small()
    table = data.draw(st.sampled_from(sorted(export.tables)))
    row = data.draw(st.sampled_from(export.tables[table]))
    row[data.draw(st.sampled_from(sorted(row)))] = data.draw(VALUES)
    try:
        trace = read(export, tmp_path)
    except UsageError:
        return
    hold(trace)
    assert trace.table()
    trace.save(tmp_path / "t.json")
    assert Trace.load(tmp_path / "t.json") == trace


@given(place=st.integers(0, 10**6), junk=st.binary(min_size=1, max_size=40))
def test_damaged_bytes_are_read_or_refused(place: int, junk: bytes, tmp_path: Path) -> None:
    path = tmp_path / "damaged.sqlite"
    path.unlink(missing_ok=True)
    small().write(path)
    body = bytearray(path.read_bytes())
    start = place % len(body)
    body[start : start + len(junk)] = junk
    path.write_bytes(body)
    try:
        trace = Trace.from_nsys(path)
    except UsageError:
        return
    assert trace.table()
