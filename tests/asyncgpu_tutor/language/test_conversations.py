"""Many people talk to one model: each hears their own text, and every wait ends."""

import asyncio
import gc
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.data import LanguageModel, reference_say
from asyncgpu_tutor.data.language import untrained_model
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.errors import DeviceError, ServerBusyError, UsageError
from asyncgpu_tutor.language import Conversations, chances
from simgpu.cuda_c.lockstep.team import LaunchState, Team

MODEL = untrained_model(32, heads=1, layers=1, context=10, vocabulary=27)
HEAT = 0.9


def reference(prompt: list[int], most: int, seed: int, model: LanguageModel = MODEL) -> list[int]:
    last = len(prompt) - 1 + most
    return reference_say(model, prompt, last, HEAT, chances(model, seed))[0][len(prompt) :]


def say(engine: Conversations, seed: int, most: int = 9) -> AsyncGenerator[int, None]:
    return engine.say([1], most=most, seed=seed, heat=HEAT)


async def all_of(tokens: AsyncGenerator[int, None]) -> list[int]:
    return [token async for token in tokens]


LONG = next(seed for seed in range(99) if len(reference([1], 9, seed)) == 9)


# ---------------------------------------------------------------------- whose token is it?
@pytest.mark.parametrize(("slots", "ahead"), [(1, 1), (3, 0), (3, 1), (3, 2)])
async def test_each_hears_their_own_text_whatever_the_batch(
    device: Device, slots: int, ahead: int
) -> None:
    draw = random.Random(slots)
    asked = [
        ([draw.randrange(1, 27) for _ in range(draw.choice([1, 1, 4]))], draw.choice([1, 2, 6]), i)
        for i in range(9)
    ]
    async with Conversations(MODEL, slots=slots, ahead=ahead) as engine:
        texts = await asyncio.gather(
            *(all_of(engine.say(p, most=m, seed=s, heat=HEAT)) for p, m, s in asked)
        )
    assert texts == [reference(*one) for one in asked]
    ended = [text[-1] == 0 for text in texts]
    assert any(ended)  # so that a step was on its way when the host read it
    assert not all(ended)


async def test_a_text_is_what_a_paragraph_may_begin_with(sim: Device) -> None:
    async with Conversations(MODEL, slots=1) as engine:
        assert await all_of(engine.say("ab", most=3, seed=2, heat=HEAT)) == reference(
            [0, 1, 2], 3, 2
        )
        longest = await all_of(engine.say([1], seed=LONG, heat=HEAT))
    assert longest == reference([1], MODEL.context - 1, LONG)


async def test_nobody_waits_for_a_slow_reader(sim: Device) -> None:
    async with Conversations(MODEL, slots=1) as engine:
        slow = say(engine, LONG)
        heard = [await anext(slow)]
        assert await all_of(say(engine, 4)) == reference([1], 9, 4)  # on the slow one's seat
        assert heard + await all_of(slow) == reference([1], 9, LONG)


# ---------------------------------------------------------------------- those who go
async def test_a_seat_that_is_left_has_somebody_else_in_the_next_step(sim: Device) -> None:
    async with Conversations(MODEL, slots=1, ahead=0) as engine:
        first = say(engine, LONG)
        await anext(first)
        second = asyncio.create_task(anext(say(engine, 4)))
        await anext(first)
        assert (engine.seated, engine.waiting) == (1, 1)
        before = len(engine.steps)
        await first.aclose()
        assert await second == reference([1], 9, 4)[0]
        seeds = [talk.seed for step in engine.steps for talk in step.seats if talk is not None]
        assert seeds[before - 1 : before + 2] in ([LONG, 4, 4], [LONG, LONG, 4])
        assert set(seeds[:before]) == {LONG}


@pytest.mark.parametrize("how", ["closed", "cancelled", "forgotten"])
async def test_whoever_goes_makes_room(sim: Device, how: str) -> None:
    async with Conversations(MODEL, slots=1, waiting=0) as engine:
        for seed in (4, 5):  # again and again
            talk = say(engine, LONG)
            await anext(talk)
            if how == "closed":
                await talk.aclose()
            elif how == "cancelled":
                task = asyncio.ensure_future(all_of(talk))
                await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
            else:
                del talk
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            assert (engine.seated, engine.waiting) == (0, 0)
            assert await all_of(say(engine, seed, 3)) == reference([1], 3, seed)


