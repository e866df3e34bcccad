"""The model of a kernel's time: what must hold whatever the constants are."""

import dataclasses

import numpy as np
import pytest

from asyncgpu_course.ladder import RUNGS, climb, ms
from simgpu.cuda_c import Counts
from simgpu.gpus import SPECS
from simgpu.times import kernel_time
from tests.simgpu.cuda_c.support import launch

H200 = SPECS["h200"]
CHASE = """
__global__ void chase(const int* next, int* last, int hops) {
    int at = threadIdx.x;
    for (int h = 0; h < hops; ++h) at = next[at];
    last[threadIdx.x] = at;
}
"""


def chased(n: int, hops: int) -> Counts:
    order = np.random.default_rng(1).permutation(n).astype(np.int32)
    return launch(CHASE, "chase", 1, 1, order, np.zeros(1, np.int32), hops).counts


def test_a_chase_in_memory_that_fits_l1_finds_there_what_it_has_had() -> None:
    """Each sector is fetched once, so that a hop more costs one load from L1."""
    some, more = (kernel_time(H200, chased(256, hops), 1, 0).us for hops in (1000, 2000))
    a_hop = (more - some) * H200.clock_mhz / 1000
    assert H200.hit_clocks <= a_hop < H200.load_clocks / 2


def test_sectors_that_l1_does_not_have_come_from_l2() -> None:
    near = Counts(
        warps=32, blocks=4, warp_instructions=640, issued=640, longest_chain=20, load_sectors=1 << 20,
        global_load_requests=32, load_bytes_needed=1 << 10, fresh_sectors=32,
    )  # fmt: skip
    far = dataclasses.replace(near, fresh_sectors=1 << 20)
    times = [kernel_time(H200, counts, 256, 0) for counts in (near, far)]
    assert times[1].bounds["memory"] > 1000 * times[0].bounds["memory"]


def test_a_kernel_whose_loads_touch_many_lines_keeps_an_sm_longer_for_each_instruction() -> None:
    lean = Counts(warps=32, blocks=4, warp_instructions=640, issued=640, longest_chain=20)
    wide = dataclasses.replace(lean, global_load_requests=320, load_lines=10240, load_sectors=10240)
    assert kernel_time(H200, lean, 256, 0).work.turn == 1
    assert kernel_time(H200, wide, 256, 0).work.turn > 10


def test_a_double_buffer_helps_where_it_helps_on_a_gpu() -> None:
    """One block on an SM: each rung is faster than the one before, as the H200 has it."""
    times = [climb(name, 128).us for name in ("wide", "warps", "ahead")]
    assert times == sorted(times, reverse=True)
    assert times[2] < 0.9 * times[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", [rung.label for rung in RUNGS])
def test_a_rung_takes_what_it_takes_on_an_h200(name: str) -> None:
    """To a fifth; `python benchmarks/ladder.py --model` prints them, also for 1024."""
    assert climb(name, 512).us == pytest.approx(1e3 * ms(name, 512), rel=0.2)


def test_floats_that_are_multiplied_and_added_at_once_keep_one_warp_twice_as_long() -> None:
    one = Counts(warps=4, blocks=1, issued=4000, longest_chain=1000, chain_busy=1000)
    fused = dataclasses.replace(one, fused=4000, chain_fused=1000)
    each = [kernel_time(H200, counts, 128, 0).bounds["latency"] for counts in (one, fused)]
    assert each[1] == pytest.approx(2 * each[0])


def test_what_a_lone_block_waits_for_together_its_own_work_does_not_fill() -> None:
    alike = Counts(
        warps=8, blocks=1, warp_instructions=80_000, issued=80_000, longest_chain=10_000, chain_busy=10_000,
        global_load_requests=8 * 100, load_lines=8 * 100, chain_load_rounds=100, chain_fresh_loads=100,
        load_sectors=3200, fresh_sectors=3200, load_bytes=102_400, load_bytes_needed=102_400,
    )  # fmt: skip
    together = dataclasses.replace(alike, barriers=200)
    apart, one = (kernel_time(H200, counts, 256, 0) for counts in (alike, together))
    assert one.us > 1.05 * apart.us
    nothing_new = kernel_time(H200, dataclasses.replace(together, chain_fresh_loads=1), 256, 0)
    assert nothing_new.us < 1.03 * apart.us
