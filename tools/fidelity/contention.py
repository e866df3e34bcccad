"""Contention on words of global memory, measured: one JSON line per pattern, in us a launch.

    PYTHONPATH=. python tools/fidelity/contention.py > tools/fidelity/recordings/contention.json

A launch is a node of a graph of equal nodes; each has words of its own, reset before the graph is launched.
`"sim": false` has inline PTX. The recording's `"held"` is of a first model of contention, which was dropped.
Of the present one, no constant was chosen by a kernel that `held` names, but some constants are those of the
first model, for which all times were in sight. They are in `simgpu/cuda_c/cost/path.py` and `simgpu/spec.py`.
"""

from __future__ import annotations

import hashlib
import json
import statistics
import sys
import time

import numpy as np

SOURCE = r"""
#define LANE (threadIdx.x % 32)
#define WARP ((blockIdx.x * blockDim.x + threadIdx.x) / 32)

extern "C" __global__ void nothing(unsigned* w, unsigned* out, int n, int k, int m) {}

// Each warp's first `m` lanes add n times to one of k words, and need each result.
extern "C" __global__ void add_chain(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned v = 0;
    if (LANE < m) {
        unsigned* p = w + WARP % k * 32;
        for (int i = 0; i < n; i++) v = atomicAdd(p, 1 + (v >> 31));
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
// The number is known to the compiler: lanes of a warp may go together.
extern "C" __global__ void add_one(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned v = 0;
    if (LANE < m) {
        unsigned* p = w + WARP % k * 32;
        for (int i = 0; i < n; i++) { v = atomicAdd(p, 1); if (v >> 31) break; }
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
// Nobody needs the result.
extern "C" __global__ void add_free(unsigned* w, unsigned* out, int n, int k, int m)
{
    if (LANE < m) {
        unsigned* p = w + WARP % k * 32;
        for (int i = 0; i < n; i++) atomicAdd(p, i + 1);
    }
}
extern "C" __global__ void cas_chain(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned v = 0;
    if (LANE < m) {
        unsigned* p = w + WARP % k * 32;
        for (int i = 0; i < n; i++) v = atomicCAS(p, v, v + 1);
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
extern "C" __global__ void exch_chain(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned v = 0;
    if (LANE < m) {
        unsigned* p = w + WARP % k * 32;
        for (int i = 0; i < n; i++) v = atomicExch(p, v + 1);
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
extern "C" __global__ void min_chain(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned v = 5;
    if (LANE < m) {
        unsigned* p = w + WARP % k * 32;
        for (int i = 0; i < n; i++) v = atomicMin(p, v + 1);
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
extern "C" __global__ void float_chain(float* w, float* out, int n, int k, int m)
{
    float v = 0;
    if (LANE < m) {
        float* p = w + WARP % k * 32;
        for (int i = 0; i < n; i++) v = atomicAdd(p, v > 1e30f ? 0.0f : 1.0f);
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
// Each lane has a word of its own: k apart, so in one line or in many.
extern "C" __global__ void own_chain(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned v = 0, *p = w + (blockIdx.x * blockDim.x + threadIdx.x) * k;
    if (LANE < m) {
        for (int i = 0; i < n; i++) v = atomicAdd(p, 1 + (v >> 31));
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
extern "C" __global__ void own_free(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned* p = w + (blockIdx.x * blockDim.x + threadIdx.x) * k;
    if (LANE < m) {
        for (int i = 0; i < n; i++) atomicAdd(p, i + 1);
    }
}
// Looks, which change nothing.
extern "C" __global__ void look_add(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned v = 0;
    if (LANE < m) {
        unsigned* p = w + WARP % k * 32;
        for (int i = 0; i < n; i++) { v = atomicAdd(p, 0); if (v > 5) break; }
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
extern "C" __global__ void look_volatile(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned v = 0;
    if (LANE < m) {
        volatile unsigned* p = w + WARP % k * 32;
        for (int i = 0; i < n; i++) { v = *p; if (v > 5) break; }
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
// Each look takes a new word.
extern "C" __global__ void look_new(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned v = 0;
    if (LANE < m) {
        for (int i = 0; i < n; i++) { v = atomicAdd(w + i * 32, 0); if (v > 5) break; }
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
__device__ float work(float x, int m)
{
    for (int j = 0; j < m; j++) x = x * 0.5f + 1.0f;
    return x;
}
// A look, then some work, again and again.
extern "C" __global__ void spaced(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned v = 0;
    float x = threadIdx.x;
    if (LANE == 0) {
        unsigned* p = w + WARP % k * 32;
        for (int i = 0; i < n; i++) { v = atomicAdd(p, 1); x = work(x + v, m); }
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = v + (x > 1e30f);
}
// All count n times at the begin, and work alone after that.
extern "C" __global__ void burst(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned v = 0;
    float x = threadIdx.x;
    if (LANE == 0) {
        unsigned* p = w + WARP % k * 32;
        for (int i = 0; i < n; i++) v = atomicAdd(p, 1 + (v >> 31));
    }
    x = work(x, m);
    out[blockIdx.x * blockDim.x + threadIdx.x] = v + (x > 1e30f);
}
// All work alone, and count n times at the end, one after another block.
extern "C" __global__ void stairs(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned v = 0;
    float x = work((float)threadIdx.x, m * (int)blockIdx.x);
    if (LANE == 0) {
        unsigned* p = w + WARP % k * 32;
        for (int i = 0; i < n; i++) v = atomicAdd(p, 1 + (v >> 31));
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = v + (x > 1e30f);
}
// Fences: n, one after another, behind a store or an atomic or nothing (m).
extern "C" __global__ void fences(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned* p = w + (blockIdx.x * blockDim.x + threadIdx.x);
    for (int i = 0; i < n; i++) {
        if (m == 1) *p = i;
        if (m == 2) atomicAdd(p, i);
        __threadfence();
    }
}
extern "C" __global__ void fence_load(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned v = 0;
    for (int i = 0; i < n; i++) {
        v += w[v + threadIdx.x % k];
        if (m) __threadfence();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
__device__ void meet(unsigned* arrived, unsigned goal)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1);
        unsigned looks = 0;
        while (atomicAdd(arrived, 0) < goal) {
            if (++looks > 10000000) __trap();
        }
        __threadfence();
    }
    __syncthreads();
}
extern "C" __global__ void meet_add(unsigned* w, unsigned* out, int n, int k, int m)
{
    for (int i = 1; i <= n; i++) meet(w, i * gridDim.x);
}
__device__ void meet_by_volatile(unsigned* arrived, unsigned goal)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1);
        volatile unsigned* look = arrived;
        unsigned looks = 0;
        while (*look < goal) {
            if (++looks > 10000000) __trap();
        }
        __threadfence();
    }
    __syncthreads();
}
extern "C" __global__ void meet_volatile(unsigned* w, unsigned* out, int n, int k, int m)
{
    for (int i = 1; i <= n; i++) meet_by_volatile(w, i * gridDim.x);
}
__device__ void meet_and_nap(unsigned* arrived, unsigned goal, int m)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1);
        unsigned looks = 0;
        while (atomicAdd(arrived, 0) < goal) {
            __nanosleep(m);
            if (++looks > 10000000) __trap();
        }
        __threadfence();
    }
    __syncthreads();
}
extern "C" __global__ void meet_nap(unsigned* w, unsigned* out, int n, int k, int m)
{
    for (int i = 1; i <= n; i++) meet_and_nap(w, i * gridDim.x, m);
}
// Count, and look until all have counted, without fences and barriers of the block.
extern "C" __global__ void meet_bare(unsigned* w, unsigned* out, int n, int k, int m)
{
    if (threadIdx.x == 0) {
        for (int i = 1; i <= n; i++) {
            atomicAdd(w, 1);
            unsigned looks = 0;
            while (atomicAdd(w, 0) < i * gridDim.x) {
                if (++looks > 10000000) __trap();
            }
        }
    }
}
__device__ void meet_gate(unsigned* gate)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned before = atomicAdd(&gate[1], 0);
        __threadfence();
        if (atomicAdd(&gate[0], 1) == gridDim.x - 1) {
            atomicExch(&gate[0], 0);
            __threadfence();
            atomicAdd(&gate[1], 1);
        } else {
            unsigned looks = 0;
            while (atomicAdd(&gate[1], 0) == before) {
                if (++looks > 10000000) __trap();
            }
            __threadfence();
        }
    }
    __syncthreads();
}
extern "C" __global__ void gates(unsigned* w, unsigned* out, int n, int k, int m)
{
    for (int i = 1; i <= n; i++) meet_gate(w);
}
// A meeting, and some work of each block behind it.
extern "C" __global__ void meet_work(unsigned* w, unsigned* out, int n, int k, int m)
{
    float x = threadIdx.x;
    for (int i = 1; i <= n; i++) { x = work(x, m); meet(w, i * gridDim.x); }
    out[blockIdx.x * blockDim.x + threadIdx.x] = x > 1e30f;
}
// A token that goes round: all others look meanwhile.
extern "C" __global__ void token_add(unsigned* w, unsigned* out, int n, int k, int m)
{
    if (threadIdx.x == 0) {
        for (unsigned i = 0; i < n; i++) {
            unsigned looks = 0;
            while (atomicAdd(w, 0) != i * gridDim.x + blockIdx.x) {
                if (++looks > 10000000) __trap();
            }
            atomicAdd(w, 1);
        }
    }
}
extern "C" __global__ void token_volatile(unsigned* w, unsigned* out, int n, int k, int m)
{
    volatile unsigned* look = w;
    if (threadIdx.x == 0) {
        for (unsigned i = 0; i < n; i++) {
            unsigned looks = 0;
            while (*look != i * gridDim.x + blockIdx.x) {
                if (++looks > 10000000) __trap();
            }
            atomicAdd(w, 1);
        }
    }
}
extern "C" __global__ void token_nap(unsigned* w, unsigned* out, int n, int k, int m)
{
    if (threadIdx.x == 0) {
        for (unsigned i = 0; i < n; i++) {
            unsigned looks = 0;
            while (atomicAdd(w, 0) != i * gridDim.x + blockIdx.x) {
                __nanosleep(m);
                if (++looks > 10000000) __trap();
            }
            atomicAdd(w, 1);
        }
    }
}
// A lock of tickets.
extern "C" __global__ void tickets(unsigned* w, unsigned* out, int n, int k, int m)
{
    if (threadIdx.x == 0) {
        for (int i = 0; i < n; i++) {
            unsigned mine = atomicAdd(&w[0], 1), looks = 0;
            while (atomicAdd(&w[32], 0) != mine) {
                if (++looks > 10000000) __trap();
            }
            __threadfence();
            atomicAdd(&w[64], 1);
            __threadfence();
            atomicAdd(&w[32], 1);
        }
    }
}
// A lock by compare-and-swap.
extern "C" __global__ void lock(unsigned* w, unsigned* out, int n, int k, int m)
{
    if (threadIdx.x == 0) {
        for (int i = 0; i < n; i++) {
            unsigned looks = 0;
            while (atomicCAS(&w[0], 0, 1) != 0) {
                if (++looks > 10000000) __trap();
            }
            __threadfence();
            atomicAdd(&w[64], 1);
            __threadfence();
            atomicExch(&w[0], 0);
        }
    }
}
// Jobs from one counter: k of them, each so long.
extern "C" __global__ void queue(unsigned* w, unsigned* out, int n, int k, int m)
{
    __shared__ unsigned job;
    float x = threadIdx.x;
    while (true) {
        if (threadIdx.x == 0) job = atomicAdd(w, 1);
        __syncthreads();
        unsigned mine = job;
        __syncthreads();
        if (mine >= k) break;
        x = work(x, m);
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = x > 1e30f;
}
// A counter for each block; whoever has none left takes from the others in turn.
extern "C" __global__ void steal(unsigned* w, unsigned* out, int n, int k, int m)
{
    __shared__ unsigned job;
    float x = threadIdx.x;
    for (unsigned j = 0; j < gridDim.x; j++) {
        unsigned from = (blockIdx.x + j) % gridDim.x;
        while (true) {
            if (threadIdx.x == 0) job = atomicAdd(w + from * 32, 1);
            __syncthreads();
            unsigned mine = job;
            __syncthreads();
            if (mine >= k) break;
            x = work(x, m);
        }
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = x > 1e30f;
}
// Two blocks hand a number to and fro.
extern "C" __global__ void ping(unsigned* w, unsigned* out, int n, int k, int m)
{
    if (threadIdx.x == 0) {
        for (unsigned i = 0; i < n; i++) {
            unsigned looks = 0;
            while (atomicAdd(w, 0) != 2 * i + blockIdx.x) {
                if (++looks > 10000000) __trap();
            }
            __threadfence();
            w[64] += 1;
            __threadfence();
            atomicExch(w, 2 * i + blockIdx.x + 1);
        }
    }
}
// The last block adds up.
extern "C" __global__ void last(unsigned* w, unsigned* out, int n, int k, int m)
{
    __shared__ bool is_last;
    w[64 + blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        is_last = atomicAdd(w, 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (is_last) {
        unsigned sum = 0;
        for (int i = threadIdx.x; i < gridDim.x * blockDim.x; i += blockDim.x) sum += w[64 + i];
        out[threadIdx.x] = sum;
    }
}
// Counts of a byte: m of 256 are the same one.
extern "C" __global__ void histogram(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        unsigned byte = x >> 24;
        atomicAdd(&w[byte < m ? 0 : byte], 1);
    }
}
__device__ unsigned int scrambled(unsigned int x)
{
    x += 0x9e3779b9u;
    x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; x ^= x >> 16;
    return x;
}
extern "C" __global__ void search(unsigned* best, unsigned* looked, int n, int zeros, int m)
{
    unsigned int mine = 0, stride = gridDim.x * blockDim.x, tickets = n;
    for (unsigned int x = blockIdx.x * blockDim.x + threadIdx.x; x < tickets; x += stride) {
        if (x > atomicAdd(best, 0)) break;
        mine++;
        if (scrambled(x) >> (32 - zeros) == 0) {
            atomicMin(best, x);
            break;
        }
    }
    atomicAdd(looked, mine);
}
// Page 11's flood: w holds the depths, the flags of the levels, and the counter.
__device__ bool next_to(int level, int width, const int* depth)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, x = i % width, y = i / width;
    return (x > 0 && depth[i - 1] == level) || (x < width - 1 && depth[i + 1] == level)
        || (y > 0 && depth[i - width] == level) || (y < width - 1 && depth[i + width] == level);
}
extern "C" __global__ void many_blocks(
    int width, const unsigned char* open, int* depth, int* grew, unsigned int* arrived)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int goal = 0;
    for (int level = 0; level < width * width; level++) {
        bool reached = open[i] && depth[i] < 0 && next_to(level, width, depth);
        meet(arrived, goal += gridDim.x);
        if (reached) {
            depth[i] = level + 1;
            atomicExch(&grew[level], 1);
        }
        meet(arrived, goal += gridDim.x);
        if (atomicAdd(&grew[level], 0) == 0) break;
    }
}
"""

