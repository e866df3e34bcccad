"""Exercises of 19_many_people: what each one checks."""

import asyncio
import inspect
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from copy import deepcopy
from functools import cache
from typing import Any

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course import serving
from asyncgpu_course.checks import schedule
from asyncgpu_course.checks.rejection import Rejected, about, case, must
from asyncgpu_course.checks.results import brief, listed
from asyncgpu_course.checks.sandbox import Observed, call, observe, tried
from asyncgpu_course.exercises.exercise import Exercise
from asyncgpu_course.internals import count
from asyncgpu_course.serving import DeviceStep, RoomClock, SeatRoom, Visitor
from asyncgpu_tutor.data import load_language_model
from asyncgpu_tutor.errors import ServerBusyError, StreamRaceError
from asyncgpu_tutor.language import slots

_GPU_US, _HOST_US = 60.0, 15.0  # of a step, in a check
_GOAL_US = 120_000.0  # of the challenge, as the page has it
_Visitors = Sequence[Visitor]
_ASKS = 10_000  # for somebody to sit down, with no step between them


# ------------------------------------------------------------------ schedulers, on a clock
class _WatchedRoom(SeatRoom):
    """A room that watches who is told to sit down where, and lets people go in the middle of their texts."""

    def __init__(self, slots: int, visitors: _Visitors, clock: RoomClock, python: float) -> None:
        seats = dict[int, tuple[Visitor, int]]()
        times = serving.StepTimes(slots, _GPU_US, 0.0, _HOST_US, python=python)
        steps = [serving.ClockStep(clock, seats, times) for _ in range(2)]
        super().__init__(steps, slots, visitors, clock)
        self.ahead = 0  # steps that were launched while another was under way
        self.order: list[int] = []  # of those who sat down
        self.leave: dict[int, Visitor] = {}  # who goes after which step
        self.said = Counter[int]()  # how many tokens of whose text steps have said
        self.early = set[int]()  # those who were told more than that
        self._most = 3 * sum(visitor.last for visitor in visitors) + 50
        self._sits: dict[int, tuple[Visitor, int]] = {}  # and since which step
        self._everybody, self._asks = [*visitors], 0

    @property
    def open(self) -> bool:
        self._asked()
        return super().open

    def next(self) -> Visitor | None:
        self._asked()
        return super().next()

    def _asked(self) -> None:
        self._asks += 1
        cause = f"your loop has asked {_ASKS:,} times whether somebody waits, and launched no "
        must(self._asks <= _ASKS, cause + "step: time passes in `start` and `wait` only")

    def seat(self, slot: int, visitor: Visitor) -> None:
        cause = f"somebody was seated in slot {slot!r}, and there are {self.count} slots"
        must(slot in range(self.count), cause)
        before, begun = self._sits.get(slot, (None, 0))
        cause = f"visitor {visitor.number} was seated in slot {slot}, where somebody still "
        # Whoever knows how long a text is may give a seat away behind its last step, before it's over.
        done = before is None or before.over or before.gone or self.number - begun >= before.last
        must(done, cause + "sits and listens")
        self._sits[slot] = visitor, self.number
        self.order.append(visitor.number)
        super().seat(slot, visitor)

    def start(self) -> int:
        self._asks = 0
        if self.number >= self._most:
            why = "does somebody never leave a seat, or does nobody sit down?"
            if all(visitor.over or visitor.gone for visitor in self._everybody):
                why = "everybody was told everything, so it should end"
            raise Rejected(f"after {self._most} steps your loop is still going: {why}")
        self.ahead += bool(self._under_way)
        number = super().start()
        if number in self.leave:
            self.leave[number].gone = True
        return number

    def wait(self, number: int) -> list[int]:
        self.early |= {v.number for v in self._everybody if len(v.text) > self.said[v.number]}
        tokens = super().wait(number)
        self.said.update(visitor for visitor, _ in self.log[-1])
        return tokens


# Slots, the steps that each visitor takes, us between two of them.
Asked = tuple[int, Sequence[int], float]


def _visitors(lasts: Sequence[int], every_us: float) -> list[Visitor]:
    return [Visitor(i, range(1 + i % 2), n, i * every_us) for i, n in enumerate(lasts)]


