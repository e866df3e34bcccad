"""What a notebook shows of numbers: text that does not wrap, and tables that a narrow page can scroll."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

NOTHING = (
    "Nothing was recorded. A trace is filled when its block, with agt.record() as trace:, ends. In it is "
    "what ran inside of the block: by op.sync(), await op or agt.spawn(op)."
)


class Lines(str):
    """Several lines of text. A notebook shows them as `print` does, and never wraps one."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        # JupyterLab wraps what is printed, and turns columns into garbage; this scrolls.
        return f'<pre style="white-space:pre;overflow-x:auto">{escape(self)}</pre>'


def html_table(
    rows: Iterable[Sequence[str]], *, head: Sequence[str] = (), caption: str = ""
) -> str:
    """Rows of text as a table; all but the first column are numbers, and stand to the right."""
    above = f"<caption style='text-align:left'>{escape(caption)}</caption>" if caption else ""
    lines = [_row(head, "th")] if head else []
    lines += [_row(row, "td") for row in rows]
    return f"<div style='overflow-x:auto'><table>{above}{''.join(lines)}</table></div>"


def _row(cells: Sequence[str], tag: str) -> str:
    sides = ("left", *("right" for _ in cells[1:]))
    told = (
        f"<{tag} style='text-align:{side}'>{escape(cell)}</{tag}>"
        for side, cell in zip(sides, cells, strict=True)
    )
    return f"<tr>{''.join(told)}</tr>"
