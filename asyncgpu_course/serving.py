"""People who talk to a language model, a room with seats for them, and a clock to try schedulers on.

The problem: what a scheduler does to two hundred people shows only with two hundred people, and a simulated
GPU that computes each of their tokens takes minutes for that.

The idea: what a step computes doesn't matter to the scheduler, only when it's over and who has said the last
word. So the steps of `clock_room` compute nothing. They take as long as steps of the model took on an H200,
and their tokens are numbers that tell whose they are. A `SeatRoom` doesn't know which steps it has, so the
same scheduler runs here and on a device.

Why not let everybody use the clock? It knows nothing of races, of memory, or of texts. Only the device does.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from string import ascii_uppercase
from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.shown import shown
from asyncgpu_tutor.data import LanguageModel
from asyncgpu_tutor.data.language import word
from asyncgpu_tutor.language import Slots

_RECORDED = Path(__file__).with_name("serving_h200.json")
_OF_LAYERS = {"gain_1", "qkv", "out", "gain_2", "wide", "narrow"}
_Row = Mapping[str, Any]
_Curves = Mapping[str, Sequence[float]]
_MOST_UNDER_WAY = 2  # steps, since a room has as many


@dataclass(eq=False)
class Visitor:
    """Somebody who wants a text to be continued."""

    number: int  # also the seed of what is drawn
    prompt: Sequence[int]  # tokens that are given, at least one
    last: int  # the place of the last token of the text, and so the number of steps that it takes
    at: float = 0.0  # when it comes, in us
    text: list[int] = field(default_factory=list[int])  # what has been heard of the answer
    first: float | None = None  # when its first token was heard
    end: float | None = None  # and its last
    gone: bool = False  # whoever asked doesn't listen any more
    leaves: int | None = None  # whoever asks is gone after so many tokens
    heard: int = 0

    @property
    def over(self) -> bool:
        """True when its last token has been heard."""
        return self.end is not None

    def hear(self, token: int, now: float) -> bool:
        """Take a token that a step gave for its seat; true if it's the last one.

        The first ones are of the prompt, and no news.
        """
        self.heard += 1
        if self.heard >= len(self.prompt):
            self.first = now if self.first is None else self.first
            self.text.append(word(token) if token < 0 else token)
        if token < 0:
            self.end = now
        elif len(self.text) == self.leaves:
            self.gone = True
        return token < 0


class SeatRoom:
    """Seats, as many as `count`, people who wait in line for them, and steps."""

    def __init__(
        self, steps: Sequence[RoomStep], count: int, visitors: Sequence[Visitor], clock: Any = None
    ) -> None:
        self.count = count
        # Slot, visitor, and the steps that it sat there, first and last. For pictures.
        self.sat: list[tuple[int, Visitor, int, int]] = []
        # For each step that was waited for, whose text it went on with, by their numbers, and the token.
        self.log: list[list[tuple[int, int]]] = []
        self.number = 0  # of steps
        self.launched: dict[int, int] = {}  # those for somebody, and how many of these were before
        self._steps = steps
        self._coming = deque(sorted(visitors, key=lambda visitor: visitor.at))
        self._clock = clock or agt.current_device()
        self._begun = self._clock.now()
        # Who has which slot since which step: now, and when each step that is under way was launched.
        self._seated: dict[int, tuple[Visitor, int]] = {}
        self._under_way = deque[tuple[int, dict[int, tuple[Visitor, int]]]]()

    @property
    def open(self) -> bool:
        """True while somebody waits, or will come."""
        return bool(self._coming)

    def now(self) -> float:
        """The time in us since the room was opened."""
        return self._clock.now() - self._begun

    def next(self) -> Visitor | None:
        """Whoever has waited longest and is still there, or None."""
        while self._coming and self._coming[0].at <= self.now():
            visitor = self._coming.popleft()
            if not visitor.gone:
                return visitor
        return None

    def seat(self, slot: int, visitor: Visitor) -> None:
        """Have somebody sit down in a slot in the next step; whoever sits there has to go."""
        if slot not in range(self.count):
            raise agt.UsageError(f"there are slots 0 to {self.count - 1}, and got {slot!r}")
        if slot in self._seated:
            self._left(slot)
        self._steps[self.number % len(self._steps)].seat(slot, visitor)
        self._seated[slot] = visitor, self.number

    def start(self) -> int:
        """Launch a step, and return its number. Where nobody sits, it only waits for somebody to come in."""
        if len(self._under_way) == _MOST_UNDER_WAY:
            cause = "two steps are under way, and there are no more: wait for the older one first"
            raise agt.UsageError(cause)
        if not self._seated and self._coming and self._coming[0].at > self.now():
            self._clock.work(self._coming[0].at - self.now(), "idle")
        else:
            self._steps[self.number % len(self._steps)].start()
            self.launched[self.number] = len(self.launched)
        self._under_way.append((self.number, {**self._seated}))
        self.number += 1
        return self.number - 1

    def wait(self, number: int) -> list[int]:
        """Wait for a step, and return its tokens, one for each seat. -1 - token is the last of a text."""
        if not self._under_way or number != self._under_way[0][0]:
            first = f"step {self._under_way[0][0]} comes first" if self._under_way else "none is"
            raise agt.UsageError(f"step {number} isn't the next that's under way: {first}")
        _, sat = self._under_way.popleft()
        step = self._steps[number % len(self._steps)]
        tokens = step.wait() if number in self.launched else [0] * self.count
        said: list[tuple[int, int]] = []
        for slot, (visitor, begun) in sat.items():
            place = number - begun + 1
            if len(visitor.prompt) <= place <= visitor.last:
                said.append((visitor.number, word(tokens[slot])))
            if tokens[slot] < 0 and self._seated.get(slot) == (visitor, begun):
                self._left(slot, number)
        self.log.append(said)
        return tokens

    def whole_step(self) -> list[int]:
        """A step from beginning to end: its tokens."""
        return self.wait(self.start())

    def _left(self, slot: int, number: int | None = None) -> None:
        visitor, begun = self._seated.pop(slot)
        self.sat.append((slot, visitor, begun, self.number - 1 if number is None else number))


# ------------------------------------------------------------------ on a device
class DeviceStep:
    """A step of a model as a graph, with pinned memory for what goes in and what comes out."""

    def __init__(self, seats: Slots, stream: Any, newcomers: Any, tokens: Any) -> None:
        self.seats, self.stream, self.newcomers, self.tokens = seats, stream, newcomers, tokens
        out = agt.d2h(seats.arrays["token"].borrow(), out=tokens)
        step = agt.zip(seats.admit(newcomers), seats.fused_step(), out)
        self.graph = step.named("step").graph_on(stream).launch()

    def seat(self, slot: int, visitor: Visitor) -> None:
        """Write somebody into its newcomers."""
        self.seats.seat(self.newcomers, slot, visitor.prompt, visitor.last, visitor.number)

    def start(self) -> None:
        """Enqueue it, and an event behind it."""
        self.graph.async_on(self.stream)
        self.over: Any = self.stream.record()

    def wait(self) -> list[int]:
        """Wait for its end; the tokens."""
        self.over.synchronize()
        self.newcomers[:] = 0
        return cast("list[int]", self.tokens.tolist())


# ------------------------------------------------------------------ on a clock
class RoomClock:
    """Virtual time of a host, and of a GPU that works on one step after the other."""

    def __init__(self) -> None:
        self.us = self.free_us = 0.0

    def now(self) -> float:
        """The host's time, in us."""
        return self.us

    def work(self, us: float, _: str = "") -> None:
        """Let time pass on the host."""
        self.us += us


