"""What the course's prose claims of numbers, order and overlap, and whether a cell near it checks that.

A **claim** is a sentence of a text cell that is no question and has

- a number: any from 10 on but years, or one with a unit of time, rate or share (``300 µs``, ``15 percent``);
- or a ratio (``twice as long``), or a word of order and overlap: see `ORDER`.

Names in backticks are not words. Titles, key points and the tasks of exercises make no claims of their own.

A claim of order or with a unit is **held** if, within its section, the program above it or one of the next
three below asserts something, reveals a prediction or asks for one. A number has to be in some program of
the section (of the chapter, if it has no unit): what stands in the text alone is computed by nobody. What
cannot be held that way says why, beside the text ::

    # %% [markdown] id=why unchecked="what the words mean; no claim about a run"

``python tools/claims.py`` names what is not held; with numbers, such as ``03 04``, in these chapters alone;
with ``--all``, every claim. It cannot tell whether the cell checks *this* claim: that is for people to see.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from build_notebooks import ROOT, Cell, parse

QUIET = {"title", "key-points"}  # these repeat what the chapter shows

_UNIT = r"(?:µs|us|ms|ns|seconds?|microseconds?|milliseconds?|%|percent|[GTM]B/s|[GT]FLOPS?(?:/s)?)"
_COUNTED = r"two|three|four|five|six|seven|eight|nine|ten|\d[\d.]*"
_DIGITS = r"(?<![\w./])(\d[\d.,]*\d|\d)"
MEASURED = re.compile(rf"{_DIGITS} ?{_UNIT}(?!\w)")
NUMBER = re.compile(rf"{_DIGITS}(?![\w/])")
ORDER = re.compile(
    r"\b(?:overlap(?:s|ped|ping)?|at the same time|side by side|in parallel|back to back|idle|take turns|"
    r"sooner|quicker|faster|slower|(?:shorter|longer|earlier|later) than|bottleneck|staircase|nothing to do|"
    r"(?:starts?|begins?|runs?|ends?|finishe[sd]|is done|returns?|comes? back) (?:\w+ ){0,3}(?:before|after)|"
    rf"(?:twice|half|(?:{_COUNTED}) times) as)\b",
    re.IGNORECASE,
)
YEAR = re.compile(r"(?:19|20)\d\d")
CHECKS = re.compile(r"\bassert\b|\.reveal\(|\braise AssertionError\b|\bPrediction\(")
BELOW = 3  # programs: one that runs, and a picture, may come before the cell that checks
FENCED = re.compile(r"```.*?```", re.DOTALL)
SPAN = re.compile(r"`[^`]*`")
SENTENCE = re.compile(r"[^.?!]+(?:[.?!]+(?!\s|$)[^.?!]*)*[.?!]*")


@dataclass(frozen=True)
class Claim:
    """A sentence that needs a check.

    Attributes
    ----------
    missing : str
        What it lacks; empty if it is held.
    """

    chapter: str
    cell: str
    sentence: str
    missing: str

    def __str__(self) -> str:
        return f"{self.chapter}, cell {self.cell}: {self.missing or 'held'}: {self.sentence!r}"


def sentences(text: str) -> Iterator[str]:
    """What a text cell states: without headings, programs and questions."""
    text = SPAN.sub("`", FENCED.sub(" ", text))
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*>|]|\d\.))", text):
        if block.lstrip().startswith("#"):
            continue
        for sentence in SENTENCE.findall(" ".join(block.split())):
            if not sentence.rstrip(" )*\"'").endswith("?"):
                yield sentence.strip()


def claims(cells: Sequence[Cell], chapter: str) -> Iterator[Claim]:
    """All claims of a chapter."""
    shown = [cell for cell in cells if cell.only in (None, "solution")]
    chapter_code = "\n".join(cell.text for cell in shown if cell.kind == "code")
    for number, cell in enumerate(shown):
        if cell.kind != "markdown" or cell.id in QUIET or cell.unchecked:
            continue
        if number + 1 < len(shown) and shown[number + 1].only == "solution":
            continue  # the task of an exercise
        section = "\n".join(c.text for c in _section(shown, number))
        for sentence in sentences(cell.text):
            measured = MEASURED.findall(sentence)
            numbers = [
                n
                for n in NUMBER.findall(sentence)
                if n in measured or (_value(n) >= 10 and not YEAR.fullmatch(n))
            ]
            ordered = bool(measured or ORDER.search(sentence))
            if not numbers and not ordered:
                continue
            missing = [
                f"no program of the {'section' if n in measured else 'chapter'} has {n}"
                for n in numbers
                if not _in(n, section if n in measured else chapter_code)
            ]
            if ordered and not any(CHECKS.search(c.text) for c in _nearest(shown, number)):
                missing.append("no cell near it asserts or reveals anything")
            yield Claim(chapter, cell.id, sentence, ", and ".join(missing))


def _value(number: str) -> float:
    return float(number.replace(",", ""))


def _in(number: str, program: str) -> bool:
    """Whether a number of the text is in a program; a share may be there as a part of 1."""
    value = _value(number)
    values = {float(n.replace("_", "")) for n in re.findall(r"(?<![\w.])\d[\d_]*\.?\d*", program)}
    return value in values or value / 100 in values or 1 + value / 100 in values


def _starts(cell: Cell) -> bool:
    return cell.kind == "markdown" and re.match(r"##? ", cell.text) is not None


def _section(cells: Sequence[Cell], number: int) -> list[Cell]:
    """The programs of the section that a cell is in."""
    start = next((i for i in range(number, -1, -1) if _starts(cells[i])), 0)
    end = next((i for i in range(number + 1, len(cells)) if _starts(cells[i])), len(cells))
    return [cell for cell in cells[start:end] if cell.kind == "code"]


def _nearest(cells: Sequence[Cell], number: int) -> list[Cell]:
    """The program just above a text, and the next ones below it, of the same section."""
    end = next((i for i in range(number + 1, len(cells)) if _starts(cells[i])), len(cells))
    above = [] if _starts(cells[number]) else [c for c in cells[:number][-1:] if c.kind == "code"]
    below = [c for c in cells[number + 1 : end] if c.kind == "code"]
    return [*above, *below[:BELOW]]


def course(root: Path = ROOT, chapters: Sequence[str] = ()) -> Iterator[Claim]:
    """The claims of all chapters, or of some."""
    for path in sorted((root / "course").glob("*.py")):
        if not chapters or path.name.startswith(tuple(chapters)):
            yield from claims(parse(path.read_text(encoding="utf-8"), path.name), path.stem)


def main() -> int:
    """Name what is not held; 1 if there is any."""
    parser = argparse.ArgumentParser(description="Claims of the prose that no cell checks.")
    parser.add_argument("chapters", nargs="*", help="such as 03; without any, all")
    parser.add_argument("--all", action="store_true", help="also what is held")
    args = parser.parse_args()
    found = list(course(chapters=args.chapters))
    for claim in found:
        if args.all or claim.missing:
            print(claim)
    return int(any(claim.missing for claim in found))


if __name__ == "__main__":
    raise SystemExit(main())
