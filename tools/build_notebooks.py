"""Notebooks from their one source: ``course/NN_name.py`` gives ``notebooks/NN_name.ipynb``.

The source is in percent format, which editors know and diffs show well. A cell begins with a line such
as ::

    # %% [markdown] id=what-this-is
    # %% id=first-launch tags=raises-exception
    # %% id=first-launch-check tags=asserts
    # %% id=drawing tags=helpers
    # %% id=01-relu starter
    # %% id=01-relu solution
    # %% id=01-relu hints
    # %% id=01-relu explanation
    # %% id=02-fork guess within=0.1
    # %% id=02-fork reveal
    # %% id=02-fork lesson
    # %% id=02-fork told truth=230

Lines of Markdown begin with ``# ``. Every cell has an id of its own, which stays when the cell changes. A
cell that holds the page to what the trace says, and teaches nothing itself, has the tag `asserts`, and one
that the page needs and nobody has to read has the tag `helpers`: JupyterLab shows both folded, as a bar
that opens at a click. A `starter` cell is in the learner's notebook
only, and a `solution` cell only in the one that is written to ``solutions/``, which exists for sources that
have such cells. What precedes the first cell is for readers of the source.

All four parts of an exercise go to ``asyncgpu_course/exercises/answers/NN_name.json``, by the ids of their
cells, which are the names of the exercises. From there `check`, `hint` and `solution` have them. Hints, a
paragraph for each, and the explanation are Markdown, and in no notebook.

A guess has parts, too. `guess` is the question, in Markdown, with its options as a list of lines such as
``# - `name`: meaning``. It becomes two cells, the question and a line of code with three dots for the answer.
`reveal` is code, which the notebook has folded: it runs what settles the guess, and ends in
``reveal("02-fork", truth, picture, fact=number)``. What tells is in no notebook: the `lesson` of its picture,
and what is `told` with the verdict, where ``{fact:.0f}`` is a number of the run. Both go to
``asyncgpu_course/exercises/guesses/NN_name.json``, with the `truth` on the simulated device, to which the
tests hold the page: ``truth=*`` where each run has its own.

``course/wrong_answers/NN_name.py`` has plausible wrong answers to these exercises, which are in no
notebook. A test holds the check against each, which has to reject it with the cause that is given ::

    # %% id=01-relu cause="no thread wrote element 32"
    # %% id=08-costliest slip cause="That's by the mean, and one odd value decides it"

A wrong answer that differs from the solution in a few lines may consist of these, as in a diff: lines that
go, each behind ``# - ``, lines that come, behind ``# + ``, and lines that stay, behind ``#   ``, to say which
place is meant. Each is the next line that reads so, whatever its indentation, and the new ones get that of
the first old one that is told before theirs. With ``of=starter`` these are changes of the starter, and with
``of=above`` of the last whole answer above to the same exercise. Answers in ``course/right_answers/`` may be
written so, too, and a page's solution as changes of its starter ::

    # %% id=11-meet cause="the counter is past its `goal`"
    # - while (atomicAdd(arrived, 0) < goal) {
    # + while (atomicAdd(arrived, 0) != goal) {

A `slip` is a usual mistake that a check recognises by its result, and its cause is what the learner is told.
Those go to the file of answers, too.

``python tools/build_notebooks.py`` writes the notebooks, without outputs and in nbformat's own order of
keys, so that a diff shows what a person changed and nothing else. ``--check`` writes nothing, and names
the files that are not what the sources give. With numbers, such as ``03 04``, it looks at these chapters
alone.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import nbformat
from nbformat import v4

ROOT = Path(__file__).resolve().parents[1]
MARKER = re.compile(r"# %%(?P<options>( .*)?)")
FOLDERS = {"starter": "notebooks", "solution": "solutions"}
WORDS = ("hints", "explanation")
PARTS = (*FOLDERS, *WORDS)
FOLDED = {"asserts", "helpers", "reveal"}
GUESS = ("guess", "reveal", "lesson", "told")
OPTION = re.compile(r"^- `(\w+)`: (.+)$", re.MULTILINE)
# JupyterLab shows the first line of a folded cell on its bar, so that line must not tell.
BARS = {
    "reveal": "# Guess above, then run this.",
    "asserts": "# This holds the page to what happened.",
}
CHANGES = ("# -", "# +", "#  ")  # lines of an answer that go, come and stay
LATER = ("Encore", "Second sitting")  # how titles of what is for another day begin
ANSWERS = "asyncgpu_course/exercises/answers"
GUESSES = "asyncgpu_course/exercises/guesses"
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}

Audience = Literal["starter", "solution"]


class SourceError(Exception):
    """A course source that is no notebook; names file and line."""


@dataclass
class Cell:
    """One cell of a source."""

    kind: Literal["code", "markdown"] = "code"
    id: str = ""
    tags: list[str] = field(default_factory=list)
    # Which part of an exercise it is; None for what is in both kinds of notebook.
    only: str | None = None
    part: str = ""  # of a guess
    within: float = 0.0  # of a guess: by how much typed numbers may differ, as a part of the true
    truth: str = ""  # of a guess
    slip: bool = False  # a wrong answer that is recognised by what it returns
    cause: str = ""  # of a wrong answer: part of what the learner is told when it is rejected
    of: str = "solution"  # of an answer that is written as changes: of what
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The notebook's content."""
        bars = [BARS[tag] for tag in self.tags if tag in BARS]
        body = "\n".join([*bars[:1], "\n".join(self.lines).strip("\n")])
        return body if self.kind == "code" else re.sub(r"^# ?", "", body, flags=re.MULTILINE)

    @property
    def metadata(self) -> dict[str, Any]:
        """Of the cell in a notebook: its tags, and whether its source is folded away."""
        found: dict[str, Any] = {"tags": self.tags} if self.tags else {}
        if FOLDED.intersection(self.tags):
            found["jupyter"] = {"source_hidden": True}
        return found


