"""The course as nbgrader assignments: ``course/NN_name.py`` gives ``source/NN_name/NN_name.ipynb``.

An assignment is the learner's notebook with three changes:

- the cell of an answer has the starter, and below it the solution between ``### BEGIN SOLUTION`` and
  ``### END SOLUTION``. nbgrader takes the latter out when it makes the version for students. (The marks
  cannot stand where the solution differs from the starter: in a kernel that would be inside a string.)
- the cell of a check is an autograder test: it shows what `check` says, and fails unless the answer was
  accepted.
- these and the setup carry nbgrader's metadata, version 3 of its schema:
  https://nbgrader.readthedocs.io/en/stable/contributor_guide/metadata.html

``python tools/export_nbgrader.py`` writes to ``build/nbgrader``; see docs/instructors.md for what to do then.
It needs no nbgrader. Chapters without exercises are left out.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import nbformat
from build_notebooks import METADATA, ROOT, Cell, SourceError, chapter, sources
from nbformat import v4

SCHEMA = 3
POINTS = 1
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
DOCUMENT = re.compile(r"\]\(\.\./docs/([\w./-]+)\)")
# Finds the files beside the notebooks that a program of a chapter reads, such as its twin.
BESIDE = re.compile(r"\.\./notebooks/(\w+\.(?!ipynb)\w+)")
CHAPTER = re.compile(r"\[([^\]]+)\]\((\w+)\.ipynb\)")

CONFIG = '''"""nbgrader's settings for the exported course. Options: nbgrader --help-all"""

c = get_config()  # noqa: F821 - nbgrader puts it there when it reads this file

c.CourseDirectory.course_id = "asyncgpu_tutor"
# This text replaces a solution. nbgrader's default raises, and would stop a student's Run All.
c.ClearSolutions.code_stub = {"python": "# Your answer goes into the lines above."}
# A check runs a kernel in Python, on devices of several kinds.
c.ExecutePreprocessor.timeout = 120
'''


def metadata(name: str, *, answer: bool = False, points: float | None = None) -> dict[str, Any]:
    """A cell's metadata for nbgrader: it is an answer, a test (with points), or read-only."""
    found: dict[str, Any] = {
        "schema_version": SCHEMA,
        "grade_id": name,
        "grade": points is not None,
        "solution": answer,
        "locked": not answer,
        "task": False,
    }
    if points is not None:
        found["points"] = points
    return {"nbgrader": found}


def assignment(cells: Sequence[Cell], name: str, exported: Sequence[str]) -> nbformat.NotebookNode:
    """The notebook of an assignment; links may lead to the chapters that are `exported`."""
    answers: dict[str, dict[str, Cell]] = {}
    for cell in cells:
        if cell.only is not None:
            answers.setdefault(cell.id, {})[cell.only] = cell
    notebook = v4.new_notebook(metadata=METADATA)
    for cell in cells:
        if cell.only not in (None, "starter"):
            continue
        if cell.kind == "markdown":
            new = v4.new_markdown_cell(_linked(cell.text, exported), id=cell.id)
        elif cell.id in answers:
            solved = answers[cell.id]["solution"].text
            text = f"{cell.text}\n\n{BEGIN}\n{solved}\n{END}"
            new = v4.new_code_cell(text, id=cell.id, metadata=metadata(cell.id, answer=True))
        elif cell.id.removesuffix("-check") in answers:
            new = v4.new_code_cell(
                _test(cell.text, name), id=cell.id, metadata=metadata(cell.id, points=POINTS)
            )
        else:
            new = v4.new_code_cell(BESIDE.sub(r"\1", cell.text), id=cell.id, metadata=cell.metadata)
            if cell.id == "setup":
                new.metadata.update(metadata(f"{name[:2]}-setup"))
        notebook.cells.append(new)
    nbformat.validate(notebook)
    return notebook


def _test(check: str, name: str) -> str:
    """An autograder test from the call of `check`, whatever a student has made of that name."""
    call = ast.parse(check, mode="eval").body
    if not (isinstance(call, ast.Call) and getattr(call.func, "id", "") == "check"):
        raise SourceError(f"{name}: the cell of a check is a call of it, not {check!r}")
    return (
        "from asyncgpu_course import check\n\n"
        f"outcome = {check}\n"
        "display(outcome)\n"
        'assert outcome.accepted, outcome.cause or "not attempted yet"'
    )


def _linked(text: str, exported: Sequence[str]) -> str:
    """Links as they are in a tree with a folder for each assignment."""

    def linked(found: re.Match[str]) -> str:
        words, name = found.groups()
        return f"[{words}](../{name}/{name}.ipynb)" if name in exported else words

    return CHAPTER.sub(linked, DOCUMENT.sub(r"](docs/\1)", BESIDE.sub(r"\1", text)))


def assignments(
    root: Path = ROOT, chapters: Sequence[str] = ()
) -> Iterator[tuple[str, nbformat.NotebookNode]]:
    """Name and notebook of each chapter that has exercises."""
    pages = {source.stem: chapter(source)[0] for source in sources(root, chapters)}
    named = [name for name, cells in pages.items() if any(c.only == "solution" for c in cells)]
    for name in named:
        yield name, assignment(pages[name], name, named)


def export(folder: Path, root: Path = ROOT, chapters: Sequence[str] = ()) -> list[Path]:
    """Write nbgrader's course directory; the notebooks that were written."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "nbgrader_config.py").write_text(CONFIG, encoding="utf-8", newline="\n")
    written: list[Path] = []
    for name, notebook in assignments(root, chapters):
        home = folder / "source" / name
        home.mkdir(parents=True, exist_ok=True)
        path = home / f"{name}.ipynb"
        text = json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
        path.write_text(text, encoding="utf-8", newline="\n")
        for page in {
            p for c in notebook.cells for p in re.findall(r"\]\((docs/[^)]+)\)", c.source)
        }:
            (home / page).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / page, home / page)
        for beside in set(BESIDE.findall((root / f"course/{name}.py").read_text(encoding="utf-8"))):
            shutil.copy(root / "notebooks" / beside, home)
        written.append(path)
    return written


def main() -> int:
    """Write the tree, and say where."""
    parser = argparse.ArgumentParser(description="The course as nbgrader assignments.")
    parser.add_argument("chapters", nargs="*", help="such as 03; without any, all")
    parser.add_argument("--to", type=Path, default=ROOT / "build/nbgrader", help="the folder")
    args = parser.parse_args()
    for path in export(args.to, chapters=args.chapters):
        print(f"wrote {path}")
    print(f"Next: cd {args.to}, then nbgrader generate_assignment NAME; see docs/instructors.md")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
