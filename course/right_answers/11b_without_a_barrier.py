"""Right answers to exercises of course/11b_without_a_barrier.py in other forms than the solution's."""


# %% id=11b-queue
# - float sum = work(lengths[mine]);
# - if (threadIdx.x == 0) results[mine] = sum;
# - __syncthreads();
# + float sum = work(lengths[job]);
# + if (threadIdx.x == 0) results[job] = sum;


# %% id=11b-while
def avalanche(drop, topple, unstable, stream):
    """Two waves in a turn, the second of them only if the first has left a cell that has to topple."""
    down = agt.zeros(1, np.int32).sync_on(stream)

    def wave(*more):
        return agt.zip(agt.memcpy(unstable.borrow(), down.borrow()), topple(), *more)

    two = wave(agt.CudaGraph.cond(unstable.borrow(), wave()))
    return agt.zip(drop(), agt.CudaGraph.while_loop(unstable.borrow(), two)).graph_on(stream)


# %% id=11b-while
LOWER = agt.Kernel('extern "C" __global__ void lower(int* flag) { *flag = 0; }')


def avalanche(drop, topple, unstable, stream):
    """The flag goes down before the grain falls, too, and a kernel of its own lowers it."""

    def lower():
        return LOWER(unstable.borrow(), grid=1, block=1)

    turn = lower().and_then(lambda _: topple())
    waves = agt.CudaGraph.while_loop(unstable.borrow(), turn)
    return lower().and_then(lambda _: drop()).and_then(lambda _: waves).graph_on(stream)


# %% id=11b-last
# - LAST = r"""
# + # `atomicInc` sets the counter back by itself.
# + LAST = r"""
# - is_last = atomicAdd(arrived, 1) == gridDim.x - 1;
# - if (is_last) atomicExch(arrived, 0);
# + is_last = atomicInc(arrived, gridDim.x - 1) == gridDim.x - 1;


# %% id=11b-last of=starter
# + # Each thread counts for itself.
# - return blockIdx.x == gridDim.x - 1;
# + __threadfence();
# + bool mine = atomicAdd(arrived, 1) == gridDim.x * blockDim.x - 1;
# + bool any = __syncthreads_or(mine);
# + if (mine) *arrived = 0;
# + __threadfence();
# + return any;


# %% id=11b-last
LAST = r"""
#include <cuda/atomic>
__device__ bool last(unsigned int* arrived)
{
    __syncthreads();
    bool mine = false;
    if (threadIdx.x == 0) {
        cuda::atomic_ref<unsigned int, cuda::thread_scope_device> count(*arrived);
        mine = count.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1;
        if (mine) count.store(0, cuda::memory_order_relaxed);
    }
    return __syncthreads_or(mine);
}
"""


# %% id=11b-queue
# - if (threadIdx.x == 0) job = atomicAdd(next, 1);
# + if (threadIdx.x == 0) {
# +     job = atomicAdd(next, 0);
# +     if (job < jobs) job = atomicAdd(next, 1);
# + }


# %% id=11b-queue
# - while (true) {
# + for (unsigned int k = 0; k < jobs; k++) {


# %% id=11b-last
# - is_last = atomicAdd(arrived, 1) == gridDim.x - 1;
# - if (is_last) atomicExch(arrived, 0);
# + unsigned int was = *(volatile unsigned int*)arrived, seen;
# + while ((seen = atomicCAS(arrived, was, was + 1 == gridDim.x ? 0 : was + 1)) != was) was = seen;
# + is_last = was + 1 == gridDim.x;
