"""A clock that stands for the model's steps: as an H200 measured, and by the same rules as a device."""

from collections.abc import Callable
from typing import cast

import pytest

import asyncgpu_tutor as agt
from asyncgpu_course.checks.sandbox import private_device
from asyncgpu_course.exercises.answers import model as model_answer
from asyncgpu_course.exercises.chapters import EXERCISES
from asyncgpu_course.serving import (
    DeviceStep,
    SeatRoom,
    Visitor,
    clock_room,
    first_layers,
    people,
    recorded,
    recorded_row,
    token_of,
    with_seats,
)
from asyncgpu_tutor.data import load_language_model
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.language import slots

Serve = Callable[[SeatRoom], None]


CONTINUOUS, AHEAD = (model_answer(EXERCISES[name]) for name in ("19-refill", "19-ahead"))


def rate(serve: Serve, slots_: int, python: float = 0.0) -> float:
    said, took = 0, 0.0
    for seed in range(3):
        visitors = people(seed=seed)
        room = clock_room(visitors, slots_, python)
        serve(room)
        said, took = said + sum(len(visitor.text) for visitor in visitors), took + room.now()
    return 1e6 * said / took


@pytest.mark.parametrize("slots_", [8, 32])
@pytest.mark.parametrize("python", [0, 20, 50])
def test_the_clock_is_right_to_a_tenth(slots_: int, python: int) -> None:
    for way, serve in (("continuous", CONTINUOUS), ("ahead", AHEAD)):
        measured = recorded_row(slots_, way, python=python)["tokens_a_second"]
        assert rate(serve, slots_, python) == pytest.approx(measured, rel=0.1)


def test_all_ways_said_the_same_on_the_gpu() -> None:
    assert recorded()["about"]["differing"] == 0


@pytest.mark.parametrize("load", [None, 0.6, 0.9])
def test_everybody_is_told_their_own_text(load: float | None) -> None:
    for serve in (CONTINUOUS, AHEAD):
        visitors = people(60, load=load)
        room = clock_room(visitors, 8)
        serve(room)
        for visitor in visitors:
            places = range(len(visitor.prompt), visitor.last + 1)
            assert visitor.text == [token_of(visitor, place) for place in places]
            assert visitor.first is not None
            assert visitor.first > visitor.at
        assert not room.open


def test_the_log_knows_whose_each_token_is() -> None:
    visitors = people(30)
    room = clock_room(visitors, 8)
    AHEAD(room)
    own: dict[int, list[int]] = {}
    for step in room.log:
        for number, token in step:
            own.setdefault(number, []).append(token)
    assert own == {visitor.number: visitor.text for visitor in visitors}


def test_who_is_gone_before_a_seat_is_free_never_sits_down() -> None:
    visitors = [Visitor(i, (0,), 3) for i in range(3)]
    visitors[1].gone = True
    room = clock_room(visitors, 1)
    CONTINUOUS(room)
    assert [visitor.number for _, visitor, _, _ in room.sat] == [0, 2]


def test_a_room_of_a_size_that_nobody_measured_is_refused() -> None:
    with pytest.raises(
        UsageError, match="take 1, 8 or 32 slots, since nobody measured a step with 4"
    ):
        clock_room([], 4)


@pytest.mark.parametrize("slot", [-1, 8])
def test_nobody_sits_where_there_is_no_slot(slot: int) -> None:
    room = clock_room([], 8)
    with pytest.raises(UsageError, match=f"slots 0 to 7, and got {slot}"):
        room.seat(slot, Visitor(0, (0,), 5))


def test_steps_are_waited_for_in_order_and_two_at_most() -> None:
    room = clock_room([Visitor(0, (0,), 5)], 1)
    with pytest.raises(UsageError, match="none is"):
        room.wait(0)
    first = room.start()
    room.start()
    with pytest.raises(UsageError, match="no more"):
        room.start()
    with pytest.raises(UsageError, match="step 0 comes first"):
        room.wait(1)
    room.wait(first)


def test_in_an_empty_room_nobody_waits_for_a_step_that_is_for_nobody() -> None:
    for serve in (CONTINUOUS, AHEAD):
        visitors = [Visitor(i, (0,), 2, at) for i, at in enumerate((0.0, 900.0, 5000.0))]
        room = clock_room(visitors, 8)
        serve(room)
        for visitor in visitors:
            assert visitor.text == [token_of(visitor, place) for place in (1, 2)]
            came = cast(float, visitor.first) - visitor.at
            assert came == pytest.approx(cast(float, visitors[0].first))
        drawn = {n for _, _, first, last in room.sat for n in range(first, last + 1)}
        assert drawn <= room.launched.keys()


def test_a_device_and_the_clock_take_the_same_steps() -> None:
    model, lasts = first_layers(load_language_model(), 0), [3, 1, 2, 4, 1]
    with private_device():
        seats, stream = slots(model, 2).sync(), agt.create_stream()
        pairs = [(seats.newcomers(), agt.pinned(2, "int32")) for _ in range(2)]
        steps = [DeviceStep(seats, stream, *pair) for pair in pairs]
        for serve in (CONTINUOUS, AHEAD):
            with agt.record() as trace:
                room = SeatRoom(steps, 2, [Visitor(i, (40,), n) for i, n in enumerate(lasts)])
                serve(room)
            on_clock = clock_room([Visitor(i, (0,), n) for i, n in enumerate(lasts)], 8)
            on_clock.count = 2
            serve(on_clock)
            sat = [[(s, r.number, a, b) for s, r, a, b in made.sat] for made in (room, on_clock)]
            assert sat[0] == sat[1]
            agt.synchronize()
            drawn = with_seats(trace, room)
            lanes = [s for s in drawn if s.detail.get("lane")]
            assert sorted(s.name for s in lanes) == [*"ABCDE"]
            assert {s.end for s in lanes} <= {s.end for s in trace if s.kind == "d2h"}
