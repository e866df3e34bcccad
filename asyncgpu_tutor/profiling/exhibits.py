"""Exhibits: traces of defective programs, under letters that do not give away what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from asyncgpu_tutor import Trace, using
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.profiling.run import find_run, record_run
from asyncgpu_tutor.sim import Machine, SimDevice

__all__ = ["EXHIBITS", "LOADING_US", "exhibit"]

EXHIBITS: Mapping[str, str] = {
    "A": "08_hidden_synchronisation",
    "B": "08_too_few_streams",
    "C": "08_null_stream",
    "D": "08_pageable_copy",
    "E": "08_lazy_module_loading",
    "F": "08_allocation_in_the_loop",
    "G": "08_one_big_kernel",
}

# us; chosen so that it stands out and the rest can still be seen beside it. On GPUs it may be far more.
LOADING_US = 900.0


async def exhibit(letter: str, *, repaired: bool = False) -> Trace:
    """The trace of a program of the course that has a defect.

    It is the recording that comes with this package, made on a GPU. Where there is none, the program runs
    now, on a simulated device of its own.

    Parameters
    ----------
    letter : str
        ``"A"`` to ``"G"``.
    repaired : bool
        The same program, without its defect.

    Returns
    -------
    Trace
        Without the words in its `about` that name the defect.

    Raises
    ------
    UsageError
        If there is no such exhibit.
    """
    if letter not in EXHIBITS:
        raise UsageError(
            f"there is no exhibit {letter!r}; there are {', '.join(map(repr, EXHIBITS))}"
        )
    name = EXHIBITS[letter] + ("_repaired" if repaired else "")
    if name in Trace.recordings():
        trace = Trace.load_recording(name)
    else:
        with using(SimDevice(machine=Machine(), load_us=LOADING_US)):
            trace = await record_run(find_run(name))
    about = {key: value for key, value in trace.about.items() if key not in {"run", "shows"}}
    return replace(trace, about=about)
