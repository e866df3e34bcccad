"""Exhibits: traces of defective programs, under letters that do not give away what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from asyncgpu_tutor import Trace
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces.analysis.comparison import from_its_start

__all__ = ["EXHIBITS", "LIMITED", "exhibit", "limited"]

EXHIBITS: Mapping[str, str] = {
    "A": "08_hidden_synchronisation",
    "B": "08_too_few_streams",
    "C": "08_null_stream",
    "D": "08_pageable_copy",
    "E": "08_lazy_module_loading",
    "F": "08_allocation_in_the_loop",
    "G": "08_one_big_kernel",
}


# Programs without a defect, each of which could be faster for another reason.
LIMITED: Mapping[str, str] = {
    "P": "02_one_stream",
    "Q": "09_cuda_graphs_by_calls",
    "R": "08_too_few_streams_repaired",
}


def limited(letter: str) -> Trace:
    """The recording of a program without a defect, under a letter that does not say what limits it.

    Raises
    ------
    UsageError
        If there is no such letter.
    """
    return _recording("recording", letter, LIMITED)


def _recording(what: str, letter: str, known: Mapping[str, str], suffix: str = "") -> Trace:
    """One of `known`, from its first call on, and without what in its `about` would tell too much."""
    if letter not in known:
        listed = ", ".join(map(repr, known))
        raise UsageError(f"there is no {what} {letter!r}; there are {listed}")
    trace = Trace.load_recording(known[letter] + suffix)
    about = {
        key: value for key, value in trace.about.items() if key not in {"run", "shows", "command"}
    }
    return replace(from_its_start(trace), about=about)


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
    return _recording("exhibit", letter, EXHIBITS, "_repaired" if repaired else "")
