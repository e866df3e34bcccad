"""How far a learner is: a file beside the notebooks that may be missing, damaged or read-only."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

__all__ = ["FILE", "Record", "load", "save"]

FILE = "progress.json"
FORMAT = "asyncgpu_tutor.progress/1"


@dataclass
class Record:
    """How far one exercise is."""

    attempts: int = 0
    hints: int = 0
    solved: bool = False


# What could not be written is kept here, so that it counts until Python ends.
_unwritten: dict[Path, dict[str, Record]] = {}


def load() -> dict[str, Record]:
    """What the file in the working directory says, by exercise."""
    path = Path.cwd() / FILE
    if path in _unwritten:
        return _unwritten[path]
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        if body["format"] != FORMAT:
            return {}
        rows = cast(dict[str, dict[str, Any]], body["exercises"])
        return {
            str(name): Record(int(row["attempts"]), int(row["hints"]), bool(row["solved"]))
            for name, row in rows.items()
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}  # nothing in it is worth an error in the middle of a lesson


def save(records: dict[str, Record]) -> None:
    """Write the file, whole or not at all. If it cannot be written, the records are kept in memory."""
    path = Path.cwd() / FILE
    rows = {name: asdict(record) for name, record in sorted(records.items())}
    text = json.dumps({"format": FORMAT, "exercises": rows}, indent=1) + "\n"
    draft = path.with_name(f".{FILE}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError:
        _unwritten[path] = records
    else:
        _unwritten.pop(path, None)
