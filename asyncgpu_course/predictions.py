"""Guesses: asked on a page, compared with what happened, and told only to somebody who has guessed.

The problem: who can see the answer doesn't think. A notebook shows everything at once, the next cell's
title and the prose below included, and a folded cell is a click away from being read.

The idea: a page has the question, as text, a line to write into, and a folded cell that runs what settles it.
The words that tell are in no notebook. They are in ``exercises/guesses/``, beside the answers of the checks,
and `reveal` prints them once there is a guess, with numbers of this very run.

Why not fold the explanation? JupyterLab shows the first line of a folded cell, and search, GitHub and a
printed page show all of it.

What would break it: a Run All that tells. So a reveal without a guess tells only when it runs twice in a row,
and its guess's cell, which Run All passes each time, sets that back. With ``ASYNCGPU_TELL`` set all tell, as
the site and the tests need it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from numbers import Real
from typing import Any, cast

import asyncgpu_tutor as agt
from asyncgpu_course.outcome import OutcomeWords

_SEVERAL = re.compile("(two|three) numbers", re.IGNORECASE)  # in a question that wants them
_asked: dict[str, Prediction] = {}  # by question, since a cell that runs again asks it again


@dataclass(frozen=True, repr=False)
class Verdict(OutcomeWords):
    """The outcome of a prediction, in words.

    Attributes
    ----------
    right : bool
        True if the answer is right and somebody did answer, because a default scores nothing.
    by_default : bool
        True if nobody answered.
    """

    right: bool
    by_default: bool


class Prediction:
    """A question, to be answered before the code that settles it runs.

    With options one of them is the answer. Without, it is typed: a number, or words in an order, such as
    ``"b a c"``. What is typed cannot be guessed by leaving out what is unlikely.

    A notebook that nobody has touched runs through: ``commit(...)`` takes the first option, or none. Answers
    may be committed again, and cells run in any order and twice: the last one that isn't ``...`` counts.

    Parameters
    ----------
    question : str
        Markdown.
    within : float
        By how much typed numbers may differ from the true ones, as a part of these.
    **options : str
        None, or at least two: what to type, and what it stands for.

    Raises
    ------
    UsageError
        If there is one option only.

    Examples
    --------
    >>> guess = Prediction("Does zip overlap its arms?", yes="they overlap", no="they do not")
    >>> guess.commit("no")
    Committed: `no`, they do not.
    >>> guess.reveal("no", "One stream was used.")
    **Right.** You said `no`, and so it was: they do not. One stream was used.
    >>> typed = Prediction("How many copies are in the trace?")
    >>> typed.commit(4)
    Committed: `4`.
    >>> typed.reveal(8)
    **Not this time.** You said `4`; it is `8`.
    """

    def __init__(self, question: str, /, *, within: float = 0.0, **options: str) -> None:
        if len(options) == 1:
            raise agt.UsageError("a prediction needs at least two options, or none, and got 1")
        self.question = question
        self.within = within
        self.options: Mapping[str, str] = options
        self.answer: str | None = None
        self.verdict: Verdict | None = None
        self._by_default = True
        _asked[question] = self

    def __repr__(self) -> str:
        lines = [f"- `{name}`: {meaning}" for name, meaning in self.options.items()]
        if self.within:
            least, most = 100 * (1 - self.within), 100 * (1 + self.within)
            lines = [f"(If the answer is 100, you're right with {least:g} to {most:g}.)"]
        return "\n".join([f"**Predict.** {self.question}", "", *lines]).rstrip()

    _repr_markdown_ = __repr__

    def commit(self, *answer: object) -> OutcomeWords:
        """Settle for an answer; with ``...`` an earlier one stays, or the first option is taken, if any.

        Parameters
        ----------
        *answer : str or float
            Several may be given one by one, in a list, or in one string.

        Raises
        ------
        UsageError
            If the answer is not one of the options, or there are none and it is empty.
        """
        nothing = all(part is ... for part in answer)
        if nothing and not self._by_default:
            return OutcomeWords(f"Your answer is still `{self.answer}`.")
        self.verdict = None
        if nothing:
            self.answer = next(iter(self.options), "")
            taken = f", so `{self.answer}` is taken for now" if self.options else ""
            how = f"type one of {self._listed()}" if self.options else "type it (words in quotes)"
            told = f"No answer yet{taken}. To take part, {how}"
            return OutcomeWords(f"{told} in place of `...` and run this cell again.")
        self.answer, self._by_default = self._known(answer), False
        meaning = f", {self.options[self.answer]}" if self.options else ""
        return OutcomeWords(f"Committed: `{self.answer}`{meaning}.")

    def reveal(self, truth: str | float, evidence: str = "") -> Verdict:
        """Hold the answer against what happened.

        Parameters
        ----------
        truth : str or float
            What turned out true, worked out from a trace or a result: an option, if there are any.
        evidence : str
            A sentence that says how one can tell.

        Raises
        ------
        UsageError
            If no answer was committed, or `truth` is not one of the options.
        """
        true = self._known(truth)
        meaning = f": {self.options[true]}." if self.options else "."
        if self.answer is None:
            complaint = "commit an answer before the reveal: run the cell with commit(...) first"
            raise agt.UsageError(complaint)
        right = not self._by_default and self._agree(self.answer, true)
        if self._by_default:
            said = f"**The answer is `{true}`{meaning[0]}**{meaning[1:]}"
        elif right:
            so = "so it was" if self.options else f"it is `{true}`"
            said = f"**Right.** You said `{self.answer}`, and {so}{meaning}"
        else:
            said = f"**Not this time.** You said `{self.answer}`; it is `{true}`{meaning}"
            if _is_number(self.answer) and self._agree(f"{100 * float(self.answer):.10g}", true):
                said += " (Yours is a hundredth of that: look at the unit.)"
        self.verdict = Verdict(f"{said} {evidence}".rstrip(), right, self._by_default)
        return self.verdict

    def _agree(self, answer: str, truth: str) -> bool:
        """Compare words in their order, or numbers within the tolerance."""
        said, true = _words(answer, truth), _words(truth)
        if not all(map(_is_number, said + true)):
            return said == true
        return len(said) == len(true) and all(
            abs(float(a) - float(b)) <= self.within * abs(float(b)) + 1e-9
            for a, b in zip(said, true, strict=True)
        )

    def _known(self, given: object) -> str:
        option = _text(given)
        if not self.options:
            if not option.strip():
                raise agt.UsageError("this answer is empty: type a number, or words in their order")
            if self.within and not _numbers(option):
                raise agt.UsageError(f"type a number here, such as 120, and not {option!r}")
            asked, typed = _SEVERAL.search(self.question), len(_words(option))
            if asked and _numbers(option) and typed != 2 + (asked[1].lower() == "three"):
                complaint = f"{asked[0].lower()} are asked for here, and you gave {typed}: "
                complaint += f"{option!r}"
                raise agt.UsageError(complaint)
            return option
        for name in self.options:
            if name.lower() == option.strip().lower():
                return name
        raise agt.UsageError(f"{option!r} is not one of the options: type one of {self._listed()}")

    def _listed(self) -> str:
        return ", ".join(f'"{name}"' for name in self.options)


# ------------------------------------------------------------------ guesses of a page, by name
TELL = "ASYNCGPU_TELL"
_open: dict[str, Prediction] = {}
_looked: dict[str, int] = {}  # how often a reveal ran since the cell of its guess did


@cache
def _words_of_guesses() -> dict[str, dict[str, Any]]:
    stored: dict[str, dict[str, Any]] = {}
    for file in files("asyncgpu_course").joinpath("exercises", "guesses").iterdir():
        if file.name.endswith(".json"):
            stored.update(json.loads(file.read_text(encoding="utf-8")))
    return stored


def _asked_as(name: str) -> Prediction:
    if name not in _open:
        if name not in _words_of_guesses():
            raise agt.UsageError(
                f"there is no guess {name!r}: the name in this cell stays as it came"
            )
        asked = _words_of_guesses()[name]
        _open[name] = Prediction(asked["question"], within=asked["within"], **asked["options"])
    return _open[name]


def guess(name: str, *answer: object) -> OutcomeWords:
    """Settle for an answer to the question above; with ``...`` an earlier one stays, if there is one.

    Parameters
    ----------
    name : str
        Of the guess, as the cell has it.
    *answer : str or float
        One of the options, in quotes, or what is asked for: numbers, or words in their order.

    Raises
    ------
    UsageError
        If the answer is not one of the options, or is empty, or the guess has another name.
    """
    asked = _asked_as(name)
    _looked[name] = 0
    if asked._by_default and all(part is ... for part in answer):
        how = f"one of {asked._listed()}" if asked.options else "it (words in quotes)"
        return OutcomeWords(f"No guess yet: type {how} in place of `...` and run this cell again.")
    return OutcomeWords(f"{asked.commit(*answer)} Now run the folded cell below.")


@dataclass(frozen=True, repr=False)
class Revealed(OutcomeWords):
    """What settles a guess, with its pictures; without a guess, how to make one.

    Attributes
    ----------
    verdict : Verdict or None
        None where nothing is told yet.
    pictures : tuple
        What is shown above the words.
    """

    verdict: Verdict | None = None
    pictures: tuple[object, ...] = ()

    def _ipython_display_(self) -> None:
        from IPython import display  # only IPython calls this, so it is there

        for picture in self.pictures:
            if callable(picture):
                picture()  # it draws with matplotlib, or prints
            else:
                display.display(picture)  # pyright: ignore[reportUnknownMemberType] - IPython has no types
        display.display(display.Markdown(self.text))  # pyright: ignore[reportUnknownMemberType] - as above


def reveal(name: str, truth: str | float, *pictures: object, **facts: object) -> Revealed:
    """Hold a guess against what happened, and tell why. Without a guess, tell when run twice in a row.

    Parameters
    ----------
    name : str
        Of the guess.
    truth : str or float
        What turned out true, worked out from a trace or a result: an option, if there are any.
    *pictures : object
        Shown above the verdict; the first timeline gets the page's lesson below it. A function is called
        where it would be shown, to draw with matplotlib or to print.
    **facts : object
        Numbers of this run for the words that are told.

    Raises
    ------
    UsageError
        If the guess has another name, or `truth` isn't one of the options.
    """
    asked, stored = _asked_as(name), _words_of_guesses()[name]
    true = asked._known(truth)
    told = stored["told"].format(**facts)  # also where it isn't shown, so that each run tries it
    _looked[name] = _looked.get(name, 0) + 1
    telling, known = bool(os.environ.get(TELL)), stored["truth"]
    if (
        telling
        and known != "*"
        and agt.current_device().simulated
        and not asked._agree(true, known)
    ):
        raise AssertionError(f"the page knows {known!r} as the truth of {name!r}, not {true!r}")
    if asked._by_default and _looked[name] < 2 and not telling:
        how = "Guess in the cell above, and run both."
        return Revealed(f"{how} (Or run this one again, to be told without a guess.)")
    asked.answer = asked.answer or ""
    verdict = asked.reveal(true)
    shown, lesson = list(pictures), stored.get("lesson")
    if lesson and shown:
        shown[0] = replace(cast(Any, shown[0]), lesson=lesson)
    return Revealed(f"{verdict.text}\n\n{told}", verdict, tuple(shown))


def _text(given: object) -> str:
    """An answer as it's typed, of which there may be several in a list."""
    if isinstance(given, tuple | list):
        return " ".join(map(_text, cast(Sequence[object], given)))
    if isinstance(given, str):
        return given
    if isinstance(given, Real):
        return f"{given:.10g}"
    raise agt.UsageError(f"an answer is a number, or words in quotes, and not {given!r}")


