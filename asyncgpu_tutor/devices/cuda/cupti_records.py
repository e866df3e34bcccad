"""CUPTI's records, as far as a trace needs them: on the host's clock, and given to what asked for them."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from asyncgpu_tutor.traces.spans import Draft, SpanKind, call_name
from asyncgpu_tutor.traces.spans.cuda_calls import WAITS, other_call, wait_name
from asyncgpu_tutor.traces.spans.kernel_names import kernel_name

OTHERS = 1000  # streams of other libraries are numbered from here on

PAGEABLE = 1  # CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE
# CUpti_ActivityMemcpyKind; others stay within.
_COPIES: Mapping[int, SpanKind] = {1: "h2d", 2: "d2h"}


@dataclass(frozen=True, slots=True)
class CuptiActivity:
    """One kernel, copy or fill, as CUPTI reports it."""

    kind: SpanKind  # that of its span
    correlation: int  # CUPTI's number of the call that enqueued it
    start: int  # by CUPTI's clock, in ns; 0 where it did not find out
    end: int  # the same
    name: str = ""  # of a kernel, as the compiler gave it: mangled, if it is C++
    node: int = 0  # CUPTI's number of the node of a graph that it was
    pageable: bool = False  # whether it copied from or to memory that is not pinned
    device: int = 0  # where it ran, as CUPTI counts
    stream: int = 0

    @property
    def timed(self) -> bool:
        """True if its times are known."""
        return self.start > 0 and self.end > 0


@dataclass(frozen=True, slots=True)
class CuptiApiRecord:
    """One call of the host into CUDA, as CUPTI reports it: its name, its times in ns, its thread."""

    name: str
    correlation: int
    start: int
    end: int
    thread: int = 0


def activity_of(activity: Any, kind: SpanKind | None) -> CuptiActivity:
    """A record of CUPTI's; `kind` is None for a copy, whose direction it says itself.

    What is needed of it is read at once: the memory that it lies in is CUPTI's.
    """
    node = int(activity.graph_node_id)
    pageable = False
    if kind is None:
        kind = _COPIES.get(int(activity.copy_kind), "d2d")
        pageable = PAGEABLE in (activity.src_kind, activity.dst_kind)
    return CuptiActivity(
        kind,
        int(activity.correlation_id),
        int(activity.start),
        int(activity.end),
        str(activity.name) if kind == "kernel" else "",
        node,
        pageable,
        int(activity.device_id),
        int(activity.stream_id),
    )


def called(activity: Any, name: str) -> CuptiApiRecord:
    """A record of CUPTI's of a call, read at once as in `activity_of`."""
    return CuptiApiRecord(
        name,
        int(activity.correlation_id),
        int(activity.start),
        int(activity.end),
        int(activity.thread_id),
    )


# ------------------------------------------------------------------ clocks
@dataclass(frozen=True, slots=True)
class Anchor:
    """One moment on both clocks: CUPTI's in ns, the host's in us; and how sure that is, in us."""

    theirs: int
    ours: float
    uncertainty: float


@dataclass(frozen=True, slots=True)
class ClockFit:
    """From CUPTI's clock to the host's: straight between two anchors, and parallel outside."""

    first: Anchor
    last: Anchor

    @property
    def drift(self) -> float:
        """Time in us by which the host's clock went further between the anchors."""
        return (self.last.ours - self.first.ours) - (self.last.theirs - self.first.theirs) / 1e3

    @property
    def uncertainty(self) -> float:
        """Bound in us on the error of a time."""
        return self.first.uncertainty + self.last.uncertainty + abs(self.drift)

    def us(self, timestamp: int) -> float:
        """A time of CUPTI's, in ns, on the host's clock, in us.

        Its clock counts from 1970, and a float of so many us would tell quarters of one only: so what is
        converted is the time since the first anchor.
        """
        since, length = timestamp - self.first.theirs, self.last.theirs - self.first.theirs
        part = min(max(since / length, 0.0), 1.0) if length > 0 else 0.0
        return self.first.ours + since / 1e3 + self.drift * part


def late_by(pieces: Iterable[tuple[float, float]]) -> float:
    """Delay in us of all pieces of work that lets none start before it was asked for.

    Of each piece it gets when that started, and when the host began to ask for it, on one clock. Mostly 0.
    Now and then CUPTI places a recording, or the rest of one, some us too early, although its own clock and
    the host's agree: 2 to 4 us in three recordings that were looked at (H200, driver 580.159, cupti-python
    13.0.1, 2026-11-21; a few of ten thousand, with other processes on the GPU). To cut a piece off where it
    was called, as if that one alone were wrong, would leave nothing of a short one.
    """
    return max((called - start for start, called in pieces if start < called), default=0.0)


