"""The functions that a notebook calls: `check`, `hint`, `solution`, `progress`, `forget`."""

import inspect
import warnings
from collections.abc import Iterator, Mapping
from contextvars import Context
from difflib import get_close_matches
from itertools import pairwise
from typing import Any

import asyncgpu_tutor as agt
from asyncgpu_course import progress_file
from asyncgpu_course.checks.patience import not_for_ever
from asyncgpu_course.checks.rejection import Rejected, case, must
from asyncgpu_course.checks.sandbox import private_device, told
from asyncgpu_course.exercises import answers
from asyncgpu_course.exercises.chapters import BOOKS, EXERCISES
from asyncgpu_course.exercises.exercise import Exercise
from asyncgpu_course.exercises.names_of_other_cells import strays
from asyncgpu_course.exercises.second_time import ask_again
from asyncgpu_course.outcome import Outcome, OutcomeWords, rejection

ADVERSARIES = (1, 2, 3, 4, 5)
_FAR = "your answer gives or does something so far from the task that the check can't even look at it ({})"

_right: dict[str, object] = {}  # the learner's own answers that were accepted last


def check(name: str, answer: object) -> Outcome:
    """Try an answer, on a simulated device of its own, and say how it did.

    May be called in any order and any number of times; what counts is that it was right once.

    Parameters
    ----------
    name : str
        Of the exercise, such as ``"01-relu"``.
    answer : object
        What the cell above defines: a kernel, or a function.

    Raises
    ------
    UsageError
        If there is no such exercise. A wrong answer is no error, so that a notebook runs through.
    """
    exercise = _find(name)
    if isinstance(answer, agt.Kernel) and answer.name in answer.unbuilt:
        cause = f"your last `{answer.name}` didn't compile, and the one before it isn't judged: mend the "
        return rejection(exercise.title, Rejected(cause + "cell above, and run it again"))
    if answers.untouched(exercise, answer):
        return Outcome(
            "not attempted",
            f"*{exercise.title}*: not attempted yet. Change the cell above, run it, and run this one "
            f'again. Stuck? `hint("{name}")` helps a little, and a little more each time.',
        )
    # Before the check, since an attempt that is interrupted is one.
    with progress_file.change() as records:
        records.setdefault(name, progress_file.ExerciseRecord()).attempts += 1
    # Operations of the check's or of the answer's may stay unrun; the check says what is wrong with them.
    with warnings.catch_warnings(action="ignore", category=agt.errors.NeverRunWarning):
        try:
            # The check has its own context: an open capture or `using` is an earlier cell's affair.
            score = Context().run(_try, exercise, answer)
        except Rejected as rejected:
            return rejection(exercise.title, rejected, strays(answer), records[name].attempts < 2)
    _right[name] = answer
    with progress_file.change() as records:
        record = records.setdefault(name, progress_file.ExerciseRecord())
        record.solved = True
        took = ""
        if score is not None:
            record.best = min(score, record.best or score)
            took = f" Yours takes **{score:.0f} µs**; your best so far is {record.best:.0f} µs."
    right = f"**Right.** *{exercise.title}* is solved.{took}"
    return Outcome("accepted", f"{right} {answers.explanation(exercise)}")


def hint(name: str) -> OutcomeWords:
    """The next hint; each call gives away a little more, and after the last they start again."""
    exercise = _find(name)
    hints = answers.hints(exercise)
    with progress_file.change() as records:
        record = records.setdefault(name, progress_file.ExerciseRecord())
        number = record.hints % len(hints)
        record.hints += 1
    last = number + 1 == len(hints)
    more = f' That was the last one; after an attempt, try `solution("{name}")`.' if last else ""
    return OutcomeWords(f"**Hint {number + 1} of {len(hints)}.** {hints[number]}{more}")


def solution(name: str) -> OutcomeWords:
    """The solution and why it is right, once `check` has seen an attempt."""
    exercise = _find(name)
    record = progress_file.load_progress().get(name, progress_file.ExerciseRecord())
    if not record.attempts:
        return OutcomeWords(
            f"*{exercise.title}*: first an attempt of your own, however rough. `check` it, and the "
            f'solution is yours. `hint("{name}")` gets you going.'
        )
    return OutcomeWords(
        f"One solution, of several:\n\n```python\n{answers.solution_text(exercise)}\n```\n\n"
        f"{answers.explanation(exercise)}"
    )


