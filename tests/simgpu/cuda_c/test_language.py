"""The language of kernels, and the results of its arithmetic."""

import ctypes
import itertools
import json
import math
import random
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from simgpu import errors
from simgpu.cuda_c import compile_source
from simgpu.cuda_c.text.condition import evaluate_condition
from simgpu.cuda_c.text.lexer import tokenise
from simgpu.cuda_c.text.source import Position, Source

from .support import body, check, launch

FIRST = np.arange(32)
HALVES, BF16 = "#include <cuda_fp16.h>\n", "#include <cuda_bf16.h>\n"
PAIR = """struct P { float a; int b; };
    __device__ float sum(P p) { return p.a + p.b; }"""
ENUMS = """enum E { A = 1, B = 2, C = 8 }; enum class F : unsigned char { A, B = 200 }; enum class G : bool { NO, YES };
    struct S { enum Kind { P = 4, Q } kind; F f; }; using Other = S::Kind; __constant__ E known = B;
    __device__ int f(int) { return 1; } __device__ int f(E) { return 2; } __device__ int f(F) { return 3; } __device__ int f(G) { return 4; }
    __device__ E operator|(E a, E b) { return E(int(a) | int(b)); } __device__ E& operator++(E& a) { a = E(2 * a); return a; }
    __device__ F& operator|=(F& a, F b) { a = F(int(a) | int(b)); return a; } __device__ bool operator!(F a) { return a == F::A; }
    template <class T> struct K { static constexpr int v = 1; }; template <> struct K<E> { static constexpr int v = 2; };
    template <F V> __device__ int pick() { if constexpr (V == F::B) return 7; else return 8; }"""
BASES = """struct B { __device__ operator int() const { return 7; } };
    struct D : B { __device__ operator float() const { return 1.5f; } };
    struct H : B { __device__ operator int() const { return 9; } };"""
OPS = """#define OPS __device__ int fa(int a) { return a + 1; } __device__ int fb(int a) { return a + 2; }
    OPS
    """
HALF = """#define HALF(n) __device__ int half_##n() { return n; } \\
    __device__ int twice_##n() { return half_##n() + half_##n(); }
    HALF(4)
    """
W = "struct V { float x, y; int n[3]; }; struct W { V v; double d; };"
ADDS = "__device__ int add(int* p) { *p += 5; return 1; }"
NODE = "struct Node { int v; Node* next; };"
FIVE = "template <typename T> __device__ T f(T a) { return a + 5; }"
LETTER = '__host__ __device__ constexpr int f() { const char* s = "abc"; return s[1]; }'
MACROS = """#define N 4
    #define SQ(a) ((a) * (a))
    #define IDX(r, c, ld) \\
        ((r) * (ld) + (c))
    #define CAT(a, b) a##b
    #define SUM(first, ...) (first + ARGS(__VA_ARGS__))
    #define ARGS(a, b) (a * b)
    #if N > 3 && defined(SQ) && !defined(NOPE) && (1 || 1 / 0) && (1 || 1 % 0)
    #define PICK 1
    #elif 1
    #define PICK 2
    #else
    #error never
    #endif
    #ifdef NOPE
    this is not CUDA
    #endif"""
KNOWN = """__host__ __device__ constexpr int cdiv(int a, int b) { return (a + b - 1) / b; }
    constexpr int log2i(int v) { int r = 0; while (v >>= 1) ++r; return r; }
    template <typename T> constexpr T biggest(T a, T b) { return a > b ? a : b; }
    constexpr int COUNT = cdiv(100, 8);
    static const int SMALL = log2i(COUNT) * 2;
    __constant__ int table[COUNT] = {1, 2};
    template <int A> struct Kind { static constexpr int twice = cdiv(A, 1) * 2; };
    template <int N> __device__ int plus(int a) { return a + N; }
    template <typename T, typename U> __device__ auto add(T a, U b) -> decltype(a + b) { return a + b; }"""
