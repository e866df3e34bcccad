"""A published `.cu` file as one text: its author's own headers stand where they are included.

So do the headers of this package (`kernels/headers`), in a source of any origin: `#include "hostcall.cuh"`.
Both devices get the same text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from asyncgpu_tutor.devices.cuda_source import device_code
from asyncgpu_tutor.errors import UsageError

SHIPPED = Path(__file__).parent / "headers"
FILES = (".cu", ".cuh", ".cuda")

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^">\n]+)[">][^\n]*', re.MULTILINE)


def include_headers(
    source: str | PathLike[str], include: Sequence[str | PathLike[str]] = ()
) -> str:
    """A source, or the text of a file, with the text of the headers that it includes.

    These are of this package, or lie beside the file, or in the folders `include`. A header is read once. One
    that is found nowhere stays an `#include`: C's and CUDA's own are not needed.
    """
    folders = [Path(folder) for folder in include]
    file = Path(source)
    # A line that ends so names a file, rather than being the text of one.
    if isinstance(source, str) and ("\n" in source or file.suffix not in FILES):
        return _expanded(source, folders, set())
    try:
        return _joined(file, folders, {file.resolve()})
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read as CUDA C: {error}") from None


def _joined(file: Path, include: Sequence[Path], seen: set[Path]) -> str:
    return _expanded(file.read_text("utf-8"), [file.parent, *include], seen)


def _expanded(text: str, folders: Sequence[Path], seen: set[Path]) -> str:
    def header(match: re.Match[str]) -> str:
        for folder in (*folders, SHIPPED):
            found = (folder / match.group(1)).resolve()
            if found in seen:
                return ""
            if found.is_file():
                seen.add(found)
                return _joined(found, folders, seen)
        return match.group()

    return _INCLUDE.sub(header, text)


def only_kernel(source: str) -> str:
    """The name of the one kernel of a source; `UsageError` if there are several, or none."""
    code = device_code(source)
    if len(code.kernels) == 1:
        return code.kernels[0]
    if not code.kernels:
        host = ", ".join(f"{name} ({where})" for name, where in code.aside.items())
        raise UsageError(
            "the source has no kernel: write __global__ void in front of one"
            + (f". It has functions and variables of the host: {host}" if host else "")
        )
    raise UsageError(
        f"the source has {len(code.kernels)} kernels ({', '.join(code.kernels)}): name the one that you "
        "mean, as in Kernel(source, name)"
    )
