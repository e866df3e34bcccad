"""Exercises of 17_teach_it_something: what each one checks."""

from typing import Any

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks import results, schedule
from asyncgpu_course.checks.operations import WARP, cuda, noise
from asyncgpu_course.checks.rejection import case, must
from asyncgpu_course.checks.results import CheckedArray, brief, equal
from asyncgpu_course.checks.sandbox import Observed, call, observe
from asyncgpu_course.checks.trials import cases, counted, runs
from asyncgpu_course.exercises.exercise import Exercise
from asyncgpu_course.internals import count, happens_before

_SIZE = 32_000  # for a step of some 60 us


class _Trainee:
    """Weights on the device, and a step that halves them and adds what it is given."""

    def __init__(self) -> None:
        self.stream, self.other = agt.create_stream(), agt.create_stream()
        self.start = noise(7, _SIZE)
        self.w = agt.h2d(agt.pin(self.start), "w").sync()
        self.ones = agt.ones(1).sync()
        self.loss = agt.zeros(1, name="loss").sync()
        self._kernel = agt.Kernel(cuda("17_step"))

    def step(self, x: Any = None) -> agt.DeviceOp[Any]:
        given = self.ones if x is None else x
        arrays = given.borrow(), self.w.borrow(), self.loss.borrow()
        return self._kernel(_SIZE, given.size, *arrays, grid=1, block=WARP).named("step")

    def after(self, steps: list[CheckedArray]) -> list[CheckedArray]:
        """The weights after each of these steps."""
        found, w = list[CheckedArray](), self.start
        for x in steps:
            w = np.float32(0.5) * w + np.resize(x, _SIZE)
            found.append(w)
        return found


def _free(run: Observed, early: agt.types.Span, late: agt.types.Span, cause: str) -> None:
    must(not happens_before(run.trace, early, late, host=True), cause, early, late)


def _trained(run: Observed, trainee: _Trainee, steps: int, copies: str = "") -> None:
    """There were so many steps, on the stream that is for them, and the copies were on the other one."""
    schedule.launches(run.trace, "step", steps)
    schedule.on_stream(run.trace, "step", trainee.stream.number, "stream")
    if copies:
        schedule.on_stream(run.trace, copies, trainee.other.number, "other")


