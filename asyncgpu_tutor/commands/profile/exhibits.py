"""Exhibits: traces of defective programs, under letters that do not give away what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from asyncgpu_tutor import Trace
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces.analysis.comparison import from_its_start

__all__ = ["EXHIBITS", "exhibit"]

EXHIBITS: Mapping[str, str] = {
    "A": "08_hidden_synchronisation",
    "B": "08_too_few_streams",
    "C": "08_null_stream",
    "D": "08_pageable_copy",
    "E": "08_lazy_module_loading",
    "F": "08_allocation_in_the_loop",
    "G": "08_one_big_kernel",
}


def exhibit(letter: str, *, repaired: bool = False) -> Trace:
    """The recording of a program that has a defect, on a GPU.

    Parameters
    ----------
    letter : str
        ``"A"`` to ``"G"``.
    repaired : bool
        The same program, without its defect.

    Returns
    -------
    Trace
        From its first call on, and without the words in its `about` that name the defect.

    Raises
    ------
    UsageError
        If there is no such exhibit.
    """
    if letter not in EXHIBITS:
        listed = ", ".join(repr(known) for known in EXHIBITS)
        raise UsageError(f"there is no exhibit {letter!r}; there are {listed}")
    trace = Trace.load_recording(EXHIBITS[letter] + ("_repaired" if repaired else ""))
    about = {key: value for key, value in trace.about.items() if key not in {"run", "shows"}}
    return replace(from_its_start(trace), about=about)
