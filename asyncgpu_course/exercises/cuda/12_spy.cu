// To sleep is to go round a loop, which is counted; and so are fences, those that an order of an atomic stands
// for, too. One for the whole system counts as 64.
#include <cuda/atomic>
enum Poll { PENDING, READY };
__device__ int _fences, _naps;
__device__ void _nap() { for (int k = 0; k < 40; k++) atomicAdd(&_naps, 1); }
#define __nanosleep(...) _nap()
#define __threadfence() (void)(_fences += 1)
#define __threadfence_system() (void)(_fences += 64)
namespace cuda {
__device__ inline void _noted_fence(memory_order order, thread_scope scope = thread_scope_system) {
    if (order != memory_order_relaxed) _fences += scope == thread_scope_system ? 64 : 1; }
__device__ inline void _of(memory_order order, thread_scope scope) {
    bool both = order == memory_order_acq_rel || order == memory_order_seq_cst;
    _fences += (order != memory_order_relaxed) + both + (scope == thread_scope_system ? 64 : 0); }
template <typename T, thread_scope S = thread_scope_system> struct _noted_ref {
    T* _place;
    __device__ _noted_ref(T& place) : _place(&place) {}
    __device__ T load(memory_order o = memory_order_seq_cst) const { _of(o, S); return *_place; }
    __device__ void store(T x, memory_order o = memory_order_seq_cst) const { _of(o, S); *_place = x; }
    __device__ T exchange(T x, memory_order o = memory_order_seq_cst) const { _of(o, S); return atomicExch(_place, x); }
    __device__ T fetch_add(T x, memory_order o = memory_order_seq_cst) const { _of(o, S); return atomicAdd(_place, x); }
    __device__ T fetch_sub(T x, memory_order o = memory_order_seq_cst) const { _of(o, S); return atomicAdd(_place, (T)-x); }
    __device__ T fetch_and(T x, memory_order o = memory_order_seq_cst) const { _of(o, S); return atomicAnd(_place, x); }
    __device__ T fetch_or(T x, memory_order o = memory_order_seq_cst) const { _of(o, S); return atomicOr(_place, x); }
    __device__ T fetch_xor(T x, memory_order o = memory_order_seq_cst) const { _of(o, S); return atomicXor(_place, x); }
    __device__ T fetch_min(T x, memory_order o = memory_order_seq_cst) const { _of(o, S); return atomicMin(_place, x); }
    __device__ T fetch_max(T x, memory_order o = memory_order_seq_cst) const { _of(o, S); return atomicMax(_place, x); }
    __device__ bool compare_exchange_strong(T& expected, T x, memory_order o, memory_order failed) const {
        T old = atomicCAS(_place, expected, x);
        bool same = old == expected;
        _of(same ? o : failed, S);
        expected = old;
        return same;
    }
    __device__ bool compare_exchange_strong(T& expected, T x, memory_order o = memory_order_seq_cst) const {
        return compare_exchange_strong(expected, x, o, o); }
    __device__ bool compare_exchange_weak(T& expected, T x, memory_order o, memory_order failed) const {
        return compare_exchange_strong(expected, x, o, failed); }
    __device__ bool compare_exchange_weak(T& expected, T x, memory_order o = memory_order_seq_cst) const {
        return compare_exchange_strong(expected, x, o, o); }
    __device__ operator T() const { return load(); }
    __device__ T operator=(T x) { store(x); return x; }
};
}
#define atomic_ref _noted_ref
#define atomic_thread_fence _noted_fence