# ------------------------------------------------------------------ loss
def _surprised(answer: Any, _: Any, examples: int, tokens: int, wide: float, at: float) -> None:
    """The loss of each example is right, and each gradient, also where logits are large, or far below 0."""
    kernel, host = results.as_kernel(answer, "loss"), wide * noise(3, examples, tokens) + at
    right, rows = np.arange(examples, dtype=np.int32) * 5 % tokens, np.arange(examples)
    shifted = (host - host.max(1, keepdims=True)).astype(np.float64)
    chances = np.exp(shifted) / np.exp(shifted).sum(1, keepdims=True)
    logits, out = agt.h2d(host, "logits").sync(), agt.full(examples, results.UNWRITTEN).sync()

    def launched() -> None:
        arrays = agt.h2d(right), logits.borrow(), out.borrow()
        kernel(examples, tokens, *arrays, grid=-(-examples // 64), block=64).sync()

    call(launched)
    equal(agt.d2h(out.borrow()).sync(), -np.log(chances[rows, right]).astype(np.float32))
    chances[rows, right] -= 1
    with case("the gradients, where the logits were"):
        equal(agt.d2h(logits.borrow()).sync(), (chances / examples).astype(np.float32))
    given, blocks = [examples, tokens, right, host], -(-examples // 64)
    run, _ = results.accesses_of(kernel, given, (examples,), (64, 1, 1), (blocks, 1, 1))
    results.evenly(run, 16 * tokens + 16, "give each thread one example, so that all work at once")


# ------------------------------------------------------------------ read ahead
def _ahead(answer: Any, batches: int) -> tuple[Observed, _Trainee, list[CheckedArray]]:
    trainee = _Trainee()
    hosts = [agt.pin(noise(i, _SIZE // 2)) for i in range(batches)]
    here = [agt.zeros(_SIZE // 2, name=f"here {i}").sync() for i in range(2)]
    given = trainee.step, hosts, here, trainee.stream, trainee.other
    return schedule.observe_events(answer, *given), trainee, hosts


def _read_ahead(found: tuple[Observed, _Trainee, list[CheckedArray]], batches: int) -> None:
    """Each batch is trained on in order, and copied while the step before it runs."""
    run, trainee, hosts = found
    _trained(run, trainee, batches, "h2d")
    schedule.is_done(run, "train")
    with case("the weights in the end"):
        equal(agt.d2h(trainee.w.borrow()).sync(), trainee.after(hosts)[-1])
    copies, steps = [s for s in run.trace.device_spans if s.kind == "h2d"], run.trace.find("step")
    counted("a batch was copied", len(copies), "time", batches, "each of them once")
    cause = "a batch went to a new array: the two in `here` do for any number of batches"
    must(not schedule.driver_calls(run.trace, "malloc "), cause)
    for number, (step, copy) in enumerate(zip(steps, copies[1:], strict=False), 1):
        cause = f"the copy of batch {number} waited for the step of batch {number - 1}: "
        _free(run, step, copy, cause + "it goes into the other array, so it needn't")


# ------------------------------------------------------------------ a rate that falls
RATES = [0.5, 0.25, 0.125, 3.0, 0.0, 0.75]


def _falling(answer: Any, number: int) -> tuple[Observed, _Trainee]:
    trainee = _Trainee()
    return observe(answer, trainee.step, RATES[:number], trainee.stream), trainee


def _each_rate(found: tuple[Observed, _Trainee], number: int) -> None:
    """Each step has its own rate, in one graph, and the host does not wait in between."""
    run, trainee = found
    _trained(run, trainee, number)
    schedule.is_done(run, "falling")
    with case("the weights in the end"):
        rates = [np.full(1, rate, np.float32) for rate in RATES[:number]]
        equal(agt.d2h(trainee.w.borrow()).sync(), trainee.after(rates)[-1])
    captures = schedule.driver_calls(run.trace, "instantiate ")
    cause = f"a step was captured {count(captures, 'time')}, and once is right: a graph reads its "
    must(captures == 1, cause + "rate where it always was, so put the next one there")
    schedule.waits(run.trace, 2, "the rates can be put into the queue, and so can the launches")


# ------------------------------------------------------------------ the loss, live
def _watched(answer: Any, rounds: int, every: int) -> tuple[Observed, _Trainee, list[Any]]:
    trainee, heard = _Trainee(), list[Any]()

    def draw(loss: Any) -> None:
        agt.work(90.0, "draw")
        heard.append(loss)

    given = trainee.step, trainee.loss, rounds, every, trainee.stream, draw
    return schedule.observe_events(answer, *given), trainee, heard


def _live(found: tuple[Observed, _Trainee, list[Any]], rounds: int, every: int) -> None:
    """Each round's number is drawn, in order, and the device goes on meanwhile."""
    run, trainee, heard = found
    _trained(run, trainee, rounds * every)
    counted("`draw` was called", len(heard), "time", rounds, "once a round")
    right = trainee.after([np.ones(1, np.float32)] * (rounds * every))[every - 1 :: every]
    for number, (got, wanted) in enumerate(zip(heard, right, strict=True)):
        must(results.is_number(got), f"`draw` wants a number, and got {brief(got)}")
        near = abs(got - wanted[0]) < 1e-4
        must(near, f"in round {number}, {got:.6g} was drawn, and the loss was {wanted[0]:.6g}")
    steps, drawn = run.trace.find("step"), run.trace.find("draw")
    for number, span in enumerate(drawn[:-1], 1):
        last = steps[(number + 1) * every - 1]
        cause = f"the last step of round {number} was put into the queue only after round {number - 1} was "
        must(last.id < span.id, cause + "drawn: enqueue a round ahead", span, last)
        cause = f"round {number - 1} was drawn when round {number} was over, too, and so the device waited: "
        must(last.end > span.start, cause + "wait for an event behind each copy", last, span)


# ------------------------------------------------------------------ snapshots
def _snapshots(answer: Any, rounds: int, every: int) -> tuple[Observed, _Trainee, Any]:
    trainee, hosts = _Trainee(), [agt.pinned(_SIZE) for _ in range(rounds)]
    spare, streams = agt.zeros(_SIZE, name="spare").sync(), (trainee.stream, trainee.other)
    given = trainee.step, trainee.w, spare, hosts, every, *streams
    return schedule.observe_events(answer, *given), trainee, hosts


def _as_it_was(found: tuple[Observed, _Trainee, Any], rounds: int, every: int) -> None:
    """Each snapshot is of its round, and its way to the host is beside the next round."""
    run, trainee, hosts = found
    _trained(run, trainee, rounds * every, "d2h")
    schedule.is_done(run, "train")
    cause = "a snapshot went to a new array on the device: `spare` does for any number of them"
    must(not schedule.driver_calls(run.trace, "malloc "), cause)
    schedule.waits(run.trace, 2, "have streams wait for events, and Python only at the end")
    right = trainee.after([np.ones(1, np.float32)] * (rounds * every))[every - 1 :: every]
    for number, (got, wanted) in enumerate(zip(hosts, right, strict=True)):
        with case(f"the snapshot after round {number}"):
            equal(got, wanted)
    copies, steps = [s for s in run.trace.device_spans if s.kind == "d2h"], run.trace.find("step")
    for number, copy in enumerate(copies[:-1], 1):
        first, last = steps[number * every], steps[(number + 1) * every - 1]
        cause = f"the steps of round {number} waited for the copy of a snapshot to the host: let them wait "
        _free(run, copy, last, cause + "for a copy within the device, which is short")
        cause = f"snapshot {number - 1} went to the host only behind steps of round {number}"
        _free(run, first, copy, cause)


CHAPTER_17 = (
    Exercise("17-loss", "How surprised, and which way?", "loss",
             cases(_surprised, [(40, 30, 1.0, 0.0), (70, 50, 60.0, 0.0), (1, 7, 1.0, -200.0)],
                   "{:example} of {:token}")),
    Exercise("17-ahead", "Read ahead", "train", runs(_ahead, _read_ahead, [(4,), (1,), (5,)], "batches={}")),
    Exercise("17-rate", "A rate that falls", "falling",
             runs(_falling, _each_rate, [(4,), (6,), (1,)], "{:rate}")),
    Exercise("17-live", "Drawn live", "watched",
             runs(_watched, _live, [(3, 4), (1, 2), (4, 3)], "{:round} of {:step}")),
    Exercise("17-snapshot", "A snapshot", "train",
             runs(_snapshots, _as_it_was, [(3, 2), (1, 3), (4, 1)], "{:round} of {:step}")),
)  # fmt: skip
