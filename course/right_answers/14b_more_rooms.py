"""Right answers to exercises of course/14b_more_rooms.py in other forms than the solution's."""


# %% id=14b-mix
# - float before = most;
# - most = fmaxf(most, score);
# - float fix = expf(before - most), e = expf(score - most);
# - sum = fix * sum + e;                                    // corrected, and then added to
# - for (int c = 0; c < SIZE; c++) mix[c] = fix * mix[c] + e * values[j * SIZE + c];
# + if (score > most) {
# +     float fix = expf(most - score);
# +     sum *= fix;
# +     for (int c = 0; c < SIZE; c++) mix[c] *= fix;
# +     most = score;
# + }
# + float e = expf(score - most);
# + sum += e;
# + for (int c = 0; c < SIZE; c++) mix[c] += e * values[j * SIZE + c];


# %% id=14b-queue
QUEUE = r"""
__device__ void put(Queue queue, int item)
{
    unsigned int slot = atomicAdd(queue.tail, 1);
    atomicAdd(queue.open, 1);
    __threadfence();
    queue.items[slot] = item;
}

__device__ int take(Queue queue)
{
    unsigned int slot = atomicAdd(queue.head, 1);
    int item = queue.items[slot];
    for (; item < 0; item = queue.items[slot]) {
        __nanosleep(50);
        if (*(volatile unsigned int*)queue.open == 0) return -1;
    }
    __threadfence();
    return item;
}

__device__ void done(Queue queue)
{
    atomicAdd(queue.open, -1);
}
"""


# %% id=14b-queue
QUEUE = r"""
__device__ void put(Queue queue, int item)
{
    atomicAdd(queue.open, 1);
    unsigned int slot = atomicAdd(queue.tail, 1);
    __threadfence();
    queue.items[slot] = item;
}

__device__ int take(Queue queue)
{
    unsigned int slot = atomicAdd(queue.head, 1);
    while (queue.items[slot] < 0) {
        if (atomicAdd(queue.open, 0) == 0) return -1;
    }
    __threadfence();
    return queue.items[slot];
}

__device__ void done(Queue queue)
{
    __threadfence();
    atomicSub(queue.open, 1);
}
"""


# %% id=14b-queue
QUEUE = r"""
__device__ void put(Queue queue, int item)
{
    atomicAdd(queue.open, 1);
    unsigned int slot = atomicAdd(queue.tail, 1);
    __threadfence();
    queue.items[slot] = item;
}

__device__ int take(Queue queue)
{
    unsigned int slot = atomicAdd(queue.head, 1);
    unsigned int looks = 0;
    while (queue.items[slot] < 0) {
        if (*(volatile unsigned int*)queue.open == 0) return -1;
        if (++looks > 10000000) __trap();
        __nanosleep(100);
    }
    __threadfence();
    return queue.items[slot];
}

__device__ void done(Queue queue)
{
    __threadfence();
    atomicSub(queue.open, 1);
}
"""


# %% id=14b-mix
# - for (int j = 0; j < here && first + j <= i; j++) {
# + float before = most;
# + for (int j = 0; j < here && first + j <= i; j++) {
# +     float score = 0.0f;
# +     for (int c = 0; c < SIZE; c++) score += mine[c] * keys[j * SIZE + c];
# +     most = fmaxf(most, score);
# + }
# + float fix = expf(before - most);                            // once for a tile
# + sum *= fix;
# + for (int c = 0; c < SIZE; c++) mix[c] *= fix;
# + for (int j = 0; j < here && first + j <= i; j++) {
# - float before = most;
# - most = fmaxf(most, score);
# - float fix = expf(before - most), e = expf(score - most);
# - sum = fix * sum + e;                                    // corrected, and then added to
# - for (int c = 0; c < SIZE; c++) mix[c] = fix * mix[c] + e * values[j * SIZE + c];
# + float e = expf(score - most);
# + sum += e;
# + for (int c = 0; c < SIZE; c++) mix[c] += e * values[j * SIZE + c];
