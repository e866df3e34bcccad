"""Positions in a source, and the wording of complaints about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from simgpu.errors import KernelCompileError, UnsupportedFeatureError


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a source; line and column count from 1."""

    line: int
    column: int


def text_of(characters: str) -> str:
    """What bytes say, of which `characters` has one for each; these themselves if they are no UTF-8."""
    try:
        return characters.encode("latin-1").decode()
    except UnicodeDecodeError:
        return characters


@dataclass(frozen=True)
class Source:
    """The text of a kernel file, and the name that its messages carry."""

    text: str
    filename: str = "kernel.cu"

    def line(self, number: int) -> str:
        """Text of line `number` (from 1), or an empty string beyond the end."""
        lines = self.text.split("\n")
        return lines[number - 1] if 0 < number <= len(lines) else ""

    def fail(self, at: Position, message: str) -> NoReturn:
        """Refuse what a CUDA compiler refuses too: `KernelCompileError`, with the line and a caret."""
        raise KernelCompileError(self._render(at, message), line=at.line, column=at.column)

    def unsupported(self, at: Position, message: str) -> NoReturn:
        """Refuse what a GPU runs, and this interpreter would not rightly: `UnsupportedFeatureError`."""
        text = self._render(at, f"{message} (a GPU runs this; the simulated device does not)")
        raise UnsupportedFeatureError(text, line=at.line, column=at.column)

    def _render(self, at: Position, message: str) -> str:
        line = self.line(at.line)
        # A tab in the line stays a tab under it, so that the caret lands where an editor shows it.
        lead = "".join("\t" if c == "\t" else " " for c in line[: at.column - 1])
        lead = lead.ljust(at.column - 1)
        where = f"{self.filename}:{at.line}:{at.column}"
        return f"{where}: error: {message}\n    {line}\n    {lead}^"
