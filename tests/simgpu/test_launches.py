"""A launch that was interpreted before leaves what interpreting it again would leave."""

import gc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simgpu
from simgpu import errors
from simgpu.cuda_c import GlobalMemory, compile_source
from simgpu.errors import DeviceAssertError, UninitialisedReadError
from simgpu.launches import LoadedKernel
from simgpu.remembered import OVERHEAD, Remembered

SOURCE = """
__device__ int launches;
extern "C" __global__ void mix(unsigned int n, float scale, const float* x, float* y) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) launches += 1;
    if (i >= n) return;
    assert(x[i] < 100.0f);
    float sum = 0.0f;
    for (int k = 0; k < 400; k++) sum = sum * 0.5f + x[i];
    y[i] = scale * sum;
}
extern "C" __global__ void talks(unsigned int n) {
    float sum = 0.0f;
    for (int k = 0; k < 400; k++) sum = sum * 0.5f + n;
    if (sum > 0.0f) printf("%u\\n", n);
}
"""
N = 64


class Kernel:
    """One kernel with a memory of its own, and how often it was interpreted."""

    def __init__(self, name: str = "mix", room: int = 1 << 24) -> None:
        self.program = compile_source(SOURCE)
        self.function = LoadedKernel(self.program, self.program.kernel(name), SOURCE)
        self.remembered = Remembered(room)
        self.interpreted = 0

    def __call__(self, *values: Any, block: int = N) -> Any:
        def execute() -> Any:
            self.interpreted += 1
            name = self.function.name
            return self.program.begin(name, (1, 1, 1), (block, 1, 1), values).finish(), None

        kind = (self.function.identity, (1, 1, 1), (block, 1, 1), 0)
        variables = self.program.variables.values()
        return self.remembered.run(kind, values, variables, execute)[0]

    @property
    def counter(self) -> Any:
        """The number of launches that the kernel itself has counted."""
        return self.program.variables["launches"].view(np.int32)

    def reset(self) -> None:
        self.counter[:] = 0


def memory(values: Any) -> GlobalMemory:
    made = GlobalMemory(4 * N, "made")
    made.view(np.float32)[:] = values
    made.mark_written()
    return made


def test_the_second_time_it_is_not_interpreted_and_does_the_same() -> None:
    kernel = Kernel()
    x, first, second = memory(np.arange(N)), memory(0.0), memory(0.0)
    one = kernel(np.uint32(N), np.float32(2.0), x, first)
    kernel.reset()
    two = kernel(np.uint32(N), np.float32(2.0), x, second)
    assert kernel.interpreted == 1
    assert two.counts == one.counts
    assert np.array_equal(first.data, second.data)
    assert kernel.counter[0] == 1


def test_variables_of_the_file_are_inputs_and_outputs_as_arrays_are() -> None:
    kernel = Kernel()
    x, y = memory(1.0), memory(0.0)
    for number in (1, 2, 3):
        y.view(np.float32)[:] = 0.0
        kernel(np.uint32(N), np.float32(2.0), x, y)
        assert kernel.counter[0] == number
    assert kernel.interpreted == 3


def test_whatever_is_not_the_same_is_interpreted() -> None:
    """A number, the shape, a number of the input, of the output, what is written, and an alias."""
    nearly = np.where(np.arange(N) == 7, 9.0, [[1.0], [0.0]])
    x = memory(1.0)
    given: dict[str, Any] = {"n": np.uint32(N), "scale": np.float32(2.0), "x": x}
    for changed in (
        {"scale": np.float32(3.0)}, {}, {"x": memory(nearly[0])}, {"y": memory(nearly[1])},
        {"y": GlobalMemory(4 * N)}, {"y": x},
    ):  # fmt: skip
        kernel = Kernel()
        kernel(*given.values(), memory(0.0))
        kernel.reset()
        values = given | {"y": memory(0.0)} | changed
        kernel(*values.values(), block=N if changed else 2 * N)
        assert kernel.interpreted == 2, changed


def test_a_zero_has_a_sign_and_a_record_of_zeros_is_a_value() -> None:
    kernel, x = Kernel(), memory(1.0)
    for zero in (np.float32(0.0), np.float32(-0.0)):
        kernel.reset()
        kernel(np.uint32(N), zero, x, memory(0.0))
    assert kernel.interpreted == 2
    source = "struct P { int a, b; }; __global__ void k(P p, int* y) { y[0] = p.a + p.b; }"
    y = simgpu.asarray(np.ones(1, np.int32))
    for one, right in ((0, 0), (4, 9), (0, 0)):
        record = np.array((one, one and 5), [("a", np.int32), ("b", np.int32)])[()]
        simgpu.RawKernel(source, "k")((1,), (1,), (record, y))
        assert y.get().tolist() == [right]


