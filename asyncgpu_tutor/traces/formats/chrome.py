"""A trace as a file in Chrome's format, which the Perfetto UI opens: each row of a lane is a thread.

Format: "Trace Event Format", https://perfetto.dev/docs/getting-started/other-formats.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from asyncgpu_tutor.traces.formats.own_json import json_text
from asyncgpu_tutor.traces.spans.lanes import Lane, lanes, ranges_above
from asyncgpu_tutor.traces.spans.span import Span
from asyncgpu_tutor.traces.spans.vocabulary import KIND_WORDS, device_words
from asyncgpu_tutor.traces.spans.whole_file import write_whole

_Event = dict[str, object]

_PROCESS = 1  # Chrome's format has no tracks without a process
_ARROW: _Event = {"name": "dependency", "cat": "dependency", "pid": _PROCESS}


def write_chrome(
    spans: Sequence[Span], path: Path, *, device: str, clock: str, about: Mapping[str, object]
) -> None:
    """Write the file; see `Trace.to_perfetto`."""
    # Short: the UI leaves out the middle of a long one, as in "simulated H200 (simula... measured)".
    title = f"{device_words(device) or 'device'} ({'modelled' if clock == 'simulated' else clock})"
    events = [_named("process_name", 0, title)]
    place: dict[int, int] = {}  # the thread of each span
    threads = 1
    for lane in lanes(spans, ("host", "streams")):
        # Spans of a stream can overlap by the error of a clock, and a viewer would hide some: they get rows.
        row = ranges_above(lane.spans)
        for number, name in enumerate(_names(lane, row), threads + 1):
            events.append(_named("thread_name", number, name))
            events.append(_named("thread_sort_index", number, number, "sort_index"))
        for span, index in zip(lane.spans, row, strict=True):
            place[span.id] = threads + 1 + index
            events.append(_slice(span, place[span.id]))
        threads += max(row) + 1
    events += _arrows(spans, place)
    facts = {"device": device, "clock": clock, "about": json_text(dict(about))}
    body = {"traceEvents": events, "displayTimeUnit": "ns", "otherData": {"asyncgpu_tutor": facts}}
    write_whole(path, json_text(body) + "\n")


def _names(lane: Lane, row: list[int]) -> Iterator[str]:
    """Names of the rows of a lane: the host's ranges have the upper ones to themselves."""
    where = f"{lane.device} " if lane.device else ""
    of_ranges = {i for span, i in zip(lane.spans, row, strict=True) if span.kind == "range"}
    others = max(row) + 1 - len(of_ranges)
    ranges = lane.name if "lane" in lane.spans[0].detail else f"{where}ranges"
    for name, number in ((ranges, len(of_ranges)), (where + lane.name, others)):
        yield from (name if number == 1 else f"{name}, row {i + 1}" for i in range(number))


def _arrows(spans: Sequence[Span], place: Mapping[int, int]) -> Iterator[_Event]:
    """Arrows, forwards from start to start: from a span's call, and from what it waited for elsewhere."""
    # Work of a foreign trace may be on no stream, and so on no thread.
    by_id = {span.id: span for span in spans if span.id in place}
    pairs = ((by_id[i], span) for span in by_id.values() for i in span.after if i in by_id)
    apart = ((a, b) for a, b in pairs if (a.device, a.stream) != (b.device, b.stream))
    ends = [(before, after) for before, after in apart if before.start <= after.start]
    for number, (before, after) in enumerate(ends, 1):
        arrow: _Event = {**_ARROW, "id": number}
        yield {**arrow, "ph": "s", "tid": place[before.id], "ts": before.start}
        yield {**arrow, "ph": "f", "tid": place[after.id], "ts": after.start, "bp": "e"}


def _slice(span: Span, thread: int) -> _Event:
    args: _Event = {"kind": KIND_WORDS[span.kind], "id": span.id, "device": span.device}
    if span.op is not None:
        args["operation"] = f"#{span.op} {span.label}"
    if span.after:
        args["after"] = json.dumps(span.after)
    for key, value in span.detail.items():
        args[key] = value if isinstance(value, str | int | float) else json_text(value)
    times = {"ts": span.start, "dur": span.duration}
    return {"ph": "X", "name": span.name, "pid": _PROCESS, "tid": thread, **times, "args": args}


def _named(what: str, thread: int, value: str | int, key: str = "name") -> _Event:
    return {"ph": "M", "name": what, "pid": _PROCESS, "tid": thread, "args": {key: value}}