def parse(source: str, name: str) -> list[Cell]:
    """The cells of a source; `SourceError` if one is not as it should be."""
    cells: list[Cell] = []
    for number, line in enumerate(source.splitlines(), 1):
        where = f"{name}, line {number}"
        if found := MARKER.fullmatch(line):
            cells.append(_head(shlex.split(found["options"]), where))
        elif cells:
            if cells[-1].kind == "markdown" and line.strip() and not line.startswith("#"):
                raise SourceError(f"{where}: a line of Markdown begins with '# ', not {line!r}")
            cells[-1].lines.append(line)
    _write_out([cell for cell in cells if cell.only in FOLDERS], {}, name)
    return cells


def parsed(source: Path) -> list[Cell]:
    """The cells of a source's file."""
    return parse(source.read_text(encoding="utf-8"), source.name)


def guesses_apart(cells: list[Cell], name: str) -> tuple[list[Cell], dict[str, dict[str, Any]]]:
    """The cells with guesses as a notebook has them, and what is asked and told, by the names of guesses."""
    shown: list[Cell] = []
    words: dict[str, dict[str, Any]] = {}
    revealed: set[str] = set()
    for cell in cells:
        if not cell.part:
            shown.append(cell)
        elif (cell.part == "guess") is (cell.id in words):
            raise SourceError(
                f"{name}: {cell.id}: its `guess` comes once, and before its `{cell.part}`"
            )
        elif cell.part == "guess":
            asked, options = OPTION.split(cell.text)[0].strip(), dict(OPTION.findall(cell.text))
            words[cell.id] = {"question": asked, "options": options, "within": cell.within}
            near = f" (Right is what's within {100 * cell.within:g} %.)" if cell.within else ""
            lines = [f"# **Guess.** {cell.text}{near}".replace("\n", "\n# ")]
            shown.append(Cell("markdown", f"{cell.id}-asked", lines=lines))
            shown.append(Cell("code", f"{cell.id}-guess", lines=[f'guess("{cell.id}", ...)']))
        elif cell.part == "reveal":
            revealed.add(cell.id)
            shown.append(Cell("code", f"{cell.id}-reveal", ["reveal"], lines=cell.lines))
        else:
            words[cell.id] |= {"truth": cell.truth} if cell.truth else {}
            words[cell.id][cell.part] = cell.text
    for guess, parts in words.items():
        if guess not in revealed or not {"told", "truth"} <= {*parts}:
            raise SourceError(f"{name}: {guess} lacks its `reveal`, or what is `told`, with truth=")
        if (options := parts["options"]) and parts["truth"] not in {*options, "*"}:
            raise SourceError(f"{name}: {guess}: its truth is one of {', '.join(options)}")
    return shown, words


