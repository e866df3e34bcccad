"""The rows of an export of Nsight Systems that a trace is made of. Times in ns, as they are there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces.formats._database import Database, Value
from asyncgpu_tutor.traces.spans.span import SpanKind

__all__ = ["Call", "Export", "Range", "Work", "collect"]

_CUPTI = "CUPTI_ACTIVITY_KIND_"
_PUSH_POP, _START_END, _DOMAIN = 59, 60, 75  # ENUM_NSYS_EVENT_TYPE
_EVENT_SYNC, _STREAM_WAIT = 1, 2  # ENUM_CUPTI_SYNC_TYPE
_NO_STREAM = 2**32 - 1
# ENUM_CUDA_MEMCPY_OPER; what is not listed is within the device, as far as engines go.
_COPY_KINDS: Mapping[int, SpanKind] = {1: "h2d", 2: "d2h", 3: "h2d", 4: "d2h", 11: "h2d", 12: "d2h"}
_PAGEABLE = 0  # ENUM_CUDA_MEM_KIND
_NULL_STREAM = 7  # the number of a first context's null stream, where the export does not say

# What the host's calls are, by the start of their names. Calls that are not listed, such as the one that asks
# for the current device, are left out unless they enqueued something.
_WAITS = ("cudaStreamSynchronize", "cudaEventSynchronize", "cudaDeviceSynchronize", "cuStreamSynchronize",
         "cuEventSynchronize", "cuCtxSynchronize")  # fmt: skip
_OTHERS = {
    "cudaMallocHost": "malloc host", "cudaHostAlloc": "malloc host", "cuMemAllocHost": "malloc host",
    "cuMemHostAlloc": "malloc host", "cudaFreeHost": "free host", "cuMemFreeHost": "free host",
    "cudaMalloc": "malloc", "cuMemAlloc": "malloc", "cudaFree": "free", "cuMemFree": "free",
    "cuModuleLoad": "load module", "cuLibraryLoad": "load module", "cudaLibraryLoad": "load module",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Work:
    """A kernel, a copy or a fill."""

    kind: SpanKind
    name: str
    start: int
    end: int
    device: int
    stream: int
    correlation: int
    detail: dict[str, object]
    node: int = 0  # number of the node of a CUDA graph; 0 where nodes were not traced one by one


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the host into CUDA."""

    kind: Literal["launch", "wait", "event", "stream wait", "other"]
    name: str
    start: int
    end: int
    thread: int
    correlation: int
    device: int = 0
    stream: int | None = None
    event: int = 0


@dataclass(frozen=True, slots=True)
class Range:
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
    """What was found, each list by start."""

    work: list[Work]
    calls: list[Call]
    ranges: list[Range]
    null_streams: frozenset[int]
    gpu: str
    about: dict[str, object]
    origin: int = 0
    every_work: list[Work] = field(default_factory=list[Work])

    def within(self, name: str) -> Export:
        """What was asked for while a range of that name was open."""
        windows = [(r.start, r.end) for r in self.ranges if r.text == name]
        if not windows:
            names = sorted({found.text for found in self.ranges})
            told = ", ".join(map(repr, names[:12])) or "none"
            raise UsageError(
                f"there is no NVTX range {name!r} in this export; the ranges are: {told}"
            )

        def inside(time: int) -> bool:
            return any(start <= time <= end for start, end in windows)

        calls = [call for call in self.calls if inside(call.start)]
        called = {call.correlation for call in calls}
        known = {call.correlation for call in self.calls}
        work = [
            w
            for w in self.work
            if w.correlation in called or (w.correlation not in known and inside(w.start))
        ]
        ranges = [r for r in self.ranges if r.text != name and inside(r.start)]
        origin = min(start for start, _ in windows)
        return replace(self, work=work, calls=calls, ranges=ranges, origin=origin)


def collect(database: Database, limit: int) -> Export:
    """Read all tables that a trace needs; those that are not there count as empty."""
    kinds = ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE")
    tables = (*(_CUPTI + kind for kind in kinds), "NVTX_EVENTS")
    total = sum(database.count(table) for table in tables)
    if total > limit:
        raise UsageError(
            f"{database.path} has {total:,} kernels, copies, fills and ranges, and limit is {limit:,}: "
            "profile a shorter stretch (nsys profile --capture-range), or give a higher limit"
        )
    texts = {
        _int(row["id"], "id"): _str(row["value"])
        for row in database.rows("StringIds", ("id", "value"))
    }
    work = sorted(
        [*_kernels(database, texts), *_copies(database), *_fills(database), *_graphs(database)],
        key=lambda w: (w.start, w.correlation),
    )
    ranges = _ranges(database, texts)
    calls = _calls(database, texts, {w.correlation for w in work}, limit)
    starts = [found[0].start for found in (work, ranges, calls) if found]
    return Export(
        work,
        calls,
        ranges,
        _null_streams(database),
        next((_str(r["name"]) for r in database.rows("TARGET_INFO_GPU", ("name",))), ""),
        _about(database),
        min(starts, default=0),
        work,
    )


