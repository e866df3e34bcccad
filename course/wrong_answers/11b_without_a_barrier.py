"""Plausible wrong answers to the exercises of course/11b_without_a_barrier.py; see tools/build_notebooks.py."""


# %% id=11b-ask-less cause="8 looks at a flag, and 2 looks would be right"
# - for _ in range(every - 1):
# - round_op().async_on(stream)
# - moved = round_op().to_host().sync_on(stream)
# + flags = [round_op().to_host().sync_on(stream) for _ in range(every)]
# - if not moved[0]:
# + if not flags[-1][0]:


# %% id=11b-ask-less cause="a round whose flag nobody reads need not be waited for"
# - round_op().async_on(stream)
# + round_op().sync_on(stream)


# %% id=11b-ask-less cause="`halve` ran 10 times, and should run 8 times"
# - for _ in range(every - 1):
# + for _ in range(every):


# %% id=11b-ask-less cause="`settle` should return how many rounds were run, 8, and returned 2"
# - rounds = 0
# + looks = 0
# - rounds += every
# + looks += 1
# - return rounds
# + return looks


# %% id=11b-queue cause="which nothing has written"
QUEUE = r"""
__device__ float work(unsigned int length)
{
    __shared__ float part[64];
    float sum = 0.0f;
    for (unsigned int k = threadIdx.x + 1; k <= length; k += blockDim.x) sum += 1.0f / ((float)k * (float)k);
    part[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    return part[0];
}
extern "C" __global__ void queue(
    unsigned int jobs, const unsigned int* lengths, unsigned int* next, float* results)
{
    while (true) {
        unsigned int job = atomicAdd(next, 1);
        if (job >= jobs) return;
        float sum = work(lengths[job]);
        if (threadIdx.x == 0) results[job] = sum;
        __syncthreads();
    }
}
"""


# %% id=11b-queue of=above cause="with 20 jobs, 3 blocks and a counter at 4, element 0 is 1.6412"
# - while (true) {
# - unsigned int job = atomicAdd(next, 1);
# - if (job >= jobs) return;
# + for (unsigned int job = blockIdx.x; job < jobs; job += gridDim.x) {
# - if (threadIdx.x == 0) results[job] = sum;
# + if (threadIdx.x == 0) {
# +     results[job] = sum;
# +     atomicAdd(next, 1);
# + }


# %% id=11b-queue of=above cause="no thread wrote element 3 of the output"
# - while (true) {
# - unsigned int job = atomicAdd(next, 1);
# - if (job >= jobs) return;
# - float sum = work(lengths[job]);
# - if (threadIdx.x == 0) results[job] = sum;
# - __syncthreads();
# - }
# + __shared__ unsigned int job;
# + if (threadIdx.x == 0) job = atomicAdd(next, 1);
# + __syncthreads();
# + if (job >= jobs) return;
# + float sum = work(lengths[job]);
# + if (threadIdx.x == 0) results[job] = sum;


# %% id=11b-queue of=above cause="without a __syncthreads() between them"
#   unsigned int jobs, const unsigned int* lengths, unsigned int* next, float* results)
#   {
# + __shared__ unsigned int job;
# - unsigned int job = atomicAdd(next, 1);
# - if (job >= jobs) return;
# - float sum = work(lengths[job]);
# - if (threadIdx.x == 0) results[job] = sum;
# + if (threadIdx.x == 0) job = atomicAdd(next, 1);
# + unsigned int mine = job;
# + __syncthreads();
# + if (mine >= jobs) return;
# + float sum = work(lengths[mine]);
# + if (threadIdx.x == 0) results[mine] = sum;


# %% id=11b-queue of=above cause="nothing orders two blocks"
#   unsigned int jobs, const unsigned int* lengths, unsigned int* next, float* results)
#   {
# + __shared__ unsigned int job;
# - unsigned int job = atomicAdd(next, 1);
# - if (job >= jobs) return;
# - float sum = work(lengths[job]);
# - if (threadIdx.x == 0) results[job] = sum;
# + if (threadIdx.x == 0) { job = next[0]; next[0] = job + 1; }
# + __syncthreads();
# + unsigned int mine = job;
# + if (mine >= jobs) return;
# + float sum = work(lengths[mine]);
# + if (threadIdx.x == 0) results[mine] = sum;


