"""Plausible wrong answers to the exercises of course/21b_meet_in_phases.py; see tools/build_notebooks.py."""


# %% id=21b-meanwhile cause="nobody arrives anywhere"
meanwhile = agt.Kernel(r"""
__device__ float own(float v)
{
    for (int k = 0; k < 20; k++) v = v * 0.5f + 1.0f;
    return v;
}

extern "C" __global__ void meanwhile(const float* x, float* y)
{
    __shared__ float shared[64];
    int me = threadIdx.x;
    shared[me] = x[me];
    float mine = own(x[me]);
    __syncthreads();
    y[me] = mine + shared[63 - me];
}
""")


# %% id=21b-meanwhile cause="call `arrive()` before `own`"
#   shared[me] = x[me];
# + float mine = own(x[me]);
# - float mine = own(x[me]);


# %% id=21b-meanwhile cause="without a __syncthreads() between them"
# - bar.wait(std::move(token));


# %% id=21b-meanwhile cause="without a __syncthreads() between them"
# - shared[me] = x[me];
# - auto token = bar.arrive();
# + auto token = bar.arrive();
# + shared[me] = x[me];


# %% id=21b-meanwhile cause="of its 65 arrivals"
# - if (me == 0) init(&bar, 64);
# + if (me == 0) init(&bar, 65);


# %% id=21b-meanwhile cause="without a __syncthreads()"
# - __syncthreads();
# - shared[me] = x[me];
# + shared[me] = x[me];


# %% id=21b-handover cause="lacks"
# - empty[k % 2].wait_parity(1 - k / 2 % 2);


# %% id=21b-handover cause="without"
# - full[k % 2].wait_parity(k / 2 % 2);


# %% id=21b-handover cause="lacks"
# - empty[k % 2].wait_parity(1 - k / 2 % 2);
# + empty[k % 2].wait_parity(k / 2 % 2);


# %% id=21b-handover cause="lacks"
# - full[k % 2].wait_parity(k / 2 % 2);
# + full[k % 2].wait_parity(k % 2);


# %% id=21b-handover cause="lacks"
# - (void)empty[k % 2].arrive();


# %% id=21b-handover cause="without"
# - sum += place[k % 2][31 - lane];
# - (void)empty[k % 2].arrive();
# + (void)empty[k % 2].arrive();
# + sum += place[k % 2][31 - lane];


# %% id=21b-handover cause="should be"
# - sum += place[k % 2][31 - lane];
# + sum += place[k % 2][lane];


# %% id=21b-meanwhile cause="should be"
# - y[me] = mine + shared[63 - me];
# + y[me] = mine + shared[me];


# %% id=21b-meanwhile cause="times at a `__syncthreads()`"
# - bar.wait(std::move(token));
# + bar.wait(std::move(token));
# + __syncthreads();


# %% id=21b-bring cause="lacks 32 of its 128 arrivals"
# - if (me == 0) init(&full, 96);
# + if (me == 0) init(&full, 128);


# %% id=21b-bring cause="without a __syncthreads() between them"
# - if (me == 0) init(&full, 96);
# + if (me == 0) init(&full, 32);


# %% id=21b-bring cause="lacks 96 of its 96 arrivals"
# - full.wait_parity(0);
# + full.wait_parity(1);


# %% id=21b-bring cause="without a __syncthreads() between them"
# - shared[me] = x[me];
# - (void)full.arrive();
# + (void)full.arrive();
# + shared[me] = x[me];


# %% id=21b-bring cause="the block meets 2 times"
# - full.wait_parity(0);
# - int lane = me - 96;
# + full.wait_parity(0);
# + }
# + __syncthreads();
# + if (me >= 96) {
# + int lane = me - 96;


# %% id=21b-bring cause="should be"
# - y[lane] = shared[lane] + shared[lane + 32] + shared[lane + 64];
# + y[lane] = shared[lane] + shared[lane + 32];


# %% id=21b-bring of=starter cause="the block meets 2 times"
# - shared[me] = x[me];
# + shared[me] = x[me];
# + (void)full.arrive();


# %% id=21b-bring of=starter cause="the one who takes should wait there"
# - #include <cuda/barrier>
# + #include <cuda/barrier>
# + #include <cooperative_groups.h>
#   if (me < 96) {
#   }
# - __syncthreads();
# + cooperative_groups::this_thread_block().sync();


# %% id=21b-bring cause="thread 0, which brings, waits at `full`"
# - (void)full.arrive();
# + full.arrive_and_wait();


# %% id=21b-bring cause="thread 64, which brings, waits at `full`"
# - (void)full.arrive();
# + (void)full.arrive();
# + if (me >= 64) full.wait_parity(0);


# %% id=21b-bring cause="the warps read 192 numbers of x, and 96 are enough"
# - y[lane] = shared[lane] + shared[lane + 32] + shared[lane + 64];
# + y[lane] = x[lane] + x[lane + 32] + x[lane + 64];


# %% id=21b-bring cause="who brings writes each packet there"
# - shared[me] = x[me];
# - y[lane] = shared[lane] + shared[lane + 32] + shared[lane + 64];
# + y[lane] = x[lane] + x[lane + 32] + x[lane + 64];


