"""Right answers to exercises of course/12_async_inside_a_kernel.py in other forms than the solution's."""


# %% id=12-oneshot
# + # To PTX a volatile access is a relaxed one at system scope, so with fences it passes on a message.
#   {
# +     volatile unsigned int* flag = cell;
# - atomicExch(&cell[0], 1u);
# + flag[0] = 1;
# - if (atomicAdd(&cell[0], 0u) == 0) return PENDING;
# + volatile unsigned int* flag = cell;
# + if (flag[0] == 0) return PENDING;


# %% id=12-oneshot
ONESHOT = r"""
__device__ Poll poll(unsigned int* cell, unsigned int& x)
{
    if (atomicCAS(cell, 1u, 1u)) {  /* cell[1] is full */
        __threadfence();
        x = *(cell + 1);
        return READY;
    }
    return PENDING;
}

__device__ void send(unsigned int* cell, unsigned int x)
{
    *(cell + 1) = x; __threadfence(); atomicAdd(cell, 1u);
}
"""


# %% id=12-oneshot
#   ONESHOT = r"""
# + __device__ bool raised(unsigned int* flag)
# + {
# +     bool up = atomicAdd(flag, 0u) != 0;
# +     __threadfence();
# +     return up;
# + }
# +
# - if (atomicAdd(&cell[0], 0u) == 0) return PENDING;
# - __threadfence();
# + if (!raised(cell)) return PENDING;


# %% id=12-oneshot
# - ONESHOT = r"""
# + ONESHOT_IN_PARTS = r"""
# + __device__ bool raised(unsigned int* flag)
# + {
# +     bool up = atomicAdd(flag, 0u) != 0;
# +     __threadfence();
# +     return up;
# + }
# +
# - if (atomicAdd(&cell[0], 0u) == 0) return PENDING;
# - __threadfence();
# + if (!raised(cell)) return PENDING;
#   """
# +
# +
# + ONESHOT = ONESHOT_IN_PARTS.replace("raised(cell)", "raised(&cell[0])")


# %% id=12-oneshot
# - ONESHOT = r"""
# + ONESHOT = r"""
# + #include <cuda/atomic>
# - __threadfence();
# - atomicExch(&cell[0], 1u);
# + cuda::atomic_ref<unsigned int, cuda::thread_scope_device>(cell[0]).store(1u, cuda::memory_order_release);
# - if (atomicAdd(&cell[0], 0u) == 0) return PENDING;
# - __threadfence();
# + cuda::atomic_ref<unsigned int, cuda::thread_scope_device> flag(cell[0]);
# + if (flag.load(cuda::memory_order_acquire) == 0) return PENDING;


# %% id=12-channel
# - unsigned int place = atomicAdd(tail, 1u);
# + unsigned int place;
# + do {
# +     place = atomicAdd(tail, 0u);
# + } while (atomicCAS(tail, place, place + 1) != place);


# %% id=12-warp
# - message = __shfl_sync(0xffffffff, found, 0);
# + if (state == READY) message = __shfl_sync(0xffffffff, found, 0);


# %% id=12-together
# - all = __all_sync(0xffffffff, state == READY);
# + all = __ballot_sync(0xffffffff, state == READY) == 0xffffffffu;


# %% id=12-together
# - TOGETHER = r"""
# + # The vote is the condition of the loop.
# + TOGETHER = r"""
# - bool all = false;
# - while (!all) {
# + while (__any_sync(0xffffffff, state == PENDING)) {
# - all = __all_sync(0xffffffff, state == READY);


# %% id=12-together
# - Poll state = PENDING;
# - bool all = false;
# - while (!all) {
# - if (state == PENDING) state = mine.poll();
# - all = __all_sync(0xffffffff, state == READY);
# - rounds++;
# + for (bool open = true; __any_sync(0xffffffff, open); rounds++) {
# +     if (open) open = mine.poll() == PENDING;


# %% id=12-ring
# - if (sent - atomicAdd(head, 0u) == 2) return PENDING;
# + unsigned int seen = atomicAdd(head, 0u);
# - values[sent % 2] = x;
# + if (sent - seen > 1) return PENDING;
# + values[sent & 1] = x;
# - atomicExch(tail, sent + 1);
# + atomicAdd(tail, 1u);


# %% id=12-ring
# - RING = r"""
# + # Each counter has one writer, so `volatile` will do.
# + RING = r"""
# - unsigned int* head;                        // how many were received
# - unsigned int* tail;                        // how many were sent
# - unsigned int* values;                      // two places
# + volatile unsigned int* head;
# + volatile unsigned int* tail;
# + unsigned int* values;
# - unsigned int sent = atomicAdd(tail, 0u);
# - if (sent - atomicAdd(head, 0u) == 2) return PENDING;
# + if (*tail - *head >= 2) return PENDING;
# - values[sent % 2] = x;
# + values[*tail % 2] = x;
# - atomicExch(tail, sent + 1);
# + *tail = *tail + 1;
# - unsigned int received = atomicAdd(head, 0u);
# - if (atomicAdd(tail, 0u) == received) return PENDING;
# + if (*tail == *head) return PENDING;
# - x = values[received % 2];
# + x = values[*head % 2];
# - atomicExch(head, received + 1);
# + *head = *head + 1;


