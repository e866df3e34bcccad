"""IPython takes a line for a magic if its first word is the name of one, and no variable has that name."""

from typing import Any

import nbformat

import asyncgpu_course
import asyncgpu_tutor as agt
from tests.tools import ROOT


def magics(shell: Any) -> set[str]:
    found: dict[str, dict[str, object]] = shell.magics_manager.magics
    return {*found["line"], *found["cell"]}


def test_no_name_that_a_learner_is_told_to_call_is_a_magic(shell: Any) -> None:
    names = {*agt.__all__, *asyncgpu_course.__all__}
    assert names & magics(shell) == set()
    assert {"who", "reset", "run", "time"} <= magics(shell)  # so this test can fail


def test_no_line_of_the_pages_is_taken_for_a_magic(shell: Any) -> None:
    taken = magics(shell)
    for path in sorted(ROOT.glob("notebooks/*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "code" and len(lines := cell.source.splitlines()) == 1:
                assert lines[0].split("(")[0].split()[0] not in taken, (path.name, lines[0])


def test_a_variable_of_the_course_goes_before_the_magic_of_its_name(shell: Any) -> None:
    for name in ("run", "who", "capture", "page", "colors"):  # what pages and solutions call things
        shell.run_cell(f"{name} = '{name} of the page'")
        assert shell.run_cell(name).result == f"{name} of the page"
