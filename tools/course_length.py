"""The words, minutes, cells, guesses and exercises of each chapter, as docs/instructors.md has them.

Minutes are reckoned, for somebody who reads everything and does all exercises; that page says how, and where
the one measured figure comes from. A *second sitting* and an *encore* are for another day, so they are
counted apart: a section whose title begins so, and all that follows up to a section whose title does not.
Folded cells, which assert or help, are not counted at all, but what a reveal tells and draws is.

``python tools/course_length.py`` prints the table, and ``--write`` puts it into the page. What a notebook
computes for is kept as it stands there.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from build_notebooks import FOLDED, ROOT, Cell, chapter, parsed, sittings, sources

WORDS_A_MINUTE = 238
LINE, CELL, PICTURE = 3 / 60, 5 / 60, 30 / 60  # minutes, as those below
GUESS, EXERCISE, PUZZLE, SOLUTION_LINE = 1.0, 3.0, 2.0, 0.5
# Fresh readers needed 62 minutes for 02b and 02c where the sum said 45 and 32, 135 and 115 for 16 and 19
# where it said 65, 85 and 100 for 17 and 18 where it said 54 and 52, and 150 and 90 for 20 (with 20b) and 21
# where it said 65 and 45. Another one needed 65 for 18, where it said 47.
SLOWER = {"02b": 1.3, "02c": 1.9, "16": 1.8, "17": 1.6, "18": 1.65, "19": 1.8, "20": 2.3, "21": 2.0}

PAGE = "docs/instructors.md"
ROW = re.compile(r"^\| \[(\w+)\]\(\.\./notebooks/.*\| (\d+ s) \|$", re.MULTILINE)
NOT_PROSE = re.compile(r"```.*?```|\]\([^)]*\)|<[^>]+>", re.DOTALL)
DRAWS = re.compile(r"\bcompare_timelines\(|\.plot\(|\bplt\.(?!rc)|^show\(", re.MULTILINE)
ASKS = re.compile(r"^guess\(", re.MULTILINE)
# Of chapter 01.
PUZZLES = ("copy", "add", "scale", "relu", "reverse", "stride", "broadcast", "transpose")


@dataclass(frozen=True)
class Length:
    """What a chapter, or its encores, ask of a reader."""

    words: int
    cells: int
    guesses: int
    exercises: int
    minutes: float


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
    starters = {c.id: c.text.splitlines() for c in cells if c.only == "starter"}
    solutions = {c.id: c.text.splitlines() for c in cells if c.only == "solution"}
    new = [line for i, text in solutions.items() for line in text if line not in starters[i]]
    guesses = len({text for text in shown if ASKS.search(text)})  # one may be asked again
    puzzles = sum(i.partition("01-")[2] in PUZZLES for i in solutions)
    minutes = prose / WORDS_A_MINUTE + CELL * len(shown) + GUESS * guesses
    minutes += LINE * sum(bool(line.strip()) for text in shown for line in text.splitlines())
    pictures = [*shown, *(cell.text for cell in cells if "reveal" in cell.tags)]
    minutes += PICTURE * sum(bool(DRAWS.search(text)) for text in pictures)
    minutes += EXERCISE * (len(solutions) - puzzles) + PUZZLE * puzzles
    minutes += SOLUTION_LINE * sum(bool(line.strip()) for line in new)
    return Length(prose, len(code) + len(starters), guesses, len(solutions), minutes)


def parts(source: Path) -> tuple[Length, Length]:
    """The chapter itself, and its encores."""
    found: tuple[list[Cell], list[Cell]] = ([], [])
    for cell, day in sittings(chapter(source)[0]):
        found[bool(day)].append(cell)
    # What a reveal tells is read, too, although no notebook has it, and its picture is looked at.
    for cell, day in sittings(parsed(source)):
        if cell.part == "told":
            found[bool(day)].append(cell)
    itself, encores = length(found[False]), length(found[True])
    slower = next((by for page, by in SLOWER.items() if source.name.startswith(page)), 1.0)
    itself, encores = (replace(part, minutes=slower * part.minutes) for part in (itself, encores))
    return itself, encores


def table(root: Path = ROOT) -> Iterator[str]:
    """The rows of the page: one for each chapter, and one for all, the exercises of encores among them."""
    computes = dict(ROW.findall((root / PAGE).read_text(encoding="utf-8")))
    total = [0] * 6
    for source in sources(root):
        name, (itself, encores) = source.stem, parts(source)
        minutes = _rounded(itself.minutes)
        more = f" + {_rounded(encores.minutes)}" if encores.words else ""
        exercises = _and_later(itself.exercises, encores.exercises)
        guesses = _and_later(itself.guesses, encores.guesses)
        yield (
            f"| [{name}](../notebooks/{name}.ipynb) | {minutes}{more} | {itself.words:,} | {itself.cells} | "
            f"{guesses} | {exercises} | {computes.get(name, '')} |"
        )
        asked = (itself.guesses + encores.guesses, itself.exercises + encores.exercises)
        row = (minutes, _rounded(encores.minutes) if encores.words else 0)
        row += (itself.words, itself.cells, *asked)
        total = [a + b for a, b in zip(total, row, strict=True)]
    minutes, later, *rest = total
    yield (
        f"| all | {round(minutes / 60)} h + {round(later / 60)} h | "
        + " | ".join(f"{n:,}" for n in rest)
        + " | |"
    )


def _and_later(now: int, later: int) -> str:
    return f"{now} + {later}" if later else f"{now}"


def _rounded(minutes: float) -> int:
    return 5 * max(1, round(minutes / 5))


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
