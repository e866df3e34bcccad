"""Right answers to exercises of course/17_teach_it_something.py in other forms than the solution's."""


# %% id=17-rate
import numpy as np


def falling(make, rates, stream):
    rate = agt.zeros(1).sync_on(stream)
    launch = make(rate).graph_on(stream).launch()
    for number in rates:
        agt.memcpy(rate.borrow(), agt.pin(np.full(1, number, np.float32))).async_on(stream)
        launch.async_on(stream)
    stream.synchronize()


# %% id=17-live
# - def watched(step, loss, rounds, every, stream, draw):
# - places, waiting = agt.pinned((2, 1)), []
# - for number in range(rounds):
# + def watched(step, loss, rounds, every, stream, draw):  # a pinned number for each round
# +     waiting = []
# +     for _ in range(rounds):
# - out = places[number % 2]
# + out = agt.pinned(1)


# %% id=17-loss
# - if (i >= examples) return;
# - float* mine = logits + i * tokens;
# + __shared__ float rows[64 * 50];  // neighbours fetch numbers that are neighbours
# + int before = (i - (int)threadIdx.x) * tokens, all = min(64 * tokens, examples * tokens - before);
# + for (int k = threadIdx.x; k < all; k += 64) rows[k] = logits[before + k];
# + __syncthreads();
# + float* mine = rows + threadIdx.x * tokens;
# + if (i < examples) {
# - mine[j] = (expf(mine[j] - most) / sum - (j == right[i])) / examples;
# + mine[j] = (expf(mine[j] - most) / sum - (j == right[i])) / examples;
# + }
# + __syncthreads();
# + for (int k = threadIdx.x; k < all; k += 64) logits[before + k] = rows[k];
