"""The exercises, one file a chapter: what each one checks. Their words are in `course/`.

`EXERCISES` has all of them by name, in the order of the course, which is that of the files' names: those of
`CHAPTER_01` in `ch01.py`, and so on.
"""

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules

from asyncgpu_course.exercises.exercise import Exercise

__all__ = ["BOOKS", "EXERCISES"]

# By their first chapters; also in README.md.
BOOKS = {
    "00": "One GPU, driven from Python", "08": "Where the time goes", "11": "The GPU decides",
    "15": "More than one GPU", "17": "A language model of your own", "20": "Inside one SM",
}  # fmt: skip

EXERCISES: Mapping[str, Exercise] = {
    exercise.name: exercise
    for file in sorted(module.name for module in iter_modules(__path__))
    for exercise in vars(import_module(f"{__name__}.{file}"))[f"CHAPTER_{file[2:].upper()}"]
}
