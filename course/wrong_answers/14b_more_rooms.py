"""Plausible wrong answers to the exercises of course/14b_more_rooms.py; see tools/build_notebooks.py."""


# %% id=14b-mix cause="`sum` is right, and what is in `mix` isn't corrected"
# - sum = fix * sum + e;                                    // corrected, and then added to
# - for (int c = 0; c < SIZE; c++) mix[c] = fix * mix[c] + e * values[j * SIZE + c];
# + sum = fix * sum + e;
# + for (int c = 0; c < SIZE; c++) mix[c] += e * values[j * SIZE + c];


# %% id=14b-mix cause="`mix` is right, and what is in `sum` isn't corrected"
# - sum = fix * sum + e;                                    // corrected, and then added to
# + sum += e;


# %% id=14b-mix cause="neither `sum` nor `mix` is corrected"
# - extern "C" __global__ void flash(
# - int words, const float* q, const float* k, const float* v, float* out)
# + extern "C" __global__ void flash(int words, const float* q, const float* k, const float* v, float* out)
# - int i = blockIdx.x * TILE + threadIdx.x;
# - int last = min(words, (int)(blockIdx.x + 1) * TILE);
# + int i = blockIdx.x * TILE + threadIdx.x, last = min(words, (int)(blockIdx.x + 1) * TILE);
#   for (int c = 0; c < SIZE; c++) score += mine[c] * keys[j * SIZE + c];
# + most = fmaxf(most, score);
# - most = fmaxf(most, score);
# - sum = fix * sum + e;                                    // corrected, and then added to
# + sum = fix * sum + e;


# %% id=14b-mix cause="element 0 is nan"
# - float fix = expf(before - most), e = expf(score - most);
# - sum = fix * sum + e;                                    // corrected, and then added to
# + float fix = expf(most - before), e = expf(score - most);
# + sum = fix * sum + e;


# %% id=14b-mix of=starter cause="with 33 words, each of which counts for more than those before it, element"
# - most = fmaxf(most, score);
# - float e = expf(score - most);
# + float e = expf(score);


# %% id=14b-mix cause="element 0 is nan"
# - sum = fix * sum + e;                                    // corrected, and then added to
# - for (int c = 0; c < SIZE; c++) mix[c] = fix * mix[c] + e * values[j * SIZE + c];
# + sum = fix * (sum + e);
# + for (int c = 0; c < SIZE; c++) mix[c] = fix * (mix[c] + e * values[j * SIZE + c]);


# %% id=14b-mix cause="element 0 is nan"
# - float fix = expf(before - most), e = expf(score - most);
# - sum = fix * sum + e;                                    // corrected, and then added to
# + float fix = expf(before - most), e = expf(score - before);
# + sum = fix * sum + e;


# %% id=14b-mix cause="with 40 words, where the largest score changes on the way, element"
# - float fix = expf(before - most), e = expf(score - most);
# - sum = fix * sum + e;                                    // corrected, and then added to
# + float fix = before - most, e = expf(score - most);
# + sum = fix * sum + e;


# %% id=14b-mix cause="with 33 words"
# - float fix = expf(before - most), e = expf(score - most);
# - sum = fix * sum + e;                                    // corrected, and then added to
# + float fix = j > 0 ? expf(before - most) : 1.0f, e = expf(score - most);
# + sum = fix * sum + e;


# %% id=14b-queue cause="item 1 was done 0 times"
# - unsigned int slot = atomicAdd(queue.head, 1), looks = 0;
# + unsigned int slot = atomicAdd(queue.head, 1);
# - if (atomicAdd(queue.open, 0) == 0) return -1;
# - if (++looks > 10000000) __trap();          // as every wait of a kernel, this one ends
# - __nanosleep(100);
# + return -1;


# %% id=14b-queue cause="somebody left while others could still put something"
# - unsigned int slot = atomicAdd(queue.head, 1), looks = 0;
# + unsigned int slot = atomicAdd(queue.head, 1);
# - if (atomicAdd(queue.open, 0) == 0) return -1;
# - if (++looks > 10000000) __trap();          // as every wait of a kernel, this one ends
# + if (slot >= atomicAdd(queue.tail, 0)) return -1;


# %% id=14b-queue cause="somebody left while others could still put something"
# - unsigned int slot = atomicAdd(queue.head, 1), looks = 0;
# + unsigned int slot = atomicAdd(queue.head, 1);
# + int turns = 0;
# - if (atomicAdd(queue.open, 0) == 0) return -1;
# - if (++looks > 10000000) __trap();          // as every wait of a kernel, this one ends
# + if (++turns > 10) return -1;


# %% id=14b-queue cause="a block waits forever in `take`"
# - unsigned int slot = atomicAdd(queue.head, 1), looks = 0;
# + unsigned int slot = atomicAdd(queue.head, 1);
# - if (atomicAdd(queue.open, 0) == 0) return -1;
# - if (++looks > 10000000) __trap();          // as every wait of a kernel, this one ends


