// The header cuda_bf16.h, as CUDA C++ that the interpreter reads.
//
// A bfloat16 is the upper half of a float, rounded to the nearest (ties to even); its NaN is 0x7fff. Sums,
// products and quotients of two are computed as floats and rounded again, which gives the same bits as one
// rounding does (Figueroa, "When is double rounding innocuous?", 1995). `__hfma` goes by way of double.

__device__ inline unsigned short _bfloat16_bits(unsigned u) {
    if ((u & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
    return (u + 0x7fffu + (u >> 16 & 1u)) >> 16; }
struct __nv_bfloat16 {
    unsigned short bits;
    __device__ __nv_bfloat16() = default;
    __device__ __nv_bfloat16(float v) : bits(_bfloat16_bits(__float_as_uint(v))) {}
    __device__ __nv_bfloat16(double v) {
        double f = (float)v;
        unsigned u = __float_as_uint((float)v);
        if (f != v) u = (u - (fabs(f) > fabs(v))) | 1u;  // rounded to odd, so that it is rounded only once
        bits = _bfloat16_bits(u); }
    __device__ __nv_bfloat16(int v) : __nv_bfloat16((double)v) {}
    __device__ __nv_bfloat16(unsigned v) : __nv_bfloat16((double)v) {}
    __device__ __nv_bfloat16(long long v) : __nv_bfloat16((double)v) {}
    __device__ __nv_bfloat16(unsigned long long v) : __nv_bfloat16((double)v) {}
    __device__ __nv_bfloat16(long v) : __nv_bfloat16((double)v) {}
    __device__ __nv_bfloat16(unsigned long v) : __nv_bfloat16((double)v) {}
    __device__ float value() const { return __uint_as_float((unsigned)bits << 16); }
    __device__ operator float() const { return value(); }
    __device__ __nv_bfloat16 operator-() const { return __nv_bfloat16(-value()); }
};
struct __nv_bfloat162 {
    __nv_bfloat16 x, y;
    __device__ __nv_bfloat162() = default;
    __device__ __nv_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) : x(x), y(y) {}
};
typedef __nv_bfloat16 nv_bfloat16; typedef __nv_bfloat162 nv_bfloat162;

#define ARITHMETIC(name, sign) \
__device__ inline __nv_bfloat16 operator sign(const __nv_bfloat16& a, const __nv_bfloat16& b) { \
    return __nv_bfloat16(a.value() sign b.value()); } \
__device__ inline __nv_bfloat16 name(__nv_bfloat16 a, __nv_bfloat16 b) { return a sign b; } \
__device__ inline __nv_bfloat162 name##2(__nv_bfloat162 a, __nv_bfloat162 b) { \
    return __nv_bfloat162(a.x sign b.x, a.y sign b.y); } \
__device__ inline __nv_bfloat162 operator sign(const __nv_bfloat162& a, const __nv_bfloat162& b) { \
    return name##2(a, b); } \
__device__ inline __nv_bfloat162& operator sign##=(__nv_bfloat162& a, const __nv_bfloat162& b) { \
    a = a sign b; return a; } \
__device__ inline __nv_bfloat16& operator sign##=(__nv_bfloat16& a, const __nv_bfloat16& b) { \
    a = a sign b; return a; }
ARITHMETIC(__hadd, +)
ARITHMETIC(__hsub, -)
ARITHMETIC(__hmul, *)
ARITHMETIC(__hdiv, /)
#define STEP(sign) \
__device__ inline __nv_bfloat16& operator sign##sign(__nv_bfloat16& a) { return a sign##= 1; } \
__device__ inline __nv_bfloat16 operator sign##sign(__nv_bfloat16& a, int) { \
    __nv_bfloat16 before = a; a sign##= 1; return before; }
STEP(+)
STEP(-)
#undef STEP

#define COMPARISON(name, sign) \
__device__ inline bool operator sign(const __nv_bfloat16& a, const __nv_bfloat16& b) { \
    return a.value() sign b.value(); } \
__device__ inline bool name(__nv_bfloat16 a, __nv_bfloat16 b) { return a.value() sign b.value(); }
COMPARISON(__heq, ==)
COMPARISON(__hne, !=)
COMPARISON(__hlt, <)
COMPARISON(__hle, <=)
COMPARISON(__hgt, >)
COMPARISON(__hge, >=)

