"""A SQLite file of a stranger, opened so that it can neither be written nor run anything.

It is opened read-only and as immutable, so not even a lock or a journal appears beside it. Only plain
tables are looked at: a view, a trigger, a generated column or a virtual table could hold a program. An
authoriser refuses all but reading, and a counter ends a query that never would.
"""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from asyncgpu_tutor.errors import UsageError

_MOST_BYTES = 8 * 2**30
_MOST_TEXT = 1_000_000  # bytes of one value
_STEPS = 100_000  # instructions of SQLite between two calls of the progress handler
_MOST_LOOKS = 20_000  # calls of that handler: a query is stopped after 2e9 instructions
_MAGIC = b"SQLite format 3\0"

Value = int | float | str | bytes | None

_READING = frozenset((sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ))
_FUNCTIONS = frozenset(("count",))
_PRAGMAS = frozenset(("table_info",))


@contextmanager
def opened(path: Path, what: str) -> Generator[Database]:
    """The database in a file, until the block ends.

    Parameters
    ----------
    path : Path
        A regular file.
    what : str
        What the file should be, for messages.

    Raises
    ------
    UsageError
        If it is not a SQLite database, is too large, or is damaged; also where the block finds damage.
    """
    about = path.stat()
    if not stat.S_ISREG(about.st_mode):
        raise UsageError(f"{path} is not a file, so it is not {what}")
    if about.st_size > _MOST_BYTES:
        raise UsageError(
            f"{path} has {about.st_size:,} bytes, and at most {_MOST_BYTES:,} are read"
        )
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise UsageError(f"{path} is not {what}: it is no SQLite database")
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
    """Its tables, by name.

    Parameters
    ----------
    connection : sqlite3.Connection
        Opened read-only.
    path : Path
        For messages.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.path = path
        self._connection = connection
        self._looks = 0
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_TEXT)
        connection.text_factory = _text
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.set_authorizer(_authorise)
        connection.set_progress_handler(self._look, _STEPS)
        found = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
        self.tables = {
            name
            for name, sql in found
            if isinstance(name, str) and isinstance(sql, str) and _plain(sql)
        }

    def _look(self) -> int:
        self._looks += 1
        return self._looks > _MOST_LOOKS

    def columns(self, table: str) -> set[str]:
        """Names of a table's columns; none if there is no such table."""
        if table not in self.tables:
            return set()
        return {row[1] for row in self._connection.execute(f"PRAGMA table_info({_quoted(table)})")}

    def count(self, table: str) -> int:
        """How many rows a table has; 0 if it is not there."""
        if table not in self.tables:
            return 0
        number = self._connection.execute(f"SELECT count(*) FROM {_quoted(table)}").fetchone()[0]
        return int(number)

    def rows(
        self,
        table: str,
        needed: Sequence[str],
        wanted: Sequence[str] = (),
        order: str | None = None,
    ) -> Iterator[dict[str, Value]]:
        """The rows of a table; none if it is not there.

        Parameters
        ----------
        needed : sequence of str
            Columns that the table must have.
        wanted : sequence of str
            Columns that it may lack: they are None then.
        order : str, optional
            Column to sort by: the order of a table means nothing.

        Raises
        ------
        UsageError
            If a needed column is missing.
        """
        there = self.columns(table)
        if not there:
            return
        missing = [name for name in needed if name not in there]
        if missing:
            raise UsageError(
                f"{self.path}: table {table} has no column {', '.join(missing)}: this export is of a version "
                "that is not known here, or the file is damaged"
            )
        names = [*needed, *wanted]
        found = (_quoted(name) if name in there else "NULL" for name in names)
        query = f"SELECT {', '.join(found)} FROM {_quoted(table)}"
        if order is not None:
            query += f" ORDER BY {_quoted(order)}"
        for row in self._connection.execute(query):
            yield dict(zip(names, row, strict=True))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _plain(sql: str) -> bool:
    words = sql.upper()
    return (
        not words.startswith("CREATE VIRTUAL") and "GENERATED" not in words and " AS (" not in words
    )


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", errors="replace")


def _authorise(
    action: int, first: str | None, second: str | None, _database: str | None, _by: str | None
) -> int:
    allowed = (
        action in _READING
        or (action == sqlite3.SQLITE_FUNCTION and second in _FUNCTIONS)
        or (action == sqlite3.SQLITE_PRAGMA and first in _PRAGMAS)
    )
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY
