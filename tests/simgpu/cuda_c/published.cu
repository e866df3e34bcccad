#include <cstdio>
#include <vector>
#include <cuda_runtime.h>
#include "helper_cuda.h"
using namespace std;
#define N 8
#define CHECK(call) \
    do { cudaError_t e = call; if (e != cudaSuccess) exit(1); } while (0)
#define HD __host__ __device__ inline
typedef struct { float x, y; } Point;
struct Timer { cudaEvent_t start; Timer() { cudaEventCreate(&start); } };
enum Mode { ADD, SUB };
const int SCALE = 3;
const char* names[] = {"a", "b"};
float *h_a, *h_b;
int total = 0;
__constant__ float table[2] = {1.0f, 2.0f};

HD float half_of(float v) { return v * 0.5f; }
static float reference(const std::vector<float>& v) { return v[0]; }
template <typename T> void print(const T& t) { std::cout << t << "it's"; }

#ifdef WIDE
typedef double real;
#else
typedef float real;
#endif

namespace kernels {
template <typename T, int K = SCALE>
__global__ void __launch_bounds__(256) scale(T* x, real y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Point p = {table[1], half_of(y)};
    if (i < n) x[i] = x[i] * K + p.x * p.y;
}
}

extern "C" {
__global__ void add(float* x, int n) { int i = threadIdx.x; if (i < N && i < n) x[i] += SCALE; }
}
template __global__ void kernels::scale<float, 3>(float*, float, int);

int main(int argc, char** argv) {
    std::vector<float> v(N);
    float* d;
    CHECK(cudaMalloc(&d, N * sizeof(float)));
#ifdef VERBOSE
    printf("it's {");
#endif
    kernels::scale<float><<<1, N>>>(d, 2.0f, N);
    auto f = [](int i) { return i; };
    CHECK(cudaDeviceSynchronize());
}
