extern "C" __global__ void fill(float* y, float value) { y[threadIdx.x] = value; }
extern "C" __global__ void twice(float* y, const float* x) { y[threadIdx.x] = 2.0f * x[threadIdx.x]; }
extern "C" __global__ void more(float* y) { y[threadIdx.x] += 1.0f; }
extern "C" __global__ void plus(float* z, const float* x, const float* y) {
    z[threadIdx.x] = x[threadIdx.x] + y[threadIdx.x];
}
extern "C" __global__ void fill_part(float* y, float value, int first) {
    if (threadIdx.x < 32) y[first + threadIdx.x] = value;
}
extern "C" __global__ void count(int* total, const float* x) {
    if (x[threadIdx.x] > 0.5f) atomicAdd(total, 1);
}
extern "C" __global__ void stray(float* y) { y[threadIdx.x + 1] = 1.0f; }
