"""Numbers in a notebook: text that does not wrap, and tables that a narrow page can scroll."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import cast

PAGE = 100  # columns of text that a page and a terminal have room for
NAME = 40  # of these for a name, where it stands among other words
_CELL = 60  # characters of a cell in a notebook; what is longer is whole where one points

NOTHING = (
    "Nothing was recorded. A trace is filled when its block, with agt.record() as trace:, ends. In it is "
    "what ran inside of the block: by op.sync(), await op or agt.spawn(op). On a GPU, agt.record('all') also "
    "has what CuPy and other libraries ran."
)


def printable(text: str) -> str:
    """The text without what a terminal would obey, whoever chose the names in it; lines stay lines."""
    return "\n".join(cut_output(line, len(line)) for line in text.split("\n"))


class Lines(str):
    """Several lines of text. A notebook shows them as `print` does, and never wraps one."""

    __slots__ = ()

    def __new__(cls, text: str) -> Lines:  # noqa: D102
        return super().__new__(cls, printable(text))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        # JupyterLab wraps what is printed, and turns columns into garbage; this scrolls.
        return f'<pre style="white-space:pre;overflow-x:auto">{escape(self)}</pre>'


def cut_output(text: str, width: int) -> str:
    """At most `width` printable characters of a name: its beginning and its end, with a GEMM's sizes."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else " " for c in text)
    if len(text) <= width:
        return text
    end = (width - 1) // 2
    return f"{text[: width - 1 - end]}\u2026{text[len(text) - end :]}"


def warnings_of(about: Mapping[str, object]) -> str:
    """The sentences in which a profiler itself says why it saw little, where a file has any."""
    told = _sentences(about, "warnings")
    return f" The profiler says: {' '.join(told)}" if told else ""


def damage_of(about: Mapping[str, object]) -> list[str]:
    """Sentences on records of a file that were left out, or that one has to know of."""
    return _sentences(about, "damage")


def _sentences(about: Mapping[str, object], key: str) -> list[str]:
    said = about.get(key)
    return (
        [cut_output(str(line), 300) for line in cast("list[object]", said)]
        if isinstance(said, list)
        else []
    )


def wrapped(text: str, indent: int) -> list[str]:
    """A sentence in lines that fit a page, all but the first with an indent. No word is broken."""
    return textwrap.wrap(
        text, PAGE, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )


def html_table(rows: Iterable[Sequence[str]], head: Sequence[str]) -> str:
    """Rows of text as a table; all but the first column are numbers, and stand to the right."""
    lines = [_row(head, "th"), *(_row(row, "td") for row in rows)]
    return f"<div style='overflow-x:auto'><table>{''.join(lines)}</table></div>"


def _row(cells: Sequence[str], tag: str) -> str:
    sides = ["left", *("right" for _ in cells)][: len(cells)]
    told = (
        f"<{tag} style='text-align:{side}'"
        + (f' title="{escape(cell)}"' if len(cell) > _CELL else "")
        + f">{escape(cut_output(cell, _CELL))}</{tag}>"
        for side, cell in zip(sides, cells, strict=True)
    )
    return f"<tr>{''.join(told)}</tr>"
