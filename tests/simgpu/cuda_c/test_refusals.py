"""Refusals come with line, column, caret and a reason, and nothing is accepted that NVRTC refuses."""

import re
from typing import Any

import numpy as np
import pytest

from simgpu import errors
from simgpu.cuda_c import GlobalMemory, compile_source, parse_signature
from simgpu.cuda_c.compile import calls

from .support import HEAD, body, memory

INCLUDE = "#include <cuda_fp16.h>\n"


def refuse(source: str, kind: type[errors.KernelCompileError]) -> errors.KernelCompileError:
    with pytest.raises(kind) as caught:
        compile_source(source).kernel("k")
    if kind is errors.KernelCompileError:
        assert not isinstance(caught.value, errors.UnsupportedFeatureError)
    assert caught.value.line is not None
    assert caught.value.column is not None
    return caught.value


# Each of these NVRTC 12.9 refuses too (compiled for compute_90 with the CUDA headers).
WRONG = [
    "o[i] = int;", "o[i] = (int)x;", "float* p = (float*)1.5f;", "struct S { int v; S inner; };", "struct S; S s;",
    "x[i] = max(1.0f, n);", "o[i] = max(1ll, n);", "x[1.5f] = 1;", "half h;", "x[i] = x[i] % 2;", "float* p = 1;",
    "x[i] = nothing(i);", "float q[n];", "return 1;", "float2 a = make_float2(1, 2); a = a + a;", "short s; atomicAdd(&s, 1);",
    "atomicMax(x, 1.0f);", "long long s = 0; long long* p = &s; atomicAdd(p, 1ll);", "x[i] = __shfl_down(x[i], 1);",
    "__shared__ int q = 0;", "int i = 0;", "break;", "continue;", "switch (n) { case 1: case 1: break; }",
    "switch (n) { case 1: continue; }", "(i + 1) = 2;", "const int q = 1; q = 2;", "int* p = x;",
    "const float* c = x; float* d = c;", "const float* c = x; c[0] = 1;", "if (x == o) x[i] = 1;", "x[i] = zz;", "x + 1.5f;",
    "o[i] = 1.5f << 2;", "int f() { return 1; }", "o[i] = ~1.5f;", "x[i] = 1.0f & 2;", "x[i] = x;", "int a = 5 b;", "x[i] = 1",
    "if (i < n { x[i] = 1; }", "o[i] = 1 +;", "x[i] = (1 + 2;", "o[i] = 08;", "o[i] = 18446744073709551616 > 1;",
    "const float& r = x[i]; r = 1;", "o[i] = 'ab';", "o[i] = threadIdx.w;", "o[i] = float2::a;", "int a[2] = 5;", "float4 v; v.q = 1;", "i.x = 1;", "n[0] = 1;",
    "*n = 1;", "static_assert(sizeof(int) == 8);", "constexpr int a[2] = {1, 2}; static_assert(a[1] == 1);", "const int q;", "int& r;", "int& r = 1;", "float& r = o[i];", "auto a;",
    "x[i] = sqrtf();", "x[i] = sqrtf(1, 2);", "__syncthreads(1);", "int a[2] = {1, 2, 3};", "int a[0];", "int a[-1];",
    "int a[];", "else x[i] = 1;", "void v;", "unsigned float u = 1;", 'printf("%d");', "int* p = o; p = p * 2;",
    "o[i] = sizeof(nope);", "cuda::atomic_ref<int> a(o[0]);", "cooperative_groups::grid_group g;", "this_grid().sync();",
    "__shfl_sync(0xffffffff, i, 0, 5);", 'printf("100%\\n");', 'printf("%q", 3);', "using namespace",
    "struct S { int a; }; struct S { int b; };", "int4 v; v++;", "int v = {1, 2};", "float4 v = {.x = 1, .q = 2};",
    "atomicAdd(1, 1);", "const int* p = o; atomicAdd(p, 1);", "o[i] = max(x, 1);", "printf();",
    "struct S { int a; } s; s.f();", "struct S { int a; __device__ int f() { return a; } }; o[i] = S::f();",
    "int4 v; if (v) o[i] = 1;", "__constant__ int c;", "auto* p = 3;", "__shared__ int s[];",
    "float* p = static_cast<float*>(o);", "o[i] = int4;", "void* p = x; x[i] = *p;", "float4* p = (float4*)x; x[i] = p.x;",
    "void* p = x; x[i] = p[1];", "int* p = &(i + 1);", "if constexpr (n > 1) o[i] = 1;", "int a[2], b[2]; a = b;",
    "enum E : float { A };", "enum E : char { A = 300 };", "int q[1.5f];", "case 1: o[i] = 1;", "namespace q { }",
    "o[i] = 3lul;", "const int c = 1; int& r = c;", "n ? __syncwarp() : i;",
    "for (int k = 0; k < 3; k++) { int k = 3; o[i] = k; }", "const void* q = x; float* p = n ? (void*)q : x;",
    "bool b = true; b++;", "atomicAdd(x[i], 1.0f);", "o[i] = abs(1u);", "o[i] = min(x, x);", "x[i] = __ldg(x[i]);",
    "if (__syncthreads()) o[i] = 1;", "static const int a = n;", "const int c = n; int& r = c;",
    "switch (x[i]) { case 1: o[i] = 1; }", 'printf("%d", 1.0f);', 'printf("%f", n);', 'printf("%s", n);',
    "o[i] = __cvta_generic_to_shared(n);", "texture<float, 2> t;", "namespace a = ", "using namespace a", "o[i] = 'é';",
    "o[i] = '\\x';", "x[i] = __reduce_add_sync(0xffffffff, x[i]);", "switch (n) { case 1: o[i] = 1;", "enum Unknown e;",
    "o[i] = sizeof(int (* const q)[2]);", "x[i] = 0x1p99999;", 'asm volatile("cp.async.wait_group %0;");',
    "auto f = [](int a, int a) { return a; };", "enum { A, A };", "int A = 1; enum { A };",
    "int** p = &o; const int** q = p;", "volatile int* v = o; int* p = v;", "__shared__ volatile int s[2]; int* p = s;",
    "float a[2][4]; const float (*c)[4] = a; float (*p)[4] = c;", "float (*p)[4] = (float (*)[3])x;",
    "struct S { int a[2]; } s; const S* c = &s; int* p = c->a;", "struct S { int a; }; struct T { int a; }; S s[1] = {T{1}};", "struct S { int a; } s; switch (s) { case 1: break; }",
    "if (n) { struct L { int a; }; } o[i] = sizeof(L);", "auto p = (float(*q)[2])x;",
    "const auto* p = o; p[0] = 1;", "auto* const p = o; p++;",
    *(f"struct S {{ const int v; float* const p; const int q[2]; }}; S s{{3, x, {{1, 2}}}}; {wrong}" for wrong in (
        "s.v = 1;", "s.p = x;", "s.q[1] = 3;", "int& r = s.v;", "int* p = &s.v;")),
    "constexpr int k = n;", "constexpr int k = blockDim.x / 2;", "float p = 3; constexpr int k = p * 2;", "constexpr int a[2] = {1, n};",
    "const int a = n; constexpr int k = a;", "int& r = n; constexpr int k = r;", "constexpr int k = o[0];",
    "for (const int k = n; k < 1;) { constexpr int j = k; }",
    "auto a = 1, b = 2.0;", "auto f = [](float a) { if (a < 0) return 0; return a; }; x[i] = f(x[i]);", "switch (int q = n; ) { case 1: o[i] = q; }",
    "struct S { const int v; int w; }; S s{1, 2}, t{3, 4}; s = t;", "if (int a = 5, b = 6) o[i] = a;", "struct S { int a; } s; o[i] = s.float2::x;",
    *(f"enum E {{ A, B }}; enum G {{ C }}; enum class F {{ A, B }}; F f = F::A; E e = B; {wrong}" for wrong in (
        "e = 1;", "e = C;", "e++;", "e += A;", "int q[F::B];", "f = 1;", "o[i] = f;", "o[i] = f + 1;", "o[i] = -f;", "o[i] = x[f];", "o[i] = f == 0;", "if (f) o[i] = 1;",
        "o[i] = !f;", "int& r = e;", "int* p = &e;", "switch (f) { case 0: o[i] = 1; }", "auto g = [](E v) { return v; }; g(1);")),
]  # fmt: skip

