"""Predictions: an answer committed before the reveal, and compared with what happened."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import cast

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
            due = "commit an answer before the reveal: run the cell with commit(...) first"
            raise agt.UsageError(due)
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
                due = f"{asked[0].lower()} are asked for here, and you gave {typed}: {option!r}"
                raise agt.UsageError(due)
            return option
        for name in self.options:
            if name.lower() == option.strip().lower():
                return name
        raise agt.UsageError(f"{option!r} is not one of the options: type one of {self._listed()}")

    def _listed(self) -> str:
        return ", ".join(f'"{name}"' for name in self.options)


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


def score(*predictions: Prediction) -> OutcomeWords:
    """Count how many of several predictions came out right; without any, of all that were asked."""
    predictions = predictions or tuple(_asked.values())
    verdicts = [p.verdict for p in predictions if p.verdict is not None]
    answered = [v for v in verdicts if not v.by_default]
    if not answered:
        return OutcomeWords(
            "You have not committed an answer of your own yet: look for `commit(...)`."
        )
    right = sum(verdict.right for verdict in answered)
    return OutcomeWords(
        f"You answered {len(answered)} of {len(predictions)} predictions, and {right} came out right."
    )