# ------------------------------------------------------------------ work
_PLACE = ("start", "end", "deviceId", "streamId", "correlationId")
# Some versions lack these; elsewhere they are set where the row belongs to a graph.
_NODE = ("graphId", "graphNodeId")


def _kernels(database: Database, texts: Mapping[int, str]) -> list[Work]:
    grid, block = ("gridX", "gridY", "gridZ"), ("blockX", "blockY", "blockZ")
    shared = ("staticSharedMemory", "dynamicSharedMemory")
    wanted = (
        "demangledName",
        "registersPerThread",
        *grid,
        *block,
        *shared,
        *_NODE,
    )
    found: list[Work] = []
    for row in database.rows(_CUPTI + "KERNEL", (*_PLACE, "shortName"), wanted, "start"):
        name = row["shortName"] if row["shortName"] is not None else row["demangledName"]
        detail: dict[str, object] = {}
        if row["gridX"] is not None:
            detail["grid"] = [_int(row[key], key) for key in grid]
            detail["block"] = [_int(row[key], key) for key in block]
        if row["registersPerThread"] is not None:
            detail["registers"] = _int(row["registersPerThread"], "registersPerThread")
        bytes_shared = sum(_int(row[key] or 0, key) for key in shared)
        if bytes_shared:
            detail["shared"] = bytes_shared
        found.append(_work("kernel", _name(name, texts), row, detail))
    return found


def _copies(database: Database) -> list[Work]:
    found: list[Work] = []
    needed = (*_PLACE, "bytes", "copyKind")
    for row in database.rows(_CUPTI + "MEMCPY", needed, ("srcKind", "dstKind", *_NODE), "start"):
        kind = _COPY_KINDS.get(_int(row["copyKind"], "copyKind"), "d2d")
        detail: dict[str, object] = {"bytes": _int(row["bytes"], "bytes")}
        host = row["srcKind"] if kind == "h2d" else row["dstKind"]
        if kind != "d2d" and host == _PAGEABLE:
            detail["pageable"] = True
        found.append(_work(kind, kind, row, detail))
    return found


def _fills(database: Database) -> list[Work]:
    rows = database.rows(_CUPTI + "MEMSET", (*_PLACE, "bytes"), _NODE, "start")
    return [_work("memset", "memset", row, {"bytes": _int(row["bytes"], "bytes")}) for row in rows]


def _graphs(database: Database) -> list[Work]:
    """CUDA graphs as a whole: so nsys traces them unless it is told --cuda-graph-trace=node."""
    return [
        _work("graph", f"graph {row['graphId'] or ''}".strip(), row, {})
        for row in database.rows(_CUPTI + "GRAPH_TRACE", _PLACE, ("graphId",), "start")
    ]


def _work(kind: SpanKind, name: str, row: Mapping[str, Value], detail: dict[str, object]) -> Work:
    start, end, device, stream, correlation = (_int(row[key], key) for key in _PLACE)
    _in_order(start, end, name)
    node = _int(row.get("graphNodeId") or 0, "graphNodeId")
    if node and row["graphId"]:
        detail["graph"] = str(_int(row["graphId"], "graphId"))
    return Work(kind, name, start, end, device, stream, correlation, detail, node)


