"""A trace as text."""

from dataclasses import replace

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.traces.spans import Span
from asyncgpu_tutor.traces.spans.notebook_output import cut_output
from asyncgpu_tutor.traces.spans.table import render
from asyncgpu_tutor.traces.trace import Trace

SPANS = [
    Span(0, "call", "launch a", 0, 2, "sim:0", op=1, label="batch 0"),
    Span(1, "h2d", "x", 2, 6, "sim:0", 1, op=1, label="batch 0", after=(0,)),
    Span(2, "kernel", "sgemm", 6, 12, "sim:0", 1, op=1, label="batch 0", after=(1,)),
    Span(3, "kernel", "relu", 8, 10, "sim:0", 2, op=2),
    Span(4, "d2h", "y", 12, 16, "sim:0", 1, after=(2,)),
]


def trace(spans: list[Span] = SPANS, clock: str = "simulated") -> Trace:
    return Trace(list(spans), clock, "NVIDIA H200")


def told(spans: list[Span], width: int) -> str:
    return render(spans, device="NVIDIA H200", clock="simulated", width=width)


def section(text: str, title: str) -> list[str]:
    (found,) = [part for part in text.split("\n\n") if part.startswith(title)]
    return found.split("\n")


def test_the_whole_text() -> None:
    assert told(SPANS, 16) == "\n".join([
        "Timeline of NVIDIA H200 (simulated clock: modelled, not measured)",
        "5 spans: 4 on the device, in 2 streams; 1 on the host. Times in µs.",
        "",
        "start  duration  lane      kind       name      operation",
        "-----  --------  --------  ---------  --------  ----------",
        " 0.00      2.00  host      host call  launch a  #1 batch 0",
        " 2.00      4.00  stream 1  copy H2D   x         #1 batch 0",
        " 6.00      6.00  stream 1  kernel     sgemm     #1 batch 0",
        " 8.00      2.00  stream 2  kernel     relu      #2",
        "12.00      4.00  stream 1  copy D2H   y",
        "",
        "Lanes from 0.00 to 16.00, one column = 1.00:",
        "host     |cc..............|",
        "stream 1 |..HHHHKKKKKKDDDD|",
        "stream 2 |........KK......|",
        "copy H2D |..HHHH..........|",
        "copy D2H |............DDDD|",
        "compute  |......KK22KK....|",
        "Key: H = copy H2D, K = kernel, D = copy D2H, c = host call, 2 = so many at once, . = idle",
        "",
        "Metrics (simulated clock: modelled, not measured):",
        "  makespan       16.00 (device alone 14.00)",
        "  device busy    14.00, idle 0.00",
        "  overlap        2.00, 14% of the busy time",
        "  at once        at most 2 streams",
        "  stream 1       busy 14.00, no gap",
        "  stream 2       busy 2.00, no gap",
        "  copy H2D       busy 4.00",
        "  copy D2H       busy 4.00",
        "  compute        busy 6.00",
        "  host           host call 2.00",
        "  critical path  16.00 = copy H2D 25%, kernel 38%, copy D2H 25%, host call 12%",
        "    host: launch a",
        "    stream 1: x, sgemm, y",
    ])  # fmt: skip


def test_the_clock_is_always_named() -> None:
    assert "simulated" in trace().table()
    assert "simulated" in trace([]).table()
    assert "Nothing was recorded. A trace is filled when its block" in Trace().table()
    real = trace(clock="CUDA events").table()
    assert "simulated" not in real
    assert "CUDA events, measured" in real


def test_a_span_shorter_than_a_column_is_seen() -> None:
    text = told([Span(0, "memset", "zeros", 5, 5, "sim:0", 0)], 8)
    assert "stream 0 |M.......|" in section(text, "Lanes")
    assert "k" in Trace([Span(0, "kernel", "k", 0.0, 5e-324, "sim:0", 1, None, "k")]).table()
    short = Span(3, "d2h", "y", 8.1, 8.2, "sim:0", 3)
    lanes = section(told([*SPANS[:3], short, SPANS[4]], 16), "Lanes")
    assert "stream 2 |........D.......|" in lanes  # the second that is used


