extern "C" __global__ void trial(unsigned int* mails, unsigned int* out) {
    unsigned int warp = threadIdx.x / 32, *mail = mails + 2 * warp, *turn = mails + blockDim.x / 16;
    if (blockIdx.x == 1) {
        if (threadIdx.x % 32 == 0) {
            mail[1] = MANY_BITS * (1 - warp);  // a message may be 0
            __threadfence();
            atomicExch(&mail[0], 1u);
        }
        return;
    }
    // While a warp looks, the one behind it has something else to do.
    if (threadIdx.x % 32 == 0) while (atomicAdd(turn, 0u) < warp) { }
    __syncwarp();
    unsigned int message = 0;
    while (warp_take(mail, message) == PENDING) { message = 0; }
    out[threadIdx.x] = __shfl_xor_sync(0xffffffff, message, 1);
    if (threadIdx.x % 32 == 0) atomicAdd(turn, 1u);
}
