"""Reading back what `perfetto` has written: the few messages of Perfetto's protocol that a trace needs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces.formats._own_events import Parts, spans_of
from asyncgpu_tutor.traces.formats.own_json import MOST_BYTES
from asyncgpu_tutor.traces.formats.perfetto import PROVENANCE

_BEGIN, _END, _INSTANT = 1, 2, 3  # TrackEvent.Type
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types

Value = int | bytes


def read(path: Path) -> Parts:
    """The trace of a ``.pftrace`` file that this package wrote.

    Raises
    ------
    UsageError
        If it is damaged, or somebody else's: Perfetto's files may hold anything.
    """
    if path.stat().st_size > MOST_BYTES:
        raise UsageError(f"{path} is larger than {MOST_BYTES:,} bytes: write a shorter stretch")
    facts: dict[str, Any] = {}
    events: list[dict[str, Any]] = []
    open_slices: dict[int, list[dict[str, Any]]] = {}
    for number, packet in _fields(path.read_bytes(), path):
        if number != 1 or not isinstance(packet, bytes):
            raise UsageError(f"{path} is not a trace of Perfetto")
        found = dict(_fields(packet, path))
        body = found.get(11)
        if not isinstance(body, bytes):
            continue  # a track: the spans say themselves where they are
        fields = list(_fields(body, path))
        event = dict(fields)
        time, track = _int(found.get(8)) / 1e3, _int(event.get(11))
        told = dict(_annotation(v, path) for n, v in fields if n == 4 and isinstance(v, bytes))
        name = _text(event.get(23, b""))
        if event.get(9) == _INSTANT and name == PROVENANCE:
            facts = told
        elif event.get(9) == _BEGIN:
            begun = {**told, "name": name, "start": time}
            events.append(begun)
            open_slices.setdefault(track, []).append(begun)
        elif event.get(9) == _END and open_slices.get(track):
            open_slices[track].pop()["end"] = time
    if not facts:
        raise UsageError(
            f"{path} was not written by this package: of Perfetto's own files, only those of "
            "Trace.to_perfetto are read. Open it in https://ui.perfetto.dev, or export it as JSON"
        )
    return spans_of(events, facts)


def _annotation(body: bytes, path: Path) -> tuple[str, Any]:
    fields = dict(_fields(body, path))
    number = fields.get(3, fields.get(2))
    value: Any = number if number is not None else _number_in(_text(fields.get(6, b"")))
    return _text(fields.get(10, b"")), value


def _number_in(text: str) -> Any:
    """Numbers below zero and fractions were written as text."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def _fields(body: bytes, path: Path) -> Iterator[tuple[int, Value]]:
    at = 0
    while at < len(body):
        key, at = _varint(body, at, path)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, at = _varint(body, at, path)
            yield number, value
            continue
        size = 8 if wire == _FIXED64 else 4
        if wire == _BYTES:
            size, at = _varint(body, at, path)
        elif wire not in {_FIXED64, _FIXED32}:
            raise UsageError(f"{path} is damaged: it has a field of the type {wire}")
        if at + size > len(body):
            raise UsageError(f"{path} is damaged: it ends within a field")
        yield number, body[at : at + size]
        at += size


def _varint(body: bytes, at: int, path: Path) -> tuple[int, int]:
    value = shift = 0
    while at < len(body) and shift < 70:
        byte = body[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at
    raise UsageError(f"{path} is damaged: it ends within a number")


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0


def _text(value: object) -> str:
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else ""
