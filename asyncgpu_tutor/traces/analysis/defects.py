"""The detective, and its list of suspects: one function each, from a trace to findings. Times in us."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from operator import itemgetter
from statistics import median

from asyncgpu_tutor.traces.analysis.finding import Finding
from asyncgpu_tutor.traces.analysis.idle import Evidence
from asyncgpu_tutor.traces.analysis.limits import limits
from asyncgpu_tutor.traces.spans import Span
from asyncgpu_tutor.traces.spans.intervals import length, union, within
from asyncgpu_tutor.traces.spans.notebook_output import NAME, cut
from asyncgpu_tutor.traces.spans.span import UNIFIED_MEMORY
from asyncgpu_tutor.traces.spans.vocabulary import count, some
from asyncgpu_tutor.traces.trace import Trace

_LOADING = 50.0  # us; a launch that takes longer has loaded something
_LOOP = 5  # allocations of one name that make a loop


def _null_stream(seen: Evidence) -> Iterable[Finding]:
    """Work on stream 0."""
    spans = [span for span in seen.device if span.stream == 0]
    if not spans:
        return
    others = {span.stream for span in seen.device if span.stream is not None and span.stream > 0}
    all_of_it = "" if others else " All of the work is there, so no two pieces of it overlap."
    yield Finding(
        "null stream",
        "Work on the null stream",
        f"{count(len(spans), 'piece')} of work ran on stream 0, CUDA's null stream, which waits for "
        "every stream that was not created as non-blocking, and lets each of them wait for it."
        + all_of_it,
        "Give the work a stream of its own: leave the choice to a policy, or call agt.create_stream(). In "
        "CuPy: with cupy.cuda.Stream(non_blocking=True).",
        _ids(spans),
    )


def _hidden_synchronisation(seen: Evidence) -> Iterable[Finding]:
    """The host waits although it has more to enqueue, and the device runs dry."""
    calls = seen.calls
    asked = [(calls[s.id].start, s) for s in seen.device if s.id in calls]
    asked.sort(key=itemgetter(0))
    busy = union((s.start, s.end) for s in seen.device)
    guilty: list[Span] = []
    idle: list[float] = []
    for wait in [*(span for span in seen.trace if span.kind == "wait"), *_held_by_a_copy(seen)]:
        index = bisect_left(asked, wait.end, key=lambda pair: pair[0])
        if index == len(asked):
            continue  # the last wait of a program is no defect
        later = asked[index][1]
        started = bisect_right(busy, wait.end, key=lambda interval: interval[0])
        before = busy[started - 1][1] if started else wait.start
        if before <= wait.start:
            continue  # the device was done by then, so the call returned at once
        if before <= later.start and _in_one_window(seen.trace, before, later.start):
            guilty.append(wait)
            idle.append(later.start - before)
    if guilty:
        names = _names(guilty)
        yield Finding(
            "hidden synchronisation",
            "The host waits in between",
            f"{count(len(guilty), 'time')} the host waited ({names}) before it asked for the next work, "
            f"and the device stood still for {math.fsum(idle):.1f} us in all until that came.",
            "Enqueue everything first and wait once: combine the operations with and_then, or await them "
            "together.",
            _ids(guilty),
            math.fsum(idle),
        )


def _held_by_a_copy(seen: Evidence) -> list[Span]:
    """Calls that returned only when their copy to the host was done: the driver waits inside of these."""
    copies = (span for span in seen.device if span.kind == "d2h" and span.detail.get("pageable"))
    pairs = ((seen.calls[span.id], span) for span in copies if span.id in seen.calls)
    return [call for call, span in pairs if call.start < span.end <= call.end]


def _in_one_window(trace: Trace, start: float, end: float) -> bool:
    """Between two windows of a range that repeats, nobody asked what happens."""
    windows = trace.windows
    return not windows or any(a <= start and end <= b for a, b in windows)


def _pageable_copy(seen: Evidence) -> Iterable[Finding]:
    """A copy from or to memory that is not pinned."""
    spans = [span for span in seen.device if span.detail.get("pageable")]
    if not spans:
        return
    held: list[float] = []
    queued: list[float] = []
    for span in spans:
        call, past = seen.calls.get(span.id), seen.before.get(span.id)
        if call is None:
            continue
        # Until the work before it was done, any copy would have had to wait, and the host with it.
        free = min(max(call.start, call.start if past is None else past.end), call.end)
        queued.append(free - call.start)
        held.append(call.end - free)
    waits = [s for s in seen.trace if s.kind == "wait" and "pageable" in s.name]
    held += [wait.duration for wait in waits]
    cost, behind = math.fsum(held), math.fsum(queued)
    rest = (
        f" ({behind:.1f} us more it stood behind earlier work of the stream.)"
        if behind > cost
        else ""
    )
    yield Finding(
        "pageable copy",
        "Copies of pageable memory",
        f"{count(len(spans), 'piece')} of work copied from or to pageable host memory: the driver "
        f"stages such bytes itself, and held the host up for {cost:.1f} us.{rest}",
        "Pin host arrays once, with agt.pin or agt.pinned, and reuse them. In CuPy: cupyx.empty_pinned, and "
        "array.get(out=..., blocking=False).",
        _ids([*spans, *waits]),
        cost,
    )


def _page_migration(seen: Evidence) -> Iterable[Finding]:
    """Pages of unified memory move when somebody touches them."""
    lane = (span for span in seen.device if span.stream == UNIFIED_MEMORY)
    spans = [span for span in lane if span.detail.get("why") != "prefetched"]
    if not spans:
        return
    sizes = (span.detail.get("bytes") for span in spans)
    moved = sum(size for size in sizes if isinstance(size, int))
    cost = length(union((s.start, s.end) for s in spans))
    yield Finding(
        "page migration",
        "Pages of unified memory move on demand",
        f"{count(len(spans), 'time')} pages moved between host and device when one of the two touched them: "
        f"{moved / 1e6:.1f} MB in {cost:.1f} us, while whoever touched them stood still.",
        "Copy whole arrays to the device instead (agt.h2d). In CUDA: cudaMemPrefetchAsync before the launch; "
        "in CuPy: cupy.cuda.runtime.memPrefetchAsync.",
        _ids(spans),
        cost,
    )


def _lazy_module_loading(seen: Evidence) -> Iterable[Finding]:
    """The first launch of a kernel takes far longer than those after it."""
    calls = [span for span in seen.trace if span.kind == "call"]
    loads = [span for span in calls if span.name.startswith("load ")]
    by_name: dict[str, list[Span]] = {}
    for span in calls:
        # Launches of graphs are left out: their kernels were loaded at the capture, and their length is that
        # of the graph.
        if span.name.startswith("launch ") and not span.name.startswith("launch graph "):
            by_name.setdefault(span.name, []).append(span)
    usual = median([s.duration for spans in by_name.values() for s in spans[1:]] or [0.0])
    for spans in by_name.values():
        rest = median([s.duration for s in spans[1:]] or [usual])
        if spans[0].duration > max(_LOADING, 8 * rest) and spans[0].duration - rest > _LOADING:
            loads.append(spans[0])
    if loads:
        cost = math.fsum(span.duration for span in loads)
        yield Finding(
            "lazy module loading",
            "Kernels are loaded while the clock runs",
            f"{count(len(loads), 'call')} ({_names(loads)}) loaded code, which took {cost:.1f} us: "
            "CUDA loads a module when it is first needed.",
            "Run the program once before it is timed or recorded.",
            _ids(loads),
            cost,
        )


def _allocation_in_the_loop(seen: Evidence) -> Iterable[Finding]:
    """The same array is allocated again and again, each time after the last one was done with."""
    ends: dict[int, float] = {}
    for span in seen.device:
        if span.op is not None:
            ends[span.op] = max(ends.get(span.op, 0.0), span.end)
    made: dict[str, list[Span]] = {}
    for span in seen.trace:
        if span.kind == "call" and span.name.startswith("malloc") and span.op is not None:
            made.setdefault(span.name, []).append(span)
    guilty: list[Span] = []
    for spans in made.values():
        again = [
            late
            for early, late in pairwise(spans)
            if early.op != late.op and early.op in ends and ends[early.op] <= late.start
        ]
        if len(again) >= _LOOP - 1:
            guilty += again
    if guilty:
        cost = math.fsum(span.duration for span in guilty)
        yield Finding(
            "allocation in the loop",
            "Arrays are allocated in a loop",
            f"{count(len(guilty), 'allocation')} ({_names(guilty)}) came when an earlier one of the same "
            f"name was not needed any more; they took the host {cost:.1f} us.",
            "Allocate once before the loop and lend the array to each round: x.borrow().",
            _ids(guilty),
            cost,
        )


def _too_few_streams(seen: Evidence) -> Iterable[Finding]:
    """Operations queue behind others on one stream, while the device has room."""
    if seen.trace.about.get("foreign"):
        return  # nobody knows which of its operations need each other
    device, calls = seen.device, seen.calls
    known = {span.id for span in device}
    # Where kernels that fill the device are at work, more streams would not help.
    full = union((s.start, s.end) for s in device if seen.fills.get(s.id, 0.0) >= 0.5)
    guilty: list[Span] = []
    lost: list[float] = []
    for span in device:
        past = seen.before.get(span.id)
        if past is None or span.op is None or past.op == span.op or past.op is None:
            continue
        if any(i in known and i != past.id for i in span.after):
            continue  # it also waits for another stream, so a stream of its own would not help
        ready = calls[span.id].end if span.id in calls else span.start
        room = max(past.end - ready, 0.0) - length(within(full, ready, past.end))
        if room > 0:
            guilty.append(span)
            lost.append(room)
    total = math.fsum(lost)
    makespan = seen.metrics.device_makespan
    if len(guilty) >= 2 and total > 0.1 * makespan:
        streams = len({(s.device, s.stream) for s in device})
        yield Finding(
            "too few streams",
            "Independent operations queue behind each other",
            f"{count(len(guilty), 'operation')} waited, on {count(streams, 'stream')}, behind an "
            f"operation that they do not depend on, for {total:.1f} us in all while the device had room.",
            "Use a policy with more streams, such as agt.StreamPoolRoundRobin(4). CUDA also maps streams "
            "to a limited number of hardware queues: see CUDA_DEVICE_MAX_CONNECTIONS.",
            _ids(guilty),
            total,
        )


def _one_big_kernel(seen: Evidence) -> Iterable[Finding]:
    """One launch has most of the device's time and fills it."""
    active = seen.metrics.device_active
    for span in (s for s in seen.device if s.kind == "kernel"):
        if span.duration >= 0.5 * active and seen.fills[span.id] >= 0.9:
            yield Finding(
                "one big kernel",
                "One kernel is nearly everything",
                f"{cut(span.name, NAME)} ran for {span.duration:.1f} us of the {active:.1f} us in which the "
                "device worked, and its blocks fill the device: nothing can run beside it.",
                "Streams do not help here. Make the kernel itself faster (agt.microscope), or split its work "
                "into batches whose copies can overlap with it.",
                (span.id,),
                span.duration,
            )
            return