class ClockStep:
    """A step that computes nothing, and takes its time. Its tokens tell who sat where, and at what place."""

    def __init__(
        self, clock: RoomClock, seats: dict[int, tuple[Visitor, int]], us: StepTimes
    ) -> None:
        self._clock, self._seats, self._us = clock, seats, us
        self._new: dict[int, Visitor] = {}
        self._tokens: list[int] = []
        self._over_us = 0.0

    def seat(self, slot: int, visitor: Visitor) -> None:
        """Have somebody sit down as it begins."""
        self._new[slot] = visitor

    def start(self) -> None:
        """Begin: who sits there is settled now, as nothing else can come before it on its stream."""
        self._clock.work(self._us.host)
        self._seats |= {slot: (visitor, 0) for slot, visitor in self._new.items()}
        self._new.clear()
        taken = sum(place < visitor.last for visitor, place in self._seats.values())
        took_us = self._us.gpu + self._us.seat * max(taken - 1, 0)
        self._clock.free_us = max(self._clock.free_us, self._clock.us) + took_us
        self._over_us = self._clock.free_us
        self._clock.work(self._us.beside)
        self._tokens = [0] * self._us.slots
        for slot, (visitor, place) in self._seats.items():
            now = min(place + 1, visitor.last)
            self._seats[slot] = visitor, now
            token = token_of(visitor, now)
            self._tokens[slot] = -1 - token if now == visitor.last else token

    def wait(self) -> list[int]:
        """Wait for its end, and do with its tokens what Python does."""
        self._clock.us = max(self._clock.us, self._over_us)
        self._clock.work(self._us.python)
        return self._tokens


