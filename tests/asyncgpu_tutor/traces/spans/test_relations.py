"""How spans lie to each other."""

from dataclasses import replace

import pytest

from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces.spans import Span, SpanLog
from asyncgpu_tutor.traces.spans.relations import happens_before, overlap_between, runs_before
from asyncgpu_tutor.traces.trace import Trace


def kernel(number: int, stream: int, start: float, end: float, name: str = "k") -> Span:
    return Span(number, "kernel", name, start, end, "sim:0", stream)


def test_overlap_is_the_time_that_both_run() -> None:
    a, b = kernel(0, 1, 0, 10, "a"), kernel(1, 2, 6, 20, "b")
    trace = Trace([a, b, kernel(2, 1, 12, 14, "a")])
    assert overlap_between(trace, a, b) == 4
    assert overlap_between(trace, "a", "b") == 4 + 2
    with pytest.raises(UsageError, match=r"'aa'.*'a', 'b'"):
        overlap_between(trace, "aa", "b")


def test_an_empty_side_has_no_order() -> None:
    with pytest.raises(UsageError, match="one side is empty"):
        runs_before(Trace(), [], [kernel(0, 1, 0, 1)])


@pytest.mark.parametrize("join", [False, True])
def test_a_stream_is_an_order_and_an_event_is_and_luck_is_not(join: bool) -> None:
    """Kernels a and b on a stream each, and c behind a; with a join, also behind b."""
    log = SpanLog("sim:0")
    a = log.finish(log.draft("kernel", "a", 1), 0, 10)
    b = log.finish(log.draft("kernel", "b", 2), 0, 5)
    if join:
        log.wait(1, log.heads(2))
    c = log.finish(log.draft("kernel", "c", 1), 10, 20)
    trace = Trace(log.spans)
    assert happens_before(trace, a, c)
    assert not happens_before(trace, c, a)
    assert not happens_before(trace, a, a)
    assert runs_before(trace, b, c)
    assert happens_before(trace, b, c) == join
    with pytest.raises(UsageError, match=r"'c' \(77\) is not of this trace"):
        happens_before(trace, a, replace(c, id=77))


def test_the_host_is_an_order_where_it_is_asked_for() -> None:
    log = SpanLog("sim:0")
    a = log.finish(log.draft("kernel", "a", 1), 0, 10)
    log.finish(log.draft("wait", "sync", None, waits_for=(a.id,)), 0, 11)
    call = log.finish(log.draft("call", "launch", None), 11, 15)
    b = log.finish(log.draft("kernel", "b", 2, call=call.id), 15, 20)
    trace = Trace(log.spans)
    assert not happens_before(trace, a, b)
    assert happens_before(trace, a, b, host=True)
