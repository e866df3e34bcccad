"""The rows of an export of Nsight Systems that a trace is made of. Times in ns, as they are there."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal, TypeVar

from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces.formats.damage import NO_WORK, Damage, ProfileRecord
from asyncgpu_tutor.traces.formats.database import CellValue, Database
from asyncgpu_tutor.traces.spans.cuda_calls import LAUNCHING_CALLS, QUERIES, WAITS, other_call
from asyncgpu_tutor.traces.spans.intervals import union, within
from asyncgpu_tutor.traces.spans.kernel_names import kernel_name
from asyncgpu_tutor.traces.spans.span import UNIFIED_MEMORY, SpanKind, grouped
from asyncgpu_tutor.traces.spans.vocabulary import some

# A process and a correlation in it: each process counts its own calls from 1 on.
_Key = tuple[int, int]
R = TypeVar("R")
Row = Mapping[str, CellValue]
CallKind = Literal["launch", "wait", "event", "stream wait", "other"]

_CUPTI = "CUPTI_ACTIVITY_KIND_"
_PUSH_POP, _START_END, _DOMAIN = 59, 60, 75  # ENUM_NSYS_EVENT_TYPE
_EVENT_SYNC, _STREAM_WAIT = 1, 2  # ENUM_CUPTI_SYNC_TYPE
_WARNINGS = frozenset((2, 3))  # and errors: ENUM_DIAGNOSTIC_SEVERITY_LEVEL
_NO_STREAM = 2**32 - 1
_PROCESS = 24  # bits of a globalTid or globalPid below those that name the process
# ENUM_CUDA_MEMCPY_OPER; what is not listed is within the device, as far as engines go.
_COPY_KINDS: Mapping[int, SpanKind] = {
    1: "h2d", 2: "d2h", 3: "h2d", 4: "d2h", 10: "peer", 11: "h2d", 12: "d2h",
}  # fmt: skip
# ENUM_CUDA_UNIF_MEM_MIGRATION
_WHY: Mapping[CellValue, str] = {1: "prefetched", 2: "touched", 3: "guessed", 4: "evicted"}
_MIGRATIONS = frozenset((11, 12, 13))  # pages of unified memory, which no call asked for
_PAGEABLE = 0  # ENUM_CUDA_MEM_KIND
_TEXTS = frozenset(("shortName", "demangledName", "text"))
_NULL_STREAM = 7  # the number of a first context's null stream, where the export does not say


# Rows of a large file are made by the hundred thousand, and a frozen one takes three times as long.
@dataclass(slots=True)
class ActivityRow:
    """A kernel, a copy or a fill."""

    kind: SpanKind
    name: str
    start: int
    end: int
    device: int
    stream: int
    correlation: int  # 0 where no call asked for it
    detail: dict[str, object]
    node: int = 0  # number of the node of a CUDA graph; 0 where nodes were not traced one by one
    process: int = 0

    @property
    def key(self) -> _Key:
        """The key that it shares with the call that asked for it."""
        return self.process, self.correlation


@dataclass(slots=True)
class ApiCallRow:
    """A call of the host into CUDA."""

    kind: CallKind
    name: str
    start: int
    end: int
    thread: int
    correlation: int
    process: int = 0
    device: int = 0
    stream: int | None = None
    event: int = 0

    @property
    def key(self) -> _Key:
        """The key that it shares with the work that it asked for."""
        return self.process, self.correlation


@dataclass(frozen=True, slots=True)
class NvtxRow:
    """An NVTX range; a nested one belongs to a thread's stack."""

    id: int
    text: str
    domain: str
    start: int
    end: int
    thread: int
    nested: bool


