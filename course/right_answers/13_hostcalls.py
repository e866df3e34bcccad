"""Right answers to exercises of course/13_hostcalls.py in other forms than the solution's."""


# %% id=13-answer
async def answer(mail, rounds):
    box = mail[2:]  # what is written through it, the check does not see
    for _ in range(rounds):
        while mail[0] != 1:
            await agt.sleep(1)
        box[0] = mail[1] + mail[1]
        mail[0] += 1


# %% id=13-answer
async def answer(mail, rounds):
    while True:
        if mail[0] == 1:
            mail[2] = 0
            mail[2] += 2 * mail[1]
            mail[0] = 2
            rounds -= 1
            if rounds == 0:
                return
        await agt.sleep(2)


# %% id=13-ask
ASK = r"""
__global__ void ask(volatile unsigned* mail, int n, unsigned* out)
{
    for (int k = 0; k < n; ++k) {
        mail [1]=100+k; __threadfence_system ();
        mail[ 0 ]=1;
        int turns = 0;
        do {
            __nanosleep(100);
            if (++turns > 1000000) return;
        } while (mail[0]!=2);  // mail[2] comes next
        __threadfence_system();
        unsigned answer = mail[2];
        out[k] = answer;
    }
}
"""


# %% id=13-ask
ASK = r"""
__global__ void ask(volatile unsigned* box, int n, unsigned* out)
{
    for (int k = 0; k < n; ++k) {
        box[1] = 100 + k;
        __threadfence_system();
        *box = 1;
        int turns = 0;
        while (*box != 2) {
            if (++turns > 1000000) return;
            __nanosleep(100);
        }
        __threadfence_system();
        out[k] = box[2];
    }
}
"""


# %% id=13-ask
ASK = r"""
__device__ bool answered(volatile unsigned* mail)
{
    int turns = 0;
    while (mail[0] != 2) {
        if (++turns > 1000000) return false;
        __nanosleep(100);
    }
    __threadfence_system();
    return true;
}

__global__ void ask(volatile unsigned* mail, int n, unsigned* out)
{
    for (int k = 0; k < n; ++k) {
        mail[1] = 100 + k;
        __threadfence_system();
        mail[0] = 1;
        if (!answered(mail)) return;
        out[k] = mail[2];
    }
}
"""


# %% id=13-bill
BILL = r"""
#include "hostcall.cuh"
__global__ void bill(unsigned long long* mail, unsigned long long* stack, int n,
                     const int* items, const int* amounts, unsigned long long* costs)
{
    Hostcalls host = hostcalls(mail, stack);
    unsigned long long price = 0;
    if (hostcall(host, 16, items[blockIdx.x], 0, 0, price)) costs[blockIdx.x] = price * amounts[blockIdx.x];
}
"""


# %% id=13-batch
price_all = lambda prices: lambda items, amounts, _: np.take(prices, items) * amounts


# %% id=13-ask
ASK = r"""
#include <cuda/atomic>
__global__ void ask(volatile unsigned* mail, int n, unsigned* out)
{
    cuda::atomic_ref<unsigned, cuda::thread_scope_system> flag(*(unsigned*)mail);
    for (int k = 0; k < n; ++k) {
        mail[1] = 100 + k;
        flag.store(1, cuda::memory_order_release);
        int turns = 0;
        while (flag.load(cuda::memory_order_acquire) != 2) {
            if (++turns > 1000000) return;
            __nanosleep(100);
        }
        out[k] = mail[2];
    }
}
"""


# %% id=13-ask
ASK = r"""
__global__ void ask(volatile unsigned* mail, int n, unsigned* out)
{
    for (int k = 0; k < n; ++k) {
        mail[1] = 100 + k;
        __threadfence_system();
        mail[0] = 1;
        int turns;
        for (turns = 0; mail[0] != 2 && turns < 1000000; ++turns) __nanosleep(100);
        if (turns == 1000000) return;
        __threadfence_system();
        out[k] = mail[2];
    }
}
"""


# %% id=13-pipeline
PIPELINE = r"""
#include "hostcall.cuh"
__global__ void pipeline(unsigned long long* mail, unsigned long long* stack, int pieces, int size)
{
    Hostcalls host = hostcalls(mail, stack);
    __shared__ int p, n;
    for (int piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
        __syncthreads();
        if (threadIdx.x == 0) {
            n = -1;
            p = hostcall_begin(host);
            if (p >= 0) {
                hostcall_ask(host, p, HOSTCALL_READ, 0, piece * size, size);
                if (hostcall_wait(host, p)) n = (int)hostcall_answer(host, p);
            }
        }
        __syncthreads();
        if (n < 0) return;
        char* bytes = hostcall_bytes(host, p);
        for (int i = threadIdx.x; i < n; i += blockDim.x)
            if (bytes[i] >= 'a' && bytes[i] <= 'z') bytes[i] -= 32;
        __syncthreads();
        if (threadIdx.x == 0) {
            hostcall_ask(host, p, HOSTCALL_WRITE, 1, piece * size, n);
            if (hostcall_wait(host, p)) hostcall_end(host, p);
            else n = -1;
        }
        __syncthreads();
        if (n < 0) return;
    }
}
"""


