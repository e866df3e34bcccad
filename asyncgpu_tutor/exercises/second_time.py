"""A function that was right is asked again, about other numbers, and then while a piece of its work fails.

So it can keep neither a result for the next call nor an error from its caller.
"""

from __future__ import annotations

import inspect
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from asyncgpu_tutor.exercises.checks.operations import AGAIN
from asyncgpu_tutor.exercises.device import MISHAP, Mishap, MishapError
from asyncgpu_tutor.exercises.exercise import Exercise, case, must
from asyncgpu_tutor.exercises.patience import not_for_ever
from asyncgpu_tutor.exercises.sandbox import FAR, private_device, told

ANEW = "everything asked once more, about other numbers (keep nothing from one call to the next)"
KEPT = (
    "when the device refuses to run `{}`, the error doesn't come out of your function, and its caller "
    "takes whatever comes instead for a result: let errors through"
)


def ask_again(exercise: Exercise, answer: object, model: object) -> None:
    """Reject a function that is wrong the second time, or keeps an error to itself."""
    AGAIN.set(1)
    seen = Mishap()
    with case(ANEW), told(FAR):
        _try(exercise, answer, model, seen)
    pieces = {0, 2, seen.first - 1} if exercise.lets_errors_out and seen.passed else set[int]()
    for number in sorted(pieces - {-1}):
        mishap = Mishap(number)
        try:
            _try(exercise, answer, model, mishap)
        except Exception as error:  # noqa: BLE001 - without its error, an answer may fail anywhere
            if any(isinstance(one, MishapError) for one in _behind(error)):
                continue
        must(not mishap.happened, KEPT.format(mishap.happened))


def _try(exercise: Exercise, answer: object, model: object, mishap: Mishap) -> None:
    token = MISHAP.set(mishap)
    try:
        with private_device(), not_for_ever():
            exercise.check(_noted(answer, mishap, True), _noted(model, mishap, False))
    finally:
        MISHAP.reset(token)


def _noted(function: Any, mishap: Mishap, own: bool) -> Any:
    """A function that arms the mishap, if it is the learner's `own`; in the solution nothing fails."""

    @contextmanager
    def inside() -> Generator[None]:
        before, mishap.armed = mishap.armed, own
        try:
            yield
        finally:
            mishap.armed = own or before
            mishap.first = mishap.first or mishap.passed

    def plain(*args: Any, **kwargs: Any) -> Any:
        with inside():
            return function(*args, **kwargs)

    async def later(*args: Any, **kwargs: Any) -> Any:
        with inside():
            return await function(*args, **kwargs)

    if not inspect.isfunction(function):
        return function
    return wraps(function)(later if inspect.iscoroutinefunction(function) else plain)


def _behind(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and those that it came from."""
    if error is not None:
        yield error
        for one in (*getattr(error, "exceptions", ()), error.__cause__, error.__context__):
            yield from _behind(one)