def test_a_null_pointer_is_no_array() -> None:
    source = "__global__ void k(float* a, float* b) { if (a) a[0] = 1; else b[0] = 2; }"
    x = simgpu.asarray(np.zeros(1, np.float32))
    for arrays, right in (((x, None), 1), ((None, x), 2), ((x, None), 1)):
        x.set(np.zeros(1, np.float32))
        simgpu.RawKernel(source, "k")((1,), (1,), arrays)
        assert x.get().tolist() == [right]


def test_what_was_not_written_stays_unwritten() -> None:
    kernel = Kernel()
    x = memory(1.0)
    for _ in range(2):
        kernel.reset()
        half = GlobalMemory(4 * N)
        kernel(np.uint32(N // 2), np.float32(1.0), x, half)
        assert half.shadow[: 4 * N].tolist() == [1] * (2 * N) + [0] * (2 * N)
        with pytest.raises(UninitialisedReadError):
            kernel(np.uint32(N), np.float32(1.0), half, memory(0.0))


def test_a_launch_that_fails_fails_each_time() -> None:
    kernel = Kernel()
    for number in (1, 2):
        kernel.reset()
        with pytest.raises(DeviceAssertError):
            kernel(np.uint32(N), np.float32(1.0), memory(200.0), memory(0.0))
        assert kernel.interpreted == number


def test_what_is_printed_is_printed_again() -> None:
    kernel = Kernel("talks")
    assert [kernel(np.uint32(3)).printed for _ in range(2)] == ["3\n" * N] * 2
    assert kernel.interpreted == 1


def test_what_was_used_longest_ago_goes_and_weights_are_kept_once() -> None:
    kernel, weights, most = Kernel(), memory(1.0), 8
    once = (
        2 * 4 * N + 2 * 16
    )  # the weights, what is made of them, and the counter, before and after
    kernel.remembered.room = most * (OVERHEAD + 4 * N) + once

    def run(value: float) -> int:
        kernel.reset()
        before = kernel.interpreted
        kernel(np.uint32(N), np.float32(1.0), weights, memory(value))
        return kernel.interpreted - before

    assert [run(value) for value in range(1, most + 2)] == [1] * (most + 1)
    assert [run(value) for value in range(2, most + 2)] == [0] * most
    assert run(1) == 1  # the oldest had to go


def test_what_a_launch_holds_counts_though_another_had_brought_it() -> None:
    """Of two launches on the same weights only the second one is asked for again, by many models."""
    kernel, size = Kernel(), 1 << 16
    kernel.remembered.room = 8 * size
    y = memory(0.0)
    for number in range(32):
        weights = GlobalMemory(size, "weights")
        weights.view(np.float32)[:] = number
        weights.mark_written()
        for scale in (1.0, 2.0, 2.0):
            kernel.reset()
            y.view(np.float32)[:] = 0.0
            kernel(np.uint32(N), np.float32(scale), weights, y)
        kept = kernel.remembered._launches.values()
        states = {s for past in kept for s in (*past.before, *filter(None, past.after))}
        taken = len(kept) * OVERHEAD + sum(state.nbytes for state in states)
        assert kernel.remembered.used == taken <= kernel.remembered.room


@given(st.lists(st.integers(0, 40), min_size=1, max_size=30), st.integers(1, 6))
@settings(max_examples=30, deadline=None)
def test_it_stays_in_its_room_and_is_right_whatever_comes(inputs: list[int], rooms: int) -> None:
    kernel = Kernel(room=rooms * (OVERHEAD + 4 * 4 * N))
    for value in inputs:
        kernel.reset()
        y = memory(0.0)
        kernel(np.uint32(N), np.float32(1.0), memory(float(value)), y)
        assert kernel.remembered.used <= kernel.remembered.room
        assert y.view(np.float32)[0] == pytest.approx(2.0 * value)
    kernel.remembered.clear()
    assert kernel.remembered.used == 0
    for one in (kernel, fresh := Kernel(room=kernel.remembered.room)):
        one(np.uint32(N), np.float32(1.0), memory(float(inputs[-1])), memory(0.0))
    assert kernel.remembered.used == fresh.remembered.used > 0


@pytest.mark.parametrize(("spec", "room"), [("h200", 227), ("a100", 163), ("t4", 64)])
def test_a_block_gets_the_shared_memory_that_its_launch_asks_for(spec: str, room: int) -> None:
    source = """extern __shared__ float s[];
    __global__ void k(float* x, int n) {
        for (int k = threadIdx.x; k < n; k += 32) s[k] = k;
        __syncthreads();
        x[threadIdx.x] = s[n - 1 - threadIdx.x];
    }"""
    device, n = simgpu.Device(spec=spec), room * 256
    x = simgpu.asarray(np.zeros(32, np.float32), device)
    kernel = simgpu.RawKernel(source, "k")
    kernel((1,), (32,), (x, np.int32(n)), shared_mem=room * 1024)
    assert simgpu.asnumpy(x).tolist() == [n - 1 - i for i in range(32)]
    with pytest.raises(errors.LaunchConfigError, match="bytes of shared memory"):
        kernel((1,), (32,), (x, np.int32(n)), shared_mem=room * 1024 + 4)


@pytest.mark.parametrize(
    "body",
    [
        "x[t] = 1.0f; float sum = 0.0f; for (int k = 0; k < 9; k++) sum += x[t]; if (t < 9) x[t] = sum;",
        "__shared__ float s[32]; s[t] = t; __syncthreads(); x[t] = s[31 - t]; __syncthreads(); s[t] = 0;",
        "__shared__ float s[32]; s[t] = t; __syncthreads(); x[t] = s[31 - t];",  # read and not written again
        "if (t) return; volatile float* y = x; y[0] = 1; __threadfence(); atomicAdd(x + 1, 1.0f);",
        """extern __shared__ float s[]; __shared__ cuda::barrier<cuda::thread_scope_block> ready;
        if (t == 0) init(&ready, 32); __syncthreads();
        cuda::memcpy_async(s + t, x + t, 4, ready); ready.arrive_and_wait(); x[t] = s[31 - t];""",
        "float* y = (float*)(unsigned long long)(x + t); *y = 2.0f;",
    ],
)
def test_a_launch_leaves_nothing_to_the_garbage_collector(body: str) -> None:
    """It has megabytes, and Python looks for circles after so many objects, whatever their size."""
    device = simgpu.Device()
    source = '#include <cuda/barrier>\nextern "C" __global__ void k(float* x) {'
    kernel = simgpu.RawKernel(f"{source} int t = threadIdx.x; {body} }}", "k")
    x = simgpu.asarray(np.zeros(64, np.float32), device)
    kernel((1,), (32,), (x,), shared_mem=128)  # is compiled
    x = simgpu.asarray(np.ones(64, np.float32), device)
    gc.collect()
    gc.disable()
    try:
        kernel((1,), (32,), (x,), shared_mem=128)
        simgpu.asnumpy(x)
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_a_block_larger_than_the_kernel_was_compiled_for_is_refused_by_the_call() -> None:
    source = """template <int N>
    __global__ void __launch_bounds__(N * 32, 2) k(int* x) { x[threadIdx.x] = N; }
    __launch_bounds__(32) __global__ void other(int* x) { x[threadIdx.x] = 5; }"""
    x = simgpu.asarray(np.zeros(96, np.int32))
    simgpu.RawKernel(source, "k<2>")(1, 64, (x,))
    simgpu.RawKernel(source, "other")(1, 32, (x,))
    assert x.get().tolist() == [5] * 32 + [2] * 32 + [0] * 32
    for name, block, words in (
        ("k<2>", (48, 2), "96 threads, .* at most 64"),
        ("other", 33, "33 .* 32"),
    ):
        with pytest.raises(errors.LaunchConfigError, match=words):
            simgpu.RawKernel(source, name)(1, block, (x,))
    assert x.get().tolist() == [5] * 32 + [2] * 32 + [0] * 32


def test_a_barrier_of_the_grid_needs_a_cooperative_launch() -> None:
    source = """#include <cooperative_groups.h>
    __global__ void k(int* x) {
        x[blockIdx.x] = 7 + blockIdx.x;
        cooperative_groups::this_grid().sync();
        if (blockIdx.x == 0) x[2] = x[0] + x[1];
    }"""
    x = simgpu.asarray(np.zeros(3, np.int32))
    with pytest.raises(errors.LaunchConfigError, match="enable_cooperative_groups=True"):
        simgpu.RawKernel(source, "k")(2, 1, (x,))
    simgpu.RawKernel(source, "k", enable_cooperative_groups=True)(2, 1, (x,))
    assert x.get().tolist() == [7, 8, 15]