PTX = r"""
#define LANE (threadIdx.x % 32)
#define WARP ((blockIdx.x * blockDim.x + threadIdx.x) / 32)
#define LOOK(name, text) \
extern "C" __global__ void name(unsigned* w, unsigned* out, int n, int k, int m) \
{ \
    unsigned v = 0; \
    if (LANE < m) { \
        unsigned* p = w + WARP % k * 32; \
        for (int i = 0; i < n; i++) { \
            asm volatile(text : "=r"(v) : "l"(p) : "memory"); \
            if (v > 5) break; \
        } \
    } \
    out[blockIdx.x * blockDim.x + threadIdx.x] = v; \
}
LOOK(look_relaxed, "ld.relaxed.gpu.global.u32 %0, [%1];")
LOOK(look_acquire, "ld.acquire.gpu.global.u32 %0, [%1];")
__device__ unsigned acquired(const unsigned* p)
{
    unsigned v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}
__device__ unsigned relaxed(const unsigned* p)
{
    unsigned v;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}
__device__ void released(unsigned* p)
{
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" :: "l"(p) : "memory");
}
extern "C" __global__ void meet_acquire(unsigned* w, unsigned* out, int n, int k, int m)
{
    for (int i = 1; i <= n; i++) {
        __syncthreads();
        if (threadIdx.x == 0) {
            released(w);
            unsigned looks = 0;
            while (acquired(w) < i * gridDim.x) {
                if (++looks > 10000000) __trap();
            }
        }
        __syncthreads();
    }
}
extern "C" __global__ void token_relaxed(unsigned* w, unsigned* out, int n, int k, int m)
{
    if (threadIdx.x == 0) {
        for (unsigned i = 0; i < n; i++) {
            unsigned looks = 0;
            while (relaxed(w) != i * gridDim.x + blockIdx.x) {
                if (++looks > 10000000) __trap();
            }
            atomicAdd(w, 1);
        }
    }
}
extern "C" __global__ void clock_rate(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned long long t0, t1;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t0));
    long long c0 = clock64();
    while (clock64() - c0 < n) {}
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t1));
    out[0] = (unsigned)(t1 - t0);
}
"""

