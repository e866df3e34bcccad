#include <cuda/atomic>
// Block 0 comes alone, and looks at the gate at each of its fences: nothing orders what it does between two.
__device__ unsigned int _gate[2], _begun, _apart;
__device__ unsigned int _fence(cuda::memory_order order = cuda::memory_order_seq_cst)
{
    if (order == cuda::memory_order_relaxed) return 0;
    if (_begun == 0 && atomicAdd(&_gate[0], 0) == 0) {
        // It has not counted. As far as the model goes it may, and then the others may end the meeting.
        atomicAdd(&_gate[1], 1);
    } else if (_begun > 0 && atomicAdd(&_gate[0], 0) == 0 && atomicAdd(&_gate[1], 0) == _begun) {
        _apart = 1;
    }
    return 0;
}
#define __threadfence() (_fence(), __threadfence())
#define __threadfence_system() (_fence(), __threadfence_system())
#define atomic_thread_fence(...) atomic_thread_fence(__VA_ARGS__), _fence()
#define load(...) load(__VA_ARGS__) + _fence(__VA_ARGS__)
#define store(next, ...) store((next) + _fence(__VA_ARGS__), ##__VA_ARGS__)
#define fetch_add(more, ...) fetch_add((more) + _fence(__VA_ARGS__), ##__VA_ARGS__)
