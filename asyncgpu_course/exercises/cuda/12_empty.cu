extern "C" __global__ void trial(unsigned int* cell, int* out) {
    unsigned int x = 0;
    out[0] = poll(cell, x) == READY;
}
