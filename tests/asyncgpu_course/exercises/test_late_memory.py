"""Exercises about fences: without any one of them an answer is refused, and the cause names the fence."""

import pytest

from asyncgpu_course.api import ADVERSARIES
from asyncgpu_course.checks.rejection import Rejected
from asyncgpu_course.checks.sandbox import private_device
from asyncgpu_course.exercises import answers
from asyncgpu_course.exercises.chapters import EXERCISES

FENCE = "__threadfence();"


def refused(name: str, answer: str) -> list[str]:
    """The causes for which an answer is refused: by value where memory is late, or else by its races."""
    exercise, causes = EXERCISES[name], list[str]()
    judges = [(exercise.hostile, seed) for seed in ADVERSARIES if exercise.hostile]
    # Late memory tells no races.
    judges += [(exercise.check, seed) for seed in (*ADVERSARIES, None)]
    for judge, seed in judges:
        with private_device(adversary=seed):
            try:
                judge(answer, answers.model(exercise))
            except Rejected as rejected:
                causes.append(rejected.cause)
    return causes


@pytest.mark.rests_on("checks", "simgpu")
@pytest.mark.parametrize("name", ["11-meet", "11b-last", "11-again", "12-oneshot", "12-channel"])
def test_each_fence_matters(name: str) -> None:
    model = str(answers.model(EXERCISES[name]))
    assert not refused(name, model)
    parts = model.split(FENCE)
    for k in range(1, len(parts)):
        without = FENCE.join(parts[:k]) + FENCE.join(parts[k:])
        (cause, *_) = refused(name, without)
        assert "fence" in cause