def solved(name: str, own: object = None) -> Any:
    """An answer to an exercise to go on with, as an object, so that it is not given away.

    Parameters
    ----------
    own : object, optional
        The learner's. It is what comes back if `check` has accepted this very object; otherwise the course's
        answer does.

    Raises
    ------
    UsageError
        If there is no exercise of that name.
    """
    model = answers.model(_find(name))
    return own if own is not None and _right.get(name) is own else model


def progress(chapter: str = "") -> OutcomeWords:
    """A list of the exercises: which are solved, and after how many attempts and hints. The books come first.

    Of a chapter, those for another day come last, and are counted apart.

    Parameters
    ----------
    chapter : str, optional
        Its number, such as ``"01"``; without it, the exercises of all chapters are listed.

    Raises
    ------
    UsageError
        If no chapter with exercises has this number.
    """
    listed = [e for e in EXERCISES.values() if not chapter or e.name.startswith(f"{chapter}-")]
    listed.sort(key=lambda e: (e.name.partition("-")[0], answers.later(e) != ""))
    if not listed:
        known = ", ".join(dict.fromkeys(name.partition("-")[0] for name in EXERCISES))
        raise agt.UsageError(f"there is no chapter {chapter!r} with exercises. There are: {known}")
    records = progress_file.load_progress()
    lines = ["| exercise | | attempts | hints |", "|---|---|---|---|"]
    solved: dict[bool, list[bool]] = {False: [], True: []}  # True: for another day
    for exercise in listed:
        record = records.get(exercise.name, progress_file.ExerciseRecord())
        state = "**solved**" if record.solved else "tried" if record.attempts else "open"
        state += "" if record.best is None else f", {record.best:.0f} µs"
        day = answers.later(exercise)
        solved[day != ""].append(record.solved)
        name = f"`{exercise.name}` {exercise.title}" + (f" ({day})" if day else "")
        lines.append(f"| {name} | {state} | {record.attempts} | {record.hints} |")
    books = [] if chapter else [*_books(records), ""]
    now, later = (f"{sum(these)} of {len(these)}" for these in solved.values())
    total = f"Solved: {now}" + (f", and {later} for another day." if solved[True] else ".")
    return OutcomeWords("\n".join([total, "", *books, *lines]))


def _books(records: Mapping[str, progress_file.ExerciseRecord]) -> Iterator[str]:
    """A line for each book: how much of it is solved."""
    for first, after in pairwise([*BOOKS, "~"]):
        names = [name for name in EXERCISES if first <= name[:2] < after]
        done = sum(name in records and records[name].solved for name in names)
        yield f"- {BOOKS[first]} ({first} to {names[-1][:2]}): {done} of {len(names)}"


def forget(name: str | None = None) -> OutcomeWords:
    """Forget the progress of one exercise, or of all. Your answers stay where they are.

    Raises
    ------
    UsageError
        If there is no exercise of that name.
    """
    with progress_file.change() as records:
        if name is None:
            records.clear()
        else:
            records.pop(_find(name).name, None)
    what = "all exercises" if name is None else f"`{name}`"
    return OutcomeWords(f"The progress of {what} is forgotten.")


def _try(exercise: Exercise, answer: object) -> float | None:
    """Hold an answer against everything that its exercise checks; `Rejected`. Returns its score, if any."""
    model, later = answers.model(exercise), inspect.iscoroutinefunction
    awaited = later(model) or inspect.isasyncgenfunction(model)
    cause = "nothing of it ran: an `async def` runs when somebody awaits it, and here nobody does. Write it "
    cause += "with `def`, and without `await`"
    must(awaited or not inspect.isfunction(model) or not later(answer), cause)
    with private_device(), told(_FAR), not_for_ever():
        score = exercise.check(answer, model)
    if inspect.isfunction(model) and callable(answer):
        ask_again(exercise, answer, model)
    if exercise.hostile is not None:
        for seed in ADVERSARIES:
            words = f"a device that takes its time (adversary {seed})"
            with private_device(adversary=seed), case(words), told(_FAR), not_for_ever():
                exercise.hostile(answer, model)
    return score


def _find(name: str) -> Exercise:
    if name not in EXERCISES:
        near = " or ".join(map(repr, get_close_matches(str(name), EXERCISES)))
        cure = f"did you mean {near}?" if near else "`progress()` lists them"
        raise agt.UsageError(f"there is no exercise {name!r}; {cure}")
    return EXERCISES[name]
