"""Recordings: the sources of their times, and odd places: inside of each other, or of a submission."""

import asyncio
from itertools import pairwise
from typing import cast
from unittest.mock import Mock

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.errors import HostBufferError, NestedSyncError, UsageError
from asyncgpu_tutor.run.recording import TimeSource, under_way
from tests.tools import tool

_programs = tool("course_programs")
RUNS, record_run, trace_of = _programs.RUNS, _programs.record_run, _programs.trace_of
same_work = _programs.same_work
NAMES = ["02_streams_and_events", "07_async_mlp"]


@pytest.fixture
def cupti(cuda: Device) -> Device:
    pytest.importorskip("cupti")
    return cuda


def test_an_unknown_source_is_refused(device: Device) -> None:
    with pytest.raises(UsageError, match="'auto', 'cupti', 'all', 'events'"):
        agt.record(cast(TimeSource, "nvml")).__enter__()


def test_a_simulated_trace_needs_no_words_about_its_source(sim: Device) -> None:
    with agt.record() as trace:
        agt.zeros(4).sync()
    assert (trace.clock, trace.about) == ("simulated", {})


@pytest.mark.gpu
def test_events_say_that_they_are_and_cupti_how_clocks_were_aligned(cupti: Device) -> None:
    with agt.record("events") as trace:
        agt.zeros(4).sync()
    assert trace.clock == trace.about["source"] == "CUDA events"
    assert "CUDA events" in trace.device
    with agt.record("cupti") as trace:
        agt.zeros(4).sync()
    assert trace.clock == "CUPTI"
    assert "CUPTI" in trace.device
    uncertainty = trace.about["alignment_us"]
    assert isinstance(uncertainty, float)
    assert 0 < uncertainty < 50


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_both_sources_see_the_same_work_in_the_same_order(cupti: Device, name: str) -> None:
    traces = [trace_of(name, source) for source in ("cupti", "events")]
    pairs, missing, same_order = same_work(*traces)
    assert missing == [[], []]
    assert same_order
    assert "without_record" not in traces[0].about
    for one, other in pairs:
        assert [one.stream, one.label] == [other.stream, other.label]


@pytest.mark.gpu
def test_cupti_gives_each_stream_an_order_and_no_work_before_its_call(cupti: Device) -> None:
    trace = trace_of("07_async_mlp", "cupti")
    by_id = {span.id: span for span in trace}
    for number in trace.streams:
        line = [span for span in trace if span.stream == number]
        for early, late in pairwise(line):
            assert early.end <= late.start
    for span in trace.device_spans:
        assert span.duration > 0
        calls = [by_id[i] for i in span.after if by_id[i].kind == "call"]
        assert all(call.start <= span.start for call in calls)


@pytest.mark.gpu
def test_cupti_is_off_when_the_recording_is_over_and_can_be_used_again(cupti: Device) -> None:
    run = RUNS["07_async_mlp"]
    first, second = (asyncio.run(record_run(run, "cupti")) for _ in range(2))
    assert len(first.device_spans) == len(second.device_spans) > 0


@pytest.mark.gpu
def test_work_of_cupy_is_recorded_where_all_is_asked_for(cupti: Device) -> None:
    import cupy as cp

    x, stream = cp.ones(1 << 16, cp.float32), cp.cuda.Stream(non_blocking=True)
    cp.cuda.runtime.deviceSynchronize()
    with agt.record("all") as trace:
        with stream:
            y = x * 3
        assert agt.zeros(4).to_host().sync_on(stream).tolist() == [0.0] * 4
    with agt.record("cupti") as ours:
        with stream:
            y += x
        agt.zeros(4).sync()
    (theirs,) = [span for span in trace.device_spans if span.detail.get("foreign")]
    assert "multiply" in theirs.name
    assert theirs.duration > 0
    asked = [span for span in trace if span.kind == "call" and span.detail.get("foreign")]
    assert theirs.after[0] in {span.id for span in asked}
    assert {span.stream for span in trace.device_spans} == {theirs.stream}, "one stream, one lane"
    assert [span.kind for span in ours.device_spans] == ["memset"]


@pytest.mark.gpu
def test_cupy_waits_for_our_work_and_our_pinned_memory_is_not_its(cupti: Device) -> None:
    import cupy as cp

    with agt.record("all") as trace:
        agt.zeros(1 << 20).async_on(agt.create_stream())
        agt.pin(np.zeros(37_000_003, np.uint8))  # of a size that no pool has
        cp.cuda.runtime.deviceSynchronize()
    assert [span.name for span in trace if span.detail.get("foreign")] == ["synchronize device"]