PAIR = "struct P { int a; float b; };\n"
EXPLICIT = """struct S { int a; explicit __device__ S(int a) : a(a) {}
    explicit __device__ operator bool() const { return a; } explicit __device__ operator float() const { return a; } };
__device__ int f(S s) { return s.a; }
__device__ S g() { return 3; }
"""
MMA = "#include <mma.h>\nusing namespace nvcuda::wmma;\n"
FILES_WRONG = [
    "texture<float, 2> image;\n" + HEAD + "x[i] = image; }",
    "#if 1\n",
    "#endif\n",
    "#define F(a) a\n__device__ int g() { return F(1, 2); }\n",
    "#error stop\n",
    "#wrong\n",
    "__global__ int bad() { return 1; }\n",
    "int host() { return 1; }\n" + HEAD + "o[i] = host(); }",
    "int variable = 3;\n" + HEAD + "o[i] = variable; }",
    "__device__ void f(int a) { a(); }\n" + HEAD + "f(1, 2); }",
    "__device__ int f(float* p) { return 1; }\n" + HEAD + "o[i] = f(1.0f); }",
    "struct S { int a; int a; };\n" + HEAD + "S s; }",
    "struct S { int a };\n" + HEAD + "S s; }",
    HEAD + "}\n" + HEAD + "o[i] = 1; }",
    "template <class T> __device__ int f(T* a) { return 1; }\n" * 2 + HEAD + "o[i] = f(x); }",
    "__device__ int f(int a) { return 1; }\n__device__ float f(int b) { return 2; }\n" + HEAD + "}",
    "__device__ int v; __device__ float v;\n" + HEAD + "}",
    "const int v = 1; const int v = 1;\n" + HEAD + "o[i] = v; }",
    "struct S { int a; }; struct S { int b; };\n" + HEAD + "S s; }",
    "class S { int a; };\n" + HEAD + "S s; o[i] = s.a; }",
    "struct S { private: int a; public: int b; protected: __device__ int f() { return a; } };\n"
    + HEAD
    + "S s; o[i] = s.f(); }",
    "class S { __device__ S(int a) : a(a) {} public: int a; };\n" + HEAD + "S s(1); o[i] = s.a; }",
    "class S { int a; };\n__device__ int f(S s) { return s.a; }\n" + HEAD + "S s; o[i] = f(s); }",
    HEAD + "int t[2][] = {{1}, {2}}; o[i] = t[0][0]; }",
    HEAD + "int t[][2]; o[i] = t[0][0]; }",
    HEAD + "int t[] = {}; o[i] = sizeof(t); }",
    "template <int N> __device__ int f() { return N; }\n" + HEAD + "o[i] = f(); }",
    "template <int N> __device__ int f() { return N; }\n" + HEAD + "o[i] = f<n>(); }",
    "__device__ void f(int& a) { a = 1; }\n" + HEAD + "f(1); }",
    "__device__ int f() { return; }\n" + HEAD + "f(); }",
    "__device__ void f() { return 1; }\n" + HEAD + "f(); }",
    "__device__ void f() {}\n" + HEAD + "o[i] = f(); }",
    "__device__ int f(int a) { return a; }\n" + HEAD + "int f = 3; o[i] = f(i); }",
    "__device__ void f() {}\n" + HEAD + "auto v = f(); }",
    "__device__ float f(float a, float b) { return a; }\n__device__ float f(double a, double b) "
    "{ return b; }\n" + HEAD + "o[i] = f(1, 2); }",
    INCLUDE + HEAD + "half h = 1.0f; h = h * 2.0f; }",
    HEAD + "/* no end",
    HEAD + '"no end',
    HEAD + "x[i] = 1;",
    # Checks at the top level, in a namespace, in a struct, and in an instance of one.
    f"constexpr int N = 4; static_assert(N == 5); {HEAD}o[i] = N; }}",
    f'namespace a {{ constexpr int N = 4; static_assert(N == 5, "five"); }} {HEAD}o[i] = a::N; }}',
    f"struct S {{ int a; static_assert(sizeof(int) == 8); }}; {HEAD}S s; }}",
    f"template <int N> struct S {{ int a; static_assert(N > 4); }}; {HEAD}S<4> s; }}",
    # Of structs, functions, templates, fragments, macros and conditions.
    *(before + HEAD + text + " }" for before, text in [
        ("struct P { int a; }; struct S { int a[1]; P p = 3; };\n", "S s = {{1}};"),
        ("__device__ int g(int a) { return a; } __device__ int f(int a) { return a; }\n", "o[i] = f(g);"),
        ("struct D : int { int c; };\n", "D d;"), ("template <class T> struct B { T v; };\n", "B<3> b;"),
        ("template <template <class> class V> struct X { V<int> v; };\n", "X<int> b;"),
        ("template <int N> struct X { int v[N]; };\n", "X<int> b;"),
        ("template <class T> struct S; template <> struct S<int> { int v; };\n", "S<float> a;"),
        ("struct S { void v; };\n", "S s;"), ("__device__ void v;\n", ""), ("__constant__ void v[2];\n", ""),
        (PAIR, "P p; p++;"), (PAIR, "P p = {.c = 1};"), (PAIR, "P p = {.a = 1, 2.0f};"), (PAIR, "o[i] = P::f();"),
        (PAIR, "struct Q { P p; int c; }; Q q = {{make_float2(1, 2)}, 1};"),
        ("struct S { int a = 3; private: int b; };\n", "S s(1, 2, 3);"),
        ("struct S { int a; __device__ int f() { return a; } };\n", "o[i] = S::f();"),
        ("struct S { int a; __device__ S(int v) : c(v) {} };\n", "S s(1);"),
        ("__device__ int f(int a) { return a; }\n", "float f = 1; o[i] = f(1);"),
        ("template <class T> __device__ int f(T a) { return a; }\n", "int (*p)(int) = f<int, int, int>;"),
        ("__global__ void two(int a, float a) {}\n", ""), ("const int c;\n", "o[i] = c;"),
        ("__device__ int& f(float& a) { return a; }\n", "f(x[i]) = 1;"),
        ("template <int N> __device__ int f() { return N; }\n", "o[i] = f<1.5f>();"),
        ("template <int (*F)(int)> __device__ int f(int a) { return F(a); }\n", "int (*p)(int) = 0; o[i] = f<p>(1);"),
        (INCLUDE, "half h = 1.0f; h = sqrt(h);"), (INCLUDE, "half h = 1.0f; h = max(h, h);"),
        (MMA, "fragment<accumulator, 16, 16, 16, float> f; store_matrix_sync(o, f, 16, mem_row_major);"),
        ("#if\n#endif\n", ""), ("#if 1.5\n#endif\n", ""), ("#if 1 / 0\n#endif\n", ""),
        ("#define F(a) a\n", "o[i] = F(1;"), ("#define F(a) a\n__device__ int f() { return F(1;", ""),
        ("struct B { using Q = int; };\ntemplate <class T> struct D : T { __device__ int f() { return Q; } };\n",
         "D<B> d; o[i] = d.f();"), ("#define F(a\n", ""),
        ("template <class T> constexpr int two = 2\n", ""), ("template <class T> using Same = T\n", ""), ("namespace a { __device__ int f() { return 1; }\n", ""),
        ("__device__ union { int a; float b; };\n", "a = 1;"),
    ]),
    *(f"struct A {{ int v; __device__ int f() {{ return v; }} private: int w; }}; class B : A {{}}; class C : public A {{}};\n{HEAD}B b; C c; {use} }}"
      for use in ("b.v = 1;", "o[i] = b.f();", "c.w = 1;")),
    *(f"#define M(a) a\n{HEAD}o[i] = M({given}); }}" for given in ("x[1, 2]", "int2{1, 2}.x")),
    *(f"enum E {{ A, B }}; enum class F {{ A, B }}; template <{kind}> __device__ int f() {{ return 1; }}\n{HEAD}o[i] = f<{given}>(); }}"
      for kind, given in (("E V", "1"), ("F V", "1"), ("int V", "F::B"))),
    *(f"#include <cuda_bf16.h>\n{HEAD}__nv_bfloat16 a = 3; x[i] = {wrong}; }}" for wrong in ("a + 1", "2.0f * a", "a < 1")),
    *(f"{INCLUDE}{HEAD}half a = 3; x[i] = {wrong}; }}" for wrong in ("n ? a : 1.0f", "abs(a)")),
    *(f"""struct H {{ float v; __device__ H(float a) : v(a) {{}} __device__ operator float() const {{ return v; }} }};
      __device__ H operator*(H a, H b) {{ return H(a.v * b.v); }}\n{HEAD}H h(3); x[i] = {wrong}; }}""" for wrong in ("h * 2", "2.0f * h")),
    "__device__ int f(int a) { return a; }\n" + HEAD + "constexpr int k = f(4); o[i] = k; }",
    "struct S { static __device__ int f() { return 1; } };\n" + HEAD + "constexpr int k = S::f(); }",
    "__device__ int f(int a) { return a; }\n__device__ int v = f(4);\n" + HEAD + "o[i] = v; }",
    "struct S { int a; __device__ S() : a(1) {} };\n__device__ S s;\n" + HEAD + "o[i] = s.a; }",
    *(f"{EXPLICIT}{HEAD}S s(1); {wrong} }}" for wrong in (
        "S t = 3;", "s = 3;", "o[i] = f(3);", "o[i] = s;", "o[i] = s + 1;", "bool b = s;", "float a[1] = {s};",
        "x[i] = sqrtf(s);", "S t[2] = {1, 2};", "int v = (int)s;", "o[i] = g().a;")),
]  # fmt: skip

