"""Clocks that a warp's load from shared memory takes, by how wide it is and where its lanes read.

    python tools/fidelity/shared_loads.py

1,024 threads of one block load again and again, and what's told is `clock64` by the number of their loads:
1.0 is one pass for each load of a warp. Needs a GPU and CuPy.
"""

import cupy as cp
import numpy as np

SOURCE = r"""
#define ONE4(k) { unsigned a, b, c, d; asm volatile("ld.volatile.shared.v4.u32 {%0,%1,%2,%3}, [%4+" #k "];" \
    : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(at) : "memory"); sum ^= a ^ b ^ c ^ d; }
#define ONE2(k) { unsigned a, b; asm volatile("ld.volatile.shared.v2.u32 {%0,%1}, [%2+" #k "];" \
    : "=r"(a), "=r"(b) : "r"(at) : "memory"); sum ^= a ^ b; }
#define ONE1(k) { unsigned a; asm volatile("ld.volatile.shared.u32 %0, [%1+" #k "];" \
    : "=r"(a) : "r"(at) : "memory"); sum ^= a; }
#define MANY(M) M(0) M(1024) M(2048) M(3072) M(4096) M(5120) M(6144) M(7168) \
    M(8192) M(9216) M(10240) M(11264) M(12288) M(13312) M(14336) M(15360)
#define KERNEL(name, M) extern "C" __global__ void name( \
    int turns, const int* from, long long* took, float* out) { \
    __shared__ __align__(16) unsigned s[8192]; \
    for (int k = threadIdx.x; k < 8192; k += blockDim.x) s[k] = k * 2654435761u; \
    unsigned at = (unsigned)__cvta_generic_to_shared(s) + 4 * from[threadIdx.x % 32]; \
    unsigned sum = 0; \
    __syncthreads(); \
    long long begin = clock64(); \
    for (int t = 0; t < turns; t++) { MANY(M) } \
    __syncthreads(); \
    if (threadIdx.x == 0) took[0] = clock64() - begin; \
    out[threadIdx.x] = sum + at; \
}
KERNEL(four, ONE4)
KERNEL(two, ONE2)
KERNEL(one, ONE1)
"""
TURNS, LOADS, WARPS = 200, 16, 32
lane = np.arange(32)
module = cp.RawModule(code=SOURCE, options=("--std=c++17",))
took, out = cp.zeros(1, cp.int64), cp.zeros(1024, cp.float32)
for name, width in (("four", 4), ("two", 2), ("one", 1)):
    for where, words in {
        "all one place": 0 * lane,
        "2 places, 8 words apart (a of wide)": lane // 16 * 8,
        "16 places, 8 words apart (b of wide)": lane % 16 * 8,
        "4 places, 4 words apart (b of warps)": lane % 4 * 4,
        "8 places, 4 words apart (a of warps)": lane // 4 * 4,
        "16 places, 4 words apart, neighbours alike": lane // 2 * 4,
        "16 places, 4 words apart, halves alike": lane % 16 * 4,
        "8 places, 4 words apart, quarters alike": lane % 8 * 4,
        "each its own": lane * width,
        "2 words of one bank": lane % 2 * 32,
        "4 words of one bank": lane % 4 * 32,
    }.items():
        clocks = list[int]()
        for _ in range(3):
            places = cp.asarray(words.astype(np.int32))
            module.get_function(name)((1,), (1024,), (np.int32(TURNS), places, took, out))
            clocks.append(int(took[0]))
        a_load = np.median(clocks) / (TURNS * LOADS * WARPS)
        print(f"{name:>4} words a lane, {where}: {a_load:.2f} clocks")