@dataclass(frozen=True)
class Export:
    """Rows that were found, each list by start."""

    work: list[ActivityRow]
    calls: list[ApiCallRow]
    ranges: list[NvtxRow]
    null_streams: frozenset[int]
    gpu: str
    about: dict[str, object]
    windows: Sequence[tuple[int, int]] = ()
    whole: Export | None = None  # all of which this is a part
    since: int | None = None  # time zero, if it is not the first of the rows

    @property
    def origin(self) -> int:
        """The time that becomes zero."""
        starts = (rows[0].start for rows in (self.work, self.ranges, self.calls) if rows)
        return min(starts, default=0) if self.since is None else self.since

    def within(self, name: str) -> Export:
        """Keep the work asked for while a range of that name was open; what ran meanwhile is ``other``."""
        found = [(r.start, r.end) for r in self.ranges if r.text == name]
        if not found:
            names = [repr(text) for text, _ in Counter(r.text for r in self.ranges).most_common()]
            there = some([*sorted(names[:12]), *names[12:]], 12) or "none at all"
            raise UsageError(
                f"there is no NVTX range {name!r} in this export; the ranges are: {there}. To read all of "
                "it, leave the range out (asyncgpu-tutor profile: --whole)"
            )
        asked = union((a, b + 1) for a, b in found)

        def window(time: int) -> int | None:
            index = bisect_right(asked, time, key=lambda w: w[0]) - 1
            return index if index >= 0 and time < asked[index][1] else None

        at = {call.key: call.start for call in self.calls}
        parts = grouped(
            self.work, lambda w: window(at.get(w.key, w.start) if w.correlation else w.start)
        )
        others = parts.pop(None, [])
        windows = union((min(w.start for w in p), max(w.end for w in p)) for p in parts.values())
        meanwhile = (w for w in others if within(windows, w.start, w.end))
        work = [replace(w, detail={**w.detail, "other": True}) for w in meanwhile]
        work += (w for part in parts.values() for w in part)
        return replace(
            self,
            work=sorted(work, key=lambda w: (w.start, w.correlation)),
            calls=[call for call in self.calls if window(call.start) is not None],
            ranges=[r for r in self.ranges if r.text != name and window(r.start) is not None],
            since=int(asked[0][0]),
            windows=[(int(a), int(b)) for a, b in windows],
            whole=self,
        )


def too_much(path: Path, size: int, limit: int) -> UsageError:
    """The error for a file with too many rows."""
    return UsageError(
        f"{path} has {size:,} kernels, copies, fills, ranges or calls, and limit is {limit:,}: profile a "
        "shorter stretch (nsys profile --capture-range), read what one range holds (within), or give a "
        "higher limit"
    )


def sound(export: Export, damage: Damage) -> Export:
    """The same, with nothing but sound records, and with a word on the others."""
    looked = [
        ProfileRecord(c, c.name, c.start, c.end, stamped=True, key=c.key if c.correlation else None)
        for c in export.calls
    ]
    looked += [ProfileRecord(r, r.text, r.start, r.end) for r in export.ranges]
    for w in export.work:
        call = w.key if w.correlation else None
        looked.append(
            ProfileRecord(w, w.name, w.start, w.end, True, w.detail.get("bytes") != 0, None, call)
        )
    kept = {id(row) for row in damage.sound(looked, us=1000)}

    def of(rows: list[R]) -> list[R]:
        return [row for row in rows if id(row) in kept]

    parts = {"work": of(export.work), "calls": of(export.calls), "ranges": of(export.ranges)}
    return replace(export, **parts, about=damage.told(export.about))


