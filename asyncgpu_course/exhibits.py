"""Exhibits: reports of defective programs, under letters that do not give away what is wrong."""

from collections.abc import Mapping
from dataclasses import replace

from asyncgpu_tutor import Trace
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.types import Span

EXHIBITS: Mapping[str, str] = {
    "A": "08_hidden_synchronisation", "B": "08_too_few_streams", "C": "08_null_stream",
    "D": "08_pageable_copy", "E": "08_lazy_module_loading", "F": "08_allocation_in_the_loop",
    "G": "08_one_big_kernel",
}  # fmt: skip
INNOCENT = "H"  # the quickest round of A's repaired twin: a staircase, and nothing is wrong with it


def report(letter: str, *, repaired: bool = False) -> Trace:
    """Read a recording by Nsight Systems, on an NVIDIA H200: the last round of a program with a defect.

    Parameters
    ----------
    letter : str
        ``"A"`` to ``"G"``, or ``"H"``, which has no defect.
    repaired : bool
        The same program, without its defect.

    Raises
    ------
    UsageError
        If there is no such exhibit.
    """
    if letter == INNOCENT:
        twin = _read("A", repaired=True, within=None)
        return twin.between(twin.find("chunk 0")[2].start, twin.find("exhibit A")[0].start)
    return _read(letter, repaired, within=f"exhibit {letter}")


def rounds(letter: str, *, repaired: bool = False) -> list[list[Span]]:
    """The device's work in each round of the program that the report holds; see `report`."""
    work = _read(letter, repaired, within=None).device_spans
    size = len(report(letter, repaired=repaired).device_spans)
    return [work[i : i + size] for i in range(0, len(work), size)]


def _read(letter: str, repaired: bool, within: str | None) -> Trace:
    if letter not in EXHIBITS:
        listed = ", ".join(map(repr, EXHIBITS))
        raise UsageError(f"there is no exhibit {letter!r}; there are {listed}")
    name = f"exhibit_{letter}_repaired" if repaired else f"exhibit_{letter}"
    trace = Trace.from_nsys(Trace.recorded_file(f"{name}.sqlite"), within=within)
    # These cross each other, and would fill the host's lane: no question of the page is about them.
    shown = [span for span in trace if not span.name.endswith(" in flight")]
    return replace(trace, spans=shown)
