"""A function that was right is asked again: about other numbers, and while what it runs or calls fails."""

import inspect
import logging
from collections.abc import Callable
from functools import cache, partial, wraps
from itertools import count
from types import FunctionType
from typing import Any, cast
from unittest.mock import patch

import asyncgpu_tutor as agt
from asyncgpu_course.checks import operations
from asyncgpu_course.checks.building import LATE
from asyncgpu_course.checks.device import CheckDevice
from asyncgpu_course.checks.patience import not_for_ever
from asyncgpu_course.checks.rejection import case, must
from asyncgpu_course.checks.sandbox import private_device, told
from asyncgpu_course.exercises.exercise import Exercise

ANEW = "everything asked once more, about other numbers (keep nothing from one call to the next)"


def ask_again(exercise: Exercise, answer: Callable[..., Any], model: object) -> None:
    """Reject a function that is wrong the second time, or keeps an error to itself."""
    again = partial(_pieces, exercise.check, answer, model)
    with case(ANEW, LATE), told(), patch.object(operations, "asked_before", 1):
        pieces, called = again()
    numbers = range(0, min(len(pieces), 5) if exercise.lets_errors_out else 0, 2)
    tries = [(n, -1, f"the device refuses to run `{pieces[n]}`") for n in numbers]
    given = inspect.signature(answer).parameters.values()
    names = [p.name for p in given if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]
    names += names[-1:] * 99  # since the last may have a star
    tries += [(-1, place, f"`{names[place]}` raises an error") for place in {*called}]
    for number, place, happens in tries:
        came_out = False
        try:
            again(number, place)
        except Exception as error:  # noqa: BLE001 - without its error, an answer may fail anywhere
            one: Any = error
            while one is not None and not came_out:
                came_out = isinstance(one, agt.DeviceError)
                one = getattr(one, "exceptions", (one.__cause__ or one.__context__,))[0]
        cause = f"when {happens}, the error doesn't come out of your function, and its caller "
        must(came_out, cause + "takes what comes instead for a result: let errors through")


def _pieces(
    check: Any, answer: Any, model: object, failing: int = -1, raising: int = -1
) -> tuple[list[str], list[int]]:
    """The names of all pieces of work from the first call on, and the places of functions that were called.

    One of each may fail.
    """
    names, called, asked, plain = list[str](), list[int](), list[object](), CheckDevice.enqueue

    @wraps(answer, updated=())  # it may be an object with attributes
    def noted(*args: Any, **kwargs: Any) -> Any:
        asked.append(args)

        @cache  # one that is there twice stays one
        def watched(function: Any, place: int) -> Any:
            @wraps(function)
            def its(*given: Any, **named: Any) -> Any:
                called.append(place)
                if place == raising and called.count(place) == 1:
                    raise agt.DeviceError(f"no luck with argument {place}")
                return function(*given, **named)

            return its

        def each(thing: Any, place: int) -> Any:
            if isinstance(thing, list):
                return [each(one, place) for one in cast(list[Any], thing)]
            return watched(thing, place) if type(thing) in (FunctionType, partial) else thing

        return answer(*map(each, args, count()), **kwargs)

    def enqueue(device: CheckDevice, piece: Any, *where: Any, **how: Any) -> None:
        names.extend([piece.name] if asked else [])
        if names and len(names) - 1 == failing:
            raise agt.DeviceError(f"the device refused to run {piece.name!r}")
        plain(device, piece, *where, **how)

    # What asyncio logs of errors that are meant to happen would stand beside the verdict.
    quiet = patch.object(logging.getLogger("asyncio"), "disabled", True)
    with private_device(), not_for_ever(), quiet, patch.object(CheckDevice, "enqueue", enqueue):
        check(noted, model)
    return names, called
