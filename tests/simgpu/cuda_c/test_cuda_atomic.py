"""The header cuda/atomic: what an order and a scope are worth."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

from simgpu import errors

from .support import launch

# One block hands a number to another.
HAND_OVER = """#include <cuda/atomic>
extern "C" __global__ void k(int* cell, int* flag, int* out) {
    cuda::atomic_ref<int, cuda::thread_scope_SCOPE> ready(*flag);
    if (blockIdx.x == 0) { cell[0] = 42; ready.store(1, cuda::memory_order_STORE); }
    else { while (ready.load(cuda::memory_order_acquire) == 0) { } out[0] = cell[0]; }
}"""


def handed(scope: str, store: str) -> int:
    cell, flag, out = (np.zeros(1, np.int32) for _ in range(3))
    launch(HAND_OVER.replace("SCOPE", scope).replace("STORE", store), "k", 2, 1, cell, flag, out)
    return int(out[0])


@pytest.mark.parametrize("scope", ["device", "system"])
@pytest.mark.parametrize("store", ["release", "seq_cst"])
def test_a_release_hands_over_what_was_written_before_it(scope: str, store: str) -> None:
    assert handed(scope, store) == 42


@pytest.mark.parametrize(
    ("scope", "store"), [("device", "relaxed"), ("block", "release"), ("thread", "release")]
)
def test_less_than_that_is_a_race(scope: str, store: str) -> None:
    with pytest.raises(errors.RaceError):
        handed(scope, store)


@pytest.mark.parametrize("orders", ["release acquire", "acq_rel acq_rel", "acquire acquire"])
def test_a_fence_does_what_its_order_says(orders: str) -> None:
    source = HAND_OVER.replace("SCOPE", "device").replace("_STORE", "_relaxed")
    fence = "cuda::atomic_thread_fence(cuda::memory_order_{}, cuda::thread_scope_device); "
    writer, reader = (fence.format(order) for order in orders.split())
    source = source.replace("ready.store", writer + "ready.store")
    source = source.replace("_acquire) == 0) { }", "_relaxed) == 0) { } " + reader)
    with pytest.raises(errors.RaceError) if "acquire a" in orders else nullcontext():
        launch(source, "k", 2, 1, *(np.zeros(1, np.int32) for _ in range(3)))


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
