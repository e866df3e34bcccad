"""A trace in the order of Nsight Systems' window."""

from __future__ import annotations

from asyncgpu_tutor import Trace
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.traces.pictures.nsight_window import nsight_window, window_rows
from asyncgpu_tutor.types import Span


def test_all_that_was_done_is_in_one_row_and_each_once(sim: Device) -> None:
    trace = Trace.load_recording("02_streams_and_events")
    rows = window_rows(trace)
    shown = [s.id for row in rows if row.part in {"kernels", "memory"} for s in row.spans]
    at_once = [s.id for row in rows if row.part == "all" for s in row.spans]

    assert sorted(shown) == sorted(at_once) == [span.id for span in trace.device_spans]
    (api,) = [row for row in rows if row.label == "CUDA API"]
    assert list(api.spans) == [span for span in trace if span.kind in ("call", "wait")]


def test_rows_are_numbered_as_one_reads_and_empty_ones_are_left_out() -> None:
    spans = [
        Span(0, "range", "mine", 0, 9, "cuda:0", detail={"domain": "ours"}),
        Span(1, "call", "enqueue memset", 1, 2, "cuda:0"),
        Span(2, "memset", "memset", 3, 4, "cuda:0", 1, after=(1,)),
    ]
    rows = {row.label: row for row in window_rows(Trace(spans))}

    assert "Kernels" not in rows
    numbers = [rows[name].number for name in ("ours", "CUDA API", "[All Streams]", "Memory")]
    assert numbers == [1, 2, 3, 5]


def test_ranges_that_overlap_are_in_rows_of_their_own() -> None:
    trace = Trace.from_nsys(Trace.recorded_file("07_async_mlp.sqlite"), within="record")
    rows = [row for row in window_rows(trace) if row.part == "ranges"]

    assert sum(len(row.spans) for row in rows) == sum(span.kind == "range" for span in trace)
    assert [row.label for row in rows if row.label] == ["asyncgpu_tutor", "Start & End"]
    start = next(i for i, row in enumerate(rows) if row.label == "Start & End")
    for i, row in enumerate(rows):
        on_a_stack = [s.name in {f"batch {n}" for n in range(4)} for s in row.spans]
        assert on_a_stack == [i < start] * len(row.spans)
        ends = [span.end for span in row.spans]
        assert all(end <= span.start for end, span in zip(ends, row.spans[1:], strict=False))


def test_a_graph_that_is_traced_as_a_whole_has_a_row_of_its_own() -> None:
    spans = [
        Span(1, "graph", "graph 4", 0, 5, "cuda:0", 1),
        Span(2, "h2d", "h2d", 5, 6, "cuda:0", 1),
    ]
    rows = {row.label: row.spans for row in window_rows(Trace(spans, "Nsight Systems", "GPU"))}

    assert rows["Graphs"] == (spans[0],)
    assert rows["Memory"] == (spans[1],)


def test_streams_of_a_report_have_the_numbers_that_the_window_shows() -> None:
    trace = Trace.from_nsys(Trace.recorded_file("exhibit_C.sqlite"), within="exhibit C")
    labels = [row.label for row in window_rows(trace) if "tream" in row.label]

    assert labels == ["[All Streams]", "Default stream", "Stream 13", "Stream 14"]


def test_it_is_drawn_with_a_name_for_each_row() -> None:
    trace = Trace.from_nsys(Trace.recorded_file("exhibit_C.sqlite"), within="exhibit C")
    picture = nsight_window(trace, title="Two chunks of four")
    (panel,) = picture.view()["panels"]
    rows = window_rows(trace)
    told = [words for *_, words in picture.view()["legend"]]
    depths, indents = [row.depth for row in rows], [x for _, x, _, _ in panel["labels"]]

    assert panel["title"] == "Two chunks of four"
    assert {"copy H2D", "kernel", "copy D2H", "host call", "range"} <= set(told)
    labels = [text.partition("  (")[0] for *_, text in panel["labels"]]
    assert labels == [row.label for row in rows]
    assert len(panel["bars"]) == sum(len(row.spans) for row in rows)
    assert [indents.index(x) for x in indents] == [depths.index(depth) for depth in depths]