def _served(
    answer: Any,
    slots: int,
    visitors: _Visitors,
    leave: tuple[int, int] | None = None,
    python: float = 0.0,
    clock: RoomClock | None = None,
) -> _WatchedRoom:
    """Have an answer serve them; `leave` is who goes, after which step."""

    class Room(_WatchedRoom):
        """Each answer's own, so that one that changes it changes nobody else's."""

    room = Room(slots, visitors, clock or RoomClock(), python)
    if leave is not None:
        room.leave = {leave[1]: visitors[leave[0]]}
    call(answer, room)
    return room


def _told_right(visitors: _Visitors, room: _WatchedRoom) -> None:
    """Everybody who stayed was told the whole of their text, as steps said it; who left its beginning."""
    for visitor in visitors:
        places, name = range(len(visitor.prompt), visitor.last + 1), f"visitor {visitor.number}"
        whole = [serving.token_of(visitor, place) for place in places]
        right = whole[: len(visitor.text)] if visitor.gone else whole
        strange = [token // 1000 for token in visitor.text if token // 1000 != visitor.number]
        cause = f"{name} was told a token of visitor {(strange or [0])[0]}: a step's tokens "
        must(not strange, cause + "belong to those who sat there when it was launched")
        heard = f"{count(len(visitor.text), 'token')} of an answer of {len(right)}"
        must(visitor.text == right, f"{name} was told {heard}")
        early = visitor.number in room.early or len(visitor.text) > room.said[visitor.number]
        cause = f"{name} was told what no step had said: let everybody sit down, "
        must(not early, cause + "and pass on what a step that you waited for gives for their seat")


def _both(
    mine: Any, model: Any, slots: int, lasts: Sequence[int], every_us: float, leave: Any = None
) -> tuple[_WatchedRoom, _WatchedRoom]:
    """The room in which an answer served people, who were told right, and that of the solution."""
    mine_of, model_of = _visitors(lasts, every_us), _visitors(lasts, every_us)
    rooms = _served(mine, slots, mine_of, leave), _served(model, slots, model_of, leave)
    _told_right(mine_of, rooms[0])
    return rooms


_ROWS: Sequence[Asked] = [
    (4, [9, 3, 3, 3] * 3, 0.0), (1, [4, 2, 5], 0.0), (3, [5, 9, 2, 2, 1, 2, 3, 8, 2, 4], 0.0),
    (2, [6, 3, 2, 8, 2, 2, 5], 200.0), (4, [3, 2], 900.0),
]  # fmt: skip


def check_refill(mine: Any, model: Any) -> None:
    """Everybody is told their own text, in turn, and no seat stays empty while somebody waits."""
    for number, lasts, every_us in _ROWS:
        words = f"{count(number, 'slot')} and texts of {', '.join(map(str, lasts))} steps"
        with case(words if not every_us else f"{words}, one every {every_us:.0f} µs"):
            room, right = _both(mine, model, number, lasts, every_us)
            cause = f"they sat down in the order {room.order}: who came first sits down first"
            must(room.order == sorted(room.order), cause)
            cause = f"it took {room.number} steps, and {right.number} are enough: a seat stood "
            must(room.number <= right.number, cause + "empty while somebody waited for one")


def check_a_step_ahead(mine: Any, model: Any) -> float:
    """As `check_refill`, while the next step is launched before this one is over, and people leave."""
    for number, lasts, every_us in _ROWS:
        with case(f"{count(number, 'slot')} and texts of {', '.join(map(str, lasts))} steps"):
            _is_ahead(*_both(mine, model, number, lasts, every_us))
    for number, goes, after in ((2, 0, 2), (1, 0, 1), (3, 1, 4)):
        with case(f"{count(number, 'slot')}, and somebody who leaves in the middle"):
            _is_ahead(*_both(mine, model, number, [9, 8, 7, 3, 3, 3], 0.0, (goes, after)))
    visitors, clock = serving.people(), RoomClock()
    least = sum(visitor.last for visitor in visitors) / 8 * _GPU_US
    _told_right(visitors, _served(mine, 8, visitors, python=20.0, clock=clock))
    # Of the clock itself, as an answer could put another `now` into the room.
    cause = f"{clock.us:.0f} µs passed, and the GPU alone needs {least:.0f} µs for these texts: "
    must(clock.us >= least, cause + "have each token come from a step, and leave the clock alone")
    cause = f"it's right, but it takes {clock.us:.0f} µs: get below {_GOAL_US:,.0f} µs. Is the "
    must(clock.us < _GOAL_US, cause + "next step launched before you wait, with eight seats, too?")
    return clock.us


def _is_ahead(room: _WatchedRoom, right: _WatchedRoom) -> None:
    cause = f"{room.ahead} of {room.number} steps were launched while another one was under "
    cause += f"way, and in the solution {right.ahead} of {right.number}: launch the next one, "
    alone = room.number - room.ahead, right.number - right.ahead
    must(alone[0] <= alone[1] + 1, cause + "and wait for this one afterwards")
    cause = f"it took {room.number} steps, and {right.number} are enough: a seat stood empty "
    must(room.number <= right.number + 1, cause + "while somebody waited for one")


# ------------------------------------------------------------------ at the door
class _Desk:
    """The desk that `ask` is given."""

    def __init__(self, most: int, waiting: int = 0) -> None:
        self.most, self.line = most, [object() for _ in range(waiting)]


class _Talk:
    """A visitor who is seated at the first ask, and whose tokens come one by one; an error instead of -1."""

    def __init__(self, tokens: Sequence[int], desk: _Desk, seated: bool = True) -> None:
        self.gone, self.taken = False, 0
        self.saw: list[Any] = []  # the line, when a token was asked for first
        self._tokens, self._desk, self._seated, self._asked = deque(tokens), desk, seated, False

    async def next(self) -> int | None:
        first, self._asked = not self._asked, True
        if first:
            self.saw = [*self._desk.line]
        await agt.sleep(10)
        if first and not self._seated:
            await asyncio.Event().wait()  # for a seat, until somebody cancels
        if first and self in self._desk.line:
            self._desk.line.remove(self)
        if not self._tokens:
            return None
        if self._tokens[0] < 0:
            raise TimeoutError
        self.taken += 1
        return self._tokens.popleft()


Ask = Callable[[_Desk, _Talk], Any]


def _generator(mine: Ask, desk: _Desk, visitor: _Talk) -> AsyncGenerator[int]:
    found = mine(desk, visitor)
    cause = "`ask` should be an asynchronous generator, `async def` with a `yield` in it, and gave "
    if inspect.iscoroutine(found):
        found.close()
        raise Rejected(cause + "a coroutine")
    must(isinstance(found, AsyncGenerator), cause + brief(found))
    return found


async def _all_heard(mine: Ask) -> None:
    for tokens in ([], [5], [7, 0, 7, 3]):
        desk = _Desk(2)
        visitor = _Talk(tokens, desk)
        heard: list[int] = []
        async for token in _generator(mine, desk, visitor):
            cause = f"{visitor.taken} tokens were taken before anybody was told number {len(heard) + 1}: "
            must(visitor.taken == len(heard) + 1, cause + "yield each one as soon as it's there")
            must(not visitor.gone, "`gone` was set while somebody still listened")
            heard.append(token)
        must(heard == tokens, f"the tokens were {tokens}, and {heard} were told")
        must(visitor.saw == [visitor], "a visitor should stand in `desk.line` once")


async def _turned_away(mine: Ask) -> None:
    for most, waiting in ((2, 2), (2, 3), (0, 0)):
        desk = _Desk(most, waiting)
        visitor, line = _Talk([1], desk), [*desk.line]
        words = f"{waiting} in line and room for {most}"
        asking = asyncio.ensure_future(anext(_generator(mine, desk, visitor), None))
        long = [waiting]
        for _ in range(5):  # turns of the loop, in which others see the line
            await asyncio.sleep(0)
            long.append(len(desk.line))
        with suppress(ServerBusyError):
            cause = f"with {words}, a visitor was served that should have been turned away"
            must(await asking is None, cause)
            raise Rejected(f"with {words}, nobody was told: raise `agt.errors.ServerBusyError`")
        cause = f"with {words}, the line was {long} long, turn by turn: look first, and get in line then"
        must({*long} == {waiting}, cause)
        must(desk.line == line, f"with {words}, somebody else was taken out of the line")
    desk = _Desk(3, 2)
    visitor = _Talk([1], desk)
    try:
        async for _ in _generator(mine, desk, visitor):
            pass
    except ServerBusyError:
        raise Rejected("with 2 in line and room for 3, somebody was turned away") from None
    must(visitor.saw[-1] is visitor, "who comes last should stand at the end of `desk.line`")


async def _left(mine: Ask) -> None:
    desk = _Desk(1)
    visitor = _Talk(range(9), desk)
    talk = _generator(mine, desk, visitor)
    await anext(talk)
    await talk.aclose()
    cause = "somebody stopped listening after a token, and `visitor.gone` is still False"
    must(visitor.gone, cause)
    visitor = _Talk(range(9), desk)
    await _cancelled(mine, desk, visitor)
    cause = "the task of somebody who listens was cancelled in the middle, and `visitor.gone` "
    must(visitor.gone, cause + "is still False: `finally` runs however a block is left")
    visitor = _Talk([-1], desk)
    with suppress(TimeoutError):
        await anext(_generator(mine, desk, visitor))
    cause = "`visitor.next()` raised an error, and `visitor.gone` is still False: "
    must(visitor.gone, cause + "`finally` runs however a block is left")


async def _left_the_line(mine: Ask) -> None:
    desk = _Desk(2, 1)
    line, waiting = desk.line, [*desk.line]
    visitor = _Talk(range(9), desk, seated=False)
    await _cancelled(mine, desk, visitor)
    cause = "somebody was cancelled while in line, and still stands there: a line full of "
    must(visitor not in desk.line, cause + "people who have left would turn others away")
    cause = "`ask` gave the desk another list, and the scheduler still holds the one before: change that one"
    must(desk.line is line, cause)
    cause = "somebody was cancelled while in line, and afterwards "
    must(desk.line == waiting, cause + "those who still wait aren't in it as they were")


async def _cancelled(mine: Ask, desk: _Desk, visitor: _Talk) -> None:
    async def listens() -> None:
        async for _ in _generator(mine, desk, visitor):
            await agt.sleep(1)

    task = asyncio.create_task(listens())
    await agt.sleep(25)
    task.cancel()
    outcome: Any = (await asyncio.gather(task, return_exceptions=True))[0]
    cause = "the task of somebody who listens was cancelled, and `ask` went on: let the cancellation out"
    must(isinstance(outcome, asyncio.CancelledError), cause)


def check_front_door(mine: Any, _model: Any) -> None:
    """Tokens come one by one; a full line turns people away; whoever leaves is gone, and out of the line."""
    for part in _all_heard, _turned_away, _left, _left_the_line:
        call(part, mine)


# ------------------------------------------------------------------ two steps under way, on a device
@cache
def _model() -> Any:
    return serving.first_layers(load_language_model(), 0)  # without layers it's soon interpreted


def _talking(answer: Any, rounds: int) -> Observed:
    """Have two people talk, by steps in turn."""
    seats, stream = slots(_model(), 2).sync(), agt.create_stream()
    made = [(seats.newcomers(), agt.pinned(2, np.int32)) for _ in range(2)]
    steps = [DeviceStep(seats, stream, *pair) for pair in made]
    for slot in range(2):  # each token of their prompts is another
        steps[0].seat(slot, Visitor(slot, tuple(range(40 + slot, 60, 2)), 20))
    steps[0].start()
    steps[0].wait()
    return observe(answer, steps, rounds)


def check_early(mine: Any, model: Any) -> None:
    """What each step says is read when it's over, and while the next one is under way."""
    for rounds in (1, 2, 7):
        with case(count(rounds, "round")), tried(_talking, mine, model, rounds) as run:
            right = _talking(model, rounds)
            said = listed("talk", run.result, rounds)
            cause = f"the steps said {right.result}, and you returned {said}"
            lists = all(hasattr(tokens, "__iter__") for tokens in said)
            must(lists and [*map(list, said)] == right.result, cause)
            _soon(run, right)


def _soon(run: Observed, right: Observed) -> None:
    took, enough = (each.trace.metrics().makespan for each in (run, right))
    cause = f"it takes {took:.0f} µs, and {enough:.0f} are enough: have the next step launched before you "
    must(took <= 1.02 * enough, cause + "wait, and wait for the older of the two")


def _paired(answer: Any, talks: int) -> Observed:
    """Have people sit down in every step, one step ahead, in the two steps that an answer makes."""
    seats, stream = slots(_model(), 2).sync(), agt.create_stream()
    visitors = [Visitor(i, (40 + i, 50 + i, 60 + i), 3) for i in range(talks)]

    def a_step_ahead() -> Any:
        made: Any = answer(DeviceStep, seats, stream)
        steps: Sequence[Any] = listed("pair", made, 2)
        must(all(isinstance(step, DeviceStep) for step in steps), "`pair` should return two steps")
        cause = "both steps should be of the seats that `pair` was given"
        must(all(step.seats is seats for step in steps), cause)
        texts: list[list[int]] = []
        for i, visitor in enumerate(visitors):
            if i > 1:
                texts.append(steps[i % 2].wait())
            steps[i % 2].seat(i % 2, visitor)
            steps[i % 2].start()
        return [*texts, steps[talks % 2].wait(), steps[(talks + 1) % 2].wait()]

    run = observe(a_step_ahead)
    schedule.only_on(run.trace, stream)
    return run


_NEWCOMERS = (
    "both steps read one array of newcomers: while the first one's copy may still read it, somebody else "
    "was written into it for the second. The device says: {}"
)
_TOKENS = "the second step writes its tokens over those of the first: {}"
_STREAMS = "steps of one model on two streams run at the same time, and write the same arrays: {}"


def check_pair(mine: Any, model: Any) -> None:
    """Two steps on one stream, with newcomers and tokens of its own each."""
    with (
        about("changed while its copy", _NEWCOMERS),
        about("host reads an array", _TOKENS),
        about((StreamRaceError,), _STREAMS),
        tried(_paired, mine, model, 5) as run,
    ):
        _soon(run, _paired(model, 5))


# ------------------------------------------------------------------ whose token is it
Log = list[list[tuple[str, int]]]
_TOLD: Sequence[tuple[str, Log, dict[str, list[int]], list[str]]] = [
    ("nobody wronged", [[("A", 4), ("B", 5)], [("A", 6), ("B", 7)]], {"A": [4, 6], "B": [5, 7]}, []),
    ("A's last token told to C", [[("A", 4), ("B", 5)], [("A", 6), ("B", 7)], [("C", 8), ("B", 9)]],
     {"A": [4], "B": [5, 7, 9], "C": [6, 8]}, ["C"]),
    ("tokens changed places", [[("A", 4), ("B", 5)]], {"A": [5], "B": [4]}, ["A", "B"]),
    ("the same token twice", [[("A", 4)], [("A", 4)], [("B", 4)]], {"A": [4, 4], "B": [4, 4]}, ["B"]),
    ("somebody who was told too much", [[("A", 4)], [("B", 5)]], {"A": [4, 5], "B": []}, ["A"]),
    ("somebody who left at once", [[("A", 4), ("B", 5)], [("A", 6)]], {"B": [], "A": [4]}, []),
    ("a token in another order", [[("A", 4)], [("A", 6)]], {"A": [6, 4]}, ["A"]),
    ("somebody who never sat down", [[("A", 4)]], {"A": [4], "B": []}, []),
    ("a token left out", [[("A", 4)], [("A", 6)]], {"A": [6]}, ["A"]),
    ("somebody who never sat down, and was told a token", [[("A", 4), ("B", 5)]],
     {"C": [4], "B": [5], "A": [9]}, ["C", "A"]),
    *((f"a stranger's token at place {i} of 5", [[("A", n), ("B", 9 + n)] for n in range(5)],
       {"B": [*range(9, 14)], "A": [*range(i), 9 + i, *range(i + 1, 5)]}, ["A"]) for i in range(5)),
]  # fmt: skip


def check_strangers(mine: Any, _model: Any) -> None:
    """Those are named who were told something else than what their own seat said, in the order of `told`."""
    for words, steps, told, right in _TOLD:
        with case(words):
            given = deepcopy((steps, told))
            found: Any = call(mine, *given)
            cause = "your function changes its caller's lists: look at them, and change none"
            must(given == (steps, told), cause)
            names: Any = [*found] if isinstance(found, list | tuple) else None
            cause = f"the steps were {steps}, and told was {told}: the names are {right}, and you returned "
            must(names == right, cause + brief(found))


CHAPTER_19 = (
    Exercise("19-refill", "A seat that's never cold", "serve", check_refill),
    Exercise("19-door", "At the door", "ask", check_front_door, lets_errors_out=False),
    Exercise("19-early", "Wait for the right one", "talk", check_early),
    Exercise("19-pair", "Two steps under way", "pair", check_pair),
    Exercise("19-strangers", "Whose token is it?", "strangers", check_strangers),
    Exercise("19-ahead", "Challenge: one step ahead", "ahead", check_a_step_ahead),
)
