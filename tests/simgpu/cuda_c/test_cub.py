"""CUB's BlockReduce: the values, their rounding, and what it asks of those who use it."""

import numpy as np
import pytest

from simgpu import errors
from simgpu.cuda_c import compile_source

from .gpu import nvrtc, on_gpu
from .support import launch

# Blocks, and of how many threads the numbers count; 0: of all.
SHAPES = [(32, 1, 0), (256, 1, 0), (48, 1, 0), (16, 10, 0), (96, 1, 40), (96, 1, 5)]
HEAD = "#include <cub/block/block_reduce.cuh>\n"
SUMS = (
    HEAD
    + """template <int X, int Y> __global__ void sums(const float* x, float* y, int valid) {
    using Block = cub::BlockReduce<float, X, cub::BLOCK_REDUCE_WARP_REDUCTIONS, Y>;
    __shared__ typename Block::TempStorage storage;
    int me = threadIdx.x + X * threadIdx.y;
    float sum = valid ? Block(storage).Sum(x[me], valid) : Block(storage).Sum(x[me]);
    if (me == 0) *y = sum;
}"""
)


def added(x: np.ndarray, valid: int) -> np.float32:
    """The sum as the warps of a block and then its first thread make it."""
    totals: list[np.float32] = []
    for first in range(0, valid, 32):
        warp = [*x[first : min(first + 32, valid)]]
        for step in (1, 2, 4, 8, 16):
            further = [*warp[step:], *[np.float32(0)] * step]
            warp = [np.float32(a + b) for a, b in zip(warp, further, strict=False)]
        totals.append(warp[0])
    whole = totals[0]
    for total in totals[1:]:
        whole = np.float32(whole + total)
    return whole


@pytest.mark.parametrize(("x", "y", "valid"), SHAPES)
def test_a_sum_of_floats_is_rounded_as_warps_and_their_order_have_it(
    x: int, y: int, valid: int
) -> None:
    numbers = np.random.default_rng(x).random(x * y, np.float32) * 1000
    out = np.zeros(1, np.float32)
    launch(SUMS, f"sums<{x}, {y}>", 1, (x, y), numbers, out, valid)
    want = added(numbers, valid or x * y)
    assert out[0] == want
    assert abs(want - numbers[: valid or x * y].sum(dtype=float)) < 1


def test_whatever_can_be_copied_is_reduced_by_whatever_can_be_called() -> None:
    source = (
        HEAD
        + """struct Best { float value; int place; long long pad; };
    struct Larger { __device__ Best operator()(const Best& a, const Best& b) const {
        return b.value > a.value ? b : a; } };
    __global__ void best(const float* x, int* o) {
        __shared__ cub::BlockReduce<Best, 64>::TempStorage storage;
        Best mine = {x[threadIdx.x], (int)threadIdx.x, 0};
        Best one = cub::BlockReduce<Best, 64>(storage).Reduce(mine, Larger());
        if (threadIdx.x == 0) *o = one.place;
    }"""
    )
    x, place = np.random.default_rng(5).random(64, np.float32), np.zeros(1, np.int32)
    launch(source, "best", 1, 64, x, place)
    assert place[0] == x.argmax()


def test_a_file_may_have_a_function_of_that_name() -> None:
    source = (
        HEAD
        + """template <typename T> __device__ T BlockReduce(T value) {
        typedef cub::BlockReduce<T, 64> BlockReduce;
        __shared__ typename BlockReduce::TempStorage storage;
        return BlockReduce(storage).Sum(value);
    }
    __global__ void k(float* x) { float s = BlockReduce(2.0f); if (threadIdx.x == 0) x[0] = s; }"""
    )
    x = np.zeros(1, np.float32)
    launch(source, "k", 1, 64, x)
    assert x[0] == 128


def test_storage_that_is_used_again_needs_a_barrier_in_between() -> None:
    source = (
        HEAD
        + """template <bool B> __global__ void twice(float* x) {
        __shared__ cub::BlockReduce<float, 64>::TempStorage storage;
        float a = cub::BlockReduce<float, 64>(storage).Sum(x[threadIdx.x]);
        if (B) __syncthreads();
        float b = cub::BlockReduce<float, 64>(storage).Sum(1);
        if (threadIdx.x == 0) x[0] = a + b;
    }"""
    )
    x = np.ones(64, np.float32)
    launch(source, "twice<true>", 1, 64, x)
    assert x[0] == 128
    with pytest.raises(errors.RaceError, match="without a __syncthreads"):
        launch(source, "twice<false>", 1, 64, x)


@pytest.mark.parametrize(
    "use", ["cub::BlockScan<int, 32> s;", "cub::BlockReduce<int, 32, cub::BLOCK_REDUCE_RAKING> s;"]
)
def test_the_rest_of_cub_is_refused(use: str) -> None:
    with pytest.raises(errors.UnsupportedFeatureError, match=r"kernel\.cu:2:"):
        compile_source(f"{HEAD}__global__ void k() {{ {use} }}").kernel("k")


@pytest.mark.gpu
@pytest.mark.parametrize(("x", "y", "valid"), SHAPES)
def test_a_gpu_rounds_it_alike(x: int, y: int, valid: int) -> None:
    cp = pytest.importorskip("cupy", reason="CuPy is not installed")
    if not cp.cuda.is_available():
        pytest.skip("no GPU")
    numbers = np.random.default_rng(x).random(x * y, np.float32) * 1000
    out, name = np.zeros(1, np.float32), f"sums<{x}, {y}>"
    on_gpu(cp, nvrtc(SUMS, [name]), name, ((1,), (x, y)), [numbers, out, valid])
    assert out[0] == added(numbers, valid or x * y)
