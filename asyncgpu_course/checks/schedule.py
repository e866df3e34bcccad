"""Checks of a schedule. Each raises `Rejected` with the cause and the spans to be marked.

None of them looks at how long anything took, but for `below`, which is for challenges.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, cast

import asyncgpu_tutor as agt
from asyncgpu_course.checks.device import ASIDE, GOES_ON
from asyncgpu_course.checks.rejection import Rejected, must
from asyncgpu_course.checks.sandbox import Observed, observe
from asyncgpu_course.internals import count, happens_before, lane_of, overlap_between

ASIDE_WHY = "another thread ran it, which begins when it likes: call it yourself, in between"
COMPLAINTS = {0: "shouldn't {} at all", 1: "should {} once"}
# What the simulated device says of work that overtakes a write. If the calls are the wrong way round, so that
# the reading comes first, events are not what is wrong.
RACE = re.compile(
    r"(?P<facts>race on .*: '(?P<early>\w+)' of .* \(#(?P<op>\d+)\) on stream (?P<one>\d+) writes it, "
    r"'(?P<late>\w+)' of .* on stream (?P<two>\d+) \w+ it, and nothing orders the two)"
)


def lazy(building: agt.Trace) -> None:
    """Building the operation has enqueued nothing, and kept nobody waiting."""
    ran = [span for span in building if span.kind in ("call", "wait") or span.on_device]
    waits = _waits(ran)
    also = f", and the host waited {count(len(waits), 'time')}" if waits else ""
    first = ran[0].name if ran else ""
    cause = f"building the operation already ran something (`{first}` came first){also}: only describe it, "
    must(not ran, cause + "and leave it to the caller to run it", *ran[:1], *waits[:1])


def launches(trace: agt.Trace, name: str, times: int) -> None:
    """Exactly `times` pieces of work of the device, or of the host, have this name."""
    found = [span for span in trace.find(name) if span.on_device or span.kind == "work"]
    cause = COMPLAINTS.get(times, f"should {{}} {count(times, 'time')}").format("run")
    must(len(found) == times, f"`{name}` ran {count(len(found), 'time')}, and {cause}", *found)


def each_once(trace: agt.Trace, *names: str) -> None:
    """`launches`, once for each of these names."""
    for name in names:
        launches(trace, name, 1)


def driver_calls(trace: agt.Trace, what: str) -> int:
    """How many of the host's calls of the driver have names that begin so, such as ``"launch graph "``."""
    return sum(span.kind == "call" and span.name.startswith(what) for span in trace)


def allocations(trace: agt.Trace, sizes: Sequence[int], why: str) -> None:
    """No more arrays were made on the device than of these sizes, in bytes, and no more bytes in all."""
    made = [cast(int, span.detail["bytes"]) for span in trace if span.name.startswith("malloc ")]
    cause = f"{count(len(made), 'array')} were made on the device, and {len(sizes)} are enough: "
    must(len(made) <= len(sizes), cause + why)
    cause = f"the new arrays take {sum(made):,} bytes, and {sum(sizes):,} are enough: "
    must(sum(made) <= sum(sizes), cause + why)


def captures(trace: agt.Trace, most: int, why: str) -> None:
    """Operations were captured `most` times at most."""
    found = driver_calls(trace, "instantiate ")
    cause = f"an operation was captured {count(found, 'time')}, and {count(most, 'time')} is enough: {why}"
    must(found <= most, cause)


def one_stream(trace: agt.Trace) -> None:
    """All device work was on one stream."""
    spans = trace.device_spans
    for span in spans:
        first = spans[0]
        cause = f"`{span.name}` ran on {lane_of(trace, span)}, and `{first.name}` on "
        cause += f"{lane_of(trace, first)}: one chain belongs on one stream"
        must(span.stream == first.stream, cause, first, span)


def on_stream(trace: agt.Trace, name: str, stream: int, called: str) -> None:
    """All spans of this name were on the stream of this number, which the answer knows by a name."""
    for span in (_first(trace, name), *trace.find(name)):
        lane = lane_of(trace, span)
        cause = f"`{name}` ran on {lane} of the picture, which isn't `{called}`, where it belongs"
        must(span.stream == stream, cause, span)


def only_on(trace: agt.Trace, *given: agt.types.Stream) -> None:
    """All work of the device was on the streams that the answer was given."""
    numbers = {stream.number for stream in given}
    for span in trace.device_spans:
        cause = f"work was put on {lane_of(trace, span)}, which isn't one of the streams that you were given"
        must(span.stream in numbers, cause, span)


def ordered(trace: agt.Trace, *names: str) -> None:
    """Each span is bound to end before the next starts, whatever the device is busy with."""
    for early, late in pairwise(names):
        before, after = _first(trace, early), _first(trace, late)
        if not happens_before(trace, before, after):
            lane, other = lane_of(trace, after), lane_of(trace, before)
            cause = f"nothing makes `{late}` ({lane}) wait for `{early}` ({other})"
            if lane == other:
                cause = f"`{late}` is ahead of `{early}` on {lane}, and has to come after it"
            if happens_before(trace, before, after, host=True):
                cause = f"`{late}` comes after `{early}` because the host waited in between (`synchronize`, "
                cause += f"or a `sync`), and it should go on: let {lane} wait for an event"
            raise Rejected(cause, before, after)


