"""Clocks that a fence takes, by its scope and by what is under way in front of it.

    python tools/fidelity/fences.py

Each block has one warp and a thousand fences. Told is `clock64` by their number. Needs a GPU and CuPy.
"""

import cupy as cp
import numpy as np

SOURCE = r"""
extern "C" __global__ void fences(int turns, volatile int* there, volatile int* host, long long* took) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, seen = 0;
    for (int pass = 0; pass < 2; pass++) {  // the first one is for practice
        long long begun = clock64();
        for (int turn = 0; turn < turns; turn++) { BEFORE; FENCE; }
        if (threadIdx.x == 0) took[blockIdx.x] = clock64() - begun;
    }
    if (seen == 12345) took[0] = 0;
}
"""
BEFORE = {
    "nothing": "",
    "a store to device memory": "there[i] = turn",
    "a load from device memory": "seen += there[i]",
    "an atomic whose result nobody needs": "atomicAdd((int*)&there[i], 1)",
    "a store to memory of the host": "host[i] = turn",
    "a load from memory of the host": "seen += host[i]",
}
FENCES = {"none": "", "block": "__threadfence_block()", "device": "__threadfence()"}
FENCES["system"] = "__threadfence_system()"
host, there = cp.cuda.alloc_pinned_memory(4096 * 4), cp.zeros(4096, cp.int32)
for blocks in (1, 16):
    for what, before in BEFORE.items():
        told: list[str] = []
        for scope, fence in FENCES.items():
            source = SOURCE.replace("BEFORE", before).replace("FENCE", fence)
            kernel, took = cp.RawKernel(source, "fences"), cp.zeros(blocks, cp.int64)
            clocks: list[int] = []
            for _ in range(5):
                kernel((blocks,), (32,), (np.int32(1000), there, np.uint64(host.ptr), took))
                clocks.append(int(took.max()))
            told.append(f"{scope} {np.median(clocks) / 1000:.1f}")
        print(f"{blocks} warps, behind {what}: {', '.join(told)}", flush=True)
