"""Cooperative groups: what each member gives, and what goes wrong with groups whose threads are not all there."""

import numpy as np
import pytest

from simgpu import errors
from simgpu.cuda_c import InterpreterLimits
from tests.simgpu.cuda_c.support import launch

HEAD = """#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
extern "C" __global__ void k(int* o, int* x) {
    cg::thread_block block = cg::this_thread_block(); int i = block.thread_rank();
"""


def run(text: str, threads: int | tuple[int, ...] = 64, head: str = HEAD) -> list[int]:
    o, x = np.zeros(64, np.int32), np.arange(64, dtype=np.int32)
    launch(f"{head}{text} }}", "k", 1, threads, o, x)
    return o.tolist()


TILE = "auto tile = cg::tiled_partition<16>(block); "
PARTS = "o[i] = g.meta_group_size() * 100 + g.meta_group_rank() * 10 + g.thread_rank();"
RANK = [i % 16 for i in range(64)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("o[i] = block.size() + block.group_index().x;", [64] * 64),
        ("o[i] = cg::thread_rank(block) + block.thread_index().x;", [2 * i for i in range(64)]),
        (TILE + "o[i] = tile.thread_rank();", RANK),
        (TILE + "o[i] = tile.meta_group_rank() * 10 + tile.meta_group_size();",
         [i // 16 * 10 + 4 for i in range(64)]),
        (TILE + "auto part = cg::tiled_partition<4>(tile); o[i] = part.meta_group_rank() * 10 + part.meta_group_size();",
         [i % 16 // 4 * 10 + 4 for i in range(64)]),
        (TILE + "o[i] = tile.shfl(x[i], 3);", [i // 16 * 16 + 3 for i in range(64)]),
        (TILE + "o[i] = tile.shfl_down(x[i], 1);", [i + (i % 16 < 15) for i in range(64)]),
        (TILE + "o[i] = tile.shfl_up(x[i], 1);", [i - (i % 16 > 0) for i in range(64)]),
        (TILE + "o[i] = tile.shfl_xor(x[i], 5);", [i ^ 5 for i in range(64)]),
        (TILE + "o[i] = tile.ballot(x[i] % 4 == 0);", [0x1111] * 64),
        (TILE + "o[i] = tile.any(i == 20) + 2 * tile.all(i > 31);",
         [1 if i // 16 == 1 else 2 if i > 31 else 0 for i in range(64)]),
        (TILE + "o[i] = cg::reduce(tile, x[i], cg::plus<int>());",
         [sum(range(i // 16 * 16, i // 16 * 16 + 16)) for i in range(64)]),
        (TILE + "o[i] = cg::reduce(tile, x[i], cg::greater<int>());", [i // 16 * 16 + 15 for i in range(64)]),
        (TILE + "if (tile.meta_group_rank() == 1) { o[i] = tile.size(); tile.sync(); }",
         [16 * (i // 16 == 1) for i in range(64)]),
        ("cg::thread_group g = cg::tiled_partition(block, 8); g.sync(); o[i] = g.thread_rank() + g.size();",
         [i % 8 + 8 for i in range(64)]),
        ("cg::thread_group g = cg::tiled_partition(cg::tiled_partition(block, 16), 4); g.sync(); o[i] = g.thread_rank();",
         [i % 4 for i in range(64)]),
        (f"if (i % 2) {{ auto g = cg::tiled_partition(cg::coalesced_threads(), 4); g.sync(); {PARTS} }}",
         [(i % 2) * (400 + i % 32 // 8 * 10 + i % 8 // 2) for i in range(64)]),
        ("if (i % 3 == 0) { auto g = cg::coalesced_threads(); o[i] = 100 * g.size() + g.thread_rank(); }",
         [(i % 3 == 0) * (1100 + (i // 3 if i < 32 else (i - 33) // 3)) for i in range(64)]),
        ("if (i % 2) { auto g = cg::coalesced_threads(); o[i] = g.shfl_down(x[i], 1); }",
         [(i % 2) * (i + 2 * (i % 32 < 31)) for i in range(64)]),
        ("if (i % 2) { auto g = cg::coalesced_threads(); o[i] = g.ballot(i < 8) + cg::reduce(g, 1, cg::plus<int>()); }",
         [(i % 2) * (16 + 15 * (i < 32)) for i in range(64)]),
        ("__shared__ int s[64]; s[i] = x[i]; block.sync(); o[i] = s[63 - i];", list(range(63, -1, -1))),
        ("__shared__ int s[64]; s[i] = x[i]; cg::sync(block); o[i] = s[63 - i];", list(range(63, -1, -1))),
        ("struct P { int n; int* p; }; " + TILE + "P a = {i, x + i}; o[i] = *tile.shfl(a, 3).p;", [i // 16 * 16 + 3 for i in range(64)]),
    ],
)  # fmt: skip
def test_members(text: str, expected: list[int]) -> None:
    assert run(text) == expected


def test_rank_in_a_block_of_two_dimensions() -> None:
    assert run("o[i] = threadIdx.x + 8 * threadIdx.y;", (8, 8)) == list(range(64))


def test_a_function_takes_any_group() -> None:
    head = HEAD.replace(
        'extern "C"',
        """__device__ int sum(cg::thread_group g, int* room, int value) {
            int lane = g.thread_rank();
            for (int k = g.size() / 2; k > 0; k /= 2) {
                room[lane] = value; g.sync(); if (lane < k) value += room[lane + k]; g.sync(); }
            return value; }
        template <typename G> __device__ int lead(G g) { return g.thread_rank() == 0; }
        extern "C\"""",
    )
    text = "__shared__ int s[64]; int v = sum(block, s, x[i]); if (lead(block)) o[0] = v;"
    assert run(text, head=head)[0] == sum(range(64))
    text = "__shared__ int s[64]; int v = sum(tile, s + i / 16 * 16, x[i]); "
    assert run(TILE + text + "if (lead(tile)) o[i] = v;", head=head)[16] == sum(range(16, 32))


def test_faults_are_told_where_the_group_is_used() -> None:
    with pytest.raises(errors.BarrierError) as caught:
        run("\nif (i < 40) block.sync();")
    assert (caught.value.site.line, caught.value.site.thread) == (7, (40, 0, 0))
    with pytest.raises(errors.WarpError, match="lane 4"):
        run(TILE + "if (tile.thread_rank() < 4) o[i] = tile.shfl(i, 0);")
    with pytest.raises(errors.RaceError):
        run("__shared__ int s[64]; s[i] = x[i]; " + TILE + "tile.sync(); o[i] = s[63 - i];")


GRID = """#include <cooperative_groups.h>
using namespace cooperative_groups;
extern "C" __global__ void smooth(float* a, float* b, int n) {
    grid_group grid = this_grid();
    int i = grid.thread_rank();
    for (int step = 0; step < 4; step++) {
        float l = i > 0 ? a[i - 1] : 0.0f, r = i < n - 1 ? a[i + 1] : 0.0f;
        b[i] = l + r;
        grid.sync();
        float* c = a; a = b; b = c;
    }
}"""


def smooth(source: str, *more: np.ndarray, **limits: int) -> bool:
    """Tell if four steps give the right result; `more` is memory of the kernel's own."""
    a = np.random.default_rng(5).integers(0, 9, 128).astype(np.float32)
    want = a.copy()
    for _ in range(4):
        want = np.append(0, want[:-1]) + np.append(want[1:], 0)
    args = (a, np.zeros(128, np.float32), *more, 128)
    launch(source, "smooth", 4, 32, *args, limits=InterpreterLimits(**limits))
    return a.tolist() == want.tolist()


@pytest.mark.parametrize("lanes", [32, 64, 16384])
def test_all_blocks_of_a_grid_meet(lanes: int) -> None:
    assert smooth(GRID, batch_lanes=lanes, resident_blocks=4)
    with pytest.raises(errors.RaceError):
        smooth(GRID.replace("grid.sync();", ""), batch_lanes=lanes)
    with pytest.raises(errors.LaunchConfigError, match="4 were asked for, 3 fit"):
        smooth(GRID, resident_blocks=3, batch_lanes=lanes)
    alone = GRID.replace("grid.sync();", "if (blockIdx.x == 2) return; grid.sync();")
    with pytest.raises(errors.DeadlockError, match="barrier of the grid"):
        smooth(alone, batch_lanes=lanes)
