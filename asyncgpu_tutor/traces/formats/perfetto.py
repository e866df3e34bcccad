"""A trace as a file for the Perfetto UI, in Perfetto's own format or in that of Chrome.

Perfetto's is a stream of protocol buffer messages, of which a trace needs so few that they are written by
hand here; the tests read them back with the schema of the package ``perfetto``. Field numbers:
https://perfetto.dev/docs/reference/synthetic-track-event (TracePacket, TrackDescriptor, TrackEvent).
The lanes are under a track that is no process: under one, version 52 of the UI sorts them by name.
Chrome's: "Trace Event Format", https://perfetto.dev/docs/getting-started/other-formats.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import itemgetter
from pathlib import Path

from asyncgpu_tutor.traces.formats import own_json
from asyncgpu_tutor.traces.spans.lanes import Lane, lanes, packed, ranges_above
from asyncgpu_tutor.traces.spans.span import Span, SpanKind, call_name
from asyncgpu_tutor.traces.spans.vocabulary import KIND_WORDS, device_words

_OURS = "asyncgpu_tutor"  # who wrote a file

_SEQUENCE = 1  # all packets are of one writer
_CLEARED = 1  # TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4  # TrackEvent.Type
_PROVENANCE = "provenance"  # the event that says where the times come from
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
class _Counter:
    """A number that changes with time: each value holds from its time, in us, to the next."""

    number: int
    name: str
    steps: list[tuple[float, int]]


@dataclass(frozen=True)
class _Flow:
    """An arrow from one span to another."""

    number: int
    before: Span
    after: Span


def write(
    spans: Sequence[Span], path: Path, *, device: str, clock: str, about: Mapping[str, object]
) -> None:
    """Write the file; see `Trace.to_perfetto`."""
    facts: dict[str, object] = {"device": device, "clock": clock, "about": json.dumps(dict(about))}
    # A viewer's form leaves things out, so the file carries our own along, from which it is read back.
    facts["trace"] = own_json.packed(own_json.write(spans, clock, device, about))
    # Short: the UI leaves out the middle of a long one, as in "simulated H200 (simula... measured)".
    title = f"{device_words(device) or 'device'} ({'modelled' if clock == 'simulated' else clock})"
    tracks, flows = _tracks(spans), _flows(spans)
    if path.suffix == ".json":
        path.write_text(_chrome(title, tracks, flows, facts), encoding="utf-8")
    else:
        counters = _counters(spans, len(tracks) + 2)
        path.write_bytes(b"".join(_packets(title, tracks, counters, flows, facts)))


# ------------------------------------------------------------------ what there is to show
def _tracks(spans: Sequence[Span]) -> list[_Track]:
    found: list[_Track] = []
    for lane in lanes(spans, ("host", "streams")):
        # Spans of a stream can overlap by the error of a clock, and a viewer would hide some: they get rows.
        streams = lane.group == "streams"
        row = packed(lane.spans) if streams else ranges_above(lane.spans, nested)
        base = len(found)
        where = f"{lane.device} " if lane.device else ""
        for name in _names(lane, row):
            found.append(_Track(len(found) + 2, lane.group, where + name))
        for span, index in zip(lane.spans, row, strict=True):
            found[base + index].spans.append(span)
    return found


def _names(lane: Lane, row: list[int]) -> Iterator[str]:
    """Names of the rows of a lane: the host's ranges have the upper ones to themselves."""
    of_ranges = {i for span, i in zip(lane.spans, row, strict=True) if span.kind == "range"}
    others = max(row) + 1 - len(of_ranges)
    for name, number in (("ranges", len(of_ranges)), (lane.name, others)):
        yield from (name if number == 1 else f"{name}, row {i + 1}" for i in range(number))


