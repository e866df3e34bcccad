"""Take recorded exports into the package: python tools/nsight_exports.py FOLDER.

An export of Nsight Systems lists every process of the machine with its environment, its host name and its
paths. None of that belongs in a course, and masking it is not enough, because a mask that misses one spelling
misses it silently. So each export is copied without the tables that describe the machine, and without every
string that no event refers to. The `.nsys-rep` itself is never taken in, because nobody can clean the parts
of it that are compressed.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sqlite3
import tempfile
from pathlib import Path

HOME = Path(__file__).resolve().parents[1] / "asyncgpu_tutor" / "traces" / "recordings" / "nsys"
# These tables describe the machine, its processes and the command line. No reader of ours asks for them.
MACHINE = (
    "PROCESSES",
    "ThreadNames",
    "ProcessStreams",
    "ANALYSIS_FILE",
    "TARGET_INFO_SYSTEM_ENV",
    "META_DATA_CAPTURE",
    "PROFILER_OVERHEAD",
)
# Of the export's own description, only the versions stay.
VERSIONS = "name LIKE 'EXPORT_PRODUCT_%' OR name LIKE 'EXPORT_SCHEMA_%'"
# `nsys stats` says which file it reads with which script: the folders of both are cut off.
PLACE = re.compile(r"(?<=\[)[^\]\s]*/|(?<=SKIPPED: )\S*/")
NAMES = ("nameId", "shortName", "demangledName", "mangledName", "textId", "jsonTextId", "valueId")


def clean(export: Path) -> None:
    """Delete from an export, in place, whatever is neither an event nor the name of one."""
    with sqlite3.connect(export) as database:
        database.execute("PRAGMA secure_delete = ON")
        tables = {
            str(row[0])
            for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        for table in tables.intersection(MACHINE):
            database.execute(f'DROP TABLE "{table}"')
        database.execute(f"DELETE FROM META_DATA_EXPORT WHERE NOT ({VERSIONS})")
        database.execute("DELETE FROM DIAGNOSTIC_EVENT WHERE text LIKE '%/%'")
        used: set[int] = set()
        for table in tables.difference(MACHINE, {"StringIds"}):
            columns = [str(row[1]) for row in database.execute(f'PRAGMA table_info("{table}")')]
            for column in set(columns).intersection(NAMES):
                rows = database.execute(f'SELECT DISTINCT "{column}" FROM "{table}"')
                used |= {int(row[0]) for row in rows if row[0] is not None}
        strings = [int(row[0]) for row in database.execute("SELECT id FROM StringIds")]
        unused = [(one,) for one in strings if one not in used]
        database.executemany("DELETE FROM StringIds WHERE id = ?", unused)
    with sqlite3.connect(export) as database:
        database.execute("VACUUM")
        (state,) = database.execute("PRAGMA integrity_check").fetchone()
        assert state == "ok", f"{export.name} was damaged"


def main() -> None:
    """Copy each export and its sums, and clean the copy."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    for export in sorted(parser.parse_args().folder.glob("*.sqlite")):
        # A copy that could not be cleaned must not stay in the package.
        with tempfile.TemporaryDirectory() as folder:
            draft = Path(folder, export.name)
            shutil.copyfile(export, draft)
            clean(draft)
            target = shutil.copy(draft, HOME / export.name)
        sums = export.with_suffix(".stats.txt")
        if sums.exists():
            (HOME / sums.name).write_text(PLACE.sub("", sums.read_text()))
        print(f"{target.stat().st_size:>9,} {target.name}")


if __name__ == "__main__":
    main()
