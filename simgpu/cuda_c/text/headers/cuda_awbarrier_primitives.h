// The header cuda_awbarrier_primitives.h, as CUDA C++ that the interpreter reads: what isn't built in of it.

typedef unsigned long long __mbarrier_t;
typedef unsigned long long __mbarrier_token_t;
__device__ inline unsigned __mbarrier_maximum_count() { return 1048575; }
__device__ inline void __mbarrier_inval(__mbarrier_t* bar) { }
__device__ inline bool __mbarrier_try_wait(__mbarrier_t* bar, __mbarrier_token_t token, unsigned nanoseconds) {
    return __mbarrier_test_wait(bar, token); }
__device__ inline bool __mbarrier_try_wait_parity(__mbarrier_t* bar, bool parity, unsigned nanoseconds) {
    return __mbarrier_test_wait_parity(bar, parity); }