__device__ inline __nv_bfloat16 __float2bfloat16(float v) { return __nv_bfloat16(v); }
__device__ inline __nv_bfloat16 __float2bfloat16_rn(float v) { return __nv_bfloat16(v); }
__device__ inline __nv_bfloat16 __double2bfloat16(double v) { return __nv_bfloat16(v); }
__device__ inline __nv_bfloat16 __int2bfloat16_rn(int v) { return __nv_bfloat16(v); }
__device__ inline __nv_bfloat16 __uint2bfloat16_rn(unsigned v) { return __nv_bfloat16(v); }
__device__ inline __nv_bfloat16 __short2bfloat16_rn(short v) { return __nv_bfloat16((int)v); }
__device__ inline __nv_bfloat16 __ushort2bfloat16_rn(unsigned short v) { return __nv_bfloat16((int)v); }
__device__ inline float __bfloat162float(__nv_bfloat16 a) { return a.value(); }
__device__ inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 a) { return a.bits; }
__device__ inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short v) {
    __nv_bfloat16 a(0.0f); a.bits = v; return a; }
__device__ inline __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) {
    // The product is exact. The sum is rounded to odd, so that it is rounded only once.
    double p = (double)a.value() * b.value(), z = c.value(), s = p + z, t = s - p;
    double rest = (p - (s - t)) + (z - t);
    long long u = __double_as_longlong(s);
    if (isfinite(s) && rest != 0 && u % 2 == 0) u += (rest > 0) == (s > 0) ? 1 : -1;
    return __nv_bfloat16(__longlong_as_double(u)); }
__device__ inline __nv_bfloat162 __hfma2(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c) {
    return __nv_bfloat162(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)); }
__device__ inline __nv_bfloat16 __hneg(__nv_bfloat16 a) { return -a; }
__device__ inline __nv_bfloat16 __habs(__nv_bfloat16 a) { return __nv_bfloat16(fabsf(a.value())); }
__device__ inline __nv_bfloat16 __hmax(__nv_bfloat16 a, __nv_bfloat16 b) {
    return __nv_bfloat16(fmaxf(a.value(), b.value())); }
__device__ inline __nv_bfloat16 __hmin(__nv_bfloat16 a, __nv_bfloat16 b) {
    return __nv_bfloat16(fminf(a.value(), b.value())); }
#define ROUNDED(name, result) __device__ inline __nv_bfloat16 name(__nv_bfloat16 a) { \
    float x = a.value(); return __nv_bfloat16(result); }
ROUNDED(hfloor, floorf(x))
ROUNDED(hceil, ceilf(x))
ROUNDED(htrunc, truncf(x))
ROUNDED(hrint, rintf(x))
ROUNDED(hsqrt, sqrtf(x))
ROUNDED(hrsqrt, 1.0f / sqrtf(x))
ROUNDED(hrcp, 1.0f / x)
ROUNDED(hexp, expf(x))
ROUNDED(hlog, logf(x))
ROUNDED(hsin, sinf(x))
ROUNDED(hcos, cosf(x))
ROUNDED(htanh, tanhf(x))
__device__ inline bool __hisnan(__nv_bfloat16 a) { return isnan(a.value()); }
__device__ inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) {
    return __nv_bfloat162(a, b); }
__device__ inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 a) { return __nv_bfloat162(a, a); }
__device__ inline __nv_bfloat162 __floats2bfloat162_rn(float a, float b) {
    return __nv_bfloat162(__nv_bfloat16(a), __nv_bfloat16(b)); }
__device__ inline __nv_bfloat162 __float22bfloat162_rn(float2 v) { return __floats2bfloat162_rn(v.x, v.y); }
__device__ inline float2 __bfloat1622float2(__nv_bfloat162 a) {
    return make_float2(a.x.value(), a.y.value()); }
__device__ inline float __low2float(__nv_bfloat162 a) { return a.x.value(); }
__device__ inline float __high2float(__nv_bfloat162 a) { return a.y.value(); }
__device__ inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 a) { return a.x; }
__device__ inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 a) { return a.y; }

__device__ inline __nv_bfloat16 atomicAdd(__nv_bfloat16* at, __nv_bfloat16 v) {
    return __ushort_as_bfloat16(_atomicAddBfloat(&at->bits, v.bits)); }
__device__ inline __nv_bfloat162 atomicAdd(__nv_bfloat162* at, __nv_bfloat162 v) {
    return __nv_bfloat162(atomicAdd(&at->x, v.x), atomicAdd(&at->y, v.y)); }

#undef ARITHMETIC
#undef COMPARISON
#undef ROUNDED
