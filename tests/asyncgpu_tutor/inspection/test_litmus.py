"""Litmus tests: what is seen is allowed, on the simulated device and on the GPU whose counts are kept."""

import json
import sys
from collections.abc import Callable, Sequence
from itertools import permutations, product
from pathlib import Path

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


def in_turns(threads: Sequence[str]) -> set[tuple[int, ...]]:
    """What is read if the steps of threads take turns, in every order."""
    left = [[step for step in thread.split() if step != "F"] for thread in threads]
    order = [(role, n) for role, steps in enumerate(left) for n in range(len(steps))]
    found = set[tuple[int, ...]]()
    for turns in set(permutations([role for role, _ in order])):
        memory, read, at = {"x": 0, "y": 0}, dict[tuple[int, int], int](), [0] * len(left)
        for role in turns:
            what, place = left[role][at[role]]
            if what == "W":
                memory[place] = 1
            else:
                read[role, at[role]] = memory[place]
            at[role] += 1
        found.add(tuple(read[key] for key in order if key in read))
    return found


@pytest.mark.parametrize("shape", SHAPES)
def test_the_one_outcome_that_surprises_is_none_of_threads_that_take_turns(shape: str) -> None:
    threads, weak = SHAPES[shape]
    usual = in_turns(threads)
    assert weak not in usual
    assert {*product((0, 1), repeat=len(weak))} >= usual | {weak}


def test_the_newest_record_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which `tools/litmus.py --only` writes behind the others."""
    name = "message passing, block, volatile, one block"
    records = [
        {"device": which, "tests": {name: {"00": n}}} for n, which in enumerate(("old", "new"))
    ]
    (tmp_path / "litmus.json").write_text(json.dumps(records))
    monkeypatch.setattr(sys.modules[agt.litmus.__module__], "_RECORDED", tmp_path / "litmus.json")
    one = agt.litmus("message passing", fence="block", blocks=False, runs=0)
    assert (one.where, one.recorded) == ("new", {(0, 0): 1})


def test_a_table_has_a_row_for_each_outcome(tell: Callable[[str], None]) -> None:
    one = agt.litmus("message passing", fence="block", blocks=False, runs=5)
    assert "| 1 0 | **no** | 0 |" in str(one)
    other = agt.litmus("independent reads", fence="device, last thread only", kind="plain", runs=1)
    for test in one, other, agt.litmus("store buffering", kind="atomic", runs=5):
        tell(f"{test}\n{test.where}: {test.allowed}\n{test.source}")
    with pytest.raises(agt.UsageError, match="'message passing', 'store buffering'"):
        agt.litmus("no such test")
