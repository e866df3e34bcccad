#include "hostcall.cuh"
// Whoever has a packet next fills it with bytes of his own.
__device__ inline void spoiled_end(const Hostcalls& h, int p) {
    for (unsigned i = 0; i < h.bytes; i += 31) hostcall_bytes(h, p)[i] = 77;
    hostcall_end(h, p);
}
#define hostcall_end spoiled_end
