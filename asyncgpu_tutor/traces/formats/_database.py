"""A SQLite file of a stranger, opened so that it can neither be written nor run anything.

It is opened as immutable, so not even a lock appears beside it. Only plain tables are looked at: a view, a
trigger, a generated column or a virtual table could hold a program. An authoriser refuses all but reading,
and a counter ends a query that never would.
"""

from __future__ import annotations

import re
import sqlite3
import stat
from collections.abc import Container, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from asyncgpu_tutor.errors import UsageError

_MOST_BYTES = 8 * 2**30
_MOST_TEXT = 1_000_000  # bytes of one value
_STEPS = 100_000  # instructions of SQLite between two calls of the progress handler
_MOST_LOOKS = 20_000  # calls of that handler: a query is stopped after 2e9 instructions
_MAGIC = b"SQLite format 3\0"

Value = int | float | str | bytes | None

_READING = frozenset((sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE))
_Names = Container[str | None]
_FUNCTIONS: _Names = frozenset(("count",))
_PRAGMAS: _Names = frozenset(("table_info",))


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
        only_reading(connection, _FUNCTIONS, _PRAGMAS)
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
    ) -> Iterator[dict[str, Value]]:
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


def only_reading(connection: sqlite3.Connection, functions: _Names | None, pragmas: _Names) -> None:
    """Refuse all but reading, and stop a query that would not end. Without `functions`, any may be called."""
    looks = iter(range(_MOST_LOOKS))

    def authorise(action: int, first: str | None, second: str | None, *_: str | None) -> int:
        allowed = (
            action in _READING
            or (action == sqlite3.SQLITE_FUNCTION and (functions is None or second in functions))
            or (action == sqlite3.SQLITE_PRAGMA and first in pragmas)
        )
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    connection.set_authorizer(authorise)
    connection.set_progress_handler(lambda: next(looks, None) is None, _STEPS)
