"""Predictions: an answer committed before the reveal, and held against what happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import EllipsisType

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.outcome import Words

__all__ = ["Prediction", "Verdict", "score"]


@dataclass(frozen=True)
class Verdict:
    """How a prediction came out.

    Attributes
    ----------
    answer : str
        The option that was committed.
    truth : str
        The option that turned out true.
    by_default : bool
        Whether nobody answered, and the default was taken.
    text : str
        Both in words, as Markdown.
    """

    answer: str
    truth: str
    by_default: bool
    text: str

    @property
    def right(self) -> bool:
        """Whether a committed answer was the true one. A default scores nothing."""
        return self.answer == self.truth and not self.by_default

    def __repr__(self) -> str:
        return self.text

    def _repr_markdown_(self) -> str:
        return self.text


class Prediction:
    """A question with options, to be answered before the code that settles it runs.

    Without an answer the first option is taken, so that a notebook that nobody has touched runs through.
    Answers may be committed again, and cells run in any order and twice: the last answer counts.

    Parameters
    ----------
    question : str
        Markdown.
    **options : str
        At least two: what to type, and what it stands for.

    Raises
    ------
    UsageError
        If there are fewer than two options.

    Examples
    --------
    >>> guess = Prediction("Does zip overlap its arms?", yes="they overlap", no="they do not")
    >>> guess.commit("no")
    Committed: `no`, they do not.
    >>> guess.reveal("no", "One stream was used.")
    **Right.** You said `no`, and so says the trace: they do not. One stream was used.
    """

    def __init__(self, question: str, /, **options: str) -> None:
        if len(options) < 2:
            raise agt.UsageError(f"a prediction needs at least two options, and got {len(options)}")
        self.question = question
        self.options: Mapping[str, str] = options
        self.answer: str | None = None
        self.verdict: Verdict | None = None
        self._by_default = False

    def __repr__(self) -> str:
        lines = [f"- `{name}`: {meaning}" for name, meaning in self.options.items()]
        return "\n".join([f"**Predict.** {self.question}", "", *lines])

    def _repr_markdown_(self) -> str:
        return repr(self)

    def commit(self, answer: str | EllipsisType) -> Words:
        """Settle for an answer; ``...`` takes the first option.

        Raises
        ------
        UsageError
            If the answer is not one of the options.
        """
        self._by_default = isinstance(answer, EllipsisType)
        chosen = next(iter(self.options)) if isinstance(answer, EllipsisType) else answer
        self.answer = self._known(chosen)
        self.verdict = None
        if self._by_default:
            return Words(
                f"No answer yet, so `{chosen}` is taken for now. To take part, type one of "
                f"{self._listed()} in place of `...` and run this cell again."
            )
        return Words(f"Committed: `{chosen}`, {self.options[chosen]}.")

    def reveal(self, truth: str, evidence: str = "") -> Verdict:
        """Hold the answer against what happened.

        Parameters
        ----------
        truth : str
            The option that turned out true, worked out from a trace or a result.
        evidence : str
            A sentence that says how one can tell.

        Raises
        ------
        UsageError
            If no answer was committed, or `truth` is not one of the options.
        """
        meaning = self.options[self._known(truth)]
        if self.answer is None:
            raise agt.UsageError(
                "commit an answer before the reveal: run the cell with commit(...) first"
            )
        if self._by_default:
            said = f"**The answer is `{truth}`:** {meaning}."
        elif self.answer == truth:
            said = f"**Right.** You said `{truth}`, and so says the trace: {meaning}."
        else:
            said = f"**Not this time.** You said `{self.answer}`; it is `{truth}`: {meaning}."
        text = f"{said} {evidence}".rstrip()
        self.verdict = Verdict(self.answer, truth, self._by_default, text)
        return self.verdict

    def _known(self, option: str) -> str:
        if option not in self.options:
            raise agt.UsageError(
                f"{option!r} is not one of the options: type one of {self._listed()}"
            )
        return option

    def _listed(self) -> str:
        return ", ".join(f'"{name}"' for name in self.options)


def score(*predictions: Prediction) -> Words:
    """How several predictions came out."""
    verdicts = [p.verdict for p in predictions if p.verdict is not None]
    answered = [v for v in verdicts if not v.by_default]
    if not answered:
        return Words("You have not committed an answer of your own yet: look for `commit(...)`.")
    right = sum(verdict.right for verdict in answered)
    return Words(
        f"You answered {len(answered)} of {len(predictions)} predictions, and {right} came out right."
    )
