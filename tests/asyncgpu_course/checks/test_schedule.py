"""Each check of a schedule accepts what is right, and names and marks what is not."""

from collections.abc import Callable
from typing import Any

import pytest

from asyncgpu_course import Rejected
from asyncgpu_course.checks import schedule
from asyncgpu_course.checks.rejection import case, compared
from asyncgpu_tutor.traces.spans import Span
from asyncgpu_tutor.traces.trace import Trace


def span(number: int, kind: str, name: str, times: tuple[float, float], **more: Any) -> Span:
    return Span(number, kind, name, *times, device="sim:0", **more)


CALL = span(0, "call", "launch a", (0, 1))
A = span(1, "kernel", "a", (1, 3), stream=1)
B = span(2, "kernel", "b", (3, 5), stream=2, after=(1,))
JOB = span(3, "work", "job", (2, 4))
WAIT = span(4, "wait", "synchronize", (4, 5))
RUN = Trace([CALL, A, B, JOB, WAIT])

APART = Trace([A, span(2, "kernel", "b", (3, 5), stream=2)])
LATE = span(3, "work", "job", (5, 7))
REJECTED: list[tuple[Callable[[], None], str, tuple[Span, ...]]] = [
    (lambda: schedule.lazy(RUN), r"`launch a` came first\), and the host waited 1 time", (CALL, WAIT)),
    (lambda: schedule.lazy(Trace([A])), "already ran something", (A,)),
    (lambda: schedule.launches(RUN, "a", 2), "`a` ran 1 time, and should run 2 times", (A,)),
    (lambda: schedule.one_stream(RUN), "`b` ran on stream 2, and `a` on stream 1", (A, B)),
    (lambda: schedule.on_stream(RUN, "a", 2, "two"), "stream 1 of the picture, which isn't `two`", (A,)),
    (lambda: schedule.ordered(APART, "a", "b"),
     r"nothing makes `b` \(stream 2\) wait for `a` \(stream 1\)", (A, APART.spans[1])),
    (lambda: schedule.ordered(APART, "a", "c"), r"`c` never happened\. This did: `a`, `b`", ()),
    (lambda: schedule.overlapping(Trace([A, B, LATE]), "job", "wait later"),
     "the device did nothing during `job`: wait later", (LATE, B)),
    (lambda: schedule.waits(RUN, 0, "why"),
     "the host waited 1 time, and shouldn't wait at all: why", (WAIT,)),
    (lambda: schedule.side_by_side(APART, "start both"),
     "no two operations were at work at the same time: start both", ()),
]  # fmt: skip


@pytest.mark.parametrize(("check", "cause", "edge"), REJECTED)
def test_what_is_wrong_is_named_and_marked(
    check: Callable[[], None], cause: str, edge: tuple[Span, ...]
) -> None:
    with pytest.raises(Rejected, match=cause) as no:
        check()
    assert no.value.edge == edge


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_an_order_that_nobody_needs_is_found(names: tuple[str, str]) -> None:
    schedule.unordered(APART, *names)
    with pytest.raises(Rejected, match=r"`b` \(stream 2\) is made to wait for `a`") as no:
        schedule.unordered(RUN, *names)
    assert no.value.edge == (A, B)


def test_a_rejection_carries_its_case_and_both_timelines() -> None:
    with pytest.raises(Rejected) as no, case("n=1"), compared(RUN, Trace()):
        schedule.waits(RUN, 0, "why")
    assert no.value.cause.startswith("with n=1, the host waited")
    assert no.value.got is RUN
    assert no.value.expected == Trace()


def test_words_call_a_stream_as_the_picture_does() -> None:
    """A device counts all streams that were ever made; lanes are numbered by first use."""
    one, other = (span(i, "kernel", "ab"[i], (i, i + 1), stream=14 - i) for i in (0, 1))
    trace = Trace([one, other])
    lanes = {bar.span.id: bar.lane.name for bar in trace.plot().panels[0].layout.bars[:2]}
    with pytest.raises(Rejected) as no:
        schedule.one_stream(trace)
    assert f"`b` ran on {lanes[1]}, and `a` on {lanes[0]}" in str(no.value)
    assert "kernel, stream 1 (number 14 of sim:0)" in trace.plot().svg()
