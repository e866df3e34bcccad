"""How a check says no: a rejection with its cause, in which case, beside which timelines."""

import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import cast

import asyncgpu_tutor as agt


class Rejected(Exception):
    """An answer is wrong. Not an error of the program, so not in the tree of `errors`.

    The `cause` says what is wrong, in one line, as Markdown. The `edge` is the spans of the learner's trace
    whose order is the first to be wrong, to be marked in a picture of `got` beside `expected`, what happens
    in the solution.
    """

    def __init__(self, cause: str, *edge: agt.types.Span) -> None:
        super().__init__(cause)
        self.cause = cause
        self.edge = edge
        self.got: agt.Trace | None = None
        self.expected: agt.Trace | None = None


def must(right: bool, cause: str, *edge: agt.types.Span) -> None:
    """Reject the answer for this cause, unless this is right."""
    if not right:
        raise Rejected(cause, *edge)


@contextmanager
def case(words: str, unless: str = "\n") -> Generator[None]:
    """Say in which case, such as ``"n=1000"``, it was wrong, `unless` the cause has words of its own."""
    try:
        yield
    except Rejected as rejected:
        if words and unless not in rejected.cause:
            rejected.cause = f"with {words}, {rejected.cause}"
        raise


@contextmanager
def about(sign: str | tuple[type[Exception], ...], words: str) -> Generator[None]:
    """Put a rejection with this pattern in its cause, or because of such an error, into other words.

    In them ``{}`` stands for the cause.
    """
    try:
        yield
    except Rejected as rejected:
        error = rejected.__cause__
        while isinstance(error, BaseExceptionGroup):
            error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
        text = rejected.cause
        if re.search(sign, text) if isinstance(sign, str) else isinstance(error, sign):
            rejected.cause = words.replace("{}", rejected.cause)
        raise


def alike(*traces: agt.Trace) -> bool:
    """Tell whether traces are the same picture, to a hundredth of its width."""
    first, finest = traces[0], traces[0].metrics().makespan / 100

    def near(a: agt.types.Span, b: agt.types.Span) -> bool:
        return a.name == b.name and max(abs(a.start - b.start), abs(a.end - b.end)) <= finest

    return all(len(t) == len(first) and all(map(near, t, first)) for t in traces)


@contextmanager
def compared(got: agt.Trace, expected: agt.Trace | Callable[[], agt.Trace]) -> Generator[None]:
    """Give both timelines to whatever is rejected in the block, whose edge loses spans of other traces.

    The expected one may be a function that makes it, which is called only then. If both look the same, and
    no edge is to be marked, there is nothing to see, and none is given.
    """
    try:
        yield
    except Rejected as rejected:
        rejected.got = got
        rejected.edge = tuple(span for span in rejected.edge if span in got.spans)
        right = rejected.expected = expected() if callable(expected) else expected
        if not rejected.edge and alike(got, right):
            rejected.got = rejected.expected = None
        raise
