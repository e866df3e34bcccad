"""The file for the Perfetto UI, read back with Perfetto's own schema; and that for Chrome."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackDescriptor, TrackEvent

from asyncgpu_tutor import Trace
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.types import Span
from tests.tools import tool

_programs = tool("course_programs")
trace_of = _programs.trace_of

SLICES = (TrackEvent.TYPE_SLICE_BEGIN, TrackEvent.TYPE_SLICE_END)


@pytest.fixture
def trace(sim: Device) -> Trace:
    return trace_of("02_streams_and_events")


def parse(trace: Trace, tmp_path: Path) -> Any:
    path = tmp_path / "trace.pftrace"
    trace.to_perfetto(path)
    proto = perfetto_trace_pb2.Trace()
    proto.ParseFromString(path.read_bytes())
    return proto


def tracks(proto: Any) -> dict[int, Any]:
    return {
        p.track_descriptor.uuid: p.track_descriptor
        for p in proto.packet
        if p.HasField("track_descriptor") and not p.track_descriptor.HasField("counter")
    }


def slices(proto: Any) -> dict[int, list[Any]]:
    """The events of each track in file order."""
    found: dict[int, list[Any]] = {}
    for packet in proto.packet:
        if packet.HasField("track_event") and packet.track_event.type in SLICES:
            found.setdefault(packet.track_event.track_uuid, []).append(packet)
    return found


def test_nothing_in_it_is_unknown_to_the_schema(trace: Trace, tmp_path: Path) -> None:
    from google.protobuf.unknown_fields import UnknownFieldSet

    def check(message: Any) -> None:
        assert len(UnknownFieldSet(message)) == 0
        for field, value in message.ListFields():
            if field.type == field.TYPE_MESSAGE:
                for part in value if field.is_repeated else [value]:
                    check(part)

    check(parse(trace, tmp_path))


def test_each_lane_is_a_track_with_its_name_and_order(trace: Trace, tmp_path: Path) -> None:
    proto = parse(trace, tmp_path)
    found = tracks(proto)
    parent, *rest = found.values()
    assert parent.name == "simulated H200 (modelled)"
    # Under a process, Perfetto sorts lanes by name.
    assert not parent.HasField("process")
    assert parent.child_ordering == TrackDescriptor.EXPLICIT
    streams = [t.name for t in rest if "stream" in t.name]
    assert streams == [f"sim:0 stream {number}" for number in trace.streams]
    assert {t.parent_uuid for t in rest} == {parent.uuid}
    assert [t.sibling_order_rank for t in rest] == list(range(len(rest)))
    assert [t.name for t in rest[: -len(streams)]] == ["host"]


def test_ranges_are_on_tracks_above_the_calls_of_the_host(tmp_path: Path) -> None:
    host = [
        Span(1, "range", "a", 0, 9, ""),
        Span(2, "range", "across", 1, 12, ""),
        Span(3, "range", "nested", 2, 8, ""),
        Span(4, "call", "c", 2, 3, ""),
    ]
    named = {t.uuid: t.name for t in tracks(parse(Trace(host), tmp_path)).values()}
    assert list(named.values())[1:] == ["ranges, row 1", "ranges, row 2", "host"]
    begun = slices(parse(Trace(host), tmp_path))
    names = {named[uuid]: [p.track_event.name for p in found] for uuid, found in begun.items()}
    assert names == {
        "ranges, row 1": ["a", "nested", "", ""],
        "ranges, row 2": ["across", ""],
        "host": ["c", ""],
    }


def ended(packets: Iterable[Any]) -> Iterator[tuple[Any, Any, int]]:
    """Begins and ends of one track, paired as Perfetto does it, and how many were open around each."""
    stack: list[Any] = []
    for packet in packets:
        if packet.track_event.type == TrackEvent.TYPE_SLICE_BEGIN:
            stack.append(packet)
        else:
            begin = stack.pop()
            yield begin, packet, len(stack)
    assert not stack


def test_each_span_begins_and_ends_on_its_track_to_the_ns(trace: Trace, tmp_path: Path) -> None:
    proto = parse(trace, tmp_path)
    names = {uuid: track.name for uuid, track in tracks(proto).items()}
    seen: Counter[tuple[str, int, int]] = Counter()
    for uuid, packets in slices(proto).items():
        for begin, end, around in ended(packets):
            assert not around, f"spans overlap on {names[uuid]}"
            seen[begin.track_event.name, begin.timestamp, end.timestamp] += 1
    expected = Counter((s.name, round(s.start * 1000), round(s.end * 1000)) for s in trace)
    assert seen == expected


@pytest.mark.parametrize(
    "host",
    [
        [Span(1, "range", "inner", 0, 5, ""), Span(2, "range", "outer", 0, 10, "")],
        [Span(1, "work", "nothing", 5, 5, ""), Span(2, "work", "next", 5, 9, "")],
    ],
)
def test_each_end_is_that_of_its_own_span_where_two_begin_at_once(
    host: list[Span], tmp_path: Path
) -> None:
    found: dict[str, tuple[int, int]] = {}
    for packets in slices(parse(Trace(host), tmp_path)).values():
        for begin, end, _ in ended(packets):
            found[begin.track_event.name] = begin.timestamp, end.timestamp
    assert found == {s.name: (s.start * 1000, s.end * 1000) for s in host}


def test_times_never_go_back(trace: Trace, tmp_path: Path) -> None:
    times = [p.timestamp for p in parse(trace, tmp_path).packet if p.HasField("track_event")]
    assert times == sorted(times)


def test_arrows_go_from_calls_to_work_and_between_streams(trace: Trace, tmp_path: Path) -> None:
    proto = parse(trace, tmp_path)
    ids: dict[str, dict[int, int]] = {"flow_ids": {}, "terminating_flow_ids": {}}
    for packet in proto.packet:
        event = packet.track_event
        for field, flows in ids.items():
            for flow in getattr(event, field):
                (number,) = (a.uint_value for a in event.debug_annotations if a.name == "id")
                flows[flow] = number
    assert ids["flow_ids"].keys() == ids["terminating_flow_ids"].keys()
    found = {(ids["flow_ids"][f], ids["terminating_flow_ids"][f]) for f in ids["flow_ids"]}
    by_id = {span.id: span for span in trace}
    assert found == {
        (i, span.id)
        for span in trace
        for i in span.after
        if (by_id[i].device, by_id[i].stream) != (span.device, span.stream)
        and by_id[i].start <= span.start
    }
    assert {by_id[i].kind for i, _ in found} == {"call", "d2h"}


def test_spans_of_a_stream_that_overlap_by_an_imprecise_clock_all_show(tmp_path: Path) -> None:
    pair = [Span(1, "kernel", "a", 0, 3, "cuda:0", 1), Span(2, "kernel", "b", 2, 4, "cuda:0", 1)]
    proto = parse(Trace(pair, "CUDA events", "GPU"), tmp_path)
    names = [t.name for t in tracks(proto).values() if "stream" in t.name]
    assert names == ["cuda:0 stream 1, row 1", "cuda:0 stream 1, row 2"]


def test_an_empty_trace_and_odd_names_are_written(tmp_path: Path) -> None:
    # The root of all tracks, and what the trace is.
    assert len(parse(Trace(), tmp_path).packet) == 2
    odd = Span(2**62, "kernel", "\ud800 ü", 0.0, 0.0, "cuda:0", 1, detail={"n": -1, "x": [1.5]})
    proto = parse(Trace([odd]), tmp_path)
    (begin, _) = (p.track_event for p in slices(proto)[2])
    assert begin.name == "? ü"
    assert {a.name: a.string_value for a in begin.debug_annotations if a.string_value}[
        "x"
    ] == "[1.5]"


def test_the_file_for_chrome_has_the_names_that_tools_for_pytorch_look_for(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    Trace.load_recording("07_async_mlp").to_perfetto(path)
    spans = [e for e in json.loads(path.read_text("utf-8"))["traceEvents"] if e["ph"] == "X"]
    calls = {e["args"]["id"]: e["name"] for e in spans if e["cat"] == "cuda_runtime"}
    asked = {
        (e["name"], calls.get(e["args"]["correlation"]))
        for e in spans
        if e["cat"] != "cuda_runtime"
    }
    copies = {("Memcpy HtoD", "cudaMemcpyAsync"), ("Memcpy DtoH", "cudaMemcpyAsync")}
    kernels = {(name, "cudaLaunchKernel") for name in ("sgemm_naive", "matvec_naive", "relu")}
    assert asked >= copies | kernels | {("Memset", "cudaMemsetAsync")}


def test_the_file_for_chrome_has_the_same(trace: Trace, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    trace.to_perfetto(path)
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    spans = [e for e in events if e["ph"] == "X"]
    assert Counter((e["args"]["name"], e["ts"], e["dur"]) for e in spans) == Counter(
        (s.name, s.start, s.duration) for s in trace
    )
    kernels = [e for e in spans if e["cat"] == "kernel"]
    calls = {e["args"]["correlation"] for e in spans if e["cat"] == "cuda_runtime"}
    assert kernels
    assert all(e["args"]["stream"] > 0 and e["args"]["correlation"] in calls for e in kernels)
    threads = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert {e["tid"] for e in spans} == threads.keys()
    starts = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    assert starts.keys() == ends.keys()
    assert starts
    assert all(starts[i]["ts"] <= ends[i]["ts"] for i in starts)


def test_counters_say_how_much_is_queued_and_at_work(tmp_path: Path) -> None:
    spans = [
        Span(1, "call", "launch a", 0, 1, "cuda:0"),
        Span(2, "kernel", "a", 2, 5, "cuda:0", 1, after=(1,)),
        Span(3, "kernel", "b", 4, 6, "cuda:0", 2),
    ]
    proto = parse(Trace(spans), tmp_path)
    names = {
        p.track_descriptor.uuid: p.track_descriptor.name
        for p in proto.packet
        if p.track_descriptor.HasField("counter")
    }
    values: dict[str, list[tuple[int, int]]] = {}
    for packet in proto.packet:
        if packet.track_event.type == TrackEvent.TYPE_COUNTER:
            step = (packet.timestamp, packet.track_event.counter_value)
            values.setdefault(names[packet.track_event.track_uuid], []).append(step)
    assert values == {
        "asked for and not done": [(1000, 1), (4000, 2), (5000, 1), (6000, 0)],
        "pieces of work at once": [(2000, 1), (4000, 2), (5000, 1), (6000, 0)],
    }


@pytest.mark.parametrize("suffix", [".pftrace", ".json"])
def test_what_was_written_is_read_back(trace: Trace, suffix: str, tmp_path: Path) -> None:
    trace.about = {"gpu": "none", "tries": [1, 2]}
    path = tmp_path / f"trace{suffix}"
    trace.to_perfetto(path)
    found = Trace.load(path)
    assert (found.clock, found.device, found.about) == (trace.clock, trace.device, trace.about)
    assert found.spans == trace.spans


def test_a_file_of_perfetto_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.pftrace"
    for body in (b"\x0a\x02\x40\x05", b"asyncgpu_tutor.trace:", b"asyncgpu_tutor.trace:AAAA;"):
        path.write_bytes(body)
        with pytest.raises(UsageError, match=r"not written by this package|damaged"):
            Trace.load(path)
