"""Exercises of 08_profiling on reports of Nsight Systems: what each one checks against the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from asyncgpu_tutor import Trace
from asyncgpu_tutor.exercises.checks import brief
from asyncgpu_tutor.exercises.checks.reports import answers, reads
from asyncgpu_tutor.exercises.exercise import Exercise, Rejected
from asyncgpu_tutor.exercises.exhibits import exhibit
from asyncgpu_tutor.types import Span

__all__ = ["REPORTS"]

RUN = "07_async_mlp"


def _report(within: str | None = RUN) -> Trace:
    return Trace.from_nsys(Trace.recorded_file(f"{RUN}.sqlite"), within=within)


def _reports(*letters: str) -> Callable[[], Sequence[tuple[str, Callable[[], tuple[Any, ...]]]]]:
    """The report of the MLP, and exhibits."""

    def cases() -> Sequence[tuple[str, Callable[[], tuple[Any, ...]]]]:
        shown = [(f"exhibit {x}", lambda x=x: (exhibit(x),)) for x in letters]
        return [("the report of the MLP", lambda: (_report(),)), *shown]

    return cases


def _copies() -> Sequence[tuple[str, Callable[[], tuple[Any, ...]]]]:
    """Also of two sizes, of which the small ones take as long as the large one and carry nothing."""

    def mixed() -> tuple[Trace]:
        sizes = [8_000_000, *[4_000] * 50]
        spans = [
            Span(
                i,
                "h2d",
                "x",
                300.0 * i,
                300.0 * i + 2 + size / 5e4,
                "cuda:0",
                1,
                detail={"bytes": size},
            )
            for i, size in enumerate(sizes)
        ]
        return (Trace(spans, "made up"),)

    return [("copies of two sizes", mixed), *_reports("D")()]


def _kernels() -> Sequence[tuple[str, Callable[[], tuple[Any, ...]]]]:
    return [(name, lambda name=name: (_report(), name)) for name in ("sgemm_naive", "matvec_naive")]


def _ranges() -> Sequence[tuple[str, Callable[[], tuple[Any, ...]]]]:
    whole = [(name, lambda name=name: (_report(), name)) for name in ("batch 0", "batch 3")]
    return [*whole, ("the four rounds of batch 0", lambda: (_report("record"), "batch 0"))]


def _pairs() -> Sequence[tuple[str, Callable[[], tuple[Any, ...]]]]:
    return [(f"exhibit {x}", lambda x=x: (exhibit(x), exhibit(x, repaired=True))) for x in "ABG"]


def check_query(mine: Any, model: Any) -> None:
    """The rows of the learner's query are those of the solution's, in order."""
    export = Trace.recorded_file(f"{RUN}.sqlite")
    due, got = answers(model, export), answers(mine, export)
    if got == due:
        return
    if got and len(got[0]) != 2:
        raise Rejected(f"a row should have two columns, a name and a sum, and has {len(got[0])}")
    if sorted(map(repr, got)) == sorted(map(repr, due)):
        raise Rejected("the rows are right, and not in order: the largest sum comes first")
    if len(got) != len(due):
        raise Rejected(
            f"there are {len(due)} kernels with a name of their own, and {len(got)} rows came out"
        )
    wrong = next((mine, right) for mine, right in zip(got, due, strict=True) if mine != right)
    raise Rejected(f"a row is {wrong[0]}, and should be {wrong[1]}")


MARKS: Mapping[str, str] = {
    "copies": "the copy engines are at work for nearly all of the time, and kernels hardly ever",
    "host": "the device is idle for most of the time, since the host has not asked for more",
    "blocks": "kernels run all the time, and each of them has a handful of threads",
}
_LIMITS = {"P": "copies", "Q": "host", "R": "blocks"}


def check_limits(mine: Any, _model: Any) -> None:
    """Each recording has its limit."""
    if not isinstance(mine, dict) or set(cast(dict[Any, Any], mine)) != set(_LIMITS):
        raise Rejected(f"`limits` should be a dict with the keys P, Q and R, and is {brief(mine)}")
    for letter, limit in _LIMITS.items():
        said = cast(dict[str, Any], mine)[letter]
        if said not in MARKS:
            raise Rejected(
                f"{letter} should be one of {', '.join(map(repr, MARKS))}, and is {brief(said)}"
            )
        if said != limit:
            raise Rejected(
                f"{letter} is not limited by {said!r}. By that one would be known: {MARKS[said]}"
            )


REPORTS = (
    Exercise("08-gap", "The largest gap", "largest_gap",
             reads("largest_gap", "(start, end)", _reports("A", "B", "F"))),
    Exercise("08-kernel", "A kernel's stream", "longest",
             reads("longest", "(CUDA's stream, us)", _kernels)),
    Exercise("08-sql", "One SQL query", "query", check_query),
    Exercise("08-blame", "Whose request ended it", "blame",
             reads("blame", "(label, cause)", _reports("A", "F"))),
    Exercise("08-rate", "GB/s of the bus", "rate", reads("rate", "GB/s", _copies)),
    Exercise("08-projected", "A range, projected", "projected",
             reads("projected", "(us on the host, us on the device)", _ranges)),
    Exercise("08-limits", "Three limits", "limits", check_limits),
    Exercise("08-gain", "What a repair has brought", "gain",
             reads("gain", "(times as fast, us of idle time saved)", _pairs)),
)  # fmt: skip
