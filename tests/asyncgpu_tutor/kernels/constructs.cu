// Constructs of published files, a kernel for each; `test_published_constructs.py` says what each makes of 0 to 31.
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <limits>
#include <type_traits>
#if CUDART_VERSION < 12000
#error "a version of the runtime is known"
#endif

template <typename T> struct Sum { __device__ T operator()(T a, T b) const { return a + b; } };
template <template <typename> class Op, typename T> __device__ T fold(T a) { return Op<T>()(a, T(2)); }
extern "C" __global__ void template_as_parameter(float* x) {
    int i = threadIdx.x;
    x[i] = fold<Sum>(x[i]) + fold<Sum, int>(3);
}
extern "C" __global__ void union_without_a_name(float* x) {
    union { float f; unsigned u; unsigned char b[4]; };
    f = x[threadIdx.x];
    x[threadIdx.x] = (u >> 23) + b[3];
}
extern "C" __global__ void atomic_sums_of_16_bits(float* x) {
    __shared__ half2 h;
    __shared__ __nv_bfloat162 b;
    __shared__ __nv_bfloat16 c;
    if (threadIdx.x == 0) { h = __floats2half2_rn(0, 0); b = __floats2bfloat162_rn(0, 0); c = 1.0f; }
    __syncthreads();
    atomicAdd(&h, __floats2half2_rn(1, 2));
    atomicAdd(&b, __floats2bfloat162_rn(4, 0));
    atomicAdd(&c, __float2bfloat16(1.0f));
    __syncthreads();
    __nv_bfloat162 d = b;
    d += d;
    x[threadIdx.x] = __low2float(h) + __high2float(h) + __low2float(d) + __bfloat162float(c);
}
extern "C" __global__ void half_and_number(float* x) {
    half h = x[threadIdx.x];
    h += 1;
    h *= 0.5f;
    x[threadIdx.x] = (float)h;
}
constexpr long long most = std::numeric_limits<int>::max();
template <typename T> __device__ std::decay_t<T> next(T a) { return a + 1; }
extern "C" __global__ void types_and_constants_of_std(float* x) {
    const float y = x[threadIdx.x];
    x[threadIdx.x] = next(y) + most % 1000 + std::is_same_v<std::decay_t<float&>, float>;
}
struct P { int a; __device__ operator int() const { return a; } };
struct V { float x; __device__ V(float x) : x(x) {} };
__device__ V operator*(V a, float b) { return V(a.x * b + 1); }
extern "C" __global__ void one_conversion_and_not_two(float* x) {
    P p{(int)threadIdx.x};
    V v(x[threadIdx.x]);
    x[threadIdx.x] = p * 10 + (v * 2).x;
}
template <typename T> __device__ T one();
template <> __device__ float one() { return 1; }
template <> __device__ int one<int>() { return 2; }
template <typename T> __device__ T three(T a) { return a * 3; }
#define INSTANCE(T) template __device__ T three<T>(T);
INSTANCE(float)
extern "C" __global__ void specialised_functions(float* x) {
    x[threadIdx.x] = three(x[threadIdx.x]) + one<float>() + one<int>();
}
extern "C" __global__ void padding_that_is_copied(float* x) {
    struct Mixed { char c; float f; } a = {1, x[threadIdx.x]}, b;
    memcpy(&b, &a, sizeof(Mixed));
    x[threadIdx.x] = b.f + b.c;
}

// Several kernels of one name.
template <typename T> __global__ void k(T* x) { x[0] = 1; }
template <> __global__ void k<int>(int* x) { x[0] = 2; }
template <> __global__ void k(double* x) { x[0] = 3; }
__global__ void two(float* x) { x[0] = 4; }
__global__ void two(int* x) { x[0] = 5; }
template <int N> __global__ void three(float* x) { x[0] = N; }
template <int N> __global__ void three(int* x) { x[0] = N + 1; }
namespace a { __global__ void k2(int* x) { x[0] = 8; } }
namespace b { __global__ void k2(int* x) { x[0] = 9; } }
template <typename T> __global__ void odd(T* x) { x[0] = not_there }