# %% id=14b-queue cause="a block waits forever in `take`"
# - if (slot >= queue.room) __trap();              // full: no answer beats a wrong one
# - unsigned int slot = atomicAdd(queue.head, 1), looks = 0;
# + unsigned int slot = atomicAdd(queue.head, 1);
# - if (++looks > 10000000) __trap();          // as every wait of a kernel, this one ends
# - atomicSub(queue.open, 1);


# %% id=14b-queue cause="a block waits forever in `take`"
QUEUE = r"""
__device__ void put(Queue queue, int item)
{
    unsigned int slot = atomicAdd(queue.tail, 1);
    __threadfence();                               // what the item needs comes first
    queue.items[slot] = item;
}

__device__ int take(Queue queue)
{
    unsigned int slot = atomicAdd(queue.head, 1);
    while (queue.items[slot] < 0) {
        if (atomicAdd(queue.open, 0) == 0) return -1;
        __nanosleep(100);
    }
    __threadfence();
    return queue.items[slot];
}

__device__ void done(Queue queue)
{
    atomicSub(queue.open, 1);
}
"""


# %% id=14b-queue of=above cause="a block waits forever in `take`"
#   {
# +     atomicAdd(queue.open, 1);
#   __threadfence();
# + atomicSub(queue.open, 1);
# - atomicSub(queue.open, 1);


# %% id=14b-queue of=above cause="a block waits forever in `take`"
#   queue.items[slot] = item;
# + atomicAdd(queue.open, 1);


# %% id=14b-queue of=above cause="others see that `open` was raised only behind a fence"
# - __threadfence();                               // what the item needs comes first
# + __threadfence();
# + atomicAdd(queue.open, 1);
# - __nanosleep(100);


# %% id=14b-queue cause="flag, __threadfence(), data"
# - if (slot >= queue.room) __trap();              // full: no answer beats a wrong one
# - __threadfence();                               // what the item needs comes first
# - unsigned int slot = atomicAdd(queue.head, 1), looks = 0;
# + unsigned int slot = atomicAdd(queue.head, 1);
# - if (++looks > 10000000) __trap();          // as every wait of a kernel, this one ends


# %% id=14b-queue cause="flag, __threadfence(), data"
# - if (slot >= queue.room) __trap();              // full: no answer beats a wrong one
# - unsigned int slot = atomicAdd(queue.head, 1), looks = 0;
# + unsigned int slot = atomicAdd(queue.head, 1);
# - if (++looks > 10000000) __trap();          // as every wait of a kernel, this one ends
# - __threadfence();


# %% id=14b-queue cause="in the same instruction"
# - unsigned int slot = atomicAdd(queue.tail, 1);
# + unsigned int slot = atomicAdd(queue.tail, 0);
# + atomicAdd(queue.tail, 1);
# - unsigned int slot = atomicAdd(queue.head, 1), looks = 0;
# + unsigned int slot = atomicAdd(queue.head, 1);
# - if (++looks > 10000000) __trap();          // as every wait of a kernel, this one ends


# %% id=14b-queue cause="`QUEUE` should be the text of device code"
QUEUE = agt.Kernel(r"""
extern "C" __global__ void queue(int* items, unsigned int* tail, int item)
{
    items[atomicAdd(tail, 1)] = item;
}
""")


# %% id=14b-mix cause="the first counts for most, element 0 is nan"
# - float mine[SIZE], mix[SIZE], most = -1e30f, sum = 0.0f;
# + float mine[SIZE], mix[SIZE], most = 0.0f, sum = 0.0f;
# - float fix = expf(before - most), e = expf(score - most);
# - sum = fix * sum + e;                                    // corrected, and then added to
# - for (int c = 0; c < SIZE; c++) mix[c] = fix * mix[c] + e * values[j * SIZE + c];
# + float scale = expf(before - most);
# + float e = expf(score - most);
# + sum = sum * scale + e;
# + for (int c = 0; c < SIZE; c++) mix[c] = mix[c] * scale + e * values[j * SIZE + c];


# %% id=14b-mix cause="the first counts for most, element 0 is nan"
# - float mine[SIZE], mix[SIZE], most = -1e30f, sum = 0.0f;
# + float mine[SIZE], mix[SIZE], most = -100.0f, sum = 0.0f;
# - float fix = expf(before - most), e = expf(score - most);
# - sum = fix * sum + e;                                    // corrected, and then added to
# - for (int c = 0; c < SIZE; c++) mix[c] = fix * mix[c] + e * values[j * SIZE + c];
# + float scale = expf(before - most);
# + float e = expf(score - most);
# + sum = sum * scale + e;
# + for (int c = 0; c < SIZE; c++) mix[c] = mix[c] * scale + e * values[j * SIZE + c];


