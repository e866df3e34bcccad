"""Plausible wrong answers to the exercises of course/12_async_inside_a_kernel.py; see
tools/build_notebooks.py."""


# %% id=12-pot cause="the pot is pending for 0 polls, and 11 is right"
# - if (step == 0) {
# - if (boil.poll() == PENDING) return PENDING;
# + while (boil.poll() == PENDING) { }
# + for (int k = 0; k < cups; k++) {
# - step = 1;
# - }
# - while (cups > 0) {
# - if (pouring.poll() == PENDING) return PENDING;
# - cups--;
# - pouring.left = pour;
# + while (pouring.poll() == PENDING) { }


# %% id=12-pot cause="still pending after 400 polls"
# - if (step == 0) {
# - if (boil.poll() == PENDING) return PENDING;
# + if (boil.poll() == PENDING) return PENDING;
# + for (int k = 0; k < cups; k++) {
# - step = 1;
# - }
# - while (cups > 0) {
# - cups--;
# - pouring.left = pour;


# %% id=12-pot cause="and 11 is right"
#   cups--;
# - pouring.left = pour;


# %% id=12-pot cause="should be the text of device code"
POT = agt.Kernel(r"""
extern "C" __global__ void pot(int* x) { x[0] = 1; }
""")


# %% id=12-executor cause="a future was polled after it had said READY"
# - unsigned int open = (1u << n) - 1;
# - while (open != 0) {
# + bool all = false;
# + while (!all) {
# +     all = true;
# - if (open >> k & 1) {
# - Poll state = futures[k].poll();
# - if (state == READY) open &= ~(1u << k);
# - }
# + Poll state = futures[k].poll();
# + if (state == PENDING) all = false;


# %% id=12-executor cause="still pending when `run_all` came back"
# - unsigned int open = (1u << n) - 1;
# - while (open != 0) {
# + bool any = false;
# + while (!any) {
# - if (open >> k & 1) {
# - Poll state = futures[k].poll();
# - if (state == READY) open &= ~(1u << k);
# - }
# + if (futures[k].poll() == READY) any = true;


# %% id=12-executor of=starter cause="in each round every open future is polled once"
# - Poll state = PENDING;
# - while (state == PENDING) {
# - state = futures[k].poll();
# + while (true) {
#   rounds++;
# + if (futures[k].poll() == READY) break;


# %% id=12-join cause="both get on in every poll"
# - bool a_done, b_done;                       // both false at first
# + bool a_done, b_done;
# - if (!b_done) b_done = b.poll() == READY;
# + if (a_done && !b_done) b_done = b.poll() == READY;


# %% id=12-join cause="a future was polled after it had said READY"
# - bool a_done, b_done;                       // both false at first
# + bool a_done, b_done;
# - if (!a_done) a_done = a.poll() == READY;
# - if (!b_done) b_done = b.poll() == READY;
# + a_done = a.poll() == READY;
# + b_done = b.poll() == READY;


# %% id=12-join cause="the join is READY, and one of the two is not"
# - bool a_done, b_done;                       // both false at first
# + bool a_done, b_done;
# - return a_done && b_done ? READY : PENDING;
# + return a_done || b_done ? READY : PENDING;


# %% id=12-warp of=starter cause="which it names, does not"
# - return take(mail, message);                // every lane for itself
# + int state = PENDING;
# + if (threadIdx.x % 32 == 0) {
# +     state = take(mail, message);
# +     state = __shfl_sync(0xffffffff, state, 0);
# +     message = __shfl_sync(0xffffffff, message, 0);
# + }
# + return (Poll)state;


# %% id=12-warp cause="got the message 0, and 2654435769 was sent"
# - unsigned int found = 0;
# - if (threadIdx.x % 32 == 0) state = take(mail, found);
# + if (threadIdx.x % 32 == 0) state = take(mail, message);
# - message = __shfl_sync(0xffffffff, found, 0);


# %% id=12-warp cause="which is not in your text). One warp did well: which lane of warp 1 looks?"
# - if (threadIdx.x % 32 == 0) state = take(mail, found);
# + if (threadIdx.x == 0) state = take(mail, found);


# %% id=12-oneshot cause="the other block has no __threadfence() between that access and a flag"
# - __threadfence();
# - __threadfence();