def unordered(trace: agt.Trace, one: str, other: str) -> None:
    """Neither of the two spans is made to wait for the other."""
    for early, late in ((one, other), (other, one)):
        before, after = _first(trace, early), _first(trace, late)
        cause = f"`{late}` ({lane_of(trace, after)}) is made to wait for `{early}` "
        cause += f"({lane_of(trace, before)}), and needn't"
        must(not happens_before(trace, before, after), cause, before, after)


def overlapping(trace: agt.Trace, name: str, why: str) -> None:
    """The device was at work during the spans of this name; `why` says what they should not wait for."""
    mine = _first(trace, name)
    why = ASIDE_WHY if ASIDE in mine.detail else why
    if not overlap_between(trace, name, trace.device_spans):
        neighbours = sorted(trace.device_spans, key=lambda s: abs(s.start - mine.end))
        raise Rejected(f"the device did nothing during `{name}`: {why}", mine, *neighbours[:1])


def side_by_side(trace: agt.Trace, cure: str) -> None:
    """Operations with copies to and from the device were at work at the same time."""
    edge = *trace.find("d2h")[:1], *trace.find("h2d")[1:2]
    cause = f"no two operations were at work at the same time: {cure}"
    must(trace.metrics().overlap > 0, cause, *edge)


def results(trace: agt.Trace, sizes: Sequence[int]) -> list[agt.types.Span]:
    """The copy of each result to the host, known by its size, because an answer may rename operations."""
    found: list[agt.types.Span] = []
    for i, size in enumerate(sizes):
        down = [span for span in trace.device_spans if span.kind == "d2h"]
        copies = [span for span in down if span.detail["bytes"] == 4 * size]
        must(bool(copies), f"operation {i} of {len(sizes)} did not run")
        found.append(copies[0])
    return found


def stretches(trace: agt.Trace, sizes: Sequence[int]) -> list[tuple[float, float]]:
    """For each operation, known by the size of its result, when it was submitted and when it was done."""
    begun = {span.id: span.start for span in trace if span.kind == "call"}
    copies = results(trace, sizes)
    return [(max(begun[i] for i in copy.after if i in begun), copy.end) for copy in copies]


def most_in_flight(trace: agt.Trace, sizes: Sequence[int]) -> int:
    """The most of these operations that were under way at one time."""
    times = stretches(trace, sizes)
    return max(sum(a <= start < b for a, b in times) for start, _ in times)


def all_in_flight(trace: agt.Trace, sizes: Sequence[int], most: int) -> None:
    """At one time there were so many of these operations under way."""
    found = most_in_flight(trace, sizes)
    cause = f"no more than {found} of {len(sizes)} operations were in flight at a time: start all of them "
    done = results(trace, sizes)[found - 1]
    begun = [span for span in trace.device_spans if span.start >= done.end]
    must(found >= most, cause + "before you wait for the first", done, *begun[:1])


def below(goal: float, trace: agt.Trace, hint: str = "") -> float:
    """The score of an answer to a challenge: the makespan, in us, which has to be below `goal`."""
    took = trace.metrics().makespan
    shown = f"{took:.0f}" if took > goal + 1 else f"{took:.2f}"
    cause = f"it's right, but it takes {shown} µs: get below {goal:.0f} µs"
    must(took < goal, f"{cause}. {hint}" if hint else cause)
    return took


def waits(trace: agt.Trace, most: int, why: str) -> None:
    """The host waited `most` times at most."""
    found = [span for span in _waits(trace) if ASIDE not in span.detail]
    cause = COMPLAINTS.get(most, f"should {{}} {count(most, 'time')}").format("wait")
    waited = f"the host waited {count(len(found), 'time')}, and {cause}"
    must(len(found) <= most, f"{waited}: {why}", *found[: most + 1])


def _waits(spans: Iterable[agt.types.Span]) -> list[agt.types.Span]:
    """The waits of the host, each call once."""
    return [span for span in spans if span.kind == "wait" and GOES_ON not in span.detail]


def went_on(trace: agt.Trace, returned: float, why: str, name: str) -> None:
    """Python came back before `name` was done: it did not wait in a loop of its own, either."""
    last = _first(trace, name)
    must(returned < last.end, f"Python came back only when `{name}` was done: {why}", last)


def is_done(run: Observed, name: str, cure: str = "") -> None:
    """The device had done all of its work when the answer of this name returned."""
    last = max(run.trace.device_spans, key=lambda span: span.end)
    must(last.end <= run.returned, f"`{name}` returned before the device was done{cure}", last)


def never_blocks(trace: agt.Trace) -> None:
    """The host did not wait at all, because it has an event loop to run."""
    waits(trace, 0, "`sync` or `synchronize` blocks the event loop, and with it every other task")


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


def _first(trace: agt.Trace, name: str) -> agt.types.Span:
    found = trace.find(name)
    if not found:
        names = ", ".join(f"`{n}`" for n in dict.fromkeys(s.name for s in trace)) or "nothing"
        raise Rejected(f"`{name}` never happened. This did: {names}")
    return found[0]
