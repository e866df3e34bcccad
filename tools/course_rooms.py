"""Names that a section of a chapter takes from another section, where a reader may begin with any.

The gallery lets its readers begin where they like, so no room may need what another one made, or lose what
it made itself because another one calls something else by that name. A cell reads its own names, those of
its section that no other section makes, and those from before the first section.
"""

from __future__ import annotations

import ast
import dis
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

from build_notebooks import chapter


def borrowed(source: Path) -> list[str]:
    """Say which cells read a name that another section makes, in words."""
    sections: list[list[tuple[str, set[str], set[str]]]] = [[]]
    for cell in chapter(source)[0]:
        if cell.kind == "markdown" and cell.only is None and cell.text.startswith("## "):
            sections.append([])
        elif cell.kind == "code":
            code = compile(cell.text, cell.id, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            steps = [(step.opname, step.argval) for step in _instructions(code)]
            made = {str(name) for what, name in steps if what == "STORE_NAME"}
            read = {str(name) for what, name in steps if what in ("LOAD_NAME", "LOAD_GLOBAL")}
            sections[-1].append((cell.id, made, read - made))
    of_each = [{name for _, made, _ in cells for name in made} for cells in sections]
    return [
        f"{cell} reads {name}"
        for here, cells in enumerate(sections[1:], 1)
        for cell, _, read in cells
        for name in sorted(read)
        if any(name in made for there, made in enumerate(of_each[1:], 1) if there != here)
        or (name in of_each[0] and name in of_each[here])
    ]


def _instructions(code: CodeType) -> Iterator[dis.Instruction]:
    yield from dis.get_instructions(code)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _instructions(inner)