# %% id=11b-queue of=above cause="lengths"
#   unsigned int jobs, const unsigned int* lengths, unsigned int* next, float* results)
#   {
# + __shared__ unsigned int job;
# - unsigned int job = atomicAdd(next, 1);
# - if (job >= jobs) return;
# - float sum = work(lengths[job]);
# - if (threadIdx.x == 0) results[job] = sum;
# + if (threadIdx.x == 0) job = atomicAdd(next, 1);
# + __syncthreads();
# + unsigned int mine = job;
# + if (mine > jobs) return;
# + float sum = work(lengths[mine]);
# + if (threadIdx.x == 0) results[mine] = sum;


# %% id=11b-ask-less cause="a result was read before the device was done with it"
# - moved = round_op().to_host().sync_on(stream)
# + moved = round_op().to_host().async_on(stream)


# %% id=11b-ask-less cause="one of the streams that you were given"
# - def settle(round_op, every, stream):
# + def settle(round_op, every, stream):
# +     stream = agt.create_stream()


# %% id=11b-queue cause="and should be"
# - while (true) {
# - if (threadIdx.x == 0) job = atomicAdd(next, 1);
# - __syncthreads();
# - unsigned int mine = job;
# - if (mine >= jobs) return;
# + if (threadIdx.x == 0) atomicAdd(next, 1);
# + for (unsigned int mine = blockIdx.x; mine < jobs; mine += gridDim.x) {
# +     if (threadIdx.x == 0) {
# +         job = mine;
# +         atomicAdd(next, 1);
# +     }


# %% id=11b-queue cause="does not end"
QUEUE = r"""
extern "C" __global__ void queue(int jobs, const unsigned int* length, unsigned int* next, float* result)
{
    __shared__ int job;
    if (threadIdx.x == 0) job = atomicAdd(next, 1);
    __syncthreads();
    while (job < jobs) {
        float sum = 0.0f;
        for (unsigned int k = 1; k <= length[job]; k++) sum += 1.0f / ((float)k * (float)k);
        if (threadIdx.x == 0) result[job] = sum;
        __syncthreads();
    }
}
"""


# %% id=11b-while cause="while has come round 501 times"
def avalanche(drop, topple, unstable, stream):
    waves = agt.CudaGraph.while_loop(unstable.borrow(), topple())
    return agt.zip(drop(), waves).graph_on(stream)


# %% id=11b-while cause="the sand went through 1 wave, and 7 is right"
def avalanche(drop, topple, unstable, stream):
    down = agt.zeros(1, np.int32).sync_on(stream)
    lower = agt.memcpy(unstable.borrow(), down.borrow())
    waves = agt.CudaGraph.while_loop(unstable.borrow(), agt.zip(topple(), lower))
    return agt.zip(drop(), waves).graph_on(stream)


# %% id=11b-while cause="'zeros' allocates memory, and a graph of this course does not"
def avalanche(drop, topple, unstable, stream):
    lower = agt.zeros(1, np.int32).and_then(lambda down: agt.memcpy(unstable.borrow(), down))
    waves = agt.CudaGraph.while_loop(unstable.borrow(), agt.zip(lower, topple()))
    return agt.zip(drop(), waves).graph_on(stream)


# %% id=11b-while cause="a copy to the host"
# - """A graph in which a grain falls, and then the pile topples until it lies still."""
# - wave = agt.zip(agt.memcpy(unstable.borrow(), down.borrow()), topple())
# + lower = agt.memcpy(unstable.borrow(), down.borrow())
# + wave = agt.zip(lower, topple(), agt.d2h(unstable.borrow()))


# %% id=11b-while cause="the sand went through 200 waves, and 7 is right"
def avalanche(drop, topple, unstable, stream):
    return agt.zip(drop(), *[topple() for _ in range(200)]).graph_on(stream)


