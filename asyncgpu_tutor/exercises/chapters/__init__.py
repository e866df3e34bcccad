"""The exercises, one file a chapter: what each one checks. Their words are in `course/`.

`EXERCISES` has all of them by name, in the order of the course.
"""

from __future__ import annotations

from collections.abc import Mapping

from asyncgpu_tutor.exercises.chapters import (
    ch00,
    ch01,
    ch02,
    ch02b,
    ch03,
    ch04,
    ch05,
    ch06,
    ch07,
    ch08,
    ch09,
    ch10,
    ch11,
    ch12,
    ch13,
    ch14,
)
from asyncgpu_tutor.exercises.exercise import Exercise

__all__ = ["EXERCISES"]

CHAPTERS = (
    ch00,
    ch01,
    ch02,
    ch02b,
    ch03,
    ch04,
    ch05,
    ch06,
    ch07,
    ch08,
    ch09,
    ch10,
    ch11,
    ch12,
    ch13,
    ch14,
)
EXERCISES: Mapping[str, Exercise] = {
    exercise.name: exercise for chapter in CHAPTERS for exercise in chapter.EXERCISES
}
