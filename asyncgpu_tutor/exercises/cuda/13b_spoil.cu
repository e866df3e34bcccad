#include "hostcall.cuh"
// Whoever has a packet next fills it with bytes of his own.
__device__ inline void spoiled_end(const Hostcalls& h, int p) {
    for (int i = 0; i < 8; ++i) hostcall_bytes(h, p)[i] = 77;
    hostcall_end(h, p);
}
#define hostcall_end spoiled_end
