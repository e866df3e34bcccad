"""The event engine by itself: queues, sharing, copy engines, errors."""

from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simgpu.engine import Engine
from simgpu.queues import Command, EngineEvent, Queue, Resource, ResourceDemand
from simgpu.spec import NVLINK

Spans = dict[str, tuple[float, float]]
Job = tuple[int, float, float, Resource, float, float]


class Bench:
    """An engine, and a note of when what ran."""

    def __init__(self) -> None:
        self.engine = Engine()
        self.spans: Spans = {}
        self.waited: dict[str, float] = {}

    def run(
        self, queue: Queue, name: str, us: float, demand: float = 0.0, resource: Resource = "compute",
        ready: float = 0.0, drain: float = 0.0, **more: bool,
    ) -> None:  # fmt: skip
        def end(start: float, stop: float, waited: float) -> None:
            self.spans[name] = (start, stop)
            if waited:
                self.waited[name] = waited

        work = ResourceDemand(us, demand, demand, drain, **more)
        self.engine.submit(queue, Command(resource, ready, begin=lambda: work, end=end))

    def event(self, queue: Queue) -> EngineEvent:
        event = EngineEvent()
        self.engine.submit(queue, Command("none", 0.0, records=event))
        return event

    def wait(self, queue: Queue, event: EngineEvent) -> None:
        self.engine.submit(queue, Command("none", 0.0, awaits=event))