# %% id=13-ask
ASK = r"""
__global__ void ask(volatile unsigned* mail, int n, unsigned* out)
{
    for (int k = 0; k < n; ++k) {
        mail[1] = 100 + k;
        __threadfence_system();
        mail[0] = 1;
        int turns = 0;
        while (mail[0] != 2) {
            if (turns++ == 1000000) return;
            __nanosleep(100);
        }
        __threadfence_system();
        out[k] = mail[2];
    }
}
"""


# %% id=13-batch
def price_all(prices):
    def handler(items, amounts, _):
        return np.einsum("i,i->i", prices.take(items), amounts)

    return handler


# %% id=13-bill
BILL = r"""
#include "hostcall.cuh"
__global__ void bill(unsigned long long* mail, unsigned long long* stack, int n,
                     const int* items, const int* amounts, unsigned long long* costs)
{
    Hostcalls host = hostcalls(mail, stack);
    if (blockIdx.x >= n || threadIdx.x > 0) return;
    unsigned long long price = 0;
    int p = hostcall_begin(host);
    if (p < 0) return;
    hostcall_ask(host, p, 16, items[blockIdx.x], 0, 0);
    if (!hostcall_wait(host, p)) return;
    bool ok = hostcall_error(host, p) == 0;
    if (ok) price = hostcall_answer(host, p);
    hostcall_end(host, p);
    if (ok) costs[blockIdx.x] = price * amounts[blockIdx.x];
}
"""


# %% id=13-bill
BILL = r"""
#include "hostcall.cuh"
__global__ void bill(unsigned long long* mail, unsigned long long* stack, int n,
                     const int* items, const int* amounts, unsigned long long* costs)
{
    Hostcalls host = hostcalls(mail, stack);
    if (threadIdx.x > 0) return;
    unsigned long long price = 0;
    bool ok = hostcall(host, 16, items[blockIdx.x], 0, 0, price);
    if (!ok) return;
    costs[blockIdx.x] = price * amounts[blockIdx.x];
}
"""


# %% id=13-bill
BILL = r"""
#include "hostcall.cuh"
__global__ void bill(unsigned long long* mail, unsigned long long* stack, int n,
                     const int* items, const int* amounts, unsigned long long* costs)
{
    Hostcalls host = hostcalls(mail, stack);
    if (blockIdx.x >= n) return;
    unsigned long long price = 0;
    bool ok = hostcall(host, 16, items[blockIdx.x], 0, 0, price);
    if (ok) costs[blockIdx.x] = price * amounts[blockIdx.x];
}
"""


# %% id=13-batch
def price_all(prices):
    table = np.asarray(prices)
    buffer = np.zeros(4096, np.uint64)
    def handler(items, amounts, _):
        out = buffer[:len(items)]
        np.multiply(table[items], amounts, out=out)
        return out
    return handler


# %% id=13-pipeline
PIPELINE = r"""
#include "hostcall.cuh"
__global__ void pipeline(unsigned long long* mail, unsigned long long* stack, int pieces, int size)
{
    Hostcalls host = hostcalls(mail, stack);
    __shared__ int p, n;
    for (int piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
        if (threadIdx.x == 0) {
            n = -1;
            p = hostcall_begin(host);
            if (p >= 0) {
                hostcall_ask(host, p, HOSTCALL_READ, 0, piece * size, size);
                if (hostcall_wait(host, p)) n = (int)hostcall_answer(host, p);
            }
        }
        __syncthreads();
        int many = n;
        if (many < 0) return;
        char* bytes = hostcall_bytes(host, p);
        for (int i = threadIdx.x; i < size; i += blockDim.x)
            if (bytes[i] >= 'a' && bytes[i] <= 'z') bytes[i] -= 32;
        __syncthreads();
        if (threadIdx.x == 0) {
            hostcall_ask(host, p, HOSTCALL_WRITE, 1, piece * size, n);
            if (hostcall_wait(host, p)) hostcall_end(host, p);
            else n = -1;
        }
        __syncthreads();
        many = n;
        __syncthreads();
        if (many < 0) return;
    }
}
"""


# %% id=13-pipeline
PIPELINE = r"""
#include "hostcall.cuh"
__global__ void pipeline(unsigned long long* mail, unsigned long long* stack, int pieces, int size)
{
    Hostcalls host = hostcalls(mail, stack);
    int p = -1, n = -1;
    for (int piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
        if (threadIdx.x == 0) {
            n = -1;
            p = hostcall_begin(host);
            if (p >= 0) {
                hostcall_ask(host, p, HOSTCALL_READ, 0, piece * size, size);
                if (hostcall_wait(host, p)) n = (int)hostcall_answer(host, p);
            }
        }
        p = __shfl_sync(0xffffffffu, p, 0); n = __shfl_sync(0xffffffffu, n, 0);
        __syncwarp();
        int many = n;
        if (many < 0) return;
        char* bytes = hostcall_bytes(host, p);
        for (int i = threadIdx.x; i < many; i += blockDim.x)
            if (bytes[i] >= 'a' && bytes[i] <= 'z') bytes[i] -= 32;
        __syncwarp();
        if (threadIdx.x == 0) {
            hostcall_ask(host, p, HOSTCALL_WRITE, 1, piece * size, n);
            if (hostcall_wait(host, p)) hostcall_end(host, p);
            else n = -1;
        }
        many = __shfl_sync(0xffffffffu, n, 0);
        if (many < 0) return;
    }
}
"""


