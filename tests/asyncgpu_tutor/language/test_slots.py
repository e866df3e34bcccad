"""The kernels of the language model, against the same in NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.data import LanguageModel, reference_say
from asyncgpu_tutor.data.language import untrained_model
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.language import Slots, chances, slots

SIZE, HEADS, LAYERS, CONTEXT, VOCABULARY = 32, 2, 2, 24, 40
Step = Callable[[Slots], agt.DeviceOp[Any]]
STEPS = pytest.mark.parametrize("step", [Slots.step, Slots.fused_step])


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return untrained_model(SIZE, HEADS, LAYERS, CONTEXT, VOCABULARY)


# Of each: prompt, place of the last token, seed.
TALKS = [([3, 4, 5], 9, 1), ([7], 23, 2), ([1] * 12, 14, 3)]
HEAT = 0.9


def test_a_seed_stands_for_the_same_numbers_everywhere(model: LanguageModel) -> None:
    """PCG's permutation (O'Neill, 2014: RXS-M-XS) of the places of one long text, a stretch for each seed."""

    def permuted(place: int) -> int:
        r = (place * 747796405 + 2891336453) % 2**32
        r = ((r >> ((r >> 28) + 4)) ^ r) * 277803737 % 2**32
        return (r >> 22) ^ r

    wanted = [(permuted(5 * CONTEXT + place) >> 8) / 2**24 for place in range(CONTEXT)]
    assert chances(model, 5).tolist() == chances(model, 5 + 2**32).tolist() == wanted


def seated(model: LanguageModel, count: int, talks: list[tuple[list[int], int, int]]) -> Slots:
    made = slots(model, count).sync()
    newcomers = made.newcomers()
    for slot, (prompt, last, seed) in enumerate(talks):
        made.seat(newcomers, slot, prompt, last, seed)
    agt.memcpy(made.arrays["heat"].borrow(), agt.pin(np.full(count, HEAT, np.float32))).sync()
    made.admit(newcomers).sync()
    return made


def read(made: Slots, name: str) -> np.ndarray[Any, Any]:
    return agt.d2h(made.arrays[name].borrow()).sync()


@STEPS
def test_all_slots_say_what_the_reference_says(
    device: Device, model: LanguageModel, step: Step
) -> None:
    made = seated(model, 4, TALKS)  # one seat stays free
    wanted = [reference_say(model, p, last, HEAT, chances(model, seed)) for p, last, seed in TALKS]
    for now in range(CONTEXT):
        if not read(made, "going")[0]:
            break
        step(made).sync()
        logits = read(made, "logits")
        for slot, (_, expected) in enumerate(wanted):
            if now < len(expected):
                np.testing.assert_allclose(logits[slot], expected[now], rtol=2e-4, atol=2e-5)
    said, texts = read(made, "said"), read(made, "text")
    assert [texts[i, : said[i] + 1].tolist() for i in range(3)] == [text for text, _ in wanted]
    assert read(made, "length").tolist() == [-1] * 4
    assert not read(made, "keys")[:, 3].any()  # nobody sat there


def test_who_else_is_there_changes_nobodys_text(sim: Device, model: LanguageModel) -> None:
    alone = reference_say(model, *TALKS[0][:2], HEAT, chances(model, 1))[0]
    made = seated(model, 1, [([9, 9], 4, 8)])  # and somebody sat in the slot before
    for _ in range(4):
        made.fused_step().sync()
    newcomers = made.newcomers()
    made.seat(newcomers, 0, *TALKS[0])
    made.admit(newcomers).sync()
    while read(made, "going")[0]:
        made.fused_step().sync()
    assert read(made, "text")[0, : read(made, "said")[0] + 1].tolist() == alone


@STEPS
def test_a_graph_of_a_step_says_the_same(device: Device, model: LanguageModel, step: Step) -> None:
    made, stream = seated(model, 2, TALKS[:2]), agt.create_stream()
    graph = step(made).graph_on(stream)
    assert graph.nodes == (7 * LAYERS + 4 if step is Slots.step else 5 * LAYERS + 3)
    while read(made, "going")[0]:
        graph.launch().sync_on(stream)
    texts, said = read(made, "text"), read(made, "said")
    for slot, (prompt, last, seed) in enumerate(TALKS[:2]):
        text, _ = reference_say(model, prompt, last, HEAT, chances(model, seed))
        assert texts[slot, : said[slot] + 1].tolist() == text


def test_the_device_draws_by_the_numbers_that_the_host_knows(
    device: Device, model: LanguageModel
) -> None:
    made = seated(model, 2, [([1], 3, 0), ([1], 3, 2**40 - 1)])
    drawn = read(made, "chance")
    assert np.array_equal(drawn, [chances(model, 0), chances(model, 2**40 - 1)])
    assert ((drawn >= 0) & (drawn < 1)).all()


def test_somebody_who_leaves_early_makes_room_and_a_new_one_brings_a_heat(
    device: Device, model: LanguageModel
) -> None:
    made = seated(model, 3, TALKS)
    made.fused_step().sync()
    newcomers = made.newcomers()
    made.leave(newcomers, 0)
    made.seat(newcomers, 1, [7, 8], 6, 4, heat=0.5)  # where another still sits
    made.admit(newcomers).sync()
    assert read(made, "going")[0] == 2
    assert read(made, "length").tolist() == [-1, 0, 1]
    heat = np.float32(HEAT)
    assert read(made, "heat").tolist() == [heat, 0.5, heat]
    while read(made, "going")[0]:
        made.fused_step().sync()
    texts, said = read(made, "text"), read(made, "said")
    for slot, (prompt, last, seed), heat in ((1, ([7, 8], 6, 4), 0.5), (2, TALKS[2], HEAT)):
        text, _ = reference_say(model, prompt, last, heat, chances(model, seed))
        assert texts[slot, : said[slot] + 1].tolist() == text


def test_who_is_in_no_seat_can_leave_it(sim: Device, model: LanguageModel) -> None:
    made = seated(model, 2, TALKS[:1])
    newcomers = made.newcomers()
    made.leave(newcomers, 1)
    made.admit(newcomers).sync()
    assert read(made, "going")[0] == 1
    with pytest.raises(UsageError, match="a slot is an integer from 0 to 1"):
        made.leave(newcomers, 2)


@pytest.mark.parametrize("heat", [-1.0, float("nan"), float("inf"), "a"])
def test_a_heat_that_is_none_is_refused(sim: Device, model: LanguageModel, heat: Any) -> None:
    made = slots(model, 2).sync()
    with pytest.raises(UsageError, match="heat is a number from 0"):
        made.seat(made.newcomers(), 0, [1], 3, heat=heat)


@pytest.mark.parametrize(
    ("slot", "prompt", "last"),
    [
        (2, [1], 3),
        (-1, [1], 3),
        (0, [], 3),
        (0, [1, 2], 1),
        (0, [1], CONTEXT),
        (0, [VOCABULARY], 3),
        (0.5, [1], 3),
        (0, [1], 2.5),
    ],
)
def test_a_seat_that_is_none_is_refused(
    sim: Device, model: LanguageModel, slot: int, prompt: list[int], last: int
) -> None:
    made = slots(model, 2).sync()
    newcomers = made.newcomers()
    with pytest.raises(UsageError):
        made.seat(newcomers, slot, prompt, last)
    assert not newcomers.any()


@pytest.mark.parametrize("count", [0, -1, 1.5])
def test_there_is_a_slot_or_more(sim: Device, model: LanguageModel, count: Any) -> None:
    with pytest.raises(UsageError, match="slots is an integer, 1 or more"):
        slots(model, count)


def test_one_launch_says_all_texts_to_the_end(device: Device, model: LanguageModel) -> None:
    talks = [([3, 4, 5], 4, 1), ([7], 2, 2), ([1] * 3, 3, 3)]
    made = seated(model, 4, talks)  # one seat stays free
    for blocks in (2, None):  # of four seats, a block takes several; and the queue is as it was
        newcomers = made.newcomers()
        for slot, talk in enumerate(talks):
            made.seat(newcomers, slot, *talk)
        made.talk(blocks).sync()
        texts, said = read(made, "text"), read(made, "said")
        for slot, (prompt, last, seed) in enumerate(talks):
            text, _ = reference_say(model, prompt, last, HEAT, chances(model, seed))
            assert texts[slot, : said[slot] + 1].tolist() == text
        assert not read(made, "going")[0]
        made.admit(newcomers).sync()


def test_a_text_may_go_on_in_one_launch(sim: Device, model: LanguageModel) -> None:
    made, (prompt, last, seed) = seated(model, 1, TALKS[:1]), TALKS[0]
    for step in (Slots.step, Slots.fused_step, Slots.step, Slots.fused_step):
        step(made).sync()
    made.talk().sync()
    text, _ = reference_say(model, prompt, last, HEAT, chances(model, seed))
    assert read(made, "text")[0, : last + 1].tolist() == text