# %% id=12-oneshot cause="nothing orders two blocks"
#   {
# +     atomicExch(&cell[0], 1u);
# +     __threadfence();
# - __threadfence();
# - atomicExch(&cell[0], 1u);


# %% id=12-oneshot cause="no __threadfence() between its look at the flag and this access"
#   if (atomicAdd(&cell[0], 0u) == 0) return PENDING;
# - __threadfence();
# - x = cell[1];
# + x = cell[1];                                // no __threadfence()


# %% id=12-oneshot cause="nothing orders two blocks"
# - atomicExch(&cell[0], 1u);
# + cell[0] = 1;


# %% id=12-oneshot cause="waits forever in this loop"
# - if (atomicAdd(&cell[0], 0u) == 0) return PENDING;
# + while (atomicAdd(&cell[0], 0u) == 0) { }


# %% id=12-oneshot cause="`poll` says READY"
# - if (atomicAdd(&cell[0], 0u) == 0) return PENDING;
# + if (atomicAdd(&cell[0], 1u) == 1) return PENDING;


# %% id=12-oneshot cause="0 came out, and 4294967295 was sent"
# - __device__ Poll poll(unsigned int* cell, unsigned int& x)
# + __device__ Poll poll(unsigned int* cell, unsigned int x)


# %% id=12-channel cause="nothing orders two blocks"
# - unsigned int place = atomicAdd(tail, 1u);
# + unsigned int place = atomicAdd(tail, 1u);
# + atomicExch(&full[place], 1u);
# - __threadfence();
# - atomicExch(&full[place], 1u);


# %% id=12-channel cause="which of them stays is left to chance"
# - unsigned int place = atomicAdd(tail, 1u);
# + unsigned int place = atomicAdd(tail, 0u);
# + atomicAdd(tail, 1u);
# - atomicExch(&full[place], 1u);
# + atomicExch(&full[0], 1u);


# %% id=12-channel cause="the message 1 came out 1 time, and 0 is right"
# - values[place] = x;
# + values[place] = place;


# %% id=12-channel cause="(line 6 of your text)"
# - unsigned int place = atomicAdd(tail, 1u);
# + unsigned int place = atomicAdd(tail, 1u) + 1;


# %% id=12-challenge cause="the last cup is ready after 105 ticks"
# - if (!begun[k] && (best < 0 || steep[k] > steep[best])) best = k;
# + if (!begun[k] && (best < 0 || boil[k] < boil[best])) best = k;


# %% id=12-challenge cause="that is no cup that still waits for the kettle"
# - int best = -1;
# + int best = 0;
# - if (!begun[k] && (best < 0 || steep[k] > steep[best])) best = k;
# + if (steep[k] > steep[best]) best = k;


# %% id=12-challenge cause="the last cup is ready after 122 ticks"
# - if (!begun[k] && (best < 0 || steep[k] > steep[best])) best = k;
# + if (!begun[k] && (best < 0 || steep[k] < steep[best])) best = k;


# %% id=12-channel cause="First the data, then __threadfence()"
# - __device__ void send(unsigned int* tail, unsigned int* full, unsigned int* values,
# - unsigned int x)
# + __device__ void send(unsigned int* tail, unsigned int* full, unsigned int* values, unsigned int x)
#   values[place] = x;
# + atomicExch(&full[place], 1u);
# - atomicExch(&full[place], 1u);


# %% id=12-channel cause="nothing orders two blocks"
# - unsigned int place = atomicAdd(tail, 1u);
# + unsigned int place = atomicAdd(tail, 1u);
# + atomicExch(&full[place], 1u);
# + __threadfence();
# - __threadfence();
# - atomicExch(&full[place], 1u);


# %% id=12-channel cause="an atomic for one block does not reach another"
# - atomicExch(&full[place], 1u);
# + atomicExch_block(&full[place], 1u);


# %% id=12-warp cause="it says READY, and nothing was there"
# - return (Poll)state;
# + return READY;


# %% id=12-warp cause="looks once, kernel"
# - if (threadIdx.x % 32 == 0) state = take(mail, found);
# + if (threadIdx.x % 32 == 0) while ((state = take(mail, found)) == PENDING) { }


# %% id=12-warp cause="name all 32 by"
# - state = __shfl_sync(0xffffffff, state, 0);
# - message = __shfl_sync(0xffffffff, found, 0);
# + state = __shfl_sync(__activemask(), state, 0);
# + message = __shfl_sync(__activemask(), found, 0);


