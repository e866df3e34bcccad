"""Pictures in words."""

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.traces.pictures import alt_text
from asyncgpu_tutor.traces.spans import Span
from asyncgpu_tutor.traces.trace import Trace


def kernel(number: int, stream: int, start: float, end: float) -> Span:
    return Span(number, "kernel", "k", start, end, "sim:0", stream)


@pytest.mark.parametrize(
    ("trace", "words"),
    [
        (Trace(), "Timeline (simulated clock: modelled, not measured): nothing was recorded."),
        (Trace([kernel(0, 1, 0, 5)], "CUDA events", "NVIDIA H200"),
         "Timeline of NVIDIA H200 (clock: CUDA events, measured): in 5.0 µs the device is busy for 5.0 µs"),
        (Trace([kernel(0, 1, 0, 5)]), "k is all that runs. The device never pauses between its first work"),
        (Trace([Span(0, "work", "job", 0, 5, "sim:0")]), "of the host, in which the device did nothing."),
        (Trace([kernel(0, 1, 0, 5), kernel(1, 2, 5, 9)]), "nothing on its 2 streams runs at the same time."),
        (Trace([kernel(0, 1, 0, 5), kernel(1, 1, 5, 9)]), "2 pieces of work run one after the other on one"),
        (Trace([kernel(0, 1, 0, 12_500)]), "12.50 ms"),
        (Trace([kernel(0, 1, 0, 5)]).with_lane("call", [(k, k + 1, f"no {k}") for k in range(9)]),
         "its last. Lane call, in µs: no 0 from 0.0 to 1.0; no 1 from 1.0 to 2.0; no 2"),
        (Trace([kernel(0, 1, 0, 5)]).with_lane("call", [(k, k + 1, f"no {k}") for k in range(9)]),
         "no 7 from 7.0 to 8.0; and 1 more piece."),
    ],
)  # fmt: skip
def test_it_is_told_in_words(trace: Trace, words: str) -> None:
    assert words in alt_text(trace, trace.metrics())


def test_what_runs_together_what_waits_and_the_longest_pause_are_told() -> None:
    spans = [
        kernel(0, 7, 0, 10),
        Span(1, "h2d", "x", 4, 8, "sim:0", 9),
        Span(2, "kernel", "late", 10.5, 12, "sim:0", 9, after=(0, 1)),
        Span(3, "d2h", "y", 15, 16, "sim:0", 7),
    ]
    assert alt_text(trace := Trace(spans), trace.metrics()).partition("): ")[2] == (
        "in 16.0 µs the device is busy for 12.5 µs, and k and x run at the same time: streams overlap for "
        "4.0 µs, 32% of that, at most 2 at once. On stream 2 late waits for k of stream 1; the longest pause "
        "of the device, 3.0 µs from 12.0 µs on, is before y."
    )


def test_the_device_is_named_and_what_it_says_of_times_is_left_to_the_clock() -> None:
    with agt.using("sim") as device, agt.record() as trace:
        agt.zeros(4).sync()
    assert "times are" in device.description
    assert alt_text(trace, trace.metrics()).startswith(
        "Timeline of simulated H200 (simulated clock: modelled, not"
    )
    assert "times are" not in alt_text(trace, trace.metrics())
