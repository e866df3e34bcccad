// What CUDA C has and C++ has not, for one OS thread: each CUDA thread is a coroutine (ucontext) that
// gives way at barriers and warp functions. Only for the differential tests.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <math.h>
#include <ucontext.h>

#define __global__ static
#define __device__
#define __shared__ static

struct uint3 { unsigned x, y, z; };
struct dim3 { unsigned x = 1, y = 1, z = 1; };
template <class T> struct alignas(16) V4 { T x, y, z, w; };
using float4 = V4<float>;
struct float2 { float x, y; };
struct double2 { double x, y; };
static inline float4 make_float4(float a, float b, float c, float d) { return {a, b, c, d}; }

static uint3 threadIdx, blockIdx;
static dim3 blockDim, gridDim;

#define EXTREMES(T) \
    static inline T max(T a, T b) { return a > b ? a : b; } \
    static inline T min(T a, T b) { return a < b ? a : b; }
EXTREMES(int) EXTREMES(unsigned) EXTREMES(long long) EXTREMES(unsigned long long)
static inline double max(double a, double b) { return fmax(a, b); }
static inline double min(double a, double b) { return fmin(a, b); }
static inline int __popc(unsigned v) { return __builtin_popcount(v); }
static inline int __clz(int v) { return v ? __builtin_clz(v) : 32; }
static inline int __ffs(int v) { return __builtin_ffs(v); }
static inline unsigned __brev(unsigned v) {
    unsigned r = 0;
    for (int k = 0; k < 32; k++) r |= (v >> k & 1u) << (31 - k);
    return r;
}
static inline int __mulhi(int a, int b) { return (int)(((long long)a * b) >> 32); }
static inline unsigned __umulhi(unsigned a, unsigned b) {
    return (unsigned)(((unsigned long long)a * b) >> 32);
}
static inline int __float_as_int(float v) {  // a NaN as a GPU makes it
    int i;
    memcpy(&i, &v, 4);
    return v != v ? 0x7fffffff : i;
}
// A GPU takes +0 for greater than -0; C leaves it open.
static inline float gpu_fmax(float a, float b) { return a == 0 && b == 0 ? a + b : fmaxf(a, b); }
static inline float gpu_fmin(float a, float b) { return a == 0 && b == 0 ? -(-a + -b) : fminf(a, b); }
#define fmaxf gpu_fmax
#define fminf gpu_fmin
static inline float gpu_copysign(float a, float b) { return b != b ? fabsf(a) : copysignf(a, b); }
#define copysignf gpu_copysign
static inline float max(float a, float b) { return fmaxf(a, b); }
static inline float min(float a, float b) { return fminf(a, b); }

// Numbers of 16 bits: sums, products and quotients are those of floats, rounded again.
static uint16_t half_bits(float v, bool down = false) {
    double a = fabs((double)v);
    uint16_t sign = signbit(v) ? 0x8000 : 0;
    if (v != v) return 0x7fff;
    if (a >= 65520 || (down && a >= 65536)) return sign | (down && a != INFINITY ? 0x7bff : 0x7c00);
    int last = a < 6.103515625e-05 ? -24 : ilogb(a) - 10;  // the power of two of the last bit
    double units = ldexp(a, -last);
    return sign | (uint16_t)((last + 24) * 1024 + (down ? floor(units) : rint(units)));
}
static float half_value(uint16_t b) {
    int low = b & 1023, e = b >> 10 & 31;
    float v = e == 31 ? (low ? NAN : INFINITY) : e ? ldexpf(1024 + low, e - 25) : ldexpf(low, -24);
    return b & 0x8000 ? -v : v;
}
static uint16_t bfloat_bits(float v) {
    uint32_t u;
    memcpy(&u, &v, 4);
    return v != v ? 0x7fff : (u + 0x7fff + (u >> 16 & 1)) >> 16;
}
static float bfloat_value(uint16_t b) {
    uint32_t u = (uint32_t)b << 16;
    float v;
    memcpy(&v, &u, 4);
    return v;
}
#define OPERATOR(T, op, name) \
    static T operator op(T a, T b) { return T(value(a) op value(b)); } \
    static T& operator op##=(T& a, T b) { return a = a op b; } \
    static T name(T a, T b) { return a op b; }
#define COMPARE(T, op) static bool operator op(T a, T b) { return value(a) op value(b); }
#define SMALL(T, pack, unpack, as_bits) \
    struct T { uint16_t bits; T() = default; explicit T(float v) : bits(pack(v)) {} }; \
    static float value(T a) { return unpack(a.bits); } \
    OPERATOR(T, +, __hadd) OPERATOR(T, -, __hsub) OPERATOR(T, *, __hmul) OPERATOR(T, /, __hdiv) \
    COMPARE(T, <) COMPARE(T, >) COMPARE(T, <=) COMPARE(T, >=) COMPARE(T, ==) COMPARE(T, !=) \
    static T operator-(T a) { return T(-value(a)); } \
    static T __habs(T a) { return T(fabsf(value(a))); } \
    static T __hmax(T a, T b) { return T(max(value(a), value(b))); } \
    static T __hmin(T a, T b) { return T(min(value(a), value(b))); } \
    static T hsqrt(T a) { return T(sqrtf(value(a))); } \
    static T hfloor(T a) { return T(floorf(value(a))); } \
    static bool __hisnan(T a) { return isnan(value(a)); } \
    static unsigned short as_bits(T a) { return a.bits; }
