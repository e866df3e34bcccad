"""Right answers to exercises of course/12_async_inside_a_kernel.py in other forms than the solution's."""

# %% id=12-oneshot
# To PTX a volatile access is a relaxed one at system scope, so with fences it passes on a message.
ONESHOT = r"""
__device__ void send(unsigned int* cell, unsigned int x)
{
    volatile unsigned int* flag = cell;
    cell[1] = x;
    __threadfence();
    flag[0] = 1;
}

__device__ Poll poll(unsigned int* cell, unsigned int& x)
{
    volatile unsigned int* flag = cell;
    if (flag[0] == 0) return PENDING;
    __threadfence();
    x = cell[1];
    return READY;
}
"""


# %% id=12-oneshot
ONESHOT = r"""
__device__ Poll poll(unsigned int* cell, unsigned int& x)
{
    if (atomicCAS(cell, 1u, 1u)) {  /* cell[1] is full */
        __threadfence();
        x = *(cell + 1);
        return READY;
    }
    return PENDING;
}

__device__ void send(unsigned int* cell, unsigned int x)
{
    *(cell + 1) = x; __threadfence(); atomicAdd(cell, 1u);
}
"""


# %% id=12-oneshot
ONESHOT = r"""
__device__ bool raised(unsigned int* flag)
{
    bool up = atomicAdd(flag, 0u) != 0;
    __threadfence();
    return up;
}

__device__ void send(unsigned int* cell, unsigned int x)
{
    cell[1] = x;
    __threadfence();
    atomicExch(&cell[0], 1u);
}

__device__ Poll poll(unsigned int* cell, unsigned int& x)
{
    if (!raised(cell)) return PENDING;
    x = cell[1];
    return READY;
}
"""


# %% id=12-oneshot
ONESHOT_IN_PARTS = r"""
__device__ bool raised(unsigned int* flag)
{
    bool up = atomicAdd(flag, 0u) != 0;
    __threadfence();
    return up;
}

__device__ void send(unsigned int* cell, unsigned int x)
{
    cell[1] = x;
    __threadfence();
    atomicExch(&cell[0], 1u);
}

__device__ Poll poll(unsigned int* cell, unsigned int& x)
{
    if (!raised(cell)) return PENDING;
    x = cell[1];
    return READY;
}
"""


ONESHOT = ONESHOT_IN_PARTS.replace("raised(cell)", "raised(&cell[0])")


# %% id=12-oneshot
ONESHOT = r"""
#include <cuda/atomic>
__device__ void send(unsigned int* cell, unsigned int x)
{
    cell[1] = x;
    cuda::atomic_ref<unsigned int, cuda::thread_scope_device>(cell[0]).store(1u, cuda::memory_order_release);
}

__device__ Poll poll(unsigned int* cell, unsigned int& x)
{
    cuda::atomic_ref<unsigned int, cuda::thread_scope_device> flag(cell[0]);
    if (flag.load(cuda::memory_order_acquire) == 0) return PENDING;
    x = cell[1];
    return READY;
}
"""


# %% id=12-channel
SEND = r"""
__device__ void send(unsigned int* tail, unsigned int* full, unsigned int* values, unsigned int x)
{
    unsigned int place;
    do {
        place = atomicAdd(tail, 0u);
    } while (atomicCAS(tail, place, place + 1) != place);
    values[place] = x;
    __threadfence();
    atomicExch(&full[place], 1u);
}
"""


# %% id=12-warp
WARP_TAKE = r"""
__device__ Poll warp_take(unsigned int* mail, unsigned int& message)
{
    unsigned int found = 0;
    int state = PENDING;
    if (threadIdx.x % 32 == 0) state = take(mail, found);
    state = __shfl_sync(0xffffffff, state, 0);
    if (state == READY) message = __shfl_sync(0xffffffff, found, 0);
    return (Poll)state;
}
"""
