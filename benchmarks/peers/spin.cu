__device__ unsigned long long nanoseconds() {
    unsigned long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}
extern "C" __global__ void spin(unsigned int us, float* x) {
    unsigned long long end = nanoseconds() + 1000ull * us;
    while (nanoseconds() < end) {}
    x[0] = us;
}
