"""Right answers to exercises of course/14b_more_rooms.py in other forms than the solution's."""


# %% id=14b-mix of=starter
# - most = fmaxf(most, score);
# + if (score > most) {
# +     float fix = expf(most - score);
# +     sum *= fix;
# +     for (int c = 0; c < SIZE; c++) mix[c] *= fix;
# +     most = score;
# + }


# %% id=14b-queue of=starter
# - if (slot >= queue.room) __trap();              // full: no answer beats a wrong one
# - __threadfence();                               // what the item needs comes first
# + atomicAdd(queue.open, 1);
# + __threadfence();
# - while (queue.items[slot] < 0) {
# - return -1;                                 // nothing there: over. Or is it?
# + int item = queue.items[slot];
# + for (; item < 0; item = queue.items[slot]) {
# +     __nanosleep(50);
# +     if (*(volatile unsigned int*)queue.open == 0) return -1;
# - return queue.items[slot];
# + return item;
#   {
# +     atomicAdd(queue.open, -1);


# %% id=14b-queue of=starter
#   {
# +     atomicAdd(queue.open, 1);
# - if (slot >= queue.room) __trap();              // full: no answer beats a wrong one
# - __threadfence();                               // what the item needs comes first
# + __threadfence();
# - return -1;                                 // nothing there: over. Or is it?
# + if (atomicAdd(queue.open, 0) == 0) return -1;
#   {
# +     __threadfence();
# +     atomicSub(queue.open, 1);


# %% id=14b-queue
# - if (slot >= queue.room) __trap();              // full: no answer beats a wrong one
# - __threadfence();                               // what the item needs comes first
# + __threadfence();
# - unsigned int slot = atomicAdd(queue.head, 1), looks = 0;
# + unsigned int slot = atomicAdd(queue.head, 1);
# + unsigned int looks = 0;
# - if (atomicAdd(queue.open, 0) == 0) return -1;
# - if (++looks > 10000000) __trap();          // as every wait of a kernel, this one ends
# + if (*(volatile unsigned int*)queue.open == 0) return -1;
# + if (++looks > 10000000) __trap();
#   {
# +     __threadfence();


# %% id=14b-mix of=starter
#   __syncthreads();
# + float before = most;
#   for (int j = 0; j < here && first + j <= i; j++) {
#   most = fmaxf(most, score);
# + }
# + float fix = expf(before - most);                            // once for a tile
# + sum *= fix;
# + for (int c = 0; c < SIZE; c++) mix[c] *= fix;
# + for (int j = 0; j < here && first + j <= i; j++) {
# +     float score = 0.0f;
# +     for (int c = 0; c < SIZE; c++) score += mine[c] * keys[j * SIZE + c];
