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
# - __global__ void ask(volatile unsigned* mail, int n, unsigned* out)
# + __global__ void ask(volatile unsigned* box, int n, unsigned* out)
# - mail[1] = 100 + k;
# + box[1] = 100 + k;
# - mail[0] = 1;
# + *box = 1;
# - while (mail[0] != 2) {
# + while (*box != 2) {
# - out[k] = mail[2];
# + out[k] = box[2];


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
# - bool ok = hostcall(host, 16, items[blockIdx.x], 0, 0, price);
# - if (!ok) return;
# - costs[blockIdx.x] = price * amounts[blockIdx.x];
# + if (hostcall(host, 16, items[blockIdx.x], 0, 0, price)) costs[blockIdx.x] = price * amounts[blockIdx.x];


# %% id=13-batch
price_all = lambda prices: lambda items, amounts, _: np.take(prices, items) * amounts


# %% id=13-ask
# - ASK = r"""
# + ASK = r"""
# + #include <cuda/atomic>
# - {
# + {
# +     cuda::atomic_ref<unsigned, cuda::thread_scope_system> flag(*(unsigned*)mail);
# - __threadfence_system();
# - mail[0] = 1;
# + flag.store(1, cuda::memory_order_release);
# - while (mail[0] != 2) {
# + while (flag.load(cuda::memory_order_acquire) != 2) {
# - __threadfence_system();


# %% id=13-ask
# - int turns = 0;
# - while (mail[0] != 2) {
# - if (++turns > 1000000) return;
# - __nanosleep(100);
# - }
# + int turns;
# + for (turns = 0; mail[0] != 2 && turns < 1000000; ++turns) __nanosleep(100);
# + if (turns == 1000000) return;


# %% id=13-pipeline
PIPELINE = r"""
#include "hostcall.cuh"
__global__ void pipeline(unsigned long long* mail, unsigned long long* stack, int pieces, int size)
{
    Hostcalls host = hostcalls(mail, stack);
    __shared__ int p[3], n[3], ok[3];
    int t = threadIdx.x;
    for (int first = 3 * blockIdx.x; first < pieces; first += 3 * gridDim.x) {
        int many = min(3, pieces - first);
        if (t < many) {
            n[t] = -1;
            p[t] = hostcall_begin(host);
            if (p[t] >= 0) {
                hostcall_ask(host, p[t], HOSTCALL_READ, 0, (first + t) * size, size);
                if (hostcall_wait(host, p[t])) n[t] = (int)hostcall_answer(host, p[t]);
            }
        }
        __syncthreads();
        for (int k = 0; k < many; ++k) {
            if (n[k] < 0) return;
            char* bytes = hostcall_bytes(host, p[k]);
            for (int i = t; i < n[k]; i += blockDim.x)
                if (bytes[i] >= 'a' && bytes[i] <= 'z') bytes[i] -= 32;
        }
        __syncthreads();
        if (t < many) {
            hostcall_ask(host, p[t], HOSTCALL_WRITE, 1, (first + t) * size, n[t]);
            ok[t] = hostcall_wait(host, p[t]);
            if (ok[t]) hostcall_end(host, p[t]);
        }
        __syncthreads();
        for (int k = 0; k < many; ++k)
            if (!ok[k]) return;
    }
}
"""


# %% id=13-ask
# - if (++turns > 1000000) return;
# + if (turns++ == 1000000) return;


# %% id=13-batch
# - return prices[items] * amounts
# + return np.einsum("i,i->i", prices.take(items), amounts)


# %% id=13-bill
# - Hostcalls host = hostcalls(mail, stack);
# + Hostcalls host = hostcalls(mail, stack);
# + if (blockIdx.x >= n || threadIdx.x > 0) return;
# - bool ok = hostcall(host, 16, items[blockIdx.x], 0, 0, price);
# - if (!ok) return;
# - costs[blockIdx.x] = price * amounts[blockIdx.x];
# + int p = hostcall_begin(host);
# + if (p < 0) return;
# + hostcall_ask(host, p, 16, items[blockIdx.x], 0, 0);
# + if (!hostcall_wait(host, p)) return;
# + bool ok = hostcall_error(host, p) == 0;
# + if (ok) price = hostcall_answer(host, p);
# + hostcall_end(host, p);
# + if (ok) costs[blockIdx.x] = price * amounts[blockIdx.x];


# %% id=13-bill
# - Hostcalls host = hostcalls(mail, stack);
# + Hostcalls host = hostcalls(mail, stack);
# + if (threadIdx.x > 0) return;