SMALL(half, half_bits, half_value, __half_as_ushort)
SMALL(__nv_bfloat16, bfloat_bits, bfloat_value, __bfloat16_as_ushort)
static half __float2half(float v) { return half(v); }
static half __float2half_rz(float v) { half h; h.bits = half_bits(v, true); return h; }
static half __int2half_rn(int v) { return half(fmax(-1e6, fmin(1e6, v))); }
static float __half2float(half a) { return value(a); }
static __nv_bfloat16 __float2bfloat16(float v) { return __nv_bfloat16(v); }
static float __bfloat162float(__nv_bfloat16 a) { return value(a); }
static int saturated(double v) { return v != v ? 0 : (int)fmax(-2147483648.0, fmin(2147483647.0, v)); }
static int __half2int_rz(half a) { return saturated(trunc(value(a))); }
static int __half2int_rn(half a) { return saturated(rint(value(a))); }

template <class T, class U> static T atomicAdd(T* p, U v) { T old = *p; *p = old + (T)v; return old; }
template <class T, class U> static T atomicMax(T* p, U v) { T old = *p; *p = max(old, (T)v); return old; }
template <class T, class U> static T atomicMin(T* p, U v) { T old = *p; *p = min(old, (T)v); return old; }
template <class T, class U> static T atomicAnd(T* p, U v) { T old = *p; *p = old & (T)v; return old; }
template <class T, class U> static T atomicOr(T* p, U v) { T old = *p; *p = old | (T)v; return old; }
template <class T, class U> static T atomicXor(T* p, U v) { T old = *p; *p = old ^ (T)v; return old; }

// -- coroutines

enum State { READY, AT_BLOCK, AT_WARP, DONE };
static ucontext_t scheduler, contexts[1024];
static State states[1024];
static char* stacks;
static unsigned current, count_threads;
static uint64_t posted[2][1024];
static unsigned parity[1024];
static void (*entry)();
constexpr size_t STACK = 65536;

static void pause_at(State state) {
    states[current] = state;
    swapcontext(&contexts[current], &scheduler);
}
static void __syncthreads() { pause_at(AT_BLOCK); }

// Every lane posts its value and waits for its warp; two boards, so that a fast lane cannot overwrite.
template <class T> static T shuffle(T value, int source) {
    unsigned board = parity[current] ^= 1, first = current & ~31u;
    posted[board][current] = 0;
    memcpy(&posted[board][current], &value, sizeof(T));
    pause_at(AT_WARP);
    T out;
    memcpy(&out, &posted[board][first + source], sizeof(T));
    return out;
}
#define LANE (int)(current & 31u)
template <class T> static T __shfl_up_sync(unsigned, T v, int d, int w = 32) {
    return shuffle(v, (LANE & (w - 1)) >= d ? LANE - d : LANE);
}
template <class T> static T __shfl_down_sync(unsigned, T v, int d, int w = 32) {
    return shuffle(v, (LANE & (w - 1)) + d < w ? LANE + d : LANE);
}
template <class T> static T __shfl_xor_sync(unsigned, T v, int x, int w = 32) {
    int partner = LANE ^ x;
    return shuffle(v, partner < (LANE & ~(w - 1)) + w ? partner : LANE);
}
static unsigned __ballot_sync(unsigned, int test) {
    unsigned board = parity[current] ^= 1, first = current & ~31u, out = 0;
    posted[board][current] = test != 0;
    pause_at(AT_WARP);
    for (unsigned k = 0; k < 32 && first + k < count_threads; k++)
        out |= (unsigned)posted[board][first + k] << k;
    return out;
}
static int __any_sync(unsigned m, int test) { return __ballot_sync(m, test) != 0; }
static int __all_sync(unsigned m, int test) { return __ballot_sync(m, !test) == 0; }

static void start() {
    entry();
    pause_at(DONE);
}
static void run_block() {
    for (unsigned t = 0; t < count_threads; t++) {
        getcontext(&contexts[t]);
        contexts[t].uc_stack.ss_sp = stacks + t * STACK;
        contexts[t].uc_stack.ss_size = STACK;
        makecontext(&contexts[t], start, 0);
        states[t] = READY;
    }
    for (;;) {
        bool ran = false;
        for (unsigned t = 0; t < count_threads; t++) {
            if (states[t] != READY) continue;
            current = t;
            threadIdx = {t % blockDim.x, t / blockDim.x % blockDim.y, t / (blockDim.x * blockDim.y)};
            swapcontext(&scheduler, &contexts[t]);
            ran = true;
        }
        bool released = false;
        for (unsigned w = 0; w < count_threads; w += 32) {
            bool all = true, some = false;
            for (unsigned t = w; t < w + 32 && t < count_threads; t++) {
                all &= states[t] == AT_WARP || states[t] == DONE;
                some |= states[t] == AT_WARP;
            }
            if (!all || !some) continue;
            released = true;
            for (unsigned t = w; t < w + 32 && t < count_threads; t++)
                if (states[t] == AT_WARP) states[t] = READY;
        }
        if (released) continue;
        bool live = false, all = true;
        for (unsigned t = 0; t < count_threads; t++) {
            live |= states[t] != DONE;
            all &= states[t] == DONE || states[t] == AT_BLOCK;
        }
        if (!live) return;
        if (!all && !ran) { fprintf(stderr, "deadlock\n"); exit(3); }
        if (all)
            for (unsigned t = 0; t < count_threads; t++)
                if (states[t] == AT_BLOCK) states[t] = READY;
    }
}
static void launch(void (*kernel)(), dim3 grid, dim3 block) {
    if (!stacks) stacks = (char*)malloc(1024 * STACK);
    entry = kernel;
    gridDim = grid;
    blockDim = block;
    count_threads = block.x * block.y * block.z;
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x++) {
                blockIdx = {x, y, z};
                run_block();
            }
}