# %% id=11b-while cause="launch 2 of the graph, the sand went through 1 wave, and 0 is right"
def avalanche(drop, topple, unstable, stream):
    up, down = (agt.full(1, k, np.int32).sync_on(stream) for k in (1, 0))
    start = agt.zip(drop(), agt.memcpy(unstable.borrow(), up.borrow()))
    wave = agt.zip(agt.memcpy(unstable.borrow(), down.borrow()), topple())
    waves = agt.CudaGraph.while_loop(unstable.borrow(), wave)
    return agt.zip(start, waves).graph_on(stream)


# %% id=11b-while cause="the sand went through 8 waves, and 7 is right"
def avalanche(drop, topple, unstable, stream):
    down = agt.zeros(1, np.int32).sync_on(stream)
    lower = agt.memcpy(unstable.borrow(), down.borrow())
    waves = agt.CudaGraph.while_loop(unstable.borrow(), agt.zip(lower, topple(), topple()))
    return agt.zip(drop(), waves).graph_on(stream)


# %% id=11b-while cause="the sand went through 0 waves, and 7 is right"
def avalanche(drop, topple, unstable, stream):
    down = agt.zeros(1, np.int32).sync_on(stream)
    lower = agt.memcpy(unstable.borrow(), down.borrow())
    waves = agt.CudaGraph.while_loop(unstable.borrow(), topple())
    return agt.zip(drop(), lower, waves).graph_on(stream)


# %% id=11b-while cause="should return a graph"
def avalanche(drop, topple, unstable, stream):
    drop().sync_on(stream)
    while agt.d2h(unstable.borrow()).sync_on(stream)[0]:
        agt.memcpy(unstable.borrow(), agt.pin(np.zeros(1, np.int32))).sync_on(stream)
        topple().sync_on(stream)


# %% id=11b-while cause="the sand went through 1 wave, and 7 is right"
def avalanche(drop, topple, unstable, stream):
    down = agt.zeros(1, np.int32).sync_on(stream)
    lower = agt.memcpy(unstable.borrow(), down.borrow())
    wave = agt.zip(lower, topple())
    return agt.zip(drop(), agt.CudaGraph.cond(unstable.borrow(), wave)).graph_on(stream)


# %% id=11b-while cause="a grain fell before anybody launched the graph"
def avalanche(drop, topple, unstable, stream):
    down = agt.zeros(1, np.int32).sync_on(stream)
    lower = agt.memcpy(unstable.borrow(), down.borrow())
    waves = agt.CudaGraph.while_loop(unstable.borrow(), agt.zip(lower, topple()))
    graph = agt.zip(drop(), waves).graph_on(stream)
    graph.launch().sync_on(stream)
    return graph


# %% id=11b-while cause="race on array 'unstable'"
def avalanche(drop, topple, unstable, stream):
    down = agt.zeros(1, np.int32).sync_on(stream)
    lower = agt.memcpy(unstable.borrow(), down.borrow())
    waves = agt.CudaGraph.while_loop(unstable.borrow(), agt.zip(lower, topple()))
    return agt.overlap(drop(), waves).graph_on(stream)


# %% id=11b-while cause="element (3, 3) is 1, and should be 0"
def avalanche(drop, topple, unstable, stream):
    down = agt.zeros(1, np.int32).sync_on(stream)
    lower = agt.memcpy(unstable.borrow(), down.borrow())
    fallen = drop()
    waves = agt.CudaGraph.while_loop(unstable.borrow(), agt.zip(lower, topple()))
    return agt.zip(fallen, fallen.and_then(lambda _: waves)).graph_on(stream)


# %% id=11b-queue cause="with 300 jobs, 9 blocks"
# - if (mine >= jobs) return;
# + if (mine >= jobs || mine >= 64) return;


# %% id=11b-ask-less cause="with every=1, 100 rounds and 100 looks"
# - if not moved[0]:
# + if not moved[0] or rounds >= 100:


# %% id=11b-last cause="can't rely on what others wrote: kernel 'trial'"
# - if (threadIdx.x == 0) {
# -     __threadfence();
# + if (threadIdx.x == 0) {