# %% id=13-bill
# - Hostcalls host = hostcalls(mail, stack);
# + Hostcalls host = hostcalls(mail, stack);
# + if (blockIdx.x >= n) return;
# - if (!ok) return;
# - costs[blockIdx.x] = price * amounts[blockIdx.x];
# + if (ok) costs[blockIdx.x] = price * amounts[blockIdx.x];


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
    __shared__ int p[4], n[4];
    int k = threadIdx.x / 8, lane = threadIdx.x % 8;
    for (int first = 4 * blockIdx.x; first < pieces; first += 4 * gridDim.x) {
        int piece = first + k;
        if (lane == 0) {
            n[k] = 0;
            if (piece < pieces) {
                n[k] = -1;
                p[k] = hostcall_begin(host);
                if (p[k] >= 0) {
                    hostcall_ask(host, p[k], HOSTCALL_READ, 0, piece * size, size);
                    if (hostcall_wait(host, p[k])) n[k] = (int)hostcall_answer(host, p[k]);
                }
            }
        }
        __syncthreads();
        int many = n[k];
        if (__syncthreads_or(many < 0)) return;
        for (int i = lane; i < many; i += 8) {
            char* bytes = hostcall_bytes(host, p[k]);
            if (bytes[i] >= 'a' && bytes[i] <= 'z') bytes[i] -= 32;
        }
        __syncthreads();
        bool ok = true;
        if (lane == 0 && piece < pieces) {
            hostcall_ask(host, p[k], HOSTCALL_WRITE, 1, piece * size, many);
            ok = hostcall_wait(host, p[k]);
            if (ok) hostcall_end(host, p[k]);
        }
        if (__syncthreads_or(!ok)) return;
    }
}
"""


# %% id=13-pipeline
PIPELINE = r"""
#include "hostcall.cuh"
__global__ void pipeline(unsigned long long* mail, unsigned long long* stack, int pieces, int size)
{
    Hostcalls host = hostcalls(mail, stack);
    int leader = threadIdx.x & ~7;
    for (int first = 4 * blockIdx.x; first < pieces; first += 4 * gridDim.x) {
        int p = -1, n = 0, piece = first + threadIdx.x / 8;
        bool asks = threadIdx.x == leader && piece < pieces;
        if (asks) {
            n = -1;
            p = hostcall_begin(host);
            if (p >= 0) {
                hostcall_ask(host, p, HOSTCALL_READ, 0, piece * size, size);
                if (hostcall_wait(host, p)) n = (int)hostcall_answer(host, p);
            }
        }
        __syncwarp();
        p = __shfl_sync(0xffffffffu, p, leader);
        n = __shfl_sync(0xffffffffu, n, leader);
        if (__any_sync(0xffffffffu, n < 0)) return;
        for (int i = threadIdx.x % 8; i < n; i += 8) {
            char* bytes = hostcall_bytes(host, p);
            if (bytes[i] >= 'a' && bytes[i] <= 'z') bytes[i] -= 32;
        }
        __syncwarp();
        if (asks) {
            hostcall_ask(host, p, HOSTCALL_WRITE, 1, piece * size, n);
            if (hostcall_wait(host, p)) hostcall_end(host, p);
            else n = -1;
        }
        if (__any_sync(0xffffffffu, n < 0)) return;
    }
}
"""


# %% id=13-ask
# - int turns = 0;
# + int turns = 1000000;
# - if (++turns > 1000000) return;
# + if (turns-- == 0) return;


# %% id=13-batch
# - return prices[items] * amounts
# + amounts *= prices[items]
# + return amounts


# %% id=13-pipeline
# - int first = blockIdx.x * 4 + threadIdx.x;
# - for (int piece = first; piece < pieces; piece += gridDim.x * 4) {
# + for (int piece = blockIdx.x + gridDim.x * threadIdx.x; piece < pieces; piece += gridDim.x * 4) {
# - if (bytes[i] >= 'a' && bytes[i] <= 'z') bytes[i] -= 32;
# + if ((bytes[i] | 32) >= 'a' && (bytes[i] | 32) <= 'z') bytes[i] &= ~32;


# %% id=13-answer
# - await agt.sleep(1)
# + await asyncio.sleep(0)


# %% id=13-answer
# - await agt.sleep(1)
# + await asyncio.sleep(1e-6)


# %% id=13-batch
# - return prices[items] * amounts
# + return prices.astype(np.int64)[items.astype(np.int64)] * amounts.astype(np.int64)


# %% id=13-pipeline
# - int first = blockIdx.x * 4 + threadIdx.x;
# - for (int piece = first; piece < pieces; piece += gridDim.x * 4) {
# - int p = hostcall_begin(host);
# - if (p < 0) return;
# + int p = hostcall_begin(host);
# + for (int piece = blockIdx.x * 4 + threadIdx.x; piece < pieces && p >= 0; piece += gridDim.x * 4) {
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


# %% id=13-ask
# -         int turns = 0;
# -         while (mail[0] != 2) {
# -             if (++turns > 1000000) return;
# -             __nanosleep(100);
# -         }
# +         bool here = false;
# +         for (int a = 0; a < 1000 && !here; ++a)
# +             for (int b = 0; b < 1000 && !here; ++b) {
# +                 here = mail[0] == 2;
# +                 if (!here) __nanosleep(100);
# +             }
# +         if (!here) return;