@pytest.mark.gpu
def test_all_cannot_begin_inside_of_a_recording_of_our_own_work(cupti: Device) -> None:
    with agt.record("cupti"), pytest.raises(UsageError, match="under way"):  # noqa: SIM117
        with agt.record("all"):
            pass


@pytest.mark.gpu
def test_cupti_is_not_used_beside_another_client(cupti: Device) -> None:
    from cupti import cupti as theirs

    other = theirs.subscribe(lambda *_: None, None)
    try:
        with pytest.raises(UsageError, match="another client"), agt.record("cupti"):
            pass
        with agt.record() as trace:
            agt.zeros(4).sync()
    finally:
        theirs.unsubscribe(other)
    assert trace.clock == "CUDA events"
    assert "another client" in str(trace.about["instead_of_cupti"])


@pytest.mark.gpu
def test_cupti_is_not_used_under_a_profiler(cupti: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NSYS_PROFILING_SESSION_ID", "1")
    with agt.record() as trace:
        agt.zeros(4).sync()
    assert trace.clock == "CUDA events"
    assert "another profiler" in str(trace.about["instead_of_cupti"])


@pytest.mark.gpu
def test_a_recording_inside_another_has_its_source(cuda: Device) -> None:
    with agt.record("events"):
        with pytest.raises(UsageError, match="under way"), agt.record("cupti"):
            pass
        with agt.record() as inner:
            agt.zeros(4).sync()
    assert inner.clock == "CUDA events"


# ---------------------------------------------------------------------- in odd places
def test_a_recording_ends_even_where_its_devices_complain(sim: Device) -> None:
    def change_under_copy(then: Exception | None = None) -> None:
        host = agt.pin(np.ones(1000, np.float32))
        agt.h2d(host).async_on(agt.create_stream())
        host[0] = 5.0
        if then is not None:
            raise then

    with pytest.raises(HostBufferError), agt.record() as first:
        change_under_copy()
    assert [span.name for span in first.device_spans] == ["h2d"]
    with pytest.raises(LookupError) as caught, agt.record():
        change_under_copy(then=LookupError("in the block"))
    assert "leaving record(): the pinned host array" in caught.value.__notes__[0]
    assert sim.log is None  # nobody records any more


def test_a_recording_that_cannot_begin_leaves_nothing_behind(
    sim: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    with agt.using("sim:41"):
        last = agt.current_device()
    monkeypatch.setattr(last, "start_log", Mock(side_effect=LookupError))
    with pytest.raises(LookupError), agt.using(sim), agt.record():
        pass
    assert (sim.log, under_way()) == (None, None)


def test_complaints_come_in_the_order_of_the_streams(sim: Device) -> None:
    arrays = [op.sync() for op in (agt.zeros(8), agt.ones(8), agt.full(8, 2.0))]
    hosts, streams = [agt.pinned(8) for _ in arrays], [agt.create_stream() for _ in arrays]
    for x, host, stream in zip(arrays, hosts, streams, strict=True):
        agt.d2h(x, out=host).async_on(stream)
        np.ndarray.view(host, np.ndarray)[0] = 5.0
    for name in ("'zeros'", "'ones'", "'full'"):
        with pytest.raises(HostBufferError, match=name), agt.record():
            pass


def test_no_recording_inside_of_a_submission(device: Device) -> None:
    def nested(n: int) -> agt.DeviceOp[int]:
        with agt.record():
            return agt.value(n)

    with pytest.raises(NestedSyncError, match=r"record\(\) was called while operation"):
        agt.value(1).and_then(nested).sync()


def test_a_device_that_is_first_used_in_a_recording_is_recorded() -> None:
    with agt.using("sim:0"), agt.record() as outer, agt.record() as inner, agt.using("sim:41"):
        agt.ones((3,)).sync()
    assert [(span.device, span.name) for span in inner.device_spans] == [("sim:41", "fill")]
    assert len(outer.device_spans) == 1


async def test_recordings_that_cross_see_what_ran_while_they_were_open(sim: Device) -> None:
    async def one(runs: int) -> int:
        with agt.record() as trace:
            for _ in range(runs):
                await agt.ones((8,)).to_host()
        return len(trace.device_spans)

    short, long = await asyncio.gather(one(2), one(5))
    assert short >= 4
    assert long == 2 * (1 + 5)  # it has missed the other's first operation, which came before it
    assert sim.log is None
