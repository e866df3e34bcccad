"""Text that a notebook renders and a terminal prints."""

from __future__ import annotations

from dataclasses import dataclass

from asyncgpu_tutor.traces.pictures import alt_text
from asyncgpu_tutor.traces.trace import Trace

__all__ = ["Words", "in_words"]


@dataclass(frozen=True)
class Words:
    """Markdown that also reads well as plain text.

    Attributes
    ----------
    text : str
        Markdown; kept to bold, code and lists, for whoever reads the source.
    """

    text: str

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_markdown_(self) -> str:
        return self.text


def in_words(*traces: Trace) -> Words:
    """What the timelines of these traces show: the caption for a picture of them."""
    return Words("\n\n".join(f"*In words:* {alt_text(trace)}" for trace in traces))