def test_streams_are_numbered_by_first_use_and_their_own_numbers_are_told() -> None:
    rows = (("b", 4, 8, 12), ("a", 0, 4, 7), ("n", 8, 9, 0))
    spans = [Span(i, "kernel", n, a, b, "sim:0", s) for i, (n, a, b, s) in enumerate(rows)]
    text = told(spans, 9)
    lanes = section(text, "Lanes")
    # CUDA's null stream keeps its number.
    assert [line[7] for line in lanes if line.startswith("stream")] == ["0", "1", "2"]
    assert "stream 1 |....KKKK.|" in lanes
    assert "by the device's own numbers 0 is 0, 1 is 12, 2 is 7." in text
    assert "own numbers" not in trace([Span(0, "kernel", "a", 0, 1, "sim:0", 1)]).table()


@pytest.mark.parametrize("later", [0, 500])
def test_lanes_show_when_there_was_no_room_yet_whenever_a_trace_begins(later: int) -> None:
    waited = Span(5, "kernel", "wide", 14, 16, "sim:0", 2, detail={"waited_for_room": 3.0})
    moved = [replace(s, start=s.start + later, end=s.end + later) for s in (*SPANS, waited)]
    lanes = section(told(moved, 16), "Lanes")
    assert "stream 2 |........KK.:::KK|" in lanes
    assert ": = no room yet" in " ".join(lanes)


def test_what_is_left_out_is_counted() -> None:
    many = [Span(i, "kernel", "k", i, i + 1, "sim:0", 1) for i in range(203)]
    assert section(trace(many).table(), " start")[-1] == "... and 3 more spans"
    assert "more span" not in trace(many[:200]).table()
    chain = [Span(i, "kernel", f"k{i}", i, i + 1, "sim:0", 1) for i in range(30)]
    first, left_out, last = section(trace(chain).table(), "Metrics")[-3:]  # the critical path
    assert first == "    stream 1: k0, k1, k2, k3, k4, k5"
    assert left_out == "    ...: 18 more steps"
    assert last == "    stream 1: k24, k25, k26, k27, k28, k29"


def test_steps_of_the_critical_path_say_whose_stream_it_is() -> None:
    one = Span(0, "kernel", "k", 0, 5, "sim:0", 1)
    spans = [one, Span(1, "kernel", "j", 5, 9, "sim:1", 1, after=(0,))]
    text = trace(spans).table()
    assert "    sim:0 stream 1: k" in text
    assert "    sim:1 stream 1: j" in text
    assert "in 2 streams" in text
    assert "in 2 streams" in repr(trace(spans))
    assert "On sim:1 stream 1 j waits for k of sim:0 stream 1" in trace(spans).plot().words


def test_a_name_of_several_lines_or_with_orders_for_a_terminal_is_one_line() -> None:
    text = trace([replace(SPANS[-1], name="two\nlines\x1b[2J", after=())]).table()
    assert "two lines [2J" in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("width", "cut"), [(10, "abcdefghij"), (9, "abcd\u2026ghij"), (4, "ab\u2026j"), (1, "\u2026")]
)
def test_a_name_that_is_too_long_keeps_its_beginning_and_its_end(width: int, cut: str) -> None:
    assert cut_output("abcdefghij", width) == cut


def test_a_range_does_not_hide_what_it_encloses() -> None:
    spans = [*SPANS, Span(5, "range", "everything", 0, 16, "sim:0")]
    assert "host     |cc..............|" in section(told(spans, 16), "Lanes")


@pytest.mark.parametrize("label", ["", "a name of many words, one after the other, for a page"])
def test_names_of_any_length_fit_a_page(label: str) -> None:
    name = "sm80_xmma_gemm_" + 20 * "f16f16_" + "execute_kernel_trt"
    names = (name if span.kind == "kernel" else span.name for span in SPANS)
    recorded = trace([replace(s, name=n, label=label) for s, n in zip(SPANS, names, strict=True)])
    texts = [recorded.table(), agt.analyse(recorded).table()]
    assert max(len(line) for text in texts for line in text.splitlines()) <= 100
    rows = [line for line in recorded.table().splitlines() if "  kernel  " in line]
    assert all("  sm80_xmma" in row and "kernel_trt" in row for row in rows)
    assert name not in recorded.plot().words
    shown = recorded.sql("select name from spans where kind = 'kernel'")._repr_html_()
    assert f'title="{name}"' in shown
    assert "kernel_trt</td>" in shown