def _words(answer: str, truth: str = "") -> list[str]:
    """Words or numbers. Where the truth is one number, a comma before three digits parts thousands."""
    if _is_number(truth.strip()):
        answer = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", answer)
    return re.split(r"[\s,;]+(?:and[\s,;]+)?", answer.strip().lower())


def _numbers(text: str) -> bool:
    return all(map(_is_number, _words(text)))


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", text) is not None


def score(*predictions: Prediction | str) -> OutcomeWords:
    """Count how many guesses came out right: those of a page, as in ``score("02")``, or without any, all."""
    found = [asked for asked in predictions if isinstance(asked, Prediction)]
    pages = tuple(f"{page}-" for page in predictions if isinstance(page, str))
    found += [_asked_as(name) for name in _words_of_guesses() if pages and name.startswith(pages)]
    predictions = tuple(found) if predictions else tuple(_asked.values())
    verdicts = [p.verdict for p in predictions if p.verdict is not None]
    answered = [v for v in verdicts if not v.by_default]
    if not answered:
        return OutcomeWords(
            "You have not made a guess of your own yet: look for the three dots, `...`."
        )
    right = sum(verdict.right for verdict in answered)
    return OutcomeWords(
        f"You answered {len(answered)} of {len(predictions)} guesses, and {right} came out right."
    )
