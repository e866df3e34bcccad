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

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, cast

import asyncgpu_tutor as agt
from asyncgpu_course.checks.results import is_number
from asyncgpu_course.exercises.answers import stored
from asyncgpu_course.outcome import OutcomeWords

# A word that the question names instead of numbers, such as "hang".
_NAMED = re.compile(r"""[`"](\w+)[`"]""")
_SEVERAL = re.compile("(two|three) numbers", re.IGNORECASE)  # in a question that wants them
TELL = "ASYNCGPU_TELL"


@dataclass
class _Asked:
    """A question, with what is told of it, and what somebody answers."""

    question: str
    # What to type, and what it stands for; without any, numbers or words in an order.
    options: dict[str, str]
    within: float  # by how much typed numbers may differ from the true ones, as a part of these
    truth: str
    told: str
    lesson: str = ""
    answer: str | None = None
    right: bool | None = None  # as the answer was held against the truth
    looked: int = 0  # how often a reveal ran since the cell of its guess did

    @property
    def numbers(self) -> int:
        """How many numbers are asked for; 0 where it's words."""
        if several := _SEVERAL.search(self.question):
            return {"two": 2, "three": 3}[several[1].lower()]
        return int(bool(self.within) or _numbers(self.truth))

    @property
    def wanted(self) -> str:
        """What to type here, in words."""
        if self.options:
            return "one of " + ", ".join(f'"{name}"' for name in self.options)
        ways = "words in quotes", "a number (such as 120)", "two numbers", "three numbers"
        return ways[self.numbers]

    def known(self, given: object) -> str:
        """An answer as it is compared, or `UsageError`, which says what to type."""
        said = _text(given)
        typed = next((name for name in self.options if name.lower() == said.lower()), said)
        if self.options:
            fits = typed in self.options
        elif self.numbers and typed.lower() not in _NAMED.findall(self.question.lower()):
            # Of one number, a comma may part its thousands.
            fits = _numbers(typed) and self.numbers in (1, len(_words(typed)))
        else:
            fits = bool(typed)
        if not fits:
            try:
                shown = f"{typed or given!r:.99}"
            except ValueError:  # Python writes no integer of thousands of digits
                shown = "such a long number"
            raise agt.UsageError(f"type {self.wanted} here, and not {shown}")
        return typed

    def agree(self, answer: str, truth: str) -> bool:
        """Compare words in their order, or numbers within the tolerance."""
        said, true = _words(answer, truth), _words(truth)
        if all(len(word) == 1 and word.isalpha() for word in true):  # "abd" for "a b d"
            said = [*"".join(said)]
        if not all(map(_is_number, said + true)):
            return said == true
        return len(said) == len(true) and all(
            abs(float(a) - float(b)) <= self.within * abs(float(b)) + 1e-9
            for a, b in zip(said, true, strict=True)
        )

    def verdict(self, true: str) -> str:
        """Hold the answer against what happened, in words."""
        meaning = f": {self.options[true]}." if self.options else "."
        if self.answer is None:
            return f"**The answer is `{true}`{meaning[0]}**{meaning[1:]}"
        self.right = self.agree(self.answer, true)
        if self.right:
            so = "so it was" if self.options else f"it is `{true}`"
            return f"**Right.** You said `{self.answer}`, and {so}{meaning}"
        said = f"**Not this time.** You said `{self.answer}`; it is `{true}`{meaning}"
        if _is_number(self.answer) and self.agree(f"{100 * float(self.answer):.10g}", true):
            said += " (Yours is a hundredth of that: look at the unit.)"
        return said


@cache
def _asked() -> dict[str, _Asked]:
    return {name: _Asked(**words) for name, words in stored("guesses").items()}


def _named(name: str) -> _Asked:
    if name not in _asked():
        raise agt.UsageError(f"there is no guess {name!r}: the name in this cell stays as it came")
    return _asked()[name]


