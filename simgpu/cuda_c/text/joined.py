"""A published `.cu` file as one text: its author's own headers stand where they are included."""

import re
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from simgpu.errors import UsageError

_MAIN = "kernel.cu"  # what messages call the source itself, whatever its file is called
CUDA_FILES = (".cu", ".cuh", ".cuda")
# Nothing else is read for an #include, since a message may quote what is read, and a kernel be a stranger's.
_SOURCES = re.compile(r".*\.(cu|cuh|cuda|c|cc|cpp|cxx|h|hh|hpp|hxx|inc|inl|ipp|tpp|def)", re.DOTALL)
_MOST_BYTES = 1 << 24
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^">\n]+)[">][^\n]*', re.MULTILINE)
_HAS_INCLUDE = re.compile(r'\b__has_include[ \t]*\([ \t]*[<"]([^">\n]+)[">][ \t]*\)')
_GUARD = re.compile(r"^[ \t]*#[ \t]*(pragma[ \t]+once|ifndef|if[ \t]*!)", re.MULTILINE)


def join_headers(source: str | PathLike[str], include: Sequence[str | PathLike[str]] = ()) -> str:
    """A source, or the text of a file, with the text of the headers that it includes.

    These lie beside the file, or in the folders `include`, or below one of these: no other file is read. A
    header is read once. One that is not found stays an `#include`: C's and CUDA's own are not needed.
    """
    folders = [Path(folder) for folder in include]
    file = Path(source)
    try:
        # A line that ends so names a file, rather than being the text of one.
        if isinstance(source, str) and ("\n" in source or file.suffix not in CUDA_FILES):
            return _Joining(folders).expanded(source.removeprefix("\ufeff"), folders)
        return _Joining([file.parent, *folders]).joined(file.resolve(), _MAIN)
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{file} cannot be read as CUDA C: {error}") from None


class _Joining:
    """The joining of one source: `folders` have all files that it may read."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._roots = [folder.resolve() for folder in folders]
        self._seen: dict[Path, bool] = {}  # whether it has been read to its end

    def joined(self, file: Path, name: str) -> str:
        if file.exists() and (not file.is_file() or file.stat().st_size > _MOST_BYTES):
            raise OSError(f"{file.name} is no file of at most {_MOST_BYTES:,} bytes")
        self._seen[file] = False
        text = self.expanded(_text_of(file), [file.parent, *self._folders], name)
        self._seen[file] = True
        return text

    def expanded(self, text: str, folders: Sequence[Path], name: str = _MAIN) -> str:
        def header(match: re.Match[str]) -> str:
            found = self._found(match.group(1), folders)
            if found is None:
                return match.group()
            if not self._seen.get(found, True) and not _GUARD.search(_text_of(found)):
                raise UsageError(f"{found.name} includes itself: write #pragma once at its top")
            if found in self._seen:
                return ""
            line = text.count("\n", 0, match.end()) + 2
            # These marks let a message name the line of a file, rather than that of the whole.
            return f'// #line 1 "{found.name}"\n{self.joined(found, found.name)}\n// #line {line} "{name}"'

        def asks(match: re.Match[str]) -> str:
            known = self._found(match[1], folders) is not None
            return "1".ljust(len(match[0])) if known else match[0]

        return _INCLUDE.sub(header, _HAS_INCLUDE.sub(asks, text))

    def _found(self, name: str, folders: Sequence[Path]) -> Path | None:
        for folder in folders if _SOURCES.fullmatch(name) else ():
            try:
                found = (folder / name).resolve()
                if found.is_file() and any(map(found.is_relative_to, self._roots)):
                    return found
            except (OSError, ValueError, RuntimeError):  # of names that no file has
                continue
        return None


def _text_of(file: Path) -> str:
    """The text of a file in UTF-8, in UTF-16 if it begins with its mark, or in whatever has a byte a letter.

    Then comments and strings may be of any country: their bytes are all that a compiler passes on.
    """
    for encoding in ("utf-16",) if file.read_bytes()[:2] in _UTF_16 else ("utf-8-sig", "latin-1"):
        try:
            return file.read_text(encoding)
        except UnicodeDecodeError:
            continue
    raise ValueError("it begins as a text in UTF-16, and is none")
