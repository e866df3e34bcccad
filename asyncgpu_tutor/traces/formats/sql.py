"""Questions that nobody foresaw: the spans of a trace as a table of SQLite, in memory, only to be read."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces.formats._database import only_reading
from asyncgpu_tutor.traces.spans.notebook_output import html_table
from asyncgpu_tutor.traces.spans.span import Span

_COLUMNS = (
    "id", "kind", "name", "start", "end", "duration", "device", "stream", "op", "label", "call", "bytes",
    "detail",
)  # fmt: skip


class Rows(list[tuple[object, ...]]):
    """The rows of an answer, which a notebook shows as a table with the names of its `columns`."""

    def __init__(self, rows: Sequence[tuple[object, ...]], columns: tuple[str, ...]) -> None:
        super().__init__(rows)
        self.columns = columns

    def _repr_html_(self) -> str:
        return html_table([tuple(map(str, row)) for row in self], self.columns)


def ask(spans: Sequence[Span], query: str) -> Rows:
    """The answer to a query; see `Trace.sql`."""
    calls = {span.id for span in spans if span.kind == "call"}
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute(f"CREATE TABLE spans ({', '.join(map(repr, _COLUMNS))})")
        rows = (
            (
                s.id, s.kind, s.name, s.start, s.end, s.duration, s.device, s.stream, s.op, s.label,
                max((i for i in s.after if i in calls), default=None),
                size if isinstance(size := s.detail.get("bytes"), int | float) else None,
                json.dumps(dict(s.detail)),
            )
            for s in spans
        )  # fmt: skip
        connection.executemany(f"INSERT INTO spans VALUES ({', '.join('?' * len(_COLUMNS))})", rows)
        only_reading(connection, functions=None, pragmas=())
        found = connection.execute(query)
        return Rows(found.fetchall(), tuple(column[0] for column in found.description or ()))
    except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
        raise UsageError(
            f"SQLite cannot answer this: {error}. There is one table, spans, with the columns "
            f"{', '.join(_COLUMNS)}; it can only be read"
        ) from None
    finally:
        connection.close()
