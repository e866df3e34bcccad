"""The course's pages: where they come from, and how they get into a learner's folder."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

from asyncgpu_tutor.errors import UsageError

PARTS = ("notebooks", "solutions", "docs")
FIRST_PAGE = "notebooks/00_start_here.ipynb"
# A learner's work leaves these behind where somebody has worked in the pages themselves.
NOT_OURS = shutil.ignore_patterns("progress*.json", ".*", "__pycache__")

PACKAGE = Path(__file__).resolve().parents[2]


class Brought(NamedTuple):
    """The files that `bring` has copied into the folder, and those that it has left as they were."""

    new: list[Path]
    kept: list[Path]


def course() -> tuple[Path, bool]:
    """Folder with the course's pages, and whether they are a checkout's, which is worked in where it is."""
    checkout, packed = PACKAGE.parent, PACKAGE / "course"
    if (checkout / "pyproject.toml").is_file() and (checkout / FIRST_PAGE).is_file():
        return checkout, True
    if (packed / FIRST_PAGE).is_file():
        return packed, False
    raise UsageError(
        f"this installation has no course: there are no notebooks in {packed}. Install the wheel again, or "
        "clone the repository"
    )


def bring(source: Path, folder: Path) -> Brought:
    """Copy the pages into `folder`, which is made where it does not exist, and change nothing in it."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file: name a folder for the course")
    if any(folder.resolve().is_relative_to(source / part) for part in PARTS):
        raise UsageError(f"{folder} is a part of the course's own pages: name a folder elsewhere")
    found = Brought([], [])
    for part in PARTS:
        _bring(source / part, folder / part, folder, found)
    return found


def _bring(source: Path, target: Path, folder: Path, found: Brought) -> None:
    names = {path.name for path in source.iterdir()}
    target.mkdir(parents=True, exist_ok=True)
    for name in sorted(names - set(NOT_OURS(str(source), sorted(names)))):
        here, there = source / name, target / name
        if here.is_dir():
            _bring(here, there, folder, found)
        elif there.exists():
            found.kept.append(there.relative_to(folder))
        else:
            half = there.with_name(f".{name}.part")  # what a full disk cuts off is no page
            try:
                shutil.copyfile(here, half)
                half.replace(there)
            finally:
                half.unlink(missing_ok=True)
            found.new.append(there.relative_to(folder))
