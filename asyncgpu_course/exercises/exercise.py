"""The class of exercises: what each chapter declares of its own."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Exercise:
    """A task for the learner, as its chapter declares it.

    Starter, solution, hints and explanation are cells of the chapter's source in ``course/``, and `answers`
    has them; this is the rest.
    """

    name: str  # such as "01-relu": chapter, then what it is about; also the id of the answer's cell
    title: str  # for lists, in a few words
    answer: str  # the variable that the answer's cell defines
    # Gets the learner's answer, and the solution's to compare with. Raises `Rejected` with the cause if the
    # learner's is wrong. A challenge returns a score: the simulated us that the answer took, of which the
    # least is kept with the learner's progress.
    check: Callable[[Any, Any], float | None]
    # A further check, of what has to hold whatever takes how long. It runs on devices that do unordered work
    # in hostile orders, several seeds of them; see `SimDevice`.
    hostile: Callable[[Any, Any], float | None] | None = None
    # False where an answer has to catch errors; elsewhere one that happens on the way has to come out of it.
    lets_errors_out: bool = True
