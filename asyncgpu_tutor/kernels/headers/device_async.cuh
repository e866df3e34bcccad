// Futures for kernels: what chapter 12 of the course builds, piece by piece.
//
//     #include "device_async.cuh"
//
//     Oneshot letter = {cells, cells + 1, 0};        // READY when somebody has sent
//     Timer patience = {1000};                       // PENDING so many times, and then READY
//     auto first = select(letter, patience);
//     block_on(first);                               // first.winner: 0 is the letter, 1 the timer
//
// A future is any struct with a member `Poll poll()`. It looks, goes on as far as it can, and returns: READY when
// it is done, PENDING otherwise. It waits for nobody. Somebody polls it again: that is the executor, of which
// `block_on` is the smallest. Nobody polls a future that has said READY. One that may lose a `select` has a second
// member, `void drop()`: nobody will poll it again, so it gives back what it holds.

#ifndef ASYNCGPU_TUTOR_DEVICE_ASYNC
#define ASYNCGPU_TUTOR_DEVICE_ASYNC

enum Poll { PENDING, READY };

#ifndef ASYNC_PATIENCE
#define ASYNC_PATIENCE 10000000  // rounds, after which an executor ends the kernel with an error
#endif

// ---- futures

// PENDING `left` times, and then READY.
struct Timer {
    int left;
    __device__ Poll poll() {
        if (left == 0) return READY;
        left--;
        return PENDING;
    }
    __device__ void drop() {}
};

// READY when the SM's clock has come to `until`: a limit for `select`, as in within(future, 10000).
struct Deadline {
    long long until;
    __device__ Poll poll() {
        if (clock64() >= until) return READY;
        __nanosleep(20);
        return PENDING;
    }
    __device__ void drop() {}
};

// READY when both are. Each is polled until it is done, and not once more.
template <typename A, typename B>
struct Join {
    A a;
    B b;
    bool a_done, b_done;
    __device__ Poll poll() {
        if (!a_done) a_done = a.poll() == READY;
        if (!b_done) b_done = b.poll() == READY;
        return a_done && b_done ? READY : PENDING;
    }
    __device__ void drop() {
        if (!a_done) a.drop();
        if (!b_done) b.drop();
    }
};

// READY when one of them is: `winner` is 0 or 1, and the other is dropped.
template <typename A, typename B>
struct Select {
    A a;
    B b;
    int winner;
    __device__ Poll poll() {
        if (a.poll() == READY) { winner = 0; b.drop(); return READY; }
        if (b.poll() == READY) { winner = 1; a.drop(); return READY; }
        return PENDING;
    }
    __device__ void drop() {
        a.drop();
        b.drop();
    }
};

template <typename A, typename B>
__device__ Join<A, B> join(A a, B b) {
    Join<A, B> both = {a, b, false, false};
    return both;
}

template <typename A, typename B>
__device__ Select<A, B> select(A a, B b) {
    Select<A, B> either = {a, b, -1};
    return either;
}

// A future with a limit, in clocks of the SM from now on: `winner` is 1 if the limit came first.
template <typename A>
__device__ Select<A, Deadline> within(A a, long long clocks) {
    Deadline limit = {clock64() + clocks};
    return select(a, limit);
}

// ---- executors

// Polls one future until it is READY; returns how often that was.
template <typename Future>
__device__ unsigned int block_on(Future& future) {
    Poll state = PENDING;
    unsigned int rounds = 0;
    while (state == PENDING) {
        state = future.poll();
        if (++rounds > ASYNC_PATIENCE) __trap();
    }
    return rounds;
}

// Polls up to 32 futures in turns until all are READY; returns how many rounds that took.
template <typename Future>
__device__ unsigned int run_all(Future* futures, int n) {
    unsigned int open = n == 32 ? 0xffffffffu : (1u << n) - 1, rounds = 0;
    while (open != 0) {
        for (int k = 0; k < n; k++) {
            if (open >> k & 1) {
                Poll state = futures[k].poll();
                if (state == READY) open &= ~(1u << k);
            }
        }
        if (++rounds > ASYNC_PATIENCE) __trap();
    }
    return rounds;
}

// ---- a warp

// READY for all 32 lanes when it is for each of them. All of them call it.
__device__ inline Poll warp_join(Poll mine) {
    return __all_sync(0xffffffffu, mine == READY) ? READY : PENDING;
}

// Each lane brings a future of its own; all 32 poll together until all are READY.
template <typename Future>
__device__ unsigned int warp_block_on(Future& mine) {
    Poll own = PENDING, all = PENDING;
    unsigned int rounds = 0;
    while (all == PENDING) {
        if (own == PENDING) own = mine.poll();
        all = warp_join(own);
        if (++rounds > ASYNC_PATIENCE) __trap();
    }
    return rounds;
}

// What lane 0 has, for all 32 lanes. All of them call it.
template <typename T>
__device__ T from_first_lane(T mine) {
    return (T)__shfl_sync(0xffffffffu, mine, 0);  // of an enumeration it is an int
}

// ---- channels

// One value, once. `full` is a zero in memory, `box` a place beside it.
struct Oneshot {
    unsigned int* full;
    unsigned int* box;
    unsigned int value;  // what has come
    __device__ void send(unsigned int x) {
        *box = x;
        __threadfence();  // whoever sees the flag sees the value
        atomicExch(full, 1u);
    }
    __device__ Poll poll() {
        if (atomicAdd(full, 0u) == 0) return PENDING;
        __threadfence();
        value = *box;
        return READY;
    }
    __device__ void drop() {}
};

// Many senders, one receiver, in a ring of `capacity` places, at least 2: multi-producer, single-consumer.
//
// `words` has 2 + 2 * capacity of them: the next place to be written, the next to be read, a turn for each place,
// and the values. The host makes the turns 0, 1, 2, ... and the rest 0. A place whose turn is p may be written by
// whoever drew number p; with p + 1 it may be read. (The scheme is that of D. Vyukov's bounded queue.) Numbers have
// 64 bits, so they never begin again: with 32, they would after four billion messages, and a ring of 3 would break.
struct Channel {
    unsigned long long* words;
    unsigned int capacity;
    unsigned long long value;  // what has come
    __device__ unsigned long long* turn(unsigned long long place) { return words + 2 + place % capacity; }
    __device__ unsigned long long* box(unsigned long long place) { return turn(place) + capacity; }

    // PENDING: there is no room now. Try again later.
    __device__ Poll poll_send(unsigned long long x) {
        unsigned long long place = atomicAdd(&words[0], 0ULL);
        while (true) {
            long long ahead = (long long)(atomicAdd(turn(place), 0ULL) - place);
            if (ahead < 0) return PENDING;
            unsigned long long seen =
                ahead == 0 ? atomicCAS(&words[0], place, place + 1) : atomicAdd(&words[0], 0ULL);
            if (ahead == 0 && seen == place) break;
            place = seen;
        }
        __threadfence();
        *box(place) = x;
        __threadfence();
        atomicExch(turn(place), place + 1);
        return READY;
    }

    // PENDING: nothing has come. The receiver alone calls it, and after READY again, for the next one.
    __device__ Poll poll() {
        unsigned long long place = words[1];
        if (atomicAdd(turn(place), 0ULL) != place + 1) return PENDING;
        __threadfence();
        value = *box(place);
        words[1] = place + 1;
        __threadfence();
        atomicExch(turn(place), place + capacity);
        return READY;
    }
    __device__ void drop() {}
};

#endif
