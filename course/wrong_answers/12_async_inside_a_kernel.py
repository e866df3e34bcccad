"""Plausible wrong answers to the exercises of course/12_async_inside_a_kernel.py; see
tools/build_notebooks.py."""


# %% id=12-pot cause="the pot is pending for 0 polls, and 11 is right"
POT = r"""
struct Pot {
    Timer boil;
    int cups, pour, step;
    Timer pouring;
    __device__ Poll poll()
    {
        while (boil.poll() == PENDING) { }
        for (int k = 0; k < cups; k++) {
            pouring.left = pour;
            while (pouring.poll() == PENDING) { }
        }
        return READY;
    }
};
"""

# %% id=12-pot cause="still pending after 200 polls"
POT = r"""
struct Pot {
    Timer boil;
    int cups, pour, step;
    Timer pouring;
    __device__ Poll poll()
    {
        if (boil.poll() == PENDING) return PENDING;
        for (int k = 0; k < cups; k++) {
            pouring.left = pour;
            if (pouring.poll() == PENDING) return PENDING;
        }
        return READY;
    }
};
"""

# %% id=12-pot cause="and 11 is right"
POT = r"""
struct Pot {
    Timer boil;
    int cups, pour, step;
    Timer pouring;
    __device__ Poll poll()
    {
        if (step == 0) {
            if (boil.poll() == PENDING) return PENDING;
            pouring.left = pour;
            step = 1;
        }
        while (cups > 0) {
            if (pouring.poll() == PENDING) return PENDING;
            cups--;
        }
        return READY;
    }
};
"""

# %% id=12-pot cause="should be the text of device code"
POT = agt.Kernel(r"""
extern "C" __global__ void pot(int* x) { x[0] = 1; }
""")

# %% id=12-executor cause="a future was polled after it had said READY"
RUN_ALL = r"""
template <typename Future>
__device__ int run_all(Future* futures, int n)
{
    int rounds = 0;
    bool all = false;
    while (!all) {
        all = true;
        for (int k = 0; k < n; k++) {
            Poll state = futures[k].poll();
            if (state == PENDING) all = false;
        }
        rounds++;
    }
    return rounds;
}
"""

# %% id=12-executor cause="still pending when `run_all` came back"
RUN_ALL = r"""
template <typename Future>
__device__ int run_all(Future* futures, int n)
{
    int rounds = 0;
    bool any = false;
    while (!any) {
        for (int k = 0; k < n; k++) {
            if (futures[k].poll() == READY) any = true;
        }
        rounds++;
    }
    return rounds;
}
"""

# %% id=12-executor cause="in each round every open future is polled once"
RUN_ALL = r"""
template <typename Future>
__device__ int run_all(Future* futures, int n)
{
    int rounds = 0;
    for (int k = 0; k < n; k++) {
        while (true) {
            rounds++;
            if (futures[k].poll() == READY) break;
        }
    }
    return rounds;
}
"""

# %% id=12-join cause="both get on in every poll"
JOIN = r"""
template <typename A, typename B>
struct Join {
    A a;
    B b;
    bool a_done, b_done;
    __device__ Poll poll()
    {
        if (!a_done) a_done = a.poll() == READY;
        if (a_done && !b_done) b_done = b.poll() == READY;
        return a_done && b_done ? READY : PENDING;
    }
};
"""

# %% id=12-join cause="a future was polled after it had said READY"
JOIN = r"""
template <typename A, typename B>
struct Join {
    A a;
    B b;
    bool a_done, b_done;
    __device__ Poll poll()
    {
        a_done = a.poll() == READY;
        b_done = b.poll() == READY;
        return a_done && b_done ? READY : PENDING;
    }
};
"""

# %% id=12-join cause="the join is READY, and one of the two is not"
JOIN = r"""
template <typename A, typename B>
struct Join {
    A a;
    B b;
    bool a_done, b_done;
    __device__ Poll poll()
    {
        if (!a_done) a_done = a.poll() == READY;
        if (!b_done) b_done = b.poll() == READY;
        return a_done || b_done ? READY : PENDING;
    }
};
"""