# %% id=11b-last cause="no __threadfence() between its look at the flag"
# - if (is_last) atomicExch(arrived, 0);
# - __threadfence();
# + if (is_last) atomicExch(arrived, 0);


# %% id=11b-last cause="thread (1, 0, 0) reads 'parts'[1]"
# - __shared__ bool is_last;
# - __syncthreads();
# + __shared__ bool is_last;


# %% id=11b-last cause="reads 'is_last' in shared memory"
# - }
# - __syncthreads();
# + }


# %% id=11b-last cause="with launch 2, 3 blocks, `last` said true to 0 threads"
# - if (is_last) atomicExch(arrived, 0);


# %% id=11b-last cause="`last` said true to 256 threads, and 64 is right"
# - is_last = atomicAdd(arrived, 1) == gridDim.x - 1;
# + atomicAdd(arrived, 1);
# + is_last = atomicAdd(arrived, 0) == gridDim.x;


# %% id=11b-last cause="`last` said true to 0 threads, and 64 is right"
# - is_last = atomicAdd(arrived, 1) == gridDim.x - 1;
# + is_last = atomicAdd(arrived, 1) == gridDim.x;


# %% id=11b-last cause="`last` said true to 1 thread, and 64 is right"
# - __shared__ bool is_last;
# + bool is_last = false;
# - }
# - __syncthreads();
# + }


# %% id=11b-last cause="an atomic for one block does not reach another"
# - is_last = atomicAdd(arrived, 1) == gridDim.x - 1;
# + is_last = atomicAdd_block(arrived, 1) == gridDim.x - 1;


# %% id=11b-last cause="waits forever in this loop"
# - is_last = atomicAdd(arrived, 1) == gridDim.x - 1;
# + atomicAdd(arrived, 1);
# + while (atomicAdd(arrived, 0) < gridDim.x) { }     // now all are here
# + is_last = blockIdx.x == 0;


# %% id=11b-last cause="can't rely on what others wrote: kernel 'trial'"
# - __threadfence();
# - is_last = atomicAdd(arrived, 1) == gridDim.x - 1;
# + is_last = atomicAdd(arrived, 1) == gridDim.x - 1;   // and the fences?
# - __threadfence();


# %% id=11b-queue cause="element 0 was added to"
# - if (mine >= jobs) return;
# + if (mine >= jobs) break;
# - if (threadIdx.x == 0) results[mine] = sum;
# + if (threadIdx.x == 0) results[mine] += sum;


# %% id=11b-queue cause="where block 0 comes late, no thread wrote"
# - __shared__ unsigned int job;
# + __shared__ unsigned int job;
# + unsigned int done = 0, share = (jobs + gridDim.x - 1) / gridDim.x;
# - if (mine >= jobs) return;
# + if (mine >= jobs || done++ >= share) break;


# %% id=11b-queue cause="where block 0 comes late, no thread wrote element 2"
# - while (true) {
# - if (threadIdx.x == 0) job = atomicAdd(next, 1);
# + if (threadIdx.x == 0) job = atomicAdd(next, 1);
# + __syncthreads();
# + unsigned int mine = job;
# + while (mine < jobs) {
# +     float sum = work(lengths[mine]);
# +     if (threadIdx.x == 0) { results[mine] = sum; atomicAdd(next, 1); }
# - unsigned int mine = job;
# - if (mine >= jobs) return;
# - float sum = work(lengths[mine]);
# - if (threadIdx.x == 0) results[mine] = sum;
# - __syncthreads();
# + mine += gridDim.x;


# %% id=11b-queue cause="where block 0 comes late, no thread wrote element 81"
# - while (true) {
# + for (int turn = 0; turn < 40; turn++) {
# - if (mine >= jobs) return;
# + if (mine >= jobs) break;


# %% id=11b-queue cause="no thread wrote element 5"
# - while (true) {
# + for (int turn = 0; true; turn++) {
# - if (mine >= jobs) return;
# + if (mine >= jobs || lengths[mine] == 0) break;


