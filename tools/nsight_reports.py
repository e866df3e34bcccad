"""Take recorded reports into the package: python tools/nsight_reports.py FOLDER [--hide WORD ...].

A report of Nsight Systems lists every process of the machine with its environment, its host name and its
paths. Here names of processes that are not ours, what variables of an environment hold, and each word that is
to be hidden, are replaced by as many x: in the report, in its export and in the text of `nsys stats`.
Everything else stays as it was recorded.
"""

from __future__ import annotations

import argparse
import re
import sqlite3
from pathlib import Path

HOME = Path(__file__).resolve().parents[1] / "asyncgpu_tutor" / "traces" / "recordings" / "nsys"
# Names that every Linux machine with a GPU has, and what takes part.
KNOWN = re.compile(
    r"python|nsys|nvidia|nv_|UVM|kworker|migration|cpuhp|rcu|irq/|[a-z_]+/\d+$|k\w+d$|bash$"
)


def strangers(export: Path) -> set[str]:
    """Names of processes that are nobody's business."""
    with sqlite3.connect(export) as database:
        names = {str(row[0]) for row in database.execute("SELECT name FROM PROCESSES")}
    return {name for name in names if len(name) > 3 and not KNOWN.search(name)}


def environment(export: Path) -> set[tuple[str, str]]:
    """Variables of all processes, and what they hold. A string has all those of a process, apart by zeros."""
    with sqlite3.connect(export) as database:
        strings = [str(row[0]) for row in database.execute("SELECT value FROM StringIds")]
    pieces = {piece for text in strings if "\0" in text for piece in text.split("\0")}
    return {(name, value) for name, sign, value in (p.partition("=") for p in pieces) if sign}


def hidden(raw: bytes, words: set[str], variables: set[tuple[str, str]]) -> bytes:
    """The bytes, of the same length; words are crossed out where they stand alone, and paths anywhere."""
    for name, value in sorted(variables, key=lambda one: -len(one[1])):
        crossed_out = b"x" * len(value.encode())
        for sign in ("=", '="'):
            begin = (name + sign).encode()
            held = rb"(?<![A-Za-z0-9_])" + re.escape(begin + value.encode())
            raw = re.sub(held, lambda _, instead=begin + crossed_out: instead, raw)
    for word in sorted(words, key=len, reverse=True):
        pattern = re.escape(word.encode())
        if not word.startswith("/"):
            pattern = rb"(?<![A-Za-z0-9_])" + pattern + rb"(?![A-Za-z0-9_])"
        raw = re.sub(pattern, b"x" * len(word.encode()), raw)
    return raw


def main() -> None:
    """Copy reports, exports and sums."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--hide", nargs="*", default=[], metavar="WORD")
    options = parser.parse_args()
    exports = sorted(options.folder.glob("*.sqlite"))
    words = set(options.hide).union(*(strangers(export) for export in exports))
    variables = set[tuple[str, str]]().union(*(environment(export) for export in exports))
    print("hidden:", ", ".join(sorted(words)))
    for export in exports:
        with sqlite3.connect(export) as database:
            database.execute("VACUUM")
        for suffix in (".nsys-rep", ".sqlite", ".stats.txt"):
            source = export.with_suffix(suffix)
            target = HOME / source.name
            target.write_bytes(hidden(source.read_bytes(), words, variables))
            print(f"{target.stat().st_size:>9,} {target.name}")
        with sqlite3.connect(HOME / export.name) as database:
            (state,) = database.execute("PRAGMA integrity_check").fetchone()
            assert state == "ok", f"{export.name} was damaged"


if __name__ == "__main__":
    main()