# Commands: queue, name, us and more of `Bench.run`; when each runs, and how long it waits for room.
SCHEDULES: dict[str, tuple[list[tuple[Any, ...]], Spans, dict[str, float]]] = {
    "one queue is in order": ([(0, n, 2.0, 0.1) for n in "abc"], {"a": (0, 2), "b": (2, 4), "c": (4, 6)}, {}),
    "small kernels run side by side": (
        [(0, "a", 5.0, 0.25), (1, "b", 5.0, 0.75)], {"a": (0, 5), "b": (0, 5)}, {}),
    "what fills the device leaves nothing": (
        [(0, "a", 5.0, 1.0), (1, "b", 5.0, 1.0)], {"a": (0, 5), "b": (5, 10)}, {"b": 5}),
    # The first has 2 us of work left when it has handed out its last block; both get half of the device then.
    "the next begins while the last blocks end": (
        [(0, "a", 10.0, 1.0, "compute", 0.0, 2.0), (1, "b", 10.0, 1.0, "compute", 0.0, 2.0)],
        {"a": (0, 12), "b": (8, 20)}, {"b": 8}),
    "a drain delays nobody by itself": ([(0, "a", 10.0, 1.0, "compute", 0.0, 4.0)], {"a": (0, 10)}, {}),
    # The small one would fit, but the block scheduler has not come to it.
    "places are handed out in order": (
        [(0, "a", 4.0, 0.75), (1, "b", 4.0, 0.5), (2, "c", 1.0, 0.1)],
        {"a": (0, 4), "b": (0, 6), "c": (4, 5)}, {"c": 4}),
    # It finds 0.25 of the device: half its demand.
    "a kernel gets what earlier ones leave": (
        [(0, "a", 10.0, 0.75), (1, "b", 10.0, 0.5)], {"a": (0, 10), "b": (0, 15)}, {}),
    # Blocks of `a` give way as they end. Those of `c` are the last, and have their places.
    "what is urgent gets the next place": (
        [(0, "a", 10.0, 1.0, "compute", 0.0, 2.0), (1, "b", 4.0, 0.25, "compute", 1.0, 0.0, True),
         (0, "c", 9.0, 1.0), (1, "d", 1.0, 0.25, "compute", 12.0, 0.0, True)],
        {"a": (0, 11), "b": (1, 5), "c": (11, 20), "d": (20, 21)}, {"d": 8}),
    "one copy at a time in each direction": (
        [(0, "in", 3.0, 0.0, "h2d"), (1, "also in", 3.0, 0.0, "h2d"), (2, "out", 3.0, 0.0, "d2h")],
        {"in": (0, 3), "also in": (3, 6), "out": (0, 3)}, {}),
    "nothing starts before it is enqueued": (
        [(0, "a", 1.0, 0.0, "compute", 7.0), (0, "b", 1.0, 0.0, "compute", 7.5)],
        {"a": (7, 8), "b": (8, 9)}, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEDULES)
def test_from_when_to_when_each_runs(name: str) -> None:
    jobs, spans, waited = SCHEDULES[name]
    bench = Bench()
    queues = [bench.engine.queue(0) for _ in range(4)]
    for queue, job, us, *more in jobs:
        options = dict(zip(("demand", "resource", "ready", "drain", "urgent"), more, strict=False))
        bench.run(queues[queue], job, us, **options)
    bench.engine.run_dry()
    assert {job: pytest.approx(when) for job, when in bench.spans.items()} == spans
    assert bench.waited == waited


def test_devices_share_nothing() -> None:
    bench = Bench()
    for number in range(2):
        bench.run(bench.engine.queue(number), f"kernel {number}", 4.0, 1.0)
        bench.run(bench.engine.queue(number), f"copy {number}", 4.0, resource="h2d")
    bench.engine.run_dry()
    assert set(bench.spans.values()) == {(0.0, 4.0)}


# Whose instructions take longer gets more: three quarters of it against one, and all of it in the end.
@pytest.mark.parametrize(("turns", "expected"), [((1.0, 1.0), [6, 6]), ((3.0, 1.0), [4, 6])])
def test_kernels_share_throughput(turns: tuple[float, float], expected: list[float]) -> None:
    engine, ends = Engine(), list[float]()
    for turn in turns:
        work = ResourceDemand(3.0, places=0.25, demand=1.0, turn=turn)
        note = lambda start, end, waited: ends.append(end)  # noqa: E731
        engine.submit(engine.queue(0), Command("compute", 0.0, begin=lambda w=work: w, end=note))
    engine.run_dry()
    assert ends == expected


def test_waiting_for_what_never_comes_is_noticed() -> None:
    bench = Bench()
    queue = bench.engine.queue(0)
    bench.wait(queue, EngineEvent())
    assert not bench.engine.run_to(bench.event(queue))


@pytest.mark.parametrize(
    ("first", "ready", "begin", "device"),
    [("compute", 0, 11, 0), ("h2d", 0, 14, 0), ("compute", 30, 30, 0),
     ("compute", 0, 10 + NVLINK.event_us, 1), ("compute", 30, 30, 1)],
)  # fmt: skip
def test_an_event_is_no_short_cut(first: Resource, ready: float, begin: float, device: int) -> None:
    """In the recording of chapter 04 a fill starts 0.86 us after a kernel of another stream, as on one.

    The last command is enqueued when the first has long ended. Another GPU hears of an event later.
    """
    bench = Bench()
    one, two = (bench.engine.queue(number, pause=1.0, switch=4.0) for number in (0, device))
    bench.run(one, "first", 10.0, 0.1, first)
    bench.wait(two, bench.event(one))
    bench.run(two, "second", 10.0, 0.1, ready=ready)
    bench.engine.run_dry()
    assert bench.spans == {"first": (0, 10), "second": (begin, begin + 10)}


JOB = st.tuples(
    st.integers(0, 3),  # queue
    st.floats(0.0, 50.0),
    st.just(0.0) | st.floats(1e-6, 1.0),  # no GPU has places for a million blocks
    st.sampled_from(["compute", "h2d", "d2h"]),
    st.floats(0.0, 20.0),  # since the last one was enqueued
    st.floats(0.0, 1.0),  # the part of it that is left when its last block has a place
)


def submitted(jobs: list[Job]) -> tuple[Bench, list[float]]:
    """An engine that has got all jobs, and when each was enqueued."""
    bench = Bench()
    queues = [bench.engine.queue(0) for _ in range(4)]
    ready = list(accumulate(later for *_, later, _ in jobs))
    for number, (queue, us, demand, resource, _, drain) in enumerate(jobs):
        share = demand if resource == "compute" else 0.0
        name = str(number)
        bench.run(queues[queue], name, us, share, resource, ready[number], drain=drain * us)
    return bench, ready


@given(jobs=st.lists(JOB, max_size=25))
def test_whatever_is_submitted(jobs: list[Job]) -> None:
    bench, ready = submitted(jobs)
    bench.engine.run_dry()
    spans = [bench.spans[str(number)] for number in range(len(jobs))]  # everything ran
    for (start, end), job, since in zip(spans, jobs, ready, strict=True):
        assert start >= since
        assert end - start >= job[1] - 1e-6  # never faster than alone
    for queue in range(4):
        mine = [span for span, job in zip(spans, jobs, strict=True) if job[0] == queue]
        assert all(end <= start for (_, end), (start, _) in pairwise(mine))
    for engine in ("h2d", "d2h"):
        copies = sorted(span for span, job in zip(spans, jobs, strict=True) if job[3] == engine)
        assert all(end <= start for (_, end), (start, _) in pairwise(copies))


@given(st.lists(JOB, max_size=15))
def test_looking_more_often_changes_nothing(jobs: list[Job]) -> None:
    (once, _), (often, _) = submitted(jobs), submitted(jobs)
    for turn in range(1, 20):
        often.engine.run_until(3.0 * turn)
    for bench in (once, often):
        bench.engine.run_dry()
    assert once.spans.keys() == often.spans.keys()
    for name, (start, end) in once.spans.items():
        assert often.spans[name] == (pytest.approx(start, abs=1e-6), pytest.approx(end, abs=1e-6))