# %% id=11b-ask-less cause="with every=1, 19 rounds and 19 looks"
def settle(round_op, every, stream):
    for looks in range(1, 20):  # that should do
        for _ in range(every - 1):
            round_op().async_on(stream)
        if not round_op().to_host().sync_on(stream)[0]:
            return looks * every
    return looks * every


# %% id=11b-queue cause="where block 0 comes late, no thread wrote element 135"
# - while (true) {
# + for (unsigned int k = 0; k <= jobs / gridDim.x; k++) {


# %% id=11b-queue cause="all threads of a block work on it"
# - float sum = work(lengths[mine]);
# - if (threadIdx.x == 0) results[mine] = sum;
# + if (threadIdx.x == 0) {
# +     float sum = 0.0f;
# +     for (unsigned int k = lengths[mine]; k > 0; k--) sum += 1.0f / ((float)k * (float)k);
# +     results[mine] = sum;
# + }


# %% id=11b-queue cause="the counter is at 0 in the end, with 20 jobs"
# - if (mine >= jobs) return;
# + if (mine == jobs + gridDim.x - 1 && threadIdx.x == 0) atomicExch(next, 0);
# + if (mine >= jobs) return;


# %% id=11b-last cause="with launch 2, 3 blocks, `last` said true to a thread that can't rely on what others wrote"
# - is_last = atomicAdd(arrived, 1) == gridDim.x - 1;
# - if (is_last) atomicExch(arrived, 0);
# + is_last = atomicAdd(arrived, 1) % gridDim.x == gridDim.x - 1;


# %% id=11b-last cause="from the last to the first, with launch 1, 3 blocks, there is a place for one block at a time"
# - is_last = atomicAdd(arrived, 1) == gridDim.x - 1;
# + is_last = blockIdx.x == gridDim.x - 1;
# + atomicAdd(arrived, 1);
# + while (is_last && atomicAdd(arrived, 0) < gridDim.x) __nanosleep(100);


# %% id=11b-last cause="one by one, with launch 1, 3 blocks, there is a place for one block at a time"
# - if (is_last) atomicExch(arrived, 0);
# + if (is_last) atomicExch(arrived, 0);
# + while (blockIdx.x == 0 && atomicAdd(arrived, 0) != 0) __nanosleep(100);


# %% id=11b-queue cause="in blocks of 32 threads"
# - if (threadIdx.x == 0) job = atomicAdd(next, 1);
# + if (threadIdx.x == 63) job = atomicAdd(next, 1);


# %% id=11b-queue of=starter cause="a shuffle tells no warp but its own"
# - for (unsigned int job = blockIdx.x; job < jobs; job += gridDim.x) {
# + while (true) {
# +     unsigned int job = 0;
# +     if (threadIdx.x == 0) job = atomicAdd(next, 1);
# +     job = __shfl_sync(0xffffffff, job, 0);
# +     if (job >= jobs) break;


# %% id=11b-queue of=starter cause="by one `atomicAdd`"
# - for (unsigned int job = blockIdx.x; job < jobs; job += gridDim.x) {
# + __shared__ unsigned int mine;
# + while (true) {
# +     if (threadIdx.x == 0) { mine = *next; *next = mine + 1; }
# +     __syncthreads();
# +     unsigned int job = mine;
# +     if (job >= jobs) break;


# %% id=11b-last cause="with 258 blocks of 2 threads, with launch 1, 258 blocks, `last` said true"
# - is_last = atomicAdd(arrived, 1) == gridDim.x - 1;
# + is_last = (unsigned char)atomicAdd(arrived, 1) == (unsigned char)(gridDim.x - 1);


# %% id=11b-queue cause="with 70016 jobs, 3 blocks and a counter at 70000, "
# - unsigned int mine = job;
# + unsigned int mine = (unsigned short)job;


# %% id=11b-ask-less cause="with every=1, 120 rounds and 30 looks at a flag, and 120 looks would be right"
# - rounds = 0
# + every, rounds = 4, 0


# %% id=11b-while cause="the graph was captured on another stream than the given one"
# - down = agt.zeros(1, np.int32).sync_on(stream)
# + stream = agt.create_stream()
# + down = agt.zeros(1, np.int32).sync_on(stream)
