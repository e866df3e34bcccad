// What cuda_fp16.h has beside the functions of `builtins/halves.py`. CUDA promises no more of a pair than that each
// of its two numbers is added at once.
__device__ inline half2 atomicAdd(half2* at, half2 v) {
    return make_half2(atomicAdd((half*)at, v.x), atomicAdd((half*)at + 1, v.y)); }