def nested(spans: Sequence[Span]) -> list[int]:
    """A row for each range, by start: one that lies within another is on its row, and a viewer nests them."""
    stacks: list[list[float]] = []  # the ends of what is open on each row
    chosen: list[int] = []
    for span in spans:
        for stack in stacks:
            while stack and stack[-1] <= span.start:
                stack.pop()
        fits = (i for i, stack in enumerate(stacks) if not stack or stack[-1] >= span.end)
        row = next(fits, len(stacks))
        if row == len(stacks):
            stacks.append([])
        stacks[row].append(span.end)
        chosen.append(row)
    return chosen


def _counters(spans: Sequence[Span], number: int) -> list[_Counter]:
    """How many pieces of work are in the queues, and how many streams work."""
    calls = {span.id: span for span in spans if span.kind == "call"}
    queued: dict[float, int] = {}
    working: dict[float, int] = {}
    for span in spans:
        if not span.on_device:
            continue
        asked = min([calls[i].end for i in span.after if i in calls] + [span.start])
        for steps, start in ((queued, asked), (working, span.start)):
            steps[start] = steps.get(start, 0) + 1
            steps[span.end] = steps.get(span.end, 0) - 1
    found = (("asked for and not done", queued), ("pieces of work at once", working))
    counters: list[_Counter] = []
    for name, steps in found:
        times = sorted(steps)
        values = accumulate(steps[time] for time in times)
        if times:
            counters.append(
                _Counter(number + len(counters), name, list(zip(times, values, strict=True)))
            )
    return counters


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
    yield "device", span.device
    if span.stream is not None:
        yield "stream", span.stream
    if span.op is not None:
        yield "operation", f"#{span.op} {span.label}"
    if span.after:
        yield "after", json.dumps(span.after)
    for key, value in span.detail.items():
        yield key, value if isinstance(value, str | int | float) else json.dumps(value)


def _nanoseconds(us: float) -> int:
    return round(us * 1000)


# ------------------------------------------------------------------ Perfetto
def _packets(
    title: str,
    tracks: list[_Track],
    counters: list[_Counter],
    flows: list[_Flow],
    facts: Mapping[str, object],
) -> Iterator[bytes]:
    root = _whole(1, 1) + _text(2, title) + _whole(11, _EXPLICIT)
    yield _packet(_bytes(60, root) + _whole(13, _CLEARED))
    for rank, track in enumerate(tracks):
        about = _whole(1, track.number) + _whole(5, 1) + _text(2, track.name) + _whole(12, rank)
        yield _packet(_bytes(60, about))
    for rank, counter in enumerate(counters, len(tracks)):
        about = _whole(1, counter.number) + _whole(5, 1) + _text(2, counter.name) + _bytes(8, b"")
        yield _packet(_bytes(60, about + _whole(12, rank)))
    out: dict[int, list[int]] = {}
    into: dict[int, list[int]] = {}
    for flow in flows:
        out.setdefault(flow.before.id, []).append(flow.number)
        into.setdefault(flow.after.id, []).append(flow.number)
    # Those of each track are in the order in which a viewer nests them, and sorting by time keeps that.
    events: list[tuple[int, bytes]] = []
    for track in tracks:
        close = _whole(9, _END) + _whole(11, track.number)
        ends: list[int] = []
        for span in track.spans:
            start = _nanoseconds(span.start)
            while ends and ends[-1] <= start:
                events.append((ends.pop(), close))
            body = (
                _whole(9, _BEGIN)
                + _whole(11, track.number)
                + _text(22, span.kind)
                + _text(23, span.name)
                + b"".join(_bytes(4, _annotation(key, value)) for key, value in _facts(span))
                + b"".join(_fixed(47, number) for number in out.get(span.id, ()))
                + b"".join(_fixed(48, number) for number in into.get(span.id, ()))
            )
            events.append((start, body))
            ends.append(_nanoseconds(span.end))
        events += [(end, close) for end in reversed(ends)]
    begin = min((event[0] for event in events), default=0)
    told = b"".join(_bytes(4, _annotation(key, str(value))) for key, value in facts.items())
    events.insert(0, (begin, _whole(9, _INSTANT) + _whole(11, 1) + _text(23, _PROVENANCE) + told))
    for counter in counters:
        for time, value in counter.steps:
            body = _whole(9, _COUNTER) + _whole(11, counter.number) + _whole(30, value)
            events.append((_nanoseconds(time), body))
    for time, body in sorted(events, key=itemgetter(0)):
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
# What Kineto calls these things, so that tools for traces of PyTorch (such as HTA) know them again.
_CATEGORIES: Mapping[SpanKind, str] = {
    "kernel": "kernel", "graph": "kernel", "h2d": "gpu_memcpy", "d2h": "gpu_memcpy", "d2d": "gpu_memcpy",
    "memset": "gpu_memset", "call": "cuda_runtime", "wait": "cuda_runtime", "work": "cpu_op",
    "range": "user_annotation",
}  # fmt: skip