def _head(options: list[str], where: str) -> Cell:
    cell = Cell()
    for option in options:
        key, _, given = option.partition("=")
        if option == "[markdown]":
            cell.kind = "markdown"
        elif option in PARTS:
            cell.only = option
            cell.kind = "markdown" if option in WORDS else cell.kind
        elif option in GUESS:
            cell.part = option
            cell.kind = "code" if option == "reveal" else "markdown"
        elif key == "within" and re.fullmatch(r"0?\.\d+", given):
            cell.within = float(given)
        elif key == "truth" and given:
            cell.truth = given
        elif option == "slip":
            cell.slip = True
        elif key == "cause" and given:
            cell.cause = given
        elif key == "of" and given in ("starter", "above"):
            cell.of = given
        elif key == "id" and re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", given):
            cell.id = given
        elif key == "tags" and given:
            cell.tags = given.split(",")
        else:
            raise SourceError(f"{where}: unknown cell option {option!r}")
    if not cell.id:
        raise SourceError(f"{where}: the cell has no id; give it one, as in '# %% id=first-launch'")
    return cell


def beside(source: Path, folder: str, cells: list[Cell]) -> list[Cell]:
    """The answers to a chapter's exercises in this folder, whole where they are changes of another."""
    path = source.parent / folder / source.name
    found = parsed(path) if path.exists() else []
    whole = {(cell.id, cell.only): cell.lines for cell in cells if cell.only in FOLDERS}
    _write_out(found, whole, f"{folder}/{source.name}")
    return found


def _write_out(
    answers: list[Cell], whole: dict[tuple[str, str | None], list[str]], name: str
) -> None:
    """Make whole what is written as changes, of one that is `whole` or above; all answers of a file."""
    for cell in answers:
        lines = [line for line in cell.lines if line]
        if lines and all(line.startswith(CHANGES) for line in lines):
            of = "starter" if cell.only else cell.of
            if (cell.id, of) not in whole:
                raise SourceError(
                    f"{name}: {cell.id}: there is no {of} that these could be changes of"
                )
            cell.lines = _changed(whole[cell.id, of], lines, f"{name}: {cell.id}")
        else:
            whole[cell.id, cell.only or "above"] = cell.lines


def _changed(whole: list[str], changes: list[str], where: str) -> list[str]:
    """The lines of an answer after these changes, which are told from top to bottom."""
    lines, at, indent, kind = [*whole], 0, "", "+"
    for change in changes:
        before, kind, line = kind, change[2], change[4:]
        if kind == "+":
            lines.insert(at, line and indent + line)
            at += 1
            continue
        places = [k for k in range(at, len(lines)) if lines[k].strip() == line.strip()]
        if not places:
            raise SourceError(f"{where}: not in what is changed, or not so far down: {line!r}")
        at = places[0]
        if before == "+":
            indent = lines[at][: -len(lines[at].lstrip())]
        if kind == "-":
            del lines[at]
        else:
            at += 1
    return lines


def chapter(source: Path) -> tuple[list[Cell], list[Cell]]:
    """The cells of a chapter, and the wrong answers to its exercises."""
    cells, _ = guesses_apart(parsed(source), source.name)
    if misplaced := [cell.id for cell in cells if cell.cause]:
        raise SourceError(f"{source.name}: belongs in wrong_answers/: {', '.join(misplaced)}")
    wrong = beside(source, "wrong_answers", cells)
    exercises = {cell.id for cell in cells if cell.only}
    for cell in wrong:
        if cell.id not in exercises or not cell.cause:
            raise SourceError(
                f"wrong_answers/{source.name}: a wrong answer has the name of an exercise as its id, and "
                f'a cause: cause="..."; {cell.id} has not'
            )
    return cells, wrong