async def test_one_that_was_never_asked_for_a_token_has_no_place(sim: Device) -> None:
    async with Conversations(MODEL, slots=1, waiting=0) as engine:
        unasked = [say(engine, seed) for seed in range(5)]
        assert await all_of(say(engine, 4)) == reference([1], 9, 4)
        assert await all_of(unasked[2]) == reference([1], 9, 2)


async def test_too_many_are_turned_away(sim: Device) -> None:
    async with Conversations(MODEL, slots=2, waiting=1) as engine:
        came = [asyncio.create_task(all_of(say(engine, seed))) for seed in range(5)]
        told = await asyncio.gather(*came, return_exceptions=True)
        assert told[:3] == [reference([1], 9, seed) for seed in range(3)]
        for error in told[3:]:
            assert isinstance(error, ServerBusyError)
            assert "places to wait for one (1) are taken" in str(error)
        assert await all_of(say(engine, 7)) == reference([1], 9, 7)


async def test_a_crowd_that_comes_and_goes(device: Device) -> None:
    draw = random.Random(1)
    async with Conversations(MODEL, slots=8, waiting=99) as engine:

        async def one(seed: int, patience: int) -> tuple[list[int], bool]:
            await asyncio.sleep(0)
            heard = list[int]()
            async with aclosing(say(engine, seed, 6)) as talk:
                if patience == 0:
                    return heard, False
                async for token in talk:
                    heard.append(token)
                    if len(heard) == patience:
                        return heard, False
            return heard, True

        crowd = [(seed, draw.choice([0, 1, 3, 99, 99])) for seed in range(40)]
        talks = [asyncio.create_task(one(*who)) for who in crowd]
        for talk in talks[::7]:
            await asyncio.sleep(0)
            talk.cancel()
        ends = await asyncio.gather(*talks, return_exceptions=True)
        assert (engine.seated, engine.waiting) == (0, 0)
        going = engine._made.arrays["going"]
        await all_of(say(engine, 0, 1))  # whoever left is sent away with the next step
        assert (await agt.d2h(going.borrow()))[0] == 0
    for (seed, _), end in zip(crowd, ends, strict=True):
        if not isinstance(end, BaseException):
            heard, whole = end
            text = reference([1], 6, seed)
            assert heard == (text if whole else text[: len(heard)])


# ---------------------------------------------------------------------- every wait ends
async def test_steps_leave_nothing_to_the_garbage_collector(sim: Device) -> None:
    """A step of the simulated device has megabytes, and a server takes thousands of them."""

    def kept() -> tuple[int, int]:
        alive = gc.get_objects()
        return sum(type(o) in (LaunchState, Team) for o in alive), agt.in_flight()

    async with Conversations(MODEL, slots=2) as engine:
        gc.collect()
        gc.disable()
        try:
            before = kept()
            for seed in range(6):
                await asyncio.gather(*(all_of(say(engine, seed, most)) for most in (2, 3, 5)))
            assert all(a <= b for a, b in zip(kept(), before, strict=True))
        finally:
            gc.enable()


async def test_an_error_of_the_device_is_told_to_all(sim: Device) -> None:
    async with Conversations(MODEL, slots=2) as engine:
        first = say(engine, LONG)
        await anext(first)
        others = [asyncio.create_task(all_of(say(engine, seed))) for seed in range(4)]
        wild = np.full(2, 10**6, np.int32)
        await agt.memcpy(engine._made.arrays["token"].borrow(), agt.pin(wild)).schedule(
            agt.SingleStream(engine._stream)
        )
        errors = await asyncio.gather(all_of(first), *others, return_exceptions=True)
        assert all(isinstance(error, DeviceError) for error in errors)
        assert len(set(map(id, errors))) == len(errors)  # notes are added to each alone
        assert "embed" in str(errors[0])
        with pytest.raises(DeviceError, match="embed"):
            await anext(say(engine, 1))
    async with Conversations(MODEL, slots=2) as engine:  # the device goes on
        assert await all_of(say(engine, 4)) == reference([1], 9, 4)