# And their names, by the kind of work: those tools tell copies from kernels by them, and find launches.
_WORK_NAMES: Mapping[SpanKind, str] = {
    "h2d": "Memcpy HtoD", "d2h": "Memcpy DtoH", "d2d": "Memcpy DtoD", "memset": "Memset"
}  # fmt: skip
_CALL_NAMES = {
    call_name(kind, kind): "cudaMemsetAsync" if kind == "memset" else "cudaMemcpyAsync"
    for kind in _WORK_NAMES
}


def _chrome(
    title: str, tracks: list[_Track], flows: Iterable[_Flow], facts: Mapping[str, object]
) -> str:
    place = {span.id: track.number for track in tracks for span in track.spans}
    # Arrows need both ends on a track, and work of a foreign trace may be on no stream.
    flows = [flow for flow in flows if flow.before.id in place and flow.after.id in place]
    events: list[dict[str, object]] = [_named("process_name", 0, title)]
    calls = {span.id for track in tracks for span in track.spans if span.kind == "call"}
    asked = {
        span.id: max(found)
        for track in tracks
        for span in track.spans
        if (found := [i for i in (*span.after, span.id) if i in calls])
    }
    for rank, track in enumerate(tracks):
        events.append(_named("thread_name", track.number, track.name))
        order = {"ph": "M", "name": "thread_sort_index", "pid": _PROCESS, "tid": track.number}
        events.append({**order, "args": {"sort_index": rank}})
        events += [_slice(span, track.number, asked) for span in track.spans]
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
    body = {"traceEvents": events, "displayTimeUnit": "ns", "otherData": {_OURS: dict(facts)}}
    return json.dumps(body) + "\n"


def _slice(span: Span, track: int, asked: Mapping[int, int]) -> dict[str, object]:
    args: dict[str, object] = dict(_facts(span))
    # -1 stands for no stream and for no call, as in Kineto's own files.
    args |= {
        "stream": -1 if span.stream is None else span.stream,
        "correlation": asked.get(span.id, -1),
        "name": span.name,
    }
    return {
        "ph": "X",
        "name": _kineto_name(span),
        "cat": _CATEGORIES[span.kind],
        "pid": _PROCESS,
        "tid": track,
        "ts": span.start,
        "dur": span.duration,
        "args": {**args, "grid": span.detail["grid"]} if "grid" in span.detail else args,
    }


def _kineto_name(span: Span) -> str:
    if span.kind != "call":
        return _WORK_NAMES.get(span.kind, span.name)
    if span.name.startswith("launch graph "):
        return "cudaGraphLaunch"
    launches = span.name.startswith("launch ")
    return "cudaLaunchKernel" if launches else _CALL_NAMES.get(span.name, span.name)


def _named(what: str, track: int, name: str) -> dict[str, object]:
    return {"ph": "M", "name": what, "pid": _PROCESS, "tid": track, "args": {"name": name}}