# docs/cuda_c.md has more, and its test runs them.
UNSUPPORTED = [
    "float (*f)(float) = sinf; x[i] = f(1);", "long double d;", "x[i] = surf2Dread<float>(0, 1, 2);",
    "x[i] = __hadd_sat(x[0], x[1]) + hexp2(x[2]);", "switch (n) { case 0: { case 1: o[i] = 1; } }",
    "switch (n) { case 1 ... 3: o[i] = 1; }", "\n#define F(...) 1 __VA_OPT__(+ 1)\n",
    "x[i] = sqrtf({1.0f});", "using A = int[2]; A{1, 2};", "printf(x);", 'printf("%d", x);', "for (float v : x) o[i] = 1;", "here: o[i] = 1;",
    "const int& r = n; const int* p = &r;", "int a[2]; int (&r)[2] = a;", "int v = (int&)x[i];",
    "float2 v = (float2){1, 2};", "int&& r = 1;", "o[i] = max(i...);", "static int a = 1;",
]  # fmt: skip
# What a GPU has and the simulated device has not, and what a message says to take instead: docs/cuda_c.md has more.
GROUPS = "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
INSTEAD = [
    ("cuda::pipeline<cuda::thread_scope_thread> p = cuda::make_pipeline();", "", "libcu++", "loads and stores"),
    ("cg::this_cluster().sync();", GROUPS, "clusters", "this_grid().sync()"),
    ("switch (n) { int a; case 0: a = 1; }", "", "before the first case", "before the switch"),
    ("const CUtensorMap* t;", "", "CUtensorMap", "loads and stores"),
    ("o[i] = sizeof(int[3]);", "", "an array", "typedef"), ("int (a) = 1;", "", "brackets", "leave them"),
    ("o[i] = __nv_cvt_float_to_fp8(1.0f, 0, 0);", "", "8 bits", "half or float"),
    ("surf2Dwrite(x[i], 0, 4, 0);", "", "surfaces", "pass the array"),
    ("float4 p = tex2D<float4>(i, 1.0f, 2.0f);", "", "textures", "as a pointer"),
    ("x[i] = tex2DLod<float>(i, 1.0f, 2.0f, 0.0f);", "", "textures", "ordinary loads"),
    ("x[i] = texCubemap<float>(i, 1.0f, 2.0f, 0.0f);", "", "textures", "ordinary loads"),
    ("tex2D(x, i, 1.0f, 2.0f);", "", "textures", "ordinary loads"),
    ("nvstd::function<int(int)> f;", "", "nvstd::function", "a pointer to a function"),
]  # fmt: skip
FILES_UNSUPPORTED = [
    "struct A { int a; }; struct B : virtual A { };\n" + HEAD + "B b; }",
    "__device__ int f(int a) { return f(a - 1); }\n" + HEAD + "o[i] = f(1); }",
    "template <typename... T> __device__ void f(T... t) {}\n",
    # However the pointer went on its way.
    *(f"__device__ float* f(float* p) {{ return p; }} __global__ void k(const float* x, float* y, float** z) {{ {text} }}"
      for text in [
          "float* p = (float*)x; p[0] = 1;", "float* r[1]; r[0] = (float*)x; r[0][0] = 1;", "f((float*)x)[0] = 1;",
          "float* r[1] = {(float*)x}; r[0][0] = 1;", "struct { float* p; } s; s.p = (float*)x; s.p[0] = 1;",
          "z[0] = (float*)x; z[0][0] = 1;", "float* p = threadIdx.x ? (float*)x : y; *p = 1;",
          "float* p = y; p = (float*)x; *p = 1;", "atomicAdd((float*)x, 1.0f);", "float& r = *(float*)x; r = 1;",
          "auto g = [=]() { *(float*)x = 1; }; g();"]),
    "__global__ void k(const float* x, float* o) { float4* p = (float4*)x; *o = p->x; ((float*)p)[1] = 2; }",
    "__global__ void inner() {}\n" + HEAD + "inner(); }",
    "__global__ void k(int& a) {}",
    *(before + HEAD + text + " }" for before, text in [
        ("union U { char c; int n; };\n", "U u = {1};"),
        ("__device__ int w(volatile int* o) { while (o[0] == 7); return o[0]; }\n",
         "int k = 0; do { k++; if (k == 1) continue; x[i] = k; } while (k < 3 && w(o) == 0);"),
        ("__device__ int f(float2 p) { return 1; } __device__ int f(int2 p) { return 2; }\n", "o[i] = f({1, 2});"),
        ("__device__ int& f(bool b, int& a, int& c) { if (b) return a; return c; }\n",
         "__shared__ int s; int l = 0; f(n > 1, l, s) = 1;"),
        ("__device__ int& f(bool b, int& a, int& c) { return b ? a : c; }\n", "int l = 1, k = 2; int& r = f(n > 1, l, k);"),
        ("template <class T> __device__ T f(T a) { return a; }\ntemplate <class T> __device__ T f(T a, T b) { return a; }\n",
         "int (*p)(int) = f<int>;"),
        ("__device__ auto f(int a) { return a; }\n", "int (*p)(int) = f;"), ("__global__ void kernel() {}\n", "auto p = kernel;"),
        ("struct S { int v; __device__ int f() { auto g = [](int a) { return a; }; return g(1); } };\n", "S s{1}; o[i] = s.f();"),
        ("struct S { int v; __device__ S* me() { return this; } };\n", "S s{3}; o[i] = s.me()->v;"),
        ("struct D : float2 { int c; };\n", "D d;"), ("struct S { int& r; };\n", "S s{n};"),
        ("__device__ int f(int a) { throw 1; }\n", "int (*p)(int) = f;"),
        ("struct A { int v[2]; };\n__device__ A f() { A a = {}; return a; }\n", "o[i] = f().v[0];"),
        ("__device__ int v = 1;\nstruct S { static const int a = v; };\n", "o[i] = S::a;"),
        ("__device__ int b = 1; __device__ int a = b;\n", "o[i] = a;"),
        ("template <float F> __device__ int f() { return 1; }\n", "o[i] = f<1.0f>();"),
        ("struct A { int a; };\nstruct __attribute__((packed)) B : A { char c; };\n", "B b;"),
        ("#pragma pack(push, 1)\nstruct S { int a;\n#pragma pack(pop)\n char b; };\n", "S s;"),
        ("template <class T> struct S { T a; friend __device__ int f(S s) { return 1; } };\n", "S<int> s;"),
        ("struct S { int a; __device__ int f() { auto g = [this]() { return a; }; return g(); } };\n", "S s; o[i] = s.f();"),
        ("struct S { int a; __device__ ~S() { a = 1; } };\n", "S s;"),
        ("struct S { int a; __device__ S(const S& s) { a = s.a + 1; } };\n", "S s = *(S*)x;"),
        ("struct S { int a, b; __device__ S(const S& s) : a(s.b), b(s.a) {} };\n", "S s = *(S*)x;"), ("#if 1 ? 1 : 0\n#endif\n", ""),
        ("struct A { int a; }; struct C { int c; }; struct B : A, C { };\n", "B b;"),
        ("struct S { int a; __device__ virtual int f() { return 1; } };\n", "S s;"),
        ("__device__ int f(int a, ...) { return a; }\n", "o[i] = f(1);"),
        ("__device__ int f(int a) { throw 1; } __device__ int f(float a) { return 2; }\n", "o[i] = f(1);"), ("", "typedef int R[]; R r = {1, 2};"),
        (GROUPS + "__device__ int f(int a) { cg::this_grid().sync(); return a; } __device__ int g(int a) { return 2 * a; }\n",
         "int (*p)(int) = n > 3 ? f : g; o[i] = p(i);"),
        ("static __device__ union { int a; float b; };\n", "a = 1;"), ("struct T { int a; }; __device__ int T = 3;\n", ""),
        ("__device__ int T(int a) { return a; } struct T { int a; };\n", ""),
    ]),
]  # fmt: skip
_NEEDS = "template <int N> struct F { static constexpr int v = F<N - 1>::v + 1; };\n"


