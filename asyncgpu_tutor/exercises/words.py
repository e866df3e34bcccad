"""Text that a notebook renders and a terminal prints."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Words"]


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
