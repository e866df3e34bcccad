"""Many people talk to a language model: requests served one after another, in batches, continuously.

    python benchmarks/serving_tokens.py [--device sim --quick] [--json FILE] [--recording FOLDER]

200 requests, drawn three times, for the model that comes with the package: prompts of 8 to 32 tokens,
answers of geometric length with mean 60, texts of at most 128 tokens, its context. A step is a graph: a
list of newcomers comes in, every seat gets a token, the tokens go out. The ways to serve:

- one by one: a single seat, and the next request sits down when the one before is over;
- batches: those who are here sit down together, and the next batch begins when the last of them is over;
- continuous: whoever is over leaves, and the next request has the seat in the next step;
- ahead: the same, and the next step is launched before anybody looks at what this one said;
- no host: all at once, in one launch of `Slots.talk`, with a slot for each request. Its blocks take one after
  the other from a queue, and all texts come back in the end.

Requests come all at once, and at random, at 60 and 90 % of what continuous serving could take. Python does
as little as it can in a step, and then 20 and 50 us more, which stand for what a real server does: turning
tokens into text, and sending it. The model's own end of a text is switched off, so that lengths are those
that were drawn. All ways must say the same texts.

``--quick`` has six requests, two seats, and a model without layers, for the simulated device, whose times
are those of its model. ``--recording`` also writes a trace of a few steps of the last two ways.

The model's context of 128 tokens cuts long answers off, and with them what static batches lose: who places
the requests on seats without any device gets at most 1.70 times as much out of continuous serving on the
average of 200 drawings. With ``--context 232`` the model has its places twice, so that its texts mean even
less, and answers are up to 200 tokens long, as a larger model would give; that limit is 2.10 then.
"""

import argparse
import json
import platform
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from in_turns import device_us

import asyncgpu_tutor as agt
from asyncgpu_course.serving import DeviceStep, Visitor, first_layers
from asyncgpu_tutor.data import LanguageModel, load_language_model
from asyncgpu_tutor.data.language import END
from asyncgpu_tutor.language import slots

LOADS = (None, 0.6, 0.9)  # all at once, and shares of what continuous serving can take
HEAT = 0.7
WAYS = ("one by one", "batches", "continuous", "ahead")
EXTRA_US = (20, 50)  # of Python, a step
DRAWN = 3  # times
RECORDED = 6  # steps
HEAD = "| seats | come | way | Python, us | tokens/s | first, ms | 95 % | a step, us | taken |"
Seats = list[Visitor | None]


class Step(DeviceStep):
    """A step that knows who sat there when it was launched."""

    def __init__(self, seats: Any, stream: agt.types.Stream) -> None:
        super().__init__(seats, stream, seats.newcomers(), agt.pinned(seats.count, np.int32))
        self.sits: Seats = []
        self._clean = True

    def launch(self, sits: Seats, new: Sequence[int]) -> None:
        """Enqueue it for those who sit there, of whom those in the `new` seats sit down now."""
        if not self._clean:
            self.newcomers[:, 0] = 0
        self._clean = not new
        for seat in new:
            request = sits[seat]
            assert request is not None
            self.seat(seat, request)
        self.sits = sits[:]
        self.start()

    def wait(self) -> list[int]:
        """The tokens, when it's over; its newcomers are wiped out only where there were some."""
        self.over.synchronize()
        return self.tokens.tolist()