@pytest.mark.parametrize(("text", "before", "what", "instead"), INSTEAD)
def test_what_only_a_gpu_has_says_what_to_use(
    text: str, before: str, what: str, instead: str
) -> None:
    error = refuse(before + HEAD + text + " }", errors.UnsupportedFeatureError)
    first = str(error).splitlines()[0]
    assert what in first
    assert instead in first.partition(what)[2]
    assert "a GPU runs this; the simulated device does not" in first
    assert error.line == (before + HEAD).count("\n") + 1


# Names that a GPU has, or has with a header, and names that nobody has: `told` holds what is said of each.
CALLED = """malloc free cudaDeviceSynchronize cudaMemcpyAsync cudaStreamCreate cudaPeekAtLastError __float_to_tf32
curand_poisson tex3D surfCubemapwrite this_cluster map_shared_rank __nv_cvt_halfraw_to_fp8 labeled_partition
exclusive_scan_update invoke_one_broadcast __fma_rd frexp erfinv normcdfinvf j0f rnorm3d remquo sincospi cyl_bessel_i1
__vabsdiffs2 __half_as_short __float162_x h2exp __hcmadd2 __viaddmax_s16x2 __vibmax_u32 __fns __nv_bswap32 __isShared
__ull2double_rz cudaGraphLaunch cudaGraphKernelNodeSetParam cp_async_wait_group curand skipahead this_grid __shfl_xor
coalesced_threads __any __pipeline_commit __mbarrier_arrive memcpy_async __float2half __half_x sqrff __syncthread nothing"""
DECLARED = """__nv_fp8_e4m3 CUtensorMap curandStateSobol32_t curandDirectionVectors64_t wchar_t char16_t cluster_group half
cudaGraphExec_t cudaGraphDeviceHandle cudaEvent_t cudaTextureObject_t CUtexObject CUsurfObject __half2 __nv_bfloat162
curandStateXORWOW_t curandStatePhilox4_32_10 thread_block_tile grid_group cub::BlockScan thrust::pair cuda::latch nothing
cuda::atomic cuda::memory_order nvstd::function cute::Tensor torch::Tensor wmma::fragment std::vector texture<int>"""


