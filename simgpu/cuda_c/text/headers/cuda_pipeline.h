// The header cuda/pipeline, as CUDA C++ that the interpreter reads.
//
// A thread's own pipeline is the groups of its copies (`__pipeline_commit`). That of a block has two barriers for
// each stage: by one producers say that a stage is full, by the other one consumers that it is empty.

namespace cuda {
enum class pipeline_role { producer, consumer };
template <thread_scope S, int N> struct pipeline_shared_state { cuda_barrier<thread_scope_block> _full[N], _empty[N]; };
template <thread_scope S> struct cuda_pipeline {
    cuda_barrier<thread_scope_block> *_full, *_empty;
    unsigned _stages, _head, _tail;
    bool _into, _outof;
    __device__ bool quit() { return true; }
    __device__ void producer_acquire() {
        cuda_barrier<thread_scope_block>* bar = _empty + _head % _stages;
        bool parity = _head / _stages % 2 == 0;
        while (!__mbarrier_over_parity(&bar->_word, parity)) { } }
    __device__ void producer_commit() { __mbarrier_arrive(&_full[_head % _stages]._word, 1, 0); _head++; }
    __device__ void consumer_wait() {
        cuda_barrier<thread_scope_block>* bar = _full + _tail % _stages;
        bool parity = _tail / _stages % 2;
        while (!__mbarrier_over_parity(&bar->_word, parity)) { } }
    __device__ void consumer_release() { __mbarrier_arrive(&_empty[_tail % _stages]._word, 1, 0); _tail++; }
    template <typename D, typename F> __device__ void _copy(D* to, const F* from, size_t bytes, unsigned rank, unsigned of) {
        __memcpy_async_share(to, from, bytes, rank, of, &_full[_head % _stages]._word); }
};
template <> struct cuda_pipeline<thread_scope_thread> {
    unsigned _head, _tail;
    __device__ bool quit() { return true; }
    __device__ void producer_acquire() {}
    __device__ void producer_commit() { __pipeline_commit(); _head++; }
    __device__ void consumer_wait() {
        if (_head != _tail) { __pipeline_wait_prior(_head - _tail - 1); _tail++; } }
    __device__ void consumer_release() {}
    template <typename D, typename F> __device__ void _copy(D* to, const F* from, size_t bytes, unsigned rank, unsigned of) {
        __memcpy_async_share(to, from, bytes, rank, of, nullptr); }
};
__device__ inline cuda_pipeline<thread_scope_thread> make_pipeline() {
    cuda_pipeline<thread_scope_thread> p; p._head = 0; p._tail = 0; return p; }
template <typename G, thread_scope S, int N>
__device__ inline cuda_pipeline<S> _make_pipeline(const G& group, pipeline_shared_state<S, N>* state, int into, int outof) {
    if (group.thread_rank() == 0) {
        for (int k = 0; k < N; k++) { init(&state->_full[k], into); init(&state->_empty[k], outof); } }
    group.sync();
    cuda_pipeline<S> p; p._full = state->_full; p._empty = state->_empty; p._stages = N; p._head = 0; p._tail = 0; return p; }
template <typename G, thread_scope S, int N>
__device__ inline cuda_pipeline<S> make_pipeline(const G& group, pipeline_shared_state<S, N>* state) {
    return _make_pipeline(group, state, group.size(), group.size()); }
template <typename G, thread_scope S, int N>
__device__ inline cuda_pipeline<S> make_pipeline(const G& group, pipeline_shared_state<S, N>* state, pipeline_role role) {
    int into = __syncthreads_count(role == pipeline_role::producer);
    return _make_pipeline(group, state, into, (int)group.size() - into); }
template <typename G, thread_scope S, int N>
__device__ inline cuda_pipeline<S> make_pipeline(const G& group, pipeline_shared_state<S, N>* state, size_t producers) {
    return _make_pipeline(group, state, (int)producers, (int)(group.size() - producers)); }
template <int N> __device__ inline void pipeline_consumer_wait_prior(cuda_pipeline<thread_scope_thread>& p) {
    __pipeline_wait_prior(N); if (p._head - p._tail > N) p._tail = p._head - N; }
template <typename P> __device__ inline void pipeline_producer_commit(P& p) { p.producer_commit(); }
}
