#include <cuda/atomic>
// Block 0 comes alone, and at each of its fences somebody looks at the gate: nothing orders what it does
// between two of them. An order of `cuda::atomic_ref` is a fence before or behind. A subtraction may come at any
// time: it loses no count.
__device__ unsigned int _gate[2], _begun, _apart;
__device__ void _at_a_fence()
{
    if (atomicAdd(&_gate[0], 0) != 0) return;
    if (_begun == 0) {
        atomicAdd(&_gate[1], 1);  // it may have counted by now, and the others have ended the meeting
    } else if (atomicAdd(&_gate[1], 0) == _begun) {
        _apart = 1;  // the counter is back, and the generation is still the old one
    }
}
template <typename T> __device__ T _lessened(void* place, T by)
{
    if (place == (void*)&_gate[0]) _apart = 1;
    return by;
}
template <typename T> __device__ T _added(void* place, T by)
{
    return (int)by < 0 ? _lessened(place, by) : by;
}
namespace cuda {
__device__ void _fenced(memory_order order, thread_scope scope = thread_scope_system)
{
    atomic_thread_fence(order, scope);
    if (order != memory_order_relaxed && scope < thread_scope_block) _at_a_fence();
}
#define RELEASES if (order != memory_order_acquire) _fenced(order, S)
#define ACQUIRES if (order != memory_order_release) _fenced(order, S)
#define CHANGES(name, call) \
    __device__ T name(T by, memory_order order = memory_order_seq_cst) \
    { \
        RELEASES; \
        T old = _of().call; \
        ACQUIRES; \
        return old; \
    }
template <typename T, thread_scope S = thread_scope_system> struct _watched_ref {
    T* _place;
    __device__ _watched_ref(T& place) : _place(&place) {}
    __device__ atomic_ref<T, S> _of() { return atomic_ref<T, S>(*_place); }
    CHANGES(fetch_add, fetch_add(_added(_place, by), memory_order_relaxed))
    CHANGES(fetch_sub, fetch_sub(_lessened(_place, by), memory_order_relaxed))
    CHANGES(fetch_and, fetch_and(by, memory_order_relaxed))
    CHANGES(exchange, exchange(by, memory_order_relaxed))
    __device__ T load(memory_order order = memory_order_seq_cst)
    {
        T value = _of().load(memory_order_relaxed);
        ACQUIRES;
        return value;
    }
    __device__ void store(T value, memory_order order = memory_order_seq_cst)
    {
        RELEASES;
        _of().store(value, memory_order_relaxed);
    }
    __device__ bool compare_exchange_strong(
        T& old, T next, memory_order order = memory_order_seq_cst, memory_order = memory_order_relaxed)
    {
        RELEASES;
        bool same = _of().compare_exchange_strong(old, next, memory_order_relaxed);
        ACQUIRES;
        return same;
    }
    __device__ bool compare_exchange_weak(
        T& old, T next, memory_order order = memory_order_seq_cst, memory_order = memory_order_relaxed)
    {
        return compare_exchange_strong(old, next, order);
    }
    __device__ operator T() { return load(); }
    __device__ T operator=(T value) { store(value); return value; }
    __device__ T operator+=(T by) { return fetch_add(by) + by; }
    __device__ T operator-=(T by) { return fetch_sub(by) - by; }
    __device__ T operator++() { return fetch_add(1) + 1; }
    __device__ T operator++(int) { return fetch_add(1); }
};
}
#define atomicAdd(place, by) atomicAdd(place, _added(place, by))
#define atomicSub(place, by) atomicSub(place, _lessened(place, by))
#define atomic_ref _watched_ref
#define atomic_thread_fence _fenced
#define __threadfence() (_at_a_fence(), __threadfence())
#define __threadfence_system() (_at_a_fence(), __threadfence_system())