@pytest.mark.parametrize(("names", "use"), [(CALLED, "{}(1);"), (DECLARED, "{} v;")])
def test_each_name_that_is_not_there_says_why(names: str, use: str) -> None:
    for name in names.split():
        with pytest.raises(errors.KernelCompileError, match=re.escape(name.partition("<")[0])):
            compile_source(HEAD + use.format(name) + " }").kernel("k")


@pytest.mark.parametrize("text", WRONG)
def test_wrong_statements(text: str) -> None:
    """At once, and not when the kernel is asked for, even beside one that is right."""
    with pytest.raises(errors.KernelCompileError) as caught:
        compile_source(f"__global__ void right() {{}} {HEAD}{text} }}")
    assert not isinstance(caught.value, errors.UnsupportedFeatureError)
    assert caught.value.line == 1
    assert caught.value.column is not None


@pytest.mark.parametrize("source", FILES_WRONG)
def test_wrong_files(source: str) -> None:
    refuse(source, errors.KernelCompileError)


@pytest.mark.parametrize(
    "source", [*(f"{HEAD}{text} }}" for text in UNSUPPORTED), *FILES_UNSUPPORTED]
)
def test_unsupported(source: str) -> None:
    assert "a GPU runs this" in str(refuse(source, errors.UnsupportedFeatureError))


