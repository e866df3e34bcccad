"""Starters, solutions, hints and explanations, as the course's sources have them.

``tools/build_notebooks.py`` writes the files in ``answers/`` from the cells in ``course/``, as it does the
notebooks.
"""

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.resources import files
from types import CodeType, EllipsisType, NoneType
from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks.sandbox import private_device
from asyncgpu_course.exercises.exercise import Exercise


@cache
def stored(folder: str = "answers") -> dict[str, dict[str, Any]]:
    """What `tools/build_notebooks.py` has put beside the checks, by the names of exercises or guesses."""
    found: dict[str, dict[str, Any]] = {}
    for file in files("asyncgpu_course").joinpath("exercises", folder).iterdir():
        if file.name.endswith(".json"):
            found.update(json.loads(file.read_text(encoding="utf-8")))
    return found


def solution_text(exercise: Exercise) -> str:
    """The solution's code."""
    return stored()[exercise.name]["solution"]


def hints(exercise: Exercise) -> list[str]:
    """From a nudge to nearly the answer; Markdown, each on one line."""
    return [" ".join(hint.split()) for hint in stored()[exercise.name]["hints"].split("\n\n")]


def later(exercise: Exercise) -> str:
    """The day that it is for, if it is not for the page's main part: an encore, or the second sitting."""
    return stored()[exercise.name].get("later", "")


def explanation(exercise: Exercise) -> str:
    """Why the solution is right, for those who have found it; Markdown, on one line."""
    return " ".join(stored()[exercise.name]["explanation"].split())


@cache
def _made(name: str, which: str, answer: str) -> Any:
    """The answer that a stored cell defines."""
    parts = stored()[name]
    names: dict[str, Any] = {"agt": agt, "asyncio": asyncio, "np": np}
    with private_device():  # a kernel is compiled for the current device when it is made
        exec(parts.get(which) or parts["slips"][which], names)
    return names[answer]


def slips(name: str, answer: str) -> Iterator[tuple[str, Any]]:
    """The usual mistakes in an exercise: what is said of each, and what it defines."""
    return ((why, _made(name, why, answer)) for why in stored()[name].get("slips", {}))


def model(exercise: Exercise) -> Any:
    """The solution's answer."""
    return _made(exercise.name, "solution", exercise.answer)


def untouched(exercise: Exercise, answer: object) -> bool:
    """True if this is still what the starter cell defines."""
    if isinstance(answer, EllipsisType):
        return True
    starter = _made(exercise.name, "starter", exercise.answer)
    with suppress(Exception):  # of a NumPy number, `==` is an error, or an array
        return bool(_content(answer) == _content(starter))
    return False


def _content(answer: object) -> object:
    """The part of an answer that is compared: a kernel's text, or the code of a function or of methods."""
    if isinstance(answer, agt.Kernel):
        return answer.source.split()
    if isinstance(answer, str):
        return answer.split()
    if isinstance(answer, dict):
        answer = tuple(cast(dict[str, object], answer).items())
    if isinstance(answer, tuple):  # an exercise may ask for a diagnosis and a program
        return tuple(_content(part) for part in cast(tuple[object, ...], answer))
    if isinstance(answer, type):
        members = vars(answer).items()
        return {k: _content(v) for k, v in members if hasattr(v, "__code__") or k[0] != "_"}
    if isinstance(answer, staticmethod):
        return _content(cast(Any, answer).__func__)
    code: object = getattr(answer, "__code__", None)
    if isinstance(code, CodeType):
        return _code(code)
    # Of other things only plain ones are compared: `==` of arrays is an array, or an error.
    return answer if isinstance(answer, int | float | NoneType) else id(answer)


def _code(code: CodeType) -> tuple[object, ...]:
    constants = [_code(c) if isinstance(c, CodeType) else c for c in code.co_consts]
    return (code.co_code, code.co_names, code.co_varnames, repr(constants))
