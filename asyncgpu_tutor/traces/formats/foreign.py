"""Any file of a trace: finds out what it is, and reads it."""

from __future__ import annotations

import gzip
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces.formats import own_json, pftrace
from asyncgpu_tutor.traces.formats._own_events import Parts, spans_of
from asyncgpu_tutor.traces.formats.perfetto import OURS
from asyncgpu_tutor.traces.spans.uncollected import uncollected

CLOCK = "PyTorch profiler"


@uncollected()
def read(path: Path) -> Parts:
    """Spans, clock, device and facts; see `Trace.load`."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise UsageError(f"{path} is not a file, so there is no trace in it")
    with path.open("rb") as file:
        head = file.read(16)
    if head == b"SQLite format 3\0" or path.suffix in {".nsys-rep", ".qdrep", ".qdstrm"}:
        from asyncgpu_tutor.traces.formats import nsys  # a Python in a browser may have no sqlite3

        spans, gpu, about = nsys.read(path, within=None, limit=own_json.MOST_SPANS)
        return spans, nsys.CLOCK, gpu, about
    if path.suffix == ".pftrace":
        return pftrace.read(path)
    text = _unpacked(path) if head[:2] == b"\x1f\x8b" else own_json.read_text(path)
    if text[:100].lstrip().startswith("["):  # Chrome's events may stand alone
        text = '{"traceEvents": ' + text + "}"
    body = own_json.parsed(text)
    events = body.get("traceEvents")
    if not isinstance(events, list):
        return own_json.read_body(body)
    return _chrome(path, [e for e in cast(list[Any], events) if isinstance(e, dict)], body)


def _unpacked(path: Path) -> str:
    try:
        with gzip.open(path) as file:
            raw = file.read(own_json.MOST_BYTES + 1)
    except (OSError, EOFError) as error:
        raise UsageError(f"{path} cannot be unpacked: {error}") from None
    return raw.decode("utf-8", errors="replace")


def _chrome(path: Path, events: list[dict[str, Any]], body: Mapping[str, Any]) -> Parts:
    other = body.get("otherData")
    ours = cast(dict[str, Any], other).get(OURS) if isinstance(other, dict) else None
    if isinstance(ours, dict):
        given = [_args(e) | _times(e) for e in events if e.get("ph") == "X"]
        return spans_of(given, cast(dict[str, Any], ours))
    # Only now, because what an export of Nsight Systems is made of is what this is made of.
    from asyncgpu_tutor.traces.formats import _chrome_rows, nsys

    export = _chrome_rows.collect(events)
    if not export.work and not export.ranges:
        raise UsageError(
            f"{path} holds neither GPU work nor ranges. PyTorch writes them with "
            "torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])"
        )
    gpus = body.get("deviceProperties")
    listed = cast(list[object], gpus) if isinstance(gpus, list) else []
    name, threads = _chrome_rows.gpu(listed[0] if listed else None)
    about = {**export.about, "file": path.name, **({"threads_at_once": threads} if threads else {})}
    return nsys.built(export), CLOCK, name or "unknown GPU", about


def _args(event: Mapping[str, Any]) -> dict[str, Any]:
    args = event.get("args")
    return cast(dict[str, Any], args) if isinstance(args, dict) else {}


def _times(event: Mapping[str, Any]) -> dict[str, Any]:
    start, duration = event.get("ts"), event.get("dur")
    if not isinstance(start, int | float) or not isinstance(duration, int | float):
        raise UsageError(
            f"this trace is damaged: an event is at {start!r:.40} for {duration!r:.40}"
        )
    # A copy is shown under the profiler's name for it, and has its own among its arguments.
    name = _args(event).get("name", event.get("name"))
    return {"name": name, "start": start, "end": start + duration}