BITS = "bit-fields are not supported"
REFUSED, GPU_ONLY = errors.KernelCompileError, errors.UnsupportedFeatureError
INTEGER = "only an integer can be added to a pointer, not a 'float"
SAID = [
    *((GPU_ONLY, source, why) for source, why in [
        ("struct S { unsigned a : 3; int b; };\n" + HEAD + "S s; }", BITS),
        ("struct S { unsigned : 3; int b; };\n" + HEAD + "S s; }", BITS),
        ("template <typename T> struct S {};\n" + HEAD + "S<int[7]> s; }", "an array type as"),
        (_NEEDS + HEAD + "o[i] = F<5>::v; }", "nested too deep"),
        (HEAD + f"o[i] = {'(' * 400}i{')' * 400}; }}", "nested too deep"),
        (HEAD + f"o[i] = {'- ' * 900}i; }}", "nested too deep"),
        ("static_assert(std::is_polymorphic<int>::value);\n" + HEAD + "}", "cannot be checked"),
        (f"struct alignas(2) P {{ float x; }}; {HEAD} P p; }}", "below that of the members (4)"),
    ]),
    (REFUSED, f"struct alignas(12) P {{ float x; }}; {HEAD} P p; }}", "12 bytes is not a power of two"),
    (REFUSED, HEAD.partition("{")[0] + ";", "has no body in this file"),
    # A GPU's compiler refuses these too.
    *((REFUSED, f"{HEAD}{text} }}", f"#include <{header}> first") for text, header in [
        ("curandState s;", "curand_kernel.h"), ("o[i] = curand_uniform(0);", "curand_kernel.h"),
        ("__nv_bfloat16 b;", "cuda_bf16.h"), ("half h;", "cuda_fp16.h"),
    ]),
    *((REFUSED, f"{HEAD}auto p = {expression}; }}", message) for expression, message in [
        ("x * 2", "operator '*' cannot take a pointer"), ("2 % x", "operator '%' cannot take a pointer"),
        ("x & 1", "operator '&' cannot take a pointer"), ("2 - x", "a pointer cannot be subtracted from a number"),
        ("x - o", "'float*' and 'int*' point to different things"), ("x + x", INTEGER + "*'"),
        ("x + 1.0f", INTEGER + "'"), ("x - 1.0f", INTEGER + "'"),
    ]),
    (REFUSED, HEAD + "static_assert(n == 5); }", "known when the file is compiled"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "source", "why"), SAID)