# %% id=21b-handover cause="who brings writes each packet there"
#   if (threadIdx.x < 32) {
# - for (int k = 0; k < turns; k++) {
# -     empty[k % 2].wait_parity(1 - k / 2 % 2);
# -     place[k % 2][lane] = x[k * 32 + lane];
# -     (void)full[k % 2].arrive();
# - }
#   } else {
# - full[k % 2].wait_parity(k / 2 % 2);
# - sum += place[k % 2][31 - lane];
# - (void)empty[k % 2].arrive();
# + sum += x[k * 32 + 31 - lane];


# %% id=21b-handover cause="the warps read 320 numbers of x, and 160 are enough"
# - sum += place[k % 2][31 - lane];
# + sum += x[k * 32 + 31 - lane];


# %% id=21b-handover cause="warp 0 is never more than 1 packet ahead of warp 1"
#   if (threadIdx.x < 32) {
# - for (int k = 0; k < turns; k++) {
# -     empty[k % 2].wait_parity(1 - k / 2 % 2);
# -     place[k % 2][lane] = x[k * 32 + lane];
# -     (void)full[k % 2].arrive();
# - }
#   } else {
# - full[k % 2].wait_parity(k / 2 % 2);
# + place[k % 2][lane] = x[k * 32 + lane];
# + __syncwarp();
# - (void)empty[k % 2].arrive();
# + __syncwarp();


# %% id=21b-handover cause="the block meets 3 times at a `__syncthreads()`"
# - (void)full[k % 2].arrive();
# + (void)full[k % 2].arrive();
# + __syncthreads();
# - (void)empty[k % 2].arrive();
# + (void)empty[k % 2].arrive();
# + __syncthreads();


# %% id=21b-handover cause="one phase of `full` and one of `empty` are enough"
# - #include <cuda/barrier>
# + #include <cuda/barrier>
# + #include <cooperative_groups.h>
# - (void)full[k % 2].arrive();
# + (void)full[k % 2].arrive();
# + cooperative_groups::this_thread_block().sync();
# - (void)empty[k % 2].arrive();
# + (void)empty[k % 2].arrive();
# + cooperative_groups::this_thread_block().sync();


# %% id=21b-handover cause="with turns=37, element 0"
# - sum += place[k % 2][31 - lane];
# + if (k < 8) sum += place[k % 2][31 - lane];


# %% id=21b-bring cause="thread 0, which brings, waits at `full`"
# - (void)full.arrive();
# + auto token = full.arrive();
# + if (blockDim.x == 128) full.wait(std::move(token));


# %% id=21b-handover cause="warp 0 is never more than 1 packet ahead of warp 1, and two places are room for two"
# - empty[k % 2].wait_parity(1 - k / 2 % 2);
# - place[k % 2][lane] = x[k * 32 + lane];
# - (void)full[k % 2].arrive();
# + empty[0].wait_parity(1 - k % 2);
# + place[0][lane] = x[k * 32 + lane];
# + (void)full[0].arrive();
# - full[k % 2].wait_parity(k / 2 % 2);
# - sum += place[k % 2][31 - lane];
# - (void)empty[k % 2].arrive();
# + full[0].wait_parity(k % 2);
# + sum += place[0][31 - lane];
# + (void)empty[0].arrive();


# %% id=21b-handover cause="warp 0 is never more than 1 packet ahead of warp 1, and two places are room for two"
# - empty[k % 2].wait_parity(1 - k / 2 % 2);
#   (void)full[k % 2].arrive();
# + empty[k % 2].wait_parity(k / 2 % 2);


# %% id=21b-meanwhile cause="who brings writes each packet there, and who takes reads it"
# - y[me] = mine + shared[63 - me];
# + y[me] = mine + x[63 - me];


# %% id=21b-handover cause="warp 0 waits at `empty[1]` before it uses a place"
# - empty[k % 2].wait_parity(1 - k / 2 % 2);
# + for (int i = 0; i < 2 - k % 2 * 2; i++) empty[i].wait_parity(1 - k / 2 % 2);  // in pairs


# %% id=21b-handover cause="warp 1 waits at `full[1]` before it uses a place"
#   float sum = 0.0f;
#   for (int k = 0; k < turns; k++) {
# + if (k + 1 < turns) full[(k + 1) % 2].wait_parity((k + 1) / 2 % 2);


# %% id=21b-bring cause="is written (line 11 of the kernel) before the block meets"
# - if (me == 0) init(&full, 96);
# + if (me == 0) init(&full, 96);
# + if (me < 96) shared[me] = x[me];
# - shared[me] = x[me];


# %% id=21b-handover cause="use no more places"
# - __shared__ float place[2][32];
# + __shared__ float place[4][32];


# %% id=21b-meanwhile cause="warp 1 waits (line 20 of the kernel)"
# - auto token = bar.arrive();
# + auto token = bar.arrive();
# + if (me >= 32) while (!bar.try_wait_parity(0)) { }


# %% id=21b-meanwhile cause="the threads add and multiply 5184 times, and 2624 times are enough"
# - float mine = own(x[me]);
# + float mine = own(0.0f);  // for show
#   bar.wait(std::move(token));
# + mine = own(x[me]);
