// What cuda_fp16.h has beside the functions of `builtins/halves.py`. CUDA promises no more of a pair than that each
// of its two numbers is added at once.
__device__ inline half2 atomicAdd(half2* at, half2 v) {
    return make_half2(atomicAdd((half*)at, v.x), atomicAdd((half*)at + 1, v.y)); }
// The half on the side of zero, or below, or above: the nearest one, or its neighbour.
__device__ inline half __float2half_rz(float v) {
    half h = __float2half(v);
    return fabsf((float)h) > fabsf(v) ? __ushort_as_half(__half_as_ushort(h) - 1) : h; }
__device__ inline half __float2half_rd(float v) {
    half h = __float2half(v);
    unsigned short b = __half_as_ushort(h);
    return (float)h > v ? __ushort_as_half(b == 0 ? 0x8001 : b & 0x8000 ? b + 1 : b - 1) : h; }
__device__ inline half __float2half_ru(float v) {
    half h = __float2half(v);
    unsigned short b = __half_as_ushort(h);
    return (float)h < v ? __ushort_as_half(b == 0x8000 ? 1 : b & 0x8000 ? b - 1 : b + 1) : h; }
__device__ inline half __hadd(half a, half b) { return a + b; }  // beside that of whole numbers
#define ARITHMETIC(sign, name) \
__device__ inline half2 operator sign(half2 a, half2 b) { return name(a, b); } \
__device__ inline half2& operator sign##=(half2& a, half2 b) { a = name(a, b); return a; }
ARITHMETIC(+, __hadd2)
ARITHMETIC(-, __hsub2)
ARITHMETIC(*, __hmul2)
ARITHMETIC(/, __h2div)
#undef ARITHMETIC
