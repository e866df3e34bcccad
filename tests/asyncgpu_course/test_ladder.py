"""What no page runs of the ladder: its attention, and how its recordings were made."""

from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_course.ladder import (
    RUNGS,
    attention_launch,
    attention_source,
    climb,
    in_a_row,
    ms,
    rung,
)
from asyncgpu_tutor.errors import UsageError

pytestmark = pytest.mark.rests_on("simgpu")


@pytest.mark.parametrize("head", [64, 128])
def test_attention_is_right_also_where_scores_grow_from_step_to_step(head: int) -> None:
    queries, threads, room = attention_launch(head)
    steps, keys, random = 3, 4096 // head, np.random.default_rng(head)
    sizes = queries, steps * keys, steps * keys
    q, k, v = (random.normal(size=(size, head)).astype(np.float32) for size in sizes)
    k[::3] = abs(k[::3]) * np.linspace(0, 30, len(k[::3]), dtype=np.float32)[:, None]
    q[::2] = abs(q[::2])
    with agt.using("sim"):
        kernel = agt.Kernel(attention_source(head), "attention", contract=True)
        given = [agt.h2d(it).sync() for it in (q, k, v)]
        out = agt.zeros((queries, head)).sync()
        scale = np.float32(np.log2(np.e) / np.sqrt(head))
        borrowed = [it.borrow() for it in (*given, out)]
        kernel(steps * keys, scale, *borrowed, grid=1, block=threads, shared_mem=room).sync()
        got = agt.d2h(out.borrow()).sync()
    scores = q.astype(float) @ k.T.astype(float) / np.sqrt(head)
    top = np.maximum.accumulate(scores, axis=1)[:, keys - 1 :: keys]
    grown = np.diff(top) > 12  # more than two to the power of 16
    assert grown.any(axis=1).sum() > queries / 4
    assert (top[:, -1] - top[:, 0] > 90).any()  # more than a float can hold
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    exact = weights @ v / weights.sum(axis=1, keepdims=True)
    assert np.linalg.norm(got - exact) < 1e-4 * np.linalg.norm(exact)


@pytest.mark.parametrize(("n", "tiles"), [(256, "32x32"), (1024, "128x64"), (4096, "256x128")])
def test_the_recordings_say_how_they_were_made_and_show_what_was_measured(
    n: int, tiles: str
) -> None:
    trace = in_a_row(n, "naive")
    (cublas,) = agt.Trace.load(agt.Trace.recorded_file(f"rungs_{n}.json")).device_spans[-1:]
    assert f"_tilesize{tiles}x8_" in cublas.name  # which page 20b tells
    assert trace.about["gpu"] == "NVIDIA H200"
    assert trace.about["command"] == f"python benchmarks/ladder.py --record FOLDER --sizes {n}"
    rungs, rest = trace.spans[:10], trace.spans[10:]
    assert trace.spans[0].start == 0
    assert [span.name for span in rest] == ["cuBLAS"] * (2 if n == 256 else 1)
    for span in rungs:  # at 256, times between events have the launch in them, too
        assert span.duration == pytest.approx(1000 * ms(span.name, n), rel=0.03, abs=2)


@pytest.mark.parametrize("n", [0, 100])
def test_a_side_that_a_rung_does_not_divide_is_refused(n: int) -> None:
    with pytest.raises(UsageError, match=f"naive takes multiples of 32 as n, and got {n}"):
        climb("naive", n)


@pytest.mark.parametrize("name", ["no such", ["naive"]])
def test_a_rung_that_is_none_is_refused(name: Any) -> None:
    with pytest.raises(UsageError, match=r"there is no rung .*naive, coalesced, shared"):
        rung(name)


def test_each_rung_has_its_text_and_its_launch(tell: Callable[[str], None]) -> None:
    for each in (*RUNGS, replace(rung("own"), text="int own;")):
        text = f"{each.lines} lines {sha256(each.source.encode()).hexdigest()[:6]}"
        launch = f"{each.grid(1024)} of {each.block}, {each.shared} bytes"
        tell(f"{each.label}: {text}, {launch}, multiples of {each.side}")