# %% id=12-oneshot cause="nothing orders two blocks"
#   cell[1] = x;
# + atomicExch(&cell[0], 1u);
# - atomicExch(&cell[0], 1u);


# %% id=12-oneshot cause="were sent, one to each cell, and at one of them `poll` says PENDING forever"
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
# - unsigned int open = (1u << n) - 1;
# + unsigned int open = n == 32 ? 0xffffffffu : (1u << n) - 1;
# - if (state == READY) open &= ~(1u << k);
# + if (state == READY) { }


# %% id=12-challenge cause="get below 80"
# - int best = -1;
# + const int order[12] = {10, 1, 9, 0, 8, 7, 4, 11, 2, 3, 6, 5};
# - if (!begun[k] && (best < 0 || steep[k] > steep[best])) best = k;
# + if (n == 12 && !begun[order[k]]) return order[k];
# - return best;
# + for (int k = 0; k < n; k++) {
# +     if (!begun[k]) return k;
# + }
# + return -1;


# %% id=12-warp cause="Its message is 0"
# - state = __shfl_sync(0xffffffff, state, 0);
# + state = __any_sync(0xffffffff, found != 0) ? READY : PENDING;


# %% id=12-channel cause="draw the place by one `atomicAdd`"
# - unsigned int place = atomicAdd(tail, 1u);
# + volatile unsigned int* end = tail;
# + unsigned int place = *end;
# + *end = place + 1;


# %% id=12-oneshot cause="an atomic for one block does not reach another"
# - atomicExch(&cell[0], 1u);
# + atomicExch_block(&cell[0], 1u);
# - if (atomicAdd(&cell[0], 0u) == 0) return PENDING;
# + if (atomicAdd_block(&cell[0], 0u) == 0) return PENDING;


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


# %% id=12-warp of=starter cause="32 lanes look into the mailbox"
# - return take(mail, message);                // every lane for itself
# + int state = PENDING; unsigned int m = 0;
# + state = take(mail, m);
# + state = __shfl_sync(0xffffffffu, state, 0);
# + m = __shfl_sync(0xffffffffu, m, 0);
# + if (state == READY) message = m;
# + return (Poll)state;


# %% id=12-warp of=starter cause="a warp waits in `warp_take` for another one"
# - return take(mail, message);                // every lane for itself
# + int state = PENDING; unsigned int m = 0;
# + if (threadIdx.x % 32 == 0) { Poll p = take(mail, m); state = p; }
# + __syncthreads();
# + state = __shfl_sync(0xffffffffu, state, 0);
# + m = __shfl_sync(0xffffffffu, m, 0);
# + if (state == READY) message = m;
# + return (Poll)state;


# %% id=12-oneshot cause="have it take nothing away"
# - if (atomicAdd(&cell[0], 0u) == 0) return PENDING;
# + if (atomicExch(&cell[0], 0u) == 0) return PENDING;


# %% id=12-channel cause="of which each of two threads sends"
# - {
# + {
# +     if (threadIdx.x) return;


# %% id=12-together cause="and the future of the lane beside it is PENDING"
# - all = __all_sync(0xffffffff, state == READY);
# + all = __any_sync(0xffffffff, state == READY);


# %% id=12-together cause="which the mask 0x0000ffff does not name"
# - all = __all_sync(0xffffffff, state == READY);
# + all = __all_sync(0xffff, state == READY);


# %% id=12-together cause="name all 32 by"
# - all = __all_sync(0xffffffff, state == READY);
# + all = __all_sync(__activemask(), state == READY);


# %% id=12-together cause="was polled after it had said READY"
# - if (state == PENDING) state = mine.poll();
# + state = mine.poll();


# %% id=12-together cause="which it names, does not"
# - while (!all) {
# + while (state == PENDING) {


# %% id=12-together cause="which it names, does not"
# - if (state == PENDING) state = mine.poll();
# - all = __all_sync(0xffffffff, state == READY);
# + if (state == PENDING) {
# +     state = mine.poll();
# +     all = __all_sync(0xffffffff, state == READY);
# + }


# %% id=12-together cause="and the future of the lane beside it is PENDING"
# - all = __all_sync(0xffffffff, state == READY);
# + all = __shfl_sync(0xffffffff, state == READY, 0);


