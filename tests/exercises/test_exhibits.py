"""Exhibits give evidence of one defect each, and their twins of none."""

from __future__ import annotations

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.commands.profile import RUNS
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.exercises.exhibits import EXHIBITS, exhibit


@pytest.mark.parametrize("letter", EXHIBITS)
def test_an_exhibit_shows_its_defect_and_no_other_and_its_twin_none(letter: str) -> None:
    (finding,) = (f for f in agt.diagnose(exhibit(letter)) if not f.limit)

    assert f"08_{finding.name.replace(' ', '_')}" == EXHIBITS[letter]
    assert all(f.limit for f in agt.diagnose(exhibit(letter, repaired=True)))


@pytest.mark.parametrize("letter", EXHIBITS)
def test_nothing_about_it_names_the_defect(letter: str) -> None:
    told = f"{exhibit(letter).about} {exhibit(letter).device}"

    assert RUNS[EXHIBITS[letter]].about not in told
    assert EXHIBITS[letter] not in told
    assert "NVIDIA" in told  # it does say where it was made


@pytest.mark.parametrize("letter", EXHIBITS)
def test_it_begins_with_its_first_call(letter: str) -> None:
    assert min(span.start for span in exhibit(letter) if span.kind != "range") == 0


def test_each_program_of_the_list_has_an_exhibit() -> None:
    guilty = {name for name in RUNS if name.startswith("08_") and not name.endswith("_repaired")}

    assert set(EXHIBITS.values()) == guilty


def test_an_unknown_letter_is_refused() -> None:
    with pytest.raises(UsageError, match="there is no exhibit 'Z'; there are 'A', 'B'"):
        exhibit("Z")
