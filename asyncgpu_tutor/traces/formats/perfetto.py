"""A trace as a file for the Perfetto UI, in Perfetto's own format or in that of Chrome.

Perfetto's is a stream of protocol buffer messages, of which a trace needs so few that they are written by
hand here; the tests read them back with the schema of the package ``perfetto``. Field numbers:
https://perfetto.dev/docs/reference/synthetic-track-event (TracePacket, TrackDescriptor, TrackEvent).
The lanes are under a track that is no process: under one, version 52 of the UI sorts them by name.
Chrome's: "Trace Event Format", https://perfetto.dev/docs/getting-started/other-formats.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from asyncgpu_tutor.traces.spans.lanes import Lane, lanes, packed, rows
from asyncgpu_tutor.traces.spans.span import Span
from asyncgpu_tutor.traces.spans.vocabulary import KIND_WORDS, device_words

__all__ = ["write"]

_SEQUENCE = 1  # all packets are of one writer
_CLEARED = 1  # TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
_BEGIN, _END = 1, 2  # TrackEvent.Type
_EXPLICIT = 3  # TrackDescriptor.ChildTracksOrdering
_PROCESS = 1  # Chrome's format has no tracks without a process


@dataclass
class _Track:
    """One line of the picture. Spans on it do not overlap."""

    number: int
    group: str
    name: str
    spans: list[Span] = field(default_factory=list[Span])


@dataclass(frozen=True)
class _Flow:
    """An arrow from one span to another."""

    number: int
    before: Span
    after: Span


def write(spans: Sequence[Span], path: Path, *, device: str, clock: str) -> None:
    """Write the file; see `Trace.to_perfetto`."""
    # Short: the UI leaves out the middle of a long one, as in "simulated H200 (simula... measured)".
    title = f"{device_words(device) or 'device'} ({'modelled' if clock == 'simulated' else clock})"
    tracks, flows = _tracks(spans), _flows(spans)
    if path.suffix == ".json":
        path.write_text(_chrome(title, tracks, flows), encoding="utf-8")
    else:
        path.write_bytes(b"".join(_packets(title, tracks, flows)))


# ------------------------------------------------------------------ what there is to show
def _tracks(spans: Sequence[Span]) -> list[_Track]:
    found: list[_Track] = []
    for lane in lanes(spans, ("host", "streams")):
        row = _rows(lane)
        base = len(found)
        where = f"{lane.device} " if lane.device else ""
        for name in _names(lane, row):
            found.append(_Track(len(found) + 2, lane.group, where + name))
        for span, index in zip(lane.spans, row, strict=True):
            found[base + index].spans.append(span)
    return found


def _names(lane: Lane, row: list[int]) -> Iterator[str]:
    """What the rows of a lane are called: the host's ranges have the upper ones to themselves."""
    of_ranges = {i for span, i in zip(lane.spans, row, strict=True) if span.kind == "range"}
    others = max(row) + 1 - len(of_ranges)
    for name, number in (("ranges", len(of_ranges)), (lane.name, others)):
        yield from (name if number == 1 else f"{name}, row {i + 1}" for i in range(number))


def _rows(lane: Lane) -> list[int]:
    # Spans of a stream can overlap by the error of a clock, and a viewer would hide some: they get rows too.
    return packed(lane.spans) if lane.group == "streams" else rows(lane)


def _flows(spans: Sequence[Span]) -> list[_Flow]:
    """Arrows from what enqueued a span and from what it waited for on other streams, and to waits.

    An arrow goes forwards from start to start, so there is none to a wait from what began after it.
    """
    by_id = {span.id: span for span in spans}
    found: list[_Flow] = []
    for span in spans:
        for number in span.after:
            before = by_id.get(number)
            if before is None or before.start > span.start:
                continue
            if (before.device, before.stream) != (span.device, span.stream):
                found.append(_Flow(len(found) + 1, before, span))
    return found


def _facts(span: Span) -> Iterator[tuple[str, str | int | float]]:
    yield "kind", KIND_WORDS[span.kind]
    yield "id", span.id
    if span.op is not None:
        yield "operation", f"#{span.op} {span.label}"
    for key, value in span.detail.items():
        yield key, value if isinstance(value, str | int | float) else json.dumps(value)


