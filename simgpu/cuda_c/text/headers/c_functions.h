// Names that a GPU's compiler knows by itself, the functions in terms of others.
#define __CUDACC__ 1
#define __CUDACC_RTC__ 1
#define __NVCC__ 1
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 0
#define __LP64__ 1
#define __CUDA_ARCH__ 900
#define __SIMGPU__ 1
#define __cplusplus 201703L
#define __builtin_assume_aligned(pointer, ...) (pointer)
struct cudaExtent { size_t width, height, depth; };
struct cudaPos { size_t x, y, z; };
struct cudaPitchedPtr { void* ptr; size_t pitch, xsize, ysize; };
// Stores that name a cache.
#define ASYNCGPU_STORE(name) template <typename T> __device__ inline void name(T* to, T value) { *to = value; }
ASYNCGPU_STORE(__stwb) ASYNCGPU_STORE(__stcg) ASYNCGPU_STORE(__stcs) ASYNCGPU_STORE(__stwt)
#undef ASYNCGPU_STORE
template <typename T> __device__ inline unsigned __match_all_sync(unsigned names, T value, int* all) {
    *all = __match_any_sync(names, value) == names;
    return *all ? names : 0; }
// A byte that may lie between two members of a struct, so that nobody has written it.
struct _byte { char _value; };
__device__ inline void* memcpy(void* to, const void* from, size_t count) {
    _byte* a = (_byte*)to;
    const _byte* b = (const _byte*)from;
    for (size_t k = 0; k < count; k++) a[k] = b[k];
    return to; }
__device__ inline void* memset(void* to, int value, size_t count) {
    char* a = (char*)to;
    for (size_t k = 0; k < count; k++) a[k] = (char)value;
    return to; }
__device__ inline float modff(float x, float* whole) {
    *whole = truncf(x);
    return copysignf(isinf(x) ? 0.0f : x - *whole, x); }
__device__ inline double modf(double x, double* whole) {
    *whole = trunc(x);
    return copysign(isinf(x) ? 0.0 : x - *whole, x); }
__device__ inline void sincosf(float x, float* sine, float* cosine) { *sine = sinf(x); *cosine = cosf(x); }
__device__ inline void __sincosf(float x, float* sine, float* cosine) { *sine = __sinf(x); *cosine = __cosf(x); }
__device__ inline void sincos(double x, double* sine, double* cosine) { *sine = sin(x); *cosine = cos(x); }
__device__ inline int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
__device__ inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffff) * (b & 0xffffff); }
__device__ inline int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }
__device__ inline int __double2loint(double x) { return (int)__double_as_longlong(x); }
__device__ inline double __hiloint2double(int high, int low) {
    return __longlong_as_double((long long)high << 32 | (unsigned)low); }
__device__ inline float scalbnf(float x, int by) { return ldexpf(x, by); }
__device__ inline double scalbn(double x, int by) { return ldexp(x, by); }
// The exponent of a number, 0 for one that has none; subnormal numbers are scaled first.
__device__ inline int _exponent(float x) {
    float a = fabsf(x), most = __int_as_float(0x7f7fffff), least = __int_as_float(0x00800000);
    if (!(a > 0.0f && a <= most)) return 0;
    if (a < least) return (int)(__float_as_uint(a * 16777216.0f) >> 23) - 127 - 24;
    return (int)(__float_as_uint(a) >> 23) - 127; }
__device__ inline float frexpf(float x, int* by) {
    int e = x == 0.0f || isnan(x) || isinf(x) ? 0 : _exponent(x) + 1;
    *by = e;
    return ldexpf(ldexpf(x, -e / 2), -e - -e / 2); }
__device__ inline int ilogbf(float x) {
    if (isnan(x) || x == 0.0f) return -2147483647 - 1;
    return isinf(x) ? 2147483647 : _exponent(x); }
__device__ inline float logbf(float x) {
    if (isnan(x)) return x;
    if (x == 0.0f) return __int_as_float(0xff800000);
    return isinf(x) ? fabsf(x) : (float)_exponent(x); }
__device__ inline float norm3df(float a, float b, float c) {
    return (float)sqrt((double)a * a + (double)b * b + (double)c * c); }
__device__ inline float norm4df(float a, float b, float c, float d) {
    return (float)sqrt((double)a * a + (double)b * b + (double)c * c + (double)d * d); }
__device__ inline float rnorm3df(float a, float b, float c) {
    return (float)(1.0 / sqrt((double)a * a + (double)b * b + (double)c * c)); }
__device__ inline float rhypotf(float a, float b) {
    return (float)(1.0 / sqrt((double)a * a + (double)b * b)); }
__device__ inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    unsigned long long al = a & 0xffffffffull, ah = a >> 32, bl = b & 0xffffffffull, bh = b >> 32;
    unsigned long long middle = ah * bl + (al * bl >> 32);
    unsigned long long other = al * bh + (middle & 0xffffffffull);
    return ah * bh + (middle >> 32) + (other >> 32); }
__device__ inline long long __mul64hi(long long a, long long b) {
    unsigned long long high = __umul64hi((unsigned long long)a, (unsigned long long)b);
    return (long long)(high - (a < 0 ? (unsigned long long)b : 0ull) - (b < 0 ? (unsigned long long)a : 0ull)); }
__device__ inline unsigned __sad(int a, int b, unsigned c) {
    return (a > b ? (unsigned)a - (unsigned)b : (unsigned)b - (unsigned)a) + c; }
__device__ inline unsigned __usad(unsigned a, unsigned b, unsigned c) { return (a > b ? a - b : b - a) + c; }
__device__ inline int __hadd(int a, int b) { return (a & b) + ((a ^ b) >> 1); }
__device__ inline int __rhadd(int a, int b) { return (a | b) - ((a ^ b) >> 1); }
__device__ inline unsigned __uhadd(unsigned a, unsigned b) { return (a & b) + ((a ^ b) >> 1); }
__device__ inline unsigned __urhadd(unsigned a, unsigned b) { return (a | b) - ((a ^ b) >> 1); }
__device__ inline int __dp2a_lo(int a, int b, int c) {
    return (int)((unsigned)((short)a * (signed char)b) + (unsigned)((a >> 16) * (signed char)(b >> 8)) + (unsigned)c); }
__device__ inline int __dp2a_hi(int a, int b, int c) { return __dp2a_lo(a, b >> 16, c); }
__device__ inline unsigned __dp2a_lo(unsigned a, unsigned b, unsigned c) {
    return (a & 0xffff) * (b & 0xff) + (a >> 16) * (b >> 8 & 0xff) + c; }
__device__ inline unsigned __dp2a_hi(unsigned a, unsigned b, unsigned c) { return __dp2a_lo(a, b >> 16, c); }
__device__ inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned by) {
    return by >= 32 ? low : __funnelshift_l(low, high, by); }
__device__ inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned by) {
    return by >= 32 ? high : __funnelshift_r(low, high, by); }
