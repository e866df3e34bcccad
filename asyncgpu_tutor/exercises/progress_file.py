"""How far a learner is: a file beside the notebooks that may be missing, damaged or read-only.

Several notebooks write it, each in a Python of its own. So a change is made to what the file says by then,
under a lock, and the file is replaced as a whole. The lock is a folder, because every system makes one in a
single step or not at all; one that is older than any change takes was left by a Python that ended in the
middle, and does not count.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import Any, cast

FILE = "progress.json"
FORMAT = "asyncgpu_tutor.progress/1"
STALE_S = 5.0


@dataclass
class Record:
    """How far one exercise is."""

    attempts: int = 0
    hints: int = 0
    solved: bool = False
    best: float | None = None  # of a challenge: the least time of an accepted answer, in us


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
        rows = cast(dict[str, dict[str, Any]], body["exercises"])
        return {
            str(name): Record(
                int(row["attempts"]), int(row["hints"]), bool(row["solved"]), _time(row.get("best"))
            )
            for name, row in rows.items()
        }
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        _keep_aside(path)
        return {}  # nothing in it is worth an error in the middle of a lesson


@contextmanager
def change() -> Generator[dict[str, Record]]:
    """Read the file, let the block change the records, and write them.

    If it cannot be written, the records are kept in memory, and a warning says so.
    """
    path = Path.cwd() / FILE
    with _alone(path):
        records = load()
        yield records
        rows = {
            name: {key: value for key, value in asdict(record).items() if value is not None}
            for name, record in sorted(records.items())
        }
        text = json.dumps({"format": FORMAT, "exercises": rows}, indent=1) + "\n"
        target = path.resolve()  # a link stays one
        draft = target.with_name(f".{FILE}.{os.getpid()}")
        try:
            draft.write_text(text, encoding="utf-8")
            draft.replace(target)
        except OSError as error:
            with suppress(OSError):  # nothing can be removed from a read-only file system, either
                draft.unlink()
            if path not in _unwritten:
                _say(f"{path} cannot be written ({error}): your progress is kept until Python ends")
            _unwritten[path] = records
        else:
            _unwritten.pop(path, None)


def _time(number: object) -> float | None:
    time = None if number is None else float(cast(float, number))
    if time is not None and not (isfinite(time) and time >= 0):
        raise ValueError(f"{number!r} is no time")
    return time


@contextmanager
def _alone(path: Path) -> Generator[None]:
    """Keep others from changing the file meanwhile. Where no lock can be made, no file can be, either."""
    lock = path.with_name(f".{FILE}.lock")
    held = False
    while not held:
        try:
            lock.mkdir()
            held = True
        except FileExistsError:
            with suppress(OSError):  # its owner may be quicker
                if time.time() - lock.stat().st_mtime > STALE_S:
                    lock.rmdir()
            time.sleep(0.01)
        except OSError:
            break
    try:
        yield
    finally:
        if held:
            lock.rmdir()


def _keep_aside(path: Path) -> None:
    kept = path.with_name(f"{path.stem}.damaged-{time.strftime('%Y%m%d-%H%M%S')}.json")
    try:
        path.rename(kept)
    except OSError:
        return
    _say(f"{path.name} could not be read; it is kept as {kept.name}, and a new one is begun")


def _say(what: str) -> None:
    warnings.warn(what, UserWarning, stacklevel=5)