# ------------------------------------------------------------------ who asked for it
def drafts_of_others(
    records: Iterable[CuptiActivity],
    calls: Iterable[CuptiApiRecord],
    streams: Mapping[int, int],
    numbers: Iterator[int],
    enqueuing: Collection[int] = (),
    named: Mapping[int, str] | None = None,
) -> list[tuple[Draft, CuptiActivity | CuptiApiRecord]]:
    """A draft for each piece of work that another library enqueued, and for its calls, in the order of these.

    A call is told of if it enqueued, waited, allocated or loaded; a wait only if its thread enqueues as well,
    whosever work, because the wait of another one holds up nobody.

    The records and the calls are those that are not ours; records without times are left out. `streams` has
    our numbers of the streams that we use, by CUPTI's; the others' get numbers from `OTHERS` on, so that they
    are not taken for ours. `numbers` gives the ids of the spans. `enqueuing` has more threads that enqueue:
    work of ours, or on other devices. `named` has the range that a call was made in, by CUPTI's number of it.
    """
    outer = _outermost(calls)
    made: dict[CuptiApiRecord, list[CuptiActivity]] = {call: [] for call in outer.values()}
    asked: list[tuple[int, CuptiApiRecord | None, list[CuptiActivity]]] = []
    for record in sorted((r for r in records if r.timed), key=lambda r: r.start):
        call = outer.get(record.correlation)
        if call is None:
            asked.append((record.start, None, [record]))
        else:
            made[call].append(record)
    threads = sorted({call.thread for call, work in made.items() if work}.union(enqueuing))
    for call, work in made.items():
        if work or not call.name.startswith(WAITS) or call.thread in threads:
            asked.append((call.start, call, work))
    found: list[tuple[Draft, CuptiActivity | CuptiApiRecord]] = []
    for _, call, work in sorted(asked, key=itemgetter(0)):
        after: tuple[int, ...] = ()
        told = None if call is None else _what(call, work)
        if call is not None and told is not None:
            detail: dict[str, object] = {"foreign": True, "api": call.name}
            if len(threads) > 1 and call.thread in threads:
                detail["thread"] = threads.index(call.thread)
            after = (next(numbers),)
            found.append((Draft(*after, *told, None, None, "", (), detail), call))
        for record in work:
            name, full = kernel_name(record.name or record.kind)
            stream = streams.get(record.stream, OTHERS + record.stream)
            label = (named or {}).get(record.correlation, "")
            detail = {**({"named": label} if label else {}), **full, "foreign": True}
            draft = Draft(next(numbers), record.kind, name, stream, None, label, after, detail)
            found.append((draft, record))
    return found


def _what(call: CuptiApiRecord, work: Sequence[CuptiActivity]) -> tuple[SpanKind, str] | None:
    """Kind and name of a call's span; None where there is nothing to tell, as of a copy of nothing."""
    if work and work[0].node:
        return "call", "launch graph"
    if work:
        return "call", call_name(work[0].kind, kernel_name(work[0].name or work[0].kind)[0])
    if call.name.startswith(WAITS):
        return "wait", wait_name(call.name)
    words = other_call(call.name)
    return ("call", words) if words else None


def _outermost(calls: Iterable[CuptiApiRecord]) -> dict[int, CuptiApiRecord]:
    """For CUPTI's number of each call, the one that the program made: the runtime calls the driver."""
    found: dict[int, CuptiApiRecord] = {}
    last: dict[int, CuptiApiRecord] = {}  # of each thread
    for call in sorted((c for c in calls if 0 < c.start <= c.end), key=lambda c: (c.start, -c.end)):
        outer = last.get(call.thread)
        if outer is None or call.start >= outer.end:
            last[call.thread] = outer = call
        found.setdefault(call.correlation, outer)
    return found


def by_draft(
    drafts: Sequence[Draft], records: Sequence[CuptiActivity]
) -> list[list[CuptiActivity]]:
    """The records of one call, for each of the drafts that were made of it.

    A call makes one piece of work, and may have several records of it. Only a graph makes several: its nodes,
    drafted in the order in which they were captured, which is that of the driver's numbers. Should kinds or
    names say otherwise, each draft gets the first to start among those that fit.
    """
    if len(drafts) == 1:
        return [list(records)]
    nodes: dict[int, list[CuptiActivity]] = {}
    for record in sorted(records, key=lambda r: (r.node, r.start)):
        nodes.setdefault(record.node, []).append(record)
    found = list(nodes.values())
    if len(found) == len(drafts) and all(map(_may_be, drafts, found)):
        return found
    left = sorted(found, key=lambda node: node[0].start)
    given: list[list[CuptiActivity]] = []
    for draft in drafts:
        fitting = (node for fits in (_is, _may_be) for node in left if fits(draft, node))
        node = next(fitting, None)
        if node is not None:
            left.remove(node)
        given.append(node or [])
    return given


def _is(draft: Draft, node: Sequence[CuptiActivity]) -> bool:
    # A name of C++ is longer in the record, where it is mangled.
    name = draft.name.partition("<")[0]
    return all(r.kind == draft.kind and (draft.kind != "kernel" or name in r.name) for r in node)


def _may_be(draft: Draft, node: Sequence[CuptiActivity]) -> bool:
    # The driver may copy or fill little by a kernel of its own. CUPTI calls it a kernel where the graph was
    # made before CUPTI was on.
    stand_in = draft.kind != "kernel" and all(record.kind == "kernel" for record in node)
    return stand_in or _is(draft, node)