# %% id=12-together cause="with 3 warps, thread 0 was told of 10 rounds"
# - all = __all_sync(0xffffffff, state == READY);
# + all = __syncthreads_and(state == READY);


# %% id=12-together cause="as many as the slowest lane of the warp needs"
# - rounds++;
# + if (!all) rounds++;


# %% id=12-together cause="as many as the slowest lane of the warp needs"
# - if (state == PENDING) state = mine.poll();
# + if (state == PENDING) {
# +     state = mine.poll();
# +     rounds++;                          // rounds of mine
# + }
# - rounds++;


# %% id=12-together of=starter cause="thread 0 was told of 3 rounds, and 6 is right"
#   }
# + __syncwarp();


# %% id=12-ring cause="no __threadfence() between its look at the flag and this access"
# - __threadfence();


# %% id=12-ring cause="thread (0, 0, 0) reads 'values'"
#   values[sent % 2] = x;
# - __threadfence();


# %% id=12-ring cause="no __threadfence() between its look at the flag and this access"
#   if (atomicAdd(tail, 0u) == received) return PENDING;
# - __threadfence();


# %% id=12-ring cause="thread (0, 0, 0) writes 'values'"
#   x = values[received % 2];
# - __threadfence();


# %% id=12-ring cause="`poll_send(0)` says PENDING, and READY is right"
# - if (sent - atomicAdd(head, 0u) == 2) return PENDING;
# + if (sent - atomicAdd(head, 0u) == 1) return PENDING;


# %% id=12-ring cause="`poll_send(42)` says READY, and PENDING is right"
# - if (sent - atomicAdd(head, 0u) == 2) return PENDING;
# + if (sent - atomicAdd(head, 0u) > 2) return PENDING;


# %% id=12-ring cause="waits forever in this loop"
# - if (sent - atomicAdd(head, 0u) == 2) return PENDING;
# + while (sent - atomicAdd(head, 0u) == 2) { }


# %% id=12-ring cause="counters that begin with 4294967295"
# - if (sent - atomicAdd(head, 0u) == 2) return PENDING;
# + if (sent >= atomicAdd(head, 0u) + 2) return PENDING;


# %% id=12-ring cause="`poll_send(40)` says PENDING, and READY is right"
# - if (sent - atomicAdd(head, 0u) == 2) return PENDING;
# + if (sent % 2 == atomicAdd(head, 0u) % 2) return PENDING;


# %% id=12-ring cause="reads 'values'"
#   __threadfence();
# + atomicExch(tail, sent + 1);
# + __threadfence();
# - __threadfence();
# - atomicExch(tail, sent + 1);


# %% id=12-ring cause="which is out of bounds"
# - values[sent % 2] = x;
# + values[sent] = x;


# %% id=12-ring cause="came out, and 0 is right"
# - x = values[received % 2];
# + x = values[0];


# %% id=12-door cause="Here the order of an atomic is the fence"
# - unsigned int before = Word(*door).exchange(1u, cuda::memory_order_acquire);
# + unsigned int before = Word(*door).exchange(1u, cuda::memory_order_relaxed);


# %% id=12-door cause="which one does `leave` need"
# - Word(*door).store(0u, cuda::memory_order_release);
# + Word(*door).store(0u, cuda::memory_order_relaxed);


# %% id=12-door cause="Here the order of an atomic is the fence"
# - unsigned int before = Word(*door).exchange(1u, cuda::memory_order_acquire);
# + unsigned int before = Word(*door).exchange(1u, cuda::memory_order_release);
# - Word(*door).store(0u, cuda::memory_order_release);
# + Word(*door).store(0u, cuda::memory_order_acquire);


# %% id=12-door cause="an atomic for one block does not reach another"
# - using Word = cuda::atomic_ref<unsigned int, cuda::thread_scope_device>;
# + using Word = cuda::atomic_ref<unsigned int, cuda::thread_scope_block>;


# %% id=12-door cause="two were in at the same time"
# - unsigned int before = Word(*door).exchange(1u, cuda::memory_order_acquire);
# - return before == 0 ? READY : PENDING;
# + if (Word(*door).load(cuda::memory_order_acquire) == 1) return PENDING;
# + Word(*door).store(1u, cuda::memory_order_relaxed);
# + return READY;


