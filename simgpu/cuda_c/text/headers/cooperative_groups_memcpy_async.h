// The header cooperative_groups/memcpy_async.h, as CUDA C++ that the interpreter reads: all threads of a group
// copy together, and all of them wait, for each other too.

namespace cooperative_groups {
template <typename G, typename D, typename F> __device__ inline void memcpy_async(const G& group, D* to, const F* from, size_t bytes) {
    __memcpy_async_share(to, from, bytes, group.thread_rank(), group.size(), nullptr);
    __pipeline_commit(); }
template <typename G, typename T>
__device__ inline void memcpy_async(const G& group, T* to, size_t room, const T* from, size_t count) {
    __memcpy_async_share(to, from, (room < count ? room : count) * sizeof(T), group.thread_rank(), group.size(), nullptr);
    __pipeline_commit(); }
template <typename G> __device__ inline void wait(const G& group) { __pipeline_wait_prior(0); group.sync(); }
template <unsigned N, typename G> __device__ inline void wait_prior(const G& group) { __pipeline_wait_prior(N); group.sync(); }
}