def collect_rows(database: Database, limit: int) -> Export:
    """Read all tables that a trace needs, of a file with at most `limit` rows; those not there are empty."""
    kinds = ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE")
    total = sum(database.count(t) for t in (*(_CUPTI + kind for kind in kinds), "NVTX_EVENTS"))
    if total > limit:
        raise too_much(database.path, total, limit)
    rows = database.rows("StringIds", ("id", "value"))
    texts = {_int(row, "id"): _str(row["value"]) for row in rows}
    damage = Damage()
    read = _ExportReader(database, damage)
    work = sorted(
        [*_kernels(read, texts), *_copies(read), *_fills(read), *_graphs(read)],
        key=lambda w: (w.start, w.correlation),
    )
    # Older versions do not tell processes apart in the tables of work.
    mask = -1 if any(w.process for w in work) else 0
    calls = _calls(read, texts, {w.key for w in work}, mask, limit)
    _on_gpus(database, work, calls)
    ranges = _ranges(read, texts, max((row.end for row in (*work, *calls)), default=0))
    contexts = database.rows("TARGET_INFO_CUDA_CONTEXT_INFO", ("nullStreamId",))
    nulls = frozenset(_int(row, "nullStreamId") for row in contexts) or frozenset({_NULL_STREAM})
    gpu = next((_str(r["name"]) for r in database.rows("TARGET_INFO_GPU", ("name",))), "")
    return sound(Export(work, calls, ranges, nulls, gpu, _about(database)), damage)


@dataclass(frozen=True)
class _ExportReader:
    """Reads tables, but for the rows that have no whole number where there must be one."""

    database: Database
    damage: Damage

    def rows(
        self, table: str, needed: Sequence[str], wanted: Sequence[str] = ()
    ) -> Iterator[dict[str, CellValue]]:
        for row in self.database.rows(table, needed, wanted, "start"):
            wrong = (
                f"{key} is {value!r:.40} in {table}"
                for key, value in row.items()
                if not isinstance(value, int) and key not in _TEXTS
                if value is not None or (key in needed and key != "correlationId")
            )
            if told := next(wrong, ""):
                self.damage.add("left out: a value in it is no whole number", told)
                self.damage.unread.add(row.get("correlationId"))
            else:
                yield row


# ------------------------------------------------------------------ work
_PLACE = ("start", "end", "deviceId", "streamId", "correlationId")
# Some versions lack these. Those of graphs are set where the row belongs to one.
_NODE = ("graphId", "graphNodeId", "globalPid")


def _kernels(read: _ExportReader, texts: Mapping[int, str]) -> Iterator[ActivityRow]:
    sides: tuple[str, ...] = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ")

    @cache  # a program has few sorts of launches
    def sort(given: CellValue, *shape: CellValue) -> tuple[str, dict[str, object]]:
        name, detail = kernel_name(_name(given, texts))
        row: Row = dict[str, CellValue](zip(sides, shape, strict=True))
        if row["gridX"] is not None:
            sizes = [_int(row, side) for side in sides]
            detail = {**detail, "grid": sizes[:3], "block": sizes[3:]}
        return name, detail

    wanted = ("demangledName", *sides, *_NODE)
    for row in read.rows(_CUPTI + "KERNEL", (*_PLACE, "shortName"), wanted):
        given = row["shortName"] if row["demangledName"] is None else row["demangledName"]
        name, detail = sort(given, *(row[side] for side in sides))
        yield _work("kernel", name, row, detail)


def _copies(read: _ExportReader) -> Iterator[ActivityRow]:
    needed = (*_PLACE, "bytes", "copyKind")
    wanted = ("srcKind", "dstKind", "migrationCause", *_NODE)
    for row in read.rows(_CUPTI + "MEMCPY", needed, wanted):
        number = _int(row, "copyKind")
        kind = _COPY_KINDS.get(number, "d2d")
        detail: dict[str, object] = {"bytes": _int(row, "bytes")}
        if number in _MIGRATIONS:
            if row["migrationCause"] in _WHY:
                detail["why"] = _WHY[row["migrationCause"]]
            moved = {**row, "streamId": UNIFIED_MEMORY, "correlationId": None}
            yield _work(kind, f"pages {kind}", moved, detail)
            continue
        host = row["srcKind"] if kind == "h2d" else row["dstKind"]
        if kind != "d2d" and host == _PAGEABLE:
            detail["pageable"] = True
        yield _work(kind, kind, row, detail)


