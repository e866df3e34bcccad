"""Find the call of an event that is wrong, where two streams race."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.exercise import Rejected
from asyncgpu_tutor.exercises.sandbox import Observed, observe

# What the simulated device says of work that overtakes a write. If the calls are the wrong way round, so that
# the reading comes first, events are not what is wrong.
RACE = re.compile(
    r"(?P<facts>race on .*: '(?P<early>\w+)' of .* \(#(?P<op>\d+)\) on stream (?P<one>\d+) writes it, "
    r"'(?P<late>\w+)' of .* on stream (?P<two>\d+) \w+ it, and nothing orders the two)"
)


def observe_events(answer: Callable[..., Any], *args: Any) -> Observed:
    """As `observe`; where streams of the answer race, the cause says which call of an event is wrong."""
    try:
        return observe(answer, *args)
    except Rejected as rejected:
        race = RACE.match(rejected.cause)
        if race is not None and rejected.got is not None:
            rejected.cause = f"{race['facts']}. {_wrong_call(race, rejected.got)}"
        raise


def _wrong_call(race: re.Match[str], trace: agt.Trace) -> str:
    """The device refuses the late work, so all calls in the trace were made before it."""
    one, two = int(race["one"]), int(race["two"])
    written = max((s.id for s in trace.device_spans if s.op == int(race["op"])), default=0)
    waits = trace.find("wait_event")
    if any((s.detail["stream"], s.detail["event_of"]) == (two, one) for s in waits):
        return (
            f"Stream {two} does wait for an event of stream {one}, but for one that was recorded before "
            f"`{race['early']}` was put there: record it behind that"
        )
    behind = [s for s in waits if s.id > written]
    if any((s.detail["stream"], s.detail["event_of"]) == (one, two) for s in behind):
        return f"Here stream {one} waits for stream {two}, and the other way round is right"
    return (
        f"When `{race['late']}` was put on stream {two}, no `wait_event` had made that stream wait for "
        f"stream {one}: it needs such a wait, and needs it before that work"
    )