WORDS = 1 << 18  # of a node


def held(name):
    """Tell whether a kernel is held out: about one in three, by its name, and chapter 11's flood."""
    number = int(hashlib.sha256(name.encode()).hexdigest(), 16)
    return name == "many_blocks" or number % 3 == 0


def maze(size, seed=0):
    """Return chapter 11's maze."""
    rng, free, ends = np.random.default_rng(seed), np.zeros((size, size), np.uint8), [(0, 0)]
    free[0, 0] = 1
    while ends:
        k = -1 if rng.random() < 0.7 else rng.integers(len(ends))
        y, x = ends[k]
        near = [(y - 2, x), (y + 2, x), (y, x - 2), (y, x + 2)]
        near = [(v, u) for v, u in near if 0 <= v < size and 0 <= u < size and not free[v, u]]
        if near:
            v, u = near[rng.integers(len(near))]
            free[(y + v) // 2, (x + u) // 2] = free[v, u] = 1
            ends.append((v, u))
        else:
            ends.pop(k)
    return free


def cases():
    """(name, grid, block, n, k, m, held, first): `first` is what the node's first word holds."""

    def case(name, grid, block, n, k=1, m=1, held=False, first=0):
        numbers = {"n": n, "k": k, "m": m, "held": held, "first": first}
        return {"name": name, "grid": grid, "block": block, **numbers}

    for blocks in (1, 16, 132):
        yield case("nothing", blocks, 32, 0)
    yield case("nothing", 16, 256, 0)
    # One warp, one lane: the trip.
    for name in (
        "add_chain",
        "add_one",
        "cas_chain",
        "exch_chain",
        "min_chain",
        "float_chain",
        "look_add",
        "look_volatile",
        "look_relaxed",
        "look_acquire",
        "add_free",
        "own_chain",
    ):
        for n in (50, 200):
            yield case(name, 1, 32, n, held=n == 200 and name in ("cas_chain", "min_chain"))
    yield case("look_new", 1, 32, 50)
    yield case("look_new", 1, 32, 200, held=True)
    # Lanes of a warp.
    for lanes in (2, 8, 32):
        for name in (
            "add_chain",
            "add_one",
            "add_free",
            "cas_chain",
            "exch_chain",
            "look_add",
            "look_volatile",
            "float_chain",
        ):
            yield case(name, 1, 32, 100, m=lanes)
        yield case("own_chain", 1, 32, 100, m=lanes)
        yield case("own_chain", 1, 32, 100, k=32, m=lanes)
        yield case("own_free", 1, 32, 100, k=32, m=lanes)
    # Warps of a block, and blocks.
    for blocks, block in ((1, 128), (1, 1024), (4, 32), (16, 32), (64, 32), (132, 32), (132, 256)):
        for name in ("add_chain", "add_free", "look_add", "cas_chain"):
            yield case(name, blocks, block, 100, held=name == "cas_chain" and blocks == 64)
        yield case("look_volatile", blocks, block, 100)
        yield case("look_relaxed", blocks, block, 100)
    for blocks, block, lanes in ((132, 32, 32), (132, 256, 32), (16, 256, 32), (64, 64, 8)):
        for name in ("add_chain", "add_one", "add_free", "look_add"):
            yield case(name, blocks, block, 50, m=lanes, held=blocks == 64)
    for words in (4, 32, 256):
        for name in ("add_chain", "add_free"):
            yield case(name, 132, 256, 100, k=words)
            yield case(name, 132, 256, 20, k=words, m=32, held=words == 32)
    for step in (1, 8, 32):
        yield case("own_chain", 132, 32, 50, k=step, m=32)
        yield case("own_free", 132, 32, 50, k=step, m=32)
    # Hot for a part.
    for blocks in (1, 16, 132):
        for gap in (0, 100, 1000):
            yield case("spaced", blocks, 32, 20, m=gap)
    yield case("spaced", 132, 256, 20, m=100)
    yield case("spaced", 132, 256, 20, m=1000, held=True)
    yield case("spaced", 64, 128, 20, m=300, held=True)
    for blocks, block, n in ((16, 32, 50), (132, 32, 50), (132, 256, 50)):
        for gap in (0, 1000, 10000):
            yield case("burst", blocks, block, n, m=gap)
    yield case("burst", 64, 128, 40, m=3000, held=True)
    yield case("burst", 132, 512, 10, m=5000, held=True)
    for gap in (10, 100):
        yield case("stairs", 132, 32, 20, m=gap)
        yield case("stairs", 132, 256, 20, m=gap)
    yield case("stairs", 64, 128, 20, m=40, held=True)
    # Fences and loads.
    for block in (32, 256):
        for n in (20, 100):
            for kind in (0, 1, 2):
                yield case("fences", 16, block, n, m=kind)
            yield case("fence_load", 16, block, n, m=0)
            yield case("fence_load", 16, block, n, m=1)
    yield case("fences", 1, 32, 100, m=1)
    yield case("fences", 132, 32, 100, m=1)
    # Meetings.
    for blocks in (2, 8, 16, 64, 132):
        for name in ("meet_add", "meet_volatile", "meet_bare", "meet_acquire", "gates"):
            yield case(name, blocks, 256, 50, held=name in ("gates", "meet_volatile"))
        yield case("meet_nap", blocks, 256, 50, m=100)
    yield case("meet_add", 1, 256, 50)
    yield case("meet_add", 132, 32, 50)
    yield case("meet_add", 132, 1024, 50)
    yield case("meet_add", 16, 256, 410)
    yield case("meet_nap", 132, 256, 50, m=20)
    yield case("meet_nap", 132, 256, 50, m=1000)
    for gap in (100, 1000):
        yield case("meet_work", 16, 256, 50, m=gap, held=True)
        yield case("meet_work", 132, 256, 50, m=gap, held=True)
    # Tokens and locks.
    for blocks in (2, 16, 132):
        for name in ("token_add", "token_volatile", "token_relaxed"):
            yield case(name, blocks, 32, 200 // blocks + 1, held=name == "token_volatile")
        yield case("token_nap", blocks, 32, 200 // blocks + 1, m=100)
        yield case("tickets", blocks, 32, 100 // blocks + 1, held=True)
        yield case("lock", blocks, 32, 100 // blocks + 1, held=True)
    yield case("ping", 2, 32, 100, held=True)
    # Queues.
    for blocks, jobs in ((1, 64), (16, 64), (16, 256), (132, 1024)):
        for gap in (0, 100, 1000):
            yield case("queue", blocks, 64, 0, k=jobs, m=gap, held=blocks == 132 or gap == 100)
    for blocks in (16, 132):
        yield case("steal", blocks, 64, 0, k=4, m=1000, held=True)
        yield case("last", blocks, 256, 0, held=True)
    # Some lanes in one word.
    for hot in (0, 64, 255):
        yield case("histogram", 132, 256, 20, m=hot)
    yield case("histogram", 64, 128, 20, m=128, held=True)
    yield case("search", 20, 256, 1 << 20, k=14, held=True, first=0xFFFFFFFF)
    yield case("many_blocks", 16, 256, 64, held=True)
    yield case("many_blocks", 4, 1024, 64, held=True)
    yield case("many_blocks", 64, 64, 64, held=True)


NODES, WARM_UP, ROUNDS = 20, 2, 9
LIMIT = 54.0  # s


def main() -> None:
    """Measure all patterns."""
    import cupy

    begun = time.perf_counter()
    options = ("-std=c++17",)
    modules = [cupy.RawModule(code=text, options=options) for text in (SOURCE, PTX)]

    def kernel(name):
        ptx = name in (
            "look_relaxed",
            "look_acquire",
            "meet_acquire",
            "token_relaxed",
            "clock_rate",
        )
        return modules[ptx].get_function(name), ptx

    stream = cupy.cuda.Stream(non_blocking=True)
    properties = cupy.cuda.runtime.getDeviceProperties(0)
    facts = {
        "gpu": properties["name"].decode(),
        "cupy": cupy.__version__,
        "driver": cupy.cuda.runtime.driverGetVersion(),
    }
    with stream:
        state = cupy.zeros((NODES, WORDS), cupy.uint32)
        out = cupy.zeros(WORDS, cupy.uint32)
        looked = cupy.zeros(NODES, cupy.uint32)
        opened = cupy.asarray(maze(64, seed=1).ravel())
        before, after = cupy.cuda.Event(), cupy.cuda.Event()
        rate, _ = kernel("clock_rate")
        for n in (20_000_000, 20_000_000):  # warm up, and the clock under load
            rate((1,), (1,), (state, out, np.int32(n), np.int32(1), np.int32(1)))
        stream.synchronize()
        facts["clock_mhz"] = round(20_000_000 / int(out[0]) * 1e3, 1)
        print(json.dumps({"facts": facts}), flush=True)
        for case in cases():
            if time.perf_counter() - begun > LIMIT:
                print(json.dumps({"error": "out of time", **case}), flush=True)
                break
            name = case["name"]
            function, ptx = kernel(name)
            numbers = [np.int32(case[key]) for key in "nkm"]
            first = cupy.zeros((NODES, WORDS if name == "many_blocks" else 1 << 14), cupy.uint32)
            first[:, 0] = case["first"]
            if name == "many_blocks":
                first[:, :4096] = 0xFFFFFFFF
                first[:, 0] = 0
            size = first.shape[1]
            if name.startswith("own"):
                size = WORDS
                first = cupy.zeros((NODES, WORDS), cupy.uint32)
            try:

                def enqueue(node, name=name, numbers=numbers, function=function, case=case):
                    w = state[node]
                    args = [w, looked[node:] if name == "search" else out, *numbers]
                    if name == "many_blocks":
                        args = [np.int32(64), opened, w, w[4096:], w[8192:]]
                    function((case["grid"],), (case["block"],), tuple(args))

                state[:, :size] = first
                enqueue(0)
                stream.synchronize()
                stream.begin_capture()
                for node in range(NODES):
                    enqueue(node)
                graph = stream.end_capture()
                times = []
                for _ in range(WARM_UP + ROUNDS):
                    state[:, :size] = first
                    looked[:] = 0
                    before.record(stream)
                    graph.launch(stream)
                    after.record(stream)
                    after.synchronize()
                    times.append(cupy.cuda.get_elapsed_time(before, after) * 1e3 / NODES)
                times = sorted(times[WARM_UP:])
                row = {
                    **case,
                    "sim": not ptx,
                    "us": round(statistics.median(times), 4),
                    "low": round(times[0], 4),
                    "high": round(times[-1], 4),
                }
                if name == "many_blocks":
                    depth = state[0, :4096].view(cupy.int32).get()
                    row["steps"] = int(depth.max())
                if name == "search":
                    row["best"], row["looked"] = int(state[0, 0]), int(looked[0])
            except Exception as error:  # noqa: BLE001 - say so, and go on as far as it goes
                row = {**case, "error": f"{type(error).__name__}: {error}"[:300]}
            print(json.dumps(row), flush=True)
    print(json.dumps({"seconds": round(time.perf_counter() - begun, 1)}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