def _nanoseconds(us: float) -> int:
    return round(us * 1000)


# ------------------------------------------------------------------ Perfetto
def _packets(title: str, tracks: list[_Track], flows: list[_Flow]) -> Iterator[bytes]:
    root = _whole(1, 1) + _text(2, title) + _whole(11, _EXPLICIT)
    yield _packet(_bytes(60, root) + _whole(13, _CLEARED))
    for rank, track in enumerate(tracks):
        about = _whole(1, track.number) + _whole(5, 1) + _text(2, track.name) + _whole(12, rank)
        yield _packet(_bytes(60, about))
    out: dict[int, list[int]] = {}
    into: dict[int, list[int]] = {}
    for flow in flows:
        out.setdefault(flow.before.id, []).append(flow.number)
        into.setdefault(flow.after.id, []).append(flow.number)
    events: list[tuple[int, int, int, bytes]] = []
    for track in tracks:
        for span in track.spans:
            start, end = _nanoseconds(span.start), _nanoseconds(span.end)
            body = (
                _whole(9, _BEGIN)
                + _whole(11, track.number)
                + _text(22, span.kind)
                + _text(23, span.name)
                + b"".join(_bytes(4, _annotation(key, value)) for key, value in _facts(span))
                + b"".join(_fixed(47, number) for number in out.get(span.id, ()))
                + b"".join(_fixed(48, number) for number in into.get(span.id, ()))
            )
            # The second number orders events of one moment: ends come first, then begins, then the ends of
            # spans that take no time.
            events.append((start, 1, span.id, body))
            close = _whole(9, _END) + _whole(11, track.number)
            events.append((end, 0 if end > start else 2, span.id, close))
    for time, _, _, body in sorted(events, key=lambda event: event[:3]):
        yield _packet(_whole(8, time) + _bytes(11, body))


def _annotation(key: str, value: str | float) -> bytes:
    name = _text(10, key)
    if isinstance(value, bool):
        return name + _whole(2, int(value))
    if isinstance(value, int) and 0 <= value < 2**63:
        return name + _whole(3, value)
    return name + _text(6, str(value))


def _packet(fields: bytes) -> bytes:
    return _bytes(1, fields + _whole(10, _SEQUENCE))


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _whole(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _fixed(number: int, value: int) -> bytes:
    return _varint(number << 3 | 1) + value.to_bytes(8, "little")


def _bytes(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _text(number: int, value: str) -> bytes:
    return _bytes(number, value.encode("utf-8", errors="replace"))


# ------------------------------------------------------------------ Chrome
def _chrome(title: str, tracks: list[_Track], flows: Iterable[_Flow]) -> str:
    place = {span.id: track.number for track in tracks for span in track.spans}
    # Arrows need both ends on a track, and work of a foreign trace may be on no stream.
    flows = [flow for flow in flows if flow.before.id in place and flow.after.id in place]
    events: list[dict[str, object]] = [_named("process_name", 0, title)]
    for rank, track in enumerate(tracks):
        events.append(_named("thread_name", track.number, track.name))
        order = {"ph": "M", "name": "thread_sort_index", "pid": _PROCESS, "tid": track.number}
        events.append({**order, "args": {"sort_index": rank}})
        events += [_slice(span, track.number) for span in track.spans]
    for flow in flows:
        ends = (("s", flow.before, flow.before.start), ("f", flow.after, flow.after.start))
        for phase, span, time in ends:
            arrow = {"ph": phase, "id": flow.number, "name": "dependency", "cat": "dependency"}
            event: dict[str, object] = {
                **arrow,
                "pid": _PROCESS,
                "tid": place[span.id],
                "ts": time,
            }
            events.append({**event, "bp": "e"} if phase == "f" else event)
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}) + "\n"


def _slice(span: Span, track: int) -> dict[str, object]:
    return {
        "ph": "X",
        "name": span.name,
        "cat": span.kind,
        "pid": _PROCESS,
        "tid": track,
        "ts": span.start,
        "dur": span.duration,
        "args": dict(_facts(span)),
    }


def _named(what: str, track: int, name: str) -> dict[str, object]:
    return {"ph": "M", "name": what, "pid": _PROCESS, "tid": track, "args": {"name": name}}
