"""How long the chapters are, and how many minutes they take.

Minutes are reckoned, not measured with learners:

- prose at 238 words a minute, what adults read of non-fiction in English, silently: M. Brysbaert, "How many
  words do we read per minute? A review and meta-analysis of reading rate", Journal of Memory and Language 109
  (2019), 104047, https://doi.org/10.1016/j.jml.2019.104047;
- 3 seconds for a line of code, 5 to run a cell and look at what it says, 30 for a picture of time;
- 1 minute for a prediction: to think, and to commit an answer;
- 3 minutes for an exercise, and half a minute more for each line of its solution that the starter does not
  have: to write it, try it, and read what `check` says;
- and the time for which the notebook itself computes (with ``--run``; else what the table has).

All but the first are guesses of ours, to be replaced once somebody has held a watch. A test compares the sum
with what each chapter's header promises.

``python tools/course_length.py`` prints the table, ``--write`` puts it into docs/instructors.md, and
``--run`` runs the notebooks first, on the simulated device.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from build_notebooks import ROOT, Cell, parse

WORDS_A_MINUTE = 238
LINE, CELL, PICTURE = 3 / 60, 5 / 60, 30 / 60  # minutes, as those below
PREDICTION, EXERCISE, SOLUTION_LINE = 1.0, 3.0, 0.5

# A header may differ from the reckoning by this part of it, or by these minutes where they are more.
TOLERANCE, SLACK = 0.15, 3.0

PAGE = "docs/instructors.md"
BEGIN, END = "<!-- course length: begin -->", "<!-- course length: end -->"
HEADER = re.compile(r"^\| Time \| (\d+) minutes \|$", re.MULTILINE)
NOT_PROSE = (
    re.compile(r"```.*?```", re.DOTALL),
    re.compile(r"\]\([^)]*\)"),  # where a link leads
    re.compile(r"<[^>]+>"),
)
DRAWS = re.compile(r"\bcompare\(|\.plot\(|\bplt\.")


@dataclass(frozen=True)
class Length:
    """What a chapter asks of its reader.

    Attributes
    ----------
    solution_lines : int
        Of all solutions, those that the starters do not have.
    seconds : float or None
        For which the notebook computes; None if nobody has run it.
    header : int or None
        Minutes that its own header promises.
    """

    name: str
    words: int
    lines: int
    cells: int
    pictures: int
    predictions: int
    exercises: int
    solution_lines: int
    seconds: float | None
    header: int | None

    @property
    def minutes(self) -> float:
        """By the sum in this module's docstring."""
        return (
            self.words / WORDS_A_MINUTE
            + LINE * self.lines
            + CELL * self.cells
            + PICTURE * self.pictures
            + PREDICTION * self.predictions
            + EXERCISE * self.exercises
            + SOLUTION_LINE * self.solution_lines
            + (self.seconds or 0.0) / 60
        )

    @property
    def honest(self) -> bool:
        """Whether the header says about as much."""
        allowed = max(TOLERANCE * self.minutes, SLACK)
        return self.header is not None and abs(self.header - self.minutes) <= allowed


def words(text: str) -> int:
    """How many words of prose Markdown has: without programs, markup and addresses."""
    for pattern in NOT_PROSE:
        text = pattern.sub(" ", text)
    return len(re.findall(r"[^\W_][\w'.]*", text))


def measured(cells: Sequence[Cell], name: str, seconds: float | None = None) -> Length:
    """The length of one chapter."""
    prose = [cell.text for cell in cells if cell.kind == "markdown"]
    answers = {cell.id for cell in cells if cell.only is not None}
    shown = [
        cell.text
        for cell in cells
        if cell.kind == "code" and cell.id.removesuffix("-check") not in answers
    ]
    starters = {cell.id: cell.text for cell in cells if cell.only == "starter"}
    solutions = {cell.id: cell.text for cell in cells if cell.only == "solution"}
    found = HEADER.search("\n".join(prose))
    return Length(
        name=name,
        words=sum(map(words, prose)),
        lines=sum(map(_lines, shown)),
        cells=len(shown),
        pictures=sum(bool(DRAWS.search(text)) for text in shown),
        predictions=sum("Prediction(" in text for text in shown),
        exercises=len(solutions),
        solution_lines=sum(_new(text, starters.get(i, "")) for i, text in solutions.items()),
        seconds=seconds,
        header=int(found[1]) if found else None,
    )


def _lines(text: str) -> int:
    return sum(bool(line.strip()) for line in text.splitlines())


def _new(solution: str, starter: str) -> int:
    there = {line.strip() for line in starter.splitlines()}
    return sum(bool(line.strip()) and line.strip() not in there for line in solution.splitlines())


def course(root: Path = ROOT, seconds: Mapping[str, float] | None = None) -> list[Length]:
    """All chapters."""
    known = stored(root) if seconds is None else seconds
    return [
        measured(
            parse(path.read_text(encoding="utf-8"), path.name), path.stem, known.get(path.stem)
        )
        for path in sorted((root / "course").glob("*.py"))
    ]


def stored(root: Path = ROOT) -> dict[str, float]:
    """The run times that the page has."""
    page = root / PAGE
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    rows = re.findall(r"^\| \[(\w+)\].*\| (\d+) s \|$", text, re.MULTILINE)
    return {name: float(seconds) for name, seconds in rows}


def timed(root: Path = ROOT) -> dict[str, float]:
    """Seconds of processor time that each notebook's kernel uses, on the simulated device.

    On a machine with nothing else to do it is what one waits, and on a busy one it is the same.
    """
    import nbformat
    from nbclient import NotebookClient

    os.environ["ASYNCGPU_DEVICE"] = "sim"
    found: dict[str, float] = {}
    for path in sorted((root / "notebooks").glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        notebook.cells.append(nbformat.v4.new_code_cell("import time; print(time.process_time())"))
        NotebookClient(
            notebook, timeout=60, resources={"metadata": {"path": str(path.parent)}}
        ).execute()
        found[path.stem] = float(notebook.cells[-1].outputs[0].text)
    return found


def table(chapters: Sequence[Length]) -> Iterator[str]:
    """Lines of Markdown."""
    yield "| chapter | minutes | words | cells of code | predictions | exercises | computes for |"
    yield "|---|---|---|---|---|---|---|"
    for c in chapters:
        runs = "" if c.seconds is None else f"{c.seconds:.0f} s"
        yield (
            f"| [{c.name}](../notebooks/{c.name}.ipynb) | {_rounded(c.minutes)} | {c.words:,} | "
            f"{c.cells} | {c.predictions} | {c.exercises} | {runs} |"
        )
    total = sum(_rounded(c.minutes) for c in chapters)
    yield (
        f"| all | {total // 60} h {total % 60} min | {sum(c.words for c in chapters):,} | "
        f"{sum(c.cells for c in chapters)} | {sum(c.predictions for c in chapters)} | "
        f"{sum(c.exercises for c in chapters)} | |"
    )


def _rounded(minutes: float) -> int:
    return 5 * max(1, round(minutes / 5))


def main() -> int:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description="How long the chapters are.")
    parser.add_argument("--run", action="store_true", help="run the notebooks, and note how long")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE}")
    args = parser.parse_args()

    chapters = course(seconds=timed() if args.run else None)
    lines = "\n".join(table(chapters))
    print(lines)
    for c in chapters:
        if not c.honest:
            print(f"{c.name}: the header says {c.header} minutes, the sum {c.minutes:.0f}")
    if args.write:
        page = ROOT / PAGE
        before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        text = f"{before}{BEGIN}\n{lines}\n{END}{after}"
        page.write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