# %% id=12-door
# - unsigned int before = Word(*door).exchange(1u, cuda::memory_order_acquire);
# + unsigned int before = 0;
# + Word(*door).compare_exchange_strong(before, 1u, cuda::memory_order_acquire);


# %% id=12-door
# By fences, as before.
DOOR = r"""
__device__ Poll enter(unsigned int* door)
{
    if (atomicCAS(door, 0u, 1u) != 0) return PENDING;
    __threadfence();
    return READY;
}

__device__ void leave(unsigned int* door)
{
    __threadfence();
    atomicExch(door, 0u);
}
"""


# %% id=12-ring
RING = r"""
#include <cuda/atomic>
using Word = cuda::atomic_ref<unsigned int, cuda::thread_scope_device>;

struct Ring {
    unsigned int* head;
    unsigned int* tail;
    unsigned int* values;
    __device__ Poll poll_send(unsigned int x)
    {
        unsigned int sent = *tail;
        if (sent - Word(*head).load(cuda::memory_order_acquire) == 2) return PENDING;
        values[sent % 2] = x;
        Word(*tail).store(sent + 1, cuda::memory_order_release);
        return READY;
    }
    __device__ Poll poll(unsigned int& x)
    {
        unsigned int received = *head;
        if (Word(*tail).load(cuda::memory_order_acquire) == received) return PENDING;
        x = values[received % 2];
        Word(*head).store(received + 1, cuda::memory_order_release);
        return READY;
    }
};
"""


# %% id=12-ring of=above
# + # By PTX a side may read its own counter plainly. C++ allows nothing but an `atomic_ref` beside an `atomic_ref`.
# - using Word = cuda::atomic_ref<unsigned int, cuda::thread_scope_device>;
# + using Count = cuda::atomic_ref<unsigned int, cuda::thread_scope_device>;
# - unsigned int sent = *tail;
# - if (sent - Word(*head).load(cuda::memory_order_acquire) == 2) return PENDING;
# + unsigned int sent = Count(*tail).load(cuda::memory_order_relaxed);
# + if (sent - Count(*head).load(cuda::memory_order_acquire) == 2) return PENDING;
# - Word(*tail).store(sent + 1, cuda::memory_order_release);
# + Count(*tail).store(sent + 1, cuda::memory_order_release);
# - unsigned int received = *head;
# - if (Word(*tail).load(cuda::memory_order_acquire) == received) return PENDING;
# + unsigned int received = Count(*head).load(cuda::memory_order_relaxed);
# + if (Count(*tail).load(cuda::memory_order_acquire) == received) return PENDING;
# - Word(*head).store(received + 1, cuda::memory_order_release);
# + Count(*head).store(received + 1, cuda::memory_order_release);


# %% id=12-door
# - unsigned int before = Word(*door).exchange(1u, cuda::memory_order_acquire);
# - return before == 0 ? READY : PENDING;
# + unsigned int open = 0;
# + while (!Word(*door).compare_exchange_weak(open, 1u, cuda::memory_order_acquire, cuda::memory_order_relaxed)) {
# +     if (open == 1) return PENDING;
# + }
# + return READY;


# %% id=12-door
# - unsigned int before = Word(*door).exchange(1u, cuda::memory_order_acquire);
# - return before == 0 ? READY : PENDING;
# + if (Word(*door).load(cuda::memory_order_relaxed) != 0) return PENDING;
# + return Word(*door).fetch_or(1u, cuda::memory_order_acquire) ? PENDING : READY;


# %% id=12-pot
# - int cups, pour, step;
# + int cups, pour, step;                      // step k > 0: cup k is poured
# - pouring.left = pour;
# + pouring = {pour};
# - }
# - while (cups > 0) {
# - if (pouring.poll() == PENDING) return PENDING;
# - cups--;
# - pouring.left = pour;
# - }
# +     }
# +     for (; step <= cups; step++, pouring = {pour}) {
# +         if (pouring.poll() == PENDING) return PENDING;
# +     }


# %% id=12-pot
POT = r"""
struct Pot {
    Timer boil;
    int cups, pour, step;
    Timer pouring;
    __device__ Poll next() { cups--; pouring.left = pour; step = 1; return cups < 0 ? READY : pouring.poll(); }
    __device__ Poll poll()
    {
        Poll state = PENDING;
        switch (step) {
        case 0: state = boil.poll(); break;
        case 1: state = pouring.poll(); break;
        }
        while (state == READY && cups >= 0) state = next();
        return state;
    }
};
"""