def test_a_refusal_says_why(kind: type[errors.KernelCompileError], source: str, why: str) -> None:
    assert why in str(refuse(source, kind))


def test_a_kernel_that_grows_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "_MOST_POINTS", 50)
    twice = "".join(f"__device__ void f{k + 1}(int* o) {{ f{k}(o); f{k}(o); }}\n" for k in range(9))
    source = f"__device__ void f0(int* o) {{ *o += 1; }}\n{twice}{HEAD} f9(o); }}"
    assert "too large once" in str(refuse(source, errors.UnsupportedFeatureError))


def test_message_has_line_column_and_caret() -> None:
    lines = (
        "__global__ void relu(float* x, int n) {",
        "\tint i = threadIdx.x;",
        "\tif (i < N) x[i] = 0;",
    )
    error = refuse("\n".join([*lines, "}"]), errors.KernelCompileError)
    assert (error.line, error.column) == (3, 10)
    assert str(error) == (
        "kernel.cu:3:10: error: 'N' is not declared (did you mean 'n'?)\n"
        "    \tif (i < N) x[i] = 0;\n"
        "    \t        ^"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("source", "line", "column", "what"),
    [
        # What is missing is missed where it should be, and a macro is blamed where it is used.
        ("__global__ void k(int* x) {\n  int i = 1\n  x[i] = 1;\n}", 2, 12, "expected ';'"),
        (f"#define BAD undeclared\n{HEAD}\n  x[i] = BAD; }}", 3, 10, "'undeclared' is not declared"),
        *((f"{HEAD}\n  x[i] = {name}.sqrt(x[i]); }}", 2, 10, f"there is no '{name}' in CUDA C")
          for name in ("np", "numpy", "math")),
    ],
)  # fmt: skip
def test_a_message_points_at_its_cause(source: str, line: int, column: int, what: str) -> None:
    error = refuse(source, errors.KernelCompileError)
    assert (error.line, error.column) == (line, column)
    assert what in str(error)