# %% id=12-select cause="the first that is ready ends it"
SELECT = r"""
template <typename A, typename B>
struct Select {
    A a;
    B b;
    int winner;
    __device__ Poll poll()
    {
        if (a.poll() == READY && b.poll() == READY) {
            winner = 0;
            return READY;
        }
        return PENDING;
    }
};
"""

# %% id=12-select cause="`winner` is 1, and 0 is right"
SELECT = r"""
template <typename A, typename B>
struct Select {
    A a;
    B b;
    int winner;
    __device__ Poll poll()
    {
        if (b.poll() == READY) {
            winner = 1;
            return READY;
        }
        if (a.poll() == READY) {
            winner = 0;
            return READY;
        }
        return PENDING;
    }
};
"""

# %% id=12-select cause="`winner` is -1, and 0 is right"
SELECT = r"""
template <typename A, typename B>
struct Select {
    A a;
    B b;
    int winner;
    __device__ Poll poll()
    {
        return a.poll() == READY || b.poll() == READY ? READY : PENDING;
    }
};
"""

# %% id=12-warp cause="which it names, does not"
WARP_TAKE = r"""
__device__ Poll warp_take(unsigned int* mail, unsigned int& message)
{
    int state = PENDING;
    if (threadIdx.x % 32 == 0) {
        state = take(mail, message);
        state = __shfl_sync(0xffffffff, state, 0);
        message = __shfl_sync(0xffffffff, message, 0);
    }
    return (Poll)state;
}
"""

# %% id=12-warp cause="got the message 0, and 40 was sent"
WARP_TAKE = r"""
__device__ Poll warp_take(unsigned int* mail, unsigned int& message)
{
    int state = PENDING;
    if (threadIdx.x % 32 == 0) state = take(mail, message);
    state = __shfl_sync(0xffffffff, state, 0);
    return (Poll)state;
}
"""

# %% id=12-warp cause="which is not in your text). One warp did well: which lane of warp 1 looks?"
WARP_TAKE = r"""
__device__ Poll warp_take(unsigned int* mail, unsigned int& message)
{
    unsigned int found = 0;
    int state = PENDING;
    if (threadIdx.x == 0) state = take(mail, found);
    state = __shfl_sync(0xffffffff, state, 0);
    message = __shfl_sync(0xffffffff, found, 0);
    return (Poll)state;
}
"""

# %% id=12-oneshot cause="the other block has no __threadfence() between that access and a flag"
ONESHOT = r"""
__device__ void send(unsigned int* cell, unsigned int x)
{
    cell[1] = x;
    atomicExch(&cell[0], 1u);
}

__device__ Poll poll(unsigned int* cell, unsigned int& x)
{
    if (atomicAdd(&cell[0], 0u) == 0) return PENDING;
    x = cell[1];
    return READY;
}
"""

# %% id=12-oneshot cause="nothing orders two blocks"
ONESHOT = r"""
__device__ void send(unsigned int* cell, unsigned int x)
{
    atomicExch(&cell[0], 1u);
    __threadfence();
    cell[1] = x;
}

__device__ Poll poll(unsigned int* cell, unsigned int& x)
{
    if (atomicAdd(&cell[0], 0u) == 0) return PENDING;
    __threadfence();
    x = cell[1];
    return READY;
}
"""

# %% id=12-oneshot cause="no __threadfence() between its look at the flag and this access"
ONESHOT = r"""
__device__ void send(unsigned int* cell, unsigned int x)
{
    cell[1] = x;
    __threadfence();
    atomicExch(&cell[0], 1u);
}

__device__ Poll poll(unsigned int* cell, unsigned int& x)
{
    if (atomicAdd(&cell[0], 0u) == 0) return PENDING;
    x = cell[1];                                // no __threadfence()
    return READY;
}
"""

