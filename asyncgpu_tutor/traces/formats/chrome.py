"""A trace as a file in Chrome's format, which the Perfetto UI opens.

Format: "Trace Event Format", https://perfetto.dev/docs/getting-started/other-formats. It has threads and no
lanes: each row of a lane is a thread here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

from asyncgpu_tutor.traces.formats import own_json
from asyncgpu_tutor.traces.spans.lanes import Lane, lanes, packed, ranges_above
from asyncgpu_tutor.traces.spans.span import Span, SpanKind, call_name
from asyncgpu_tutor.traces.spans.vocabulary import KIND_WORDS, device_words

_OURS = "asyncgpu_tutor"  # who wrote a file

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
    made = _chrome(title, _tracks(spans), _flows(spans), _counters(spans), facts)
    path.write_text(made, encoding="utf-8")


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


def _counters(spans: Sequence[Span]) -> list[_Counter]:
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
            counters.append(_Counter(name, list(zip(times, values, strict=True))))
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
    title: str,
    tracks: list[_Track],
    flows: Iterable[_Flow],
    counters: Iterable[_Counter],
    facts: Mapping[str, object],
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
    for counter in counters:
        named: dict[str, object] = {"ph": "C", "name": counter.name, "pid": _PROCESS}
        events += [{**named, "ts": time, "args": {"": value}} for time, value in counter.steps]
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
