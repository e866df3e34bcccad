"""Things that a browser lacks: Pyodide's Python starts no thread and no process, and opens no socket.

CI has no Pyodide with NumPy. So tests and notebooks run in a CPython where the package gets an error when
it asks for one of these (`conftest.py`), and in notebooks a cell as well (`kernel_startup`).
"""

import _thread
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent
PACKAGE = TESTS.parent / "asyncgpu_tutor"
COURSE = TESTS.parent / "asyncgpu_course"
SIMULATED = TESTS.parent / "simgpu"
# The rooms that nobody enters in a browser.
OUTSIDE = {
    "commands": "they are typed at a prompt; `profile -- CMD` runs a program",
    "doctor.py": "it is typed at a prompt, and tries CuPy in a process of its own",
    "start": "it is typed at a prompt, and runs a server",
    "devices/cuda": "there is no CUDA; CuPy's device has a thread that waits for events",
    "devices/trio_run.py": "trio has no event loop there",
    "serving/connections.py": "a kernel's connections are the host's, and a browser has none",
    "clusters/over_dask.py": "Dask reaches other processes by sockets",
}

# What starts a thread or a process or opens a socket, by where it is looked up. Not every system has each.
STARTS: list[tuple[Any, str]] = [
    (threading.Thread, "start"), (_thread, "start_new_thread"), (_thread, "start_joinable_thread"),
    (subprocess.Popen, "__init__"), (os, "fork"), (os, "posix_spawn"), (os, "system"),
    (socket.socket, "__init__"),
]  # fmt: skip


class NotInABrowserError(AssertionError):
    """This could not run in a browser."""


def forbid(refused: Callable[[], bool]) -> None:
    """From here on, whoever starts one of these gets an error where `refused()` is true."""
    for owner, name in STARTS:
        if hasattr(owner, name):
            setattr(
                owner, name, _guarded(f"{owner.__name__}.{name}", getattr(owner, name), refused)
            )


def _guarded(
    name: str, found: Callable[..., Any], refused: Callable[[], bool]
) -> Callable[..., Any]:
    def guarded(*args: Any, **kwargs: Any) -> Any:
        if refused():
            raise NotInABrowserError(
                f"{name}: a browser has no threads, no processes and no sockets"
            )
        return found(*args, **kwargs)

    return guarded


def by_the_course() -> bool:
    """Tell if the package or a cell of a notebook asks, and not a test, pytest or Jupyter.

    Where CuPy is loaded there is no browser. Once on each machine matplotlib lists the fonts, by a thread and
    a process that it can do without.
    """
    frame = None if "cupy" in sys.modules else sys._getframe(2)
    while frame is not None:
        place = Path(frame.f_code.co_filename)
        if place.parts[-2:] == ("matplotlib", "font_manager.py"):
            return False
        if "distributed" in place.parts:  # Dask: where it is installed there is no browser, either
            return False
        for package in (PACKAGE, COURSE):
            if place.is_relative_to(package):
                return not any(place.is_relative_to(package / room) for room in OUTSIDE)
        if place.is_relative_to(SIMULATED):
            return True
        if place.is_relative_to(TESTS):
            return False
        if place.parent.name.startswith("ipykernel_"):  # the file that a cell is said to be in
            return True
        frame = frame.f_back
    return False