class Room:
    """Seats for conversations with a model, two steps for them, and the ways to serve."""

    def __init__(self, model: LanguageModel, count: int) -> None:
        self.count = count
        seats = slots(model, count).sync()
        agt.memcpy(seats.arrays["heat"].borrow(), agt.pin(np.full(count, HEAT, np.float32))).sync()
        stream = agt.create_stream()
        self.steps = [Step(seats, stream) for _ in range(2)]
        self.sits: Seats = [None] * count
        self.taken = 0  # the sum of taken seats over all steps
        self.number = 0  # of steps
        self.extra_us = 0.0
        self.device = agt.current_device()
        self._begun = 0.0

    def now(self) -> float:
        """In us since serving began."""
        return self.device.now() - self._begun

    def idle(self, us: float) -> None:
        if self.device.simulated:
            self.device.work(max(us, 1.0), "idle")
        else:
            time.sleep(max(us - 80.0, 0.0) * 1e-6)  # because a sleep is late

    def launch(self, step: Step, queue: deque[Visitor], refill: bool) -> None:
        """Let those who are here sit down, if there is room, and launch a step."""
        new, now = list[int](), self.now()
        if refill and queue and queue[0].at <= now:
            for seat, request in enumerate(self.sits):
                if request is None and queue and queue[0].at <= now:
                    self.sits[seat] = queue.popleft()
                    new.append(seat)
        self.number += 1
        self.taken += self.count - self.sits.count(None)
        step.launch(self.sits, new)

    def hear(self, step: Step) -> None:
        """Give out the tokens of a step to those who sat there when it was launched."""
        tokens, now = step.wait(), self.now()
        for seat, request in enumerate(step.sits):
            if request is None or request.end is not None:  # it was launched before anybody knew
                continue
            if request.hear(tokens[seat], now):
                self.sits[seat] = None
        if self.extra_us:
            self.device.work(self.extra_us, "python")

    def asked(self, requests: list[Visitor], batches: bool) -> None:
        """Look at what a step said, and then launch the next one."""
        queue = deque(requests)
        while queue or any(self.sits):
            empty, now = not any(self.sits), self.now()
            if empty and queue[0].at > now:
                self.idle(queue[0].at - now)
                continue
            step = self.steps[self.number % 2]
            self.launch(step, queue, refill=empty or not batches)
            self.hear(step)

    def ahead(self, requests: list[Visitor]) -> None:
        """Launch the next step, and then look at what this one said."""
        queue, under_way = deque(requests), deque[Step]()
        while queue or any(self.sits) or under_way:
            if any(self.sits) or (queue and queue[0].at <= self.now()):
                step = self.steps[self.number % 2]
                self.launch(step, queue, refill=True)
                under_way.append(step)
            elif not under_way:
                self.idle(queue[0].at - self.now())
                continue
            if len(under_way) == 2 or not any(self.sits):
                self.hear(under_way.popleft())

    def serve(self, way: str, requests: list[Visitor], extra_us: float) -> float:
        """Serve all requests in a way, and return how long it took, in us."""
        self.number = self.taken = 0
        self.extra_us = extra_us
        self._begun = self.device.now()
        if way == "ahead":
            self.ahead(requests)
        else:
            self.asked(requests, way == "batches")
        return self.now()


@dataclass
class Size:
    """How much is served by what."""

    model: LanguageModel
    seats: tuple[int, ...]
    requests: int
    prompts: tuple[int, int]
    mean: float  # length of an answer
    blocks: tuple[int, ...] = (8, 32, 132)
    drawn: int = DRAWN


def full(context: int) -> Size:
    """The model that comes with the package, for texts of so many tokens."""
    model = _endless(load_language_model())
    places = np.resize(model.weights["places"], (context, model.size))
    model = replace(model, weights={**model.weights, "places": places})
    return Size(model, (8, 32), 200, (8, 32), 60.0)


def quick() -> Size:
    """A model without layers, which is quickly interpreted."""
    model = first_layers(load_language_model(), 0)
    return Size(_endless(model), (2,), 6, (2, 4), 4.0, (2,), drawn=1)


def _endless(model: LanguageModel) -> LanguageModel:
    """A model that hardly ever says the token that ends a text: the weights that speak for it are noughts."""
    tokens = model.weights["tokens"].copy()
    tokens[END] = 0
    return replace(model, weights={**model.weights, "tokens": tokens})