MESSAGE = '__constant__ char message[] = "ok";'
# What is declared before the kernel, its statements, and what thread i leaves in o[i], or in x[i] where that is all.
STATEMENTS: list[tuple[str, str, Any]] = [
    ("", "o[i] = i * 1000003 * 1000003;", lambda i: ((i * 1000003 * 1000003 + 2**31) % 2**32) - 2**31),
    ("", "o[i] = (int)((unsigned)(-i) / 3u % 1000u);", lambda i: (-i % 2**32) // 3 % 1000),
    ("", "o[i] = i != 0 && 100 / i > 5;", lambda i: i != 0 and 100 // i > 5),
    ("", "o[i] = i == 0 || 100 / i > 5;", lambda i: i == 0 or 100 // i > 5),
    ("", "o[i] = i ? 100 / i : -1;", lambda i: 100 // i if i else -1),
    ("", "int a = i; int b = a++ + ++a; int c = a--; o[i] = b * 1000 + c * 10 + --a;", lambda i: 2011 * i + 2020),
    ("", "int a = i; a += 5; a -= 2; a *= 3; a /= 2; a %= 7; a <<= 3; a >>= 1; a |= 1; a &= 30; a ^= 9; o[i] = a;",
     lambda i: ((((((i + 3) * 3 // 2) % 7) << 3) >> 1 | 1) & 30) ^ 9),
    ("", "double d = 1.0 / 3; o[i] = d * 3 == 1.0 && (float)d != d;", 1),
    (HALVES, "half2 p = __floats2half2_rn(1.5f, 2.0f); p = __hfma2(p, p, p); x[i] = __low2float(p) + 100 * __high2float(p);",
     603.75),
    ("__device__ int f(const int a[], int n) { int s = 0; while (n--) s += *a++; return s; }",
     "int q[3] = {1, 2, 4}; o[i] = f(q, 3);", 7),
    # Loops, and ways out of them.
    ("", "int s = 0; for (int a = 0, b = 10; a < b; a++, b--) s += a * b; o[i] = s;", 70),
    ("", "int s = 0, k = i; while (k) { if (k == 20) break; k--; if (k & 1) continue; s++; } o[i] = s;",
     lambda i: (i + 1) // 2 if i < 20 else (i - 19) // 2),
    ("", "if (i > 20) return; for (;;) { if (i > 5) return; o[i] = 1; break; } o[i]++;", lambda i: 2 * (i < 6)),
    ("", """int s = 0; switch (i % 6) { case 0: s = 10; break; case 1: s = 20; case 2: s += 1; break; default: s = 7;
        case 5: s *= 2; if (i > 12) break; s++; } o[i] = s;""",
     lambda i: (10, 21, 1, 15 - (i > 12), 15 - (i > 12), 1 - (i > 12))[i % 6]),
    ("", "int s = 0; for (int j = 0; j < 5; j++) { switch (j) { case 2: continue; default: break; } s += j; } o[i] = s;", 8),
    # Declarations.
    ("", "int a = 1; { int a = 2; { int a = 3; o[i] = a; } o[i] += 10 * a; } o[i] += 100 * a;", 123),
    ("", """const int N = 4; constexpr int M = N * 2; int a[M + 1][N] = {{1, 2}, {3}};
        o[i] = a[0][1] + a[1][0] + a[8][3] + sizeof(a) / sizeof(a[0]);""", 14),
    ("", """int a[8]; for (int j = 0; j < 8; j++) a[j] = j * i; a[i & 7] = -1; int s = 0;
        for (int j = 0; j < 8; j++) s += a[j]; o[i] = s;""", lambda i: 28 * i - (i & 7) * i - 1),
    (W, """W w; w.v.x = i; w.v.y = 2; for (int j = 0; j < 3; j++) w.v.n[j] = j + i; w.d = 0.5;
        W u = w; u.v.n[1] = 100; V* p = &u.v; p->y += 1;
        x[i] = u.v.x + u.v.y + u.v.n[1] + w.v.n[1] + u.d + sizeof(W);""", lambda i: 2 * i + 136.5),
    ("", """__shared__ __align__(16) float s[4]; __align__(16) float t[4]; alignas(8) int m = i;
        s[0] = 1; t[0] = 2; o[i] = m + (int)t[0];""", lambda i: i + 2),
    ("", """float f = 1.0f; o[i] = *(int*)&f; unsigned u = 0x01020304; unsigned char* b = (unsigned char*)&u;
        o[i] += b[0] + b[3];""", lambda i: 0x3F800000 + 5),
    ("__device__ void inc(int& a, const float& f) { a += (int)f; }",
     """int v = i; inc(v, 2.0f); inc(o[i], 5.0f); int& r = o[i]; r += v; float4 q; q.x = 1; float& s = q.x; s += 1;
        r += (int)q.x;""", lambda i: i + 9),
    ("", """int* p = o + i; int* q = &o[n - 1]; *p++ = q - o; o[i] += p - o;
        o[i] += 100 * (p > o) + 1000 * (p == o + i + 1);""", lambda i: 31 + i + 1 + 1100),
    ("", """__shared__ int t[32][64]; int* s = t[i]; for (size_t k = 0; k < 64; k++) s[k] = k;
        size_t j = i; o[i] = s[j + 3] + *(s + 5 + j);""", lambda i: 2 * i + 8),
    ("", "int s = 0; for (int j = 0; j < 3; j++) { int a = j; int* p = &a; *p += 1; s += a; } o[i] = s;", 6),
    ("__device__ void half(int* p) { int b = *p / 2; int* q = &b; *p = *q; }", "int a = 4; half(&a); half(&a); o[i] = a;", 1),
    ("", "if (int k = i % 3) o[i] = k; else o[i] = -1;", lambda i: i % 3 or -1),
    ("", "if (float(i) > 3) o[i] = 1;", lambda i: i > 3),
    ("struct Big { float a[20000]; int b; };", "sizeof(Big)", 80004),
    ("", "int j = 0; for (; j < 7; j++); o[i] = j;", 7),
    ("", "int s = 0; for (int k = 0; k * 2 != 10; k++) s += k; o[i] = s;", 10),
    ("", "float s = 0; for (int k = 0; k < i; k++) s += x[k]; o[i] = s;", lambda i: i * (i - 1) // 2),
    ("", "int a = 3, b[sizeof(int) == 4 ? 2 : 3]; a += {4}; o[i] = a + sizeof(b);", 15),
    ("", "auto u{i}; auto f = float4{1, 2, 3, 4}; o[i] = u + f.y;", lambda i: i + 2),
    ("", "int a = 1; decltype((a) + 1) b = a; b = 5; o[i] = a;", 1),
    # Functions and macros.
    (HALF, "o[i] = twice_4();", 8),
    ("__device__ int f(int a) { return a; }\n#define f(a) f(a + 1)\n", "o[i] = f(i);", lambda i: i + 1),
    (LETTER, "constexpr int v = f(); o[i] = v;", 98),
    (BASES, "D d; int q = d; o[i] = q;", 7),
    (BASES, "H d; short q = d; o[i] = q;", 9),
    ("", "int b = 3; auto f = [](int a) { auto g = [](int b) { return b + 1; }; return g(a); }; o[i] = f(4);", 5),
    ("", "int b = 3; auto f = [](int a) { decltype(b) z = a; return z; }; o[i] = f(4);", 4),
    ("__device__ int first(int v) { return __shfl_sync(~0u, v, 0); }", "int v; if (i == 0) v = 7; o[i] = first(v);", 7),
    ("template <class T> __device__ T f(T k, const float (*rows)[4]) { return rows[1][k]; }",
     "const float t[2][4] = {{1}, {5, 6, 7, 8}}; o[i] = f(i % 4, t);", lambda i: 5 + i % 4),
    ("", "o[i] = i < 16 ? __shfl_sync(~0u, i, 3) : __shfl_sync(~0u, i, 20) * 100;", lambda i: 3 if i < 16 else 2000),
    ("""struct S final { int v; }; struct D final : S { int w; }; template <int (*F)(int)> __device__ int by(int a) { return F(a); }
        __device__ int twice(int a) { return 2 * a; }""",
     "D d; d.v = 3; d.w = by<twice>(i); S s; s.v = d.v; o[i] = s.v + d.w;", lambda i: 2 * i + 3),
    ("inline namespace v { __device__ int f() { return 1; } } namespace w { __device__ int f() { return 2; } }",
     "o[i] = v::f() * 10 + w::f();", 12),
    ("using addr = unsigned long long; struct S { int v; };",
     "void(i); o[i] = (addr(x) == (addr)x) + int(2.9f) * 10 + S(S{3}).v * 100;", 321),
    ("__device__ int f(void) { return 3; }", "const float __restrict__ *p = x; o[i] = f() + p[2] + __LINE__;", 3 + 2 + 2),
    ("#define F() 3\n#define MADE template __device__ int g<int>(int);\ntemplate <class T> __device__ T g(T a) { return a; }\nMADE",
     "o[i] = F() + F( ) + g(i);", lambda i: 6 + i),
    (HALVES + "struct Q { int a; half2 p; };",
     "Q q; if (i == 0) q.p = __floats2half2_rn(1, 2); x[i] = __high2float(__shfl_sync(~0u, q.p, 0));", 2),
    ("struct P { int a, b = 5, c; };", "P p = {.a = 1, .c = 3}; o[i] = p.a * 100 + p.b * 10 + p.c;", 153),
    ("struct P { int a, b, c; };", "P p = {.b = 3}; P q[2] = {{.a = 1}, {.c = 2}}; o[i] = p.a + p.b * 10 + p.c + q[0].a * 100 + q[1].c * 1000;", 2130),
    ("template <class T> __device__ typename T::type f(T a) { return 1; } __device__ int f(int a) { return a + 1; }",
     "int (*p)(int) = f; o[i] = p(2);", 3),
    ("""template <class T, typename std::enable_if<std::is_same<T, int>::value, int>::type* = nullptr>
        __device__ int f(T a) { return a + 1; }""", "o[i] = f(3);", 4),
    ("template <class T> __device__ T f(T* const& p) { return p[1]; } __device__ int g(const int* const& p) { return p[0]; }",
     "int q[2] = {1, 2}, *r = q; o[i] = f(q) * 10 + g(r);", 21),
    # Names by typedef, and of structs that are told by their name alone.
    (OPS + "typedef int unary(int); using other = int(int); __device__ int run(unary f, int a) { return f(a); }",
     "unary* f = i > 3 ? fa : fb; other* const g = fa; o[i] = run(f, 0) * 10 + g(0);", lambda i: 11 if i > 3 else 21),
    ("typedef struct Node_ Node; typedef struct Node_ { int v; struct Node_* next; } Node, *Link, Three[3];",
     "Node a = {1, nullptr}; struct Node_ b = {i, &a}; Link p = &b; Three t; t[2].v = 5; o[i] = p->v + p->next->v + t[2].v;",
     lambda i: i + 6),
    ("struct Later; struct Link { struct Later* to; struct Unknown* none; }; struct Later { int v; };",
     "Later a = {i}; Link b = {&a, nullptr}; o[i] = b.to->v + (b.none == nullptr);", lambda i: i + 1),
    ("namespace a { __device__ int f() { return 1; } } namespace b { __device__ int f() { return 2; } }",
     "using b::f; o[i] = f(); { using a::f; o[i] += 10 * f(); } o[i] += 100 * f();", 212),
    ("", """__shared__ union { int i[32]; float f[32]; unsigned char b[128]; } s; s.f[31 - i] = i; __syncthreads();
        float v = s.f[i]; __syncthreads(); s.i[i] = v; __syncthreads(); o[i] = s.b[4 * i] + 256 * s.b[4 * i + 3];""", lambda i: 31 - i),
    ("__constant__ struct { float a; int b[2]; } scale = {2.5f, {3, 4}}; struct H { int v; } of_the_host;",
     "__shared__ struct { int v; H h; } s[2]; if (i < 2) { s[i].v = i; s[i].h.v = 5; } __syncthreads(); o[i] = 2 * scale.a + scale.b[i & 1] + s[i & 1].h.v;",
     lambda i: 13 + i % 2),
    ("template <int N> __device__ int sum(const int (&v)[N]) { int s = 0; for (int k : v) s += k; return s; }",
     "int q[3] = {1, 2, i}; const int r[2] = {4, 5}; o[i] = sum(q) + sum(r);", lambda i: i + 12),
    ("template <typename T> __device__ T third(const T (&v)[3]) { return v[2]; }",
     "int q[(long long)3L] = {1, 2, i}; o[i] = third(q);", lambda i: i),
    ("""template <typename T> __device__ T one(); template <> __device__ int one<int>() { return 1; }
        template <> __device__ float one<float>() { return 2; }""", "o[i] = one<int>() * 10 + one<float>();", 12),
    ("""[[nodiscard]] __device__ int f([[maybe_unused]] int a) { return 3; }
        struct A { [[maybe_unused]] int v; [[nodiscard]] __device__ int get() const { return v; } };""",
     "A a{2}; o[i] = f(1) + a.get(); switch (i & 1) { case 0: o[i] = 7; [[fallthrough]]; default: o[i] += 1; }",
     lambda i: 6 if i % 2 else 8),
    ("enum [[maybe_unused]] Tint { PALE = 3 }; enum class [[nodiscard]] Tone : int { DARK = 4 };",
     "o[i] = PALE + (int)Tone::DARK;", 7),
    ("""template <typename T> __device__ typename std::enable_if<std::is_same<T, int>::value, T>::type f(T a) { return a; }
        template <typename T> __device__ typename std::enable_if<!std::is_same<T, int>::value, T>::type f(T a) { return a / 2; }""",
     "std::conditional<(sizeof(int) > 2), float, int>::type h = 0.5f; x[i] = f(i) + f(3.0f) + h;", lambda i: i + 2),
    # These names are the standard's only with its namespace.
    ("__device__ int conditional(int a) { return a; } __device__ int enable_if(int a) { return 2 * a; }",
     "o[i] = conditional(i) + enable_if(i);", lambda i: 3 * i),
    ("__device__ int conditional(int a) { return a; }", "o[i] = std::max(conditional(i), 3);", lambda i: max(i, 3)),
    ("""using namespace std;
        template <typename T> __device__ typename enable_if<is_same<T, int>::value, T>::type f(T a) { return a; }""",
     "o[i] = f(i);", lambda i: i),
    # A template that is declared, and has its body further on.
    ("template <typename T> __device__ T f(T a);" + FIVE + "template <> __device__ float f(float a) { return a + 1; }",
     "x[i] = f(1.0f) + f(i);", lambda i: i + 7),
    ("template <typename T> __device__ T f(T a); template <> __device__ float f<float>(float a) { return a + 1; }" + FIVE,
     "x[i] = f<float>(i) + f<int>(1);", lambda i: i + 7),
    ("const float most = INFINITY; __constant__ float ends[2] = {-INFINITY, NAN};",
     "constexpr float low = -INFINITY; o[i] = isinf(most) + isinf(low) + isinf(ends[0]) + isnan(ends[1]) + (HUGE_VAL > 1e300);", 5),
    # A list in braces is what the parameter is.
    (PAIR + "struct Q { P p; __device__ float plus(P o, int k = 2) const { return sum(p) + sum(o) + k; } };",
     "Q q{{1, 2}}; x[i] = sum({1.5f, i}) + q.plus({0.5f}) + q.plus({}, {3});", lambda i: i + 13),
    # A name is known from its `=` on.
    ("", "int a = a = 3, b = sizeof(b); o[i] = a + b;", 7),
    (NODE, "Node a = {i, &a}; o[i] = a.next->v;", lambda i: i),
    # What is read through a pointer may be const, and a __constant__ variable is no const one to C++.
    ("", """const float* p = x; float2 v = ((float2*)p)[i / 2]; __syncwarp(); float* q = const_cast<float*>(p);
        q[i] += v.y - v.x; o[i] = x[i];""", lambda i: i + 1),
    ("struct S { int v; __device__ int get() { return v; } }; __constant__ S c[2] = {{3}, {4}};",
     "S* p = &c[1]; o[i] = c[0].get() * 10 + p->get();", 34),
    # The right side of += goes first: nvcc folds each of these to the same number.
    (ADDS, "o[i] = 100; o[i] += add(o + i);", 106),
    ("", "int v = 1; auto f = [&]() { v = 10; return 2; }; v += f(); o[i] = v;", 12),
    ("", "int v = 1; v += (v = 7, 3); o[i] = v;", 10),
    ("", "int j = 0; int a[4] = {1, 2, 3, 4}; a[j] += (j = 2); o[i] = a[2] * 10 + a[0];", 51),
    ("", "o[i] = 100; o[i] += atomicAdd(o + i, 5);", 205),
    # Indices of type size_t wrap around as addresses do.
    ("", "if (i == 8) { int* p = &o[i]; size_t back = i; p[5 - back] = 7; p[(size_t)-1 + 7 - back] = i; }",
     lambda i: {5: 7, 6: 8}.get(i, 0)),
    (MACROS, "o[i] = SQ(N + 1) + IDX(2, 3, N) + CAT(1, 2) + SUM(1, 2, 3) + PICK;", 25 + 11 + 12 + 7 + 1),
    *((HALVES, f"half h = __float2half(i % 2 ? 40000.0f : -40000.0f); o[i] = ({to})h;",
       lambda i, ends=(low, high): ends[i % 2])
      for to, low, high in (("signed char", -128, 127), ("unsigned char", 0, 255), ("short", -32768, 32767))),
    *((BF16, f"o[i] = {expression};", value) for expression, value in (
        ("__bfloat16_as_ushort(__nv_bfloat16(0.0f / (n - n)))", 0x7FFF),  # one NaN for all
        ("__bfloat16_as_ushort(__nv_bfloat16(3.4e38f))", 0x7F80),  # which is nearer to infinity
        # Rounded once, though a float of this double is a tie.
        ("__bfloat16_as_ushort(__double2bfloat16(1.00390625000001))", 0x3F81),
        ("__bfloat16_as_ushort(__double2bfloat16(1.00390624999999))", 0x3F80),
        ("__bfloat16_as_ushort(__int2bfloat16_rn(0x1010001))", 0x4B81),
        ("__bfloat16_as_ushort(__hfma(__nv_bfloat16(1.0625f), __nv_bfloat16(1.0625f), __nv_bfloat16(1e-30f)))", 0x3F91),
        ("__bfloat16_as_ushort(hfloor(__nv_bfloat16(-2.5f)) + hsqrt(__nv_bfloat16(9)))", 0),
        ("(__nv_bfloat16(1.0f) < __nv_bfloat16(2)) + 2 * __hge(__nv_bfloat16(1.0f), __nv_bfloat16(2))", 1),
        ("(int)(float)__hmax(-__nv_bfloat16(3), __nv_bfloat16(2))", 2),
        ("sizeof(nv_bfloat16) * 10 + sizeof(__nv_bfloat162)", 24),
        ("(int)__high2float(__hmul2(__floats2bfloat162_rn(1, 3), __floats2bfloat162_rn(2, 5)))", 15))),
    # Known when compiled.
    *((KNOWN, text, value) for text, value in (("o[i] = COUNT * 100 + SMALL + sizeof(table);", 1300 + 6 + 52),
        ("int a[cdiv(9, 4)]; o[i] = sizeof(a) + plus<biggest(3, 7)>(1) + Kind<log2i(9)>::twice;", 12 + 8 + 6),
        ("constexpr float H = biggest(1.5f, 2.5f); __shared__ int s[log2i(64)]; o[i] = sizeof(s) * H;", 60),
        ('switch (3) { case cdiv(9, 4): o[i] = 7; } static_assert(cdiv(9, 4) == 3, "three");', 7),
        ("decltype(i) a = 7; decltype(a * 2.0) b = 7 / 2.0; o[i] = add(a, 0.5) * 2 + b * 2;", 15 + 7),
        ("o[i] = 3[table + 0] + (i + 1 > 0)[table];", 2))),
    *(("struct P { int x, y; };", text, value) for text, value in (
        ("int t[][2] = {{1, 2}, {3}}; o[i] = t[1][i % 2] + 10 * sizeof(t);", lambda i: 160 + 3 * (i % 2 == 0)),
        ("const int t[][2][2] = {1, 2, 3, 4, {{5}}}; o[i] = t[1][0][0] + 10 * sizeof(t);", 325),
        ("int t[][2] = {{}, {1}, 5, 6, 7}; o[i] = t[3][0] + t[2][1] + 10 * sizeof(t);", 333),
        ("P p[] = {1, 2, {3}, 5}; o[i] = p[2].x + 10 * sizeof(p);", 245),
        ('char t[][3] = {"ab", "c"}; o[i] = t[1][0] + sizeof(t);', 99 + 6))),
    *((MESSAGE, text, lambda i, values=values: values[i % len(values)]) for text, values in (
        ('const char s[] = "hello"; o[i] = s[i % 6] + sizeof(s) - 6;', b"hello\0"),
        ('char s[8] = "hi"; s[0] = 65; o[i] = s[i % 3];', b"Ai\0"),
        ('const char s[2][4] = {"ab", "cd"}; o[i] = s[1][i % 3];', b"cd\0"),
        ('const char* s = i % 2 ? "odd" : "even"; int k = 0; while (s[k]) k++; o[i] = k;', [4, 3]),
        ('const char* s = "xyz"; s++; o[i] = *s;', b"y"), ("o[i] = message[i % 3];", b"ok\0"),
        ('o[i] = i < 0 || "text";', [1]))),
    # The name of a type, or one that hides it, ends with its block, parameters, struct or template.
    *((f"constexpr int K = 7; {before}", text, 15) for before, text in (
        ("", "{ using K = int; K a = 1; o[i] = a; } o[i] += K * 2;"),
        ("struct S { using K = int; K a; };", "S s = {1}; o[i] = s.a + K * 2;"),
        ("struct S { template <class K> __device__ int f(K a) { return a; } static const int v = K * 2; };",
         "S s; o[i] = s.f(1) + S::v;"),
        ("""template <template <class K> class V> struct S { V<int> v; static const int b = K * 2; };
            template <class T> struct W { T a; };""", "S<W> s = {{1}}; o[i] = s.v.a + s.b;"))),
    *((f"using K = int; {before}", text + " K a = 7; o[i] = b + a * 2;", 15) for before, text in (
        ("", "int b = 0; if (int K = n) b = K - 31;"), ("", "auto f = [](int K) { return K * 2; }; int b = f(1) - 1;"),
        ("__device__ int f(int K) { return K * 2; }", "int b = f(1) - 1;"),
        ("__device__ int f(int a) { return a; }", "int (*p)(int K) = f; int b = p(1);"))),
    # Written in CUDA C (`c_functions.h`).
    ("", "__stcs(o + i, 7); o[i] += __ldcg(&o[i]);", 14),
    ("", "int all; unsigned m = __match_all_sync(~0u, n, &all); o[i] = (m == ~0u) + 2 * all;", 3),
    ("", "int all; unsigned m = __match_all_sync(~0u, i, &all); o[i] = m + all;", 0),
    ("", "int s = 0; for (int j = 0; j < 9; j++) { switch (j) { case 1: s += 10; break; } if (j > 3) break; s++; } o[i] = s;", 14),
    # A declaration gives arguments their defaults, and tells which of several functions gets a body further on.
    ("__device__ int f(int a, int b = 2); __device__ int g() { return f(1); } __device__ int f(int c, int b) { return c + b; }",
     "o[i] = g();", 3),
    ("template <class T> __device__ T f(T a, T b = 2); template <class U> __device__ U f(U a, U b) { return a + b; }", "o[i] = f(1);", 3),
    ("namespace a { namespace b { __device__ int f(int k = 3); } __device__ int g() { return b::f(); } } __device__ int a::b::f(int k) { return k; }",
     "o[i] = a::g() * 10 + a::b::f(4);", 34),
    ("""struct S { int v; __device__ int get(int k = 10) const; __device__ int& get(int k = 0); };
        __device__ int& S::get(int) { return v; } __device__ int S::get(int k) const { return v + k; }""",
     "S s{1}; s.get() = 2; const S& t = s; o[i] = t.get() * 100 + s.v;", 1202),
    ("", "const auto* p = o; p += 2; auto* const q = x + 1; q[i - 1] = p - o;", 2),
    # An enumeration is a type of its own.
    *((ENUMS, text, value) for text, value in (
        ("o[i] = f(A) * 1000 + f(1) * 100 + f(F::A) * 10 + f(G::NO);", 2134), ("o[i] = K<E>::v * 100 + K<int>::v * 10 + K<unsigned>::v;", 211),
        ("E e = A | C; ++e; o[i] = e * 10 + (e + 1.5) * 2 + ~e + !e;", 180 + 39 - 19), ("F a{}, b{3}; b |= F::B; o[i] = (int)b * 10 + !a + (a < b) * 2;", 2033),
        ("o[i] = pick<F::B>() * 10 + pick<F::A>() + sizeof(F) * 100;", 178), ("S s = {S::Q, F::B}; o[i] = s.kind + S::Kind::P * 10 + Other::Q * 100 + (int)s.f * 1000;", 200545),
        ("G g = G(n); o[i] = g == G::YES ? (int)g : 5; switch (g) { case G::YES: o[i] += 10; }", 11),
        ("__shared__ E s[32]; s[31 - i] = i > 3 ? B : C; __syncwarp(); o[i] = x[s[i]] + known * 10;", lambda i: 28 if i > 27 else 22),
        ("const int& r = B; int q[C] = {}; q[A] = r; for (E e = A; e <= C; ++e) o[i] += e; o[i] += q[1] + sizeof(q);", 15 + 2 + 32))),
    # Which of several is meant.
    ("template <class T> __device__ int f(T) { return 1; } __device__ int f(int) { return 2; } __device__ int g(int*) { return 1; } __device__ int g(int) { return 2; }",
     "o[i] = f(1) * 10000 + f<>(1) * 1000 + f(1u) * 100 + g(nullptr) * 10 + g(0);", 21112),
    ("""struct A { int a; }; struct B : A { int b; }; __device__ int f(A*) { return 1; } __device__ int f(void*) { return 2; } __device__ int f(bool) { return 3; }
        __device__ int f(const void*) { return 4; } __device__ int f(const int*) { return 5; }""",
     "B b; const float* p = x; const int* q = o; o[i] = f(&b) * 10000 + f(x) * 1000 + f(p) * 100 + f(q) * 10 + f(true);", 12453),
    ("template <class T> constexpr int sz = sizeof(T); template <> constexpr int sz<char> = 100; template <class T> constexpr int sz<T*> = 7;",
     "o[i] = sz<int> + sz<char> * 10 + sz<int*> * 10000;", 71004),
    ("""struct A { int v = 1; __device__ int f(int) { return 1; } __device__ int f(float) { return 2; } };
        struct B : A { int v = 2; using A::f; __device__ int f(int) { return 3; } __device__ int g() { return v * 10 + A::v; } };""",
     "B b; B* p = &b; p->A::v += 4; o[i] = b.f(1) * 10000 + b.f(1.0f) * 1000 + b.g() * 10 + b.A::v;", 32000 + 250 + 5),
    # A member is const if it says so, and mutable as it says.
    ("""struct S { mutable int calls = 0; const int v[2]; const float* at; __device__ S(int k, const float* p) : v{k, 2}, at(p) {}
        __device__ int get() const { return ++calls * v[0]; } };""",
     "const S s(3, x); int r = s.get(); S t = s; t.at += 5; o[i] = r * 1000 + s.get() * 100 + t.at[0] * 10 + t.v[1];", 3000 + 600 + 52),
    # Names that a condition declares.
    *(("", text, value) for text, value in (
        ("switch (int q = n; q & 1) { case 0: o[i] = q; } switch (int q = o[i]) { case 32: o[i] = q + 1; }", 33),
        ("int q = 1; if (int a = 5, b = a + q; b > a) o[i] = a * b; else o[i] = b; if (q = 4; q > 3) o[i] += q;", 34),
        ("int k = 5, s = 0; while (int q = k) { k--; if (q == 3) continue; s = s * 10 + q; if (q == 2) break; } o[i] = s;", 542),
        ("while (const float* p = x + 1) { o[i] = p[1]; break; }", 2))),
    ("struct A { int v, w; __device__ int f() { return v; } }; class B : A { public: using A::f; using A::v; }; struct S { static __device__ constexpr int size() { return 4; } }; template <int N> __device__ constexpr int length(const int (&)[N]) { return N; }",
     "B b; b.v = 3; S s; int q[5]; constexpr int k = s.size() + sizeof(n) + length(q); o[i] = b.f() * 10 + k;", 43),
    # Bodies that stand behind the struct: of one in another, of a conversion, with other names in the template.
    ("struct S { struct In { int a; __device__ int get(); }; In q; }; __device__ int S::In::get() { return a; }",
     "S s{{4}}; o[i] = s.q.get();", 4),
    ("""struct S { int v; __device__ operator int() const; __device__ operator float*() const; __device__ S operator+(S) const; };
        __device__ S S::operator+(S q) const { return {v + q.v}; } __device__ S::operator float*() const { return nullptr; } __device__ S::operator int() const { return v; }""",
     "S s{4}; int k = s + s; float* p = s; o[i] = k * 10 + (p == nullptr);", 81),
    ("""template <class T> struct S { T a; __device__ T f(T k, T m = 1); __device__ S(T q); };
        template <class U> __device__ U S<U>::f(U k, U m) { U r = a; return r + k + U(m); } template <class U> __device__ S<U>::S(U q) : a(q) {}""",
     "S<int> s(5); S<float> t(1.5f); o[i] = s.f(4) * 10 + t.f(0.5f, 2);", 104),
    # A number and a struct that is one, too: what fits without a conversion is meant.
    (BF16, "__nv_bfloat16 a = 3, b = 5LL; a += 1; a *= 2.0f; b++; float old = a--; x[i] = old * 100 + (float)(--a * b);", 800 + 6 * 6),
    ("""struct H { float v; __device__ H(float a) : v(a) {} __device__ operator float() const { return v; } __device__ H operator+(H q) const { return H(v + q.v); }
        __device__ H operator+(float q) const { return H(v + q + 10); } __device__ H& operator+=(H q) { v += q.v; return *this; } };""",
     "H h(1); h += 2; x[i] = h + 1.0f + 2 * h + (h + h);", 14 + 6 + 10 + 6),
]  # fmt: skip
# Operators by how tightly they bind, the loosest first ([expr]).
BINDING = "|| && | ^ & ==,!= <,>,<=,>= <<,>> +,- *,/,%"
LEVELS = {op: level for level, ops in enumerate(BINDING.split()) for op in ops.split(",")}
COMPUTED = {
    "||": "bool({} or {})", "&&": "bool({} and {})", "/": "math.trunc({} / {})", "%": "math.fmod({}, {})",
}  # fmt: skip


def condition(text: str) -> int:
    return evaluate_condition(Source(text), Position(1, 1), tokenise(Source(text))[:-1])


@pytest.mark.parametrize("first", LEVELS)
def test_operators_of_a_condition_bind_and_compute_as_those_of_c(first: str) -> None:
    for a, b in itertools.product((-7, -1, 0, 5), (2, 3, 5)):
        right = COMPUTED.get(first, f"{{}} {first} {{}}").format(a, b)
        assert condition(f"{a} {first} {b}") == eval(right)
        for second, level in LEVELS.items():
            left, right = f"({a} {first} {b}) {second} 2", f"{a} {first} ({b} {second} 2)"
            grouped = left if LEVELS[first] >= level else right
            assert condition(f"{a} {first} {b} {second} 2") == condition(grouped), grouped


@pytest.mark.parametrize("wrong", ["1 / 0", "1 % 0", "1 << 64", "1 >> -1"])
def test_only_what_counts_in_a_condition_may_be_wrong(wrong: str) -> None:
    assert condition(f"0 && (0 || 1) && {wrong}") == 0
    assert condition("1 << 0") == 1
    for before in ("(1 || 1 / 0) &&", "(0 && 1 % 0) ||"):
        with pytest.raises(errors.KernelCompileError, match=r"division by zero|a shift by"):
            condition(f"{before} {wrong}")


@pytest.mark.parametrize(("before", "text", "value"), STATEMENTS)
def test_statements(before: str, text: str, value: Any, tell: Callable[[str], None]) -> None:
    tell(check(text, value, before))


CDIV = "__host__ __device__ constexpr int cdiv(int a, int b) { return (a + b - 1) / b; }"


@pytest.mark.parametrize(
    ("before", "text", "kind", "match"),
    [
        ("", 'assert(i < 4 && "four are enough");', errors.DeviceAssertError, r"thread \(4, 0, 0\) fails its own assert"),
        ("", "int a[2] = {i, i}; int* p = a; atomicAdd(p + 1, 1);", errors.KernelFault, "on the local variable 'a'"),
        ("", "__shared__ int s; int* p = i & 1 ? &s : o; atomicAdd(p, 1);", errors.OutOfBoundsError, "use an 'if'"),
        ("", 'const char* s = "abc"; o[i] = s[i];', errors.OutOfBoundsError, """'"abc"'"""),
        (CDIV, "int a[cdiv(n, 2)];", errors.KernelCompileError, "must be a constant"),
        ("", "int a = 1; { int a = a + 1; o[i] = a; }", errors.UninitialisedReadError, "reads 'a'"),
        ("__constant__ int c[2] = {1, 2};", "c[0] = 3;", errors.ReadOnlyError, "writes to 'c', which may only be read"),
        ("struct P { int x, y; };", "P p = {.y = 1, .x = 2};", errors.KernelCompileError, "not in the order of the members"),
        ("template <typename T> __device__ T f(); template <> __device__ int f<int>() { return 1; }", "f<short>();",
         errors.KernelCompileError, "no body for these types"),
        ("", "auto f = [](auto... a) { return 1; };", errors.UnsupportedFeatureError, "parameter packs"),
        ("", "if (i == 0) return; if (i != 3) __syncthreads();", errors.BarrierError, r"thread \(3, 0, 0\) does not reach"),
        ("", "switch (i & 1) o[i] = 1;", errors.KernelCompileError, "before the first case"),
        ("", "switch (i & 1) { int a = 3; case 0: o[i] = a; }", errors.KernelCompileError, "before the first case"),
        ("__device__ int f(int a) { return a; }", "int a[f(3)];", errors.KernelCompileError, "must be a constant"),
        ("constexpr int forever(int a) { while (a > 0) a++; return a; }", "int a[forever(1)];",
         errors.KernelCompileError, "must be a constant"),
        *(("", f"float a = 1, b = 2; float& r = a; decltype({of}) s = a; s = 3; o[i] = a;",
           errors.UnsupportedFeatureError, "write the type") for of in ("x[0]", "(a)", "++a", "i > 3 ? a : b", "r")),
    ],
)  # fmt: skip
def test_what_goes_wrong(before: str, text: str, kind: type[Exception], match: str) -> None:
    with pytest.raises(kind, match=match):
        body(text, before=before)


# An expression, and its value in each thread.
INTEGERS = [
    ("7 / 2", 3), ("-7 / 2", -3), ("-7 % 3", -1), ("7 % -3", 1), ("(n - 39) / 2", -3),
    ("(n - 39) % 4", -3), ("2147483647 + 1", -2147483648), ("(n - 33) / 1u > 5", 1), ("-1 < 1u", 0),
    ("1 << 4 | 3", 19), ("-8 >> 1", -4), ("(int)(0x80000000u >> 31)", 1), ("n << 32", 0),
    ("(n - 64) >> 40", -1), ("~5 & 0xff", 250), ("5 ^ 3", 6), ("!n + !!n", 1),
    ("(n > 3 and not (n > 40)) + (n > 40 or n not_eq 32)", 1),
    ("((compl 5 bitand 0xff) bitor 1) xor 3", 248), ("(unsigned char)300", 44),
    ("(signed char)200", -56), ("(short)70000", 4464), ("(int)3.9f", 3), ("(int)-3.9f", -3),
    ("(int)1e20f", 2147483647), ("(int)-1e20f", -2147483648), ("(int)(0.0f / 0.0f * n)", 0),
    ("(int)(unsigned)-5.0f", 0), ("(unsigned char)(-3.0f * n) + (unsigned short)(-70000.0 * n)", 0),
    ("(unsigned char)(300.0f * n / 32) * 1000 + (signed char)(200.0f * n / 32)", 43944),
    ("(short)(-70000.0f * n / 32)", -4464), ("(int)4294967295u", -1),
    ("sizeof(float4) + sizeof(double)", 24),
    ("__ll2double_rn(-3) + __ull2double_rn(1ull << 63) > 9e18 and __ull2float_rn(~0ull) > 1e19", 1),
    ("sizeof(\"\\u00e4\") * 100 + sizeof(\"\\xe4\" \"b\\0\") * 10 + sizeof(u8\"\\101\")", 342), ("\"\\303\\244\"[1]", -92), ("'\\377'", -1),
    ("__FLT_MAX__ == FLT_MAX && __INT_MAX__ == INT_MAX", 1), ("'a' + 1", 98), ("0x1F + 010 + 0b11", 42),
    ('sizeof("hey") + alignof(double)', 12),
    ("(int)(0x1.8p3f + 0x1p-1)", 12), ("(n > 3) + (n > 40)", 1), ("n > 3 ? 5 : 6", 5),
    ("1 + 2 * 3 - 4 / 2 % 2", 7), ("(1, 2)", 2), ("max(3, n) + min(3, n)", 35), ("max(1u, 2)", 2),
    ("abs(-n)", 32), ("__popc(255u) + __clz(1) + __ffs(8)", 8 + 31 + 4), ("__mulhi(1 << 30, 8)", 2),
    ("(int)__brev(1u)", -2147483648), ("__float_as_int(1.0f)", 0x3F800000),
    ("__float2int_rn(2.5f) + __float2int_ru(2.1f) + __float2int_rz(2.9f)", 7),
    ("(long long)1 << 33 > 8000000000ll", 1), ("(int)(10000000000ll % 1000)", 0),
    ("true + true", 2), ("warpSize", 32), ("INT_MAX", 2**31 - 1), ("INT_MIN", -(2**31)),
    ("(int)(UINT_MAX >> 1)", 2**31 - 1),
    ("sizeof(uint8_t) + sizeof(int16_t) + sizeof(uint) + sizeof(int64_t)", 1 + 2 + 4 + 8),
    ("(uint8_t)300 + (int8_t)200", 44 - 56), ("LLONG_MAX > UINT32_MAX", 1),
    ("isinf(INFINITY) && isnan(NAN) && -INFINITY < -FLT_MAX", 1),
    ("(int)umin(3u, 5u) + (int)umax(3u, 5u)", 8),
    ("(int)llmin(-3ll, 5ll) + (int)llmax(-3ll, 5ll)", 2),
    ("sizeof(exp(1.0f)) * 10 + sizeof(exp(1.0))", 48),
    # What is no number becomes an integer as on a GPU.
    ("(int)sqrtf(-1.0f - x[i])", 0), ("(int)(unsigned)sqrtf(-1.0f - x[i])", 0),
    ("(int)((long long)sqrtf(-1.0f - x[i]) >> 60)", -8),
    ("(int)((unsigned long long)sqrtf(-1.0f - x[i]) >> 60)", 8),
    ("(int)ullmin(3ull, 5ull) + (int)ullmax(3ull, 5ull)", 8),
    # Built-in functions.
    ("__hiloint2double(__double2hiint(1.0 / (i - 40)), __double2loint(1.0 / (i - 40))) == 1.0 / (i - 40)", 1),
    ("__double2hiint(1.0)", 0x3FF00000), ("__double2loint(4503599627370497.0)", 1),
    *((f"(unsigned)__double2{kind}_rn(NAN + i) == 0x80000000u", 1) for kind in ("int", "uint")),  # a float, as a double
    # Dot products of bytes.
    ("__dp4a(0x01FF7F80, 0x02FE7F80, i)", 2 + 2 + 127 * 127 + 128 * 128 + FIRST),
    ("__dp4a(0xff000080u, 0x02000003u, 1u)", 255 * 2 + 128 * 3 + 1),
    ("__dp2a_lo(0xFFFE8000, 0x02FE7F80, i)", 128 * 32768 - 2 * 127 + FIRST),
    ("__dp2a_hi(0xFFFE8000, 0x02FE7F80, i)", 2 * 32768 - 2 * 2 + FIRST),
    ("__dp2a_lo(0xFFFE8000u, 0x02FE7F80u, 1u)", 128 * 32768 + 127 * 65534 + 1),
    ("__dp2a_hi(0xFFFE8000u, 0x02FE7F80u, 1u)", 254 * 32768 + 2 * 65534 + 1),
    ("__hadd(-1 - i, 2147483647) + __hadd(-2147483647, -2147483648)", (2147483646 - FIRST) // 2 - 2147483648),
    ("__rhadd(-1 - i, 2147483647) + __rhadd(-2147483647, -2147483648)", (2147483647 - FIRST) // 2 - 2147483647),
    ("__uhadd(~0u, ~0u - i - 1) >> 1", (2 * 4294967295 - FIRST - 1) // 4),
    ("__urhadd(~0u, ~0u - i - 1) >> 1", (2 * 4294967295 - FIRST) // 4),
    ("__rhadd(i, i + 1) - __hadd(i, i + 1)", 1 + 0 * FIRST),
    ("__dp4a(make_char4(1, -2, 3, -128), make_char4(5, 6, i, 127), 9)", 5 - 12 + 3 * FIRST - 128 * 127 + 9),
    ("__dp4a(make_uchar4(1, 2, 3, 200), make_uchar4(5, 6, i, 255), 9u)", 5 + 12 + 3 * FIRST + 200 * 255 + 9),
    ("2 * (normcdff(0) + normcdff(-40) + normcdff(40))", 3),
    ("llrintf(i + 0.5f) + llround(-2.5)", 2 * ((FIRST + 1) // 2) - 3),  # to the nearest, and away from zero
    # Each digit of the selector names a byte of the two numbers.
    *((f"__byte_perm(0x03020100u, 0x07060504u, {select}u)", taken) for select, taken in (
        ("0x7531", 0x07050301), ("0x0246", 0x00020406), ("0x3333", 0x03030303))),
]  # fmt: skip
FLOATS = [
    ("M_PI", np.pi), ("FLT_MAX", np.finfo(np.float32).max), ("FLT_MIN", np.finfo(np.float32).tiny),
    ("FLT_EPSILON", np.finfo(np.float32).eps),
    ("0.1f + 0.2f", np.float32(0.1) + np.float32(0.2)), ("0.1 + 0.2", np.float32(0.1 + 0.2)),
    ("1.0f / 3.0f", np.float32(1) / np.float32(3)), ("1 / 3", 0.0),
    ("sqrtf(2.0f)", np.sqrt(np.float32(2))), ("fmaxf(1.0f, 0.0f / 0.0f * n)", 1.0),
    ("floorf(-1.5f) + ceilf(1.2f) + truncf(-1.7f)", -1.0),
    ("roundf(2.5f) + rintf(2.5f) + roundf(-0.5f)", 4.0), ("fmodf(7.5f, 2.0f)", 1.5),
    ("copysignf(3.0f, -1.0f)", -3.0), ("exp2f(10.0f)", 1024.0),
    ("cbrtf(27.0f) - cbrtf(343.0f) / 7", 2.0), ("sinpif(1.0f) + cospif(-2.5f) + sinpi(-3.0) + cospi(1e6 + 0.5)", 0.0),
    ("sinpif(-1.5f) + 10 * cospif(1.0f) + 100 / sinpif(-1.0f)", -np.inf), ("powf(2.0f, 0.5f)", np.float32(2) ** np.float32(0.5)),
    ("max(1.5f, 2.5f) - min(1.5f, 2.5f)", 1.0), ("fabsf(-2.0f) + abs(-3.0f)", 5.0),
    ("1.0f / fmaxf(-0.0f, 0.0f) > 0 && 1.0f / fminf(0.0f, -0.0f) < 0", 1.0),
    ("1e10f + 1.0f - 1e10f", 0.0), ("(float)16777217", 16777216.0),
    ("3.0f * threadIdx.x - 3 * i", 0.0), ("isnan(sqrtf(-1.0f)) + isinf(1.0f / 0.0f)", 2.0),
    ("__int_as_float(0x40490fdb)", np.float32(math.pi)), ("__saturatef(7.0f)", 1.0),
    ("hypotf(3.0f, 4.0f)", 5.0), ("rsqrtf(4.0f)", 0.5), ("exp(1.0f) - expf(1.0f)", 0.0),
    ("fdimf(5.0f, 3.0f) + fdimf(3.0f, 5.0f)", 2.0),
    ("isnan(tgammaf(-1.0f)) + isinf(tgammaf(0.0f)) + isinf(tgammaf(99.0f)) + isinf(lgammaf(-2.0f)) + isnan(remainderf(1.0f, 0.0f))", 5.0),
    # In float64 the tiny summand is lost, and what is left lies in the middle of two floats.
    ("fmaf(1.0f + 1.0f / 4096, 1.0f + 1.0f / 4096, 1e-20f)", 1 + 2.0**-11 + 2.0**-23),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "value"), INTEGERS)
def test_integers(expression: str, value: int | np.ndarray, tell: Callable[[str], None]) -> None:
    tell(check(expression, value))


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        *((text, 0x7F800001) for text in (  # moved, even a signalling NaN, as PTX `mov` does it
            "", "x[i] = f; f = x[i ^ 0];", "float a[3]; a[i % 3] = f; f = a[i % 3];",
            "float4 v = make_float4(0, f, 0, 0); f = v.y;", "union { float g; int h; } u; u.g = f; f = u.g;",
            "__shared__ float s[32]; s[i] = f; __syncwarp(); f = s[i ^ 1];", "f = __shfl_xor_sync(~0u, f, 1);",
            "f = i < 40 ? f : 0.0f;", "f = __int_as_float(__float_as_int(f));", "*(int*)&x[i] = __float_as_int(f); f = x[i];",
            "struct { char c; float g; } s, r; s.g = f; r = s; f = r.g;", "auto g = [=](float h) { return h; }; f = g(f);")),
        ("f = __uint_as_float(0xffc12345u);", 0xFFC12345), ("f = __uint_as_float(0xffc00000u);", 0xFFC00000),
        *((text, 0x7FFFFFFF) for text in (  # computed, as PTX has it of 32 bits
            "f = f + 1.0f;", "f += x[i];", "f = f * x[i] + 2;", "f = (x[i] - x[i]) / 0.0f;", "f = sqrtf(-1 - x[i]);", "f = NAN;",
            "f = fmaf(f, f, f);", "f = INFINITY - INFINITY * (i + 1);", "f = (float)(double)f;", "f = -(f - f);", "f = NAN + i;")),
    ],
)  # fmt: skip
def test_a_nan_keeps_its_bits_where_it_is_moved_and_has_the_gpus_where_it_is_computed(
    text: str, bits: int
) -> None:
    text = f"float f = __int_as_float(0x7f800001 + 0 * i); {text} o[i] = __float_as_int(f);"
    assert (body(text)[1].view(np.uint32) == bits).all()


@pytest.mark.parametrize("suffix", ["", "u", "l", "UL", "ll", "uLL"])
@pytest.mark.parametrize("write", ["{}", "{:#x}", "{:#b}", "0{:o}"])
def test_a_literal_has_the_first_type_that_holds_it(write: str, suffix: str) -> None:
    """C++17, clause lex.icon, table 7."""
    suffix = suffix.lower()
    wide = "long long" if "ll" in suffix else "long"
    names = ["int", "unsigned", wide, f"unsigned {wide}"]
    highest = dict(zip(names, [2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1], strict=True))
    kinds = names[2:] if "l" in suffix else names
    if "u" in suffix or write == "{}":
        kinds = [kind for kind in kinds if ("u" in kind) == ("u" in suffix)]
    before = "template <class T> struct Is { static constexpr int k = 0; };"
    for number, kind in enumerate(names, 1):
        before += f"template <> struct Is<{kind}> {{ static constexpr int k = {number}; }};"
    edges = [v + d for v in highest.values() for d in (0, 1)]
    values = [v for v in edges if v <= highest[kinds[-1]]]
    right = [1 + names.index(next(k for k in kinds if v <= highest[k])) for v in values]
    said = "".join(
        f"o[{n}] = Is<decltype({write.format(v)}{suffix})>::k;" for n, v in enumerate(values)
    )
    o = body(said, before=before, threads=1)[1]
    assert o[: len(values)].tolist() == right


@pytest.mark.parametrize(("expression", "value"), FLOATS)
def test_floats(expression: str, value: float, tell: Callable[[str], None]) -> None:
    tell(check(f"float result = {expression}; x[i] = result;", np.float32(value)))


@pytest.mark.parametrize(
    ("text", "fused", "apart"),
    [
        # (1 + 2^-12)^2 - 1 - 2^-11 is 2^-24 exactly; rounding the product first loses it.
        ("float a = 1.0f + 1.0f / 4096; x[i] = a * a + (-1.0f - 1.0f / 2048);", 2.0**-24, 0),
        # Of two products the left one is fused.
        ("float a = 1.0f + 1.0f / 4096, b = a; x[i] = a * a - b * b;", 2.0**-24, 0),
        ("double a = 1.0 + 1.0 / 134217728; x[i] = (float)fma(a, a, -1.0 - 1.0 / 67108864);", 2.0**-54, 2.0**-54),
    ],
)  # fmt: skip
def test_what_is_fused_is_rounded_once(text: str, fused: float, apart: float) -> None:
    assert [body(text, contract=on)[0][0] for on in (True, False)] == [fused, apart]


@pytest.mark.parametrize("name", ["expf", "logf", "sinf", "cosf", "tanhf", "erff", "cbrtf"])
def test_functions_agree_with_the_library(name: str) -> None:
    exact = {"cbrtf": lambda v: v ** (1 / 3)}.get(name, getattr(math, name[:-1], None))
    got = body(f"x[i] = {name}(0.25f * (i + 1));")[0]
    want = np.array([exact(0.25 * (i + 1)) for i in FIRST])
    np.testing.assert_allclose(got, want, rtol=3e-7, atol=1e-7)


RAMP = np.arange(128, dtype=np.float32).reshape(32, 4)
HALF = np.linspace(-3, 3, 32).astype(np.float16)
MORE = (HALF.astype(np.float32) * 2 + np.float32(0.3)).astype(np.float16)
RECORDS = np.array([(k, 0, 0, 0) for k in FIRST], "f4, f4, f4, i4").view(np.uint8)
# Parameters, statements, an array for each parameter, and what is in the last one afterwards.
MEMORY: list[tuple[str, str, list[np.ndarray], np.ndarray]] = [
    ("P* p", "p[i].y = p[i].x * 2; P q = p[i]; q.id++; p[i] = q;", [RECORDS],
     np.array([(k, 2 * k, 0, 1) for k in FIRST], "f4, f4, f4, i4").view(np.uint8)),
    ("float4* v", "float4 a = v[i]; a.w = a.x + a.y; v[i] = a;", [RAMP],
     np.column_stack((RAMP[:, :3], RAMP[:, 0] + RAMP[:, 1]))),
    ("float3* w", "w[i].z = w[i].x;", [RAMP.reshape(-1)[:96]], RAMP.reshape(-1)[:96].reshape(32, 3)[:, [0, 1, 0]].reshape(-1)),
    ("int2* u", "u[i] = make_int2(u[i].y, u[i].x);", [np.arange(64, dtype=np.int32)], np.arange(64).reshape(32, 2)[:, ::-1].reshape(-1)),
    ("float* x", "float4 v = reinterpret_cast<float4*>(x)[i]; v.y = -v.x; ((float4*)x)[i] = v;", [RAMP],
     RAMP[:, [0, 0, 2, 3]] * np.array([1, -1, 1, 1], np.float32)),
    ("float* x, unsigned char* b", "b[i] = ((unsigned char*)x)[16 * i + 3];", [RAMP, np.zeros(32, np.uint8)],
     RAMP.view(np.uint8)[:, 3]),
    ("const half* a, float* f", "f[i] = __half2float(a[i]) * 2.0f;", [HALF, np.zeros(32, np.float32)], HALF.astype(np.float32) * 2),
    ("const half* a, half* b", "b[i] = __float2half(__half2float(a[i]) * 2.0f + 0.3f); b[i] = __hadd(b[i], a[i]);",
     [HALF, np.zeros(32, np.float16)], (MORE.astype(np.float32) + HALF.astype(np.float32)).astype(np.float16)),
]  # fmt: skip


@pytest.mark.parametrize(("parameters", "text", "arrays", "after"), MEMORY)
def test_types_in_global_memory(
    parameters: str, text: str, arrays: list[np.ndarray], after: np.ndarray
) -> None:
    given = [array.copy() for array in arrays]
    before = HALVES + "struct P { float x, y, z; int id; };"
    kernel = f"__global__ void k({parameters}) {{ int i = threadIdx.x; {text} }}"
    launch(before + kernel, "k", 1, 32, *given)
    np.testing.assert_array_equal(given[-1], after)


@pytest.mark.parametrize(
    "before",
    [
        "struct __align__(16) P { float x, y, z; };",
        "struct alignas(8 * sizeof(short)) P { float x, y, z; };",
        "typedef struct __align__(16) { float x, y, z; } P;",
    ],
)
def test_structs_with_an_alignment(before: str) -> None:
    inner = f"{before} struct Q {{ char c; P p; }};"
    sizes = "i == 0 ? sizeof(P) : i == 1 ? sizeof(Q) : (int)((char*)&q[0].p.z - (char*)q)"
    assert body(f"Q q[1]; o[i] = {sizes};", before=inner)[1][:3].tolist() == [16, 32, 24]


def test_constant_and_device_variables() -> None:
    source = """__constant__ float c[2][2] = {{1, 2}, {3, 4}}; __device__ int hits;
        const int W = 3; extern "C" __global__ void k(float* x) { int i = threadIdx.x;
        x[i] = c[i & 1][1] * W; atomicAdd(&hits, 1); }"""
    program = compile_source(source)
    x = np.zeros(32, np.float32)
    launch(program, "k", 1, 32, x)
    launch(program, "k", 1, 32, x)
    assert x.tolist() == [6.0, 12.0] * 16
    assert program.variables["hits"].view(np.int32)[0] == 64
    program.variables["c"].view(np.float32)[:] = 1
    launch(program, "k", 1, 32, x)
    assert x.tolist() == [3.0] * 32
    assert compile_source(source).variables["hits"].view(np.int32)[0] == 0


def test_kernel_templates_by_name_expression() -> None:
    source = """template <typename T, int N = 2> __global__ void scale(T* x) { x[threadIdx.x] *= (T)N; }
    __device__ int thrice(int a) { return 3 * a; }
    template <int (*F)(int)> __global__ void each(int* x) { x[threadIdx.x] = F(x[threadIdx.x]); }"""
    program = compile_source(source)
    assert not program.kernels
    for name, kind, by in (
        ("scale<float, 16>", np.float32, 16), ("scale<double>", np.float64, 2), ("each<thrice>", np.int32, 3),
    ):  # fmt: skip
        x = np.arange(32, dtype=kind)
        launch(program, name, 1, 32, x)
        assert x.tolist() == [by * i for i in FIRST]
    assert set(program.kernels) == {"scale<float, 16>", "scale<double, 2>", "each<thrice>"}


def test_shared_memory_of_the_file() -> None:
    before = "extern __shared__ float all[]; __shared__ int four[4]; __device__ float last() { return all[31]; }"
    text = "all[i] = i; if (i < 4) four[i] = i; __syncthreads(); x[i] = last() + four[i & 3];"
    x, _, result = body(text, before=before)
    assert x.tolist() == [31.0 + i % 4 for i in FIRST]
    assert result.counts.shared_bytes == 16 + 128


LINE = "7   |ff|hey|A|1099511627776%\n"
# An integer is read as the format says.
FORMS_OF_INTEGERS = [
    ("%d|%i", "4294967295u, 3000000000u", "-1|-1294967296"),
    ("%c%c", "65, -1", "A\xff"),
    ("\\u00e4\\xc3\\244%s", 'u8"\\U000020ac" "x"', "ää€x"),
    ("%s|\\0%d|%s", r'"ab\0c"', "ab|"),  # both end at the 0
    ("%d", "1ll << 32 | 5", "5"),  # an int is read, as on a GPU
]
PRINTED = [
    (r'if (i < 2) printf("%d|%5.2f|%-4u|%x|%s|%c|%lld%%\n", i, x[i] / 3, 7u, 255, "hey", 65, 1ll << 40);',
     f"0| 0.00|{LINE}1| 0.33|{LINE}"),
    (r"""const char* names[] = {"zero", "one"}; char own[4] = "abc"; own[1] = 0;
        if (i < 2) printf("%s|%5s|%s\n", names[i], i ? "T" : "F", own);""", "zero|    F|a\none|    T|a\n"),
    ('if (i == 0) printf("one \\\ntwo\\n");', "one two\n"),  # a string may go on in the next line
    *((f'if (i == 0) printf("{form}", {given});', text) for form, given, text in FORMS_OF_INTEGERS),
]  # fmt: skip


@pytest.mark.parametrize(("text", "printed"), PRINTED)
def test_printf(text: str, printed: str) -> None:
    assert body(text)[2].printed == printed


INTEGERS_TO_PRINT = [0, 7, -7, 123456, -(2**31) + 1]
FLOATS_TO_PRINT = [0.0, -0.0, 1.5, -2.25, 1e10, 1e-7, 999960.0, math.inf, math.nan]
TO_PRINT = {"diuoxX": INTEGERS_TO_PRINT, "eEfFgG": FLOATS_TO_PRINT, "c": [65], "s": ["", "abcdef"]}


@pytest.mark.skipif(sys.platform != "linux", reason="C leaves some forms open: here is glibc")
def test_printf_prints_as_c_does() -> None:
    draw, said, wanted = random.Random(5), "", ""
    names = {"inf": "INFINITY", "nan": "NAN"}
    kinds = {int: ctypes.c_longlong, float: ctypes.c_double, str: str.encode}
    for _ in range(500):
        letter = draw.choice("diuoxXeEfFgGcs")
        value = draw.choice(next(v for letters, v in TO_PRINT.items() if letter in letters))
        length = draw.choice(["", "hh", "h", "l", "ll"]) if letter in "diuoxX" else ""
        flags = "".join(draw.sample("-+ #0", draw.randrange(4)))
        width, digits = draw.choice(["", "1", "12", "*"]), draw.choice(["", ".", ".0", ".3", ".*"])
        least = -9 * ("0" not in flags)  # with a zero glibc takes a negative width amiss
        sizes = [draw.choice([0, 4, 9, least]) for size in (width, digits) if "*" in size]
        form, text = f"[%{flags}{width}{digits}{length}{letter}]", json.dumps(value)
        given = [*map(str, sizes), names.get(str(value), text) + length.strip("h")]
        said += f'printf("{form}", {", ".join(given)}); '
        out = ctypes.create_string_buffer(400)
        ctypes.CDLL(None).snprintf(out, 400, form.encode(), *sizes, kinds[type(value)](value))
        wanted += out.value.decode()
    assert body(f"if (i == 0) {{ {said} }}")[2].printed == wanted


def test_printf_of_an_address() -> None:
    assert re.fullmatch(r"0x[0-9a-f]+\n", body('if (i == 0) printf("%p\\n", x);')[2].printed)


@pytest.mark.parametrize(("width", "by"), [(8, 8), (8, 4), (16, 8), (4, 16), (32, 31)])
def test_a_shuffle_by_xor_does_not_leave_its_group_upwards(width: int, by: int) -> None:
    # PTX, shfl.sync.bfly: the last lane of a group is the highest that may be asked.
    want = [k ^ by if (k ^ by) < k - k % width + width else k for k in range(32)]
    check(f"__shfl_xor_sync(0xffffffffu, i, {by}, {width})", want)


# What each leaves, by what is there and by its operands (CUDA C++ Programming Guide, "Atomic Functions").
ATOMICS: dict[str, Callable[..., int]] = {
    "Add": lambda old, a: old + a, "Sub": lambda old, a: old - a, "Min": min, "Max": max, "Exch": lambda old, a: a,
    "And": lambda old, a: old & a, "Or": lambda old, a: old | a, "Xor": lambda old, a: old ^ a,
    "Inc": lambda old, a: 0 if old >= a else old + 1, "Dec": lambda old, a: a if old == 0 or old > a else old - 1,
    "CAS": lambda old, a, b: b if old == a else old,
}  # fmt: skip


@pytest.mark.parametrize("name", ATOMICS)
@pytest.mark.parametrize("spread", [1, 5, 256])
def test_lanes_take_turns_at_an_atomic_in_their_order(name: str, spread: int) -> None:
    does, rng = ATOMICS[name], np.random.default_rng(4)
    count = 2 if name == "CAS" else 1
    first, operands = rng.integers(0, 7, spread, np.uint32), rng.integers(0, 7, (2, 256), np.uint32)
    call = f"atomic{name}(w + i * 7 % {spread}, {', '.join(['a[i]', 'a[256 + i]'][:count])});"
    words, olds = first.tolist(), [0] * 256
    for i, given in enumerate(operands[:count].T.tolist()):
        olds[i] = words[i * 7 % spread]
        words[i * 7 % spread] = does(olds[i], *given) % 2**32
    for keep, wanted in (("o[i] = ", olds), ("", [0] * 256)):
        w, o = first.copy(), np.zeros(256, np.uint32)
        head = "__global__ void k(unsigned* w, const unsigned* a, unsigned* o)"
        launch(f"{head} {{ int i = threadIdx.x; {keep}{call} }}", "k", 1, 256, w, operands, o)
        assert (w.tolist(), o.tolist()) == (words, wanted)


def test_atomics_on_a_part_of_a_shared_array() -> None:
    text = """__shared__ int s[48]; s[i] = 0; if (i < 16) s[i + 32] = 0; __syncthreads();
        int* p = s + 8; atomicAdd(&p[i], i + 1); __syncthreads(); o[i] = s[i + 8] - s[i & 7];"""
    assert body(text)[1].tolist() == [k + 1 for k in range(32)]


def as_bfloat16(x: np.ndarray) -> np.ndarray:
    """The bits of the nearest bfloat16, found by trying both neighbours."""
    below = np.asarray(x, np.float32).view(np.uint32) >> 16
    low, high = [(b.astype(np.uint32) << 16).view(np.float32) for b in (below, below + 1)]
    to_low, to_high = np.abs(x.astype(float) - low), np.abs(high - x.astype(float))
    even = below % 2 == 0
    return np.where((to_low < to_high) | ((to_low == to_high) & even), below, below + 1)


def test_bfloat16_arithmetic_is_that_of_floats_rounded() -> None:
    source = """extern "C" __global__ void k(const float* x, const __nv_bfloat16* y, unsigned short* o) {
        int i = threadIdx.x; __nv_bfloat16 a = __float2bfloat16(x[i]), b = y[i], s = a; s += b;
        unsigned short* q = o + 5 * i;
        q[0] = __bfloat16_as_ushort(a); q[1] = __bfloat16_as_ushort(s); q[2] = __bfloat16_as_ushort(a * b);
        q[3] = __bfloat16_as_ushort(a / b); q[4] = __bfloat16_as_ushort(__hfma(a, b, a)); }"""
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((2, 128)).astype(np.float32)
    ties = np.arange(64, dtype=np.uint32) * 0x12345 & 0x3FFF0000 | 0x3F800000
    x[:64] = (ties | 0x8000).view(np.float32)
    y_bits, o = as_bfloat16(y).astype(np.uint16), np.zeros((128, 5), np.uint16)
    launch(BF16 + source, "k", 1, 128, x, y_bits, o)
    a = (as_bfloat16(x) << 16).astype(np.uint32).view(np.float32).astype(float)
    b = (y_bits.astype(np.uint32) << 16).view(np.float32).astype(float)
    want = [as_bfloat16(v.astype(np.float32)) for v in (a, a + b, a * b, a / b, a * b + a)]
    np.testing.assert_array_equal(o, np.stack(want, 1))


def test_arrays_of_bfloat16_come_as_bits() -> None:
    text = (
        "__global__ void k(const __nv_bfloat16* x, float* y) { int i = threadIdx.x; y[i] = x[i]; }"
    )
    x = (np.arange(4, dtype=np.float32).view(np.uint32) >> 16).astype(np.uint16)
    with agt.using("sim"):
        op = agt.Kernel(BF16 + text, "k")(agt.h2d(x), agt.zeros((4,)), grid=1, block=4)
        assert op.output().to_host().sync().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("source", ["__half", "__nv_bfloat16", "float", "double"])
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("sign", ["", "u"])
def test_what_is_no_number_is_0_or_the_highest_bit(source: str, bits: int, sign: str) -> None:
    # PTX ISA 9.0, "cvt"; what is smaller than an int is cut from one of 32 bits, of which the rest is 0.
    text = f"""__global__ void k({sign}int{bits}_t* o, float zero) {{ {source} x = zero / zero;
        o[0] = ({sign}int{bits}_t)x; o[1] = ({sign}int{bits}_t)({source})(float)NAN; }}"""
    o = np.zeros(2, f"uint{bits}")
    launch(HALVES + BF16 + text, "k", 1, 1, o, np.float32(0))
    highest = bits == 64 or (bits == 32 and source == "double")
    assert o.tolist() == [highest << (bits - 1)] * 2


@pytest.mark.parametrize(
    ("to", "low", "high"),
    [("char", -128, 127), ("unsigned char", 0, 255), ("short", -32768, 32767), ("unsigned short", 0, 65535)],
)  # fmt: skip
def test_bfloat16_is_clamped_to_small_integers(to: str, low: int, high: int) -> None:
    # cuda_bf16.h: __bfloat162char_rz and its like saturate, and make 0 of what is no number.
    numbers = "0 0.7 -0.7 99.5 127 128 -128 -130 255 300 32640 65280 7e4 -9e9 3e38 1e-9 nan"
    given = np.array([float(number) for number in numbers.split()])
    given = (as_bfloat16(given[:-1].astype(np.float32)) << 16).astype(np.uint32).view(np.float32)
    x, o = np.append(given, np.float32(np.nan)).astype(np.float32), np.zeros(17, np.int32)
    source = f"__global__ void k(const float* x, int* o) {{ __nv_bfloat16 b = x[threadIdx.x]; o[threadIdx.x] = ({to})b; }}"
    launch(BF16 + source, "k", 1, 17, x, o)
    want = np.clip(np.trunc(given.astype(float)), low, high).astype(int).tolist()
    assert o.tolist() == [*want, 0]


def test_a_comma_goes_with_a_rest_that_is_not_there() -> None:
    before = """#define CALL(f, ...) f(1, ##__VA_ARGS__)
    __device__ int one(int a) { return a; }
    __device__ int two(int a, int b) { return 10 * a + b; }"""
    check("100 * CALL(one) + CALL(two, 2)", 112, before)


def test_what_templates_are_for_certain_types_may_differ_by_the_result_alone() -> None:
    before = """template <class T> __device__ T made(int a);
    template <> __device__ int made(int a) { return a + 1; }
    template <> __device__ float made(int a) { return a + 0.5f; }
    template <> __device__ short made(int a) { return a + 70000; }"""
    check("10 * made<float>(3) + made<int>(32) + made<short>(0)", 35 + 33 + 4464, before)


def test_enumerations_without_a_name_and_constants_of_standard_headers() -> None:
    before = """#if LETTER == 'S' || '\\n' != 10 || 'A' != 65
    #error what is a number in a program is one in a condition, too
    #endif
    enum { LOW = 3 }; enum { HIGH = +4 };"""
    check("LOW + HIGH + (INT64_C(1) << 40 >> 38) + (int)(UINT64_C(1) << 63 >> 60)", 19, before)


def test_a_file_may_ask_for_the_version_of_its_compiler() -> None:
    before = """#if __CUDACC_VER_MAJOR__ * 1000 + 10 * __CUDACC_VER_MINOR__ == CUDART_VERSION && __LP64__
    #define SUM(v) __shfl_down_sync(0xffffffff, v, 16)
    #else
    #define SUM(v) __shfl_down(v, 16)
    #endif"""
    assert body("o[i] = SUM(i);", before=before)[1][0] == 16


def test_a_row_of_memory_with_a_pitch_is_passed_by_value() -> None:
    source = """__global__ void k(cudaPitchedPtr rows, cudaExtent e, int* o) {
        o[0] = ((float*)((char*)rows.ptr + 1 * rows.pitch))[2] + e.width * e.height + e.depth; }"""
    kernel = compile_source(source).kernel("k").signature
    assert [p.record and p.record.itemsize for p in kernel.parameters] == [32, 24, None]
    text = """float x4[2][8] = {{0}, {1, 2, 3}}; cudaPitchedPtr p = {x4, 32, 12, 2}; cudaExtent e = {2, 3, 4};
        o[i] = ((float*)((char*)p.ptr + p.pitch))[2] + e.width * e.height + e.depth + p.xsize;"""
    assert body(text)[1].tolist() == [3 + 6 + 4 + 12] * 32