RoomStep = DeviceStep | ClockStep


def token_of(visitor: Visitor, place: int) -> int:
    """What the clock's steps say at a place of a text: no two visitors are told the same."""
    return 1000 * visitor.number + place


@dataclass(frozen=True)
class StepTimes:
    """How long a step with so many slots takes, in us."""

    slots: int
    gpu: float  # on the GPU, for one person
    seat: float  # for each of the others
    host: float  # on the host, until the GPU begins
    beside: float = 0.0  # on the host, when the GPU has begun
    python: float = 0.0  # what Python does with its tokens


def clock_room(visitors: Sequence[Visitor], slots: int, python: float = 0.0) -> SeatRoom:
    """A room with steps that compute nothing, and take as long as an H200's with 1, 8 or 32 slots.

    `python` is what Python does with the tokens of a step, in us.
    """
    if slots not in (1, 8, 32):
        raise agt.UsageError(f"take 1, 8 or 32 slots, since nobody measured a step with {slots}")
    clock, seats = RoomClock(), dict[int, tuple[Visitor, int]]()
    times = replace(step_times(slots), python=python)
    return SeatRoom([ClockStep(clock, seats, times) for _ in range(2)], slots, visitors, clock)


# ------------------------------------------------------------------ as recorded
@cache
def recorded() -> _Row:
    """What ``benchmarks/serving_tokens.py`` found on an H200: ``about``, ``lengths`` and ``rows``."""
    found: _Row = json.loads(_RECORDED.read_text("utf-8"))
    return found


def recorded_row(slots: int, way: str, load: float | None = None, python: float = 0) -> _Row:
    """One row of it."""
    rows = recorded()["rows"]
    wanted = {"seats": slots, "way": way, "load": load, "python_us": python}
    return next(row for row in rows if wanted.items() <= row.items())


def step_times(slots: int) -> StepTimes:
    """How long a step takes by that recording.

    If the next step is launched before this one is over, and Python does nothing else, a step takes as long
    as the GPU needs. If not, what the host does before the GPU begins comes on top of that. With 50 us of
    Python the host is what takes longest, so that tells how much it has to do in all.
    """
    eight = recorded_row(8, "continuous")["step_us"] - recorded_row(8, "ahead")["step_us"]
    alone = recorded_row(8, "one by one")["step_us"] - eight
    if slots == 1:
        return replace(step_times(8), slots=1)
    ahead = recorded_row(slots, "ahead")
    host = recorded_row(slots, "continuous")["step_us"] - ahead["step_us"]
    beside = max(recorded_row(slots, "ahead", python=50)["step_us"] - 50 - host, 0)
    seat = (ahead["step_us"] - alone) / (ahead["taken"] - 1)
    return StepTimes(slots, alone, seat, host, beside)


