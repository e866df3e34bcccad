"""The words, minutes, cells, guesses and exercises of each chapter, as docs/instructors.md has them.

Minutes are those that the head of a chapter promises, most of them by readers' word. A *second sitting* and
an *encore* are for another day, so they are counted apart: a section whose title begins so, and all that
follows up to a section whose title does not. Folded cells, which assert or help, are not counted.

``python tools/course_length.py`` prints the table, and ``--write`` puts it into the page. What a notebook
computes for is kept as it stands there.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from build_notebooks import FOLDED, ROOT, Cell, chapter, sittings, sources

PAGE = "docs/instructors.md"
ROW = re.compile(r"^\| \[(\w+)\]\(\.\./notebooks/.*\| (\d+ s) \|$", re.MULTILINE)
NOT_PROSE = re.compile(r"```.*?```|\]\([^)]*\)|<[^>]+>", re.DOTALL)
ASKS = re.compile(r"^guess\(", re.MULTILINE)
TIME = re.compile(r"^# \| Time \| (.*) \|$", re.MULTILINE)
# "45 to 60 minutes" are 60.
MINUTES = re.compile(r"(?:\d+ to )?(\d+)")


@dataclass(frozen=True)
class Length:
    """What a chapter, or its encores, have."""

    words: int
    cells: int
    guesses: int
    exercises: int


def words(text: str) -> int:
    """Count the words of Markdown, without programs, markup and addresses."""
    return len(re.findall(r"[^\W_][\w'.]*", NOT_PROSE.sub(" ", text)))


def length(cells: Sequence[Cell]) -> Length:
    """Count the cells of a chapter, or of a part of one."""
    answers = {cell.id for cell in cells if cell.only is not None}
    prose = sum(words(c.text) for c in cells if c.kind == "markdown" and c.only is None)
    open_ = [c for c in cells if c.kind == "code" and not FOLDED.intersection(c.tags)]
    code = [c.text for c in open_ if not c.only]
    shown = [c.text for c in cells if c.text in code and c.id.removesuffix("-check") not in answers]
    starters = sum(cell.only == "starter" for cell in cells)
    solutions = sum(cell.only == "solution" for cell in cells)
    guesses = len({text for text in shown if ASKS.search(text)})  # one may be asked again
    return Length(prose, len(code) + starters, guesses, solutions)


def parts(source: Path) -> tuple[Length, Length]:
    """The chapter itself, and its encores."""
    found: tuple[list[Cell], list[Cell]] = ([], [])
    for cell, day in sittings(chapter(source)[0]):
        found[bool(day)].append(cell)
    return length(found[False]), length(found[True])


def minutes(source: Path) -> list[int]:
    """The minutes that a chapter's head promises: of its main part, and of each part for another day."""
    head = TIME.search(source.read_text(encoding="utf-8"))
    if head is None:
        raise ValueError(f"{source}: its head has no line '# | Time | ... |'")
    promised = head[1].replace("half an hour", "30 minutes").replace("an hour", "60 minutes")
    return [int(number) for number in MINUTES.findall(promised)]


def table(root: Path = ROOT) -> Iterator[str]:
    """The rows of the page: one for each chapter, and one for all, the exercises of encores among them."""
    computes = dict(ROW.findall((root / PAGE).read_text(encoding="utf-8")))
    total = [0] * 6
    for source in sources(root):
        name, (itself, encores) = source.stem, parts(source)
        first, *later = minutes(source)
        exercises = _and_later(itself.exercises, encores.exercises)
        guesses = _and_later(itself.guesses, encores.guesses)
        yield (
            f"| [{name}](../notebooks/{name}.ipynb) | {_and_later(first, sum(later))} | {itself.words:,} | "
            f"{itself.cells} | {guesses} | {exercises} | {computes.get(name, '')} |"
        )
        asked = (itself.guesses + encores.guesses, itself.exercises + encores.exercises)
        row = (first, sum(later), itself.words, itself.cells, *asked)
        total = [a + b for a, b in zip(total, row, strict=True)]
    today, another_day, *rest = total
    yield (
        f"| all | {round(today / 60)} h + {round(another_day / 60)} h | "
        + " | ".join(f"{n:,}" for n in rest)
        + " | |"
    )


def _and_later(now: int, later: int) -> str:
    return f"{now} + {later}" if later else f"{now}"


def main() -> int:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description="How long the chapters are.")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE}")
    write = parser.parse_args().write
    rows = "\n".join(table())
    print(rows)
    if write:
        text = (ROOT / PAGE).read_text(encoding="utf-8")
        old = re.compile(
            r"^\| \[00_start_here\]\(\.\./notebooks/.*?^\| all \|[^\n]*", re.DOTALL | re.MULTILINE
        )
        (ROOT / PAGE).write_text(old.sub(lambda _: rows, text), encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
