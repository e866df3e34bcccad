"""Findings of the detective."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, with the evidence.

    Attributes
    ----------
    name : str
        Which defect, such as ``"null stream"``, or which limit, such as ``"host-bound"``; docs/profiling.md
        has all of them.
    title : str
        The same in a few words, for people.
    sentence : str
        What was seen, with numbers.
    advice : str
        What to do about it.
    spans : tuple of int
        Ids of the spans that show it, ascending: ``trace.plot(highlight=...)`` takes the spans.
    cost : float
        About how much time it costs, in us; 0 where that cannot be told from the trace.
    limit : bool
        Whether it is what limits the program, rather than a mistake in it.
    """

    name: str
    title: str
    sentence: str
    advice: str
    spans: tuple[int, ...]
    cost: float = 0.0
    limit: bool = False

    def __str__(self) -> str:
        return f"{self.title}: {self.sentence} {self.advice}"
