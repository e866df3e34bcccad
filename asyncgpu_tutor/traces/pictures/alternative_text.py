"""A picture in two sentences, for those who cannot see it: what one would see in it, and no inventory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

from asyncgpu_tutor.traces.spans import Metrics, Span, measure
from asyncgpu_tutor.traces.spans.intervals import gaps, union
from asyncgpu_tutor.traces.spans.lanes import stream_name, stream_numbers
from asyncgpu_tutor.traces.spans.notebook_output import NAME, cut_output, damage_of
from asyncgpu_tutor.traces.spans.span import grouped
from asyncgpu_tutor.traces.spans.vocabulary import clock_words, count, device_words

if TYPE_CHECKING:
    from asyncgpu_tutor.traces.trace import Trace

_MOST_AT_ONCE = 128  # streams of which it is said which two ran together for longest
_STRETCHES = 8  # of a page's own lane
_MOST = 8000  # spans: in a picture of more, nobody could read a name either


def duration(time: float) -> str:
    """A time in us in the unit that suits it: 12.5 µs, 3.20 ms."""
    return f"{time:.1f} \u00b5s" if abs(time) < 10_000 else f"{time / 1000:.2f} ms"


def alt_text(trace: Trace, metrics: Metrics) -> str:
    """Describe the timeline: what ran at the same time, what waited for another stream, the longest pause."""
    title = f"Timeline of {device_words(trace.device)}" if trace.device else "Timeline"
    damage = "".join(f" {said}" for said in damage_of(trace.about))
    head = f"{title} ({clock_words(trace.clock)}):{damage} "
    if not trace.spans:
        return head + "nothing was recorded."
    took = duration(metrics.makespan)
    work = _work(trace)
    if not work:
        return f"{head}{took} of the host, in which the device did nothing."
    parts = [("the device", trace, metrics)]
    if len(trace.devices) > 1:
        # Each has the whole host, which is in none of what is said of a device.
        work_alone = replace(trace, spans=work)
        parts = [(name, part, measure(part)) for name, part in work_alone.each(trace.devices)]
    busy = [
        f"{name} is busy for {duration(own.device_active)}, and {_together(_work(part), own)}"
        for name, part, own in parts
    ]
    told = "; ".join(_pauses(trace, work))
    lanes = "".join(_lanes(trace))
    return f"{head}in {took} {'; '.join(busy)}. {told[0].upper()}{told[1:]}.{lanes}"


def _work(trace: Trace) -> list[Span]:
    return sorted(trace.device_spans, key=attrgetter("start"))


def _together(work: Sequence[Span], metrics: Metrics) -> str:
    """Name the work that ran at the same time."""
    streams = len(metrics.stream_busy)
    if streams > 1 and metrics.overlap:
        few = len(work) <= _MOST and metrics.max_concurrency <= _MOST_AT_ONCE
        names = _longest_pair(work) if few else "streams"
        return (
            f"{names} run at the same time: streams overlap for {duration(metrics.overlap)}, "
            f"{metrics.overlap_fraction:.0%} of that, at most {metrics.max_concurrency} at once"
        )
    if len(work) == 1:
        idle = sum(until - since for since, until in work[0].waits)
        waits = f", and only waits for {duration(idle)} of that" if idle else ""
        return f"{_name(work[0])} is all that runs{waits}"
    if streams > 1:
        return f"nothing on its {streams} streams runs at the same time"
    return f"{count(len(work), 'piece')} of work run one after the other on one stream"


def _longest_pair(work: Sequence[Span]) -> str:
    """The names of two spans on different streams that are at work together for longest."""
    best, pair = 0.0, (work[0], work[0])
    running: list[Span] = []
    for span in work:  # by start
        running = [other for other in running if other.end > span.start]
        for other in running:
            together = min(other.end, span.end) - span.start
            if together > best and other.stream != span.stream:
                best, pair = together, (other, span)
        running.append(span)
    one, other = (_name(span) for span in pair)
    return f"{one} and {other}" if one != other else f"two of {one}"


def _pauses(trace: Trace, work: Sequence[Span]) -> Iterator[str]:
    """Name the work that waited for another stream, and the longest pause of the device."""
    by_id = {span.id: span for span in work}
    pairs = ((by_id[i], late) for late in work for i in late.after if i in by_id)
    edges = [(a, b) for a, b in pairs if (a.device, a.stream) != (b.device, b.stream)]
    if edges:
        numbers = stream_numbers(work)
        # We tell the wait that most clearly held something up: what it waited for had just ended.
        early, late = min(edges, key=lambda edge: edge[1].start - edge[0].end)
        more = len({late.id for _, late in edges}) - 1
        also = f", and {count(more, 'more piece')} of work for other streams" if more else ""
        yield (
            f"on {stream_name(late, numbers)} {_name(late)} waits for {_name(early)} of "
            f"{stream_name(early, numbers)}{also}"
        )
    idle = [
        (end - start, start, end, name)
        for name, own in sorted(grouped(work, lambda span: span.device).items())
        for start, end in gaps(union((s.start, s.end) for s in own))
    ]
    if not idle:
        yield "the device never pauses between its first work and its last"
        return
    took, start, end, name = max(idle, key=itemgetter(0))
    first = next(span for span in work if span.start >= end and span.device == name)
    told = f"{duration(took)} from {duration(start)} on"
    yield f"the longest pause of the device, {told}, is before {_name(first)}"


def _lanes(trace: Trace) -> Iterator[str]:
    """Read out the lanes that a page has added: it did so to say something."""
    own = (span for span in trace if "lane" in span.detail)
    for lane, spans in grouped(own, lambda span: str(span.detail["lane"])).items():
        said = [f"{s.name} from {s.start:.1f} to {s.end:.1f}" for s in spans[:_STRETCHES]]
        more = len(spans) - len(said)
        also = f"; and {count(more, 'more piece')}" if more > 0 else ""
        yield f" Lane {lane}, in \u00b5s: {'; '.join(said)}{also}."


def _name(span: Span) -> str:
    return cut_output(span.title, NAME)
