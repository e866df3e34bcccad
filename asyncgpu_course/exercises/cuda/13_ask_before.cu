// The kernel becomes a function of a block, and another block is the host: as far away as what a fence of the
// device does not reach.
#define __global__ __device__
#define __threadfence __threadfence_block
#define thread_scope_device thread_scope_block
