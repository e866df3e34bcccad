"""A function that was right is asked again, about other numbers, and then while a piece of its work fails.

So it can keep neither a result for the next call nor an error from its caller.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any
from unittest.mock import patch

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.checks import operations
from asyncgpu_tutor.exercises.device import CheckDevice
from asyncgpu_tutor.exercises.exercise import Exercise, behind, case, must
from asyncgpu_tutor.exercises.patience import not_for_ever
from asyncgpu_tutor.exercises.sandbox import FAR, private_device, told

ANEW = "everything asked once more, about other numbers (keep nothing from one call to the next)"
FAILING = (0, 2, 5)  # which pieces of work fail, one at a time


def ask_again(exercise: Exercise, answer: Callable[..., Any], model: object) -> None:
    """Reject a function that is wrong the second time, or keeps an error to itself."""
    with case(ANEW), told(FAR), patch.object(operations, "asked_before", 1):
        pieces = _pieces(exercise, answer, model)
    for number in FAILING if exercise.lets_errors_out else ():
        if number >= len(pieces):
            break
        error = None
        try:
            _pieces(exercise, answer, model, number)
        except Exception as caught:  # noqa: BLE001 - without its error, an answer may fail anywhere
            error = caught
        due = f"when the device refuses to run `{pieces[number]}`, the error doesn't come out of your "
        due += (
            "function, and its caller takes whatever comes instead for a result: let errors through"
        )
        must(any(isinstance(one, agt.DeviceError) for one in behind(error)), due)


def _pieces(
    exercise: Exercise, answer: Callable[..., Any], model: object, failing: int | None = None
) -> list[str]:
    """The names of all pieces of work from the answer's first call on, of which one may fail."""
    names, called, plain = list[str](), False, CheckDevice.enqueue

    @wraps(answer)
    def noted(*args: Any, **kwargs: Any) -> Any:
        nonlocal called
        called = True
        return answer(*args, **kwargs)

    def enqueue(device: CheckDevice, piece: Any, *where: Any, **how: Any) -> None:
        names.extend([piece.name] if called else [])
        if len(names) - 1 == failing:
            raise agt.DeviceError(f"the device refused to run {piece.name!r}")
        plain(device, piece, *where, **how)

    with private_device(), not_for_ever(), patch.object(CheckDevice, "enqueue", enqueue):
        exercise.check(noted, model)
    return names
