extern "C" __global__ void trial(unsigned int* mail, int* out) {
    unsigned int message = 0;
    out[threadIdx.x] = warp_take(mail, message) == READY;
}
