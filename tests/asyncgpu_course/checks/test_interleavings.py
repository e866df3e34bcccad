"""All orders of a few threads' steps."""

from collections.abc import Callable, Generator
from importlib.resources import files
from math import comb
from typing import Any

import pytest

from asyncgpu_course import interleavings

Steps = Generator[Any, Any, Any]


def steps(number: int) -> Callable[[], Steps]:
    def thread() -> Steps:
        for _ in range(number):
            yield "load", "x"

    return thread


@pytest.mark.parametrize(("most", "count"), [(0, 2), (1, 2 + 2 + 3), (200, comb(7, 3))])
def test_every_order_comes_once(most: int, count: int) -> None:
    """An interruption is a turn of another thread where the one before could have gone on."""
    orders = [run.order for run in interleavings([steps(3), steps(4)], {"x": 0}, most)]
    assert len(orders) == len(set(orders)) == count


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


def test_the_header_reads_the_link_after_the_top() -> None:
    # A tag does not help where a link is read first, which no search through orders can find.
    header = (files("asyncgpu_tutor") / "kernels/headers/hostcall.cuh").read_text(encoding="utf-8")
    looks = header.partition("int hostcall_pop(")[2]
    assert looks.index("__threadfence()") < looks.index("h.links + p")
