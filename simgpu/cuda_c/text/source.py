"""Positions in a source, and the wording of complaints about them."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NoReturn

from simgpu.errors import KernelCompileError, UnsupportedFeatureError

_DEEP = (
    "this is nested too deep: templates that need each other without an end, or hundreds of operators, "
    "brackets, macros, branches or links of an else-if chain within each other"
)
# Where another file begins in a text that was joined of several, and at which of its lines.
_MARK = re.compile(r'// #line (\d+) "([^"]*)"')
# Libraries of device code whose names people take by a using-directive, so any of them may be meant.
_LIBRARY = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]((?:cute|cutlass)/[^>\"\n]+)", re.MULTILINE)
_WIDE = 160  # columns of a line that a message quotes
_LONG_WORD = re.compile(r"([^\s'\"]{60})[^\s'\"]{60,}([^\s'\"]{20})")


def shortened(text: str) -> str:
    """Take the middle out of words that nobody could read, such as a name of 100,000 letters."""
    return _LONG_WORD.sub(r"\1...\2", text)


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a source; line and column count from 1.

    In the body of a function it also knows where the kernel calls it, whose body is compiled for each call.
    """

    line: int
    column: int
    called: Position | None = field(default=None, compare=False)


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

    def place(self, number: int) -> tuple[str, int]:
        """The file that a line of this text was joined from, and the number that it has there."""
        for back, line in enumerate(self.text.split("\n")[number - 1 :: -1] if number > 0 else ()):
            if back and (found := _MARK.fullmatch(line)):
                return found[2], int(found[1]) + back - 1
        return self.filename, number

    def quoted(self, number: int) -> str:
        """The text of a line for the end of a message: not all of a very long one."""
        line = self.line(number).strip()
        return line if len(line) <= _WIDE else f"{line[:_WIDE]} ..."

    def fail(self, at: Position, message: str) -> NoReturn:
        """Refuse what a CUDA compiler refuses too: `KernelCompileError`, with the line and a caret."""
        if library := _LIBRARY.search(self.text):
            cause = f"that may be <{library[1]}>, a library that is not supported"
            self.unsupported(at, f"{message}; {cause}")
        raise KernelCompileError(self._render(at, message), line=at.line, column=at.column)

    def unsupported(self, at: Position, message: str) -> NoReturn:
        """Refuse what a GPU runs, and this interpreter would not rightly: `UnsupportedFeatureError`."""
        text = self._render(at, f"{message} (a GPU runs this; the simulated device does not)")
        raise UnsupportedFeatureError(text, line=at.line, column=at.column)

    def _render(self, at: Position, message: str) -> str:
        line = self.line(at.line)
        cut = max(0, at.column - _WIDE // 2) if len(line) > _WIDE else 0
        line = line[cut : cut + _WIDE]
        # A tab in the line stays a tab under it, so that the caret lands where an editor shows it.
        lead = "".join("\t" if c == "\t" else " " for c in line[: at.column - 1 - cut])
        lead = lead.ljust(at.column - 1 - cut)
        where = ":".join(map(str, (*self.place(at.line), at.column)))
        return f"{where}: error: {shortened(message)}\n    {line}\n    {lead}^"


@contextmanager
def nesting(source: Source, at: Position = Position(1, 1)) -> Generator[None]:
    """Refuse what is nested too deep for Python's stack, at the innermost word or node that was reached."""
    try:
        yield
    except RecursionError as error:
        trace = error.__traceback__
        while trace is not None:
            found = [getattr(value, "at", None) for value in trace.tb_frame.f_locals.values()]
            at = next((p for p in found if isinstance(p, Position) and p.line > 0), at)
            trace = trace.tb_next
        source.unsupported(at, _DEEP)