# %% id=12-door cause="waits forever in this loop"
# - unsigned int before = Word(*door).exchange(1u, cuda::memory_order_acquire);
# - return before == 0 ? READY : PENDING;
# + while (Word(*door).exchange(1u, cuda::memory_order_acquire) == 1) { }
# + return READY;


# %% id=12-door cause="writes 'door'[0] in global memory"
# - Word(*door).store(0u, cuda::memory_order_release);
# + *door = 0;


# %% id=12-door cause="it should stay at 1"
# - unsigned int before = Word(*door).exchange(1u, cuda::memory_order_acquire);
# + unsigned int before = Word(*door).fetch_add(1u, cuda::memory_order_acquire);


# %% id=12-door cause="somebody is in, and `enter` says READY"
# - return before == 0 ? READY : PENDING;
# + return READY;


# %% id=12-door cause="the door is open, and `enter` says PENDING"
# - return before == 0 ? READY : PENDING;
# + return before == 1 ? READY : PENDING;


# %% id=12-door cause="`leave` was called, and `enter` says PENDING"
# - Word(*door).store(0u, cuda::memory_order_release);
# + Word(*door).store(1u, cuda::memory_order_release);


# %% id=12-executor cause="1 future still pending when"
# - unsigned int open = (1u << n) - 1;
# - while (open != 0) {
# + unsigned int open = n == 32 ? 0xffffffffu : (1u << n) - 1;
# + while (open != 0 && rounds < 1000) {
# - Poll state = futures[k].poll();
# - if (state == READY) open &= ~(1u << k);
# + if (futures[k].poll() == READY) open &= ~(1u << k);


# %% id=12-executor cause="it took 137 rounds, and 5001 is right"
# - unsigned int open = (1u << n) - 1;
# - int rounds = 0;
# + unsigned char rounds = 0;
# + unsigned int open = n == 32 ? 0xffffffffu : (1u << n) - 1;
# - Poll state = futures[k].poll();
# - if (state == READY) open &= ~(1u << k);
# + if (futures[k].poll() == READY) open &= ~(1u << k);


# %% id=12-oneshot cause="one call of `poll` looks again and again"
# - if (atomicAdd(&cell[0], 0u) == 0) return PENDING;
# + int looks = 0;
# + while (atomicAdd(&cell[0], 0u) == 0) if (++looks > 100) return PENDING;


# %% id=12-challenge cause="with 3 cups, `pick` returned -1 in turn 2"
# - int best = -1;
# - for (int k = 0; k < n; k++) {
# - if (!begun[k] && (best < 0 || steep[k] > steep[best])) best = k;
# + int best = -1, most = 0;
# + for (int k = 0; k < n && k < n; k++) {
# +     if (!begun[k] && steep[k] > most) { best = k; most = steep[k]; }


# %% id=12-oneshot cause="came out, and 4294967295 was sent"
# - cell[1] = x;
# - __threadfence();
# - atomicExch(&cell[0], 1u);
# + atomicExch(&cell[0], 2 * x + 1);
# - if (atomicAdd(&cell[0], 0u) == 0) return PENDING;
# - __threadfence();
# - x = cell[1];
# + unsigned int seen = atomicAdd(&cell[0], 0u);
# + if (seen == 0) return PENDING;
# + x = seen / 2;


# %% id=12-together cause="with 1 warp, `together` came back to thread 0, and the future of the lane"
# - while (!all) {
# + while (!all && rounds < 1000) {


# %% id=12-door cause="with time behind each look, kernel 'trial'"
# - unsigned int before = Word(*door).exchange(1u, cuda::memory_order_acquire);
# - return before == 0 ? READY : PENDING;
# + unsigned int open = 0;
# + if (Word(*door).load(cuda::memory_order_acquire) == 1) return PENDING;
# + bool in = Word(*door).compare_exchange_strong(open, 1u, cuda::memory_order_relaxed);
# + return in ? READY : PENDING;


# %% id=12-pot cause="a future was polled after it had said READY"
#   {
# +     if (boil.poll() == PENDING) return PENDING;
# - if (boil.poll() == PENDING) return PENDING;


# %% id=12-pot cause="a future was polled after it had said READY"
# - cups--;
# + if (pouring.poll() == READY) cups--;


# %% id=12-pot cause="a future was polled after it had said READY"
# - if (step == 0) {
# - if (boil.poll() == PENDING) return PENDING;
# + if (boil.poll() == READY && step == 0) {
#   }
# + if (step == 0) return PENDING;


