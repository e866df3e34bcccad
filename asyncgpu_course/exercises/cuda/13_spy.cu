#include "hostcall.cuh"
// Calls of the host that notice who uses a packet that is not his. They tell so by a call for a service of the
// check: 100 where it was given back, 102 where there was no answer, 103 where there was no packet. The first
// answer to SERVICE is kept back, and so is the first packet, unless that is 99.
__device__ unsigned spied_state[64];  // of each packet: 1 while somebody has it, 2 if there was no answer
__device__ unsigned spied_refused[2];

__device__ inline bool spied(const Hostcalls& h, int p) {
    unsigned state = p < 0 ? 3 : atomicAdd(&spied_state[p], 0u);
    if (state == 1) return true;
    if (p < 0) p = hostcall_begin(h);
    hostcall_ask(h, p, 100 + state, 0, 0, 0);
    hostcall_wait(h, p);
    return false;
}

__device__ inline int spied_packet(int p) {
    if (p >= 0) atomicExch(&spied_state[p], 1u);
    return p;
}

__device__ inline int spied_begin(const Hostcalls& h) {
    if (SERVICE != 99 && atomicExch(&spied_refused[1], 1u) == 0) return -1;
    return spied_packet(hostcall_begin(h));
}

__device__ inline int spied_try_begin(const Hostcalls& h) { return spied_packet(hostcall_try_begin(h)); }

__device__ inline void spied_ask(const Hostcalls& h, int p, int service, unsigned long long a,
                                 unsigned long long b, unsigned long long c) {
    if (spied(h, p)) hostcall_ask(h, p, service, a, b, c);
}

__device__ inline bool spied_wait(const Hostcalls& h, int p) {
    bool ok = p >= 0 && hostcall_wait(h, p);
    if (!ok || hostcall_packet(h, p)[0] != SERVICE || atomicExch(&spied_refused[0], 1u) != 0) return ok;
    atomicExch(&spied_state[p], 2u);
    return false;
}

__device__ inline unsigned long long spied_answer(const Hostcalls& h, int p) {
    spied(h, p);
    return hostcall_answer(h, p);
}

__device__ inline void spied_end(const Hostcalls& h, int p) {
    if (!spied(h, p)) return;
    atomicExch(&spied_state[p], 0u);
    for (unsigned i = 0; SERVICE == 99 && i < h.bytes; ++i) hostcall_bytes(h, p)[i] = '?';  // somebody else's
    hostcall_end(h, p);
}

#define hostcall_begin spied_begin
#define hostcall_try_begin spied_try_begin
#define hostcall_ask spied_ask
#define hostcall_wait spied_wait
#define hostcall_answer spied_answer
#define hostcall_end spied_end
