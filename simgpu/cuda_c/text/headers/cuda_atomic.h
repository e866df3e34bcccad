// The header cuda/atomic, as CUDA C++ that the interpreter reads.
//
// An operation is the function of CUDA C of its scope, with the fences that its order stands for: a release is
// a fence and then a strong write, an acquire a strong read and then a fence (PTX ISA, "Memory Consistency
// Model", Release and Acquire Patterns). Of thread scope it is a plain read and write: one thread's own matter.

namespace cuda {
enum class memory_order { relaxed, consume, acquire, release, acq_rel, seq_cst };
const memory_order memory_order_relaxed = memory_order::relaxed, memory_order_consume = memory_order::consume;
const memory_order memory_order_acquire = memory_order::acquire, memory_order_release = memory_order::release;
const memory_order memory_order_acq_rel = memory_order::acq_rel, memory_order_seq_cst = memory_order::seq_cst;
enum thread_scope { thread_scope_system, thread_scope_device, thread_scope_block, thread_scope_thread };

// A fence that only acquires publishes nothing, and one that only releases learns nothing.
#define CUDA_FENCE(order) \
    if (scope == thread_scope_block) { __fence_##order##_block(); } \
    else if (scope == thread_scope_device) { __fence_##order##_device(); } else { __fence_##order##_system(); }
__device__ inline void atomic_thread_fence(memory_order order, thread_scope scope = thread_scope_system) {
    if (order == memory_order_relaxed || scope == thread_scope_thread) return;
    if (order == memory_order_release) { CUDA_FENCE(release) }
    else if (order == memory_order_acq_rel) { CUDA_FENCE(acq_rel) }
    else if (order == memory_order_seq_cst) { CUDA_FENCE(seq_cst) } else { CUDA_FENCE(acquire) } }
// The fence in front of a write that releases, and what makes a read acquire. For seq_cst these are fence.sc and
// then st.relaxed, ld.acquire or atom.acquire (PTX Writer's Guide to Interoperability, "Atomics ABI").
template <thread_scope S> __device__ inline void _releasing(memory_order order) {
    if (order == memory_order_release || order == memory_order_acq_rel || order == memory_order_seq_cst)
        atomic_thread_fence(order == memory_order_acq_rel ? memory_order_release : order, S); }
template <thread_scope S> __device__ inline void _acquiring(memory_order order) {
    const thread_scope scope = S;
    if (S != thread_scope_thread && order != memory_order_relaxed && order != memory_order_release) {
        CUDA_FENCE(acquired) } }

#define CUDA_ATOMIC_FETCH(name, function, T, becomes) \
    __device__ T name(T by, memory_order order = memory_order_seq_cst) const { \
        _releasing<S>(order); \
        T old; \
        if constexpr (S == thread_scope_block) { old = function##_block(_at(), by); } \
        else if constexpr (S == thread_scope_thread) { old = *_at(); *_at() = becomes; } \
        else { old = function(_at(), by); } \
        _acquiring<S>(order); \
        return old; }
#define CUDA_ATOMIC_MEMBERS(T) \
    __device__ T load(memory_order order = memory_order_seq_cst) const { \
        if (order == memory_order_seq_cst) _releasing<S>(order); \
        T value; \
        if constexpr (S == thread_scope_block) { value = atomicAdd_block(_at(), (T)0); } \
        else if constexpr (S == thread_scope_thread) { value = *_at(); } \
        else { value = *(volatile T*)_at(); } \
        _acquiring<S>(order); \
        return value; } \
    __device__ void store(T value, memory_order order = memory_order_seq_cst) const { \
        _releasing<S>(order); \
        if constexpr (S == thread_scope_thread) { *_at() = value; } else { *(volatile T*)_at() = value; } } \
    __device__ bool compare_exchange_strong(T& expected, T value, memory_order order = memory_order_seq_cst) const { \
        return compare_exchange_strong(expected, value, order, order); } \
    __device__ bool compare_exchange_strong(T& expected, T value, memory_order order, memory_order failed) const { \
        _releasing<S>(order); \
        T old; \
        if constexpr (S == thread_scope_block) { old = atomicCAS_block(_at(), expected, value); } \
        else if constexpr (S == thread_scope_thread) { old = *_at(); if (old == expected) *_at() = value; } \
        else { old = atomicCAS(_at(), expected, value); } \
        bool same = old == expected; \
        _acquiring<S>(same ? order : failed); \
        expected = old; \
        return same; } \
    __device__ bool compare_exchange_weak(T& expected, T value, memory_order order = memory_order_seq_cst) const { \
        return compare_exchange_strong(expected, value, order, order); } \
    __device__ bool compare_exchange_weak(T& expected, T value, memory_order order, memory_order failed) const { \
        return compare_exchange_strong(expected, value, order, failed); } \
    __device__ void wait(T old, memory_order order = memory_order_seq_cst) const { while (load(order) == old) { } } \
    __device__ void notify_one() const { } \
    __device__ void notify_all() const { } \
    __device__ bool is_lock_free() const { return true; } \
    CUDA_ATOMIC_FETCH(exchange, atomicExch, T, by) CUDA_ATOMIC_FETCH(fetch_add, atomicAdd, T, old + by) \
    CUDA_ATOMIC_FETCH(fetch_and, atomicAnd, T, old & by) CUDA_ATOMIC_FETCH(fetch_or, atomicOr, T, old | by) \
    CUDA_ATOMIC_FETCH(fetch_xor, atomicXor, T, old ^ by) CUDA_ATOMIC_FETCH(fetch_min, atomicMin, T, old < by ? old : by) \
    CUDA_ATOMIC_FETCH(fetch_max, atomicMax, T, old > by ? old : by) \
    __device__ T fetch_sub(T by, memory_order order = memory_order_seq_cst) const { return fetch_add((T)-by, order); } \
    __device__ operator T() const { return load(); } \
    __device__ T operator=(T value) { store(value); return value; } \
    __device__ T operator+=(T by) { return fetch_add(by) + by; } \
    __device__ T operator-=(T by) { return fetch_sub(by) - by; } \
    __device__ T operator++() { return fetch_add((T)1) + (T)1; } \
    __device__ T operator++(int) { return fetch_add((T)1); } \
    __device__ T operator--() { return fetch_sub((T)1) - (T)1; } \
    __device__ T operator--(int) { return fetch_sub((T)1); }

template <typename T, thread_scope S = thread_scope_system> struct atomic_ref {
    T* _place;
    __device__ atomic_ref(T& place) : _place(&place) {}
    __device__ T* _at() const { return _place; }
    CUDA_ATOMIC_MEMBERS(T)
};
template <typename T, thread_scope S = thread_scope_system> struct atomic {
    T _value;
    __device__ T* _at() const { return (T*)&_value; }
    CUDA_ATOMIC_MEMBERS(T)
};
}