# %% id=12-pot
# - while (cups > 0) {
# - if (pouring.poll() == PENDING) return PENDING;
# - cups--;
# - pouring.left = pour;
# - }
# + while (cups && pouring.poll() == READY) {
# +     pouring = Timer{pour};
# +     --cups;
# + }
# - return READY;
# + return cups ? PENDING : READY;


# %% id=12-executor
# - unsigned int open = (1u << n) - 1;
# - int rounds = 0;
# - while (open != 0) {
# + bool done[32] = {};
# + int rounds = 0, left = n;
# + for (; left > 0; rounds++) {
# - if (open >> k & 1) {
# - Poll state = futures[k].poll();
# - if (state == READY) open &= ~(1u << k);
# - }
# + if (done[k]) continue;
# + done[k] = futures[k].poll() == READY;
# + left -= done[k];
# - rounds++;


# %% id=12-executor
# - unsigned int open = (1u << n) - 1;
# + int open = (1 << n) - 1;


# %% id=12-executor
RUN_ALL = r"""
template <typename Future>
__device__ int run_all(Future* futures, int n)
{
    int which[32], rounds = 0;
    for (int k = 0; k < n; k++) which[k] = k;
    while (n) {
        int still = 0;
        for (int i = 0; i < n; i++) {
            int k = which[i];
            if (futures[k].poll() == PENDING) which[still++] = k;
        }
        n = still;
        rounds++;
    }
    return rounds;
}
"""


# %% id=12-timeout
# Guests without tables.
SERVE = r"""
__device__ int serve(int n, const int* boil, const int* steep, const int* limit, int* teas)
{
    Select<Tea, Timer> guests[16];
    for (int k = 0; k < 2 * n; k++) guests[k] = {{{boil[k]}, {steep[k]}, 0}, {limit[k]}, -1};
    int rounds = run_all(guests, 2 * n), count = 0;
    for (int k = 0; k < 2 * n; k++) count += 1 - guests[k].winner;
    *teas = count;
    return rounds;
}
"""


# %% id=12-timeout
SERVE = r"""
template <typename A, typename B>
__device__ Select<A, B> either(A a, B b) { return {a, b, -1}; }
template <typename A, typename B>
__device__ Join<A, B> both(A a, B b) { return {a, b, false, false}; }

__device__ int serve(int n, const int* boil, const int* steep, const int* limit, int* teas)
{
    auto guest = [&](int k) { return either(Tea{{boil[k]}, {steep[k]}, 0}, Timer{limit[k]}); };
    Join<Select<Tea, Timer>, Select<Tea, Timer>> tables[8];
    for (int k = 0; k < n; k++) tables[k] = both(guest(2 * k), guest(2 * k + 1));
    int rounds = run_all(tables, n);
    *teas = 0;
    for (auto& table : tables) {
        if (&table - tables < n) *teas += !table.a.winner + !table.b.winner;
    }
    return rounds;
}
"""


# %% id=12-timeout
# - Table tables[8];
# + Table tables[8] = {};
# - *teas += (tables[k].a.winner == 0) + (tables[k].b.winner == 0);
# + *teas += tables[k].a.a.step / 2 + tables[k].b.a.step / 2;


# %% id=12-challenge
# - int best = -1;
# - for (int k = 0; k < n; k++) {
# - if (!begun[k] && (best < 0 || steep[k] > steep[best])) best = k;
# + int last = 0, k = -1;
# + for (int i = n - 1; i >= 0; i--) {
# +     if (begun[i] || steep[i] < last) continue;
# +     last = steep[i];
# +     k = i;
# - return best;
# + return k;


# %% id=12-together
# Each lane's rounds, and then the largest of them.
TOGETHER = r"""
template <typename Future>
__device__ int together(Future& mine)
{
    int rounds = 1;
    while (mine.poll() == PENDING) rounds++;
    __syncwarp();
    for (int step = 16; step > 0; step /= 2) rounds = max(rounds, __shfl_xor_sync(0xffffffffu, rounds, step));
    return rounds;
}
"""


# %% id=12-ring
# - unsigned int sent = atomicAdd(tail, 0u);
# - if (sent - atomicAdd(head, 0u) == 2) return PENDING;
# - __threadfence();
# - values[sent % 2] = x;
# + unsigned int sent = atomicAdd(tail, 0u), seen = atomicCAS(head, 0u, 0u);
# + if (int(sent - seen) >= 2) return PENDING;
# + __threadfence();
# + *(values + (sent & 1)) = x;


# %% id=12-oneshot
# - if (atomicAdd(&cell[0], 0u) == 0) return PENDING;
# - __threadfence();
# - x = cell[1];
# - return READY;
# + Poll state = atomicOr(cell, 0u) ? READY : PENDING;
# + __threadfence();
# + if (state == READY) x = cell[1];
# + return state;
