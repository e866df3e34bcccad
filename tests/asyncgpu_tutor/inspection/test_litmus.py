"""Litmus tests: what is seen is allowed, on the simulated device and on the GPU whose counts are kept."""

from collections.abc import Callable
from itertools import product

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.inspection.litmus import FENCES, LITMUS_KINDS, SHAPES


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize(("shape", "fence", "kind"), list(product(SHAPES, FENCES, LITMUS_KINDS)))
def test_what_is_seen_is_allowed(shape: str, fence: str, kind: str, blocks: bool) -> None:
    runs, weak = 60 if kind == "volatile" else 1, SHAPES[shape][1]
    test = agt.litmus(shape, fence=fence, kind=kind, blocks=blocks, runs=runs)
    assert sum(test.seen.values()) == runs
    assert set(test.seen) <= set(test.allowed)
    # Loads ahead of their time are allowed, and nothing here makes them.
    if runs > 1:
        assert (weak in test.seen) == (weak in test.allowed and shape != "load buffering")
    if test.recorded is not None:
        assert sum(test.recorded.values()) >= 1_000_000
        assert set(test.recorded) <= set(test.allowed)


def test_a_table_has_a_row_for_each_outcome(tell: Callable[[str], None]) -> None:
    one = agt.litmus("message passing", fence="block", blocks=False, runs=5)
    assert "| 1 0 | **no** | 0 |" in str(one)
    other = agt.litmus("independent reads", fence="device, last thread only", kind="plain", runs=1)
    for test in one, other, agt.litmus("store buffering", kind="atomic", runs=5):
        tell(f"{test}\n{test.where}: {test.allowed}\n{test.source}")
    with pytest.raises(agt.UsageError, match="'message passing', 'store buffering'"):
        agt.litmus("no such test")
