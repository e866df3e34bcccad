"""Exercises of 08_profiling: hints, and why the solution is right. `chapter_08_checks` checks them."""

from __future__ import annotations

from asyncgpu_tutor.exercises.chapter_08_checks import (
    check_big_kernel,
    check_few_streams,
    check_hidden_wait,
    check_in_the_loop,
    check_null_stream,
    check_pageable,
    check_warm,
    hostile_in_flight,
    hostile_in_the_loop,
    hostile_pageable,
)
from asyncgpu_tutor.exercises.chapter_08_ranges import check_annotated
from asyncgpu_tutor.exercises.exercise import Exercise

__all__ = ["EXERCISES"]

EXERCISES = (
    Exercise(
        name="08-annotate",
        title="Ranges around an `await`",
        answer="handle",
        check=check_annotated,
        hints=(
            "Two ranges, one inside of the other. Which of the two has an `await` in it?",
            (
                '`agt.ranges.span("prepare")` for the one without an `await`, '
                '`agt.ranges.across("request")` for the one with.'
            ),
            (
                '`with agt.ranges.across("request"):` around both lines, and in it `with '
                'agt.ranges.span("prepare"):` around the first.'
            ),
        ),
        explanation="`across` opens a range that goes by a number, so it does not matter who opens or "
        "closes others meanwhile. And `with` closes it, also when the request fails.",
    ),
    Exercise(
        name="08-case-a",
        title="Case A",
        answer="case_a",
        check=check_hidden_wait,
        hostile=hostile_in_flight,
        hints=(
            "Look at the host's lane. What does it do between two calls for a copy to the device?",
            "Which line of the program keeps the host waiting? It need not be one that says `await`.",
            (
                '`settle()` calls `agt.synchronize()`. The culprit is `"hidden synchronisation"`; the '
                "program is right without that line. Awaiting the tasks at the end is wait enough."
            ),
        ),
        explanation="One line in a helper, and four streams take turns. Waits hide in logging, in "
        "assertions on results, in a `.item()` or a `print` of a device value, in an allocator that runs "
        "out. On the host's lane all of them look the same.",
    ),
    Exercise(
        name="08-case-b",
        title="Case B",
        answer="case_b",
        check=check_few_streams,
        hostile=hostile_in_flight,
        hints=(
            "How many streams are there, how many operations, and how much of the device does one need?",
            (
                "Each kernel is one block. A device has room for many of these at once, but a stream runs "
                "one after the other."
            ),
            (
                '`"too few streams"`. `agt.StreamPoolRoundRobin(len(ops))` gives each operation a stream '
                "of its own."
            ),
        ),
        explanation="An operation that stands behind another on its stream waits for it, whether it needs "
        "it or not. Streams cost little, so have as many as there is room for. (In CUDA there is one more "
        "limit below: streams share hardware queues, whose number `CUDA_DEVICE_MAX_CONNECTIONS` sets.)",
    ),
    Exercise(
        name="08-case-c",
        title="Case C",
        answer="case_c",
        check=check_null_stream,
        hostile=hostile_in_flight,
        hints=(
            "Read the numbers of the lanes.",
            "Where did stream 0 come from? No policy deals it out.",
            (
                '`"null stream"`: `default_stream` is number 0. Leave the choice to the policy, for all of '
                "them: `await asyncio.gather(*ops)`."
            ),
        ),
        explanation="Here it cost some overlap, as two operations shared a stream. In a program whose other "
        "streams are blocking ones (CUDA's default, and CuPy's) it would have cost all of it. Whatever "
        "names no stream goes there, so look for it in libraries, too.",
    ),
    Exercise(
        name="08-case-d",
        title="Case D",
        answer="case_d",
        check=check_pageable,
        hostile=hostile_pageable,
        hints=(
            "Compare the calls that enqueue a copy with those that launch something. How long are they?",
            "In which kind of memory is what `np.full` or `np.load` gives you?",
            (
                '`"pageable copy"`: `make(agt.pin(x))` in place of `make(x)`. Each needs a pinned array of '
                "its own, as all are in flight together."
            ),
        ),
        explanation="The copy from pageable memory was staged by the host, so the host was inside of the "
        "call all the while. In a program that runs for long, pin a few buffers once and fill them in "
        "turn: pinning itself takes time.",
    ),
    Exercise(
        name="08-case-e",
        title="Case E",
        answer="case_e",
        check=check_warm,
        hints=(
            "Most of the time is one call. What is special about it?",
            "Would a second recording look the same? The trace should show the usual round, not the first.",
            (
                '`"lazy module loading"`: run `await make()` once before the recording begins, to its end, '
                "and all rounds inside of it as before."
            ),
        ),
        explanation="What happens once must not be counted to what happens a thousand times. Loading is one "
        "such thing; memory pools that grow, clocks that rise and caches that fill are others. (And if the "
        "first request matters to you, warm up before you open the doors.)",
    ),
    Exercise(
        name="08-case-f",
        title="Case F",
        answer="case_f",
        check=check_in_the_loop,
        hostile=hostile_in_the_loop,
        hints=(
            "Which calls come back in every round, although nothing in the round is new?",
            (
                "`agt.memcpy(target, x)` copies into an array that is there already. Lend it: "
                "`room.borrow()`."
            ),
            (
                '`"allocation in the loop"`: `room = await agt.zeros(x.shape, name="state")` before the '
                'loop, and `agt.memcpy(room.borrow(), x).first()` in place of `agt.h2d(x, "state")`.'
            ),
        ),
        explanation="The arrays of this course come from a pool in the order of the stream, so each of these "
        "calls is short. A plain `cudaMalloc` is not, and `cudaFree` may wait for the whole device. What "
        "is the same in every round belongs in front of the loop.",
    ),
    Exercise(
        name="08-case-g",
        title="Case G",
        answer="case_g",
        check=check_big_kernel,
        hints=(
            "For most of the time one thing happens. What else could happen meanwhile, and why does it not?",
            (
                "The copy back waits for the kernel, the kernel for the copy to the device: they are one "
                "operation. With the numbers in parts, there would be several."
            ),
            (
                '`"one big kernel"`: `parts = np.array_split(x, 4)`, `asyncio.gather` of `job(part)` for '
                "each, and `np.concatenate` of what comes back."
            ),
        ),
        explanation="The kernel takes as long as before, all parts together. But while one part is computed, "
        "the next one is copied to the device and the last one back. More than a few parts bring nothing "
        "more, and cost a launch each. What is left is the kernel itself: a case for the microscope.",
    ),
)