def asked_for(size: Size, rate: float | None, seed: int) -> list[Visitor]:
    """Requests that come all at once, or at random at so many a second."""
    random, most = np.random.default_rng(seed), size.model.context
    lengths = random.geometric(1 / size.mean, size.requests)
    waits = random.exponential(1e6, size.requests)
    made: list[Visitor] = []
    for number, length in enumerate(lengths.tolist()):
        many = int(random.integers(size.prompts[0], size.prompts[1] + 1))
        prompt = random.integers(1, len(size.model.vocabulary), many).tolist()
        made.append(Visitor(number, prompt, min(many + length - 1, most - 1)))
    if rate is not None:
        for request, at in zip(made, np.cumsum(waits / rate).tolist(), strict=True):
            request.at = at
    return made


class Bench:
    """One run of all of it."""

    def __init__(self, size: Size) -> None:
        self.size, self.rows = size, list[dict[str, Any]]()
        self.texts: dict[tuple[int, int], list[int]] = {}
        self.differing = 0
        self.alone = Room(size.model, 1)
        self.rooms = {count: Room(size.model, count) for count in size.seats}
        self.all_seats = slots(size.model, size.requests).sync()

    def check(self, seed: int, number: int, answer: list[int]) -> None:
        """Count an answer that differs from what another way was told."""
        self.differing += self.texts.setdefault((seed, number), answer) != answer

    def kept(self, row: dict[str, Any]) -> dict[str, Any]:
        """Keep a row, and print it."""
        self.rows.append(row)
        half, late = row["first_us"][10] / 1e3, row["first_us"][19] / 1e3
        come = "at once" if row["load"] is None else f"{row['load']:.0%}"
        numbers = f"{row['tokens_a_second']:,} | {half:.2f} | {late:.2f} | {row['step_us']:.1f}"
        first = f"| {row['seats']} | {come} | {row['way']} | {row['python_us']} |"
        print(first, numbers, f"| {row['taken']:.2f} |", flush=True)
        return row

    def without_host(self, blocks: int) -> None:
        """All requests in one launch."""
        made, took, said, spoken = self.all_seats, list[float](), 0, 0
        newcomers = made.newcomers()
        out = {name: agt.pinned(made.arrays[name].shape, np.int32) for name in ("text", "said")}
        copies = [agt.d2h(made.arrays[name].borrow(), out=host) for name, host in out.items()]
        launch = agt.zip(made.admit(newcomers), made.talk(blocks), *copies).prepare().launch()
        stream = agt.create_stream()
        launch.sync_on(stream)  # a warm-up, with nobody there
        for seed in range(self.size.drawn):
            requests = asked_for(self.size, None, seed)
            for r in requests:
                made.seat(newcomers, r.number, r.prompt, r.last, r.number, HEAT)
            took.append(device_us(partial(launch.sync_on, stream)))
            texts, ends = out["text"].tolist(), out["said"].tolist()
            for r in requests:
                answer = texts[r.number][len(r.prompt) : ends[r.number] + 1]
                self.check(seed, r.number, answer)
                said, spoken = said + len(answer), spoken + r.last
        us = sum(took)
        self.kept({
            "seats": blocks, "way": "no host", "load": None, "python_us": 0, "tokens": said,
            "tokens_a_second": round(said / us * 1e6), "steps": len(took),
            "step_us": round(us * blocks / spoken, 2),
            "taken": blocks, "first_us": [round(us / len(took))] * 21,
        })  # fmt: skip

    def row(
        self, count: int, way: str, load: float | None, rate: float | None, extra_us: float
    ) -> Any:
        """Serve all requests once, and keep and print what that gave."""
        room = self.alone if way == "one by one" else self.rooms[count]
        took, steps, taken, said = 0.0, 0, 0, 0
        waits: list[float] = []
        for seed in range(self.size.drawn):
            requests = asked_for(self.size, rate, seed)
            took += room.serve(way, requests, extra_us)
            steps, taken = steps + room.number, taken + room.taken
            waits += [r.first - r.at for r in requests if r.first is not None]
            for request in requests:
                said += len(request.text)
                self.check(seed, request.number, request.text)
        row = {
            "seats": count, "way": way, "load": load, "python_us": extra_us, "tokens": said,
            "tokens_a_second": round(said / took * 1e6), "steps": steps,
            "step_us": round(took / steps, 2), "taken": round(taken / steps, 3),
            # From the soonest to the latest, in twenty equal parts.
            "first_us": [round(us) for us in np.percentile(waits, np.linspace(0, 100, 21)).tolist()],
        }  # fmt: skip
        return self.kept(row)

    def run(self) -> None:
        """Everything, after a warm-up."""
        for room in (self.alone, *self.rooms.values()):
            for way in ("continuous", "ahead"):
                room.serve(way, asked_for(self.size, None, 0)[: 2 * room.count + 2], 0)
        print(f"{HEAD}\n|---|---|---|---|---|---|---|---|---|")
        drawn = [asked_for(self.size, None, seed) for seed in range(self.size.drawn)]
        spoken = float(np.mean([request.last for requests in drawn for request in requests]))
        for count in self.size.seats:
            step_us = 0.0
            for load in LOADS:
                rate = None if load is None else load * count / (step_us * spoken / 1e6)
                for way in WAYS:
                    row = self.row(count, way, load, rate, 0)
                    if load is None and way == "continuous":
                        step_us = row["step_us"]
            for extra_us in EXTRA_US:
                for way in ("continuous", "ahead"):
                    self.row(count, way, None, None, extra_us)
        for blocks in self.size.blocks:
            self.without_host(blocks)
        lengths = [len(text) for text in self.texts.values()]
        told = f"{min(lengths)} to {max(lengths)} tokens, {np.mean(lengths):.1f} on average"
        print(f"\nanswers of {told}")
        print(f"texts that differ between two ways: {self.differing}")


