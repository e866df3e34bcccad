enum Poll { PENDING, READY };
struct Timer {
    int left;
    __device__ Poll poll() { if (left == 0) return READY; left--; return PENDING; }
};
// A guest's tea is polled once more only when the others were polled as often, or have left.
__device__ int _looks_of_teas, _out_of_turn, _guests, _stays[16];
__device__ void _noted(int polls) {
    if (polls > 3) return;  // which is often enough to tell
    int due = 0;
    for (int g = 0; g < _guests; g++) due += min(_stays[g], polls - 1);
    if (_looks_of_teas++ < due) _out_of_turn = 1;
}
struct Tea {
    Timer boil, steep;
    int step, polls;
    __device__ Poll poll() {
        _noted(++polls);
        if (step == 0) {
            if (boil.poll() == PENDING) return PENDING;
            step = 1;
        }
        if (step == 1) {
            if (steep.poll() == PENDING) return PENDING;
            step = 2;
        }
        return READY;
    }
};
__device__ int looks_of_joins;
template <typename A, typename B>
struct Join {
    A a;
    B b;
    bool a_done, b_done;
    __device__ Poll poll() {
        looks_of_joins++;
        if (!a_done) a_done = a.poll() == READY;
        if (!b_done) b_done = b.poll() == READY;
        return a_done && b_done ? READY : PENDING;
    }
};
template <typename A, typename B>
struct Select {
    A a;
    B b;
    int winner;
    __device__ Poll poll() {
        if (a.poll() == READY) { winner = 0; return READY; }
        if (b.poll() == READY) { winner = 1; return READY; }
        return PENDING;
    }
};
template <typename Future>
__device__ int run_all(Future* futures, int n) {
    unsigned int open = (1u << n) - 1;
    int rounds = 0;
    while (open != 0) {
        for (int k = 0; k < n; k++) {
            if (open >> k & 1) {
                Poll state = futures[k].poll();
                if (state == READY) open &= ~(1u << k);
            }
        }
        rounds++;
    }
    return rounds;
}