# ------------------------------------------------------------------ the host
def _calls(
    database: Database, texts: Mapping[int, str], enqueued: set[int], limit: int
) -> list[Call]:
    """Calls that enqueued something, waited, allocated or loaded; and what orders streams, if it is there."""
    order = ("streamId", "eventId", "eventSyncId", "deviceId", "syncType")
    syncs = {
        _int(row["correlationId"], "correlationId"): row
        for row in database.rows(_CUPTI + "SYNCHRONIZATION", ("correlationId",), order)
    }
    events = {
        _int(row["correlationId"], "correlationId"): row
        for row in database.rows(_CUPTI + "CUDA_EVENT", ("correlationId",), order)
    }
    found: list[Call] = []
    threads: set[int] = (
        set()
    )  # the threads that enqueue, because a wait of another one holds up nothing
    needed = ("start", "end", "globalTid", "correlationId", "nameId")
    for row in database.rows(_CUPTI + "RUNTIME", needed, (), "start"):
        start, end, thread, correlation, name_id = (_int(row[key], key) for key in needed)
        name = texts.get(name_id, "")
        _in_order(start, end, name)
        base = Call("launch", name, start, end, thread, correlation)
        if correlation in enqueued:
            found.append(base)
            threads.add(thread)
        elif name.startswith(_WAITS):
            found.append(_ordered(replace(base, kind="wait"), syncs.get(correlation)))
        elif correlation in syncs:
            kind = "stream wait" if syncs[correlation]["syncType"] == _STREAM_WAIT else "wait"
            found.append(_ordered(replace(base, kind=kind), syncs[correlation]))
        elif correlation in events:
            found.append(_ordered(replace(base, kind="event"), events[correlation]))
        elif told := next(
            (words for start_, words in _OTHERS.items() if name.startswith(start_)), ""
        ):
            found.append(replace(base, kind="other", name=told))
        if len(found) > 4 * limit:
            raise UsageError(
                f"{database.path} has more than {4 * limit:,} calls into CUDA: profile a shorter stretch, or "
                "give a higher limit"
            )
    return [call for call in found if call.kind != "wait" or call.thread in threads or not threads]


def _ordered(call: Call, row: Mapping[str, Value] | None) -> Call:
    """With the stream and event that the call is about."""
    if row is None:
        return call
    stream = row["streamId"]
    # The number of one recording of an event comes first, because numbers of events are used again.
    event = row["eventSyncId"] or row["eventId"] or 0
    if call.kind == "wait" and row["syncType"] not in {None, _EVENT_SYNC}:
        event = 0
    return replace(
        call,
        device=_int(row["deviceId"] or 0, "deviceId"),
        stream=None if stream in {None, _NO_STREAM} else _int(stream, "streamId"),
        event=_int(event, "eventId"),
    )


def _ranges(database: Database, texts: Mapping[int, str]) -> list[Range]:
    wanted = ("end", "eventType", "text", "textId", "domainId", "globalTid")
    rows = list(database.rows("NVTX_EVENTS", ("start",), wanted, "start"))
    domains = {row["domainId"]: _str(row["text"]) for row in rows if row["eventType"] == _DOMAIN}
    last = max((_int(row["end"] or row["start"], "end") for row in rows), default=0)
    found: list[Range] = []
    for number, row in enumerate(rows):
        if row["eventType"] not in {_PUSH_POP, _START_END}:
            continue
        start = _int(row["start"], "start")
        # A range that was left open lasts to the end.
        end = last if row["end"] is None else _int(row["end"], "end")
        text = _name(row["text"] if row["text"] is not None else row["textId"], texts)
        _in_order(start, end, text)
        nested = row["eventType"] == _PUSH_POP
        thread = _int(row["globalTid"] or 0, "globalTid")
        domain = domains.get(row["domainId"], "")
        found.append(Range(number, text, domain, start, end, thread, nested))
    return found


# ------------------------------------------------------------------ about
def _null_streams(database: Database) -> frozenset[int]:
    rows = database.rows("TARGET_INFO_CUDA_CONTEXT_INFO", ("nullStreamId",))
    return frozenset(_int(r["nullStreamId"], "nullStreamId") for r in rows) or frozenset(
        {_NULL_STREAM}
    )


def _about(database: Database) -> dict[str, object]:
    facts = {
        _str(row["name"]): _str(row["value"])
        for row in database.rows("META_DATA_EXPORT", ("name", "value"))
    }
    about: dict[str, object] = {"source": "Nsight Systems"}
    sizes = ("smCount", "maxWarpsPerSm", "threadsPerWarp")
    for row in database.rows("TARGET_INFO_GPU", ("name",), sizes):
        if all(isinstance(row[size], int) for size in sizes):
            about["threads_at_once"] = math.prod(_int(row[size], size) for size in sizes)
            break
    for key, name in (("profiler", "EXPORT_PRODUCT_VERSION"), ("schema", "EXPORT_SCHEMA_VERSION")):
        if name in facts:
            about[key] = facts[name][:100]
    return about


# ------------------------------------------------------------------ values
def _int(value: Value, what: str) -> int:
    if not isinstance(value, int):
        raise UsageError(f"this export is damaged: {what} is {value!r:.60}, not a whole number")
    return value


def _str(value: Value) -> str:
    return value if isinstance(value, str) else ""


def _name(value: Value, texts: Mapping[int, str]) -> str:
    name = (
        value if isinstance(value, str) else texts.get(value, "") if isinstance(value, int) else ""
    )
    return name[:1000] or "(no name)"


def _in_order(start: int, end: int, what: str) -> None:
    if end < start:
        raise UsageError(f"this export is damaged: {what!r:.60} goes from {start} to {end} ns")