# %% id=12-oneshot cause="one call of `poll` looks again and again, or sleeps"
# - if (atomicAdd(&cell[0], 0u) == 0) return PENDING;
# + if (atomicAdd(&cell[0], 0u) == 0) {
# +     __nanosleep(1000000);
# +     return PENDING;
# + }


# %% id=12-oneshot cause="one call of `poll` looks again and again, or sleeps"
# - if (atomicAdd(&cell[0], 0u) == 0) return PENDING;
# + __nanosleep(1000);
# + if (atomicAdd(&cell[0], 0u) == 0) return PENDING;


# %% id=12-ring cause="one call of a poll looks again and again, or sleeps"
# - if (sent - atomicAdd(head, 0u) == 2) return PENDING;
# + int looks = 0;
# + while (sent - atomicAdd(head, 0u) >= 2) if (++looks > 50) return PENDING;


# %% id=12-ring cause="one call of a poll looks again and again, or sleeps"
# - if (atomicAdd(tail, 0u) == received) return PENDING;
# + int looks = 0;
# + while (atomicAdd(tail, 0u) == received) if (++looks > 50) return PENDING;


# %% id=12-ring cause="one call of a poll looks again and again, or sleeps"
# - if (sent - atomicAdd(head, 0u) == 2) return PENDING;
# + if (sent - atomicAdd(head, 0u) >= 2) {
# +     __nanosleep(100000);
# +     return PENDING;
# + }


# %% id=12-door cause="one call of `enter` looks again and again, or sleeps"
# - unsigned int before = Word(*door).exchange(1u, cuda::memory_order_acquire);
# - return before == 0 ? READY : PENDING;
# + for (int k = 0; k < 10; k++)
# +     if (Word(*door).exchange(1u, cuda::memory_order_acquire) == 0) return READY;
# + return PENDING;


# %% id=12-door cause="`enter` orders more than it needs: one in one"
# - unsigned int before = Word(*door).exchange(1u, cuda::memory_order_acquire);
# + unsigned int before = Word(*door).exchange(1u);


# %% id=12-door cause="`enter` orders more than it needs: one in one"
# - unsigned int before = Word(*door).exchange(1u, cuda::memory_order_acquire);
# + unsigned int before = Word(*door).exchange(1u, cuda::memory_order_acq_rel);


# %% id=12-door cause="`leave` orders more than it needs: one in one"
# - Word(*door).store(0u, cuda::memory_order_release);
# + Word(*door).store(0u);


# %% id=12-door cause="and its scope is the whole system"
# - using Word = cuda::atomic_ref<unsigned int, cuda::thread_scope_device>;
# + using Word = cuda::atomic_ref<unsigned int>;


# %% id=12-door cause="`leave` orders more than it needs: visitors come from one GPU"
# - Word(*door).store(0u, cuda::memory_order_release);
# + __threadfence_system();
# + Word(*door).store(0u, cuda::memory_order_release);


# %% id=12-door cause="`leave` orders more than it needs: one in one"
# - Word(*door).store(0u, cuda::memory_order_release);
# + __threadfence();
# + Word(*door).store(0u, cuda::memory_order_release);


# %% id=12-challenge cause="the last cup is ready after 82 ticks"
# - if (!begun[k] && (best < 0 || steep[k] > steep[best])) best = k;
# + if (!begun[k] && (best < 0 || boil[k] + steep[k] > boil[best] + steep[best])) best = k;


# %% id=12-challenge cause="get below 80"
# - if (!begun[k] && (best < 0 || steep[k] > steep[best])) best = k;
# + if (!begun[k] && (best < 0 || steep[k] * boil[best] > steep[best] * boil[k])) best = k;


# %% id=12-timeout cause="all guests wait at the same time"
# - int rounds = run_all(tables, n);
# + int rounds = 0;
# + for (int k = 0; k < n; k++) rounds += run_all(tables + k, 1);


# %% id=12-timeout cause="`*teas` is 1, and 2 is right"
# - *teas += (tables[k].a.winner == 0) + (tables[k].b.winner == 0);
# + *teas += tables[k].a.winner == 0 && tables[k].b.winner == 0;


# %% id=12-timeout cause="a guest has tea if `winner` is 0"
# - *teas += (tables[k].a.winner == 0) + (tables[k].b.winner == 0);
# + *teas += tables[k].a_done + tables[k].b_done;


