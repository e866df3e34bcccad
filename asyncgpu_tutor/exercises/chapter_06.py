"""Exercises of 06_await: hints, and why the solution is right. `chapter_06_checks` checks them."""

from __future__ import annotations

from asyncgpu_tutor.exercises.chapter_06_checks import (
    check_as_they_come,
    check_at_most,
    check_difference,
    check_prepare,
    check_responsive,
    check_spawn_safe,
    check_three_arms,
    hostile_as_they_come,
)
from asyncgpu_tutor.exercises.exercise import Exercise

__all__ = ["EXERCISES"]

EXERCISES = (
    Exercise(
        name="06-difference",
        title="Measure the difference",
        answer="difference",
        check=check_difference,
        hints=(
            "Two recordings: `with agt.record() as first:` and `with agt.record() as second:`.",
            (
                "In the first block a loop with `make(i).sync()`. In the second one "
                "`await asyncio.gather(...)` of all of them."
            ),
            (
                "`await asyncio.gather(*[make(i) for i in range(n)])`, and in the end "
                "`return first.metrics().makespan / second.metrics().makespan`."
            ),
        ),
        explanation="Both makespans come from traces, so the quotient is the same each time on the "
        "simulated device, however busy your computer is. A stopwatch would have measured Python, too.",
    ),
    Exercise(
        name="06-prepare",
        title="Prepare the next batch meanwhile",
        answer="pipeline",
        check=check_prepare,
        hints=(
            (
                "Prepare batch 0 before the loop. In the loop: start batch i, prepare batch i + 1, wait "
                "for batch i."
            ),
            (
                "`agt.spawn` makes a task, but the task gets its first turn only when you let go of the "
                "event loop: `await asyncio.sleep(0)`."
            ),
            (
                "In the loop: `task = agt.spawn(process(x))`, `await asyncio.sleep(0)`, "
                "`x = prepare(i + 1)` unless this was the last one, `results.append(await task)`."
            ),
        ),
        explanation="It is the *double buffering* of every data loader: the host is one batch ahead of the "
        "device. The `sleep(0)` is what makes it so. Without it the task would have been submitted "
        "after the preparation, not before.",
    ),
    Exercise(
        name="06-responsive",
        title="Keep the heart beating",
        answer="with_heartbeat",
        check=check_responsive,
        hints=(
            "`sync` is out of the question, and a plain `await op` leaves you no place to beat from.",
            (
                "Make a task of the operation. `task.done()` says whether it has ended, without "
                "waiting. `await agt.sleep(50)` lets others run for 50 µs."
            ),
            (
                "`task = agt.spawn(op)`, then `while not task.done():` with `beat()` and "
                "`await agt.sleep(50)` in it, then `return await task`."
            ),
        ),
        explanation="Each `await` in the loop is a place where others get a turn: the operation's task to "
        "notice that its result is there, and whatever else your program has to do. A second task that "
        "beats for ever, and is cancelled in the end, does as well.",
    ),
    Exercise(
        name="06-spawn-safe",
        title="Weights that outlive their function",
        answer="start",
        check=check_spawn_safe,
        hints=(
            "Read what the error says: it names what to pass in place of the borrowed array.",
            "Each task needs a handle of its own that keeps the array alive: a shared one.",
            "One line is enough: `w = w.share()` at the top, and `w` in place of `w.borrow()`.",
        ),
        explanation="`start` returns long before the tasks are done. A shared handle in each of them keeps "
        "the weights where they are, whoever else lets go, and the memory is free when the last of them "
        "is done.",
    ),
    Exercise(
        name="06-three-arms",
        title="Three endings, told apart",
        answer="reports",
        check=check_three_arms,
        hints=(
            (
                "Write a coroutine for *one* operation, with a `try` in it that has three endings, and "
                "`gather` as many of these as there are operations."
            ),
            (
                "Python takes the first `except` that fits. `agt.DeviceError` is an `Exception`, too, so "
                "it has to come first."
            ),
            (
                '`try: return "done", await op`, then `except agt.DeviceError as error: return '
                '"device", error`, then `except Exception as error: return "program", error`.'
            ),
        ),
        explanation="The `try` is within the task, so an error ends this one operation and no other. And "
        "`except Exception` is as wide as it should get: a cancellation is a `BaseException`, so that it "
        "can pass.",
    ),
    Exercise(
        name="06-cancel",
        title="Wait, but not for ever",
        answer="at_most",
        check=check_at_most,
        hints=(
            "You wait for two things here, the operation and the time. Whichever is first decides.",
            (
                "Two tasks: `agt.spawn(op)` and `asyncio.create_task(agt.sleep(us))`. `asyncio.wait` can "
                "return when the first of them is done: see `help(asyncio.wait)`."
            ),
            (
                "`await asyncio.wait([task, clock], return_when=asyncio.FIRST_COMPLETED)`, then "
                "`clock.cancel()`. If `task.done()`, return `task.result()`; if not, `task.cancel()`."
            ),
        ),
        explanation="Cancelling ends the wait, and nothing else: the device finishes what is in its queue, "
        "and the arrays live until then. In a program on a GPU alone `asyncio.timeout` does this for you, "
        "with the clock on the wall.",
    ),
    Exercise(
        name="06-as-completed",
        title="First come, first served",
        answer="as_they_come",
        check=check_as_they_come,
        hostile=hostile_as_they_come,
        hints=(
            "In the starter, where is the host while the device works on the last operation?",
            "`asyncio.as_completed(tasks)` gives what to await next, in the order in which it is done.",
            (
                "`tasks = [agt.spawn(op) for op in ops]`, then `for next_one in "
                "asyncio.as_completed(tasks): use(await next_one)`."
            ),
        ),
        explanation="All are in flight from the start. What is done first is used first, while the device "
        "works on the rest: the host's part overlaps the device's.",
    ),
)