def _fills(read: _ExportReader) -> Iterator[ActivityRow]:
    for row in read.rows(_CUPTI + "MEMSET", (*_PLACE, "bytes"), _NODE):
        yield _work("memset", "memset", row, {"bytes": _int(row, "bytes")})


def _graphs(read: _ExportReader) -> Iterator[ActivityRow]:
    """CUDA graphs as a whole: so nsys traces them unless it is told --cuda-graph-trace=node."""
    for row in read.rows(_CUPTI + "GRAPH_TRACE", _PLACE, ("graphId",)):
        yield _work("graph", f"graph {row['graphId'] or ''}".strip(), row, {})


def _work(kind: SpanKind, name: str, row: Row, detail: dict[str, object]) -> ActivityRow:
    start, end = _int(row, "start"), _int(row, "end")
    node = _int(row, "graphNodeId", 0)
    if node and row["graphId"]:
        detail = {**detail, "graph": str(_int(row, "graphId"))}
    device, stream = _int(row, "deviceId"), _int(row, "streamId")
    correlation = _int(row, "correlationId", 0)  # the schema allows NULL
    process = _int(row, "globalPid", 0) >> _PROCESS
    return ActivityRow(kind, name, start, end, device, stream, correlation, detail, node, process)


# ------------------------------------------------------------------ the host
def _calls(
    read: _ExportReader, texts: Mapping[int, str], enqueued: set[_Key], mask: int, limit: int
) -> list[ApiCallRow]:
    """Calls that enqueued something, waited, allocated or loaded, each once; and what orders streams."""
    order = ("streamId", "eventId", "eventSyncId", "deviceId", "syncType", "globalPid")

    def key_of(row: Row, process: int) -> _Key:
        return (process >> _PROCESS) & mask, _int(row, "correlationId", 0)

    def by_key(table: str) -> dict[_Key, dict[str, CellValue]]:
        rows = read.database.rows(_CUPTI + table, ("correlationId",), order)
        return {key_of(row, _int(row, "globalPid", 0)): row for row in rows}

    syncs, events = by_key("SYNCHRONIZATION"), by_key("CUDA_EVENT")
    found: list[ApiCallRow] = []
    known: set[_Key] = set()
    threads: set[int] = set()  # those that enqueue: a wait of another one holds up nobody
    needed = ("start", "end", "globalTid", "correlationId", "nameId")
    for row in read.rows(_CUPTI + "RUNTIME", needed):
        thread = _int(row, "globalTid")
        key = key_of(row, thread)
        name = texts.get(_int(row, "nameId"), "")
        start, end = _int(row, "start"), _int(row, "end")
        if (key[1] and key in known) or name.startswith(QUERIES):
            continue
        # Synchronisations are listed with the process that made them; in old exports with none.
        sync, event = (rows.get(key) or rows.get((0, key[1])) for rows in (syncs, events))
        kind, about = "launch", None
        if key[1] and key in enqueued:
            threads.add(thread)
        elif name.startswith(WAITS):
            kind, about = "wait", sync
        elif sync is not None:
            kind, about = "stream wait" if sync["syncType"] == _STREAM_WAIT else "wait", sync
        elif event is not None:
            kind, about = "event", event
        elif told := other_call(name):
            kind, name = "other", told
        else:
            if name.startswith(LAUNCHING_CALLS) and key[1] not in read.damage.unread:
                read.damage.add(NO_WORK, name)
            continue
        place = _place(kind, about) if about else (0, None, 0)
        found.append(ApiCallRow(kind, name, start, end, thread, key[1], key[0], *place))
        known.add(key)
        if len(found) > 4 * limit:
            raise too_much(read.database.path, len(found), 4 * limit)
    return [call for call in found if call.kind != "wait" or call.thread in threads or not threads]