# %% id=12-timeout cause="a guest has tea if `winner` is 0"
# - *teas += (tables[k].a.winner == 0) + (tables[k].b.winner == 0);
# + *teas += tables[k].a.winner == 0;


# %% id=12-timeout cause="`*teas` is 10"
# - *teas = 0;


# %% id=12-timeout cause="guests `2 * k` and `2 * k + 1` sit at table `k`"
# - Guest left = guest(boil[2 * k], steep[2 * k], limit[2 * k]);
# - Guest right = guest(boil[2 * k + 1], steep[2 * k + 1], limit[2 * k + 1]);
# + Guest left = guest(boil[k], steep[k], limit[k]);
# + Guest right = guest(boil[n + k], steep[n + k], limit[n + k]);


# %% id=12-warp cause="don't meet in `warp_take`"
WARP_TAKE = r"""
__device__ Poll warp_take(unsigned int* mail, unsigned int& message)
{
    __shared__ unsigned int got;
    __shared__ int state;
    if (threadIdx.x % 32 == 0) {
        unsigned int x = 0;
        state = take(mail, x);
        got = x;
    }
    __syncwarp();
    if (state == READY) message = got;
    return (Poll)state;
}
"""


# %% id=12-ring cause="if this counts or signals, make both atomic"
# - atomicExch(tail, sent + 1);
# + *tail = sent + 1;
# - atomicExch(head, received + 1);
# + *head = received + 1;


# %% id=12-oneshot cause="with 3 senders, [2654435769, 0, 4294967295] were sent, one to each cell, and at one of them `poll` says PENDING"
# -     x = cell[1];
# +     x = cell[1];
# +     if (x == 0) return PENDING;


# %% id=12-channel cause="two senders read and count `tail` at the same time: draw the place by one `atomicAdd`"
# -     unsigned int place = atomicAdd(tail, 1u);
# +     unsigned int place = (*tail)++;


# %% id=12-timeout cause="not every guest is polled in each of them: all guests wait at the same time"
# - int rounds = run_all(tables, n);
# + int rounds = 0;
# + for (int k = 0; k < n; k++) rounds = max(rounds, run_all(tables + k, 1));


# %% id=12-timeout of=starter cause="the rounds are as many, but not every guest is polled in each"
# - *teas = 0;
# - for (int k = 0; k < 2 * n; k++) {
# - Guest alone = guest(boil[k], steep[k], limit[k]);
# - rounds += run_all(&alone, 1);
# - *teas += alone.winner == 0;
# + for (int g = 0; g < 2 * n; g++) {  // nobody waits at all
# +     *teas += boil[g] + steep[g] <= limit[g];
# +     rounds = max(rounds, 1 + min(boil[g] + steep[g], limit[g]));


# %% id=12-warp cause="thread 1 got the message 57, and 2654435769 was sent"
# - message = __shfl_sync(0xffffffff, found, 0);
# + message = __shfl_sync(0xffffffff, found, 0) & 0x7f;


# %% id=12-warp cause="thread 1 got the message 2654435840, and 2654435769 was sent"
# - message = __shfl_sync(0xffffffff, found, 0);
# + message = (unsigned int)__shfl_sync(0xffffffff, (float)found, 0);  // 24 bits


# %% id=12-ring cause="message 185 came out, and 2654435769 is right"
# - values[sent % 2] = x;
# + values[sent % 2] = (unsigned char)x;


# %% id=12-channel cause="the message 27947 came out 1 time, and 0 is right"
# - values[place] = x;
# + values[place] = (unsigned short)x;


# %% id=12-channel cause="with 43 blocks, of which each of two threads sends, "
# - unsigned int place = atomicAdd(tail, 1u);
# + unsigned char place = atomicAdd(tail, 1u);


# %% id=12-oneshot cause="4294967225 came out, and 2654435769 was sent"
# - cell[1] = x;
# + cell[1] = (signed char)x;


# %% id=12-pot cause="with boil=1, cups=300 and pour=1, "
# - while (cups > 0) {
# + for (signed char left = cups; left > 0; left = cups) {


# %% id=12-challenge cause="the last cup is ready after "
# - if (!begun[k] && (best < 0 || steep[k] > steep[best])) best = k;
# + if (!begun[k] && (best < 0 || (short)steep[k] > (short)steep[best])) best = k;
