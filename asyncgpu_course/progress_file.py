"""The learner's progress: a file beside the notebooks that may be missing, damaged, unreadable or read-only.

Several notebooks write it, each in a Python of its own. So a change is made to what the file says by then,
under a lock, and the file is replaced as a whole. A change that cannot be written is kept in memory, and made
to the file when that can be read and written again: what others have written meanwhile stays.
"""

import json
import os
import time
import warnings
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path

from asyncgpu_course.files import locked
from asyncgpu_course.internals import replace_text

FILE = "progress.json"
_FORMAT = "asyncgpu_tutor.progress/1"


@dataclass
class ExerciseRecord:
    """The state of one exercise."""

    attempts: int = 0
    hints: int = 0
    solved: bool = False
    best: float | None = None  # of a challenge: the least time of an accepted answer, in us

    def __post_init__(self) -> None:
        best = 0.0 if self.best is None else self.best
        kinds = [type(self.attempts), type(self.hints), type(self.solved)]
        if kinds != [int, int, bool] or type(best) not in (int, float):
            raise TypeError(f"{self} is no record")
        if not (0 <= best < float("inf") and min(self.attempts, self.hints) >= 0):
            raise ValueError(f"{self} is no record")


Records = dict[str, ExerciseRecord]
# By file, what it said when it was last read, and what it should say.
_unwritten: dict[Path, tuple[Records, Records]] = {}
_warned: set[Path] = set()
_last = Path(os.sep, "the working directory is gone", FILE)


def load_progress() -> Records:
    """Read the file in the working directory, by exercise. A damaged one is kept under another name."""
    with _opened(_here()) as (_, records, _):
        return records


def _here() -> Path:
    """Where the file is: in the working directory, or the last one if somebody has removed it."""
    global _last  # noqa: PLW0603 - a process has one working directory
    with suppress(FileNotFoundError):
        _last = Path.cwd() / FILE
    return _last


@contextmanager
def change() -> Generator[Records]:
    """Read the file, let the block change the records, and write them.

    If it cannot be read or written, the change is kept in memory, and a warning says so.
    """
    path = _here()
    with _opened(path) as (target, records, failure):
        yield records
        rows = {
            name: {key: value for key, value in asdict(record).items() if value is not None}
            for name, record in sorted(records.items())
        }
        try:
            if failure is not None:
                raise failure
            text = json.dumps({"format": _FORMAT, "exercises": rows}, indent=1) + "\n"
            replace_text(target, text)
            _unwritten[path] = _copy(records), records
            _warned.discard(path)
        except OSError as error:
            _warn(path, error)


@contextmanager
def _opened(path: Path) -> Generator[tuple[Path, Records, OSError | None]]:
    """Where the file is, and its records with what could not be written; or why nothing can be now."""
    target = Path(os.path.realpath(path))  # a link stays one
    read, wanted = _unwritten.get(path, ({}, {}))
    failure: OSError | None = None
    with ExitStack() as alone:
        try:
            alone.enter_context(locked(target.with_name(f".{FILE}.lock")))
        except OSError as error:
            failure = error
        try:
            found = _read(path)
        except OSError as error:
            found, failure = read, error
            _warn(path, error)
        records = _changed(found, read, wanted)
        # Before the block, so that an interrupt there loses nothing.
        _unwritten[path] = found, records
        yield target, records, failure


def _warn(path: Path, failure: OSError) -> None:
    if path not in _warned:
        _warned.add(path)
        said = f"{path} cannot be read or written ({failure}): "
        warnings.warn(said + "your progress is kept until Python ends", UserWarning, stacklevel=6)


def _read(path: Path) -> Records:
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return {}
    try:
        body = json.loads(text.decode("utf-8-sig"))
        if body["format"] != _FORMAT:
            raise ValueError(f"the format {body['format']!r} is not known")
        return {str(name): ExerciseRecord(**row) for name, row in body["exercises"].items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        _keep_aside(path)
        return {}  # nothing in it is worth an error in the middle of a lesson


def _copy(records: Records) -> Records:
    return {name: replace(record) for name, record in records.items()}


def _changed(found: Records, before: Records, after: Records) -> Records:
    """What was found, with all that has changed from `before` to `after`."""
    result = _copy({n: r for n, r in found.items() if n in after or n not in before})
    for name, new in after.items():
        old, there = before.get(name, ExerciseRecord()), result.get(name, ExerciseRecord())
        if new != before.get(name):
            times = [best for best in (new.best, there.best) if best is not None]
            attempts = max(there.attempts + new.attempts - old.attempts, 0)
            hints = max(there.hints + new.hints - old.hints, 0)
            solved, best = new.solved or there.solved, min(times, default=None)
            result[name] = ExerciseRecord(attempts, hints, solved, best)
    return result


def _keep_aside(path: Path) -> None:
    now = time.strftime("%Y%m%d-%H%M%S")
    names = (f"{path.stem}.damaged-{now}{f'-{n}' if n else ''}.json" for n in count())
    kept = next(path.with_name(name) for name in names if not path.with_name(name).exists())
    path.rename(kept)
    said = f"{path.name} could not be read; it is kept as {kept.name}, and a new one is begun"
    warnings.warn(said, UserWarning, stacklevel=4)