def test_an_unused_template_may_be_wrong_until_it_is_used() -> None:
    before = "template <typename T> __device__ T f(T a) { return a.nothing; }"
    body("x[i] = 1;", before=before)
    refuse(f"{before}\n{HEAD} x[i] = f(1.0f); }}", errors.KernelCompileError)


def test_unknown_kernel_lists_those_there_are() -> None:
    program = compile_source("__device__ int f() { return 1; }" + HEAD + "}")
    with pytest.raises(
        errors.KernelCompileError, match="a __device__ function, which only kernels"
    ):
        program.kernel("f")
    with pytest.raises(errors.KernelCompileError, match=r"'kk'; its kernels: k\. Did you mean"):
        program.begin("kk", (1, 1, 1), (1, 1, 1), []).finish()


HEADS = """#include <cuda_fp16.h>
#include <cooperative_groups.h>
typedef unsigned int u32;
struct alignas(8) Big { virtual void f(); };
namespace cg = cooperative_groups;
extern "C" __global__ void __launch_bounds__(256) go(const float* __restrict__ a, half *b, u32 n,
    const float4* v, long long big, unsigned char flags[], bool on, double* const out) {
    cg::grid_group g = cg::this_grid(); asm("nop;"); int& r = *[](){}; }
template <typename T, int N> __global__ void t(T* x, T y) { nonsense }"""


def test_heads_of_kernels_that_do_not_compile() -> None:
    found = parse_signature(HEADS, "go")
    assert found.name == "go"
    assert [(p.name, p.ctype, p.pointer, p.const, p.dtype.str[1:]) for p in found.parameters] == [
        ("a", "float", True, True, "f4"), ("b", "half", True, False, "f2"), ("n", "unsigned int", False, False, "u4"),
        ("v", "float4", True, True, "f4"), ("big", "long long", False, False, "i8"), ("flags", "unsigned char", True, False, "u1"),
        ("on", "bool", False, False, "b1"), ("out", "double", True, False, "f8"),
    ]  # fmt: skip
    template = parse_signature(HEADS, "t<double, 4>")
    assert template.name == "t<double, 4>"
    assert [p.ctype for p in template.parameters] == ["double", "double"]
    assert [p.pointer for p in template.parameters] == [True, False]
    assert compile_source(HEAD + "}").kernels["k"] == parse_signature(HEAD + "}", "k")


@pytest.mark.parametrize(
    ("name", "why"),
    [("t", "is a template of T, N"), ("t<int, 4, 5>", "has 2 .*, 3 given"), ("missing", "its kernels: go, t"),
     ("t<int, [] {}>", "expected an expression"), ("go!", "its kernels: go, t")],
)  # fmt: skip
def test_names_that_no_kernel_has(name: str, why: str) -> None:
    with pytest.raises(errors.KernelCompileError, match=why):
        parse_signature(HEADS, name)


def launched(*args: object, grid: Any = (1, 1, 1), block: Any = (32, 1, 1)) -> None:
    ready = [memory(np.zeros(32, a)) if isinstance(a, type) else a for a in args]
    compile_source(HEAD + "}").begin("k", grid, block, ready).finish()


@pytest.mark.parametrize(
    ("args", "match"),
    [
        ((1.5, np.int32, 1), "'x'"), ((np.float32, np.int32, 1.5), "'n'"), ((np.float32, np.int32, 1 << 40), "'n'"),
        ((np.float32, np.int32, np.float32(1)), "'n'"), ((np.float32, np.int32, GlobalMemory(4)), "'n'"),
    ],
)  # fmt: skip
def test_wrong_arguments(args: tuple[object, ...], match: str) -> None:
    with pytest.raises(errors.ArrayDTypeError, match=match):
        launched(*args)
    with pytest.raises(errors.UsageError, match=r"takes 3 arguments \(x, o, n\), and got 2"):
        launched(*args[:2])


@pytest.mark.parametrize(
    ("grid", "block"),
    [((0, 1, 1), (32, 1, 1)), ((1, 70000, 1), (32, 1, 1)), ((1, 1, 1), (2048, 1, 1)),
     ((1, 1, 1), (32, 33, 1)), ((1, 1, 1), (1, 1, 65))],
)  # fmt: skip
def test_bad_launches(grid: tuple[int, ...], block: tuple[int, ...]) -> None:
    with pytest.raises(errors.LaunchConfigError):
        launched(np.float32, np.int32, 1, grid=grid, block=block)
