"""Which lane each span is drawn on, and in which row of it."""

import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Literal

from asyncgpu_tutor.traces.spans.span import UNIFIED_MEMORY, Span, by_number, grouped
from asyncgpu_tutor.traces.spans.vocabulary import ENGINE_WORDS, engine_of

StreamKey = tuple[str, int]  # a device, and the number that it gave to the stream

LaneGroup = Literal["host", "streams", "engines"]

GROUPS: tuple[LaneGroup, ...] = ("host", "streams", "engines")


@dataclass(frozen=True)
class Lane:
    """One horizontal line of a timeline."""

    # What it shows. An engine's lane shows again what the streams' lanes show, from the other side.
    group: LaneGroup
    # Whose stream or engine it is. Empty for the host, but for those of other processes: `Span.host`.
    device: str
    name: str  # for people, without the device
    spans: tuple[Span, ...]  # by start
    # The number that the device gave to the stream, where it is one's lane.
    stream: int | None = None
    # On an engine's lane, what `stream_numbers` says of the trace: its bars are of several streams. Empty
    # where no streams are drawn and the program gave names, which then stand on the engines' bars.
    numbers: Mapping[StreamKey, int] = field(default_factory=dict[StreamKey, int], repr=False)


def stream_numbers(spans: Iterable[Span]) -> dict[StreamKey, int]:
    """Number the streams of each device by first use, from 1; the null stream is 0, and pages stay -1."""
    # A device counts all streams that were ever made, so its own numbers differ from run to run.
    found: dict[StreamKey, int] = {}
    used: dict[str, int] = {}
    for span in sorted(spans, key=attrgetter("id")):
        if span.stream is None or (span.device, span.stream) in found:
            continue
        number = span.stream
        if number > 0:
            number = used[span.device] = used.get(span.device, 0) + 1
        found[span.device, span.stream] = number
    return dict(sorted(found.items(), key=lambda item: (by_number(item[0][0]), item[1])))


def lane_name(number: int) -> str:
    """Return the name of the lane that has a number by `stream_numbers`."""
    return "unified memory" if number == UNIFIED_MEMORY else f"stream {number}"


def stream_name(span: Span, numbers: Mapping[StreamKey, int]) -> str:
    """The name of the lane that a span is drawn on, with the device where there are several."""
    if span.stream is None:
        return str(span.detail.get("lane", f"{span.host} host".lstrip()))
    name, keys = lane_name(numbers[span.device, span.stream]), [*numbers]  # by device
    return f"{span.device} {name}" if keys[0][0] != keys[-1][0] else name


def lane_of(trace: Iterable[Span], span: Span) -> str:
    """As `stream_name`, for a single span of a trace: what is said of a picture has to agree with it."""
    return stream_name(span, stream_numbers(trace))


def lanes(trace: Iterable[Span], groups: Collection[LaneGroup] = GROUPS) -> list[Lane]:
    """The lanes that have spans, from top to bottom: host, then each device's streams and engines."""
    spans = list(trace)
    numbers = stream_numbers(spans)
    marks = grouped((s for s in spans if "lane" in s.detail), lambda s: str(s.detail["lane"]))
    host = (s for s in spans if not s.on_device and "lane" not in s.detail)
    hosts = grouped(host, lambda span: span.host) if "host" in groups else {}
    work = grouped((span for span in spans if span.on_device), lambda span: span.device)
    of_device = grouped(numbers, lambda key: key[0])
    named = any("named" in span.detail for own in work.values() for span in own)
    shown = {} if named and "streams" not in groups else numbers
    found = [Lane("host", "", "host", _ordered(hosts.pop("", ())))]
    for device in sorted({*hosts, *work}, key=by_number):
        found.append(Lane("host", device, "host", _ordered(hosts.get(device, ()))))
        own = work.get(device, [])
        if "streams" in groups:
            by_stream = grouped(own, lambda span: span.stream)
            for _, stream in of_device.get(device, ()):
                mine, name = _ordered(by_stream.get(stream, ())), lane_name(numbers[device, stream])
                found.append(Lane("streams", device, name, mine, stream))
        if "engines" in groups:
            for engine, words in ENGINE_WORDS.items():
                mine = _ordered(s for s in own if engine_of(s) == engine)
                found.append(Lane("engines", device, words, mine, None, shown))
    by_start = attrgetter("start")
    found += [Lane("host", "", name, tuple(sorted(marks[name], key=by_start))) for name in marks]
    return [lane for lane in found if lane.spans]


def rows(lane: Lane) -> list[int]:
    """For each span of the lane, the row in which nothing hides it; a stream is a queue, and has one row."""
    queue = lane.group == "streams" and lane.stream != UNIFIED_MEMORY
    return [0] * len(lane.spans) if queue else ranges_above(lane.spans)


def ranges_above(spans: Sequence[Span]) -> list[int]:
    """Rows in which ranges have the upper ones to themselves, since they enclose the rest."""
    ranges = _packed([span for span in spans if span.kind == "range"])
    below = max(ranges, default=-1) + 1
    upper = iter(ranges)
    lower = iter(_packed([span for span in spans if span.kind != "range"]))
    return [next(upper) if span.kind == "range" else below + next(lower) for span in spans]


def _ordered(spans: Iterable[Span]) -> tuple[Span, ...]:
    return tuple(sorted(spans, key=_place))


def _place(span: Span) -> tuple[float, float, int, str, int]:
    # The longer of two that start together gets the upper row; a worker's calls go by name, and 9 before 10.
    called = span.name.partition(": ")[2] if "sent" in span.detail else ""
    return span.start, 0.0 if called else -span.end, len(called), called, span.id


def _packed(spans: Sequence[Span]) -> list[int]:
    """The first row that is free at each span's start; the spans are in order of their starts."""
    chosen: list[int] = []
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    for span in spans:
        while busy and busy[0][0] <= span.start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        row = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (span.end, row))
        chosen.append(row)
    return chosen