@pytest.mark.parametrize("error", [None, KeyError])
async def test_the_end_of_the_block_ends_every_wait(
    device: Device, error: type[Exception] | None
) -> None:
    engine, talks = Conversations(MODEL, slots=2), list[asyncio.Task[Any]]()
    try:
        async with engine:
            talks += [asyncio.create_task(all_of(say(engine, LONG))) for _ in range(5)]
            early, unread = say(engine, LONG), say(engine, LONG)
            await anext(early)
            if error is not None:
                raise error
    except KeyError:
        assert error is KeyError
    steps = len(engine.steps)
    ends = await asyncio.gather(*talks, all_of(early), all_of(unread), return_exceptions=True)
    for end in ends:
        assert isinstance(end, UsageError)
        assert "closed" in str(end)
    assert (engine.seated, engine.waiting, len(engine.steps)) == (0, 0, steps)
    async with engine:  # and may be opened again
        assert await all_of(say(engine, 4)) == reference([1], 9, 4)


async def test_a_program_that_is_cancelled_ends_every_wait(sim: Device) -> None:
    talks, begun = list[asyncio.Task[Any]](), asyncio.Event()

    async def program() -> None:
        async with Conversations(MODEL, slots=1) as engine:
            talks.extend(asyncio.create_task(all_of(say(engine, LONG))) for _ in range(3))
            await anext(say(engine, LONG))
            begun.set()
            await asyncio.Event().wait()

    running = asyncio.create_task(program())
    await begun.wait()
    running.cancel()
    await asyncio.wait([running, *talks])
    assert running.cancelled()
    assert all(isinstance(talk.exception(), UsageError) for talk in talks)


def test_another_loop_is_told_so(sim: Device) -> None:
    async def elsewhere(engine: Conversations) -> None:
        with pytest.raises(UsageError, match="another event loop"):
            await anext(say(engine, 1))

    async def here() -> None:
        async with Conversations(MODEL, slots=1) as engine:
            await asyncio.to_thread(asyncio.run, elsewhere(engine))
            assert await all_of(say(engine, 4)) == reference([1], 9, 4)

    asyncio.run(here())


def test_they_may_be_opened_again_in_another_loop(sim: Device) -> None:
    engine = Conversations(MODEL, slots=1)

    async def once() -> list[int]:
        async with engine:
            await asyncio.sleep(0)  # so that the engine waits for somebody
            return await all_of(say(engine, 4))

    assert [asyncio.run(once()) for _ in range(2)] == [reference([1], 9, 4)] * 2


# ---------------------------------------------------------------------- what makes no sense
@pytest.mark.parametrize(
    ("prompt", "options", "told"),
    [
        ([], {}, "prompt of 0"),
        ([1] * 10, {}, "no room"),
        ("a" * 9, {}, "no room"),
        ([27], {}, "tokens are 0 to 26"),
        ([-1], {}, "tokens are 0 to 26"),
        ("?", {}, "never seen"),
        ([1], {"most": 0}, "at least one"),
        ([1], {"heat": -1.0}, "heat"),
        ([1], {"heat": float("nan")}, "heat"),
        ([1], {"heat": None}, "heat is a number from 0 to 1000, and got None"),
        ([1], {"heat": "a"}, "heat is a number from 0 to 1000, and got 'a'"),
        ([1.5], {}, "a token is an integer, and got 1.5"),
        ([1], {"seed": 0.5}, "the seed is an integer, and got 0.5"),
        ([1], {"most": 2.5}, "most is an integer, and got 2.5"),
    ],
)
async def test_what_cannot_be_said_is_refused_at_once(
    sim: Device, prompt: Any, options: dict[str, Any], told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        Conversations(MODEL).say(prompt, **options)


@pytest.mark.parametrize("options", [{"slots": 0}, {"waiting": -1}, {"ahead": -1}])
def test_there_is_a_slot_or_more(options: dict[str, int]) -> None:
    with pytest.raises(UsageError, match=r"is an integer, [01] or more"):
        Conversations(MODEL, **options)


async def test_nothing_is_said_outside_of_the_block(sim: Device) -> None:
    Conversations(MODEL).hang_up()
    with pytest.raises(UsageError, match="async with"):
        await anext(say(Conversations(MODEL), 1))