# %% id=12-oneshot cause="nothing orders two blocks"
ONESHOT = r"""
__device__ void send(unsigned int* cell, unsigned int x)
{
    cell[1] = x;
    __threadfence();
    cell[0] = 1;
}

__device__ Poll poll(unsigned int* cell, unsigned int& x)
{
    if (atomicAdd(&cell[0], 0u) == 0) return PENDING;
    __threadfence();
    x = cell[1];
    return READY;
}
"""

# %% id=12-oneshot cause="waits for ever in this loop"
ONESHOT = r"""
__device__ void send(unsigned int* cell, unsigned int x)
{
    cell[1] = x;
    __threadfence();
    atomicExch(&cell[0], 1u);
}

__device__ Poll poll(unsigned int* cell, unsigned int& x)
{
    while (atomicAdd(&cell[0], 0u) == 0) { }
    __threadfence();
    x = cell[1];
    return READY;
}
"""

# %% id=12-oneshot cause="`poll` says READY"
ONESHOT = r"""
__device__ void send(unsigned int* cell, unsigned int x)
{
    cell[1] = x;
    __threadfence();
    atomicExch(&cell[0], 1u);
}

__device__ Poll poll(unsigned int* cell, unsigned int& x)
{
    if (atomicAdd(&cell[0], 1u) == 1) return PENDING;
    __threadfence();
    x = cell[1];
    return READY;
}
"""

# %% id=12-oneshot cause="0 came out, and 200 was sent"
ONESHOT = r"""
__device__ void send(unsigned int* cell, unsigned int x)
{
    cell[1] = x;
    __threadfence();
    atomicExch(&cell[0], 1u);
}

__device__ Poll poll(unsigned int* cell, unsigned int x)
{
    if (atomicAdd(&cell[0], 0u) == 0) return PENDING;
    __threadfence();
    x = cell[1];
    return READY;
}
"""

# %% id=12-channel cause="nothing orders two blocks"
SEND = r"""
__device__ void send(unsigned int* tail, unsigned int* full, unsigned int* values, unsigned int x)
{
    unsigned int place = atomicAdd(tail, 1u);
    atomicExch(&full[place], 1u);
    values[place] = x;
}
"""

# %% id=12-channel cause="which of them stays is left to chance"
SEND = r"""
__device__ void send(unsigned int* tail, unsigned int* full, unsigned int* values, unsigned int x)
{
    unsigned int place = atomicAdd(tail, 0u);
    atomicAdd(tail, 1u);
    values[place] = x;
    __threadfence();
    atomicExch(&full[0], 1u);
}
"""

# %% id=12-channel cause="these messages came out"
SEND = r"""
__device__ void send(unsigned int* tail, unsigned int* full, unsigned int* values, unsigned int x)
{
    unsigned int place = atomicAdd(tail, 1u);
    values[place] = place;
    __threadfence();
    atomicExch(&full[place], 1u);
}
"""

# %% id=12-channel cause="(line 5 of your text)"
SEND = r"""
__device__ void send(unsigned int* tail, unsigned int* full, unsigned int* values, unsigned int x)
{
    unsigned int place = atomicAdd(tail, 1u) + 1;
    values[place] = x;
    __threadfence();
    atomicExch(&full[place], 1u);
}
"""

# %% id=12-challenge cause="the last cup is ready after 106 ticks"
PICK = r"""
__device__ int pick(int n, const int* boil, const int* steep, const bool* begun)
{
    int best = -1;
    for (int k = 0; k < n; k++) {
        if (!begun[k] && (best < 0 || boil[k] < boil[best])) best = k;
    }
    return best;
}
"""

# %% id=12-challenge cause="that is no cup that still waits for the kettle"
PICK = r"""
__device__ int pick(int n, const int* boil, const int* steep, const bool* begun)
{
    int best = 0;
    for (int k = 0; k < n; k++) {
        if (steep[k] > steep[best]) best = k;
    }
    return best;
}
"""

# %% id=12-challenge cause="the last cup is ready after 117 ticks"
PICK = r"""
__device__ int pick(int n, const int* boil, const int* steep, const bool* begun)
{
    int best = -1;
    for (int k = 0; k < n; k++) {
        if (!begun[k] && (best < 0 || steep[k] < steep[best])) best = k;
    }
    return best;
}
"""

