"""Exercises of 18_token_by_token: what each one checks."""

from functools import cache
from itertools import count, pairwise
from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks import operations, results, sandbox, schedule
from asyncgpu_course.checks.operations import cuda, filled, noise
from asyncgpu_course.checks.rejection import case, must
from asyncgpu_course.checks.results import CheckedArray, brief, equal
from asyncgpu_course.checks.sandbox import Observed, observe
from asyncgpu_course.checks.trials import cases, counted, runs, timed
from asyncgpu_course.exercises.exercise import Exercise
from asyncgpu_course.internals import happens_before
from asyncgpu_tutor.data import LanguageModel, reference_say
from asyncgpu_tutor.data.language import untrained_model
from asyncgpu_tutor.language import Slots, chances, slots

_LONGEST = 40


class _Speaker:
    """A model that says what it was told to; its arrays, and a step of it."""

    def __init__(self, length: int) -> None:
        random = np.random.default_rng(length + 100 * operations.asked_before)
        self.text = random.integers(1, 512, length)
        self.text[length // 3] = 0  # a token like any other
        script = np.full(_LONGEST, -1, np.int32)
        script[:length] = self.text
        script[length - 1 :] = -1 - self.text[-1]
        self.script = agt.h2d(agt.pin(script), "script").sync()
        self.token, self.going, self.place = (
            agt.full((1,), number, np.int32, name=name).sync()
            for name, number in (("token", 0), ("going", 1), ("place", 0))
        )
        self.said = agt.zeros(_LONGEST, np.int32, name="text").sync()
        self._kernel, self.stream = agt.Kernel(cuda("18_say")), agt.create_stream()

    def step(self) -> agt.DeviceOp[Any]:
        arrays = self.script, self.place, self.token, self.said, self.going
        return self._kernel(*[array.borrow() for array in arrays], grid=1, block=1).named("step")


# ------------------------------------------------------------------ as they come
def _told(answer: Any, length: int) -> tuple[Observed, _Speaker, list[Any]]:
    speaker, heard = _Speaker(length), list[Any]()

    def tell(token: Any) -> None:
        agt.work(1.0, "tell")
        heard.append(token)

    run = observe(answer, speaker.step, speaker.token, speaker.stream, tell)
    return run, speaker, heard


def _as_they_come(found: tuple[Observed, _Speaker, list[Any]], length: int) -> None:
    """Each token is told once and at once, no step runs too much, and a step is one launch of one graph."""
    run, speaker, heard = found
    for token in heard:
        must(results.is_number(token, whole=True), f"`tell` wants an int, and got {brief(token)}")
    right, got = speaker.text.tolist(), [int(token) for token in heard]
    cause = f"`tell` was called with {got}, and {right} was said"
    if got[:-1] == right[:-1] and got[-1:] == [-1 - right[-1]]:
        cause += ": the last number is -1 - token"
    must(got == right, cause)
    schedule.on_stream(run.trace, "say", speaker.stream.number, "stream")
    steps, told = run.trace.find("say"), run.trace.find("tell")
    for number, (mine, after) in enumerate(zip(told, steps[1:], strict=False)):
        cause = f"token {number} was told only after the next step: tell it as soon as it's there"
        must(mine.start <= after.end, cause, mine, after)
    schedule.captures(run.trace, 1, "capture before the loop, and launch in it")
    launches = schedule.driver_calls(run.trace, "launch graph ")
    counted("a graph was launched", launches, "time", length, "one a token")
    schedule.waits(run.trace, length, "once for each token is enough if the launch brings it along")
    beside = [s for s in run.trace.device_spans if s.kind == "d2h" and "graph" not in s.detail]
    cause = "a token is copied by a call of its own: put the copy into the graph, behind the step"
    must(not beside, cause, *beside[:1])


# ------------------------------------------------------------------ keep
def _kept(answer: Any, model: Any, lengths: tuple[int, ...], size: int, context: int) -> None:
    """Key and value of each slot are kept at its own place, and all else is as it was."""
    kernel, qkv = results.as_kernel(answer, "keep"), noise(1, len(lengths), 3 * size)
    shape = len(lengths), context, size
    keys, values, now = noise(2, *shape), noise(3, *shape), np.array(lengths, np.int32)
    right = keys.copy(), values.copy()
    for slot, place in enumerate(lengths):
        if place >= 0:
            right[0][slot, place] = qkv[slot, size : 2 * size]
            right[1][slot, place] = qkv[slot, 2 * size :]
    args = size, context, now, qkv, keys, values
    got = results.left_in((2, 3), kernel, args, grid=len(lengths), block=size)
    for name, mine, wanted in zip(("keys", "values"), got, right, strict=True):
        with case(f"`{name}`"):
            equal(mine, wanted)
    run, _ = results.accesses_of(kernel, args[:-1], shape, (size, 1, 1), (len(lengths), 1, 1))
    results.evenly(run, 16, "let each thread keep one number of the key, and one of the value")


# ------------------------------------------------------------------ while
def _whole(answer: Any, length: int) -> tuple[Observed, _Speaker, CheckedArray]:
    speaker, out = _Speaker(length), agt.pinned(_LONGEST, np.int32)
    stream = speaker.stream
    graph = sandbox.call(answer, speaker.step, speaker.going, speaker.said, out, stream)
    results.a_graph("whole", graph, stream)
    must(not agt.d2h(speaker.place.borrow()).sync()[0], "the text was said before any launch")

    def twice() -> CheckedArray:
        graph.launch().sync_on(stream)
        after_one = out.copy()
        graph.launch().sync_on(stream)
        return after_one

    run = observe(twice)
    return run, speaker, run.result


def _in_one_launch(found: tuple[Observed, _Speaker, CheckedArray], length: int) -> None:
    """One launch says it all and brings it along; another one finds nothing left to say."""
    run, speaker, out = found
    schedule.launches(run.trace, "say", length)
    loops = {span.detail["node"] for span in run.trace.find("while")}
    outside = [span for span in run.trace.find("say") if span.detail["node"] not in loops]
    cause = f"{len(outside)} steps ran outside of a loop, and there may be any number of them: "
    # One of them may come first, if it's in a `cond`.
    must(len(outside) <= 1, cause + "let `while_loop` repeat a step until the text ends", *outside)
    with case("`out` after the launch"):
        equal(out[:length], speaker.text.astype(np.int32))


# ------------------------------------------------------------------ two graphs of one model
def _turns(answer: Any, times: int) -> tuple[Observed, CheckedArray, dict[str, Any]]:
    x, one, other = agt.zeros(32_000, name="x").sync(), agt.create_stream(), agt.create_stream()
    first, second = (
        operations.long_step(name, a, b, x, x).graph_on(stream).launch()
        for name, a, b, stream in (("ask", 2.0, 1.0, one), ("reply", 1.0, 3.0, other))
    )
    run = schedule.observe_events(answer, first, second, one, other, times)
    return run, agt.d2h(x.borrow()).sync(), {"one": one, "other": other}


def _in_turns(found: tuple[Observed, CheckedArray, dict[str, Any]], times: int) -> None:
    """The two take turns, which events see to, and the host waits at the end only."""
    run, numbers, streams = found
    for name, called in (("ask", "one"), ("reply", "other")):
        schedule.launches(run.trace, name, times)
        schedule.on_stream(run.trace, name, streams[called].number, called)
    right = 0.0
    for _ in range(times):
        right = 2 * right + 1 + 3
    work = sorted(run.trace.find("ask") + run.trace.find("reply"), key=lambda span: span.start)
    for before, after in pairwise(work):
        cause = f"nothing on the device makes `{after.name}` wait for the `{before.name}` before it"
        must(happens_before(run.trace, before, after), cause, before, after)
    equal(numbers, filled(32_000, right))
    why = "let the streams wait for each other, and wait yourself at the end"
    schedule.waits(run.trace, 2, why)
    schedule.is_done(run, "take_turns")


# ------------------------------------------------------------------ the challenge
_HEAT, _GOAL_US = 0.7, 1450
_LASTS = 6, 12, 6, 24, 6, 12
_TURNS = 60_000  # of loops: one kernel for the longest text takes more than checks allow elsewhere


@cache
def _owned(seed: int, size: int) -> LanguageModel:
    return untrained_model(size, heads=4, layers=2, context=40, vocabulary=40, seed=seed)


def _text(model: LanguageModel, begin: list[int], last: int, sooner: bool) -> tuple[int, list[int]]:
    """A seed, and its text, which ends at its last place or sooner."""
    for seed in count():
        text = reference_say(model, begin, last, _HEAT, chances(model, seed))[0]
        if (len(text) <= last) == sooner:
            return seed, text
    raise AssertionError  # it counts on


def _said(answer: Any, lasts: tuple[int, ...], size: int, sooner: bool) -> Observed:
    """Have an answer say a text of each of several models; what comes out is right."""
    rooms, right = list[Slots](), list[list[int]]()
    for number, last in enumerate(lasts):
        model, begin = _owned(number + 10 * operations.asked_before, size), [1 + number, 2]
        seed, text = _text(model, begin, last, sooner)
        made = slots(model, 1).sync()
        newcomers = made.newcomers()
        made.seat(newcomers, 0, begin, last, seed, _HEAT)
        made.admit(newcomers).sync()
        rooms.append(made)
        right.append(text)
    cast(Any, agt.current_device()).step_budget = _TURNS
    run = observe(answer, rooms, list(lasts))
    texts = results.listed("say_all", run.result, len(lasts))
    for number, text in enumerate(texts):
        got = [int(token) for token in text]
        must(got == right[number], f"room {number} said {right[number]}, and came out as {got}")
    return run


CHAPTER_18 = (
    Exercise("18-say", "Words as they come", "say",
             runs(_told, _as_they_come, [(5,), (11,), (1,)], "{:token}")),
    Exercise("18-keep", "Keep it", "keep",
             cases(_kept, [((3, 0, 7, 9, 1), 24, 10), ((2, -1, 0), 40, 6), ((9, -1, 12, -1), 16, 13)],
                   "size={1}, context={2} and lengths {0}")),
    Exercise("18-while", "In one launch", "whole",
             runs(_whole, _in_one_launch, [(6,), (17,), (1,)], "{:token}")),
    Exercise("18-two", "Two graphs of one model", "take_turns",
             runs(_turns, _in_turns, [(3,), (1,), (9,)], "times={}")),
    Exercise("18-challenge", "Challenge: six models, six texts", "say_all",
             timed(_said, [((9, 14, 5), 32, True), (_LASTS, 128, False)], "lasts {}", _GOAL_US)),
)  # fmt: skip
