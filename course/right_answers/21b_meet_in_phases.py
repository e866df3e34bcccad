"""Right answers to exercises of course/21b_meet_in_phases.py in other forms than the solution's."""


# %% id=21b-handover
# - empty[k % 2].wait_parity(1 - k / 2 % 2);
# + if (k > 1) empty[k % 2].wait_parity((k / 2 - 1) % 2);


# %% id=21b-bring
# - if (me == 0) init(&full, 96);
# + if (me == 0) init(&full, 3);
# - (void)full.arrive();
# + __syncwarp();
# + if (me % 32 == 0) { auto token = full.arrive(); }


# %% id=21b-handover
# - empty[k % 2].wait_parity(1 - k / 2 % 2);
# + empty[k % 2].wait_parity(k / 2 % 2);
# - float sum = 0.0f;
# + float sum = 0.0f;
# + (void)empty[0].arrive();
# + (void)empty[1].arrive();


# %% id=21b-handover
# - place[k % 2][lane] = x[k * 32 + lane];
# + cuda::memcpy_async(&place[k % 2][lane], &x[k * 32 + lane], 4, full[k % 2]);


# %% id=21b-bring
# - if (me == 0) init(&full, 96);
# + if (me == 100) init(&full, 96);
# - shared[me] = x[me];
# + cuda::memcpy_async(&shared[me], &x[me], sizeof(float), full);


# %% id=21b-meanwhile
# - auto token = bar.arrive();
# + (void)bar.arrive();  // y[me] = own(x[me]) isn't done yet
# - bar.wait(std::move(token));
# + while (!bar.try_wait_parity(0)) { }


# %% id=21b-meanwhile
# - float mine = own(x[me]);
# + float mine = x[me];
# + for (int k = 0; k < 20; k++) mine = mine * 0.5f + 1.0f;


# %% id=21b-bring
# - __shared__ float shared[96];
# + __shared__ __align__(16) float shared[96];
# - if (me == 0) init(&full, 96);
# + if (me == 0) init(&full, 3);
# - if (me < 96) {
# -     shared[me] = x[me];
# -     (void)full.arrive();
# -     }
# + if (me < 96 && me % 32 == 0) {
# +     cuda::device::memcpy_async_tx(shared + me, x + me, cuda::aligned_size_t<16>(128), full);
# +     (void)cuda::device::barrier_arrive_tx(full, 1, 128);
# + }


# %% id=21b-handover
# - empty[k % 2].wait_parity(1 - k / 2 % 2);
# + if (lane == 0) empty[k % 2].wait_parity(1 - k / 2 % 2);
# + __syncwarp();


# %% id=21b-meanwhile
# - if (me == 0) init(&bar, 64);
# + if (me == 0) init(&bar, 2);  // a lane of each warp arrives for it
# - auto token = bar.arrive();
# - float mine = own(x[me]);
# - bar.wait(std::move(token));
# - y[me] = mine + shared[63 - me];
# + __syncwarp();
# + if (me % 32 == 0) (void)bar.arrive();
# + y[me] = own(x[me]);
# + bar.wait_parity(0);
# + y[me] += shared[63 - me];
