"""The detective, and its list of suspects: one function each, from a trace to findings. Times in us."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from operator import attrgetter
from statistics import median

from asyncgpu_tutor.traces.analysis.finding import Finding
from asyncgpu_tutor.traces.analysis.idle import Evidence
from asyncgpu_tutor.traces.analysis.limits import limits
from asyncgpu_tutor.traces.spans.intervals import Interval, length, minus, union
from asyncgpu_tutor.traces.spans.notebook_output import NAME, cut_output
from asyncgpu_tutor.traces.spans.span import UNIFIED_MEMORY, Span, grouped
from asyncgpu_tutor.traces.spans.vocabulary import count, in_us, some

_LOADING = 50.0  # us; a launch that takes longer has loaded something
# us: a wait may return before the end of its work, as the clock of the device has it: by 5 us in our
# recordings.
_CLOCK = 10.0
_WAKING = 50_000.0  # us: no first launch takes as long that only loads its kernel
_SMALL = 0.01  # of the time: what costs no more comes last
_LOOP = 5  # allocations of one name that make a loop


def _null_stream(seen: Evidence) -> Iterable[Finding]:
    """Work on stream 0."""
    spans = [span for span in seen.device if span.stream == 0]
    if not spans:
        return
    others = {span.stream for span in seen.device if span.stream is not None and span.stream > 0}
    all_of_it = "" if others else " All of the work is there, so no two pieces of it overlap."
    waited = [stretch for span, stretch in _queued(seen) if span.stream == 0] if others else []
    yield seen.finding(
        "null stream",
        f"{count(len(spans), 'piece')} of work ran on stream 0, CUDA's null stream, which waits for "
        "every stream that was not created as non-blocking, and lets each of them wait for it."
        + all_of_it,
        spans,
        length(union(waited)),
    )


def _queued(seen: Evidence) -> Iterable[tuple[Span, Interval]]:
    """Work that stood behind another operation on its stream, and nothing else, with the time of that."""
    known = {span.id for span in seen.device}
    for span in () if seen.trace.about.get("foreign") else seen.device:
        past, call = seen.before.get(span.id), seen.calls.get(span.id)
        if past is None or None in {span.op, past.op} or past.op == span.op:
            continue
        if not any(i in known and i != past.id for i in span.after):
            yield span, (call.end if call else span.start, past.end)


def _hidden_synchronisation(seen: Evidence) -> Iterable[Finding]:
    """The host waits although it has more to enqueue, and the device runs dry."""
    waits = [span for span in seen.trace if span.kind == "wait"]
    # Inside of a call for a copy to pageable memory the driver waits, too.
    copies = [s for s in seen.device if s.kind == "d2h" and s.detail.get("pageable")]
    pairs = ((seen.calls[span.id], span) for span in copies if span.id in seen.calls)
    waits += [call for call, span in pairs if call.start < span.end <= call.end]
    waits.sort(key=attrgetter("end"))
    guilty: list[Span] = []
    pauses, saved = list[Interval](), list[Interval]()
    for gap in seen.gaps:
        call = seen.calls.get(gap.parts[-1].span.id)
        if call is None:
            continue
        # The device ran dry while the host waited, and what came next was asked for after that. The last wait
        # of a program is no defect, and one for a device that was done by then returned at once.
        first = bisect_left(waits, gap.start - _CLOCK, key=attrgetter("end"))
        last = bisect_right(waits, call.start, key=attrgetter("end"))
        found = [wait for wait in waits[first:last] if wait.start < gap.start]
        if found:
            guilty.append(found[0])
            # Without the wait the host would have been so much earlier, and no more.
            waited = max(wait.duration for wait in found)
            saved.append((max(gap.start, gap.end - waited), gap.end))
            pauses.append((gap.start, gap.end))
    cost = seen.claim(saved)
    seen.after_waits = pauses
    if cost:
        yield seen.finding(
            "hidden synchronisation",
            f"The host waited {count(len(guilty), 'time')} ({_names(guilty)}) before it asked for the next "
            f"work, so the device stood still for {in_us(cost)} in all.",
            guilty,
            cost,
        )


def _pageable_copy(seen: Evidence) -> Iterable[Finding]:
    """A copy from or to memory that is not pinned."""
    spans = [span for span in seen.device if span.detail.get("pageable")]
    if not spans:
        return
    waits = [s for s in seen.trace if s.kind == "wait" and "pageable" in s.name]
    held = [(wait.start, wait.end) for wait in waits]
    began = min(span.start for span in seen.work)  # before, the call has started up CUDA itself
    for span in spans:
        call, past = seen.calls.get(span.id), seen.before.get(span.id)
        if call is not None:
            # Until the work before it was done, any copy would have had to wait, and the host with it.
            free = max(call.start, began) if past is None else max(call.start, past.end)
            held.append((free, call.end))
    cost = length(union(held))
    yield seen.finding(
        "pageable copy",
        f"{count(len(spans), 'piece')} of work copied from or to pageable host memory: the driver "
        f"stages such bytes itself, and held the host up for {in_us(cost)}.",
        [*spans, *waits],
        cost,
    )


def _page_migration(seen: Evidence) -> Iterable[Finding]:
    """Pages of unified memory move when somebody touches them."""
    lane = (span for span in seen.device if span.stream == UNIFIED_MEMORY)
    spans = [span for span in lane if span.detail.get("why") != "prefetched"]
    if not spans:
        return
    moved = sum(size for s in spans if isinstance(size := s.detail.get("bytes"), int))
    cost = length(union((s.start, s.end) for s in spans))
    yield seen.finding(
        "page migration",
        f"Pages moved between host and device {count(len(spans), 'time')}, because one of the two touched "
        f"them: {moved / 1e6:.1f} MB in {in_us(cost)}, during which that one stood still.",
        spans,
        cost,
    )


def _lazy_module_loading(seen: Evidence) -> Iterable[Finding]:
    """The first launch of a kernel takes far longer than those after it."""
    calls = [span for span in seen.trace if span.kind == "call"]
    loads = [span for span in calls if span.name.startswith("load ")]
    begun = min(calls, key=attrgetter("start"), default=None)
    # Launches of graphs are left out: their kernels were loaded at the capture, and their length is that of
    # the graph.
    launches = (s for s in calls if s.name.startswith("launch "))
    of_kernels = (s for s in launches if not s.name.startswith("launch graph "))
    by_name = grouped(of_kernels, lambda span: span.name)
    usual = median([s.duration for spans in by_name.values() for s in spans[1:]] or [0.0])
    for spans in by_name.values():
        rest = median([s.duration for s in spans[1:]] or [usual])
        if spans[0] is begun and spans[0].duration > _WAKING:
            continue  # it has started CUDA
        if spans[0].duration > max(_LOADING, 8 * rest) and spans[0].duration - rest > _LOADING:
            loads.append(spans[0])
    cost = seen.claim((span.start, span.end) for span in loads)
    if cost > _LOADING:
        yield seen.finding(
            "lazy module loading",
            f"{count(len(loads), 'call')} ({_names(loads)}) loaded code, and the device stood still for "
            f"{in_us(cost)} of that: CUDA loads a module when it is first needed.",
            loads,
            cost,
        )


def _allocation_in_the_loop(seen: Evidence) -> Iterable[Finding]:
    """The same array is allocated again and again, each time after the last one was done with."""
    ends: dict[int | None, float] = {}
    for span in seen.device:
        if span.op is not None:
            ends[span.op] = max(ends.get(span.op, 0.0), span.end)
    calls = (s for s in seen.trace if s.kind == "call" and s.op is not None)
    made = (span for span in calls if span.name.startswith("malloc"))
    guilty: list[Span] = []
    for spans in grouped(made, lambda span: span.name).values():
        pairs = ((a, b) for a, b in pairwise(spans) if a.op != b.op and a.op in ends)
        again = [late for early, late in pairs if ends[early.op] <= late.start]
        if len(again) >= _LOOP - 1:
            guilty += again
    if guilty:
        took = math.fsum(span.duration for span in guilty)
        yield seen.finding(
            "allocation in the loop",
            f"{count(len(guilty), 'allocation')} ({_names(guilty)}) came when an earlier one of the same "
            f"name was not needed any more; they took the host {in_us(took)}.",
            guilty,
            seen.claim((span.start, span.end) for span in guilty),
        )


def _too_few_streams(seen: Evidence) -> Iterable[Finding]:
    """Operations queue behind others on one stream, while the device has room."""
    # Where kernels that fill the device are at work, more streams would not help.
    kernels = (s for s in seen.device if s.kind == "kernel")
    full = union((s.start, s.end) for s in kernels if seen.fills[s.id][0] >= 0.5)
    found = [(s, parts) for s, stretch in _queued(seen) if (parts := minus(union([stretch]), full))]
    total = length(union(part for _, parts in found for part in parts))
    if len(found) >= 2 and total > 0.1 * seen.metrics.device_makespan:
        streams = len({(s.device, s.stream) for s in seen.device})
        yield seen.finding(
            "too few streams",
            f"{count(len(found), 'operation')} waited, on {count(streams, 'stream')}, behind an "
            f"operation that they do not depend on, for {in_us(total)} in which the device had room.",
            [span for span, _ in found],
            total,
        )


def _one_big_kernel(seen: Evidence) -> Iterable[Finding]:
    """One launch has most of the device's time and fills it."""
    active = seen.metrics.device_active
    for span in (s for s in seen.device if s.kind == "kernel"):
        if span.duration >= 0.5 * active and seen.fills[span.id][0] >= 0.9:
            yield seen.finding(
                "one big kernel",
                f"{cut_output(span.name, NAME)} ran for {in_us(span.duration)} of the {in_us(active)} in "
                "which the device worked, and its blocks fill the device: nothing can run beside it.",
                [span],
                span.duration,
            )
            return


def _names(spans: Sequence[Span]) -> str:
    return some(list(dict.fromkeys(cut_output(span.name, NAME) for span in spans)), 4)


# In the order in which they may claim idle time: the first one knows its cause best.
_DETECTORS: tuple[Callable[[Evidence], Iterable[Finding]], ...] = (
    _lazy_module_loading,
    _allocation_in_the_loop,
    _hidden_synchronisation,
    _pageable_copy,
    _page_migration,
    _too_few_streams,
    _one_big_kernel,
    _null_stream,
)


def findings(seen: Evidence) -> list[Finding]:
    """The findings on one device; see `diagnose`."""
    found = [finding for detect in _DETECTORS for finding in detect(seen)]
    return [*found, *limits(seen, found)]


def ranked(found: Iterable[Finding], whole: float) -> tuple[Finding, ...]:
    """What costs most comes first, and last what costs next to nothing of the `whole` time, in us."""
    return tuple(sorted(found, key=lambda f: (f.cost <= _SMALL * whole, -f.cost, f.limit)))
