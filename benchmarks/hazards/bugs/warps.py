"""Bugs of warps: lanes that aren't there, masks that are wrong, and hopes for lockstep."""

from benchmarks.hazards.case import Empty, bug, floats, ints

CASES = [
    bug(
        "warp reduction in shared memory without barriers",
        r"""
__global__ void warp_sum(const float* x, float* y) {
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    s[t + 32] = 0.0f;
    for (int by = 16; by > 0; by /= 2) {
        s[t] += s[t + by];  // <- bug
    }
    if (t == 0) *y = s[0];
}
""",
        grid=1,
        block=32,
        args=(floats(32), Empty(1)),
        finds="Race",
        about="s",
        why="lanes of a warp need not run in lockstep",
    ),
    bug(
        "last warp unrolled, as in old samples",
        r"""
__global__ void block_sum(const float* x, float* y) {
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    if (t < 32) {
        s[t] += s[t + 32];
        if (t < 16) s[t] += s[t + 16];  // <- bug
        if (t < 8) s[t] += s[t + 8];  // <- bug
        if (t < 4) s[t] += s[t + 4];  // <- bug
        if (t < 2) s[t] += s[t + 2];  // <- bug
        if (t < 1) *y = s[t] + s[t + 1];  // <- bug
    }
}
""",
        grid=1,
        block=64,
        args=(floats(64), Empty(1)),
        finds="Race",
        about="s",
        why="each step reads what another lane wrote, and no __syncwarp() orders them",
    ),
    bug(
        "volatile in place of __syncwarp",
        r"""
__device__ void last_warp(volatile float* s, int t) {
    s[t] += s[t + 32];
    s[t] += s[t + 16];  // <- bug
    s[t] += s[t + 8];  // <- bug
    s[t] += s[t + 4];  // <- bug
    s[t] += s[t + 2];  // <- bug
    s[t] += s[t + 1];  // <- bug
}
__global__ void block_sum(const float* x, float* y) {
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    if (t < 32) last_warp(s, t);
    if (t == 0) *y = s[0];
}
""",
        grid=1,
        block=64,
        args=(floats(64), Empty(1)),
        finds="Race",
        about="s",
        why="volatile keeps values out of registers, and makes no lane wait for another",
    ),
    bug(
        "all 32 named where half of the warp comes",
        r"""
__global__ void fold(const float* x, float* y) {
    int t = threadIdx.x;
    float v = x[t];
    if (t < 16) {
        v += __shfl_down_sync(0xffffffff, v, 16);  // <- bug
        y[t] = v;
    }
}
""",
        grid=1,
        block=32,
        args=(floats(32), Empty(16)),
        finds="Warp Deadlock",
        about="lane|shfl",
        why="lanes 16 to 31 are in the mask, are read, and don't execute the shuffle",
    ),
    bug(
        "value of a lane that has returned",
        r"""
__global__ void last_value(const float* x, float* y, int n) {
    int t = threadIdx.x;
    if (t >= n) return;
    float v = x[t];
    y[t] = __shfl_sync(0xffffffff, v, 31);  // <- bug
}
""",
        grid=1,
        block=32,
        args=(floats(32), Empty(32), 20),
        finds="Warp",
        about="lane|shfl 31",
        why="lane 31 has ended, and has no value",
    ),
    bug(
        "lane outside of the mask is read",
        r"""
__global__ void broadcast(const float* x, float* y) {
    int t = threadIdx.x;
    if (t < 16) {
        y[t] = __shfl_sync(0x0000ffff, x[t], 20);  // <- bug
    }
}
""",
        grid=1,
        block=32,
        args=(floats(32), Empty(16)),
        finds="Warp",
        about="lane|shfl 20",
        why="lane 20 is not in the mask, and not in the branch",
    ),
    bug(
        "caller that its mask doesn't name",
        r"""
__global__ void neighbours(const float* x, float* y) {
    int t = threadIdx.x;
    y[t] = __shfl_xor_sync(0x0000ffff, x[t], 1);  // <- bug
}
""",
        grid=1,
        block=32,
        args=(floats(32), Empty(32)),
        finds="Warp",
        about="mask",
        why="lanes 16 to 31 call it with a mask without them",
    ),
    bug(
        "lane 0 isn't among the active ones",
        r"""
__global__ void relative(const float* x, float* y) {
    int t = threadIdx.x;
    if (x[t] > 0.0f) {
        unsigned mask = __activemask();
        float first = __shfl_sync(mask, x[t], 0);  // <- bug
        y[t] = x[t] - first;
    }
}
""",
        grid=1,
        block=32,
        args=(floats(32), Empty(32)),
        finds="Warp",
        about="lane|shfl 0",
        why="x[0] is 0, so lane 0 is not in the branch",
    ),
    bug(
        "sum of a warp that is not full",
        r"""
__global__ void warp_sums(const float* x, float* sums) {
    int t = threadIdx.x;
    float v = x[t];
    for (int by = 16; by > 0; by /= 2) {
        v += __shfl_down_sync(0xffffffff, v, by);  // <- bug
    }
    if (t % 32 == 0) sums[t / 32] = v;
}
""",
        grid=1,
        block=40,
        args=(floats(40), Empty(2)),
        finds="Warp",
        about="lane|shfl",
        why="the second warp has 8 lanes, and lane 0 adds lane 16",
    ),
    bug(
        "mask from before the loop",
        r"""
__global__ void walk(const int* counts, const float* x, float* y) {
    int t = threadIdx.x;
    unsigned mask = __ballot_sync(0xffffffff, counts[t] > 0);
    float sum = 0.0f;
    for (int k = 0; k < counts[t]; k++) {
        sum += __shfl_sync(mask, x[t], k % 32);  // <- bug
    }
    __syncwarp();
    y[t] = sum;
}
""",
        grid=1,
        block=32,
        args=(ints(32), floats(32), Empty(32)),
        finds="Warp Deadlock Barrier",
        about="lane|mask|shfl",
        why="lanes leave the loop one after the other, and the mask still names them",
    ),
    bug(
        "barrier for 16 lanes, data of 32",
        r"""
__global__ void swap_halves(const float* x, float* y) {
    __shared__ float s[32];
    int t = threadIdx.x;
    s[t] = x[t];  // <- bug
    __syncwarp(t < 16 ? 0x0000ffff : 0xffff0000);
    y[t] = s[t ^ 16];  // <- bug
}
""",
        grid=1,
        block=32,
        args=(floats(32), Empty(32)),
        finds="Race UninitialisedRead",
        about="s",
        why="each half waits for itself, and reads the other one",
    ),
    bug(
        "read and overwritten without a barrier of the warp",
        r"""
__global__ void rotate(float* x) {
    __shared__ float s[32];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncwarp();
    float v = s[(t + 1) % 32];  // <- bug
    s[t] = 2.0f * v;  // <- bug
    __syncwarp();
    x[t] = s[31 - t];
}
""",
        grid=1,
        block=32,
        args=(floats(32),),
        finds="Race",
        about="s",
        why="a lane may overwrite its element before its neighbour has read it",
    ),
    bug(
        "warp scan with one barrier a step",
        r"""
__global__ void scan(const float* x, float* y) {
    __shared__ float s[32];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncwarp();
    for (int by = 1; by < 32; by *= 2) {
        if (t >= by) s[t] += s[t - by];  // <- bug
        __syncwarp();
    }
    y[t] = s[t];
}
""",
        grid=1,
        block=32,
        args=(floats(32), Empty(32)),
        finds="Race",
        about="s",
        why="between reading s[t - by] and writing s[t] stands nothing",
    ),
    bug(
        "vote taken for a barrier of memory",
        r"""
__global__ void publish(const float* x, float* y) {
    __shared__ float largest;
    int t = threadIdx.x;
    unsigned above = __ballot_sync(0xffffffff, x[t] > 20.0f);
    int leader = __ffs(above) - 1;
    if (t == leader) largest = x[t];  // <- bug
    if (__any_sync(0xffffffff, above)) {
        y[t] = largest;  // <- bug
    }
}
""",
        grid=1,
        block=32,
        args=(floats(32), Empty(32)),
        finds="Race UninitialisedRead",
        about="largest",
        why="votes don't order memory; __syncwarp() does",
    ),
    bug(
        "if before else",
        r"""
__global__ void first_value(const float* x, float* y) {
    __shared__ float first;
    int lane = threadIdx.x;
    if (lane == 0) {
        first = x[0];  // <- bug
        y[0] = x[0];
    } else {
        y[lane] = first;  // <- bug
    }
}
""",
        grid=1,
        block=32,
        args=(floats(32), Empty(32)),
        finds="Race UninitialisedRead",
        about="first",
        why="which branch runs first isn't defined",
    ),
    bug(
        "leader outside of the mask",
        r"""
__global__ void compact(const float* x, float* out, int* used) {
    int lane = threadIdx.x;
    bool keep = x[lane] > 11.0f && x[lane] < 15.0f;
    unsigned mask = __ballot_sync(0xffffffff, keep);
    if (!keep) return;
    int leader = __ffs(mask) + 3;
    int base = 0;
    if (lane == leader) base = atomicAdd(used, __popc(mask));
    base = __shfl_sync(mask, base, leader);  // <- bug
    out[base + __popc(mask & ((1u << lane) - 1))] = x[lane];
}
""",
        grid=1,
        block=32,
        args=(floats(32), Empty(32), ints(1, 0)),
        finds="Warp",
        about="lane|shfl",
        why="the first lane of the mask is __ffs(mask) - 1; the one here is outside of it",
    ),
    bug(
        "match among lanes that don't take part",
        r"""
__global__ void count_equal(const int* x, int* y) {
    int t = threadIdx.x;
    y[t] = 0;
    if (x[t] % 2 == 0) {
        unsigned same = __match_any_sync(0xffffffff, x[t] / 4);  // <- bug
        y[t] = __popc(same);
    }
    __syncwarp();
    y[t] += 1;
}
""",
        grid=1,
        block=32,
        args=(ints(32), Empty(32, "int32")),
        finds="Warp Deadlock Barrier",
        about="lane|mask|match",
        why="the mask names all lanes, the odd ones aren't in the branch",
    ),
    bug(
        "reduction of a warp in a branch",
        r"""
__global__ void sum_large(const int* x, int* y) {
    int t = threadIdx.x, sum = 0;
    if (x[t] >= 8) {
        sum = __reduce_add_sync(0xffffffff, x[t]);  // <- bug
    }
    __syncwarp();
    y[t] = sum;
}
""",
        grid=1,
        block=32,
        args=(ints(32), Empty(32, "int32")),
        finds="Warp Deadlock Barrier",
        about="lane|mask|reduce",
        why="eight lanes that the mask names are elsewhere",
    ),
    bug(
        "different functions for two halves of a full mask",
        r"""
__global__ void halves(const int* x, int* y) {
    int t = threadIdx.x, found = 0;
    if (t < 8) {
        found = __all_sync(0xffffffff, x[t] > 0);  // <- bug
    } else {
        found = __shfl_sync(0xffffffff, x[t], 9);  // <- bug
    }
    y[t] = found;
}
""",
        grid=1,
        block=32,
        args=(ints(32), Empty(32, "int32")),
        finds="Warp Deadlock Barrier",
        about="lane|mask",
        why="all lanes in a mask have to call the same function",
    ),
    bug(
        "exchange through global memory within a warp",
        r"""
__global__ void difference(const float* x, float* a, float* y) {
    int t = threadIdx.x;
    a[t] = x[t] * x[t];  // <- bug
    y[t] = a[(t + 1) % 32] - a[t];  // <- bug
}
""",
        grid=1,
        block=32,
        args=(floats(32), Empty(32), Empty(32)),
        finds="Race UninitialisedRead",
        about="a",
        why="a neighbour's element may not be there yet",
    ),
    bug(
        "tile of 16 in which half is busy elsewhere",
        r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void share(const float* x, float* y) {
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    float v = x[threadIdx.x];
    if (tile.thread_rank() >= 8) {
        v = tile.shfl(v, 0);  // <- bug
    }
    y[threadIdx.x] = v;
}
""",
        grid=1,
        block=32,
        args=(floats(32), Empty(32)),
        finds="Warp Deadlock",
        about="lane|mask|rank|shfl",
        why="rank 0 of the tile doesn't call shfl()",
    ),
    bug(
        "shuffled before it is set",
        r"""
__global__ void upper(const float* x, float* y) {
    int lane = threadIdx.x;
    float v;
    if (lane < 16) v = x[lane];
    float other = __shfl_xor_sync(0xffffffff, v, 16);  // <- bug
    y[lane] = other + 1.0f;  // <- bug
}
""",
        grid=1,
        block=32,
        args=(floats(32), Empty(32)),
        finds="UninitialisedRead",
        about="v|other",
        why="lanes below 16 get the v of a lane that never set it",
    ),
    bug(
        "partner that a block of 33 doesn't have",
        r"""
__global__ void pairs(const float* x, float* y) {
    int t = threadIdx.x;
    y[t] = x[t] + __shfl_xor_sync(0xffffffff, x[t], 1);  // <- bug
}
""",
        grid=1,
        block=33,
        args=(floats(33), Empty(33)),
        finds="Warp",
        about="lane|shfl 1",
        why="the second warp has a single lane",
    ),
    bug(
        "lane that waits for a plain flag of another",
        r"""
__global__ void hand_over(const float* x, float* y) {
    __shared__ int ready;
    __shared__ float value;
    int lane = threadIdx.x;
    if (lane == 0) ready = 0;
    __syncwarp();
    if (lane == 31) {
        value = x[31];
        ready = 1;  // <- bug
    } else if (lane == 0) {
        while (ready == 0) {}  // <- bug
        y[0] = value;
    }
}
""",
        grid=1,
        block=32,
        args=(floats(32), Empty(1)),
        finds="Race Deadlock RunawayKernel",
        about="ready",
        why="a plain flag may be read once and kept in a register, and orders nothing",
    ),
    bug(
        "all warps use the first warp's slot",
        r"""
__global__ void warp_sums(const float* x, float* y) {
    __shared__ float slot[4];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    float v = x[t];
    for (int by = 16; by > 0; by /= 2) v += __shfl_xor_sync(0xffffffff, v, by);
    if (lane == 0) slot[lane] = v;  // <- bug
    __syncwarp();
    y[t] = slot[lane / 32] + warp;  // <- bug
}
""",
        grid=1,
        block=128,
        args=(floats(128), Empty(128)),
        finds="Race",
        about="slot",
        why="the slot is chosen by the lane and not by the warp",
    ),
    bug(
        "shuffle with a mask that was meant for the other half",
        r"""
__global__ void halves(const float* x, float* y) {
    int lane = threadIdx.x;
    float v = x[lane];
    if (lane < 16) {
        v += __shfl_xor_sync(0x0000ffff, v, 1);
    } else {
        v += __shfl_xor_sync(0x00ffff00, v, 1);  // <- bug
    }
    y[lane] = v;
}
""",
        grid=1,
        block=32,
        args=(floats(32), Empty(32)),
        finds="Warp Deadlock",
        about="mask",
        why="lanes 24 to 31 call it and aren't named; lanes 8 to 15 are named and don't call it",
    ),
]
