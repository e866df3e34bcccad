#undef atomicAdd
#ifndef LATER
#define LATER
#endif
extern "C" __global__ void trial(
    int n, const int* begin, const int* children, const int* naps, int* gift, int* found, int* times,
    int* items, unsigned int* counts)
{
    Queue queue = {items, counts, counts + 1, counts + 2};
    while (true) {
        int item = take(queue);
        if (item < 0) break;
        if (item >= n) __trap();
        found[item] = ((volatile int*)gift)[item];
        atomicAdd(&times[item], 1);
        for (long long end = clock64() + 400 * naps[item]; clock64() < end;) __nanosleep(200);
        for (int k = begin[item]; k < begin[item + 1]; k++) {
            ((volatile int*)gift)[children[k]] = 7 * children[k];
            put(queue, children[k]);
        }
        LATER
        done(queue);
    }
}
