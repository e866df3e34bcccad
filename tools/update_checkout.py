"""The newest course into this checkout: `make update`, or ``asyncgpu-tutor start --update``.

A notebook that somebody has worked in differs from the one that git knows, so a pull would stop there. Pages
that were changed are therefore copied to ``my-work`` first, as they are, and then give way to the new ones.
``progress.json`` is none of git's, and stays where it is.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from asyncgpu_course.start.pages import PARTS, aside, copy, updating

ROOT = Path(__file__).resolve().parents[1]


class GitFailed(Exception):
    """The words in which git refused."""


def main(root: Path = ROOT) -> int:
    """Update it, and say where changed pages are now; 1 if git could not, and nothing has changed."""
    try:
        with updating(root):
            kept = update(root)
    except (GitFailed, TimeoutError) as error:
        print(f"Your pages are as they were, because {error}", file=sys.stderr)
        return 1
    print("The course is the newest one. `make lab` installs what it needs, and opens it.")
    if kept:
        print("These pages are as you left them. Take over what you like; your progress counts on:")
        print(*(f"  {page}" for page in kept), sep="\n")
    return 0


def update(root: Path) -> list[Path]:
    """Have git bring the newest commit. Returns the copies of the pages that were changed."""
    _git(root, "fetch")
    listed = _git(root, "diff", "--name-only", "-z", "HEAD", "--", *PARTS).split("\0")
    changed = [page for page in listed if page]
    there = [page for page in changed if (root / page).exists()]
    away = aside(root) if there else root
    for page in there:
        copy(root / page, away / page)
    if changed:
        _git(root, "checkout", "HEAD", "--", *changed)
    try:
        _git(root, "merge", "--ff-only", "@{upstream}")
    except GitFailed:
        for page in there:
            copy(away / page, root / page)
        raise
    return [away / page for page in there]


def _git(root: Path, *words: str) -> str:
    command = ["git", "-C", str(root), *words]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except subprocess.CalledProcessError as error:
        raise GitFailed(f"git {words[0]} failed: {error.stderr.strip()}") from None
    except OSError as error:
        raise GitFailed(f"git cannot be run: {error}") from None


if __name__ == "__main__":
    sys.exit(main())
