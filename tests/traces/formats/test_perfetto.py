"""The file for the Perfetto UI, read back with Perfetto's own schema; and that for Chrome."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import (
    Trace as Proto,
)
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import (
    TrackDescriptor,
    TrackEvent,
)

from asyncgpu_tutor import Trace
from asyncgpu_tutor.commands.profile import trace_of
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.types import Span


@pytest.fixture
def trace(sim: Device) -> Trace:
    return trace_of("02_streams_and_events")


def parse(trace: Trace, tmp_path: Path) -> Any:
    path = tmp_path / "trace.pftrace"
    trace.to_perfetto(path)
    proto = Proto()
    proto.ParseFromString(path.read_bytes())
    return proto


def tracks(proto: Any) -> dict[int, Any]:
    return {
        p.track_descriptor.uuid: p.track_descriptor
        for p in proto.packet
        if p.HasField("track_descriptor")
    }


def slices(proto: Any) -> dict[int, list[Any]]:
    """The events of each track in file order."""
    found: dict[int, list[Any]] = {}
    for packet in proto.packet:
        if packet.HasField("track_event"):
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
        Span(2, "range", "b", 1, 8, ""),
        Span(3, "call", "c", 2, 3, ""),
    ]
    named = {t.uuid: t.name for t in tracks(parse(Trace(host), tmp_path)).values()}
    assert list(named.values())[1:] == ["ranges, row 1", "ranges, row 2", "host"]
    begun = slices(parse(Trace(host), tmp_path))
    where = {p[0].track_event.name: named[uuid] for uuid, p in begun.items()}
    assert where == {"a": "ranges, row 1", "b": "ranges, row 2", "c": "host"}


def test_each_span_begins_and_ends_on_its_track_to_the_ns(trace: Trace, tmp_path: Path) -> None:
    proto = parse(trace, tmp_path)
    names = {uuid: track.name for uuid, track in tracks(proto).items()}
    seen: Counter[tuple[str, int, int]] = Counter()
    for uuid, packets in slices(proto).items():
        stack: list[Any] = []
        for packet in packets:
            if packet.track_event.type == TrackEvent.TYPE_SLICE_BEGIN:
                stack.append(packet)
            else:
                begin = stack.pop()
                assert not stack, f"spans overlap on {names[uuid]}"
                seen[begin.track_event.name, begin.timestamp, packet.timestamp] += 1
        assert not stack
    expected = Counter((s.name, round(s.start * 1000), round(s.end * 1000)) for s in trace)
    assert seen == expected


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
    assert len(parse(Trace(), tmp_path).packet) == 1
    odd = Span(2**62, "kernel", "\ud800 ü", 0.0, 0.0, "cuda:0", 1, detail={"n": -1, "x": [1.5]})
    proto = parse(Trace([odd]), tmp_path)
    (begin, _) = (p.track_event for p in proto.packet if p.HasField("track_event"))
    assert begin.name == "? ü"
    assert {a.name: a.string_value for a in begin.debug_annotations if a.string_value}[
        "x"
    ] == "[1.5]"


def test_the_file_for_chrome_has_the_same(trace: Trace, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    trace.to_perfetto(path)
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    spans = [e for e in events if e["ph"] == "X"]
    assert Counter((e["name"], e["ts"], e["dur"]) for e in spans) == Counter(
        (s.name, s.start, s.duration) for s in trace
    )
    threads = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert {e["tid"] for e in spans} == threads.keys()
    starts = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    assert starts.keys() == ends.keys()
    assert starts
    assert all(starts[i]["ts"] <= ends[i]["ts"] for i in starts)
