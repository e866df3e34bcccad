"""The header cuda/atomic: what an order and a scope are worth."""

from contextlib import nullcontext

import numpy as np
import pytest

from simgpu import errors
from simgpu.cuda_c import InterpreterLimits
from simgpu.cuda_c.cost.path import ATOMIC, FENCE_CLOCKS, VOLATILE

from .support import launch

# Blocks meet. All threads fence, thread 0 does before it counts and behind its look, and all do: "-" is none.
RIGHT = ["seq_cst - - seq_cst", "- acq_rel acq_rel -", "seq_cst - seq_cst acquire", "- release acquire -"]  # fmt: skip
WRONG = ["acq_rel - - acq_rel", "release - seq_cst -", "seq_cst - - acquire", "- acquire acquire -"]
MEET = """#include <cuda/atomic>
extern "C" __global__ void k(int* x, int* count, int* out) {
    int i = blockIdx.x * 32 + threadIdx.x;
    x[i] = i; FENCE MEET();
    if (threadIdx.x == 0) { FENCE atomicAdd(count, 1); while (atomicAdd(count, 0) < 3) { } FENCE }
    MEET(); FENCE out[i] = x[(i + 32) % 96]; }"""


@pytest.mark.parametrize("meet", ["__syncthreads", "__syncwarp"])
@pytest.mark.parametrize("orders", [*RIGHT, *WRONG])
def test_a_fence_goes_with_a_flag_of_its_thread_or_is_seq_cst(orders: str, meet: str) -> None:
    source, got = MEET.replace("MEET", meet), list[bool]()
    for order in orders.split():
        fence = f"cuda::atomic_thread_fence(cuda::memory_order_{order}, cuda::thread_scope_device);"
        source = source.replace("FENCE", fence * (order != "-"), 1)
    for seed in range(20):
        x, out, count = (np.zeros(size, np.int32) for size in (96, 96, 1))
        launch(source, "k", 3, 32, x, count, out, limits=InterpreterLimits(hostile=seed))
        got.append((out == np.roll(x, -32)).all())
    assert all(got) == (orders in RIGHT)
    with nullcontext() if all(got) else pytest.raises(errors.RaceError):
        launch(source, "k", 3, 32, x * 0, count * 0, out)


@pytest.mark.parametrize("text", ["", "o[i] = a.fetch_add(1, RELAXED);", "o[i] = v[1] + v[2];"])
def test_what_is_in_a_kernel_with_a_fence_of_the_system_costs_what_it_costs(text: str) -> None:
    head = """#include <cuda/atomic>
        __global__ void k(int* o, volatile int* v) {
            int i = threadIdx.x; cuda::atomic_ref<int> a(*(int*)v); """
    text = head + text.replace("RELAXED", "cuda::memory_order_relaxed")
    fences = "", "__threadfence_block();", "__threadfence();", "__threadfence_system();"
    none, *took = (
        launch(f"{text} {fence} }}", "k", 1, 32, *np.zeros((2, 32), np.int32)).counts.chain_latency
        for fence in fences
    )
    assert [latency - none for latency in took] == pytest.approx([*FENCE_CLOCKS.values()], abs=5)
    assert none >= (ATOMIC if "add" in text else VOLATILE if "v[" in text else 0)


def test_members_of_both_classes_count_all_threads() -> None:
    source = """#include <cuda/atomic>
    __device__ cuda::atomic<unsigned, cuda::thread_scope_device> most;
    extern "C" __global__ void k(int* n, unsigned* u, int* swapped) {
        __shared__ cuda::atomic<int, cuda::thread_scope_block> sum;
        if (threadIdx.x == 0) sum.store(0);
        __syncthreads();
        sum.fetch_add(2, cuda::memory_order_relaxed);
        most.fetch_max(threadIdx.x);
        __syncthreads();
        if (threadIdx.x == 0) { n[0] = sum; n[1] = most.load(); n[2] = most.is_lock_free(); }
        cuda::atomic_ref<unsigned> all(u[0]);
        all += 3u;
        unsigned seen = 96;
        if (all.compare_exchange_strong(seen, 7u)) atomicAdd(swapped, 1);
        all.wait(96);
        all++;
    }"""
    n, u, swapped = np.zeros(3, np.int32), np.zeros(1, np.uint32), np.zeros(1, np.int32)
    launch(source, "k", 1, 32, n, u, swapped)
    assert list(n) == [64, 31, 1]
    assert swapped[0] == 1
    assert u[0] == 7 + 32
