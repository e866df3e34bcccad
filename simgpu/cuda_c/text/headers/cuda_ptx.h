// The header cuda/ptx, as CUDA C++ that the interpreter reads: bulk copies, their barriers, and fences.

namespace cuda { namespace ptx {
template <int N> struct n32_t { static constexpr int value = N; };
struct _to_shared { }; struct _to_global { }; struct _order { }; struct _scope { };
const _to_shared space_shared = {}, space_cluster = {}; const _to_global space_global = {};
const _order sem_release = {}, sem_acquire = {}, sem_relaxed = {}; const _scope scope_cta = {}, scope_cluster = {};
template <typename D, typename F>
__device__ inline void cp_async_bulk(_to_shared, _to_global, D* to, const F* from, unsigned bytes, unsigned long long* bar) {
    __bulk_copy(to, from, bytes, bar); }
template <typename D, typename F>
__device__ inline void cp_async_bulk(_to_global, _to_shared, D* to, const F* from, unsigned bytes) {
    __bulk_store(to, from, bytes); }
__device__ inline void cp_async_bulk_commit_group() { __bulk_commit(); }
template <int N> __device__ inline void cp_async_bulk_wait_group(n32_t<N> n) { __bulk_wait(N, 0); }
template <int N> __device__ inline void cp_async_bulk_wait_group_read(n32_t<N> n) { __bulk_wait(N, 1); }
__device__ inline void mbarrier_init(unsigned long long* bar, unsigned count) { __mbarrier_init(bar, (int)count); }
__device__ inline void fence_mbarrier_init(_order, _scope) { }
__device__ inline unsigned long long mbarrier_arrive(unsigned long long* bar, unsigned times = 1) {
    return __mbarrier_arrive(bar, (int)times); }
__device__ inline unsigned long long mbarrier_arrive(_order, _scope, _to_shared, unsigned long long* bar, unsigned times = 1) {
    return __mbarrier_arrive(bar, (int)times); }
__device__ inline unsigned long long mbarrier_arrive_expect_tx(_order, _scope, _to_shared, unsigned long long* bar, unsigned bytes) {
    return __mbarrier_arrive(bar, 1, (int)bytes); }
__device__ inline void mbarrier_expect_tx(_order, _scope, _to_shared, unsigned long long* bar, unsigned bytes) {
    __mbarrier_expect_tx(bar, (int)bytes); }
__device__ inline bool mbarrier_test_wait(unsigned long long* bar, unsigned long long token) { return __mbarrier_test_wait(bar, token); }
__device__ inline bool mbarrier_test_wait(_order, _scope, unsigned long long* bar, unsigned long long token) { return __mbarrier_test_wait(bar, token); }
__device__ inline bool mbarrier_test_wait_parity(unsigned long long* bar, unsigned parity) { return __mbarrier_test_wait_parity(bar, parity); }
__device__ inline bool mbarrier_test_wait_parity(_order, _scope, unsigned long long* bar, unsigned parity) { return __mbarrier_test_wait_parity(bar, parity); }
__device__ inline bool mbarrier_try_wait(unsigned long long* bar, unsigned long long token, unsigned nanoseconds = 0) {
    return __mbarrier_test_wait(bar, token); }
__device__ inline bool mbarrier_try_wait(_order, _scope, unsigned long long* bar, unsigned long long token, unsigned nanoseconds = 0) {
    return __mbarrier_test_wait(bar, token); }
__device__ inline bool mbarrier_try_wait_parity(unsigned long long* bar, unsigned parity, unsigned nanoseconds = 0) {
    return __mbarrier_test_wait_parity(bar, parity); }
__device__ inline bool mbarrier_try_wait_parity(_order, _scope, unsigned long long* bar, unsigned parity, unsigned nanoseconds = 0) {
    return __mbarrier_test_wait_parity(bar, parity); }
__device__ inline void fence_proxy_async(_to_shared) { __proxy_fence(); }
__device__ inline void fence_proxy_async() { __proxy_fence(); }
} }
