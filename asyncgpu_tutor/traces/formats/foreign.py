"""Any file of a trace: finds out what it is, and reads it."""

from __future__ import annotations

import gzip
import json
import re
import stat
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces.formats import own_json
from asyncgpu_tutor.traces.formats.own_json import Parts
from asyncgpu_tutor.traces.spans.uncollected import uncollected

_EVENTS = re.compile(r'\A\s*\[|"traceEvents"\s*:\s*\[')  # they may stand alone
_BETWEEN = re.compile(r"[\s,]*")
_PIECE = 2**17  # characters that are read at once
_DECODER = json.JSONDecoder(parse_constant=own_json.no_constant)


@uncollected()
def read(path: Path) -> Parts:
    """Spans, clock, device and facts; see `Trace.load`."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise UsageError(f"{path} is not a file, so there is no trace in it")
    with path.open("rb") as file:
        head = file.read(16)
    if head == b"SQLite format 3\0" or path.suffix in {".nsys-rep", ".qdrep", ".qdstrm"}:
        from asyncgpu_tutor.traces.formats import nsys  # a Python in a browser may have no sqlite3

        return nsys.read(path, within=None, limit=own_json.MOST_SPANS)
    if path.suffix == ".pftrace":
        raise UsageError(
            f"{path} is in Perfetto's own format, which is not read: open it in https://ui.perfetto.dev, or "
            "record it as JSON"
        )
    # Only now, because what an export of Nsight Systems is made of is what this is made of.
    from asyncgpu_tutor.traces.formats import _chrome_rows, nsys

    events: list[dict[str, Any]] = []
    body = own_json.parsed(_without_events(path, head, _chrome_rows.kept, events))
    if "traceEvents" not in body:
        return own_json.read(body)
    if "asyncgpu_tutor" in str(body.get("otherData"))[:100]:
        raise UsageError(f"{path} is for Perfetto and lacks some facts: load what `save` wrote")
    export = _chrome_rows.collect(events, body.get("deviceProperties"))
    events.clear()
    if not export.work and not export.ranges:
        raise UsageError(
            f"{path} holds neither GPU work nor ranges. PyTorch writes them with "
            "torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])"
        )
    about = {**export.about, "file": path.name}
    return nsys.built(export), str(about["source"]), export.gpu or "unknown GPU", about


def _without_events(
    path: Path,
    head: bytes,
    kept: Callable[[dict[str, Any]], dict[str, Any] | None],
    events: list[dict[str, Any]],
) -> str:
    """The text of a file, packed or not, without Chrome's events, of which those `kept` are added to a list.

    They are decoded one by one, because all of them at once need many times the memory of what is kept.
    """
    size = path.stat().st_size
    if size > own_json.MOST_BYTES:
        raise UsageError(
            f"{path} has {size:,} bytes, and a trace is read up to {own_json.MOST_BYTES:,}: record a "
            "shorter stretch of the program"
        )
    packed = head[:2] == b"\x1f\x8b"
    errors = "replace" if packed else None
    try:
        with (gzip.open if packed else open)(path, "rt", encoding="utf-8", errors=errors) as file:
            text, left = "", own_json.MOST_BYTES
            while (begin := _EVENTS.search(text)) is None:
                piece = file.read(_PIECE)
                text, left = text + piece, left - len(piece)
                if not piece or left < 0:
                    return text
            above, at, piece = text[: begin.end()], begin.end(), _PIECE
            while True:
                at = _BETWEEN.match(text, at).end()  # pyright: ignore[reportOptionalMemberAccess] - matches nothing, too
                if text[at : at + 1] == "]":
                    rest = text[at:] + file.read(left + 1)
                    alone = "{" not in above
                    return f'{{"traceEvents": {above}{rest}}}' if alone else above + rest
                try:
                    event, at = _DECODER.raw_decode(text, at)
                except ValueError:  # it goes on in what is not read yet
                    more = file.read(piece)
                    if not more or left < 0:
                        return above + text[at:]  # which is no JSON, and will be told so
                    text, at, left, piece = text[at:] + more, 0, left - len(more), 2 * piece
                    continue
                piece = _PIECE
                if isinstance(event, dict) and (small := kept(cast(dict[str, Any], event))):
                    events.append(small)
    except UnicodeDecodeError as error:
        raise UsageError(f"this is not a trace: {path} is not text in UTF-8 ({error})") from None
    except RecursionError:
        raise UsageError("this is not a trace: its JSON nests too deeply") from None
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
