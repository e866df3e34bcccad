#include "device_async.cuh"
// Another block is the host: as far away as what a fence of the device does not reach.
struct Hostcalls { unsigned long long *mail, *ends; };  // the latter: what lies in a packet that is given back
__device__ inline int hostcall_try_begin(const Hostcalls&) { return 0; }
__device__ inline void hostcall_ask(const Hostcalls& h, int, int, unsigned long long a, int, int) {
    h.mail[1] = a;
    __threadfence_system();
    *(volatile unsigned long long*)h.mail = 1;
}
__device__ inline bool hostcall_done(const Hostcalls& h, int) {
    return *(volatile unsigned long long*)h.mail == 2;
}
__device__ inline unsigned long long hostcall_answer(const Hostcalls& h, int) {
    return ((volatile unsigned long long*)h.mail)[2];
}
__device__ inline int hostcall_begin(const Hostcalls&) { return 0; }
__device__ inline int hostcall_error(const Hostcalls&, int) { return 0; }
__device__ inline void hostcall_end(const Hostcalls& h, int p) {
    if (h.ends != 0) *h.ends = hostcall_answer(h, p);
}
__device__ inline void hostcall_leave(const Hostcalls&, int) { }
#define __threadfence __threadfence_block
#define thread_scope_device thread_scope_block
