"""Exhibits give evidence of one defect each, and their twins of none."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

import asyncgpu_tutor as agt
from asyncgpu_course.checks.sandbox import private_device
from asyncgpu_course.exercises.chapters.ch08b import SUSPECTS, line_up
from asyncgpu_course.exhibits import EXHIBITS, report, rounds
from asyncgpu_tutor import Trace
from asyncgpu_tutor.errors import UsageError
from tests.tools import tool

_programs = tool("course_programs")
RUNS = _programs.RUNS

ROOT = Path(__file__).resolve().parents[2]
# A profiler sees calls of CUDA. A pool answers the allocations of F without one.
UNSEEN = {"F"}


def defects(trace: Trace) -> list[str]:
    return [finding.name for finding in agt.diagnose(trace) if not finding.limit]


@pytest.mark.parametrize("letter", EXHIBITS)
def test_a_report_shows_its_defect_and_no_other_and_its_twin_none(letter: str) -> None:
    own = EXHIBITS[letter].removeprefix("08_").replace("_", " ")
    assert defects(report(letter)) == ([] if letter in UNSEEN else [own])
    assert defects(report(letter, repaired=True)) == []


@pytest.mark.parametrize("letter", EXHIBITS)
@pytest.mark.parametrize("repaired", [False, True])
def test_nothing_about_it_names_the_defect(letter: str, repaired: bool) -> None:
    trace = report(letter, repaired=repaired)
    program = EXHIBITS[letter] + ("_repaired" if repaired else "")
    assert RUNS[program].about not in str(trace.about)
    assert EXHIBITS[letter] not in str(trace.about)
    assert trace.device == "NVIDIA H200"


@pytest.mark.parametrize("letter", EXHIBITS)
@pytest.mark.parametrize("repaired", [False, True])
def test_rounds_are_alike_and_one_after_the_other(letter: str, repaired: bool) -> None:
    found = rounds(letter, repaired=repaired)
    names = {tuple(sorted(span.name for span in work)) for work in found}
    assert len(found) == (1 if (letter, repaired) == ("E", False) else 4)  # a module is loaded once
    assert len(names) == 1
    for early, late in pairwise(found):
        assert max(span.end for span in early) <= min(span.start for span in late)


def test_the_page_shows_programs_as_they_were_recorded_and_by_which_version() -> None:
    """Its blocks of code are lines of the programs beside the notebooks, in order."""
    page = (ROOT / "course/08_profiling.py").read_text(encoding="utf-8")
    assert {report(letter).about["profiler"] for letter in EXHIBITS} == {"2025.3.2.0"}
    assert "2025.3.2" in page
    shown = re.findall(r"# ```python\n(.*?)# ```", page, re.DOTALL)
    programs = ["heat", "heat_annotated", "swarm", "heat_repaired"]
    assert len(shown) == len(programs)
    for block, name in zip(shown, programs, strict=True):
        code = re.sub(r"(?m)^# ?", "", block)
        assert code in (ROOT / f"notebooks/nsight/{name}.py").read_text(encoding="utf-8")


def test_the_detective_and_the_check_of_one_agree() -> None:
    with private_device():
        rounds_in_line = line_up()
    for words, trace, right in rounds_in_line:
        found = [finding.name for finding in agt.diagnose(trace) if finding.name in SUSPECTS]
        assert [*found, "innocent"][0] == right, words


def test_each_program_of_the_list_has_an_exhibit_and_an_unknown_letter_is_refused() -> None:
    guilty = {name for name in RUNS if name.startswith("08_") and not name.endswith("_repaired")}
    assert set(EXHIBITS.values()) == guilty
    with pytest.raises(UsageError, match="there is no exhibit 'Z'; there are 'A', 'B'"):
        report("Z")
