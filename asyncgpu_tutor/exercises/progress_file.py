"""The learner's progress: a file beside the notebooks that may be missing, damaged or read-only.

Several notebooks write it, each in a Python of its own. So a change is made to what the file says by then,
and the file is replaced as a whole.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

FILE = "progress.json"
FORMAT = "asyncgpu_tutor.progress/1"


@dataclass
class Record:
    """The state of one exercise."""

    attempts: int = 0
    hints: int = 0
    solved: bool = False
    best: float | None = None  # of a challenge: the least time of an accepted answer, in us

    def __post_init__(self) -> None:
        best = 0.0 if self.best is None else float(self.best)
        if not (0 <= best < float("inf") and min(int(self.attempts), int(self.hints)) >= 0):
            raise ValueError(f"{self} is no record")


# What could not be written is kept here, so that it counts until Python ends.
_unwritten: dict[Path, dict[str, Record]] = {}


def load() -> dict[str, Record]:
    """Read the file in the working directory, by exercise. A damaged one is kept under another name."""
    path = Path.cwd() / FILE
    if path in _unwritten:
        return _unwritten[path]
    try:
        text = path.read_bytes()
    except OSError:
        return {}
    try:
        body = json.loads(text.decode("utf-8-sig"))
        if body["format"] != FORMAT:
            raise ValueError(f"the format {body['format']!r} is not known")
        return {str(name): Record(**row) for name, row in body["exercises"].items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        _keep_aside(path)
        return {}  # nothing in it is worth an error in the middle of a lesson


@contextmanager
def change() -> Generator[dict[str, Record]]:
    """Read the file, let the block change the records, and write them.

    If it cannot be written, the records are kept in memory, and a warning says so.
    """
    path = Path.cwd() / FILE
    records = load()
    yield records
    rows = {
        name: {key: value for key, value in asdict(record).items() if value is not None}
        for name, record in sorted(records.items())
    }
    target = path.resolve()  # a link stays one
    draft = target.with_name(f".{FILE}.{os.getpid()}")
    try:
        text = json.dumps({"format": FORMAT, "exercises": rows}, indent=1) + "\n"
        draft.write_text(text, encoding="utf-8")
        draft.replace(target)
    except OSError as error:
        with suppress(OSError):  # nothing can be removed from a read-only file system, either
            draft.unlink()
        if path not in _unwritten:
            said = f"{path} cannot be written ({error}): your progress is kept until Python ends"
            warnings.warn(said, UserWarning, stacklevel=4)
        _unwritten[path] = records
    else:
        _unwritten.pop(path, None)


def _keep_aside(path: Path) -> None:
    kept = path.with_name(f"{path.stem}.damaged-{time.strftime('%Y%m%d-%H%M%S')}.json")
    try:
        path.rename(kept)
    except OSError:
        return
    said = f"{path.name} could not be read; it is kept as {kept.name}, and a new one is begun"
    warnings.warn(said, UserWarning, stacklevel=4)
