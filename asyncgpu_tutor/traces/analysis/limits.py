"""The second half of the detective's list: what limits a program, be it without a fault. Times in us."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from statistics import median

from asyncgpu_tutor.traces.analysis.finding import Finding
from asyncgpu_tutor.traces.analysis.idle import CAUSE_WORDS, Evidence
from asyncgpu_tutor.traces.spans.intervals import common_time, length, minus, union
from asyncgpu_tutor.traces.spans.notebook_output import NAME, cut_output
from asyncgpu_tutor.traces.spans.span import UNIFIED_MEMORY, Span, by_number, grouped
from asyncgpu_tutor.traces.spans.vocabulary import count, in_us, some
from asyncgpu_tutor.traces.trace import Trace

_IDLE = 0.5  # of the device's time: less than that is idle for other reasons than a host that cannot keep up
_LATE = 0.6  # of that idle time; the rest is mostly what a launch takes to start
_MANY = 3  # pauses: one or two long ones are gaps, and the host is not the limit elsewhere
_LONG = 0.1  # of the device's time: a pause as long as this is a gap of its own
_SUM = 0.25  # of the device's time: less than that in long pauses is not worth a finding
_LISTED = 12  # kernels that leave it empty
_FEW = 0.25  # of the device's threads: fewer leave most of it empty
_EXPOSED = 0.1  # of the device's time: what costs less than that limits no program
_SHORT = 10.0  # us: a kernel that a launch takes as long as
_GATHERED = frozenset(("kernel", "d2d", "memset"))
_RUN = 10  # of these, one after the other, that nobody waits for: worth a graph
_NODE = 1.0  # us between two nodes of a graph: an H200 took 0.9 for a step of a graph of 200
_CALL = 100.0  # us: in a longer pause the host does more than to launch
_WAKING = 10_000.0  # us: a start of CUDA takes longer


def limits(seen: Evidence, defects: Sequence[Finding]) -> Iterator[Finding]:
    """Name the limits of the program that no defect explains, and the kernels if they take longest."""
    others = list(_other_limits(seen)) if seen.device else []
    known = [*defects, *others]
    if not {"one big kernel", "low utilisation"}.intersection(one.name for one in known):
        most = max((one.cost for one in known if one.name != "start of CUDA"), default=0.0)
        others += _kernel_bound(seen, most)
    yield from (replace(one, limit=True) for one in others)


def _other_limits(seen: Evidence) -> Iterable[Finding]:
    pauses = union((g.start, g.end) for g in seen.gaps)
    after = union(seen.after_waits)  # whose cause is the wait, for a host that cannot keep up
    explained = length(pauses) - length(common_time(pauses, minus(seen.unclaimed, after)))
    if seen.metrics.device_idle >= _EXPOSED * seen.metrics.device_makespan > 0.0:
        yield from list(_host_bound(seen, explained)) or _gaps(seen)
        yield from _small_kernels(seen)
    yield from _low_utilisation(seen)
    yield from _exposed(seen)
    yield from _start_of_cuda(seen)


def _host_bound(seen: Evidence, explained: float) -> Iterable[Finding]:
    """The host cannot ask for work as fast as the device does it."""
    m, parts = seen.metrics, seen.host_late
    late = parts["CUDA call"] + parts["own code"]
    of_host = [g for g in seen.gaps if g.main.cause == "host late"]
    waits = [g for g in of_host if g.duration < _LONG * m.device_makespan]
    if (
        m.device_idle < _IDLE * m.device_makespan
        or late < _LATE * m.device_idle
        or len(of_host) < _MANY
        or math.fsum(g.duration for g in waits) < _SUM * m.device_makespan
        or explained > 0.5 * m.device_idle
    ):
        return
    told = ", ".join(f"{in_us(us)} {_DOING[part]}" for part, us in parts.items() if us)
    yield seen.finding(
        "host-bound",
        f"The device worked for {m.device_active / m.device_makespan:.0%} of its time: in "
        f"{math.fsum(parts.values()):,.0f} of its {in_us(m.device_idle)} of pauses the host had not asked "
        f"for more ({told}).",
        [g.main.span for g in waits],
        late,
    )


_DOING = {"CUDA call": "inside of CUDA calls", "waiting": "waiting", "own code": "in its own code"}


def _gaps(seen: Evidence) -> Iterable[Finding]:
    """Pauses that no defect explains, and that are no start of work: a few long ones, or many."""
    m = seen.metrics
    rest = [
        (gap, us)
        for gap in seen.gaps
        if (us := length(common_time(seen.unclaimed, [(gap.start, gap.end)])))
        and gap.main.cause not in {"start-up", "page"}
    ]
    total = math.fsum(us for _, us in rest)
    if len(rest) < _MANY or total < _EXPOSED * m.device_makespan:
        return
    worst, main = rest[0][0], rest[0][0].main
    yield seen.finding(
        "gaps",
        f"{count(len(rest), 'pause')} of {in_us(total)} in all, of {in_us(m.device_makespan)}. The longest, "
        f"{in_us(worst.duration)}, ended at {in_us(worst.end)} with {cut_output(main.span.name, NAME)}; its "
        f"main cause: {main.cause} ({CAUSE_WORDS[main.cause]}).",
        [gap.main.span for gap, _ in rest[:_LISTED]],
        total,
    )


def _small_kernels(seen: Evidence) -> Iterable[Finding]:
    """Many short kernels in a row, with nobody waiting between them, and a pause before each."""
    pauses = {gap.main.span.id: gap.duration for gap in seen.gaps}
    ends = sorted(span.end for span in seen.trace if span.kind == "wait")
    runs, passed = list[list[Span]](), -1
    for span in seen.line:
        call, passing = seen.calls.get(span.id), -1
        short = span.duration <= _SHORT and span.kind in _GATHERED
        if call and short and "node" not in span.detail:
            passing = bisect_right(ends, call.start)
            runs += [[]] if passing != passed else []
            runs[-1].append(span)
        passed = passing
    runs = [run for run in runs if len(run) >= _RUN]
    gathered = [span for run in runs for span in run[1:]]
    late = (us for span in gathered if (us := pauses.get(span.id, 0.0)) < _CALL)
    cost = math.fsum(max(0.0, us - _NODE) for us in late)
    if gathered and cost >= _EXPOSED * seen.metrics.device_makespan:
        usual = median(span.duration for span in gathered)
        yield seen.finding(
            "small kernels",
            f"{count(len(gathered), 'piece')} of work of {in_us(usual)} (the median) followed one another in "
            f"{count(len(runs), 'group')} with no wait inside, each launched by itself, and the device "
            f"paused for {in_us(cost)} between them: most of that would be gone in a graph.",
            gathered,
            cost,
        )


def _low_utilisation(seen: Evidence) -> Iterable[Finding]:
    """Kernels are at work for most of the time, and most of the device has nothing to do."""
    kernels = [s for s in seen.device if s.kind == "kernel" and s.detail.get("grid")]
    m = seen.metrics
    busy = math.fsum(s.duration for s in kernels)
    if not busy or busy < 0.5 * m.device_active or m.device_active < _IDLE * m.device_makespan:
        return
    # Kernels that run together fill the device together.
    sums = (math.fsum(seen.fills[s.id][i] * s.duration for s in kernels) for i in (0, 1))
    filled, whole = (min(us / m.device_active, 1.0) for us in sums)
    if whole >= _FEW:  # which is never less
        return
    small = sorted(kernels, key=lambda s: -s.duration)[:_LISTED]
    grids = {
        s.name: f"{cut_output(s.name, NAME)} has a grid of {s.detail['grid']}" for s in small[::-1]
    }
    told = some(list(grids.values())[::-1], 2)
    yield seen.finding(
        "low utilisation",
        f"While it works, the device runs {filled:.1%} of the threads that it has room for: {told}.",
        small,
        (1 - whole) * length(union((s.start, s.end) for s in kernels)),
    )


def _exposed(seen: Evidence) -> Iterable[Finding]:
    """Copies, or the collectives of NCCL, run for long while nothing computes."""
    talk = [s for s in seen.device if s.talks and s.kind == "kernel"]
    moves = (s for s in seen.device if s.kind in {"h2d", "d2h", "peer"})
    copies = [s for s in moves if s.stream != UNIFIED_MEMORY]
    if not talk and not copies:
        return
    computing = (s for s in seen.device if s.kind in {"kernel", "graph"} and not s.talks)
    others = union((s.start, s.end) for s in computing)
    late = sorted({last.device for _, last in seen.waited}, key=by_number)
    waited = union((s.start, min(s.end, last.start)) for s, last in seen.waited)
    enough = _EXPOSED * seen.metrics.device_makespan
    for name, spans, times, what in (
        ("exposed copies", copies, None, "copied between host and device"),
        ("waiting for a GPU", talk, waited, f"waited in collectives for {', '.join(late)}"),
        ("exposed communication", talk, None, "exchanged data with other devices"),
    ):
        alone = minus(union((s.start, s.end) for s in spans), others)
        alone = common_time(alone, times) if times is not None else minus(alone, waited)
        if (cost := length(alone)) >= enough > 0.0:
            guilty = [s for s in spans if common_time(alone, [(s.start, s.end)])]
            yield seen.finding(
                name,
                f"For {in_us(cost)} of {in_us(seen.metrics.device_makespan)} the device {what} "
                f"({count(len(guilty), 'piece')} of work), and no other kernel ran.",
                guilty,
                cost,
            )


def ranks(trace: Trace) -> dict[str, list[tuple[Span, Span]]]:
    """For each device its collectives that began before the last device had come, with that one's.

    The first of a name on one device belongs to the first of that name on each other. Where their counts
    differ, or two that belong together did not run together, nobody knows which belong together.
    """
    talk = [s for s in trace.device_spans if s.talks and s.kind == "kernel"]
    talk.sort(key=attrgetter("start"))
    found: dict[str, list[tuple[Span, Span]]] = {}
    for spans in grouped(talk, lambda span: span.name).values():
        lines = grouped(spans, lambda span: span.device)
        if len(lines) < 2 or len({len(line) for line in lines.values()}) > 1:
            continue
        for together in zip(*lines.values(), strict=True):
            last = max(together, key=attrgetter("start"))
            if last.start <= min(span.end for span in together):
                for span in (span for span in together if span is not last):
                    found.setdefault(span.device, []).append((span, last))
    return found


def _start_of_cuda(seen: Evidence) -> Iterable[Finding]:
    """The calls before the first work take longer than the device works, as in a program that does little."""
    began = seen.busy[0][0] if seen.busy else 0.0
    late = began > seen.metrics.device_makespan
    first = [s for s in seen.trace if s.kind == "call" and s.start < began] if late else []
    cost = length(common_time(union((s.start, s.end) for s in first), [(-math.inf, began)]))
    if cost > max(_WAKING, seen.metrics.device_makespan):
        longest = max(first, key=attrgetter("duration"))
        yield seen.finding(
            "start of CUDA",
            f"Calls of CUDA took {in_us(cost)} before the device began to work, for "
            f"{in_us(length(seen.busy))}. The longest is {cut_output(longest.name, NAME)}, "
            f"{in_us(longest.duration)}: the first calls of a process start CUDA.",
            first,
            cost,
        )


def _kernel_bound(seen: Evidence, most: float) -> Iterable[Finding]:
    """Kernels take longer than `most`, which is what anything else costs at most."""
    kernels = [s for s in seen.line if s.kind == "kernel" and not s.talks]
    alone = len(kernels) == len(seen.line)
    ran = length(seen.busy if alone else union((s.start, s.end) for s in kernels))
    if ran <= most or ran < 0.5 * seen.metrics.device_makespan:
        return
    sums: dict[str, float] = {}
    for span in kernels:
        sums[span.name] = sums.get(span.name, 0.0) + span.end - span.start
    top = max(sums, key=lambda name: sums[name])
    spans = [span for span in kernels if span.name == top]
    own = length(union((s.start, s.end) for s in spans))
    yield seen.finding(
        "kernel-bound",
        f"Kernels ran for {in_us(ran)} of {in_us(seen.metrics.device_makespan)}. Most of it is "
        f"{cut_output(top, NAME)}: {in_us(own)} in {count(len(spans), 'piece')}.",
        spans[:_LISTED],
        own,
    )