# %% id=12-channel cause="First the data, then __threadfence()"
SEND = r"""
__device__ void send(unsigned int* tail, unsigned int* full, unsigned int* values, unsigned int x)
{
    unsigned int place = atomicAdd(tail, 1u);
    values[place] = x;
    atomicExch(&full[place], 1u);
    __threadfence();
}
"""

# %% id=12-channel cause="nothing orders two blocks"
SEND = r"""
__device__ void send(unsigned int* tail, unsigned int* full, unsigned int* values, unsigned int x)
{
    unsigned int place = atomicAdd(tail, 1u);
    atomicExch(&full[place], 1u);
    __threadfence();
    values[place] = x;
}
"""

# %% id=12-channel cause="an atomic for one block does not reach another"
SEND = r"""
__device__ void send(unsigned int* tail, unsigned int* full, unsigned int* values, unsigned int x)
{
    unsigned int place = atomicAdd(tail, 1u);
    values[place] = x;
    __threadfence();
    atomicExch_block(&full[place], 1u);
}
"""


# %% id=12-warp cause="it says READY, and nothing was there"
WARP_TAKE = r"""
__device__ Poll warp_take(unsigned int* mail, unsigned int& message)
{
    unsigned int found = 0;
    int state = PENDING;
    if (threadIdx.x % 32 == 0) state = take(mail, found);
    state = __shfl_sync(0xffffffff, state, 0);
    message = __shfl_sync(0xffffffff, found, 0);
    return READY;
}
"""


# %% id=12-warp cause="looks once, kernel"
WARP_TAKE = r"""
__device__ Poll warp_take(unsigned int* mail, unsigned int& message)
{
    unsigned int found = 0;
    int state = PENDING;
    if (threadIdx.x % 32 == 0) while ((state = take(mail, found)) == PENDING) { }
    state = __shfl_sync(0xffffffff, state, 0);
    message = __shfl_sync(0xffffffff, found, 0);
    return (Poll)state;
}
"""


# %% id=12-warp cause="name all 32 by"
WARP_TAKE = r"""
__device__ Poll warp_take(unsigned int* mail, unsigned int& message)
{
    unsigned int found = 0;
    int state = PENDING;
    if (threadIdx.x % 32 == 0) state = take(mail, found);
    state = __shfl_sync(__activemask(), state, 0);
    message = __shfl_sync(__activemask(), found, 0);
    return (Poll)state;
}
"""


# %% id=12-oneshot cause="nothing orders two blocks"
ONESHOT = r"""
__device__ void send(unsigned int* cell, unsigned int x)
{
    cell[1] = x;
    atomicExch(&cell[0], 1u);
    __threadfence();
}

__device__ Poll poll(unsigned int* cell, unsigned int& x)
{
    if (atomicAdd(&cell[0], 0u) == 0) return PENDING;
    __threadfence();
    x = cell[1];
    return READY;
}
"""


# %% id=12-oneshot cause="waits for ever in this loop"
ONESHOT = r"""
__device__ void send(unsigned int* cell, unsigned int x)
{
    __threadfence();
    atomicExch(&cell[0], x);
}
__device__ Poll poll(unsigned int* cell, unsigned int& x)
{
    x = atomicAdd(&cell[0], 0u);
    __threadfence();
    return x == 0 ? PENDING : READY;
}
"""


# %% id=12-executor cause="a future was polled after it had said READY"
RUN_ALL = r"""
template <typename Future>
__device__ int run_all(Future* futures, int n)
{
    unsigned int open = n == 32 ? 0xffffffffu : (1u << n) - 1;
    int rounds = 0;
    while (open != 0) {
        for (int k = 0; k < n; k++) {
            if (open >> k & 1) {
                Poll state = futures[k].poll();
                if (state == READY) { }
            }
        }
        rounds++;
    }
    return rounds;
}
"""

