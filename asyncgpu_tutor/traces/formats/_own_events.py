"""Spans out of the events that this package has written, for Perfetto or in Chrome's format."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces.formats import own_json
from asyncgpu_tutor.traces.spans.span import Span
from asyncgpu_tutor.traces.spans.vocabulary import KIND_WORDS

# What a trace is made of: spans, clock, device, and facts.
Parts = tuple[list[Span], str, str, dict[str, object]]

_KINDS = {words: kind for kind, words in KIND_WORDS.items()}
_OURS = frozenset(
    ("kind", "id", "device", "stream", "operation", "after", "name", "start", "end", "correlation")
)


def spans_of(events: Iterable[Mapping[str, Any]], facts: Mapping[str, Any]) -> Parts:
    """The trace that was written; each field is checked as those of our own form are."""
    rows = [_row(event) for event in events]
    body: dict[str, Any] = {
        "format": own_json.FORMAT,
        "clock": facts.get("clock", ""),
        "device": facts.get("device", ""),
        "spans": rows,
        "about": _json(facts.get("about", "{}")) or {},
    }
    return own_json.read_body(body)


def _row(event: Mapping[str, Any]) -> dict[str, Any]:
    stream = event.get("stream")
    number, _, label = str(event.get("operation", "")).removeprefix("#").partition(" ")
    row: dict[str, Any] = {
        "id": event.get("id"),
        "kind": _KINDS.get(str(event.get("kind")), event.get("kind")),
        "name": event.get("name"),
        "start": event.get("start"),
        "end": event.get("end"),
        "device": event.get("device", ""),
        "stream": None if stream == -1 and event.get("kind") in _HOST else stream,
        "op": int(number) if number.isdecimal() else None,
        "label": label,
        "after": _json(event.get("after", "[]")),
        "detail": {key: _json(value) for key, value in event.items() if key not in _OURS},
    }
    return row


_HOST = frozenset(KIND_WORDS[kind] for kind in ("call", "wait", "work", "range"))


def _json(value: object) -> Any:
    """What was written as JSON text, since a viewer shows nothing but text and numbers."""
    if isinstance(value, str) and value[:1] in {"[", "{"}:
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            raise UsageError(f"this trace is damaged: {value[:60]!r} is not JSON") from None
    return value
