"""A function that was right is asked again: about other numbers, and then while a piece of its work fails."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any
from unittest.mock import patch

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.checks import operations
from asyncgpu_tutor.exercises.device import CheckDevice
from asyncgpu_tutor.exercises.exercise import Exercise, case, must
from asyncgpu_tutor.exercises.patience import not_for_ever
from asyncgpu_tutor.exercises.sandbox import private_device, told

ANEW = "everything asked once more, about other numbers (keep nothing from one call to the next)"


def ask_again(exercise: Exercise, answer: Callable[..., Any], model: object) -> None:
    """Reject a function that is wrong the second time, or keeps an error to itself."""
    again = partial(_pieces, exercise.check, answer, model)
    with case(ANEW), told(), patch.object(operations, "asked_before", 1):
        pieces = again(None)
    for number in range(0, min(len(pieces), 5) if exercise.lets_errors_out else 0, 2):
        came_out = False
        try:
            again(number)
        except Exception as error:  # noqa: BLE001 - without its error, an answer may fail anywhere
            one: Any = error
            while one is not None and not came_out:
                came_out = isinstance(one, agt.DeviceError)
                one = getattr(one, "exceptions", (one.__cause__ or one.__context__,))[0]
        due = f"when the device refuses to run `{pieces[number]}`, the error doesn't come out of your "
        due += "function, and its caller takes what comes instead for a result: let errors through"
        must(came_out, due)


def _pieces(check: Any, answer: Any, model: object, failing: int | None) -> list[str]:
    """The names of all pieces of work from the answer's first call on, of which one may fail."""
    names, called, plain = list[str](), list[object](), CheckDevice.enqueue

    @wraps(answer)
    def noted(*args: Any, **kwargs: Any) -> Any:
        called.append(args)
        return answer(*args, **kwargs)

    def enqueue(device: CheckDevice, piece: Any, *where: Any, **how: Any) -> None:
        names.extend([piece.name] if called else [])
        if len(names) - 1 == failing:
            raise agt.DeviceError(f"the device refused to run {piece.name!r}")
        plain(device, piece, *where, **how)

    with private_device(), not_for_ever(), patch.object(CheckDevice, "enqueue", enqueue):
        check(noted, model)
    return names
