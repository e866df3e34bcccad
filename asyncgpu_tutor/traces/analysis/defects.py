"""The detective, and its list of suspects: one function each, from a trace to findings. Times in us."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from statistics import median
from typing import cast

from asyncgpu_tutor.traces.analysis.finding import Finding
from asyncgpu_tutor.traces.analysis.idle import calls_of
from asyncgpu_tutor.traces.spans import Span
from asyncgpu_tutor.traces.spans.intervals import length, union, within
from asyncgpu_tutor.traces.spans.path import stream_predecessors
from asyncgpu_tutor.traces.spans.vocabulary import count
from asyncgpu_tutor.traces.trace import Trace

__all__ = ["diagnose"]

_LOADING = 50.0  # us; a launch that takes longer has loaded something
_LOOP = 5  # allocations of one name that make a loop
# Of an H200: 132 SMs with 2048 threads each (CUDA C++ Programming Guide, "Technical specifications per
# compute capability"). Taken where a trace does not say how many threads its device runs at once.
_THREADS = 132 * 2048


def _null_stream(trace: Trace) -> Iterable[Finding]:
    """Work on stream 0."""
    spans = [span for span in trace.device_spans if span.stream == 0]
    if spans:
        yield Finding(
            "null stream",
            "Work on the null stream",
            f"{count(len(spans), 'piece')} of work ran on stream 0, CUDA's null stream, which waits for "
            "every stream that was not created as non-blocking, and lets each of them wait for it.",
            "Give the work a stream of its own: leave the choice to a policy, or call "
            "agt.create_stream().",
            _ids(spans),
        )


def _hidden_synchronisation(trace: Trace) -> Iterable[Finding]:
    """The host waits although it has more to enqueue, and the device runs dry."""
    calls = calls_of(trace)
    asked = [(calls[s.id].start, s) for s in trace.device_spans if s.id in calls]
    asked.sort(key=lambda pair: (pair[0], pair[1].id))
    busy = union((s.start, s.end) for s in trace.device_spans)
    guilty: list[Span] = []
    idle: list[float] = []
    for wait in (span for span in trace if span.kind == "wait"):
        index = bisect_left(asked, wait.end, key=lambda pair: pair[0])
        if index == len(asked):
            continue  # the last wait of a program is no defect
        later = asked[index][1]
        started = bisect_right(busy, wait.end, key=lambda interval: interval[0])
        before = busy[started - 1][1] if started else wait.end
        if before <= later.start:
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


def _pageable_copy(trace: Trace) -> Iterable[Finding]:
    """A copy from or to memory that is not pinned."""
    spans = [span for span in trace.device_spans if span.detail.get("pageable")]
    if spans:
        calls = calls_of(trace)
        held = math.fsum(calls[s.id].duration for s in spans if s.id in calls)
        waits = [s for s in trace if s.kind == "wait" and "pageable" in s.name]
        held += math.fsum(wait.duration for wait in waits)
        yield Finding(
            "pageable copy",
            "Copies of pageable memory",
            f"{count(len(spans), 'piece')} of work copied from or to pageable host memory: the driver "
            f"stages such bytes itself, and held the host up for {held:.1f} us.",
            "Pin host arrays once, with agt.pin or agt.pinned, and reuse them.",
            _ids([*spans, *waits]),
            held,
        )


def _lazy_module_loading(trace: Trace) -> Iterable[Finding]:
    """The first launch of a kernel takes far longer than those after it."""
    calls = [span for span in trace if span.kind == "call"]
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


def _allocation_in_the_loop(trace: Trace) -> Iterable[Finding]:
    """The same array is allocated again and again, each time after the last one was done with."""
    ends: dict[int, float] = {}
    for span in trace.device_spans:
        if span.op is not None:
            ends[span.op] = max(ends.get(span.op, 0.0), span.end)
    made: dict[str, list[Span]] = {}
    for span in trace:
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


def _too_few_streams(trace: Trace) -> Iterable[Finding]:
    """Operations queue behind others on one stream, while the device has room."""
    device = trace.device_spans
    calls = calls_of(trace)
    before = stream_predecessors(device)
    known = {span.id for span in device}
    # Where kernels that fill the device are at work, more streams would not help.
    full = union(
        (s.start, s.end) for s in device if s.kind == "kernel" and _fill_of(s, trace) >= 0.5
    )
    guilty: list[Span] = []
    lost: list[float] = []
    for span in device:
        past = before.get(span.id)
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
    makespan = trace.metrics().device_makespan
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


def _one_big_kernel(trace: Trace) -> Iterable[Finding]:
    """One launch has most of the device's time and fills it."""
    active = trace.metrics().device_active
    for span in (s for s in trace.device_spans if s.kind == "kernel"):
        if span.duration >= 0.5 * active and _fill_of(span, trace) >= 0.9:
            yield Finding(
                "one big kernel",
                "One kernel is nearly everything",
                f"{span.name} ran for {span.duration:.1f} us of the {active:.1f} us in which the device "
                "worked, and its blocks fill the device: nothing can run beside it.",
                "Streams do not help here. Make the kernel itself faster (agt.microscope), or split its work "
                "into batches whose copies can overlap with it.",
                (span.id,),
                span.duration,
            )
            return


def _fill_of(span: Span, trace: Trace) -> float:
    """Which part of the device's thread slots a kernel's blocks need, at most 1.

    A simulated device says so itself. Elsewhere it is the number of threads over that of the slots, which
    leaves out that registers and shared memory also limit how many blocks fit.
    """
    fills = span.detail.get("fills")
    if isinstance(fills, int | float):
        return min(float(fills), 1.0)
    threads = math.prod(_three(span, "grid")) * math.prod(_three(span, "block"))
    slots = trace.about.get("threads_at_once")
    return min(threads / (slots if isinstance(slots, int) and slots > 0 else _THREADS), 1.0)


def _three(span: Span, key: str) -> list[int]:
    given = span.detail.get(key)
    if not isinstance(given, list | tuple):
        return [0]
    return [part for part in cast(list[object], given) if isinstance(part, int)] or [0]


def _ids(spans: Iterable[Span]) -> tuple[int, ...]:
    return tuple(sorted({span.id for span in spans}))


def _names(spans: Sequence[Span]) -> str:
    names = list(dict.fromkeys(span.name for span in spans))
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


_DETECTORS: tuple[Callable[[Trace], Iterable[Finding]], ...] = (
    _null_stream,
    _hidden_synchronisation,
    _pageable_copy,
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
        What costs most comes first. Empty where nothing was found, which is no proof of innocence.

    Examples
    --------
    >>> import asyncgpu_tutor as agt
    >>> with agt.record() as trace:
    ...     _ = agt.zeros((4,)).sync_on(agt.current_device().default_stream)
    >>> [finding.name for finding in agt.diagnose(trace)]
    ['null stream']
    """
    found = [finding for detect in _DETECTORS for finding in detect(trace)]
    return sorted(found, key=lambda finding: -finding.cost)
