"""Exercises of 08_profiling on reports of Nsight Systems: each answer is checked against the file."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import asyncgpu_tutor as agt
from asyncgpu_tutor import Trace
from asyncgpu_tutor.exercises.checks.reports import Case, asked, reads
from asyncgpu_tutor.exercises.checks.results import brief
from asyncgpu_tutor.exercises.exercise import Exercise, Rejected, case
from asyncgpu_tutor.exercises.exhibits import report, rounds
from asyncgpu_tutor.types import Span


def _plate(name: str) -> Trace:
    return Trace.from_nsys(Trace.recorded_file(f"{name}.sqlite"))


def _exhibits(letters: str, repaired: str = "") -> Callable[[], Sequence[Case]]:
    cases = [(f"exhibit {x}", lambda x=x: (report(x),)) for x in letters]
    twins = [(f"exhibit {x}, repaired", lambda x=x: (report(x, repaired=True),)) for x in repaired]
    return lambda: [*cases, *twins]


def _kernels() -> Sequence[Case]:
    return [
        ("exhibit A and relu", lambda: (report("A"), "relu")),
        ("exhibit B and matvec_naive", lambda: (report("B"), "matvec_naive")),
        (
            "exhibit G, repaired, and sgemm_naive",
            lambda: (report("G", repaired=True), "sgemm_naive"),
        ),
    ]


def _made_up(*spans: tuple[Any, float, float, int]) -> Trace:
    """A trace of pieces of work, each with its kind, start, end and bytes, on a stream of its own."""
    return Trace(
        [
            Span(i, kind, "x", start, end, "cuda:0", i, detail={"bytes": size})
            for i, (kind, start, end, size) in enumerate(spans, 1)
        ],
        "made up",
    )


def _gaps() -> Sequence[Case]:
    """Also of short kernels beside a long copy, between which nobody stands still."""
    beside = [
        ("h2d", 0, 100, 4),
        ("kernel", 10, 20, 0),
        ("kernel", 80, 90, 0),
        ("d2h", 110, 120, 4),
    ]
    covered = ("kernels beside a long copy", lambda: (_made_up(*beside),))
    return [*_exhibits("AD", "A")(), covered]


def _copies() -> Sequence[Case]:
    """Also of two sizes, of which the small ones carry next to nothing."""
    sizes = [8_000_000, *[4_000] * 50]
    mixed = [("h2d", 300.0 * i, 300.0 * i + 2 + n / 5e4, n) for i, n in enumerate(sizes)]
    return [*_exhibits("D", "D")(), ("copies of two sizes", lambda: (_made_up(*mixed),))]


def _ranges() -> Sequence[Case]:
    named = [
        ("heat_annotated", "stencil"),
        ("heat_annotated", "step"),
        ("heat_repaired", "stencil"),
    ]
    return [(f"{file} and {n}", lambda f=file, n=n: (_plate(f), n)) for file, n in named]


def _pairs() -> Sequence[Case]:
    """Also of rounds in which the last to start is not the last to end."""

    def beside(copy: float, kernel: float) -> list[list[Span]]:
        late = _made_up(("h2d", 0, copy, 4), ("kernel", kernel, kernel + 5, 0))
        return [late.device_spans] * 2

    exhibits = [(f"exhibit {x}", lambda x=x: (rounds(x), rounds(x, repaired=True))) for x in "ADG"]
    late = ("a short kernel beside a long copy", lambda: (beside(100, 80), beside(40, 5)))
    return [*exhibits, late]


def check_query(mine: Any, model: Any) -> None:
    """The rows of the learner's query are those of the solution's, in order."""
    for words, make in [("heat.py", partial(_plate, "heat")), ("exhibit G", partial(report, "G"))]:
        due, got = asked(model, make()), asked(mine, make())
        with case(words):
            _same_rows(got, due)


def _same_rows(got: list[tuple[object, ...]], due: list[tuple[object, ...]]) -> None:
    if got and len(got[0]) != 3:
        raise Rejected(
            f"a row should have a name, a number of launches and a sum, and has {len(got[0])} columns"
        )
    if len(got) != len(due):
        raise Rejected(f"there are {len(due)} kernels by name, and {len(got)} rows came out")
    for mine, right in zip(got, due, strict=True):
        if not _alike(mine, right):
            ordered = all(any(_alike(one, row) for row in due) for one in got)
            raise Rejected(
                "the rows are right, and not in order: the largest sum comes first"
                if ordered
                else f"a row is {mine}, and should be {right}"
            )


def _alike(mine: tuple[object, ...], right: tuple[object, ...]) -> bool:
    total = mine[2]
    close = isinstance(total, int | float) and math.isclose(
        total, cast(float, right[2]), rel_tol=1e-6
    )
    return mine[:2] == right[:2] and close


# How each defect could be recognised. An answer that suspects the wrong one is told that one's mark.
MARKS: Mapping[str, str] = {
    "null stream": "work on CUDA's stream 7, which is 0 here",
    "hidden synchronisation": "a wait of the host for work under way, and calls for more work after it",
    "pageable copy": "calls for a copy that last about as long as the copy itself",
    "lazy module loading": "a first kernel that comes late, since its code is loaded first",
    "too few streams": "one operation right behind another on a stream, and room on the device",
    "one big kernel": "one kernel that has most of the device's time, with blocks enough to fill it",
}
LINE_UP = (
    "ABCDEG"  # in the report of F no profiler can see the defect: a pool answers without a call
)


def check_suspects(mine: Any, _model: Any) -> None:
    """Each report has the defect that the detective finds in it."""
    if not isinstance(mine, dict) or set(cast(dict[Any, Any], mine)) != set(LINE_UP):
        raise Rejected(
            f"`suspects` should be a dict with the keys {', '.join(LINE_UP)}, and is {brief(mine)}"
        )
    wrong: list[str] = []
    named = {letter: _spelled(name) for letter, name in cast(dict[str, Any], mine).items()}
    for letter in LINE_UP:
        if named[letter] not in MARKS:
            raise Rejected(
                f"{letter} should be one of {', '.join(map(repr, MARKS))}, and is {brief(mine[letter])}"
            )
        found = [finding.name for finding in agt.diagnose(report(letter)) if not finding.limit]
        if named[letter] not in found:
            wrong.append(letter)
    if wrong:
        said = named[wrong[0]]
        raise Rejected(
            f"{len(LINE_UP) - len(wrong)} of {len(LINE_UP)} are right. {wrong[0]} is not {said!r}, which one "
            f"knows by this: {MARKS[said]}"
        )


def _spelled(name: object) -> str:
    return name.replace("ization", "isation") if isinstance(name, str) else ""


REPORTS = (
    Exercise("08-kernel", "A kernel's stream", "longest",
             reads("longest", "(CUDA's stream, us)", _kernels)),
    Exercise("08-sql", "One SQL query", "query", check_query),
    Exercise("08-gap", "The largest gap", "largest_gap",
             reads("largest_gap", "(start, end)", _gaps)),
    Exercise("08-blame", "Whose request ended it", "blame",
             reads("blame", "(label, cause)", _exhibits("AD", "A"))),
    Exercise("08-typical", "A typical step", "typical", reads("typical", "us", _ranges)),
    Exercise("08-suspects", "Six suspects", "suspects", check_suspects),
    Exercise("08-rate", "GB/s of the bus", "rate", reads("rate", "GB/s", _copies)),
    Exercise("08-gain", "How much a fix gained", "gain",
             reads("gain", "how many times as fast", _pairs)),
)  # fmt: skip
