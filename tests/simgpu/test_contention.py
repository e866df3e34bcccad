"""Words of global memory that many want: what an H200 took, and that no batch decides what is charged."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
import pytest

from simgpu.cuda_c import Counts, InterpreterLimits, compile_source
from simgpu.spec import H200
from simgpu.times import kernel_time
from tests.simgpu.cuda_c.support import memory
from tests.tools import tool

pytestmark = pytest.mark.rests_on("simgpu", "recordings")
contention = tool("fidelity.contention")
# One of the kernels of `contention_predicted.json`, which are not among those of `contention.py`.
BINS = r"""
extern "C" __global__ void bins(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        atomicAdd(&w[(x >> 16) % k], 1);
    }
}
"""
# By name, blocks, threads of each, `n`, `k` and `m`: medians in us, H200, 2026-11-28, driver 580.159. No
# constant was chosen by a pattern whose name is `held`.
MEASURED = {
    ("cas_chain", 64, 32, 100, 1, 1): 27.33, ("look_new", 1, 32, 200, 1, 1): 53.0,
    ("add_chain", 132, 256, 20, 32, 32): 65.84, ("add_free", 132, 256, 20, 32, 32): 67.14,
    ("spaced", 132, 256, 20, 1, 1000): 53.84, ("burst", 132, 256, 50, 1, 0): 40.1,
    ("burst", 132, 512, 10, 1, 5000): 29.12, ("gates", 16, 256, 50, 1, 1): 89.67,
    ("meet_work", 16, 256, 50, 1, 100): 67.82, ("token_volatile", 16, 32, 13, 1, 1): 65.77,
    ("ping", 2, 32, 100, 1, 1): 199.03, ("histogram", 64, 128, 20, 1, 128): 82.7,
    ("bins", 132, 256, 40, 16, 0): 196.11, ("bins", 40, 128, 64, 1000, 0): 32.05,
}  # fmt: skip
HELD = {
    ("exch_chain", 1, 32, 100, 1, 32): 24.79, ("stairs", 64, 128, 20, 1, 40): 11.34,
    ("stairs", 132, 256, 20, 1, 10): 17.32, ("token_add", 16, 32, 13, 1, 1): 66.91,
    ("meet_volatile", 16, 256, 50, 1, 1): 49.1, ("meet_bare", 16, 256, 50, 1, 1): 28.87,
    ("queue", 132, 64, 0, 1024, 0): 3.84, ("steal", 16, 64, 0, 4, 1000): 18.21,
    ("many_blocks", 16, 256, 64, 1, 1): 1187.18,  # page 11's flood
}  # fmt: skip


@functools.cache
def program() -> Any:
    return compile_source(contention.SOURCE + BINS, contract=True)


def ran(case: tuple[Any, ...], lanes: int = InterpreterLimits.batch_lanes) -> Counts:
    name, blocks, threads, *numbers = case
    arrays = [np.zeros(contention.WORDS, np.uint32) for _ in range(2)]
    given = [*map(memory, arrays), *map(np.int32, numbers)]
    if name == "many_blocks":
        depth = np.full(4096, -1, np.int32)
        depth[0] = 0
        maze = contention.maze(64, seed=1).ravel()
        given = [np.int32(64), *map(memory, (maze, depth, *arrays))]
    begun = program().begin(
        name, (blocks, 1, 1), (threads, 1, 1), given, limits=InterpreterLimits(batch_lanes=lanes)
    )
    return begun.finish().counts


def time_of(case: tuple[Any, ...], lanes: int = InterpreterLimits.batch_lanes) -> float:
    counts = ran(case, lanes)
    return kernel_time(H200, counts, case[2], counts.shared_bytes).us


@pytest.mark.parametrize("case", MEASURED | HELD, ids=lambda case: f"{case[0]} {case[1]}")
def test_a_word_is_charged_for_while_many_want_it(case: tuple[Any, ...]) -> None:
    assert contention.held(case[0]) == (case in HELD)
    assert time_of(case) == pytest.approx((MEASURED | HELD)[case], rel=0.25)


NONE_WAITS = [
    ("add_chain", 16, 32, 50, 1, 32), ("burst", 16, 32, 50, 1, 1000), ("stairs", 16, 64, 20, 1, 10),
    ("spaced", 16, 32, 20, 1, 0), ("histogram", 16, 64, 20, 1, 64),
]  # fmt: skip
SOME_WAIT = [
    ("meet_add", 16, 256, 5, 1, 1), ("meet_volatile", 8, 64, 10, 1, 1), ("meet_work", 8, 64, 5, 1, 100),
    ("gates", 16, 64, 10, 1, 1), ("token_volatile", 8, 32, 5, 1, 1), ("ping", 2, 32, 20, 1, 1),
]  # fmt: skip


@pytest.mark.parametrize("case", NONE_WAITS, ids=lambda case: case[0])
def test_how_many_blocks_run_together_decides_nothing(case: tuple[Any, ...]) -> None:
    one, many = (dataclasses.replace(counts, lines={}) for counts in (ran(case, 32), ran(case)))
    assert one == many


@pytest.mark.parametrize("case", SOME_WAIT, ids=lambda case: case[0])
def test_how_many_blocks_run_together_decides_little_where_some_wait(case: tuple[Any, ...]) -> None:
    several = [time_of(case, case[2] * blocks) for blocks in (1, 4, 16)]
    assert several == [pytest.approx(several[-1], rel=0.15)] * 3
