"""All exercises, in the order of the course."""

from __future__ import annotations

from collections.abc import Mapping

from asyncgpu_tutor.exercises import (
    chapter_00,
    chapter_01,
    chapter_02,
    chapter_03,
    chapter_04,
    chapter_05,
    chapter_06,
    chapter_07,
    chapter_08,
    chapter_09,
)
from asyncgpu_tutor.exercises.exercise import Exercise

__all__ = ["EXERCISES"]

EXERCISES: Mapping[str, Exercise] = {
    exercise.name: exercise
    for chapter in (
        chapter_00,
        chapter_01,
        chapter_02,
        chapter_03,
        chapter_04,
        chapter_05,
        chapter_06,
        chapter_07,
        chapter_08,
        chapter_09,
    )
    for exercise in chapter.EXERCISES
}
