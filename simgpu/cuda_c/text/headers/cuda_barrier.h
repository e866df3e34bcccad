// The header cuda/barrier, as CUDA C++ that the interpreter reads: barriers of a block, and copies that they count.
//
// A wait is a loop that looks at the barrier, so that threads wait for it as for anything else in memory. Which
// phase is over, who has arrived and what has come, the interpreter knows (`__mbarrier_...`). Whoever asks once
// may ask too early (`__mbarrier_test_wait`), and a wait asks until it's over (`__mbarrier_over`). Copies have the
// alignment that their addresses have; `aligned_size_t` promises one, which changes no value.

namespace cuda {
template <size_t N> struct aligned_size_t {
    size_t value;
    static constexpr size_t align = N;
    __device__ explicit aligned_size_t(size_t bytes) : value(bytes) {}
    __device__ operator size_t() const { return value; }
};
template <thread_scope S = thread_scope_system> struct cuda_barrier {
    unsigned long long _word;
    using arrival_token = unsigned long long;
    __device__ static constexpr ptrdiff_t max() { return 1048575; }
    __device__ arrival_token arrive(ptrdiff_t times = 1) { return __mbarrier_arrive(&_word, (int)times, 0); }
    __device__ void arrive_and_drop() { __mbarrier_arrive_and_drop(&_word); }
    __device__ bool try_wait(arrival_token token) { return __mbarrier_test_wait(&_word, token); }
    __device__ bool try_wait_parity(bool parity) { return __mbarrier_test_wait_parity(&_word, parity); }
    __device__ void wait(arrival_token token) { while (!__mbarrier_over(&_word, token)) { } }
    __device__ void wait_parity(bool parity) { while (!__mbarrier_over_parity(&_word, parity)) { } }
    __device__ void arrive_and_wait() {
        arrival_token token = __mbarrier_arrive(&_word, 1, 0);
        while (!__mbarrier_over(&_word, token)) { } }
    template <typename D, typename F> __device__ void _copy(D* to, const F* from, size_t bytes, unsigned rank, unsigned of) {
        __memcpy_async_share(to, from, bytes, rank, of, &_word); }
};
template <thread_scope S> __device__ inline void init(cuda_barrier<S>* bar, ptrdiff_t expected) {
    static_assert(S == thread_scope_block || S == thread_scope_thread, "the simulated device has barriers of a block only");
    __mbarrier_init(&bar->_word, (int)expected); }
template <typename D, typename F, typename B> __device__ inline void memcpy_async(D* to, const F* from, size_t bytes, B& by) {
    by._copy(to, from, bytes, 0u, 1u); }
template <typename G, typename D, typename F, typename B>
__device__ inline void memcpy_async(const G& group, D* to, const F* from, size_t bytes, B& by) {
    by._copy(to, from, bytes, group.thread_rank(), group.size()); }
namespace device {
template <typename D, typename F, typename L, thread_scope S>
__device__ inline void memcpy_async_tx(D* to, const F* from, L bytes, cuda_barrier<S>& bar) {
    __bulk_copy(to, from, (size_t)bytes, &bar._word); }
namespace experimental {
template <typename D, typename F, thread_scope S>
__device__ inline void cp_async_bulk_global_to_shared(D* to, const F* from, unsigned bytes, cuda_barrier<S>& bar) {
    __bulk_copy(to, from, bytes, &bar._word); }
template <typename D, typename F> __device__ inline void cp_async_bulk_shared_to_global(D* to, const F* from, unsigned bytes) {
    __bulk_store(to, from, bytes); }
__device__ inline void cp_async_bulk_commit_group() { __bulk_commit(); }
template <int N> __device__ inline void cp_async_bulk_wait_group_read() { __bulk_wait(N, 1); }
__device__ inline void fence_proxy_async_shared_cta() { __proxy_fence(); }
}
template <thread_scope S> __device__ inline unsigned long long* barrier_native_handle(cuda_barrier<S>& bar) { return &bar._word; }
template <thread_scope S> __device__ inline unsigned long long barrier_arrive_tx(cuda_barrier<S>& bar, ptrdiff_t times, ptrdiff_t bytes) {
    return __mbarrier_arrive(&bar._word, (int)times, (int)bytes); }
template <thread_scope S> __device__ inline void barrier_expect_tx(cuda_barrier<S>& bar, ptrdiff_t bytes) {
    __mbarrier_expect_tx(&bar._word, (int)bytes); }
}
}
