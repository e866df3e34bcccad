// One result a thread, in the ways that people write it.

extern "C" __global__ void saxpy(int n, float a, const float* __restrict__ x, float* __restrict__ y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void saxpy_stride(int n, float a, const float* x, float* y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        y[i] += a * x[i];
}

extern "C" __global__ void saxpy_vec4(int n, float a, const float* x, float* y) {
    const float4* xv = reinterpret_cast<const float4*>(x);
    float4* yv = reinterpret_cast<float4*>(y);
    int stride = blockDim.x * gridDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 4; i += stride) {
        float4 p = xv[i], q = yv[i];
        q.x += a * p.x; q.y += a * p.y; q.z += a * p.z; q.w += a * p.w;
        yv[i] = q;
    }
    int tail = n / 4 * 4 + blockIdx.x * blockDim.x + threadIdx.x;
    if (tail < n) y[tail] += a * x[tail];
}

__device__ __forceinline__ float gelu_of(float v) {
    const float c = 0.7978845608f;
    return 0.5f * v * (1.0f + tanhf(c * (v + 0.044715f * v * v * v)));
}
extern "C" __global__ void gelu(float* x, size_t n) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    x[i] = gelu_of(x[i]);
}

extern "C" __global__ void clamp_bytes(const float* in, unsigned char* out, int n) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = in[i];
        out[i] = v < 0.0f ? 0 : (v > 255.0f ? 255 : (unsigned char)(v + 0.5f));
    }
}

extern "C" __global__ void grey(const uchar4* rgba, unsigned char* out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    uchar4 p = rgba[y * w + x];
    out[y * w + x] = (unsigned char)((77 * p.x + 150 * p.y + 29 * p.z) >> 8);
}

extern "C" __global__ void mandelbrot(int* out, int w, int h, int limit) {
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= w || py >= h) return;
    double cx = -2.0 + 3.0 * px / w, cy = -1.0 + 2.0 * py / h, x = 0, y = 0;
    int k = 0;
    while (x * x + y * y <= 4.0 && k < limit) {
        double t = x * x - y * y + cx;
        y = 2.0 * x * y + cy;
        x = t;
        ++k;
    }
    out[py * w + px] = k;
}

struct Complex { float re, im; };
__device__ Complex operator_mul(Complex a, Complex b) {
    Complex c;
    c.re = a.re * b.re - a.im * b.im;
    c.im = a.re * b.im + a.im * b.re;
    return c;
}
extern "C" __global__ void complex_mul(const Complex* a, const Complex* b, Complex* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = operator_mul(a[i], b[i]);
}

__constant__ float poly[5] = {1.0f, -0.5f, 0.25f, -0.125f, 0.0625f};
extern "C" __global__ void horner(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = x[i], s = poly[4];
        #pragma unroll
        for (int k = 3; k >= 0; --k) s = s * v + poly[k];
        x[i] = s;
    }
}

template <typename T> __global__ void fill_value(T* x, T value, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] = value;
}
