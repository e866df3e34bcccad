"""At exit, on request: the arrays that nobody let go of.

An array lives as long as something holds a handle to it. A list that collects results, a global, a future
that nobody awaits: each keeps device memory, and a GPU has little of it. With ``ASYNCGPU_LEAKS=1`` in the
environment, the end of the process names what was still alive on its simulated devices, and where it came
from.
"""

from __future__ import annotations

import atexit
import inspect
import os
import sys
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any

VARIABLE = "ASYNCGPU_LEAKS"
# Folders, with the separator, whose code allocates on behalf of whoever called it.
_PASSED_OVER = [f"{Path(__file__).resolve().parent}{os.sep}"]
MOST = 20  # arrays that are named one by one


def wanted() -> bool:
    """Whether the environment asks for the report."""
    return os.environ.get(VARIABLE, "") not in ("", "0")


def pass_over(folder: Path) -> None:
    """Say of no array that it comes from code in this folder, but from what called that."""
    _PASSED_OVER.append(f"{folder}{os.sep}")


def origin() -> str:
    """File and line of the innermost caller outside of this package."""
    frame = inspect.currentframe()
    passed = tuple(_PASSED_OVER)
    while frame is not None and frame.f_code.co_filename.startswith(passed):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""


def watch(heap: Any) -> None:
    """Report on a `Heap`, whose module imports this one, at exit, if it is still there."""
    reference = weakref.ref(heap)

    def tell() -> None:
        there = reference()
        text = report(there.alive()) if there is not None else ""
        if text:
            print(text, file=sys.stderr)  # noqa: T201 - this is what was asked for

    atexit.register(tell)


def report(alive: Iterable[Any]) -> str:
    """What is alive of a `Heap`, largest first; empty if nothing is."""
    found = sorted(alive, key=lambda a: -a.nbytes)  # stable: equals in the order of allocation
    if not found:
        return ""
    arrays = "1 array was" if len(found) == 1 else f"{len(found):,} arrays were"
    total = sum(allocation.nbytes for allocation in found)
    lines = [f"{arrays} still alive on a simulated device at exit, {total:,} bytes:"]
    for allocation in found[:MOST]:
        where = f", allocated at {allocation.origin}" if allocation.origin else ""
        lines.append(f"  {allocation.name!r}, {allocation.nbytes:,} bytes{where}")
    if len(found) > MOST:
        lines.append(f"  ... and {len(found) - MOST:,} more")
    lines.append(
        "Drop handles that are no longer needed (del, or the end of a function), and wait for every "
        "operation that was started."
    )
    return "\n".join(lines)
