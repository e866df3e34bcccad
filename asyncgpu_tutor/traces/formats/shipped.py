"""The recordings that come with this package."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces.spans.trace import Trace

__all__ = ["FOLDER", "file", "load", "names"]

FOLDER = Path(__file__).resolve().parents[1] / "recordings"


def names() -> list[str]:
    """Their names, sorted."""
    return sorted(file.stem for file in FOLDER.glob("*.json"))


def file(name: str) -> Path:
    """A file beside the recordings: of the profiler's, or timed by events.

    Raises
    ------
    UsageError
        If there is none of that name.
    """
    known = {path.name: path for path in FOLDER.glob("*/*") if path.is_file()}
    if name not in known:
        raise UsageError(
            f"there is no recorded file {name!r}; there are: {', '.join(sorted(known)) or 'none'}"
        )
    return known[name]


def load(name: str) -> Trace:
    """The one of that name.

    Raises
    ------
    UsageError
        If there is none.
    """
    known = names()
    if name not in known:  # a name, not a path: nothing outside of the folder can be meant
        close = get_close_matches(str(name), known, 1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise UsageError(
            f"there is no recording {name!r}; there are: {', '.join(known) or 'none'}.{hint}"
        )
    return Trace.load(FOLDER / f"{name}.json")
