"""The export for instructors: what nbgrader asks of it, and that its tests tell right from wrong."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

import asyncgpu_tutor as agt
from tests.tools import ROOT, tool

RUN = "01_sync_kernels"  # the chapter that is run as a whole
ANSWERS = "asyncgpu_course/exercises/answers"
REGION = re.compile(r"### BEGIN SOLUTION\n.*?### END SOLUTION", re.DOTALL)
TOOL = tool("export_nbgrader")
SOURCES: dict[str, Any] = dict(TOOL.assignments())
GRADED = [
    pytest.param(name, cell.id.removesuffix("-check"), id=cell.id.removesuffix("-check"))
    for name, notebook in SOURCES.items()
    for cell in notebook.cells
    if cell.metadata.get("nbgrader", {}).get("grade")
]
# One exercise a chapter is enough here: test_chapters.py tests that each check tells right from wrong.
FIRST = list({p.values[0]: p for p in reversed(GRADED)}.values())


def released(notebook: Any) -> Any:
    """Take each solution out, as nbgrader does it for students."""
    student = nbformat.from_dict(notebook)
    for cell in student.cells:
        if cell.metadata.get("nbgrader", {}).get("solution"):
            hint = "# Your answer goes into the lines above."
            cell.source, number = REGION.subn(hint, cell.source)
            assert number == 1
    return student


def text(notebook: Any, name: str) -> str:
    (cell,) = [cell for cell in notebook.cells if cell.id == name]
    return cell.source


@pytest.fixture(autouse=True)
def _at_a_desk_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASYNCGPU_DEVICE", "sim")
    # Solutions meet all adversaries in test_chapters.py.
    monkeypatch.setattr("asyncgpu_course.api.ADVERSARIES", (1,))


def graded(notebook: Any, name: str, answer: str | None = None) -> None:
    """Run the setup, an answer and its test, as an autograder does; raises what the test raises."""
    shown: list[object] = []
    names: dict[str, Any] = {"display": shown.append}
    with agt.using("sim"):
        exec(text(notebook, "setup"), names)
        exec(text(notebook, name) if answer is None else answer, names)
        try:
            exec(text(notebook, f"{name}-check"), names)
        finally:
            assert len(shown) == 1  # the student is told, whatever comes of it


def test_each_exercise_is_an_answer_and_a_test_that_follows_it() -> None:
    names = [parameter.values[1] for parameter in GRADED]
    stored = [json.loads(f.read_text("utf-8")) for f in (ROOT / ANSWERS).glob("*.json")]
    assert sorted(names) == sorted(name for answers in stored for name in answers)
    for notebook in SOURCES.values():
        ids = [cell.id for cell in notebook.cells]
        for name in set(names) & set(ids):
            assert ids.index(f"{name}-check") == ids.index(name) + 1


# https://nbgrader.readthedocs.io/en/stable/contributor_guide/metadata.html
@pytest.mark.parametrize("name", SOURCES)
def test_the_metadata_are_those_of_schema_version_3(name: str) -> None:
    marked = [c for c in SOURCES[name].cells if "nbgrader" in c.metadata]
    ids = [cell.metadata["nbgrader"]["grade_id"] for cell in marked]
    assert len(set(ids)) == len(ids) >= 3
    for cell in marked:
        meta = cell.metadata["nbgrader"]
        assert meta["schema_version"] == 3
        assert re.fullmatch(r"[\w-]+", meta["grade_id"])
        assert cell.cell_type == "code"
        kind = {key for key in ("grade", "solution", "locked") if meta[key]}
        assert kind in ({"solution"}, {"grade", "locked"}, {"locked"})
        assert ("points" in meta) == meta["grade"]
        assert meta["task"] is False
        assert ("### BEGIN SOLUTION" in cell.source) == meta["solution"]


@pytest.mark.parametrize(("chapter", "name"), FIRST)
def test_the_source_passes_and_a_wrong_answer_fails_with_its_cause(chapter: str, name: str) -> None:
    graded(SOURCES[chapter], name)
    _, wrong = TOOL.chapter(ROOT / f"course/{chapter}.py")
    answer = next(cell for cell in wrong if cell.id == name)
    with pytest.raises(AssertionError) as failure:
        graded(released(SOURCES[chapter]), name, answer.text)
    assert answer.cause in str(failure.value)


@pytest.mark.parametrize(("chapter", "name"), GRADED)
def test_the_released_version_fails_and_keeps_the_secret(chapter: str, name: str) -> None:
    student = released(SOURCES[chapter])
    stored = json.loads((ROOT / ANSWERS / f"{chapter}.json").read_text("utf-8"))
    assert stored[name]["starter"] in text(student, name)
    assert stored[name]["solution"] not in text(student, name)
    with pytest.raises(AssertionError, match="not attempted yet"):
        graded(student, name)


def test_a_chapter_as_a_whole(tmp_path: Path) -> None:
    """As students get it, each graded cell fails and nothing else; solved, it is a notebook of ours."""
    notebook, place = nbformat.from_dict(released(SOURCES[RUN])), {"path": str(tmp_path)}
    options = {"timeout": 60, "allow_errors": True, "resources": {"metadata": place}}
    ran = NotebookClient(notebook, **options).execute()
    outputs = [(cell.id, o) for cell in ran.cells for o in cell.get("outputs", [])]
    failed = {name for name, output in outputs if output.output_type == "error"}
    assert failed == {f"{p.values[1]}-check" for p in GRADED if p.values[0] == RUN}


def test_links_lead_somewhere_in_the_tree(tmp_path: Path) -> None:
    for path in TOOL.export(tmp_path / "tree"):
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "markdown":
                for target in re.findall(r"\]\(([^)#:]+)\)", cell.source):
                    assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_what_lies_beside_a_notebook_comes_along(tmp_path: Path) -> None:
    (tmp_path / "course").mkdir()
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks/01_a.py").write_text("1\n")
    (tmp_path / "course/01_a.py").write_text(
        "# %% id=read\nopen('../notebooks/01_a.py')\n"
        "# %% id=a starter\nx = 1\n# %% id=a solution\nx = 2\n# %% id=a-check\ncheck('a', x)\n"
    )
    (path,) = TOOL.export(tmp_path / "tree", tmp_path)
    assert (path.parent / "01_a.py").exists()
    assert text(nbformat.read(path, as_version=4), "read") == "open('01_a.py')"


def test_a_check_that_is_no_call_of_check_is_refused() -> None:
    cells = tool("build_notebooks").parse(
        "# %% id=a starter\nx = 1\n# %% id=a solution\nx = 2\n# %% id=a-check\nprint(x)\n",
        "01_a.py",
    )
    with pytest.raises(TOOL.SourceError, match="01_a: the cell of a check is a call of it"):
        TOOL.assignment(cells, "01_a", [])


# ------------------------------------------------------------------ with nbgrader, where it is installed
@pytest.fixture
def nbgrader() -> Path:
    pytest.importorskip("nbgrader", reason="needs the extra nbgrader")
    return Path(sys.executable).with_name("nbgrader")


def test_nbgrader_itself_finds_the_metadata_valid(nbgrader: Path) -> None:
    from nbgrader.nbgraderformat import MetadataValidator

    for notebook in SOURCES.values():
        MetadataValidator().validate_nb(nbformat.from_dict(notebook))


def test_nbgrader_gives_all_points_or_none(nbgrader: Path, tmp_path: Path) -> None:
    course = tmp_path / "course"
    (source,) = TOOL.export(course, chapters=[RUN[:2]])

    # nbgrader starts another program of the same environment by its bare name.
    path = os.pathsep.join([str(nbgrader.parent), os.environ["PATH"]])

    def run(*words: str) -> None:
        how: Any = {"capture_output": True, "text": True, "env": {**os.environ, "PATH": path}}
        done = subprocess.run([str(nbgrader), *words], cwd=course, check=False, **how)
        assert done.returncode == 0, done.stderr

    run("generate_assignment", RUN)
    release = course / "release" / RUN / source.name
    ours = released(nbformat.read(source, as_version=4))
    theirs = nbformat.read(release, as_version=4)
    assert [c.source for c in theirs.cells] == [c.source for c in ours.cells]
    for student, handed_in in (("ada", source), ("bob", release)):
        folder = course / "submitted" / student / RUN
        folder.mkdir(parents=True)
        shutil.copy(handed_in, folder)
    run("autograde", RUN)

    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        handed_in = gradebook.assignment_submissions(RUN)
        scores = {one.student_id: (one.score, one.max_score) for one in handed_in}
    points = sum(p.values[0] == RUN for p in GRADED)
    assert scores == {"ada": (points, points), "bob": (0, points)}