def _ids(spans: Iterable[Span]) -> tuple[int, ...]:
    return tuple(sorted({span.id for span in spans}))


def _names(spans: Sequence[Span]) -> str:
    return some(list(dict.fromkeys(cut(span.name, NAME) for span in spans)), 4)


_DETECTORS: tuple[Callable[[Evidence], Iterable[Finding]], ...] = (
    _null_stream,
    _hidden_synchronisation,
    _pageable_copy,
    _page_migration,
    _lazy_module_loading,
    _allocation_in_the_loop,
    _too_few_streams,
    _one_big_kernel,
)


def diagnose(trace: Trace) -> list[Finding]:
    """Go through the detective's list, and say what the trace gives evidence for.

    Parameters
    ----------
    trace : Trace
        Of a program that was warmed up, or the loading of its kernels is what will be found.

    Returns
    -------
    list of Finding
        Defects first, then what limits the program (`Finding.limit`); what costs most comes first. Empty
        where nothing was found, which is no proof of innocence. Several devices are looked at one by one.

    Examples
    --------
    >>> import asyncgpu_tutor as agt
    >>> with agt.record() as trace:
    ...     _ = agt.zeros((4,)).sync_on(agt.current_device().default_stream)
    >>> [finding.name for finding in agt.diagnose(trace)]
    ['null stream']
    """
    several = len(trace.devices) > 1
    parts = [trace.of(name) for name in trace.devices] if several else [trace]
    return [found for part in parts for found in findings(Evidence(part))]


def findings(seen: Evidence) -> list[Finding]:
    """See `diagnose`."""
    defects = [finding for detect in _DETECTORS for finding in detect(seen)]
    limited = limits(seen, defects) if seen.device else ()
    return sorted([*defects, *limited], key=lambda finding: (finding.limit, -finding.cost))
