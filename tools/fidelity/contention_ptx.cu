
#define LANE (threadIdx.x % 32)
#define WARP ((blockIdx.x * blockDim.x + threadIdx.x) / 32)
#define LOOK(name, text) \
extern "C" __global__ void name(unsigned* w, unsigned* out, int n, int k, int m) \
{ \
    unsigned v = 0; \
    if (LANE < m) { \
        unsigned* p = w + WARP % k * 32; \
        for (int i = 0; i < n; i++) { \
            asm volatile(text : "=r"(v) : "l"(p) : "memory"); \
            if (v > 5) break; \
        } \
    } \
    out[blockIdx.x * blockDim.x + threadIdx.x] = v; \
}
LOOK(look_relaxed, "ld.relaxed.gpu.global.u32 %0, [%1];")
LOOK(look_acquire, "ld.acquire.gpu.global.u32 %0, [%1];")
__device__ unsigned acquired(const unsigned* p)
{
    unsigned v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}
__device__ unsigned relaxed(const unsigned* p)
{
    unsigned v;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}
__device__ void released(unsigned* p)
{
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" :: "l"(p) : "memory");
}
extern "C" __global__ void meet_acquire(unsigned* w, unsigned* out, int n, int k, int m)
{
    for (int i = 1; i <= n; i++) {
        __syncthreads();
        if (threadIdx.x == 0) {
            released(w);
            unsigned looks = 0;
            while (acquired(w) < i * gridDim.x) {
                if (++looks > 10000000) __trap();
            }
        }
        __syncthreads();
    }
}
extern "C" __global__ void token_relaxed(unsigned* w, unsigned* out, int n, int k, int m)
{
    if (threadIdx.x == 0) {
        for (unsigned i = 0; i < n; i++) {
            unsigned looks = 0;
            while (relaxed(w) != i * gridDim.x + blockIdx.x) {
                if (++looks > 10000000) __trap();
            }
            atomicAdd(w, 1);
        }
    }
}
extern "C" __global__ void clock_rate(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned long long t0, t1;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t0));
    long long c0 = clock64();
    while (clock64() - c0 < n) {}
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t1));
    out[0] = (unsigned)(t1 - t0);
}
