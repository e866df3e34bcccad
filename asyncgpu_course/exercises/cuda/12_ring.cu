extern "C" __global__ void trial(unsigned int* head, unsigned int* tail, unsigned int* values, unsigned int* out)
{
    Ring ring = {head, tail, values};
    const unsigned int n = 9;
    if (blockIdx.x > 0) {
        for (unsigned int k = 0; k < n; k++) {
            while (ring.poll_send(MANY_BITS * k) == PENDING) { }
            if (k % 3 == 2) __nanosleep(3000);
        }
        return;
    }
    for (unsigned int k = 0; k < n; k++) {
        unsigned int x = 0;
        while (ring.poll(x) == PENDING) { }
        out[k] = 1 + x;
        if (k % 4 == 1) {  // long enough for the sender to fill both places
            for (long long end = clock64() + 40000; clock64() < end;) __nanosleep(1000);
        }
    }
}