# ------------------------------------------------------------------ who asks
def people(
    number: int = 200,
    *,
    slots: int = 8,
    load: float | None = None,
    uniform: bool = False,
    seed: int = 0,
) -> list[Visitor]:
    """Visitors as in the recording: prompts of 8 to 32 tokens, answers of geometric length with mean 60.

    They come at a `load` of what so many slots can take; without one, all at once. `uniform` answers have 20
    to 100 tokens instead, each length as often as any other. Their mean is 60, too.
    """
    random = np.random.default_rng(seed)
    lengths = random.integers(20, 101, number) if uniform else random.geometric(1 / 60, number)
    waits, prompts = random.exponential(1.0, number), random.integers(8, 33, number)
    last = np.minimum(prompts + lengths - 1, 127)
    every_us = 0.0
    if load is not None:
        step_us = recorded_row(slots, "continuous")["step_us"]
        every_us = step_us * float(last.mean()) / slots / load
    drawn = prompts.tolist(), last.tolist(), (np.cumsum(waits) * every_us).tolist()
    rows = enumerate(zip(*drawn, strict=True))
    return [Visitor(i, (0,) * prompt, end, at) for i, (prompt, end, at) in rows]


def first_layers(model: LanguageModel, number: int) -> LanguageModel:
    """The model with only so many of its layers: quicker, and none the wiser."""
    weights = {name: w[:number] if name in _OF_LAYERS else w for name, w in model.weights.items()}
    return replace(model, weights=weights)


# ------------------------------------------------------------------ pictures
def with_seats(trace: agt.Trace, room: SeatRoom) -> agt.Trace:
    """The trace of a run on a device, with a lane for each seat that says who sat there."""
    begun = [span.start for span in trace if span.name == "admit" and span.on_device]
    ended = [span.end for span in trace if span.kind == "d2h"]
    if min(len(begun), len(ended)) < len(room.launched):  # a graph that was recorded as a whole
        return trace
    lanes: dict[int, list[tuple[float, float, str]]] = {slot: [] for slot in range(room.count)}
    for slot, visitor, first, last in room.sat:
        begin, end = begun[room.launched[first]], ended[room.launched[last]]
        lanes[slot].append((begin, end, ascii_uppercase[visitor.number]))
    for slot, lane in lanes.items():
        trace = trace.with_lane(f"seat {slot}", sorted(lane))
    return trace


def draw_waits(title: str, curves: _Curves, beside: _Curves, alt: str) -> None:
    """How many people have their first token after how long: curves, and points of a recording beside them.

    Curves are, by name, how long each waited, in us; what's `beside` them, by the same names, are 21
    percentiles from 0 to 100 of a recording.
    """
    import matplotlib.pyplot as plt  # only pages call this

    plot: Any = plt
    figure, axes = plot.subplots(figsize=(8, 3.6))
    shares = np.linspace(0, 100, 21)
    for (name, waits), style, mark in zip(curves.items(), ("-", "--", "-."), "osv", strict=False):
        came = np.sort(waits) / 1e3
        (line,) = axes.plot(came, np.linspace(0, 100, came.size), style, label=name)
        if name in beside:
            axes.plot(
                np.array(beside[name]) / 1e3, shares, mark, color=line.get_color(), mfc="none",
                label=f"{name}, on an H200",
            )  # fmt: skip
    axes.axhline(95, color="0.6", linewidth=0.8)
    axes.set(xlabel="ms until the first token", ylabel="% of the people", title=title)
    axes.set(xscale="log", xticks=[1, 3, 10, 30], xticklabels=[1, 3, 10, 30])
    axes.minorticks_off()
    axes.legend(fontsize="small")
    shown(figure, alt, "Lines are our clock, and marks are what an H200 measured.")
