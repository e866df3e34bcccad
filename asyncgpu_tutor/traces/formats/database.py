"""SQLite that can only be read: a file of a stranger, and a trace as a table for what nobody foresaw.

A file is opened so that it can neither be written nor run anything: as immutable, so not even a lock appears
beside it. Only plain tables are looked at: a view, a trigger, a generated column or a virtual table could
hold a program. An authoriser refuses all but reading, and a counter ends a query that never would.
"""

from __future__ import annotations

import re
import sqlite3
import stat
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from asyncgpu_tutor.errors import UsageError, demand
from asyncgpu_tutor.traces.formats.own_json import json_text
from asyncgpu_tutor.traces.spans.notebook_output import html_table
from asyncgpu_tutor.traces.spans.span import Span

_MOST_BYTES = 8 * 2**30
_MOST_TEXT = 1_000_000  # bytes of one value
_MOST_ROWS = 1_000_000  # of an answer: as many as a trace has spans
_STEPS = 100_000  # instructions of SQLite between two calls of the progress handler
_MOST_LOOKS = 20_000  # calls of that handler: a query is stopped after 2e9 instructions
_MAGIC = b"SQLite format 3\0"

CellValue = int | float | str | bytes | None

_READING = frozenset((sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE))


@contextmanager
def opened(path: Path, what: str) -> Generator[Database]:
    """The database in a file, until the block ends; a `UsageError` if it is not `what` it should be."""
    about = path.stat()
    if not stat.S_ISREG(about.st_mode):
        raise UsageError(f"{path} is not a file, so it is not {what}")
    if about.st_size > _MOST_BYTES:
        raise UsageError(f"{path} has {about.st_size:,} bytes, and {_MOST_BYTES:,} is the limit")
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise UsageError(f"{path} is not SQLite, so it is not {what}: make it again")
    try:
        connection = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True, isolation_level=None
        )
        try:
            yield Database(connection, path)
        finally:
            connection.close()
    # An error may quote the file, which need not be UTF-8; a damaged length may ask for any amount.
    except (sqlite3.Error, UnicodeDecodeError, MemoryError) as error:
        raise UsageError(f"{path} cannot be read as {what}: {error}") from None


class Database:
    """The tables of a connection that was opened read-only, by name. The `path` is for messages."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.path = path
        self._connection = connection
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_TEXT)
        connection.text_factory = lambda raw: raw.decode("utf-8", errors="replace")  # pyright: ignore
        connection.execute("PRAGMA trusted_schema = OFF")
        _only_reading(connection, ours=False)
        found = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
        special = re.compile(r"CREATE VIRTUAL|GENERATED| AS \(", re.IGNORECASE)
        self.tables = {str(name) for name, sql in found if not special.search(str(sql))}

    def count(self, table: str) -> int:
        """Count the rows of a table; 0 if it is not there."""
        if table not in self.tables:
            return 0
        return int(self._connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0])

    def rows(
        self, table: str, needed: Sequence[str], wanted: Sequence[str] = (), order: str = ""
    ) -> Iterator[dict[str, CellValue]]:
        """The rows of a table, if it is there, in `order` of a column; None for what is `wanted` in vain."""
        if table not in self.tables:
            return
        info = self._connection.execute(f'PRAGMA table_info("{table}")')
        there = {row[1] for row in info}
        missing = [name for name in needed if name not in there]
        if missing:
            raise UsageError(
                f"{self.path}: table {table} has no column {', '.join(missing)}: this export is of a version "
                "that is not known here, or the file is damaged"
            )
        names = [*needed, *wanted]
        found = (f'"{name}"' if name in there else "NULL" for name in names)
        query = f'SELECT {", ".join(found)} FROM "{table}"' + (
            f' ORDER BY "{order}"' if order else ""
        )
        for row in self._connection.execute(query):
            yield dict(zip(names, row, strict=True))


def _only_reading(connection: sqlite3.Connection, *, ours: bool) -> None:
    """Refuse all but reading, and stop a query that would not end. In `ours` any function may be called."""
    looks = iter(range(_MOST_LOOKS))

    def authorise(action: int, first: str | None, second: str | None, *_: str | None) -> int:
        allowed = (
            action in _READING
            or (action == sqlite3.SQLITE_FUNCTION and (ours or second == "count"))
            or (action == sqlite3.SQLITE_PRAGMA and not ours and first == "table_info")
        )
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    connection.set_authorizer(authorise)
    connection.set_progress_handler(lambda: next(looks, None) is None, _STEPS)


# ------------------------------------------------------------------ a trace
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
    demand(query, str, "sql takes a query, such as 'SELECT name FROM spans'")

    def told(text: str) -> str:  # half of a pair of UTF-16 is no text
        return text.encode(errors="replace").decode()

    calls = {span.id for span in spans if span.kind == "call"}
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute(f"CREATE TABLE spans ({', '.join(map(repr, _COLUMNS))})")
        rows = (
            (
                s.id, s.kind, told(s.name), s.start, s.end, s.duration, s.device, s.stream, s.op,
                told(s.label),
                max((i for i in s.after if i in calls), default=None),
                size if isinstance(size := s.detail.get("bytes"), int | float) else None,
                json_text(dict(s.detail)),
            )
            for s in spans
        )  # fmt: skip
        connection.executemany(f"INSERT INTO spans VALUES ({', '.join('?' * len(_COLUMNS))})", rows)
        _only_reading(connection, ours=True)
        found = connection.execute(told(query))
        answer = found.fetchmany(_MOST_ROWS + 1)
        if len(answer) > _MOST_ROWS:
            raise UsageError(f"more than {_MOST_ROWS:,} rows answer this: ask for less, by a LIMIT")
        return Rows(answer, tuple(column[0] for column in found.description or ()))
    except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
        raise UsageError(
            f"SQLite cannot answer this: {error}. There is one table, spans, with the columns "
            f"{', '.join(_COLUMNS)}; it can only be read"
        ) from None
    finally:
        connection.close()
