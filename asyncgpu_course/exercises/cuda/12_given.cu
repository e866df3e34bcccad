enum Poll { PENDING, READY };
__device__ int _fences;  // counted by the file `12_spy` alone
__device__ int _late;  // polls of a timer that had said READY, and was not set anew
struct Timer {
    int left;
    bool said;
    __device__ Poll poll() {
        if (left == 0) { _late += said; said = true; return READY; }
        said = false;
        left--;
        return PENDING;
    }
};
// A timer that notes how often it was polled, and how often after it had said READY.
struct Probe {
    int left, polls, late;
    __device__ Poll poll() {
        polls++;
        if (left < 0 && ++late > 1000) __trap();
        left--;
        return left < 0 ? READY : PENDING;
    }
};
__device__ Poll take(unsigned int* mail, unsigned int& message) {
    if (atomicCAS(&mail[0], 1u, 2u) != 1) return PENDING;
    __threadfence();
    message = mail[1];
    __threadfence();
    atomicExch(&mail[0], 0u);
    return READY;
}
