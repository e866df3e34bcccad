"""Ranges as a profiler would be told of them, and in a trace."""

import asyncio

import asyncgpu_tutor as agt
from asyncgpu_course.recorded_ranges import RangeLog, watched
from asyncgpu_tutor import ranges
from asyncgpu_tutor.types import Device


def test_ranges_are_in_the_trace_with_their_times_and_nothing_is_marked_afterwards(
    sim: Device,
) -> None:
    was_on = ranges.enabled()
    agt.work(50, "before")
    with watched() as trace:
        agt.work(10, "first")
        with ranges.across("outer"), ranges.span("inner"):
            agt.work(30, "second")
    assert ranges.enabled() is was_on
    found = [(s.name, s.start, s.end) for s in trace if s.kind == "range"]
    assert sorted(found) == [("inner", 10, 40), ("outer", 10, 40)]
    assert len({span.id for span in trace}) == len(trace)


def test_operations_mark_themselves(sim: Device) -> None:
    with watched() as trace:
        agt.ones(4).named("mine").sync()
    assert "mine" in [span.name for span in trace if span.kind == "range"]


def test_pushed_ranges_of_two_tasks_are_mixed_up_and_numbered_ones_are_not(sim: Device) -> None:
    async def task(kind: object, name: str, us: float) -> None:
        with kind(name):
            await agt.sleep(us)

    async def both(kind: object) -> None:
        await asyncio.gather(task(kind, "short", 10), task(kind, "long", 500))

    for kind, mixed in [(ranges.span, True), (ranges.across, False)]:
        log = RangeLog()
        with watched(log):
            asyncio.run(both(kind))
        length = {one.name: one.end - one.start for one in log.closed}
        assert any(one.mixed for one in log.closed) is mixed
        assert (length["short"] > length["long"]) is mixed
        assert log.open == []


def test_a_trace_has_only_the_ranges_of_its_own_block(sim: Device) -> None:
    log = RangeLog()
    for name in ("first", "second"):
        with watched(log) as trace, ranges.span(name):
            agt.work(10, "task")
        assert [span.name for span in trace if span.kind == "range"] == [name]
    with watched(log):
        left = ranges.start("left open")
    agt.work(10, "between")
    with watched(log) as trace:
        ranges.end(left)
    assert [span.name for span in trace if span.kind == "range"] == []
    assert len(log.closed) == 3


def test_what_is_left_open_is_named(sim: Device) -> None:
    log = RangeLog()
    with ranges.into(log):
        ranges.start("forgotten")
    assert log.open == ["forgotten"]