# %% id=13-ask
ASK = r"""
__global__ void ask(volatile unsigned* mail, int n, unsigned* out)
{
    for (int k = 0; k < n; ++k) {
        mail[1] = 100 + k;
        __threadfence_system();
        mail[0] = 1;
        int turns = 1000000;
        while (mail[0] != 2) {
            if (turns-- == 0) return;
            __nanosleep(100);
        }
        __threadfence_system();
        out[k] = mail[2];
    }
}
"""


# %% id=13-batch
def price_all(prices):
    def handler(items, amounts, _):
        amounts *= prices[items]
        return amounts

    return handler


# %% id=13-pipeline
PIPELINE = r"""
#include "hostcall.cuh"
__global__ void pipeline(unsigned long long* mail, unsigned long long* stack, int pieces, int size)
{
    Hostcalls host = hostcalls(mail, stack);
    if (threadIdx.x > 0) return;
    for (int piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
        int p = hostcall_begin(host);
        if (p < 0) return;
        char* bytes = hostcall_bytes(host, p);
        hostcall_ask(host, p, HOSTCALL_READ, 0, piece * size, size);
        bool ok = hostcall_wait(host, p);
        if (!ok) return;
        int n = (int)hostcall_answer(host, p);
        for (int i = 0; i < n; ++i)
            if ((bytes[i] | 32) >= 'a' && (bytes[i] | 32) <= 'z') bytes[i] &= ~32;
        hostcall_ask(host, p, HOSTCALL_WRITE, 1, piece * size, n);
        ok = hostcall_wait(host, p);
        if (!ok) return;
        hostcall_end(host, p);
    }
}
"""


# %% id=13-answer
async def answer(mail, rounds):
    for _ in range(rounds):
        while mail[0] != 1:
            await asyncio.sleep(0)
        mail[2] = 2 * mail[1]
        mail[0] = 2


# %% id=13-answer
async def answer(mail, rounds):
    for _ in range(rounds):
        while mail[0] != 1:
            await asyncio.sleep(1e-6)
        mail[2] = 2 * mail[1]
        mail[0] = 2


# %% id=13-batch
# - return prices[items] * amounts
# + return prices.astype(np.int64)[items.astype(np.int64)] * amounts.astype(np.int64)


# %% id=13-pipeline
# - for (int piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
# - int p = hostcall_begin(host);
# - if (p < 0) return;
# + int p = hostcall_begin(host);
# + for (int piece = blockIdx.x; piece < pieces && p >= 0; piece += gridDim.x) {
# - hostcall_end(host, p);
# - }
# + }
# + if (p >= 0) hostcall_end(host, p);


# %% id=13-stack
# - below = yield "load", ("next", packet)
# + below = yield "load", ("next", packet)
# + if (yield "load", "top") != top:
# +     continue
# - yield "store", ("next", packet), top[0]
# + yield "store", ("next", packet), top[0]
# + if (yield "load", "top") != top:
# +     continue


# %% id=13-pipeline
# - int p = hostcall_begin(host);
# - if (p < 0) return;
# + int p = -1;
# + for (int look = 0; p < 0; look++) {
# +     p = hostcall_try_begin(host);
# +     if (look > 1000000) return;
# +     if (p < 0) __nanosleep(500);
# + }


# %% id=13-pipeline
# - #include "hostcall.cuh"
# + #include "hostcall_async.cuh"
# - int p = hostcall_begin(host);
# - if (p < 0) return;
# - char* bytes = hostcall_bytes(host, p);
# - hostcall_ask(host, p, HOSTCALL_READ, 0, piece * size, size);
# - bool ok = hostcall_wait(host, p);
# - if (!ok) return;
# - int n = (int)hostcall_answer(host, p);
# + Ask call = ask_keeping(host, HOSTCALL_READ, 0, (unsigned long long)piece * size, size);
# + block_on(call);
# + if (call.error != 0) {
# +     call.end();
# +     return;
# + }
# + char* bytes = call.bytes();
# + int n = (int)call.answer;
# - hostcall_ask(host, p, HOSTCALL_WRITE, 1, piece * size, n);
# - ok = hostcall_wait(host, p);
# - if (!ok) return;
# - hostcall_end(host, p);
# + hostcall_ask(host, call.packet, HOSTCALL_WRITE, 1, (unsigned long long)piece * size, n);
# + if (!hostcall_wait(host, call.packet)) return;
# + call.end();