def guess(name: str, *answer: object) -> OutcomeWords:
    """Settle for an answer to the question above; with ``...`` an earlier one stays, if there is one.

    Parameters
    ----------
    name : str
        Of the guess, as the cell has it.
    *answer : str or float
        One of the options, in quotes, or what is asked for: numbers, or words in their order. Several may be
        given one by one, in a list, or in one string.

    Raises
    ------
    UsageError
        If the answer is none of the options, no number where one is asked for, or nothing, or the guess has
        another name.
    """
    asked = _named(name)
    asked.looked = 0
    if not all(part is ... for part in answer):
        asked.answer, asked.right = asked.known(answer[0] if len(answer) == 1 else answer), None
        meaning = f", {asked.options[asked.answer]}" if asked.options else ""
        return OutcomeWords(f"Committed: `{asked.answer}`{meaning}. Now run the folded cell below.")
    if asked.answer is not None:
        return OutcomeWords(f"Your answer is still `{asked.answer}`.")
    how = f"type {asked.wanted} in place of `...` and run this cell again"
    return OutcomeWords(f"No guess yet: {how}.")


@dataclass(frozen=True, repr=False)
class Revealed(OutcomeWords):
    """What settles a guess, with its pictures; without a guess, how to make one.

    Attributes
    ----------
    right : bool or None
        Whether the guess was right; None without one.
    pictures : tuple
        What is shown above the words.
    """

    right: bool | None = None
    pictures: tuple[object, ...] = ()

    def _ipython_display_(self) -> None:
        from IPython import display  # only IPython calls this, so it is there

        for picture in self.pictures:
            if callable(picture):
                picture()  # it draws with matplotlib, or prints
            else:
                display.display(picture)  # pyright: ignore[reportUnknownMemberType] - IPython has no types
        display.display(display.Markdown(self.text))  # pyright: ignore[reportUnknownMemberType] - as above


def reveal(name: str, truth: object, *pictures: object, **facts: object) -> Revealed:
    """Hold a guess against what happened, and tell why. Without a guess, tell when run twice in a row.

    Parameters
    ----------
    name : str
        Of the guess.
    truth : str or float
        What turned out true, worked out from a trace or a result: an option, if there are any.
    *pictures : object
        Shown above the verdict. Where the page has a lesson, the first is a timeline, and gets it below. A
        function is called where it would be shown, to draw with matplotlib or to print.
    **facts : object
        Numbers of this run for the words that are told.

    Raises
    ------
    UsageError
        If the guess has another name, or `truth` isn't one of the options.
    """
    asked = _named(name)
    true = asked.known(truth)
    told = asked.told.format(**facts)  # also where it isn't shown, so that each run tries it
    asked.looked += 1
    telling = bool(os.environ.get(TELL))
    held = telling and asked.truth != "*" and agt.current_device().simulated
    if held and not asked.agree(true, asked.truth):
        known = f"the page knows {asked.truth!r} as the truth of {name!r}"
        raise AssertionError(f"{known}, not {true!r}")
    if asked.answer is None and asked.looked < 2 and not telling:
        how = "Guess in the cell above, and run both."
        return Revealed(f"{how} (Or run this one again, to be told without a guess.)")
    words, shown = asked.verdict(true), list(pictures)
    if asked.lesson and shown:
        shown[0] = replace(cast(Any, shown[0]), lesson=asked.lesson)
    return Revealed(f"{words}\n\n{told}", asked.right, tuple(shown))


def score(page: str) -> OutcomeWords:
    """Count how many guesses of a page came out right, as in ``score("02")``."""
    of_page = [asked for name, asked in _asked().items() if name.startswith(f"{page}-")]
    if not of_page:
        cause = f"there is no page {page!r} with guesses: give its number, such as '02'"
        raise agt.UsageError(cause)
    settled = [asked for asked in of_page if asked.right is not None]
    if not settled:
        none = "You have not made a guess of your own yet: "
        return OutcomeWords(none + "look for the three dots, `...`.")
    right = sum(bool(asked.right) for asked in settled)
    answered = f"You answered {len(settled)} of {len(of_page)} guesses"
    return OutcomeWords(f"{answered}, and {right} came out right.")


def _text(given: object) -> str:
    """An answer as it's typed, of which there may be several in a list; of no word and no number, nothing."""
    if isinstance(given, tuple | list):
        parts = [_text(part) for part in cast(Sequence[object], given)]
        return " ".join(parts) if all(parts) else ""
    if isinstance(given, str):
        return given.strip()
    return f"{given:.10g}" if is_number(given) else ""


def _words(answer: str, truth: str = "") -> list[str]:
    """Words or numbers. Where the truth is one number, a comma before three digits parts thousands."""
    if _is_number(truth.strip()):
        answer = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", answer)
    return re.split(r"[\s,;]+(?:and[\s,;]+)?", answer.strip().lower())


def _numbers(text: str) -> bool:
    return all(map(_is_number, _words(text)))


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", text) is not None
