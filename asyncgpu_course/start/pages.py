"""The course's pages: where they come from, and how they get into a learner's folder, and get newer there."""

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from fnmatch import fnmatch
from hashlib import sha256
from itertools import chain, count
from pathlib import Path
from typing import NamedTuple, cast

from asyncgpu_course.files import locked
from asyncgpu_course.internals import replace_text
from asyncgpu_tutor.errors import UsageError

PARTS = ("notebooks", "solutions", "docs")
FIRST_PAGE = "notebooks/00_start_here.ipynb"
# A learner's work leaves these behind where somebody has worked in the pages themselves.
NOT_OURS = ("progress*.json", ".*", "__pycache__")
# By page its digest, which tells work from a page of last year.
AS_BROUGHT = ".course-as-brought.json"
MY_WORK = "my-work"

PACKAGE = Path(__file__).resolve().parents[1]


class Brought(NamedTuple):
    """The pages that are new, those that were there and stay, and those that are in `MY_WORK` now."""

    new: list[Path]
    kept: list[Path]
    aside: list[Path]


def course() -> tuple[Path, bool]:
    """Folder with the course's pages, and whether they are a checkout's, which is worked in where it is."""
    checkout, packed = PACKAGE.parent, PACKAGE / "pages"
    if (checkout / "pyproject.toml").is_file() and (checkout / FIRST_PAGE).is_file():
        return checkout, True
    if (packed / FIRST_PAGE).is_file():
        return packed, False
    raise UsageError(
        f"this installation has no course: there are no notebooks in {packed}. Install the wheel again, or "
        "clone the repository"
    )


def bring(source: Path, folder: Path, *, update: bool = False) -> Brought:
    """Copy the pages into `folder`, which is made where it does not exist.

    A page that is there stays. With `update` it gives way to a newer one, and moves aside if it was changed.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file: name a folder for the course")
    if any(folder.resolve().is_relative_to(source / part) for part in PARTS):
        raise UsageError(f"{folder} is a part of the course's own pages: name a folder elsewhere")
    folder.mkdir(parents=True, exist_ok=True)
    with updating(folder):
        return _brought(source, folder, update)


def _brought(source: Path, folder: Path, update: bool) -> Brought:
    found, away = Brought([], [], []), None
    digests: dict[str, str] = {}
    with suppress(OSError, ValueError, RecursionError):
        known = json.loads((folder / AS_BROUGHT).read_bytes())
        digests = cast("dict[str, str]", known) if isinstance(known, dict) else {}
    for page in _pages(source):
        there, brought = folder / page, _digest(source / page)
        here = _digest(there) if there.exists() else ""
        if here and (not update or here == brought):
            found.kept.append(page)
            continue
        if here and here != digests.get(str(page)):
            away = away or aside(folder)
            copy(there, away / page)
            found.aside.append(away / page)
        copy(source / page, there)
        found.new.append(page)
        digests[str(page)] = brought
    replace_text(folder / AS_BROUGHT, json.dumps(digests, indent=1))
    return found


def updating(folder: Path) -> AbstractContextManager[None]:
    """Let one update at a time change the pages of a folder."""
    return locked(folder / f"{AS_BROUGHT}.lock")


def aside(folder: Path) -> Path:
    """Make a folder for pages, as they are, that an update takes from their places: nothing is in it."""
    (folder / MY_WORK).mkdir(exist_ok=True)
    now = time.strftime("%Y-%m-%d_%H%M%S")
    names = chain([now], (f"{now}-{number}" for number in count(2)))
    while True:
        away = folder / MY_WORK / next(names)
        with suppress(FileExistsError):
            away.mkdir()
            return away


def _pages(source: Path) -> Iterator[Path]:
    for path in sorted(path for part in PARTS for path in (source / part).rglob("*")):
        page = path.relative_to(source)
        if path.is_file() and not any(fnmatch(n, left) for n in page.parts for left in NOT_OURS):
            yield page


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def copy(here: Path, there: Path) -> None:
    """Copy a file whole, or not at all."""
    there.parent.mkdir(parents=True, exist_ok=True)
    half = there.with_name(f".{there.name}.part")  # a full disk cuts it off, and that is no page
    try:
        shutil.copyfile(here, half)
        half.replace(there)
    finally:
        half.unlink(missing_ok=True)
