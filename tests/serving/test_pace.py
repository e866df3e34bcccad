"""How many requests make a launch, whatever happens."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from asyncgpu_tutor.serving.pace import LONG_US, Pace


@given(most=st.integers(1, 9), lanes=st.integers(1, 5), seen=st.lists(st.booleans(), max_size=60))
def test_there_is_always_room_and_always_something(most: int, lanes: int, seen: list[bool]) -> None:
    pace = Pace(most, lanes)
    for done in seen:
        before = pace.size
        if done:
            pace.found_done(0.0)
            assert pace.size >= before
        else:
            pace.waited()
            assert pace.size <= max(1, before // 2)
        assert 1 <= pace.size <= most


@given(most=st.integers(1, 9), lanes=st.integers(1, 5))
def test_it_grows_to_the_most_and_shrinks_to_one(most: int, lanes: int) -> None:
    pace = Pace(most, lanes)
    for _ in range(4 * lanes):
        pace.found_done(0.0)
    assert pace.size == most
    for _ in range(4):
        pace.waited()
    assert pace.size == 1


@given(lanes=st.integers(2, 5), rounds=st.integers(1, 20))
def test_lanes_that_end_together_on_a_late_device_change_nothing(lanes: int, rounds: int) -> None:
    pace = Pace(8, lanes)
    for _ in range(rounds):
        pace.waited()
        for _ in range(lanes - 1):
            pace.found_done(0.0)
        assert pace.size == 1


@given(lanes=st.integers(1, 5), wait=st.floats(0.0, 1e6))
def test_a_wait_for_the_device_is_no_work_of_the_hosts(lanes: int, wait: float) -> None:
    pace = Pace(8, lanes)
    for _ in range(4 * lanes):
        pace.found_done(0.0)
    pace.waited()
    assert pace.size == 4
    pace.found_done(wait)
    assert pace.size >= 4


@given(lanes=st.integers(1, 5), steps=st.lists(st.floats(1.0, 10.0), min_size=20, max_size=40))
def test_a_host_that_is_late_because_of_its_requests_launches_them_one_by_one(
    lanes: int, steps: list[float]
) -> None:
    pace = Pace(8, lanes)
    now = 0.0
    for _ in range(4 * lanes):  # the host has been quick before
        pace.found_done(now)
    assert pace.size == 8
    for step in steps:
        now += 8.1 * LONG_US * step
        pace.found_done(now)
    assert pace.size == 1