def _on_gpus(database: Database, work: list[ActivityRow], calls: list[ApiCallRow]) -> None:
    """With the number of the GPU for that of the device, which each process counts for itself."""
    if len({w.process for w in work}) < 2:
        return
    gpus = {
        (_int(row, "pid"), _int(row, "cudaId")): _int(row, "gpuId")
        for row in database.rows("TARGET_INFO_CUDA_DEVICE", ("gpuId", "cudaId"), ("pid",))
        if row["pid"] is not None
    }

    for found in (*work, *calls):
        found.device = gpus.get((found.process & 0xFFFFFF, found.device), found.device)


def _place(kind: CallKind, row: Row) -> tuple[int, int | None, int]:
    """Device, stream and event that a call is about."""
    stream = _int(row, "streamId", _NO_STREAM)
    # The number of one recording of an event comes first, because numbers of events are used again.
    event = _int(row, "eventSyncId", 0) or _int(row, "eventId", 0)
    if kind == "wait" and row["syncType"] not in {None, _EVENT_SYNC}:
        event = 0
    return _int(row, "deviceId", 0), None if stream == _NO_STREAM else stream, event


def _ranges(read: _ExportReader, texts: Mapping[int, str], last: int) -> list[NvtxRow]:
    wanted = ("end", "eventType", "text", "textId", "domainId", "globalTid")
    rows = list(read.rows("NVTX_EVENTS", ("start",), wanted))
    domains = {row["domainId"]: _str(row["text"]) for row in rows if row["eventType"] == _DOMAIN}
    # A range that was left open lasts to the end.
    last = max([last, *(_int(row, "end", _int(row, "start")) for row in rows)])
    found: list[NvtxRow] = []
    for number, row in enumerate(rows):
        if row["eventType"] in {_PUSH_POP, _START_END}:
            text = _name(row["text"] if row["text"] is not None else row["textId"], texts)
            domain, nested = domains.get(row["domainId"], ""), row["eventType"] == _PUSH_POP
            times = _int(row, "start"), _int(row, "end", last)
            found.append(NvtxRow(number, text, domain, *times, _int(row, "globalTid", 0), nested))
    return found


# ------------------------------------------------------------------ about
def _about(database: Database) -> dict[str, object]:
    about: dict[str, object] = {"source": "Nsight Systems"}
    sizes = ("smCount", "maxWarpsPerSm", "threadsPerWarp")
    for row in database.rows("TARGET_INFO_GPU", ("name",), sizes):
        if all(isinstance(row[size], int) for size in sizes):
            about["threads_at_once"] = min(math.prod(_int(row, size) for size in sizes), 2**31)
            break
    tables = ("EXPORT_META_DATA", "META_DATA_EXPORT")  # the older one first
    rows = (row for table in tables for row in database.rows(table, ("name", "value")))
    facts = {row["name"]: _str(row["value"])[:100] for row in rows}
    schema = facts.get("EXPORT_SCHEMA_VERSION", "")
    older = f"before 2023.3{f' (schema {schema})' if schema else ''}"  # those do not say which
    about["profiler"] = facts.get("EXPORT_PRODUCT_VERSION") or older
    # What the profiler itself had to say: it knows why it saw nothing.
    said = database.rows("DIAGNOSTIC_EVENT", ("text",), ("severity",))
    warnings = [_str(row["text"])[:300] for row in said if row["severity"] in _WARNINGS]
    if warnings:
        about["warnings"] = list(dict.fromkeys(warnings))[:5]
    return about


# ------------------------------------------------------------------ values
def _int(row: Row, key: str, absent: int | None = None) -> int:
    """A whole number; `absent`, if given, where the row has none."""
    value = row.get(key)
    value = absent if value is None else value
    if not isinstance(value, int):
        raise UsageError(f"this export is damaged: {key} is {value!r:.60}, not a whole number")
    return value


def _str(value: CellValue) -> str:
    return value if isinstance(value, str) else ""


def _name(value: CellValue, texts: Mapping[int, str]) -> str:
    name = texts.get(value, "") if isinstance(value, int) else _str(value)
    return name[:1000] or "(no name)"
