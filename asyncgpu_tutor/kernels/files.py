"""A published `.cu` file as one text: its author's own headers stand where they are included.

So do the headers of this package (`kernels/headers`), in a source of any origin: `#include "hostcall.cuh"`.
Both devices get the same text.
"""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from asyncgpu_tutor.devices.cuda_source import device_code, with_headers
from asyncgpu_tutor.errors import UsageError, entries_of

SHIPPED = Path(__file__).parent / "headers"


def include_headers(
    source: str | PathLike[str], include: Sequence[str | PathLike[str]] = ()
) -> str:
    """A source, or the text of a file, with the text of its headers, and of those of this package."""
    folders = entries_of("folders to include", include, (str, PathLike))
    return with_headers(source, (*folders, SHIPPED))


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
