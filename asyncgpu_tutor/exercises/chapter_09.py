"""Exercises of 09_cuda_graphs: their hints, and why the solutions are right."""

from __future__ import annotations

from asyncgpu_tutor.exercises.chapter_09_checks import (
    check_branches,
    check_break_even,
    check_first_graph,
    check_layers,
    check_no_allocation,
    check_shapes,
    check_token_loop,
    hostile_token_loop,
)
from asyncgpu_tutor.exercises.exercise import Exercise

__all__ = ["EXERCISES"]

EXERCISES = (
    Exercise(
        name="09-first-graph",
        title="Your first graph",
        answer="replay",
        check=check_first_graph,
        hints=(
            (
                "Two acts: capture once, before the loop; launch in the loop. How does one start an "
                "operation without waiting for it?"
            ),
            "`graph.launch()` is an operation, and does nothing by itself. `.async_on(stream)` submits it.",
            (
                "`graph = op.graph_on(stream)`; in the loop `graph.launch().async_on(stream)`; then "
                "`stream.synchronize()` and `return graph`."
            ),
        ),
        explanation="The capture has cost as much as a run or two, once. After that each run is one call, "
        "and the stream keeps the runs in order, so one wait at the end is enough.",
    ),
    Exercise(
        name="09-token-loop",
        title="A token loop",
        answer="run_tokens",
        check=check_token_loop,
        hostile=hostile_token_loop,
        hints=(
            (
                "Two things are missing. The graph reads `x`, and nobody has put the token there. And "
                "whose is the array that a launch yields?"
            ),
            "`graph.update(agt.memcpy(x.borrow(), token))` before the launch.",
            "The array is the graph's, and the next launch writes to it: keep `answer.copy()`.",
        ),
        explanation="The update and the launch follow each other on the device, so one `await` for both is "
        "enough. The copy on the host is the price of fixed addresses. Where a result is used at once, and "
        "not kept, you can do without.",
    ),
    Exercise(
        name="09-branches",
        title="Branches",
        answer="side_by_side",
        check=check_branches,
        hints=(
            "`zip` is about results. Which combinator is about time?",
            "Arms of `agt.overlap` become branches of the graph.",
        ),
        explanation="`overlap` forks to a stream for each arm, and joins them. The capture notes who waits "
        "for whom, and that is all that a graph knows of streams: its branches have no order between them.",
    ),
    Exercise(
        name="09-no-allocation",
        title="Fit for a graph",
        answer="capturable",
        check=check_no_allocation,
        hints=(
            (
                "Three steps make an array: `h2d`, `zeros` and `to_host`. For each of them there is one "
                "already: `x`, `y` and `out`."
            ),
            "`agt.memcpy(x.borrow(), slot)` writes into `x`, `agt.d2h(y.borrow(), out=out)` into `out`.",
            (
                "`agt.zip` puts the three steps in order: copy, `agt.relu(n, x.borrow(), "
                "y.borrow().partition(256))`, copy."
            ),
        ),
        explanation="Nothing is made any more, so all addresses are known when the graph is captured. The "
        "slot is read at each launch, and the result is always in `out`. `op.prepare().launch()` would have "
        "done it without rewriting, with arrays of its own.",
    ),
    Exercise(
        name="09-layers",
        title="The gain, layer by layer",
        answer="speedups",
        check=check_layers,
        hints=(
            (
                "Two recordings for each count: `with agt.record() as trace: ...`. The graph has to be there "
                "before the second begins."
            ),
            (
                "`trace.metrics().makespan` is the time from the first start to the last end, calls and "
                "waiting included."
            ),
            "`gains[count] = by_calls.metrics().makespan / by_graph.metrics().makespan`",
        ),
        explanation="A run of the graph has a fixed part as well: its one call, the start, the wait. With "
        "one layer that is nearly all of its time. The more layers there are, the less it counts, and the "
        "gain grows towards the ratio of one call to one small kernel.",
    ),
    Exercise(
        name="09-break-even",
        title="From how many runs on?",
        answer="break_even",
        check=check_break_even,
        hints=(
            (
                "After `runs` runs, the calls have taken `runs * by_calls`, and the graph "
                "`capture + runs * by_graph`."
            ),
            "Each run saves `by_calls - by_graph`. What if that is nothing, or less?",
            "The saving has to be *more* than the capture: `int(capture // saved) + 1`.",
        ),
        explanation="Rounding down and adding one gives the smallest whole number *above* `capture / saved`, "
        "also where that is a whole number itself. And where a launch saves nothing, no number of runs "
        "earns the capture back.",
    ),
    Exercise(
        name="09-shapes",
        title="A graph for each shape",
        answer="make_server",
        check=check_shapes,
        hints=(
            "A dictionary from shapes to graphs. Which array is the slot of a graph, and who keeps it?",
            (
                "The slot is made with the graph, by `agt.pinned(x.shape)`, and kept beside it. Each "
                "request is copied into it: `slot[:] = x`."
            ),
            (
                "`known[x.shape] = slot, make(slot).graph_on(stream)` if the shape is new; then "
                "`graph.launch().sync_on(stream).copy()`."
            ),
        ),
        explanation="The first request of a shape pays for the capture, all others only for a launch. The "
        "result is copied, as the graph's own array is written again by the next request of the same shape.",
    ),
)
