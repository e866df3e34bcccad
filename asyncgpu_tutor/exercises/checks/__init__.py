"""What checks hold an answer against, for the chapters.

::

    results     the numbers that it computes
    schedule    the trace of its run: which stream, in which order, who waits
    building    that describing an operation runs nothing
    operations  operations and arrays to try it on
"""

from asyncgpu_tutor.exercises.checks.building import built
from asyncgpu_tutor.exercises.checks.operations import (
    BLOCK,
    Array,
    computed,
    filled,
    long_step,
    noise,
    out_of_bounds,
    round_trip,
    step,
    step_kernel,
)
from asyncgpu_tutor.exercises.checks.results import (
    as_kernel,
    brief,
    each_equal,
    equal,
    in_order,
    is_number,
    launched,
    left_in,
    listed,
    of_dtype,
)
from asyncgpu_tutor.exercises.checks.schedule import (
    all_in_flight,
    below,
    in_flight,
    launches,
    lazy,
    never_blocks,
    on_stream,
    one_stream,
    ordered,
    overlapping,
    results,
    side_by_side,
    stretches,
    unordered,
    waits,
    went_on,
)

__all__ = [
    "BLOCK",
    "Array",
    "all_in_flight",
    "as_kernel",
    "below",
    "brief",
    "built",
    "computed",
    "each_equal",
    "equal",
    "filled",
    "in_flight",
    "in_order",
    "is_number",
    "launched",
    "launches",
    "lazy",
    "left_in",
    "listed",
    "long_step",
    "never_blocks",
    "noise",
    "of_dtype",
    "on_stream",
    "one_stream",
    "ordered",
    "out_of_bounds",
    "overlapping",
    "results",
    "round_trip",
    "side_by_side",
    "step",
    "step_kernel",
    "stretches",
    "unordered",
    "waits",
    "went_on",
]
