// Numbers of cuRAND's generators, as kernels draw them.
#include <curand_kernel.h>

extern "C" __global__ void xorwow_numbers(unsigned long long seed, unsigned int* o) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    curandState state;
    curand_init(seed, i, 3 * i, &state);
    for (int k = 0; k < 4; k++) o[4 * i + k] = curand(&state);
}

extern "C" __global__ void philox_numbers(unsigned long long seed, unsigned int* o) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    curandStatePhilox4_32_10_t state;
    curand_init(seed, i, i % 5, &state);
    uint4 four = curand4(&state);
    o[4 * i] = four.x;
    o[4 * i + 1] = four.y;
    o[4 * i + 2] = four.z;
    o[4 * i + 3] = four.w;
}

extern "C" __global__ void uniform_numbers(curandState* states, float* o, double* d) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    curand_init(7, i, 0, &states[i]);
    curandState state = states[i];
    o[i] = curand_uniform(&state);
    d[i] = curand_uniform_double(&state);
    states[i] = state;
}

extern "C" __global__ void normal_numbers(float* o) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    curandStatePhilox4_32_10_t state;
    curand_init(7, i, 0, &state);
    o[i] = curand_normal(&state) + curand_normal(&state);
}