def recorded(size: Size, way: str, extra_us: float) -> agt.Trace:
    """A trace of a few steps with all seats taken, in which somebody leaves and somebody comes."""
    room = Room(size.model, size.seats[0])
    leave = [Visitor(i, [1, 2], 2 + i) for i in range(room.count + RECORDED)]
    room.serve(way, [replace(r, text=[]) for r in leave], extra_us)  # warm-up
    with agt.record() as trace:
        room.serve(way, leave, extra_us)
    return trace


def main(argv: Sequence[str] | None = None) -> Bench:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", default="cuda", choices=["cuda", "sim"])
    parser.add_argument("--quick", action="store_true", help="a tiny model and few requests")
    parser.add_argument("--json", type=Path, metavar="FILE", help="else the numbers are printed")
    told = "write traces of a few steps there"
    parser.add_argument("--recording", type=Path, metavar="FOLDER", help=told)
    parser.add_argument("--context", type=int, default=128, help="tokens of a text at most")
    given = parser.parse_args(argv)
    device = agt.use(given.device)
    size = quick() if given.quick else full(given.context)
    print(f"{device!r}, Python {platform.python_version()}, {platform.platform()}")
    bench = Bench(size)
    bench.run()
    command = ["python benchmarks/serving_tokens.py", *(sys.argv[1:] if argv is None else argv)]
    about = {
        "gpu": device.description.partition(",")[0], "device": repr(device),
        "python": platform.python_version(), "machine": platform.platform(),
        "command": " ".join(command), "date": datetime.now(UTC).date().isoformat(),
        "differing": bench.differing,
    }  # fmt: skip
    drawn = asked_for(size, None, 0)  # prompts and answers of the first drawing, in tokens
    lengths = [[len(r.prompt), len(bench.texts[0, r.number])] for r in drawn]
    found = {"about": about, "lengths": lengths, "rows": bench.rows}
    text = json.dumps(found, separators=(",", ":")).replace('{"seats"', '\n{"seats"')
    if given.json:
        given.json.write_text(text + "\n", encoding="utf-8")
    else:
        print(f"\n{text}")
    for way in ("continuous", "ahead") if given.recording else ():
        given.recording.mkdir(parents=True, exist_ok=True)
        trace = recorded(size, way, 20)
        trace.about = {**trace.about, **about, "kind": "recorded"}
        trace.save(given.recording / f"19_serving_{way}.json")
        print(f"recorded {way}: {len(trace)} spans, {trace.metrics().makespan:.0f} us")
    return bench


if __name__ == "__main__":
    main()
