"""Conversations: many people talk to one model, and nobody waits for a batch.

A step gives a token to everybody who sits in a slot, and costs hardly more for thirty-two than for one. So
whoever serves people one after the other wastes nearly all of the GPU. If they're served in fixed batches,
all of them wait for the longest text. What engines do instead is continuous batching (Yu and others, "Orca",
2022): a batch is made anew for each step. Whoever is done leaves, whoever waits longest takes the seat, and a
prompt is read while the others go on talking.

Python needs some time between two steps, and the GPU shouldn't wait for it. So a step is on the stream before
anybody has looked at what the one before it said. Records of who comes and what was said are therefore there
twice, in pinned memory, and each pair has a graph that reads and writes just these.

One step ahead has a catch, and no sanitizer finds it. When the host reads that a text is over, the next step
is on its way already, with nobody in that seat or with somebody new. Whoever then asks "who sits in seat 3?"
credits a token to the wrong person, and each of both texts looks fine. Hence a step remembers who sat where
when it was launched, and its tokens go to those, whoever sits there now.

Nobody waits for a slow reader. A text has at most as many tokens as the model has places, so they are kept
until they're read, and the seat goes to the next one in the meantime.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

import numpy as np
import numpy.typing as npt

import asyncgpu_tutor as agt
from asyncgpu_tutor.data import LanguageModel
from asyncgpu_tutor.data.language import END, word
from asyncgpu_tutor.devices.event_loop import AnyLoop, only_asyncio, opening_loop, shielded
from asyncgpu_tutor.devices.fresh_errors import fresh
from asyncgpu_tutor.errors import ServerBusyError, UsageError, demand, whole
from asyncgpu_tutor.language.slots import Slots, check_text, slots
from asyncgpu_tutor.run.context import ExecutionContext
from asyncgpu_tutor.run.submission import submit

_CLOSED = (
    "the conversations were closed: say something in `async with Conversations(...) as engine`"
)
_KEPT = 32  # steps of which `Conversations.steps` knows, and so the texts that were said in them


@dataclass(eq=False)
class Conversation:
    """One of them, from the question until its last token."""

    prompt: Sequence[int]
    last: int  # the place of its last token at the latest
    seed: int
    heat: float
    launched: int = 0  # steps that it has a seat in
    place: int = 0  # of the last token that the host knows
    over: bool = False  # there are no more tokens, or nobody wants them
    # Tokens for its reader; then None, or what went wrong.
    said: asyncio.Queue[int | Exception | None] = field(
        default_factory=asyncio.Queue[int | Exception | None]
    )

    def end(self, reason: Exception | None = None) -> None:
        """Tell its reader that this is all."""
        if not self.over:
            self.over = True
            self.said.put_nowait(reason)


@dataclass(eq=False)
class Seating:
    """Who sat where in a step."""

    seats: tuple[Conversation | None, ...]
    op: int | None = None  # the number of its operation, as spans of a trace have it


# An array of newcomers, and the graph of a step that reads it and writes what is said.
_Round = tuple[npt.NDArray[np.int32], Callable[[ExecutionContext], Any]]


class Conversations:
    """A language model that many people talk to at once.

    To be used as ``async with Conversations(model) as engine``; in the block each of them has a task with an
    ``async for token in engine.say("A stream is")``. Leaving the block ends all that's still being said.

    Parameters
    ----------
    model : LanguageModel
    slots : int
        How many have a seat at a time.
    waiting : int
        How many more may wait for one; what comes then is turned away.
    ahead : int
        How many steps are put onto the stream before the host has looked at the one before them.

    Attributes
    ----------
    steps : deque of Seating
        The latest steps, and who sat where.
    closed : Exception or None
        What somebody who comes now is told, such as the error of the device.

    Raises
    ------
    UsageError
        If there would be no slot.
    """

    def __init__(
        self, model: LanguageModel, *, slots: int = 8, waiting: int = 64, ahead: int = 1
    ) -> None:
        demand(model, LanguageModel, "conversations are with a LanguageModel")
        slots = whole("the number of slots", slots, 1)
        waiting = whole("the number of people who may wait", waiting, 0)
        ahead = whole("the number of steps ahead", ahead, 0)
        self.model, self.slots = model, slots
        self.steps: deque[Seating] = deque(maxlen=_KEPT + ahead)
        self._most_waiting, self._ahead = waiting, ahead
        self._line: dict[Conversation, None] = {}  # who waits for a seat, in order
        # Each seat has here the talk that sits on it in the next step, as far as the host knows. A talk that
        # is over has left, and the device hears of that with this step.
        self._seats: list[Conversation | None] = [None] * slots
        self.closed: Exception | None = UsageError(_CLOSED)
        self._seen = asyncio.Event()  # the host has looked at the step that was the next
        self._called = asyncio.Event()  # somebody has come, or all is to end
        self._open: AnyLoop | None = None  # where it is open

    def __repr__(self) -> str:
        return f"<Conversations: {self.seated} in {self.slots} slots, {self.waiting} waiting>"

    @property
    def seated(self) -> int:
        """Number of those who have a slot."""
        return sum(talk is not None and not talk.over for talk in self._seats)

    @property
    def waiting(self) -> int:
        """Number of those who wait for one."""
        return len(self._line)

    # ------------------------------------------------------------------ its life
    async def __aenter__(self) -> Conversations:
        only_asyncio("a server of conversations")
        self._open = opening_loop(self._open, "this server of conversations")
        try:
            return await self._opened()
        except BaseException:
            self._open = None
            raise

    async def _opened(self) -> Conversations:
        self._loop = asyncio.get_running_loop()
        self._called = asyncio.Event()
        self._stream = agt.create_stream()
        made = await slots(self.model, self.slots)
        self._made = made
        self._rounds = cycle([self._round(made) for _ in range(self._ahead + 1)])
        self.closed = None
        self._work = asyncio.create_task(self._serve())
        return self

    async def __aexit__(self, *error: object) -> None:
        self.hang_up()
        with shielded():
            await self._work
        self._open = None

    def hang_up(self) -> None:
        """End all that's being said, at once; leaving the block waits for the step that's under way."""
        self.closed = self.closed or UsageError(_CLOSED)
        sat = [talk for step in self.steps for talk in step.seats if talk is not None]
        for talk in [*self._line, *sat]:
            talk.end(fresh(self.closed))
        self._line, self._seats = {}, [None] * self.slots
        self._called.set()
        self._look_up()

    async def step(self) -> bool:
        """Wait until the host has looked at another step; false if nobody talks."""
        if self.closed is None and (self.seated or self.waiting):
            await self._seen.wait()
            return True
        return False

    def _round(self, made: Slots) -> _Round:
        newcomers, said = made.newcomers(), agt.pinned(self.slots, np.int32)
        heard = agt.d2h(made.arrays["token"].borrow(), out=said)
        step = agt.zip(made.admit(newcomers), made.fused_step(), heard).last().named("step")
        return newcomers, step.graph_on(self._stream)._enqueue

    # ------------------------------------------------------------------ those who talk
    def say(
        self,
        prompt: str | Sequence[int],
        *,
        most: int | None = None,
        seed: int = 0,
        heat: float = 0.7,
    ) -> AsyncGenerator[int, None]:
        """What the model says behind a prompt, token by token, without the prompt.

        It's lazy: somebody gets in line with the first token that is asked for. Closing the iterator
        (``aclose``, or a task that's cancelled) gives the place up, and the next step has room for another.

        Parameters
        ----------
        prompt : str or sequence of int
            A text, which begins where another has ended, or its tokens as they are.
        most : int, optional
            How many tokens at most; by default as many as the model has places for.
        seed : int
            Decides what is drawn, whoever else is there: see `chances`.
        heat : float
            Near 0 the likeliest token is taken, at 1 each of them as often as it's likely.

        Raises
        ------
        UsageError
            If the prompt is empty or too long, or has what the model doesn't know; if nothing is to be said;
            if the seed or the heat is no such number; with the next token: if the block ends.
        ServerBusyError
            With the first token: if too many wait already.
        DeviceError
            If the device failed; then everybody gets it, and so does whoever comes later.
        """
        if isinstance(prompt, str):
            prompt = [END, *self.model.encode(prompt)]
        demand(prompt, Iterable, "a prompt is a text, or tokens")
        tokens = [whole("a token", token) for token in prompt]
        room = self.model.context - len(tokens)
        if room < 1:
            raise UsageError(
                f"a prompt of {len(tokens)} tokens leaves no room for an answer: a text of this model has at "
                f"most {self.model.context}"
            )
        said = room if most is None else min(whole("most", most), room)
        if said < 1:
            raise UsageError(f"an answer has at least one token, and got most={most}")
        talk = Conversation(tokens, len(tokens) - 1 + said, whole("the seed", seed), heat)
        check_text(self.model, tokens, talk.last, heat)
        return self._heard_by(talk)

    async def _heard_by(self, talk: Conversation) -> AsyncGenerator[int, None]:
        if self.closed is not None:
            raise fresh(self.closed)
        if asyncio.get_running_loop() is not self._loop:
            raise UsageError(
                "these conversations were opened in another event loop: open some in each, or talk from there"
            )
        if len(self._line) >= self._most_waiting + self.slots - self.seated:
            raise ServerBusyError(
                f"the slots ({self.slots}) and the places to wait for one ({self._most_waiting}) are taken: "
                "try again later, or let more people wait (waiting=...)"
            )
        self._line[talk] = None
        self._called.set()
        try:
            while (token := await talk.said.get()) is not None:
                if isinstance(token, Exception):
                    raise token
                yield token
        finally:
            talk.over = True
            self._line.pop(talk, None)

    # ------------------------------------------------------------------ step by step
    async def _serve(self) -> None:
        """Launch steps as long as somebody talks; whatever ends it ends everybody's wait."""
        under_way: deque[tuple[Seating, agt.DeviceFuture[npt.NDArray[np.int32]]]] = deque()
        try:
            while self.closed is None:
                if len(under_way) <= self._ahead and (self._line or self.seated):
                    under_way.append(self._launched())
                elif under_way:
                    step, future = under_way[0]
                    self._tell(step, await future)
                    under_way.popleft()
                else:
                    self._look_up()
                    self._called.clear()
                    await self._called.wait()
        except Exception as error:  # noqa: BLE001 - whatever it is, it's told to everybody who waits
            self.closed = self.closed or error
        finally:
            self.hang_up()  # a cancelled task comes here, too, and an interrupt
            # What's on its way still writes to the memory of a round. If it fails, that was said above.
            await asyncio.gather(*(future for _, future in under_way), return_exceptions=True)

    def _launched(self) -> tuple[Seating, agt.DeviceFuture[npt.NDArray[np.int32]]]:
        """Seat who waits, and put a step onto the stream."""
        newcomers, run = next(self._rounds)  # the host has looked at their last step
        newcomers[:, 0] = 0
        for slot, talk in enumerate(self._seats):
            if talk is not None and not talk.over:
                continue
            if self._line:
                new = self._seats[slot] = next(iter(self._line))
                del self._line[new]
                self._made.seat(newcomers, slot, new.prompt, new.last, new.seed, new.heat)
            elif talk is not None:
                self._seats[slot] = None
                self._made.leave(newcomers, slot)
        step = Seating(tuple(self._seats))
        self.steps.append(step)
        for slot, talk in enumerate(self._seats):
            if talk is not None:
                talk.launched += 1
                # That this is its last step is known before anybody looks.
                if talk.launched == talk.last:
                    self._seats[slot] = None
        submission = submit(run, self._stream, None, "step")
        step.op = submission.op
        return step, agt.DeviceFuture.of(submission)

    def _tell(self, step: Seating, said: npt.NDArray[np.int32]) -> None:
        """Give each token of a step to whoever sat there then."""
        for slot, (talk, token) in enumerate(zip(step.seats, said.tolist(), strict=True)):
            # Some steps were launched before anybody knew that a text was over.
            if talk is None or talk.over:
                continue
            talk.place += 1
            if talk.place >= len(talk.prompt):
                talk.said.put_nowait(word(token))
            if token < 0:
                talk.end()
                if self._seats[slot] is talk:
                    self._seats[slot] = None
        self._look_up()

    def _look_up(self) -> None:
        seen, self._seen = self._seen, asyncio.Event()
        seen.set()
