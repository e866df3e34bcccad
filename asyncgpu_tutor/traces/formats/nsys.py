"""From an export of Nsight Systems to spans.

Tables and columns are those of the profiler's documentation, "SQLite Schema Reference"
(https://docs.nvidia.com/nsight-systems/UserGuide/index.html), and were looked at in an export of version
2025.3. A table exists only if there is data for it, and none has an order.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, count, groupby
from operator import attrgetter, itemgetter
from pathlib import Path

from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces.formats import _nsys_rows as rows
from asyncgpu_tutor.traces.formats.database import opened
from asyncgpu_tutor.traces.formats.own_json import Parts
from asyncgpu_tutor.traces.nvtx import DOMAIN
from asyncgpu_tutor.traces.spans.cuda_calls import wait_name
from asyncgpu_tutor.traces.spans.log import Draft, SpanLog
from asyncgpu_tutor.traces.spans.notebook_output import damage_of, warnings_of
from asyncgpu_tutor.traces.spans.relations import causal
from asyncgpu_tutor.traces.spans.span import UNIFIED_MEMORY, Span, SpanKind, call_name, grouped
from asyncgpu_tutor.traces.spans.uncollected import uncollected

_MOST_BRANCHES = 128  # as many as a device has hardware queues
_WHAT = "an export of Nsight Systems (nsys export --type sqlite)"
_TABLES = ("StringIds", "CUPTI_ACTIVITY_KIND_", "NVTX_EVENTS", "META_DATA_EXPORT")


@uncollected()
def read_nsys(path: str | Path, *, within: str | None, limit: int) -> Parts:
    """Spans, clock, device and facts; see `Trace.from_nsys`."""
    file = Path(path)
    if file.suffix in {".nsys-rep", ".qdrep", ".qdstrm"}:
        raise UsageError(
            f"{file} is the profiler's own format: make an export of it, with nsys export --type sqlite "
            f"-o {file.stem}.sqlite {file.name}"
        )
    with opened(file, _WHAT) as database:
        if not any(table.startswith(_TABLES) for table in database.tables):
            raise UsageError(f"{file} is a SQLite database, but not {_WHAT}")
        # What one range holds may be little of a large file, which is read whole to find it.
        export = rows.collect_rows(database, limit if within is None else 10 * limit)
    if within is not None:
        export = export.within(within)
    size = len(export.work) + len(export.ranges)
    if size > limit:
        raise rows.too_much(file, size, limit)
    if not export.work and not export.calls:
        inside = f" within ranges called {within!r}" if within is not None else ""
        raise UsageError(
            f"{file} holds no GPU work{inside}: was the program run under nsys profile -t cuda,nvtx, "
            f"and did it use the GPU?{warnings_of(export.about)} {' '.join(damage_of(export.about))}".rstrip()
        )
    about = {**export.about, "file": file.name}
    if within is not None:
        about["within"] = within
    if export.windows:
        zero = export.origin
        about["windows"] = [[(t - zero) / 1e3 for t in window] for window in export.windows]
    if not any(r.domain == DOMAIN for r in export.ranges):
        about["foreign"] = True
    return trace_of_rows(export), "Nsight Systems", export.gpu or "unknown GPU", about


def trace_of_rows(export: rows.Export) -> list[Span]:
    """The spans of an export: each piece of work is there once, or no sum of the trace would be true."""
    spans = _Builder(export).spans()
    told, there = sum(span.on_device for span in spans), len(export.work)
    if told != there:
        raise UsageError(f"{there:,} pieces of work were read, and {told:,} spans made of them")
    return spans


class _Builder:
    """Puts together what the export has in separate tables, in the order in which it was asked for."""

    def __init__(self, export: rows.Export) -> None:
        self.export = export
        self._origin = export.origin
        self.logs: dict[int, SpanLog] = {}
        self.numbers = count()
        self._streams = _stream_numbers(export)
        # By process and number of an event: the device and the spans that its recording came after.
        self._events: dict[rows._Key, tuple[int, tuple[int, ...]]] = {}
        called = (work for work in export.work if work.correlation)
        self._by_call = grouped(called, lambda work: work.key)
        self._asked: dict[rows._Key, Draft] = {}  # the calls that asked for work
        # The ranges that make operations, ours if there are any, are numbered; by thread, those open.
        ours = any(found.domain == DOMAIN for found in export.ranges)
        named = [r for r in export.ranges if r.nested and (not ours or r.domain == DOMAIN)]
        named.sort(key=lambda r: (r.start, -r.end))
        self._ops = {found.id: number for number, found in enumerate(named, 1)}
        self._open: dict[int, list[rows.NvtxRow]] = {}
        # Threads are told apart where more than one has something to say.
        threads = {c.thread for c in export.calls} | {r.thread for r in export.ranges if r.nested}
        several = sorted(threads) if len(threads) > 1 else ()
        self._threads = {thread: number for number, thread in enumerate(several)}

    def spans(self) -> list[Span]:
        for *_, item in sorted(self._items(), key=itemgetter(0, 1, 2)):
            if isinstance(item, rows.NvtxRow):
                self._range(item)
            elif isinstance(item, rows.ApiCallRow):
                self._call(item)
            else:
                self._work(item)
        found = [span for log in self.logs.values() for span in log.spans]
        return causal(sorted(found, key=attrgetter("id")))

    def _items(
        self,
    ) -> Iterable[tuple[int, int, int, rows.NvtxRow | rows.ApiCallRow | rows.ActivityRow]]:
        """All that the export has, with times. Nodes of a graph come with its launch, and are left out."""
        for span in self.export.ranges:
            yield span.start, 0, -span.end, span
        for call in self.export.calls:
            yield call.start, 1, call.correlation, call
        at = {call.key: call.start for call in self.export.calls}
        lines = grouped(self.export.work, lambda work: (work.device, work.process, work.stream))
        graphs = {key for key, made in self._by_call.items() if made[0].node} & at.keys()
        for line in lines.values():  # by start
            times = _asked(line, [at.get(work.key) if work.correlation else None for work in line])
            for time, work in zip(times, line, strict=True):
                if not work.correlation or work.key not in graphs:
                    yield time, 2, work.start, work

    def _range(self, found: rows.NvtxRow) -> None:
        op, label = self._ops.get(found.id), ""
        if op is not None:
            label = found.text
            self._around(found.thread, found.start)
            self._open.setdefault(found.thread, []).append(found)
        detail: dict[str, object] = {"domain": found.domain} if found.domain else {}
        if found.nested:
            detail |= self._of_thread(found.thread)
        draft = self._log(0).draft("range", found.text, None, op=op, label=label, detail=detail)
        self._finish(0, draft, found.start, found.end)

    def _call(self, call: rows.ApiCallRow) -> None:
        made = _as_captured(self._by_call.get(call.key, ()))
        known = self._events.get((call.process, call.event))
        if call.kind == "event":
            self._events[call.process, call.event] = (call.device, self._heads(call))
        elif call.kind == "stream wait":
            device, heads = known or (call.device, ())
            stream = self._stream_of(call)
            if device == call.device and stream is not None:
                self._log(device).wait(stream, heads)
        elif call.kind == "wait":
            name, heads = wait_name(call.name), ()
            if call.event:
                name, heads = "synchronize event", known[1] if known else ()
            elif call.stream is not None:
                name, heads = f"synchronize stream {self._stream_of(call)}", self._heads(call)
            self._on_host(call, "wait", name, call.device, heads)
        elif made:
            self._launch(call, made)
        else:
            self._on_host(call, "call", call.name, call.device)

    def _launch(self, call: rows.ApiCallRow, made: Sequence[rows.ActivityRow]) -> None:
        """A call that asked for work, and of a graph its nodes."""
        first = made[0]
        name = call_name(first.kind, first.name)
        if first.node:
            name = call_name("graph", str(first.detail.get("graph", ""))).rstrip()
        self._asked[call.key] = self._on_host(call, "call", name, first.device, api=call.name)
        if first.node:
            self._nodes(made)

    def _on_host(
        self, call: rows.ApiCallRow, kind: SpanKind, name: str, device: int,
        heads: tuple[int, ...] = (), **detail: object,
    ) -> Draft:  # fmt: skip
        op, label = self._around(call.thread, call.start)
        about = {**self._of_thread(call.thread), **detail}
        log = self._log(device)
        draft = log.draft(kind, name, None, op=op, label=label, waits_for=heads, detail=about)
        self._finish(device, draft, call.start, call.end)
        return draft

    def _around(self, thread: int, time: int) -> tuple[int | None, str]:
        """Number and name of the operation that a thread is in: the innermost of its ranges that is open."""
        stack = self._open.get(thread, [])
        while stack and stack[-1].end < time:
            stack.pop()
        return (self._ops[stack[-1].id], stack[-1].text) if stack else (None, "")

    def _nodes(self, made: Sequence[rows.ActivityRow]) -> None:
        """The nodes of a launch of a graph: after what its stream held, and before what comes next."""
        # Its first node is on the stream of the launch. What else orders them is not in the export.
        first = made[0]
        log, root = self._log(first.device), self._stream(first)
        # Nodes on another device are left alone, because the launch does not order them.
        lanes = list(dict.fromkeys(self._stream(w) for w in made if w.device == first.device))
        branches = lanes[1:_MOST_BRANCHES]  # a file that has more was not written by nsys
        before = log.heads(root)
        for lane in branches:
            log.wait(lane, before)
        for number, work in enumerate(made):
            self._work(replace(work, detail={**work.detail, "node": number}))
        for lane in branches:
            log.wait(root, log.heads(lane))

    def _work(self, work: rows.ActivityRow) -> None:
        asked = self._asked.get(work.key) if work.correlation else None
        op, label, call = (asked.op, asked.label, asked.id) if asked else (None, "", None)
        detail = work.detail
        if work.stream != UNIFIED_MEMORY:  # the profiler's own window has CUDA's numbers of streams
            detail = {**detail, "cuda_stream": work.stream}
        draft = self._log(work.device).draft(
            work.kind, work.name, self._stream(work), op=op, label=label, call=call, detail=detail
        )
        self._finish(work.device, draft, work.start, work.end)

    def _of_thread(self, thread: int) -> dict[str, object]:
        return {"thread": self._threads[thread]} if thread in self._threads else {}

    def _stream(self, work: rows.ActivityRow) -> int:
        return self._streams[work.device, work.process, work.stream]

    def _stream_of(self, call: rows.ApiCallRow) -> int | None:
        stream = call.stream
        return None if stream is None else self._streams[call.device, call.process, stream]

    def _heads(self, call: rows.ApiCallRow) -> tuple[int, ...]:
        stream = self._stream_of(call)
        return () if stream is None else self._log(call.device).heads(stream)

    def _finish(self, device: int, draft: Draft, start: int, end: int) -> None:
        begin = max((start - self._origin) / 1e3, 0.0)
        self._log(device).finish(draft, begin, max((end - self._origin) / 1e3, begin))

    def _log(self, device: int) -> SpanLog:
        if device not in self.logs:
            self.logs[device] = SpanLog(f"cuda:{device}", self.numbers)
        return self.logs[device]


def _asked(line: Sequence[rows.ActivityRow], called: Sequence[int | None]) -> list[int]:
    """Times at which work of a stream, by start, was asked for; `called` has the starts of calls."""
    # A stream does its work in order, so what started before another piece was asked for first: also where
    # a capture began with a full queue, whose calls nobody saw, or where two threads call at once.
    times: list[int] = []
    following = math.inf
    for work, known in zip(reversed(line), reversed(called), strict=True):
        following = min(work.start, following) if known is None else known
        times.append(int(following))
    return list(accumulate(reversed(times), max))


def _as_captured(made: Sequence[rows.ActivityRow]) -> Sequence[rows.ActivityRow]:
    """The nodes of a graph in the order in which they were captured, which is that of their numbers."""
    if not made or not made[0].node:
        return made
    nodes = sorted(made, key=lambda work: (work.node, work.start))
    lanes: dict[tuple[int, int], int] = {}
    for work in nodes:
        if work.start < lanes.get((work.device, work.stream), work.start):
            return made  # the graph was built by hand: its numbers are not an order of work
        lanes[work.device, work.stream] = work.start
    return nodes


def _stream_numbers(export: rows.Export) -> dict[tuple[int, int, int], int]:
    """Our numbers: the null stream is 0, and the others of a device count in the order of CUDA's own."""
    used = {(work.device, work.process, work.stream) for work in (export.whole or export).work}
    used |= {(c.device, c.process, c.stream) for c in export.calls if c.stream is not None}
    known = dict.fromkeys((key for key in used if key[2] == UNIFIED_MEMORY), UNIFIED_MEMORY)
    if len({process for _, process, _ in used}) < 2:
        known |= dict.fromkeys((key for key in used if key[2] in export.null_streams), 0)
    for _, others in groupby(sorted(used - known.keys()), key=itemgetter(0)):
        known |= {key: number for number, key in enumerate(others, 1)}
    return known
