"""All orders of a few threads' steps, and the stack of hostcall.cuh in all of them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from importlib.resources import files
from math import comb
from typing import Any

import pytest

from asyncgpu_tutor.exercises import interleavings

Steps = Generator[Any, Any, Any]


def steps(number: int) -> Callable[[], Steps]:
    def thread() -> Steps:
        for _ in range(number):
            yield "load", "x"

    return thread


def test_every_order_comes_once() -> None:
    orders = [run.order for run in interleavings([steps(3), steps(4)], {"x": 0})]
    assert len(orders) == len(set(orders)) == comb(7, 3)


def test_a_lost_update_is_among_them() -> None:
    def adds() -> Steps:
        x = yield "load", "x"
        yield "store", "x", x + 1

    def swaps() -> Steps:
        while True:
            x = yield "load", "x"
            if (yield "cas", "x", x, x + 1):
                return

    assert {run.memory["x"] for run in interleavings([adds, adds], {"x": 0})} == {1, 2}
    assert {run.memory["x"] for run in interleavings([swaps, swaps, swaps], {"x": 0})} == {3}


def test_a_thread_that_spins_alone_is_reported() -> None:
    def spins() -> Steps:
        while True:
            yield "load", "x"

    with pytest.raises(RuntimeError, match="thread 0 does not end"):
        list(interleavings([spins], {"x": 0}))


# The functions of hostcall.cuh, step by step: a step is an access to memory that other threads change.
def pop(tag: int, fence: bool = True) -> Steps:
    early = (
        None if fence else (yield "load", ("link", 0))
    )  # as a GPU may do where nothing forbids it
    seen = yield "load", "top"
    while seen[1]:
        packet = seen[1] - 1
        link = (yield "load", ("link", packet)) if fence or packet else early
        following = (seen[0] + tag, link)
        if (yield "cas", "top", seen, following):
            return packet
        seen = yield "load", "top"  # atomicCAS has returned it: one step more, so more orders
    return None


def push(packet: int, tag: int) -> Steps:
    seen = yield "load", "top"
    while True:
        yield "store", ("link", packet), seen[1]
        if (yield "cas", "top", seen, (seen[0] + tag, packet + 1)):
            return
        seen = yield "load", "top"


def owners(tag: int, packets: int, *programs: str, fence: bool = True) -> tuple[int, int]:
    """Of how many orders there are, in how many a packet has two owners in the end, or none.

    A program is letters: `+` takes a packet, `-` gives the first of those back that the thread holds.
    """

    def thread(program: str) -> Callable[[], Steps]:
        def run() -> Steps:
            held: list[int] = []
            for letter in program:
                if letter == "+":
                    packet = yield from pop(tag, fence)
                    held += [packet] if packet is not None else []
                elif held:
                    yield from push(held.pop(0), tag)
            return held

        return run

    links = {("link", p): (p + 2) % (packets + 1) for p in range(packets)}
    number = wrong = 0
    for outcome in interleavings([thread(p) for p in programs], {"top": (0, 1), **links}):
        number += 1
        found = [packet for held in outcome.results for packet in held]
        top = outcome.memory["top"][1]
        while top and len(found) <= packets:
            found.append(top - 1)
            top = outcome.memory["link", top - 1]
        wrong += sorted(found) != list(range(packets))
    return number, wrong


CASES = [(3, "+", "++-"), (2, "+", "++-"), (2, "+-", "+"), (2, "+", "+", "+"), (1, "+-", "+")]


@pytest.mark.parametrize("case", CASES)
def test_each_packet_has_one_owner_in_every_order(case: tuple[Any, ...]) -> None:
    number, wrong = owners(1, *case)
    assert number > 10
    assert wrong == 0


def test_without_the_tag_there_are_orders_in_which_one_has_two() -> None:
    number, wrong = owners(0, 3, "+", "++-")
    assert 0 < wrong < number / 10


def test_nor_does_the_tag_help_where_the_link_is_read_before_the_top() -> None:
    _, wrong = owners(1, 3, "+", "++-", fence=False)
    assert wrong > 0

    header = (files("asyncgpu_tutor") / "kernels/headers/hostcall.cuh").read_text(encoding="utf-8")
    looks = header.partition("int hostcall_pop(")[2]
    assert looks.index("__threadfence()") < looks.index("h.links + p")
