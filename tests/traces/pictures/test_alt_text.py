"""Pictures in words."""

from __future__ import annotations

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.simulated import Machine, SimDevice
from asyncgpu_tutor.traces.pictures import alt_text
from asyncgpu_tutor.traces.spans import Span
from asyncgpu_tutor.traces.trace import Trace


def kernel(number: int, stream: int, start: float, end: float) -> Span:
    return Span(number, "kernel", "k", start, end, "sim:0", stream)


def test_nothing() -> None:
    assert alt_text(Trace()) == (
        "Timeline (simulated clock: modelled, not measured): nothing was recorded."
    )


def test_one_span() -> None:
    assert alt_text(Trace([kernel(0, 1, 0, 5)], "CUDA events", "NVIDIA H200")) == (
        "Timeline of NVIDIA H200 (clock: CUDA events, measured): "
        "1 kernel in 1 stream, 5.0 µs from start to end."
    )


def test_overlap_is_told(mlp: Trace) -> None:
    assert alt_text(mlp) == (
        "Timeline of NVIDIA H200 (simulated clock: modelled, not measured): "
        "3 host-to-device transfers, 4 kernels, 2 device-to-host transfers, 9 host calls "
        "and 1 host wait in 3 streams, 76.0 µs from start to end. "
        "Streams overlap for 28.0 µs, 40% of the time in which the device is busy, "
        "with at most 2 at once."
    )


def test_that_nothing_overlaps_is_told() -> None:
    text = alt_text(Trace([kernel(0, 1, 0, 5), kernel(1, 2, 5, 9)]))
    assert text.endswith("The streams do not overlap.")


def test_long_times_are_in_ms() -> None:
    assert "12.50 ms" in alt_text(Trace([kernel(0, 1, 0, 12_500)]))


def test_the_device_is_named_and_what_it_says_of_times_is_left_to_the_clock() -> None:
    with agt.using("sim") as device, agt.record() as trace:
        agt.zeros(4).sync()

    assert "times are" in device.description
    assert alt_text(trace).startswith("Timeline of simulated H200 (simulated clock: modelled, not")
    assert "times are" not in alt_text(trace)


def test_a_device_whose_times_mean_nothing_still_says_so() -> None:
    with agt.using(SimDevice(machine=Machine(), adversary=1)), agt.record() as trace:
        agt.zeros(4).sync()

    assert "times mean nothing" in alt_text(trace)
