"""Exercises of 02_streams_and_events: hints and explanations. `chapter_02_checks` checks them."""

from __future__ import annotations

from asyncgpu_tutor.exercises.chapter_02_checks import (
    check_chunked,
    check_fewest_events,
    check_fork_join,
    check_order_the_race,
    check_two_buffers,
    hostile_chunked,
    hostile_two_buffers,
)
from asyncgpu_tutor.exercises.exercise import Exercise

__all__ = ["EXERCISES"]

EXERCISES = (
    Exercise(
        name="02-order-the-race",
        title="Order the race",
        answer="in_order",
        check=check_order_the_race,
        hints=(
            "`second` has to wait for a point on `one`: the one behind `first`.",
            (
                "`one.record()` marks the end of what is on `one` *now*. `two.wait_event(mark)` holds back "
                "what is put on `two` *from now on*. So where do these two lines belong?"
            ),
            (
                "`first.async_on(one)`, then `two.wait_event(one.record())`, then `return "
                "second.async_on(two)`."
            ),
        ),
        explanation="Record behind the first, wait in front of the second. The host has made four calls "
        "and waited for none of them; it is stream `two` that waits.",
    ),
    Exercise(
        name="02-fork-join",
        title="Fork and join",
        answer="fork_join",
        check=check_fork_join,
        hints=(
            "One event for the fork, and one for each branch for the join.",
            (
                "The fork: `ready = main.record()` behind `prepare`; each of the streams waits for it before "
                "it gets its branch. One event can be waited for by many."
            ),
            (
                "In the loop, after the branch was put on its stream: `joins.append(stream.record())`. After "
                "the loop `main` waits for all of `joins`, and then gets `combine`."
            ),
        ),
        explanation="All branches wait for *one* event, and the join waits for one of each branch. Nothing "
        "orders the branches among themselves, so they may overlap. `agt.overlap` does just this.",
    ),
    Exercise(
        name="02-two-buffers",
        title="Two buffers in turn",
        answer="upload_all",
        check=check_two_buffers,
        hostile=hostile_two_buffers,
        hints=(
            "Before buffer `i % 2` is filled again, its last copy has to be over: that of chunk `i - 2`.",
            (
                "`stream.record()` right behind the copy is an event for this copy. `event.synchronize()` is "
                "how the *host* waits for it, and for nothing that comes after."
            ),
            (
                "Keep the events in a list. At the top of the loop: `if i >= 2: "
                "events[i - 2].synchronize()`. And `stream.synchronize()` at the very end."
            ),
        ),
        explanation="Waiting for the event of chunk `i - 2` leaves the copy of chunk `i - 1` under way, "
        "and that is what goes on while you fill. This is called double buffering.",
    ),
    Exercise(
        name="02-chunked-overlap",
        title="A pipeline of chunks",
        answer="pipeline",
        check=check_chunked,
        hostile=hostile_chunked,
        hints=(
            "Chunk `i` goes on `streams[i % len(streams)]`. Keep what `async_on` returns, and wait later.",
            (
                "The table is uploaded on one of the streams. The others know nothing of that, unless an "
                "event tells them."
            ),
            (
                "After all chunks: `stream.synchronize()` for each stream, then "
                "`[result.numpy() for result in results]`."
            ),
        ),
        explanation="While one stream computes, another copies: each stream is in order, and between them "
        "only the table is. The host waits when everything is on its way, and not before.",
    ),
    Exercise(
        name="02-minimum-events",
        title="As few events as possible",
        answer="enqueue",
        check=check_fewest_events,
        hints=(
            "Which needs does the order *within* the streams take care of? They cost nothing.",
            (
                "`e` needs `b`. But `c` is before `e` on the same stream, and `c` needs `b` as well: what "
                "made `c` wait makes `e` wait."
            ),
            (
                "Three waits: `c` for `b`, `d` for `a`, `f` for `c`. Record each event right behind the work "
                "that it is for, before more is put on that stream."
            ),
        ),
        explanation="An order follows from others: what comes before `c` comes before all that is behind "
        "`c`. And an event that is recorded too late orders more than was asked for.",
    ),
)