# %% id=12-challenge cause="get below 80"
PICK = r"""
__device__ int pick(int n, const int* boil, const int* steep, const bool* begun)
{
    const int order[12] = {11, 8, 5, 3, 10, 7, 1, 6, 4, 0, 9, 2};
    for (int k = 0; k < n; k++) {
        if (n == 12 && !begun[order[k]]) return order[k];
    }
    for (int k = 0; k < n; k++) {
        if (!begun[k]) return k;
    }
    return -1;
}
"""


# %% id=12-warp cause="Its message is 0"
WARP_TAKE = r"""
__device__ Poll warp_take(unsigned int* mail, unsigned int& message)
{
    unsigned int found = 0;
    int state = PENDING;
    if (threadIdx.x % 32 == 0) state = take(mail, found);
    state = __any_sync(0xffffffff, found != 0) ? READY : PENDING;
    message = __shfl_sync(0xffffffff, found, 0);
    return (Poll)state;
}
"""


# %% id=12-channel cause="in the same instruction, with another value"
SEND = r"""
__device__ void send(unsigned int* tail, unsigned int* full, unsigned int* values, unsigned int x)
{
    volatile unsigned int* end = tail;
    unsigned int place = *end;
    *end = place + 1;
    values[place] = x;
    __threadfence();
    atomicExch(&full[place], 1u);
}
"""


# %% id=12-oneshot cause="an atomic for one block does not reach another"
ONESHOT = r"""
__device__ void send(unsigned int* cell, unsigned int x)
{
    cell[1] = x;
    __threadfence();
    atomicExch_block(&cell[0], 1u);
}

__device__ Poll poll(unsigned int* cell, unsigned int& x)
{
    if (atomicAdd_block(&cell[0], 0u) == 0) return PENDING;
    __threadfence();
    x = cell[1];
    return READY;
}
"""


# %% id=12-executor cause="with 0 futures, it took 1 round"
RUN_ALL = r"""
template <typename Future>
__device__ int run_all(Future* futures, int n)
{
    int rounds = 0;
    unsigned int open = n == 32 ? 0xffffffffu : (1u << n) - 1;
    do {
        for (int k = 0; k < n; k++)
            if (open >> k & 1 && futures[k].poll() == READY) open &= ~(1u << k);
        rounds++;
    } while (open);
    return rounds;
}
"""


# %% id=12-warp cause="32 lanes look into the mailbox"
WARP_TAKE = r"""
__device__ Poll warp_take(unsigned int* mail, unsigned int& message)
{
    int state = PENDING; unsigned int m = 0;
    state = take(mail, m);
    state = __shfl_sync(0xffffffffu, state, 0);
    m = __shfl_sync(0xffffffffu, m, 0);
    if (state == READY) message = m;
    return (Poll)state;
}
"""


# %% id=12-warp cause="a warp waits in `warp_take` for another one"
WARP_TAKE = r"""
__device__ Poll warp_take(unsigned int* mail, unsigned int& message)
{
    int state = PENDING; unsigned int m = 0;
    if (threadIdx.x % 32 == 0) { Poll p = take(mail, m); state = p; }
    __syncthreads();
    state = __shfl_sync(0xffffffffu, state, 0);
    m = __shfl_sync(0xffffffffu, m, 0);
    if (state == READY) message = m;
    return (Poll)state;
}
"""


# %% id=12-oneshot cause="have it take nothing away"
ONESHOT = r"""
__device__ void send(unsigned int* cell, unsigned int x)
{
    cell[1] = x;
    __threadfence();
    atomicExch(&cell[0], 1u);
}

__device__ Poll poll(unsigned int* cell, unsigned int& x)
{
    if (atomicExch(&cell[0], 0u) == 0) return PENDING;
    __threadfence();
    x = cell[1];
    return READY;
}
"""


# %% id=12-channel cause="of which each of two threads sends"
SEND = r"""
__device__ void send(unsigned int* tail, unsigned int* full, unsigned int* values, unsigned int x)
{
    if (threadIdx.x) return;
    unsigned int place = atomicAdd(tail, 1u);
    values[place] = x;
    __threadfence();
    atomicExch(&full[place], 1u);
}
"""
