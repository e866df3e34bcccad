"""Idle time by cause: real programs, and the smallest traces that settle it."""

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor import Trace
from asyncgpu_tutor.traces.analysis.idle import Evidence, idle_of_streams
from asyncgpu_tutor.types import Span
from tests.asyncgpu_tutor.traces.invariants import hold
from tests.tools import tool

from .programs import call, recorded

_programs = tool("course_programs")
RUNS = _programs.RUNS

NAMES = sorted(name for name in RUNS if "big" not in name)


def work(number: int, kind: str, start: float, end: float, stream: int, *after: int) -> Span:
    return Span(number, kind, kind, start, end, "cuda:0", stream, after=after)


ASKED = [call(1, 0, 1), work(2, "kernel", 1, 40, 1, 1), call(3, 1, 2)]
# For the last span of each, why its stream stood still before it: cause, from, to, and who is to blame.
PAUSES = [
    ([work(1, "kernel", 0, 1, 1), call(2, 0, 4), work(3, "kernel", 6, 9, 1, 1, 2)],
     [("host late", 1, 4, 2), ("start-up", 4, 6, None)]),
    # What it needs on another stream comes before the host.
    ([work(1, "kernel", 0, 5, 1), call(2, 3, 8), work(3, "kernel", 8, 9, 2, 1, 2)],
     [("dependency", 0, 5, 1), ("host late", 5, 8, 2)]),
    ([call(1, 0, 1), work(2, "h2d", 1, 9, 1, 1), call(3, 1, 2), work(4, "h2d", 9, 12, 2, 3)],
     [("host late", 1, 2, 3), ("engine busy", 2, 9, 2)]),
    # The other direction is another engine.
    ([call(1, 0, 1), work(2, "d2h", 1, 9, 1, 1), call(3, 1, 2), work(4, "h2d", 9, 12, 2, 3)],
     [("host late", 1, 2, 3), ("start-up", 2, 9, None)]),
    # A kernel waits for room, but not where a launch takes that long anyway.
    ([*ASKED, work(4, "kernel", 38, 50, 2, 3)], [("host late", 1, 2, 3), ("occupancy", 2, 38, None)]),
    ([*ASKED, work(4, "kernel", 8, 50, 2, 3)], [("host late", 1, 2, 3), ("start-up", 2, 8, None)]),
]  # fmt: skip


@pytest.mark.parametrize(("spans", "causes"), PAUSES)
def test_why_a_stream_stood_still(spans: list[Span], causes: list[tuple[object, ...]]) -> None:
    found = [i for i in idle_of_streams(Evidence(Trace(spans))) if i.span is spans[-1]]
    assert [(i.cause, i.start, i.end, i.blocker and i.blocker.id) for i in found] == causes


@pytest.mark.parametrize("name", NAMES)
def test_every_pause_has_a_cause(name: str) -> None:
    hold(recorded(name))


def test_the_report_says_it_in_words_and_in_a_picture() -> None:
    analysis = agt.analyse(recorded("08_pageable_copy"))
    text = analysis.table()
    assert "host late" in text
    assert "What to do: Pin host arrays once" in text
    picture = analysis.plot()
    assert picture.words.startswith(analysis.findings[0].sentence)
    assert picture.panels[0].highlight == {s.id for s in analysis.metrics.critical_spans}
