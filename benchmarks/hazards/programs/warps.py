"""Warps: right uses that look wrong; lanes that aren't there, wrong masks, and hopes for lockstep."""

from benchmarks.hazards.case import ZERO, Empty, floats, ints, kernel, launch

SCAN = kernel("scan", 1, 32, x=floats(32), y=Empty(32)).sound(r"""
// warp scan with two barriers a step
// reads and writes are parted
    __shared__ float s[32];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncwarp();
    for (int by = 1; by < 32; by *= 2) {
        float v = t >= by ? s[t - by] : 0.0f;
        __syncwarp();
        s[t] += v;
        __syncwarp();
    }
    y[t] = s[t];
""")

CASES = [
    kernel("warp_sums", 1, 64, x=floats(64), y=Empty(64)).sound(r"""
// butterfly
// all warps are full, and all lanes come
    float v = x[threadIdx.x];
    for (int by = 16; by > 0; by /= 2) v += __shfl_xor_sync(0xffffffff, v, by);
    y[threadIdx.x] = v;
"""),
    kernel("half_sum", 1, 32, x=floats(32), y=Empty(1)).sound(r"""
// half of a warp, with a mask and a width of its own
// the mask names who is there; a lane beyond the width gives one's own value
    int t = threadIdx.x;
    if (t < 16) {
        float v = x[t];
        for (int by = 8; by > 0; by /= 2) v += __shfl_down_sync(0x0000ffff, v, by, 16);
        if (t == 0) *y = v;
    }
"""),
    kernel("relative", 1, 32, x=floats(32), y=Empty(32)).sound(r"""
// mask made by a vote
// exactly the lanes in the mask take the branch, and the leader is one of them
    int t = threadIdx.x;
    bool mine = x[t] > 4.0f;
    unsigned mask = __ballot_sync(0xffffffff, mine);
    if (mine) y[t] = x[t] - __shfl_sync(mask, x[t], __ffs(mask) - 1);
"""),
    kernel("votes", 1, 32, x=floats(32), y=Empty(1, "uint32"), n=20).sound(r"""
// vote after some lanes have returned
// only lanes that have not exited have to come to a vote, and only they are counted
    int t = threadIdx.x;
    if (t >= n) return;
    unsigned positive = __ballot_sync(0xffffffff, x[t] > 0.0f);
    if (t == 0) *y = positive;
"""),
    launch(2, 32, floats(64), Empty(64), ZERO).sound(r"""
// atomics put together by the active lanes
// whichever lanes are active, the leader is one of them
__device__ int take_one(int* counter) {
    unsigned mask = __activemask();
    int lane = threadIdx.x % 32, leader = __ffs(mask) - 1, base = 0;
    if (lane == leader) base = atomicAdd(counter, __popc(mask));
    base = __shfl_sync(mask, base, leader);
    return base + __popc(mask & ((1u << lane) - 1));
}
__global__ void keep(const float* x, float* out, int* used) {
    float v = x[blockIdx.x * blockDim.x + threadIdx.x];
    if (v > 10.0f) out[take_one(used)] = v;
}
"""),
    SCAN,
    kernel("first_warp", 1, 96, x=floats(96), y=Empty(96)).sound(r"""
// full masks in a branch for whole warps
// a warp is in one branch as a whole
    int t = threadIdx.x;
    float v = x[t];
    if (t / 32 == 0) {
        v += __shfl_xor_sync(0xffffffff, v, 1);
    } else {
        v *= __shfl_sync(0xffffffff, v, 0);
    }
    y[t] = v;
"""),
    kernel("walk", 1, 32, counts=ints(32), x=floats(32), y=Empty(32)).sound(r"""
// as many rounds as the warp agrees on
// all lanes go round as often as the slowest, and use what they need
    int t = threadIdx.x, rounds = counts[t];
    for (int by = 16; by > 0; by /= 2) rounds = max(rounds, __shfl_xor_sync(0xffffffff, rounds, by));
    float sum = 0.0f;
    for (int k = 0; k < rounds; k++) {
        float other = __shfl_sync(0xffffffff, x[t], k % 32);
        if (k < counts[t]) sum += other;
    }
    y[t] = sum;
"""),
    kernel("fold", 1, 32, x=floats(32), y=Empty(32)).sound(r"""
// barrier for the lower half only
// the mask names the lanes that exchange something
    __shared__ float s[32];
    int t = threadIdx.x;
    if (t < 16) {
        s[t] = x[t];
        __syncwarp(0x0000ffff);
        y[t] = s[15 - t];
    } else {
        y[t] = x[t];
    }
"""),
    kernel("rotate", 1, 32, x=floats(32), y=Empty(32)).sound(r"""
// source lane beyond 31
// the source lane is taken modulo the width
    int t = threadIdx.x;
    y[t] = __shfl_sync(0xffffffff, x[t], t + 1);
"""),
    kernel("scan", 1, 64, x=floats(64), y=Empty(64)).sound(r"""
// scan by shuffles
// the shuffle is outside of the if
    int lane = threadIdx.x % 32;
    float v = x[threadIdx.x];
    for (int by = 1; by < 32; by *= 2) {
        float left = __shfl_up_sync(0xffffffff, v, by);
        if (lane >= by) v += left;
    }
    y[threadIdx.x] = v;
"""),
    kernel("sums", 1, 64, x=floats(40), y=Empty(2), n=40).sound(r"""
// tail that brings zeros
// lanes beyond n stay, and add nothing
    int t = threadIdx.x;
    float v = t < n ? x[t] : 0.0f;
    for (int by = 16; by > 0; by /= 2) v += __shfl_down_sync(0xffffffff, v, by);
    if (t % 32 == 0) y[t / 32] = v;
"""),
    kernel("histogram", 1, 64, keys=ints(64), bins=ints(5, 0)).sound(r"""
// one atomic for each group of equal keys
// the match is made by the whole warp, and each group has one leader
    int lane = threadIdx.x % 32, key = keys[threadIdx.x] % 5;
    unsigned same = __match_any_sync(0xffffffff, key);
    if (lane == __ffs(same) - 1) atomicAdd(&bins[key], __popc(same));
"""),
    kernel("tiles", 1, 64, x=floats(64), y=Empty(64)).sound(r"""
// two tiles of a warp in different branches
// a tile is in one branch as a whole, and its functions name its own lanes
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    float v = x[threadIdx.x];
    if (tile.meta_group_rank() % 2 == 0) {
        v = tile.shfl(v, 3);
    } else {
        for (int by = 8; by > 0; by /= 2) v += tile.shfl_xor(v, by);
    }
    y[threadIdx.x] = v;
"""),
    kernel("here", 1, 32, x=floats(32), y=Empty(32)).sound(r"""
// group of those that are here
// rank 0 of the group is one of those in the branch
    int t = threadIdx.x;
    y[t] = 0.0f;
    if (t % 3 == 1) {
        auto group = cg::coalesced_threads();
        y[t] = group.shfl(x[t], 0) + group.size();
    }
"""),
    kernel("add_under_lock", 1, 32, volatile="sum", lock=ZERO, sum=ZERO).sound(r"""
// lock taken by lanes of one warp
// a lane that has the lock gives it back in the same round
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            __threadfence();
            *sum = *sum + (int)threadIdx.x;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
"""),
    kernel("mirror", 1, 128, x=floats(128), y=Empty(128)).sound(r"""
// own slice of shared memory for each warp
// only lanes of one warp exchange something
    __shared__ float slices[4][32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    slices[warp][lane] = x[threadIdx.x];
    __syncwarp();
    y[threadIdx.x] = slices[warp][31 - lane];
"""),
    kernel("own", 1, 32, x=floats(32), y=Empty(32)).sound(r"""
// own element, without any barrier
// no lane touches another one's element
    __shared__ float s[32];
    int t = threadIdx.x;
    s[t] = x[t];
    s[t] = s[t] * s[t];
    y[t] = s[t];
"""),
    kernel("sums", 1, 64, x=ints(64).astype("uint32"), y=Empty(2, "uint32")).sound(r"""
// sum by one instruction
// all lanes call it; who writes is decided afterwards
    unsigned all = __reduce_add_sync(0xffffffff, x[threadIdx.x]);
    if (threadIdx.x % 32 == 0) y[threadIdx.x / 32] = all;
"""),
    kernel("compact", 1, 32, x=floats(32), out=Empty(32), used=ZERO).sound(r"""
// compaction by votes
// each lane counts the bits below its own
    int lane = threadIdx.x;
    bool keep = x[lane] > 11.0f;
    unsigned kept = __ballot_sync(0xffffffff, keep);
    if (keep) out[__popc(kept & ((1u << lane) - 1))] = x[lane];
    if (lane == 0) *used = __popc(kept);
"""),
    kernel("halve", 1, 64, x=floats(64), rounds=Empty(64, "int32")).sound(r"""
// loop that the warp leaves together
// __any_sync() tells all lanes the same
    float v = x[threadIdx.x];
    int k = 0;
    while (__any_sync(0xffffffff, v > 1.0f)) {
        v *= 0.5f;
        k++;
    }
    rounds[threadIdx.x] = k;
"""),
    kernel("visit", 1, 32, x=floats(32), y=Empty(32)).sound(r"""
// one lane after the other
// `todo` is the same in all lanes
    int t = threadIdx.x;
    unsigned todo = __ballot_sync(0xffffffff, x[t] > 27.0f);
    float sum = 0.0f;
    while (todo) {
        sum += __shfl_sync(0xffffffff, x[t], __ffs(todo) - 1);
        todo &= todo - 1;
    }
    y[t] = sum;
"""),
    kernel("parities", 1, 32, x=floats(32), y=Empty(32)).sound(r"""
// branches with masks of their own
// each mask names exactly the lanes of its branch, and partners have the same parity
    int t = threadIdx.x;
    float v = x[t];
    if (t % 2 == 0) {
        v += __shfl_xor_sync(0x55555555, v, 2);
    } else {
        v -= __shfl_xor_sync(0xaaaaaaaa, v, 4);
    }
    y[t] = v;
"""),
    kernel("lookup", 1, 64, x=floats(64), cell=Empty(2), y=Empty(64)).sound(r"""
// lane 0 writes for the warp
// __syncwarp() orders global memory, too, for the lanes of the warp
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0) cell[warp] = x[32 * warp];
    __syncwarp();
    y[threadIdx.x] = cell[warp];
"""),
    kernel("pairs", 1, 20, x=floats(20), y=Empty(20)).sound(r"""
// block of 20 with a mask of 20
// partners are 0 and 1, 2 and 3, up to 18 and 19
    int t = threadIdx.x;
    y[t] = x[t] + __shfl_xor_sync((1u << 20) - 1, x[t], 1);
"""),
    kernel("lower", 1, 32, x=floats(32), y=Empty(8)).sound(r"""
// more is shuffled than is used
// every lane has a value to give; lanes 0 to 7 use those of 8 to 15
    int lane = threadIdx.x;
    float v = 0.0f;
    if (lane < 16) v = x[lane];
    float other = __shfl_down_sync(0xffffffff, v, 8);
    if (lane < 8) y[lane] = v + other;
"""),
    kernel("warp_sum", 1, 32, x=floats(32), y=Empty(1)).bug("Race: s")(r"""
// warp reduction in shared memory without barriers
// lanes of a warp need not run in lockstep
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    s[t + 32] = 0.0f;
    for (int by = 16; by > 0; by /= 2) {
        s[t] += s[t + by];  // <- bug
    }
    if (t == 0) *y = s[0];
"""),
    kernel("block_sum", 1, 64, x=floats(64), y=Empty(1)).bug("Race: s")(r"""
// last warp unrolled, as in old samples
// each step reads what another lane wrote, and no __syncwarp() orders them
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
"""),
    launch(1, 64, floats(64), Empty(1)).bug("Race: s")(r"""
// volatile in place of __syncwarp
// volatile keeps values out of registers, and makes no lane wait for another
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
"""),
    kernel("fold", 1, 32, x=floats(32), y=Empty(16)).bug("Warp Deadlock: lane|shfl")(r"""
// all 32 named where half of the warp comes
// lanes 16 to 31 are in the mask, are read, and don't execute the shuffle
    int t = threadIdx.x;
    float v = x[t];
    if (t < 16) {
        v += __shfl_down_sync(0xffffffff, v, 16);  // <- bug
        y[t] = v;
    }
"""),
    kernel("last_value", 1, 32, x=floats(32), y=Empty(32), n=20).bug("Warp: lane|shfl 31")(r"""
// value of a lane that has returned
// lane 31 has ended, and has no value
    int t = threadIdx.x;
    if (t >= n) return;
    float v = x[t];
    y[t] = __shfl_sync(0xffffffff, v, 31);  // <- bug
"""),
    kernel("broadcast", 1, 32, x=floats(32), y=Empty(16)).bug("Warp: lane|shfl 20")(r"""
// lane outside of the mask is read
// lane 20 is not in the mask, and not in the branch
    int t = threadIdx.x;
    if (t < 16) {
        y[t] = __shfl_sync(0x0000ffff, x[t], 20);  // <- bug
    }
"""),
    kernel("neighbours", 1, 32, x=floats(32), y=Empty(32)).bug("Warp: mask")(r"""
// caller that its mask doesn't name
// lanes 16 to 31 call it with a mask without them
    int t = threadIdx.x;
    y[t] = __shfl_xor_sync(0x0000ffff, x[t], 1);  // <- bug
"""),
    kernel("relative", 1, 32, x=floats(32), y=Empty(32)).bug("Warp: lane|shfl 0")(r"""
// lane 0 isn't among the active ones
// x[0] is 0, so lane 0 is not in the branch
    int t = threadIdx.x;
    if (x[t] > 0.0f) {
        unsigned mask = __activemask();
        float first = __shfl_sync(mask, x[t], 0);  // <- bug
        y[t] = x[t] - first;
    }
"""),
    kernel("warp_sums", 1, 40, x=floats(40), sums=Empty(2)).bug("Warp: lane|shfl")(r"""
// sum of a warp that is not full
// the second warp has 8 lanes, and lane 0 adds lane 16
    int t = threadIdx.x;
    float v = x[t];
    for (int by = 16; by > 0; by /= 2) {
        v += __shfl_down_sync(0xffffffff, v, by);  // <- bug
    }
    if (t % 32 == 0) sums[t / 32] = v;
"""),
    kernel("walk", 1, 32, counts=ints(32), x=floats(32), y=Empty(32)).bug("Warp Deadlock Barrier: lane|mask|shfl")(r"""
// mask from before the loop
// lanes leave the loop one after the other, and the mask still names them
    int t = threadIdx.x;
    unsigned mask = __ballot_sync(0xffffffff, counts[t] > 0);
    float sum = 0.0f;
    for (int k = 0; k < counts[t]; k++) {
        sum += __shfl_sync(mask, x[t], k % 32);  // <- bug
    }
    __syncwarp();
    y[t] = sum;
"""),
    kernel("swap_halves", 1, 32, x=floats(32), y=Empty(32)).bug("Early: s")(r"""
// barrier for 16 lanes, data of 32
// each half waits for itself, and reads the other one
    __shared__ float s[32];
    int t = threadIdx.x;
    s[t] = x[t];  // <- bug
    __syncwarp(t < 16 ? 0x0000ffff : 0xffff0000);
    y[t] = s[t ^ 16];  // <- bug
"""),
    kernel("rotate", 1, 32, x=floats(32)).bug("Race: s")(r"""
// read and overwritten without a barrier of the warp
// a lane may overwrite its element before its neighbour has read it
    __shared__ float s[32];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncwarp();
    float v = s[(t + 1) % 32];  // <- bug
    s[t] = 2.0f * v;  // <- bug
    __syncwarp();
    x[t] = s[31 - t];
"""),
    SCAN.changed(finds="Race: s")(r"""
// warp scan with one barrier a step
// between reading s[t - by] and writing s[t] stands nothing
-        float v = t >= by ? s[t - by] : 0.0f;
-        __syncwarp();
-        s[t] += v;
+        if (t >= by) s[t] += s[t - by];  // <- bug
"""),
    kernel("publish", 1, 32, x=floats(32), y=Empty(32)).bug("Early: largest")(r"""
// vote taken for a barrier of memory
// votes don't order memory; __syncwarp() does
    __shared__ float largest;
    int t = threadIdx.x;
    unsigned above = __ballot_sync(0xffffffff, x[t] > 20.0f);
    int leader = __ffs(above) - 1;
    if (t == leader) largest = x[t];  // <- bug
    if (__any_sync(0xffffffff, above)) {
        y[t] = largest;  // <- bug
    }
"""),
    kernel("first_value", 1, 32, x=floats(32), y=Empty(32)).bug("Early: first")(r"""
// if before else
// which branch runs first isn't defined
    __shared__ float first;
    int lane = threadIdx.x;
    if (lane == 0) {
        first = x[0];  // <- bug
        y[0] = x[0];
    } else {
        y[lane] = first;  // <- bug
    }
"""),
    kernel("compact", 1, 32, x=floats(32), out=Empty(32), used=ZERO).bug("Warp: lane|shfl")(r"""
// leader outside of the mask
// the first lane of the mask is __ffs(mask) - 1; the one here is outside of it
    int lane = threadIdx.x;
    bool keep = x[lane] > 11.0f && x[lane] < 15.0f;
    unsigned mask = __ballot_sync(0xffffffff, keep);
    if (!keep) return;
    int leader = __ffs(mask) + 3;
    int base = 0;
    if (lane == leader) base = atomicAdd(used, __popc(mask));
    base = __shfl_sync(mask, base, leader);  // <- bug
    out[base + __popc(mask & ((1u << lane) - 1))] = x[lane];
"""),
    kernel("count_equal", 1, 32, x=ints(32), y=Empty(32, "int32")).bug("Warp Deadlock Barrier: lane|mask|match")(r"""
// match among lanes that don't take part
// the mask names all lanes, the odd ones aren't in the branch
    int t = threadIdx.x;
    y[t] = 0;
    if (x[t] % 2 == 0) {
        unsigned same = __match_any_sync(0xffffffff, x[t] / 4);  // <- bug
        y[t] = __popc(same);
    }
    __syncwarp();
    y[t] += 1;
"""),
    kernel("sum_large", 1, 32, x=ints(32), y=Empty(32, "int32")).bug("Warp Deadlock Barrier: lane|mask|reduce")(r"""
// reduction of a warp in a branch
// eight lanes that the mask names are elsewhere
    int t = threadIdx.x, sum = 0;
    if (x[t] >= 8) {
        sum = __reduce_add_sync(0xffffffff, x[t]);  // <- bug
    }
    __syncwarp();
    y[t] = sum;
"""),
    kernel("halves", 1, 32, x=ints(32), y=Empty(32, "int32")).bug("Warp Deadlock Barrier: lane|mask")(r"""
// different functions for two halves of a full mask
// all lanes in a mask have to call the same function
    int t = threadIdx.x, found = 0;
    if (t < 8) {
        found = __all_sync(0xffffffff, x[t] > 0);  // <- bug
    } else {
        found = __shfl_sync(0xffffffff, x[t], 9);  // <- bug
    }
    y[t] = found;
"""),
    kernel("difference", 1, 32, x=floats(32), a=Empty(32), y=Empty(32)).bug("Early: a")(r"""
// exchange through global memory within a warp
// a neighbour's element may not be there yet
    int t = threadIdx.x;
    a[t] = x[t] * x[t];  // <- bug
    y[t] = a[(t + 1) % 32] - a[t];  // <- bug
"""),
    kernel("share", 1, 32, x=floats(32), y=Empty(32)).bug("Warp Deadlock: lane|mask|rank|shfl")(r"""
// tile of 16 in which half is busy elsewhere
// rank 0 of the tile doesn't call shfl()
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    float v = x[threadIdx.x];
    if (tile.thread_rank() >= 8) {
        v = tile.shfl(v, 0);  // <- bug
    }
    y[threadIdx.x] = v;
"""),
    kernel("upper", 1, 32, x=floats(32), y=Empty(32)).bug("UninitialisedRead: v|other")(r"""
// shuffled before it is set
// lanes below 16 get the v of a lane that never set it
    int lane = threadIdx.x;
    float v;
    if (lane < 16) v = x[lane];
    float other = __shfl_xor_sync(0xffffffff, v, 16);  // <- bug
    y[lane] = other + 1.0f;  // <- bug
"""),
    kernel("pairs", 1, 33, x=floats(33), y=Empty(33)).bug("Warp: lane|shfl 1")(r"""
// partner that a block of 33 doesn't have
// the second warp has a single lane
    int t = threadIdx.x;
    y[t] = x[t] + __shfl_xor_sync(0xffffffff, x[t], 1);  // <- bug
"""),
    kernel("hand_over", 1, 32, x=floats(32), y=Empty(1)).bug("Race Deadlock RunawayKernel: ready")(r"""
// lane that waits for a plain flag of another
// a plain flag may be read once and kept in a register, and orders nothing
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
"""),
    kernel("warp_sums", 1, 128, x=floats(128), y=Empty(128)).bug("Race: slot")(r"""
// all warps use the first warp's slot
// the slot is chosen by the lane and not by the warp
    __shared__ float slot[4];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    float v = x[t];
    for (int by = 16; by > 0; by /= 2) v += __shfl_xor_sync(0xffffffff, v, by);
    if (lane == 0) slot[lane] = v;  // <- bug
    __syncwarp();
    y[t] = slot[lane / 32] + warp;  // <- bug
"""),
    kernel("halves", 1, 32, x=floats(32), y=Empty(32)).bug("Warp Deadlock: mask")(r"""
// shuffle with a mask that was meant for the other half
// lanes 24 to 31 call it and aren't named; lanes 8 to 15 are named and don't call it
    int lane = threadIdx.x;
    float v = x[lane];
    if (lane < 16) {
        v += __shfl_xor_sync(0x0000ffff, v, 1);
    } else {
        v += __shfl_xor_sync(0x00ffff00, v, 1);  // <- bug
    }
    y[lane] = v;
"""),
]  # fmt: skip
