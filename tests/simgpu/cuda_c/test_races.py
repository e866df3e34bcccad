"""The race detector against its definition: what each thread knows of each other one, which is too much to keep.

A random program of a few steps is interpreted, and gone through here with a vector clock for each thread: up to when
it has been told, by barriers, of what each other one did. Two accesses race if neither thread knew of the other's
(Flanagan and Freund, "FastTrack", 2009). The first step that races with an earlier one is the line of the error.
"""

from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from simgpu import errors
from simgpu.cuda_c import InterpreterLimits
from simgpu.cuda_c.memory import shared_region

from .support import launch

pytestmark = pytest.mark.rests_on("simgpu")

EVERY = np.arange(128)  # threads: two blocks of two warps
CELLS, APART = 8, 40  # words between cells, so that not all are near each other
GROUPS = {"block": EVERY // 64, "warp": EVERY // 32}
TEXTS = {
    "block": "__syncthreads();", "warp": "__syncwarp();", "two": "if (g == {0} || g == {1}) __syncwarp({2}u);",
    "read": "if (g >= {0} && g <= {1}) t += {3};", "write": "if (g >= {0} && g <= {1}) {3} = {4} + g;",
    "add": "if (g >= {0} && g <= {1}) atomicAdd(&{3}, 1);",
}  # fmt: skip


class Step(NamedTuple):
    """A barrier, or what the threads from the `first` on do to one cell, or (`spread`) each to the next one."""

    does: str
    first: int
    many: int
    cell: int
    spread: int

    @property
    def threads(self) -> list[int]:
        if self.does == "two":
            return [self.first, self.first ^ self.many]
        alone = self.does == "write" and not self.spread
        return [*range(self.first, self.first + (1 if alone else self.many))]

    def text(self, number: int, memory: str) -> str:
        first, last = self.threads[0], self.threads[-1]
        cell = f"{memory}[({self.cell} + {self.spread} * g) % {CELLS} * {APART}]"
        both = 1 << first % 32 | 1 << last % 32
        return TEXTS[self.does].format(first, last, both, cell, 1000 * number)


def first_race(steps: list[Step], shared: bool) -> int | None:
    """The number of the first step that races with one before."""
    known = np.zeros((len(EVERY), len(EVERY)), int)  # the last step of each that each knows of
    accesses: list[tuple[int, int, int, str]] = []
    for number, step in enumerate(steps, 1):
        if step.does in GROUPS:
            of = GROUPS[step.does]
            for group in np.unique(of):
                known[of == group] = known[of == group].max(0)
        elif step.does == "two":
            known[step.threads] = known[step.threads].max(0)
        else:
            now = [
                (t, (step.cell + step.spread * t) % CELLS, number, step.does) for t in step.threads
            ]
            for thread, cell, _, _ in now:
                for other, place, when, did in accesses:
                    meets = place == cell and not (shared and other // 64 != thread // 64)
                    harmless = other == thread or did == step.does != "write"
                    if meets and not harmless and known[thread, other] < when:
                        return number
            known[step.threads, step.threads] = number
            accesses += now
    return None


STEPS = st.builds(
    Step, st.sampled_from(["read", "read", "read", "write", "add", "block", "warp", "two"]),
    st.sampled_from([0, 1, 31, 32, 64]), st.sampled_from([1, 2, 8]), st.integers(0, 1), st.integers(0, 1),
)  # fmt: skip


@settings(max_examples=150)
@given(
    st.lists(STEPS, min_size=5, max_size=10), st.booleans(), st.sampled_from([64, 4096]), st.sampled_from([9, 1 << 20])
)  # fmt: skip
@example(
    [Step("read", 0, 2, 0, 0), Step("warp", 0, 1, 0, 0), Step("write", 1, 1, 0, 0)], True, 64, 9
)
def test_the_first_race_is_found_and_no_other(
    steps: list[Step], shared: bool, lanes: int, log: int
) -> None:
    text = "__global__ void k(int* x, int* o) { __shared__ int s[320]; int t = 0, g = blockIdx.x * 64 + threadIdx.x; "
    text += "for (int k = 0; k < 5; k++) s[g % 64 + 64 * k] = 0; __syncthreads();\n"
    lines = [step.text(number, "s" if shared else "x") for number, step in enumerate(steps, 1)]
    text += "\n".join([*lines, "o[g] = t; }"])
    x, o, limits = (
        np.zeros(320, np.int32),
        np.zeros(128, np.int32),
        InterpreterLimits(batch_lanes=lanes),
    )
    right, found = first_race(steps, shared), None
    try:
        with patch.object(shared_region, "_READ_LOG", log):
            launch(text, "k", 2, 64, x, o, limits=limits)
    except errors.RaceError as error:
        found = (error.site.line or 0) - 1
    # Blocks that run one after the other come to it in another order.
    assert found == right if lanes > 64 else (found is None) == (right is None)