def build(cells: list[Cell], audience: Audience, name: str) -> str:
    """The notebook for an audience, as nbformat writes it."""
    notebook = v4.new_notebook(metadata=METADATA)
    chosen = [cell for cell in cells if cell.only in (None, audience)]
    ids = [cell.id for cell in chosen]
    if twice := sorted({i for i in ids if ids.count(i) > 1}):
        raise SourceError(f"{name}: used for two cells of one notebook: id {', '.join(twice)}")
    for cell in chosen:
        make = v4.new_code_cell if cell.kind == "code" else v4.new_markdown_cell
        notebook.cells.append(make(cell.text, id=cell.id, metadata=cell.metadata))
    nbformat.validate(notebook)
    return nbformat.writes(notebook) + "\n"


def sittings(cells: Sequence[Cell]) -> Iterator[tuple[Cell, str]]:
    """Each cell, and for what day it is, as its section's title says: empty, or one of `LATER`."""
    day = ""
    for cell in cells:
        if cell.kind == "markdown" and cell.only is None:
            for title in re.findall(r"^## (.+)$", cell.text, re.MULTILINE):
                day = next((words for words in LATER if title.startswith(words)), "")
        yield cell, day


def answers(cells: list[Cell], name: str, wrong: Sequence[Cell] = ()) -> str:
    """The parts of each exercise, its day and its slips, as JSON; empty where there is no exercise."""
    found: dict[str, dict[str, Any]] = {}
    for cell, day in sittings(cells):
        if cell.only is not None:
            found.setdefault(cell.id, {"later": day.lower()} if day else {})[cell.only] = cell.text
    for exercise, parts in found.items():
        if missing := [part for part in PARTS if part not in parts]:
            raise SourceError(f"{name}: {exercise} lacks its {', '.join(missing)}")
    for cell in wrong:
        if cell.slip:
            found[cell.id].setdefault("slips", {})[cell.cause] = cell.text
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n" if found else ""


def guesses(source: Path) -> str:
    """What is asked and told of each guess, as JSON; empty where there is none."""
    _, words = guesses_apart(parsed(source), source.name)
    return json.dumps(words, indent=1, ensure_ascii=False) + "\n" if words else ""


def sources(root: Path, chapters: Sequence[str] = ()) -> list[Path]:
    """The sources whose names begin with one of these; without any, all."""
    found = sorted((root / "course").glob("*.py"))
    for name in chapters:
        if not any(path.name.startswith(name) for path in found):
            raise SourceError(f"no chapter's name begins with {name!r}")
    return [path for path in found if not chapters or path.name.startswith(tuple(chapters))]


def products(root: Path, chapters: Sequence[str] = ()) -> Iterator[tuple[Path, str]]:
    """The text of each file that is made from the `sources`, by its place."""
    for source in sources(root, chapters):
        cells, wrong = chapter(source)
        stored = answers(cells, source.name, wrong)
        yield root / "notebooks" / f"{source.stem}.ipynb", build(cells, "starter", source.name)
        if stored:
            yield root / "solutions" / f"{source.stem}.ipynb", build(cells, "solution", source.name)
            yield root / ANSWERS / f"{source.stem}.json", stored
        if asked := guesses(source):
            yield root / GUESSES / f"{source.stem}.json", asked


def main(root: Path = ROOT) -> int:
    """Write what is made from the sources, or check it; 1 if a check found some out of date."""
    parser = argparse.ArgumentParser(description="Notebooks from their source in course/.")
    parser.add_argument("chapters", nargs="*", help="such as 03; without any, all")
    parser.add_argument("--check", action="store_true", help="write nothing, name what differs")
    args = parser.parse_args()

    stale = False
    for path, text in products(root, args.chapters):
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        shown = path.relative_to(root).as_posix()
        if args.check:
            stale = True
            print(f"{shown} differs from its source in course/")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
            print(f"wrote {shown}")
    if stale:
        print("Repair with: make notebooks-build")
    return int(stale)


if __name__ == "__main__":
    raise SystemExit(main())