# %% id=14b-mix cause="if a block goes over its words once"
# - for (int first = 0; first < last; first += TILE) {
# + for (int first = 0; first < last; first += TILE) {
# +     int here = min(TILE, last - first);
# +     for (int x = threadIdx.x; x < here * SIZE; x += TILE) keys[x] = k[first * SIZE + x];
# +     __syncthreads();
# +     for (int j = 0; j < here && first + j <= i; j++) {
# +         float score = 0.0f;
# +         for (int c = 0; c < SIZE; c++) score += mine[c] * keys[j * SIZE + c];
# +         most = fmaxf(most, score);
# +     }
# +     __syncthreads();
# + }
# + for (int first = 0; first < last; first += TILE) {


# %% id=14b-queue cause="`take` gives up although an item is open"
# - if (atomicAdd(queue.open, 0) == 0) return -1;
# + if (atomicAdd(queue.open, 0) == 0 || looks > 1000) return -1;


# %% id=14b-mix cause="each of which counts for a little more than those before it, neither `sum` nor `mix` is corrected"
# - float fix = expf(before - most), e = expf(score - most);
# - sum = fix * sum + e;                                    // corrected, and then added to
# - for (int c = 0; c < SIZE; c++) mix[c] = fix * mix[c] + e * values[j * SIZE + c];
# + if (most - before > 0.01f) {
# +     float shrink = expf(before - most);
# +     sum *= shrink;
# +     for (int c = 0; c < SIZE; c++) mix[c] *= shrink;
# + }
# + float e = expf(score - most);
# + sum += e;
# + for (int c = 0; c < SIZE; c++) mix[c] += e * values[j * SIZE + c];


# %% id=14b-queue cause="memory_order_release of the other block stands before that access"
# - QUEUE = r"""
# + QUEUE = r"""
# + #include <cuda/atomic>
# - __threadfence();                               // what the item needs comes first
# + cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_device);
# - unsigned int slot = atomicAdd(queue.head, 1), looks = 0;
# + unsigned int slot = atomicAdd(queue.head, 1);
# - if (++looks > 10000000) __trap();          // as every wait of a kernel, this one ends
# - __nanosleep(100);


# %% id=14b-queue cause="`take` gives up although an item is open"
# - if (++looks > 10000000) __trap();          // as every wait of a kernel, this one ends
# + if (++looks > 10000000) return -1;


# %% id=14b-mix cause="of which the first counts for most, element 0 is nan"
# - float mine[SIZE], mix[SIZE], most = -1e30f, sum = 0.0f;
# + float mine[SIZE], mix[SIZE], most = -1000.0f, sum = 0.0f;


# %% id=14b-queue cause="nothing tells it that no more will come (`open` is counted"
# - atomicSub(queue.open, 1);


# %% id=14b-queue cause="a star of 40 items and 3 blocks of 32 threads, each of which may put, a block waits forever"
# -     atomicAdd(queue.open, 1);
# +     if (threadIdx.x == 0) atomicAdd(queue.open, 1);


# %% id=14b-queue cause="item 2 was done 0 times, and 1 is right: thread 1 put it. Either that does nothing"
# -     atomicAdd(queue.open, 1);
# +     if (threadIdx.x != 0) return;
# +     atomicAdd(queue.open, 1);


# %% id=14b-queue cause="a tree of 1 item and 1 block of 32 threads, each of which may put, a block waits forever"
# -     atomicSub(queue.open, 1);
# +     __threadfence();
# +     atomicSub(queue.open, blockDim.x);


# %% id=14b-queue cause="with a tree of 15 items and 5 blocks of 32 threads, each of which may put, item 22 was done 1 time, and 0 is right"
# - queue.items[slot] = item;
# + queue.items[slot] = (unsigned char)item;


# %% id=14b-queue cause="was done 1 time, and 0 is right"
# - queue.items[slot] = item;
# + queue.items[slot] = (unsigned short)item;


# %% id=14b-mix of=starter cause="each thread has room for 400 scores, and there may be any number of words"
# - __shared__ float keys[TILE * SIZE], values[TILE * SIZE];
# + __shared__ float keys[TILE * SIZE], values[400 * SIZE];
# - float mine[SIZE], mix[SIZE], most = -1e30f, sum = 0.0f;
# + float mine[SIZE], mix[SIZE], most = -1e30f, sum = 0.0f, scores[400];
# - values[x] = v[first * SIZE + x];
# + values[first * SIZE + x] = v[first * SIZE + x];
#   most = fmaxf(most, score);
# - float e = expf(score - most);
# - sum += e;
# - for (int c = 0; c < SIZE; c++) mix[c] += e * values[j * SIZE + c];
# + scores[first + j] = score;
# - if (i >= words) return;
# + if (i >= words) return;
# + for (int j = 0; j <= i; j++) {
# +     float e = expf(scores[j] - most);
# +     sum += e;
# +     for (int c = 0; c < SIZE; c++) mix[c] += e * values[j * SIZE + c];
# + }
