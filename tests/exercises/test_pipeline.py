"""Chapter 13's challenge: its page says how long the starter and the solution take, and they do."""

from __future__ import annotations

import re
from typing import Any

import pytest

from asyncgpu_tutor.exercises import Rejected
from asyncgpu_tutor.exercises.answers import model
from asyncgpu_tutor.exercises.chapters import EXERCISES
from asyncgpu_tutor.exercises.sandbox import private_device
from tests.exercises.test_course import CHAPTERS

CELLS = CHAPTERS["13_hostcalls.py"]
SAID = re.compile(r"it takes (\d+) µs: get below (\d+)\..* has (\d+);")


def test_the_times_on_the_page() -> None:
    exercise = EXERCISES["13-pipeline"]
    (page,) = CELLS["exercise-pipeline"]
    ((starter, goal, solution),) = SAID.findall(" ".join(page.text.split()))
    names: dict[str, Any] = {}
    exec(next(cell.text for cell in CELLS[exercise.name] if cell.only == "starter"), names)

    with private_device(), pytest.raises(Rejected) as said:
        exercise.check(names["PIPELINE"], None)
    with private_device():
        best = exercise.check(model(exercise), None)

    assert f"takes {starter} µs: get below {goal}" in said.value.cause
    assert f"{best:.0f}" == solution
