"""Every order in which the steps of a few threads can happen.

A learner's lock or queue may fail in one order of steps among thousands. Running it with real threads,
however often, mostly misses that order, and a check that fails now and then teaches distrust. So a check
tries every order, which takes milliseconds as long as threads are small: three of four steps each have
34,650 orders. To go further, `most` bounds how often a thread is interrupted, since most mistakes need one
or two interruptions only. (The idea is that of CHESS: Musuvathi and Qadeer, "Iterative context bounding for
systematic testing of multithreaded programs", PLDI 2007.)

A thread is a generator, because a generator stops at each step and leaves the choice of the next one to us.
It yields one access to common memory after the other, and gets what came of it::

    "load", place                  what is there
    "store", place, value          None
    "cas", place, old, new         whether `old` was there, and now is `new`

Memory is a dictionary. A generator can't be copied, so each order begins anew from the same memory, and a
thread must do the same whenever it gets the same. A thread that spins has no end in some orders; hence the
bound on steps.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Thread = Callable[[], Generator[Any, Any, Any]]
_MOST_STEPS = 200  # of one thread; one that takes more spins


@dataclass(frozen=True)
class FinalState:
    """The end of one order."""

    order: tuple[int, ...]  # which thread made each step
    results: list[Any]  # what each thread returned
    memory: dict[Any, Any]  # what memory held in the end


def interleavings(
    threads: Sequence[Thread], memory: Mapping[Any, Any], most: int = _MOST_STEPS
) -> Iterator[FinalState]:
    """Run threads in each order of their steps with at most so many interruptions, from the same memory.

    Raises `RuntimeError` if a thread takes more than 200 steps.
    """
    todo: list[tuple[int, ...]] = [()]
    while todo:
        # The latest first, so that the list of orders to come stays short.
        outcome, others = _run_schedule(threads, dict(memory), todo.pop(), most)
        yield outcome
        todo += others


def _run_schedule(
    threads: Sequence[Thread], memory: dict[Any, Any], begun: tuple[int, ...], most: int
) -> tuple[FinalState, list[tuple[int, ...]]]:
    """One order that begins like this; and the other ways to go on, wherever there was a choice."""
    running = dict(enumerate(thread() for thread in threads))
    results: list[Any] = [None] * len(running)
    steps: dict[int, Any] = {}
    order: list[int] = []
    interrupted = 0  # how often a thread was that could have gone on
    others: list[tuple[int, ...]] = []

    def go_on(number: int, sent: Any) -> None:
        try:
            steps[number] = running[number].send(sent)
        except StopIteration as stop:
            results[number] = stop.value
            del running[number]

    for number in list(running):
        go_on(number, None)
    while running:
        if len(order) < len(begun):
            chosen = begun[len(order)]
        else:
            chosen = order[-1] if order and order[-1] in running else next(iter(running))
            if interrupted < most or not order or chosen != order[-1]:
                others += [(*order, other) for other in running if other != chosen]
        interrupted += bool(order) and chosen != order[-1] and order[-1] in running
        order.append(chosen)
        if order.count(chosen) > _MOST_STEPS:
            raise RuntimeError(f"thread {chosen} does not end")
        go_on(chosen, _step(memory, *steps[chosen]))
    return FinalState(tuple(order), results, memory), others


def _step(memory: dict[Any, Any], verb: str, place: Any, *values: Any) -> Any:
    if verb == "load":
        return memory[place]
    if verb == "store":
        (memory[place],) = values
        return None
    if verb != "cas":
        raise ValueError(f"a step is a load, a store or a cas, and not {verb!r}")
    old, new = values
    if memory[place] != old:
        return False
    memory[place] = new
    return True
