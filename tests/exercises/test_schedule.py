"""Each check of a schedule accepts what is right, and names and marks what is not."""

from __future__ import annotations

import pytest

from asyncgpu_tutor.exercises import Rejected
from asyncgpu_tutor.exercises.checks.schedule import (
    launches,
    lazy,
    on_stream,
    one_stream,
    ordered,
    overlapping,
    unordered,
    waits,
)
from asyncgpu_tutor.exercises.exercise import case, compared
from asyncgpu_tutor.traces.spans import Span
from asyncgpu_tutor.traces.trace import Trace


def span(
    number: int,
    kind: str,
    name: str,
    times: tuple[float, float],
    stream: int | None = None,
    after: tuple[int, ...] = (),
) -> Span:
    return Span(number, kind, name, *times, device="sim:0", stream=stream, after=after)


CALL = span(0, "call", "launch a", (0, 1))
A = span(1, "kernel", "a", (1, 3), stream=1)
B = span(2, "kernel", "b", (3, 5), stream=2, after=(1,))
JOB = span(3, "work", "job", (2, 4))
WAIT = span(4, "wait", "synchronize", (4, 5))
RUN = Trace([CALL, A, B, JOB, WAIT])


def test_what_is_right_is_accepted() -> None:
    lazy(Trace())
    lazy(Trace([JOB]))
    launches(RUN, "a", 1)
    launches(RUN, "c", 0)
    one_stream(Trace([CALL, A, WAIT]))
    one_stream(Trace([CALL, WAIT]))
    ordered(RUN, "a", "b")
    overlapping(RUN, "job", "why")
    waits(RUN, 1, "why")


def test_building_must_not_run() -> None:
    with pytest.raises(
        Rejected, match=r"`launch a` came first\), and the host waited 1 time"
    ) as no:
        lazy(RUN)
    assert no.value.edge == (WAIT,)
    with pytest.raises(Rejected, match="already ran something") as no:
        lazy(Trace([A]))
    assert no.value.edge == (A,)


def test_a_number_of_launches_is_exact() -> None:
    with pytest.raises(Rejected, match="`a` ran 1 time, and 2 times is right") as no:
        launches(RUN, "a", 2)
    assert no.value.edge == (A,)


def test_a_chain_is_on_one_stream() -> None:
    with pytest.raises(Rejected, match="`b` ran on stream 2, and `a` on stream 1") as no:
        one_stream(RUN)
    assert no.value.edge == (A, B)


def test_work_is_on_the_stream_that_it_belongs_on() -> None:
    on_stream(RUN, "a", 1)
    with pytest.raises(Rejected, match="`a` ran on stream 1, and belongs on stream 2") as no:
        on_stream(RUN, "a", 2)
    assert no.value.edge == (A,)


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_an_order_that_nobody_needs_is_found(names: tuple[str, str]) -> None:
    unordered(Trace([A, span(2, "kernel", "b", (3, 5), stream=2)]), *names)
    with pytest.raises(Rejected, match=r"`b` \(stream 2\) is made to wait for `a`") as no:
        unordered(RUN, *names)
    assert no.value.edge == (A, B)


def test_an_order_by_the_clock_alone_is_luck() -> None:
    unordered = Trace([A, span(2, "kernel", "b", (3, 5), stream=2)])

    with pytest.raises(
        Rejected, match=r"nothing makes `b` \(stream 2\) wait for `a` \(stream 1\)"
    ) as no:
        ordered(unordered, "a", "b")
    assert [s.name for s in no.value.edge] == ["a", "b"]
    with pytest.raises(Rejected, match=r"`c` did not happen\. What did: `a`, `b`"):
        ordered(unordered, "a", "c")


def test_an_overlap_is_one_with_the_device() -> None:
    late = Trace([A, B, span(3, "work", "job", (5, 7))])

    with pytest.raises(Rejected, match="the device did nothing during `job`: wait later") as no:
        overlapping(late, "job", "wait later")
    assert [s.name for s in no.value.edge] == ["job", "b"]


def test_a_hidden_wait_is_found() -> None:
    with pytest.raises(Rejected, match="the host waited 1 time, and 0 times is enough: why") as no:
        waits(RUN, 0, "why")
    assert no.value.edge == (WAIT,)


def test_a_rejection_carries_its_case_and_both_timelines() -> None:
    with pytest.raises(Rejected) as no, case("n=1"), compared(RUN, Trace()):
        waits(RUN, 0, "why")
    assert no.value.cause.startswith("with n=1, the host waited")
    assert no.value.got is RUN
    assert no.value.expected == Trace()
