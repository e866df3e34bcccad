"""Findings of the detective."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from asyncgpu_tutor.traces.spans.notebook_output import printable

# Each device's part of a trace has the whole host, so no more devices than these get a report of their own.
MOST_DEVICES = 64


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
        return printable(f"{self.title}: {self.sentence} {self.advice}")


# By name, with the advice in the words of each language.
KNOWN_FINDINGS: Mapping[str, Mapping[str, str]] = tomllib.loads(
    Path(__file__).with_name("advice.toml").read_text(encoding="utf-8")
)


def advice(name: str, language: str) -> str:
    """Advice; for a program of this package, also what helps in CuPy."""
    known = KNOWN_FINDINGS[name]
    ways = ("Here", "In CuPy") if language == "ours" else (f"In {language}",)
    told = (f"{way}: {known[way]}." for way in ways if way in known)
    return " ".join([f"{known['advice']}.", *told])
