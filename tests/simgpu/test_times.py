"""The model of a kernel's time: what must hold whatever the constants are."""

import dataclasses

import numpy as np

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
