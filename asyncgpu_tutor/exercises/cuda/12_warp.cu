extern "C" __global__ void trial(unsigned int* mails, int* out) {
    unsigned int* mail = mails + 2 * (threadIdx.x / 32);
    if (blockIdx.x == 1) {
        if (threadIdx.x % 32 == 0) {
            mail[1] = 40 - 40 * (threadIdx.x / 32);  // a message may be 0
            __threadfence();
            atomicExch(&mail[0], 1u);
        }
        return;
    }
    unsigned int message = 0;
    while (warp_take(mail, message) == PENDING) { }
    out[threadIdx.x] = (int)__shfl_xor_sync(0xffffffff, message, 1);
}
