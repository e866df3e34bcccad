"""The recordings that come with this package."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

from asyncgpu_tutor.errors import UsageError

FOLDER = Path(__file__).resolve().parents[1] / "recordings"


def recordings() -> list[str]:
    """Names of the recordings that come with this package, sorted."""
    return sorted(file.stem for file in FOLDER.glob("*.json"))


def recording(name: str) -> Path:
    """The file of a recording; see `Trace.load_recording`."""
    return _found("recording", name, {file.stem: file for file in FOLDER.glob("*.json")})


def recorded_file(name: str) -> Path:
    """Find a file that comes with this package beside the recordings: an export, or a trace by CUDA events.

    Parameters
    ----------
    name : str
        Such as ``"07_async_mlp.sqlite"``, for `Trace.from_nsys`; a `UsageError` has all names.
    """
    found = {path.name: path for path in FOLDER.glob("*/*") if path.is_file()}
    return _found("recorded file", name, found)


def _found(what: str, name: str, known: Mapping[str, Path]) -> Path:
    if name not in known:  # so a name with a path in it cannot lead out of the folder
        near = " or ".join(map(repr, get_close_matches(str(name), known)))
        cure = f"did you mean {near}?" if near else f"all of them are in {FOLDER}"
        raise UsageError(f"there is no {what} {name!r}; {cure}")
    return known[name]
