"""A trace as plain text: what its picture shows, for those who cannot see one, and for logs."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from asyncgpu_tutor.traces.spans.intervals import Interval
from asyncgpu_tutor.traces.spans.lanes import (
    Lane,
    StreamKey,
    lane_name,
    lanes,
    stream_name,
    stream_numbers,
)
from asyncgpu_tutor.traces.spans.metrics import Metrics, measure
from asyncgpu_tutor.traces.spans.notebook_output import NAME, NOTHING, PAGE, cut_output, wrapped
from asyncgpu_tutor.traces.spans.relations import CriticalPathStep
from asyncgpu_tutor.traces.spans.span import UNIFIED_MEMORY, Span, SpanKind, by_number, grouped
from asyncgpu_tutor.traces.spans.vocabulary import ENGINE_WORDS, KIND_WORDS, clock_words, count

_COLUMNS = ("start", "duration", "lane", "kind", "name", "operation")
_LISTED = 200  # spans
_LONGEST_PATH = 12  # steps that are named one by one
_LETTERS: Mapping[SpanKind, str] = {
    "h2d": "H", "kernel": "K", "d2h": "D", "d2d": "C", "peer": "P", "memset": "M", "graph": "G", "call": "c",
    "wait": "w", "work": "x", "range": "r",
}  # fmt: skip
_NO_ROOM = ":"  # where a kernel waits for its first place, which is no work


def render(
    spans: Sequence[Span], windows: Sequence[Interval] = (), *, device: str, clock: str, width: int = 60
) -> str:  # fmt: skip
    """The timeline as text: a heading, all spans by start, lanes and metrics; see `Trace.table`."""
    parts = [_heading(spans, device, clock)]
    if spans:
        numbers = stream_numbers(spans)
        parts += [_spans(spans, numbers), _lanes(spans, width)]
        parts.append(_metrics(spans, windows, clock, numbers))
    return "\n\n".join(parts)


def _heading(spans: Sequence[Span], device: str, clock: str) -> str:
    title = f"Timeline of {device}" if device else "Timeline"
    if not spans:
        return f"{title} ({clock_words(clock)})\n{NOTHING}"
    work = [span for span in spans if span.on_device]
    streams = len({(span.device, span.stream) for span in work})
    return (
        f"{title} ({clock_words(clock)})\n"
        f"{count(len(spans), 'span')}: {len(work):,} on the device, in {count(streams, 'stream')}; "
        f"{len(spans) - len(work):,} on the host. Times in µs."
    ) + _counted_otherwise(spans)


def _counted_otherwise(spans: Sequence[Span]) -> str:
    """Which number the device itself has given to each stream, where that is another one."""
    numbers = {of: n for of, n in stream_numbers(spans).items() if n != UNIFIED_MEMORY}
    if all(stream == number for (_, stream), number in numbers.items()):
        return ""
    several = len({device for device, _ in numbers}) > 1
    told = [f"{n} is {name + ' ' if several else ''}{own}" for (name, own), n in numbers.items()]
    said = f"Streams are numbered by first use; by the device's own numbers {', '.join(told)}."
    return "\n" + "\n".join(wrapped(said, 0))


# ------------------------------------------------------------------ the spans
def _spans(spans: Sequence[Span], numbers: Mapping[StreamKey, int]) -> str:
    ordered = sorted(spans, key=lambda s: (s.start, s.end, s.id))
    cells = [_COLUMNS, *(_row(span, numbers) for span in ordered[:_LISTED])]
    widths = [max(len(row[i]) for row in cells) for i in range(len(_COLUMNS))]
    # Names and operations share what the others leave of a page: of the longer one something is left out.
    room = max(PAGE // 3, PAGE - sum(widths[:4]) - 2 * (len(_COLUMNS) - 1))
    widths[5] = min(widths[5], max(room // 3, room - widths[4]))
    widths[4] = min(widths[4], room - widths[5])
    lines: list[str] = []
    for start, took, *words in cells:
        told = [
            cut_output(text, size).ljust(size) for text, size in zip(words, widths[2:], strict=True)
        ]
        lines.append("  ".join((start.rjust(widths[0]), took.rjust(widths[1]), *told)).rstrip())
    lines.insert(1, "  ".join("-" * size for size in widths))
    if len(ordered) > _LISTED:
        lines.append(f"... and {count(len(ordered) - _LISTED, 'more span')}")
    return "\n".join(lines)


def _row(span: Span, numbers: Mapping[StreamKey, int]) -> tuple[str, ...]:
    parts = ([] if span.op is None else [f"#{span.op}"]) + ([span.label] if span.label else [])
    times = f"{span.start:.2f}", f"{span.duration:.2f}"
    return *times, stream_name(span, numbers), KIND_WORDS[span.kind], span.name, " ".join(parts)


# ------------------------------------------------------------------ the lanes
def _lanes(spans: Sequence[Span], width: int) -> str:
    begin = min(span.start for span in spans)
    end = max(span.end for span in spans)
    # A column is never 0 us wide: all spans may lie at one moment, or within the smallest float.
    column = (end - begin) / width or 1.0
    found = lanes(spans)
    several = len({lane.device for lane in found if lane.device}) > 1
    names = [f"{lane.device} {lane.name}".strip() if several else lane.name for lane in found]
    size = max(map(len, names))
    lines = [f"Lanes from {begin:.2f} to {end:.2f}, one column = {column:.2f}:"]
    for name, lane in zip(names, found, strict=True):
        lines.append(f"{name.ljust(size)} |{_strip(lane, begin, column, width)}|")
    kinds = {span.kind for span in spans}
    key = [f"{_LETTERS[k]} = {words}" for k, words in KIND_WORDS.items() if k in kinds]
    if any(span.waited_for_room for span in spans):
        key.append(f"{_NO_ROOM} = no room yet")
    return "\n".join([*lines, *wrapped(f"Key: {', '.join(key)}, 2 = so many at once, . = idle", 5)])


def _strip(lane: Lane, begin: float, column: float, width: int) -> str:
    """One character a column: the kind with most time in it, or how many spans run in its middle."""
    strip = ["."] * width
    most = [-1.0] * width
    # Ranges enclose the other spans and would hide them, so they show only on a lane without others.
    spans = [s for s in lane.spans if s.kind != "range"] or list(lane.spans)
    together = [0] * width
    for span in spans:
        if lane.group == "streams" and span.waited_for_room:
            since = max(0, int((span.start - span.waited_for_room - begin) / column))
            for i in range(since, min(int((span.start - begin) / column), width)):
                strip[i] = _NO_ROOM if strip[i] == "." else strip[i]
        first = min(int((span.start - begin) / column), width - 1)
        last = max(first, min(math.ceil((span.end - begin) / column), width) - 1)
        for i in range(first, last + 1):
            left, right = begin + i * column, begin + (i + 1) * column
            part = min(span.end, right) - max(span.start, left)
            if part > most[i]:
                strip[i], most[i] = _LETTERS[span.kind], part
            if span.start <= (left + right) / 2 < span.end:
                together[i] += 1
    told = ("" if number < 2 else "+" if number > 9 else str(number) for number in together)
    return "".join(crowd or letter for letter, crowd in zip(strip, told, strict=True))


# ------------------------------------------------------------------ the metrics
def _metrics(
    spans: Sequence[Span], windows: Sequence[Interval], clock: str, numbers: Mapping[StreamKey, int]
) -> str:
    m = measure(spans, windows)
    devices = sorted({device for device, _ in m.stream_busy}, key=by_number)
    work = grouped((s for s in spans if s.on_device), lambda span: span.device)
    alone = f" (device alone {m.device_makespan:.2f})" if len(devices) < 2 else ""
    rows = [("makespan", f"{m.makespan:.2f}{alone}")]
    for name in devices:
        several = f"{name} " if len(devices) > 1 else ""
        own = measure(work[name], windows) if several else m
        rows += [(several + what, told) for what, told in _of_device(own, numbers)]
    host = [f"{KIND_WORDS[kind]} {time:.2f}" for kind, time in m.host.items() if time]
    if host:
        rows.append(("host", ", ".join(host)))
    if m.critical_path:
        rows.append(("critical path", _path(m.critical_path, numbers)))
    size = max(len(name) for name, _ in rows)
    within = f", of {count(len(windows), 'window')}" if windows else ""
    lines = [f"Metrics{within} ({clock_words(clock)}):"]
    return "\n".join(lines + [f"  {name.ljust(size)}  {text}" for name, text in rows])


def _of_device(m: Metrics, numbers: Mapping[StreamKey, int]) -> Iterator[tuple[str, str]]:
    yield "device busy", f"{m.device_active:.2f}, idle {m.device_idle:.2f}"
    yield "overlap", f"{m.overlap:.2f}, {m.overlap_fraction:.0%} of the busy time"
    yield "at once", f"at most {count(m.max_concurrency, 'stream')}"
    if m.hidden:
        yield "talk", f"{m.hidden:.0%} of it beside other kernels"
    for key, busy in sorted(m.stream_busy.items(), key=lambda item: numbers[item[0]]):
        idle = math.fsum(end - start for start, end in m.gaps[key])
        gaps = f"{count(len(m.gaps[key]), 'gap')}, {idle:.2f}" if idle else "no gap"
        yield lane_name(numbers[key]), f"busy {busy:.2f}, {gaps}"
    for (_, engine), busy in m.engine_busy.items():
        yield ENGINE_WORDS[engine], f"busy {busy:.2f}"


def _path(path: Sequence[CriticalPathStep], numbers: Mapping[StreamKey, int]) -> str:
    length = path[-1].end - path[0].start
    shares = {
        words: math.fsum(step.end - step.start for step in path if step.span.kind == kind)
        for kind, words in KIND_WORDS.items()
    }
    shares["idle"] = math.fsum(step.idle for step in path)
    parts = [f"{words} {time / length:.0%}" for words, time in shares.items() if time and length]
    shown = [(stream_name(step.span, numbers), cut_output(step.span.name, NAME)) for step in path]
    if len(shown) > _LONGEST_PATH:
        half = _LONGEST_PATH // 2
        left_out = ("...", count(len(shown) - 2 * half, "more step"))
        shown = [*shown[:half], left_out, *shown[-half:]]
    lines = [
        line
        for lane, run in groupby(shown, key=lambda pair: pair[0])
        for line in wrapped(f"    {lane}: " + ", ".join(name for _, name in run), 6)
    ]
    return "\n".join([f"{length:.2f} = " + ", ".join(parts or ["0"]), *lines])
