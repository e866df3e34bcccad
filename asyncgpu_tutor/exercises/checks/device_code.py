"""Checks of device code as text, where running it on the simulated device does not tell."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

from asyncgpu_tutor.errors import RaceError
from asyncgpu_tutor.exercises.exercise import Rejected, must
from asyncgpu_tutor.exercises.internals import include_headers

T = TypeVar("T")
_COMMENT = re.compile(r"//.*|/\*[\s\S]*?\*/")
_FUNCTION = re.compile(r"__device__|__global__")
# A line of the whole text, as messages of kernels and of the compiler name it.
_PLACE = re.compile(r"\(line (?P<at>\d+) of the kernel\)|kernel\.cu:(?P<line>\d+):(?P<column>\d+)")


@dataclass(frozen=True)
class Fence:
    """A fence that an answer needs.

    Attributes
    ----------
    place : str
        Between what it belongs, in words.
    why : str
        What goes wrong without it.
    before, after : str
        Patterns of the code between which it belongs; none if the simulated device notices a missing one.
        Code that has not both in one function may be right in its own way: its fences are only counted.
    """

    place: str
    why: str
    before: str = r"(?!)"
    after: str = r"(?!)"

    def is_open(self, code: str, name: str) -> bool:
        """True if the text shows that there is no call of `name` in this place."""
        for after in re.finditer(self.after, code):
            body = _FUNCTION.split(code[: after.start()])[-1]
            before = list(re.finditer(self.before, body))
            if before and not re.search(name, body[before[-1].end() :]):
                return True
        return False


def without_comments(source: str) -> str:
    """Device code as the compiler sees it."""
    return _COMMENT.sub(" ", source)


def fenced(source: str, name: str, fences: Sequence[Fence]) -> None:
    """There is a fence in each of these places, in the order of the text.

    The simulated device has no caches, so some that are missing do no harm there. A wider fence than `name`
    will do as well.
    """
    code = without_comments(source)
    called = rf"\b{name}(?:_system)?\s*\("
    found = len(re.findall(called, code))
    for number, fence in enumerate(fences, 1):
        there = found >= number and not fence.is_open(code, called)
        must(there, f"there is no `{name}()` between {fence.place}: {fence.why}")


@contextmanager
def tried_and_fenced(source: str, name: str, fences: Sequence[Fence]) -> Generator[None]:
    """The code tried in the block is right, and has its fences. A race is put down to missing ones."""
    try:
        yield
    except Rejected as rejected:
        if isinstance(rejected.__cause__, RaceError) and name not in without_comments(source):
            fenced(source, name, fences)
        raise
    fenced(source, name, fences)


@contextmanager
def own_lines(mine: object, before: str = "", after: str = "") -> Generator[None]:
    """Make whatever is rejected in the block name lines of the learner's own text.

    It was compiled between two others, and with the text of its headers. A line of those is quoted.
    """
    try:
        yield
    except Rejected as rejected:
        if not isinstance(mine, str):
            raise
        whole = include_headers(before + mine + after).split("\n")
        ahead = include_headers(before + mine).count("\n") - mine.count("\n")

        def place(match: re.Match[str]) -> str:
            line = int(match["at"] or match["line"])
            own = line - ahead
            if 0 < own <= mine.count("\n") + 1:
                column = match["column"]
                return f"(line {own} of your text)" if match["at"] else f"kernel.cu:{own}:{column}"
            quoted = f"`{whole[line - 1].strip()}`, which is not in your text"
            return f"(at {quoted})" if match["at"] else f"kernel.cu, at {quoted}"

        rejected.cause = _PLACE.sub(place, rejected.cause)
        raise


def in_own_lines(check: Callable[[Any, Any], T]) -> Callable[[Any, Any], T]:
    """A check that names lines as `own_lines` does, of a kernel that includes headers."""

    @wraps(check)
    def named(mine: Any, model: Any) -> T:
        with own_lines(mine):
            return check(mine, model)

    return named
