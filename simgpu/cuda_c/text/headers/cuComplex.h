// The header cuComplex.h, as CUDA C++ that the interpreter reads: a complex number is a float2 or a double2.
//
// Products and sums are the textbook's. Quotients and absolute values are scaled, so that they overflow only
// where their result does (CUDA's own header says so of its functions; NVIDIA, cuComplex.h).
#define COMPLEX(Complex, Pair, T, f) \
typedef Pair Complex; \
__device__ inline Complex make_##Complex(T re, T im) { Complex z; z.x = re; z.y = im; return z; } \
__device__ inline T cuCreal##f(Complex z) { return z.x; } \
__device__ inline T cuCimag##f(Complex z) { return z.y; } \
__device__ inline Complex cuConj##f(Complex z) { return make_##Complex(z.x, -z.y); } \
__device__ inline Complex cuCadd##f(Complex a, Complex b) { return make_##Complex(a.x + b.x, a.y + b.y); } \
__device__ inline Complex cuCsub##f(Complex a, Complex b) { return make_##Complex(a.x - b.x, a.y - b.y); } \
__device__ inline Complex cuCmul##f(Complex a, Complex b) { \
    return make_##Complex(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); } \
__device__ inline Complex cuCdiv##f(Complex a, Complex b) { \
    T one = 1 / (fabs(b.x) + fabs(b.y)); \
    T ar = a.x * one, ai = a.y * one, br = b.x * one, bi = b.y * one; \
    T length = 1 / (br * br + bi * bi); \
    return make_##Complex((ar * br + ai * bi) * length, (ai * br - ar * bi) * length); } \
__device__ inline T cuCabs##f(Complex z) { \
    T a = fabs(z.x), b = fabs(z.y), large = a > b ? a : b, small = a > b ? b : a; \
    if (large == 0 || isinf(large) || isinf(small)) return large + small; \
    T part = small / large; \
    return large * sqrt(1 + part * part); } \
__device__ inline Complex cuCfma##f(Complex a, Complex b, Complex c) { \
    return make_##Complex(a.x * b.x + c.x - a.y * b.y, a.x * b.y + c.y + a.y * b.x); }
COMPLEX(cuFloatComplex, float2, float, f)
COMPLEX(cuDoubleComplex, double2, double, )
#undef COMPLEX
typedef cuFloatComplex cuComplex;
__device__ inline cuComplex make_cuComplex(float re, float im) { return make_cuFloatComplex(re, im); }
__device__ inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex z) {
    return make_cuDoubleComplex(z.x, z.y); }
__device__ inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex z) {
    return make_cuFloatComplex(z.x, z.y); }
