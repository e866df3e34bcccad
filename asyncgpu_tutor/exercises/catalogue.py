"""All exercises, in the order of the course."""

from __future__ import annotations

from collections.abc import Mapping

from asyncgpu_tutor.exercises import chapter_01, chapter_07
from asyncgpu_tutor.exercises.exercise import Exercise

__all__ = ["EXERCISES"]

EXERCISES: Mapping[str, Exercise] = {
    exercise.name: exercise
    for chapter in (chapter_01, chapter_07)
    for exercise in chapter.EXERCISES
}
