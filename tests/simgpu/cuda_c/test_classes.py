"""C++ around data: member functions, constructors, operators, templates of structs, namespaces."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simgpu import errors
from simgpu.cuda_c import compile_source, parse_signature

from .support import body, check, launch

FIRST = np.arange(32)
CLASSES = Path(__file__).with_name("classes.cu").read_text()

# What is written to x or to o. docs/cuda_c.md has more, and its test runs them.
USES: list[tuple[str, Any]] = [
    # Members and operators.
    ("Vec a(3, 4); x[i] = a.norm2();", 25),
    ("Vec a(1, 2); a += Vec(3, 4); a += 1; x[i] = 10 * a.x + a.y;", 57),
    ("Vec a(1, 2); x[i] = (2.0f * a * 3.0f).y;", 12),
    ("Vec a; x[i] = a.x + a.y;", 0),
    ("Vec a = 7; x[i] = a.y;", 7),
    ("Vec a(1, 2); Vec* p = &a; p->scale(3); x[i] = 10 * p->x + (*p).y;", 36),
    ("x[i] = Vec(2, 3)(10) + Vec::unit().x + Vec::SIZE;", 26),
    ("x[i] = (Vec(1, 2) == Vec(1, 2)) * 2 + (Vec(1, 2) == Vec(2, 1));", 2),
    ("Vec::value_type a = 1.5f; x[i] = a;", 1.5),
    ("__shared__ Vec s[2]; if (i < 2) s[i] = Vec(i, 5); __syncthreads(); x[i] = s[1].dot(s[1]);", 26),
    # References.
    ("B b = {0}; ++(++b); o[i] = b.n;", 2),
    ("B b = {1}; (b += 3).twice(); (b += 1) += 2; o[i] = b.n;", 11),
    ("B b = {1}; same(b).n = 5; same(b.add(1)).add(2).twice(); o[i] = b.n;", 16),
    ("B b = {1}; b.add(4).n = 7; b.add(1).n += 2; o[i] = b.n;", 10),
    ("B b = {1}; B& r = b.add(4); r.add(5); B c = b.add(1); c.add(9); o[i] = b.n * 100 + c.n;", 1120),
    ("B v[2] = {{1}, {2}}; v[0].add(3).add(4); (v[1] += 5).twice(); o[i] = v[0].n * 100 + v[1].n;", 814),
    ("B b = {1}; o[i] = b.add(2).add(3).get() * 10 + b.add(1).n;", 67),
    ("B b = {1}; (b += 1) = B{7}; o[i] = b.n;", 7),
    ("B v[2] = {{1}, {2}}; (i % 2 ? v[0] : v[1]).add(3); B& r = n > 3 ? v[0] : v[1]; r.n += 4; o[i] = (v[0].n + v[1].n) * 10 + (n < 3 ? v[0] : v[1]).get() / 9;", 100),
    ("B a = {3}, b = {4}; o[i] = (n > 3 ? a : b).get() * 10 + low(a.n, b.n);", 33),
    ("B a = {1}, b = {2}; int p = 3, q = 4; o[i] = choose(a, b, n < 0).get() * 10 + low(p, q);", 23),
    # Conversions.
    ("SharedMemory<int> m; const int* s = m; int* w = m; w[i] = 3; x[i] = s[i];", 3),
    ("Count c; ++c; ++(++c); float q[4] = {0, 1, 2, 3}; x[i] = c + q[c] + -c;", 3),
    ("Number f(4); x[i] = f + 1.5f + half_of(f) + f / 0.25f; if (f) x[i] += 100; if (!Number(1)) x[i] += 200;", 323.5),
    ("Count c; ++c; Number f = 3; x[i] = c < f ? 1 : 2; double d = f; x[i] += d;", 4),
    # Templates.
    ("sizeof(Box<double>) + sizeof(Box<char, 3>)", 35),
    ("pick(i, 5, Less<int>{}) == (i < 5 ? i : 5)", 1),
    ("kind(1) * 100 + kind(1.0f) * 10 + kind(1.0)", 12),
    ("Box<int, 3> b = {{1, 2, i}}; float q[7]; o[i] = sum(b) * 10 + length(q);", 37 + 10 * FIRST),
    # Names.
    ("ab::f(2) + c::g() + ::a::N", 5 + 4 + 3),
    ("f(1) + N", 7),
    ("(int)Mode::On + (int)sizeof(Mode)", 4),
    ("std::min(3, n) + std::max(1, 2) + std::abs(-4)", 9),
    ("std::max<int>(1, 2u)", 2),
    ("std::numeric_limits<float>::lowest() == -FLT_MAX", 1),
    ("std::is_same<int, int>::value * 2 + std::is_same<int, float>::value", 2),
    ("a::b::S s{4}; o[i] = s.v;", 4),
    ("Color c = GREEN; switch (c) { case RED: o[i] = 1; break; case GREEN: o[i] = 2; break; default: break; }", 2),
    ("Row r = {1, 2, 3, 4}; o[i] = r[2];", 3),
    ("int q[3] = {1, 2, 4}; for (auto& v : q) v *= 2; o[i] = q[0] + q[1] + q[2];", 14),
    ("int dim3 = 4; o[i] = dim3 + 1;", 5),
    ("float* const p{reinterpret_cast<float*>(&x[0])}; p[i] = 3; o[i] = x[i];", 3),
    ("dim3 d(4, 2); o[i] = d.x + d.y + d.z;", 7),
    ("union U { float f; unsigned u; unsigned char b[4]; }; U u; u.f = 1.0f; o[i] = u.u == 0x3f800000u && u.b[3] == 0x3f;", 1),
    ("struct { int a, b; } both; both.a = 1; both.b = 2; o[i] = both.a * 10 + both.b;", 12),
    ("struct W { union { struct { int a, b; }; int v[2]; }; int c; }; W w; w.v[1] = 7; w.a = 1; w.c = 2; o[i] = w.b * 10 + w.a + w.c;", 73),
    # Bases.
    # A function of the base calls the base's own, as nothing here is virtual.
    ("Square q(3.0f); o[i] = q.area();", 24),
    ("Square q(3.0f); Shape s = q; o[i] = q.sides() + s.sides() * 100;", 444),
    ("Tiny q; o[i] = q.all();", 95),
    ("Square q(3.0f); o[i] = area_of(q) + by_value(q) + by_pointer(&q);", 24 + 10 + 24),
    ("More m{{1, 2}, 3}; m.a += 5; Plain p = m; o[i] = m.c + p.a * 10;", 63),
    ("Some s; o[i] = s.seven() + s.x;", 8),
    ("Twice<int> w(21); o[i] = w.two() + w.get();", 63),
    ("Square::real r = 2.5; o[i] = r * 2 + Square::DIM + Square::two();", 9),
    ("Square a[2] = {1.0f, 2.0f}; o[i] = a[1].area();", 16),
    # Parts.
    ("Nine a[2][2]; o[i] = a[1][1].x;", 9),
    ("Nine a[3] = {1.0f, Nine(2.0f)}; o[i] = a[0].x + a[1].x * 10 + a[2].x * 100;", 942),
    ("Nine a[2] = {{}, {3.0f}}; o[i] = a[0].x + a[1].x * 10;", 69),
    ("Five a[2] = {1, 2, 3}; o[i] = a[0].m * 10 + a[1].n;", 23),
    ("Five a[2] = {{1}, {}}; o[i] = a[0].n * 10 + a[1].n;", 15),
    ("Pair p; o[i] = p.v[1].x;", 9),
    ("Pair p = {{1.0f}, 4}; o[i] = p.v[0].x * 100 + p.v[1].x * 10 + p.k;", 294),
    ("Mixed q; o[i] = q.v.x * 100 + q.w.n * 10 + q.k;", 951),
    # Lambdas.
    ("float w = 3; auto f = [=](float a) { return a * w; }; w = 50; o[i] = f(2) + apply(f, 10);", 36),
    ("float w = 3; auto f = [&](float a) { w += 1; return a * w; }; o[i] = f(2) + apply(f, 10) + w;", 63),
    ("int s = 0; each(4, [&](int j) { if (j == i) return; s += j; }); o[i] = s;", 6 - FIRST * (FIRST < 4)),
    ("auto g = [](auto a, auto b) { return a > b ? a : b; }; o[i] = g(3, i) + (int)g(2.5f, 1.0f);", np.maximum(3, FIRST) + 2),
    ("auto f = [k = i * 2](int a) mutable { k += a; return k; }; o[i] = f(1) + f(1);", 4 * FIRST + 3),
    ("Weighted p{1, 2.5f}; auto f = [p, x](int a) -> float { return p.a + p.b * a + x[a]; }; p.a = 9; o[i] = f(2);", 8),
    ("o[i] = [](int a) { return a + 1; }(i);", FIRST + 1),
    ("const int K = 4; auto f = [=] __device__ (int a) { return a * K; }; o[i] = f(i);", 4 * FIRST),
    ("int q[3] = {1, 2, 3}; auto f = [&](int a) { q[a] = 7; return q[0] + q[1]; }; o[i] = f(1);", 8),
    # What is declared below it is not what it means.
    ("int v = 1; { auto f = [&]() { return v; }; int v = 2; o[i] = f() * 10 + v; }", 12),
    ("int v; auto f = [=](int a) { int v = a; return v + 1; }; o[i] = f(i);", FIRST + 1),
    ("int s = 0; auto f = [&s](int a) -> int& { s += a; return s; }; f(3) = 10; f(i); o[i] = s;", 10 + FIRST),
    ("auto f = [=](int a) { return a * i; }; auto* p = &f; const auto& g = f; o[i] = (*p)(3) + g(1);", 4 * FIRST),
    ("__shared__ int s[32]; s[i] = i; auto f = [=]() { return s[i]; }; s[i] += 1; o[i] = f();", FIRST + 1),
    # What makes one without members is called.
    ("Empty a[2] = {made(o), made(o)}; o[i] += 0;", 10),
    ("Around q = {1, made(o), 2}; o[i] += q.b;", 7),
    ("Around q; q.a = 1; q.e = made(o); q.b = 2; o[i] += q.a + q.b;", 8),
    ("Behind a = {{1, 2}, made(o)}; o[i] += a.v[1];", 7),
    ("Empty e = made(o); Empty* p = &e; *p = made(o); o[i] += 0;", 10),
    ("auto f = [e = made(o)]() { return 3; }; o[i] += f();", 8),
    ("o[i] = file[1].b * 10 + file[0].b;", 53),
]  # fmt: skip
SPACE = """namespace a { enum E { one = 4 }; typedef int T; const int K = 3;
    struct S { int v; __device__ int twice(); };
    __device__ int f() { return 2; } __device__ int g(S s) { return s.v; } __device__ int g(S* s) { return s->v; } }
"""
OTHERS = [
    # A friend that is only declared says nothing new, and one with a body is a function of the file.
    ("""class Half { int v; friend class Other; static_assert(sizeof(int) == 4, "as on a GPU");
        public: __device__ Half(int v) : v(v) {}
        friend __device__ int twice(Half a); friend class Third;
        int w = 3; };
    __device__ int twice(Half a) { return 2 * a.v + a.w; }""", "twice(Half(i))", 2 * FIRST + 3),
    ("""struct V { int a; int b = 1;
        friend __device__ V operator*(int s, const V& v) { V r; r.a = s * v.a; r.b = s; return r; }
        __device__ inline friend int sum(V v) { int s = v.a; s += v.b; return s; }
        int c = 2; };""", "V v; v.a = i; V w = 3 * v; o[i] = sum(w) + w.c;", 3 * FIRST + 5),
    ("""struct A { int v; __device__ A(int a) : v{a + 1} {} __device__ int f() { return v; } __device__ ~A() {} };
        struct B : A { __device__ B(int a) : A(a) {} __device__ int f() { return 9; } };""",
     "B b(3); B* p = &b; o[i] = b.A::f() * 10 + p->f() + p->A::f() * 100;", 449),
    # What a constructor takes is said in the words of its class.
    ("""struct E { int e; }; struct W { using T = E; int v; __device__ W(T a) : v(a.e) {} };
    __device__ int f(W w) { return w.v; }""", "E e; e.e = i; o[i] = f(e);", FIRST),
    # Each thread has objects of its own.
    (CLASSES, """Vec a(i, 1); if (i % 2) a.scale(2); for (int k = 0; k < i % 3; k++) a += Vec(1, 1);
        x[i] = a.x * 100 + a.y;""", (FIRST * (1 + FIRST % 2) + FIRST % 3) * 100 + 1 + FIRST % 2 + FIRST % 3),
    # What a constructor leaves out may be copied.
    (CLASSES, """Ray r(Three(i), Three(2)), empty; Ray many[2]; many[1] = Ray(Three(5), r.end()); empty.from = Three(1);
        x[i] = r.end()[1] * 100 + many[1].to[0] * 10 + empty.from[0];""", 321),
    # Members that are arrays live in memory.
    ("""template <typename T, int N> struct Stack {
        T data[N]; int top = 0;
        __device__ void push(T v) { data[top++] = v; }
        __device__ T pop() { return data[--top]; }
        __device__ T& at(int k) { return data[k]; }
        __device__ int capacity() const { return N; } };""",
     """Stack<int, 8> s; for (int k = 0; k <= i % 5; k++) s.push(k * i);
        s.at(0) += 1000; s.at(0)++; int top = s.pop(); o[i] = top * 10 + s.capacity() + (s.top == i % 5);""",
     np.where(FIRST % 5 == 0, 1001, FIRST % 5 * FIRST) * 10 + 9),
    ("""struct P { int v; __device__ P(int a); __device__ int twice() const; };
        __device__ P::P(int a) : v(a + 1) {}
        __device__ int P::twice() const { return 2 * v; }""", "P(3).twice()", 8),
    ("struct C { int a = 3; float b[2] = {1, 2}; int c = a + 1; };",
     "C c; C d{5}; x[i] = c.a * 1000 + c.b[1] * 100 + c.c * 10 + d.a;", 3245),
    ("__device__ int g; __device__ int& f(int* o, int k) { return o[k]; }",
     "o[i] = 5; f(o, i) += i; f(o, i)++;", FIRST + 6),
    ("__device__ auto half_of(int a) { return a * 0.5f; }\n__device__ auto g(int a) -> float { return a; }",
     "x[i] = half_of(i) + g(i);", FIRST * 1.5),
    ("struct S { int v[2]; int b = 7; };", "S s = {{1, 2}}; o[i] = s.b * 10 + s.v[1];", 72),
    ("struct S { int v; float w; S() = default; };", "S s{}; o[i] = s.v + (s.w == 0);", 1),
    ("struct S { int v; __device__ S* me() { return this; } };", "S s{3}; S* p = &s; o[i] = p->me()->v;", 3),
    ("struct A { static __device__ int f() { return 4; } }; struct B { int v; __device__ int g() { return A::f() + v; } };",
     "B b{3}; o[i] = b.g();", 7),
    # Templates of structs: one that is only declared, as an argument, and the base of what is given.
    ("""template <class T> struct W; template <> struct W<int> { int v; }; template <class T> struct U {};
        template <template <class> class V> struct X { static const int k = 1; };
        template <> struct X<W> { static const int k = 2; };""", "W<int> a{4}; o[i] = a.v * 100 + X<U>::k * 10 + X<W>::k;", 412),
    ("""template <class T> struct B { T v; }; struct D : B<int> { int w; };
        template <class T> __device__ T f(const B<T>& b) { return b.v + sizeof(T); }
        template <template <class> class V, class T> __device__ T g(V<T> v) { return v.v + sizeof(V<short>); }""",
     "D d; d.v = 3; B<int> b{3}; o[i] = f(d) * 10 + g(b);", 75),
    # A name of several namespaces is found from the function that says it.
    ("""__device__ int f() { return 1; }
    namespace a { __device__ int f() { return 2; } __device__ int g() { return f(); } const int K = 1; }
    namespace b { __device__ int f() { return 3; } namespace c { __device__ int g() { return f(); } } const int K = 2; }
    namespace bc = b::c;""", "f() * 10000 + a::f() * 1000 + b::f() * 100 + a::g() * 10 + bc::g()", 12323),
    # Names of a namespace: said, used, of a base, found by an argument, and of inline and unnamed ones.
    (SPACE, "a::S s{a::K}; o[i] = s.v + a::f() + a::T(1) + a::one;", 3 + 2 + 1 + 4),
    (SPACE, "using a::S; using namespace a; S s{K}; o[i] = s.v + f() + T(1) + one;", 3 + 2 + 1 + 4),
    (SPACE + "using a::S; using a::f;", "S s{1}; o[i] = s.v + f();", 1 + 2),
    (SPACE + "struct D : a::S { S* next; };", "D d; d.v = 5; o[i] = d.v;", 5),
    (SPACE, "a::S s{6}; o[i] = g(s) + g(&s);", 12), (SPACE, "namespace q = a; o[i] = q::f();", 2),
    (SPACE + "__device__ int a::S::twice() { S s{K}; return s.v + v; }", "a::S s{6}; o[i] = s.twice();", 9),
    ("inline namespace v { struct S { int x; }; const int K = 1; } namespace { const int L = 2; }",
     "S s{K}; v::S t{v::K}; o[i] = s.x + t.x + L;", 4),
    # A file may add forms to a function that is built in.
    ("__device__ float4 make_float4(float3 a, float b) { return make_float4(a.x, a.y, a.z, b); }",
     "x[i] = make_float4(make_float3(1, 2, 3), 4).w + make_float4(1, 2, 3, 5).w;", 9),
    ("#include <cuda_fp16.h>\n", """half2 a = __floats2half2_rn(i + 1.0f, 2.0f), b = a * a + a; b -= a / a;
        x[i] = __low2float(b) + __high2float(b);""", (FIRST + 1.0) ** 2 + FIRST + 5),
]  # fmt: skip


@pytest.mark.parametrize(("before", "text", "value"), [*((CLASSES, *row) for row in USES), *OTHERS])
def test_values(
    before: str, text: str, value: float | np.ndarray, tell: Callable[[str], None]
) -> None:
    tell(check(text, value, before))


WRONG, UNSUPPORTED = errors.KernelCompileError, errors.UnsupportedFeatureError
FRIEND = "template <typename T> struct V { T a; friend __device__ int f(V v) { return 1; } };"
# Of each form that can stand in front of a kernel, none opens a namespace.
IN_FRONT = [
    "struct Q { __device__ int m(); }; __device__ int Q::m() { return 1; }",
    "struct Q { int q; __device__ Q(int v); }; __device__ Q::Q(int v) : q(v) {}",
    "struct Q { int q; friend __device__ int see(Q o) { return o.q; } };",
    "struct Q { int q; __device__ Q operator+(Q r) const { return Q{q + r.q}; } };",
    "template <typename W> struct Q { W w; __device__ W m(); }; template <typename W> __device__ W Q<W>::m() { return w; }",
    "template <typename W> __device__ W m(W w) { return w; }",
    "namespace b { namespace c { const int L = 1; } }", "namespace b::c { const int L = 1; }", "namespace b = a; struct Q { int q; };",
    "inline namespace b { const int L = 1; }", "namespace { const int L = 1; }", 'extern "C" { __device__ int m(); }',
    "typedef a::S Q;", "using Q = a::S;", "enum Q { L = 1 };", "enum class Q : int { L = 1 };", "__constant__ a::S c;",
    "static_assert(a::K == 3);", "__device__ int m() { using namespace a; return K; }", "__device__ int m() { using a::K; return K; }",
]  # fmt: skip
TWO_K = "namespace a { const int K = 1; } namespace b { namespace c { } const int K = 2; }"
REFUSED = [
    (CLASSES, "Three v; v[0] = 1; x[i] = v[1];", errors.UninitialisedReadError, r"'v'\.e\[1\]"),
    *((CLASSES, text, UNSUPPORTED, "take a pointer") for text in [
        "B a = {1}, b = {2}; choose(a, b, n > 3).n = 4;",
        "B a = {1}, b = {2}; choose(a, b, n > 3).add(4);",
        "int p = 3, q = 4; low(p, q) = 5;",
        "B a = {1}, b = {2}; (n > 3 ? a : b).add(1);",
        "B a = {1}, b = {2}; (n > 3 ? a : b).n = 1;",
    ]),
    (FRIEND, "o[i] = V<int>{1}.a;", UNSUPPORTED, "write it behind the struct"),
    (CLASSES, "const Vec a(1, 2); a.scale(2);", WRONG, "'scale' may change its object"),
    (CLASSES, "Vec a; x[i] = a.length();", WRONG, "'Vec' has no member function 'length'"),
    (CLASSES, "x[i] = pick(1, 2.0f, Less<int>());", WRONG, r"no 'pick' takes \(int, float, Less<int>\)"),
    (CLASSES, "Box<> b;", WRONG, "'T' of 'Box' is not known"),
    (TWO_K, "o[i] = b::K;", UNSUPPORTED, "'K' in two namespaces"),
    (SPACE, "S s; o[i] = s.v;", WRONG, "unknown type name 'S': write a::S"),
    (SPACE + "__constant__ S c;", "o[i] = c.v;", WRONG, "unknown type name 'S': write a::S"),
    (SPACE, "o[i] = sizeof(T);", WRONG, "unknown type name 'T': write a::T"),
    (SPACE, "o[i] = f();", WRONG, "'f' is not declared: write a::f"),
    (SPACE, "o[i] = K;", WRONG, "'K' is not declared: write a::K"),
    (SPACE, "o[i] = one;", WRONG, "'one' is not declared: write a::one"),
    *((f"{SPACE} {form}\n", "o[i] = K;", WRONG, "write a::K") for form in IN_FRONT),
    (SPACE + "namespace b { const int L = 1; }", "o[i] = b::K;", WRONG, "write a::K"),
    (SPACE + "namespace b { const int L = 1; }", "b::S s;", WRONG, "write a::S"),
    (CLASSES, "Shape s; Square q = s;", WRONG, "no constructor that takes"),
    ("", "int k = 1; auto f = [k]() { k = 2; }; f();", WRONG, "const"),
    ("", "int q[2] = {1, 2}; auto f = [=]() { return q[0]; }; o[i] = f();", UNSUPPORTED, "'q' is an array"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "text", "kind", "match"), REFUSED)
def test_what_is_wrong_is_named(before: str, text: str, kind: type[Exception], match: str) -> None:
    with pytest.raises(kind, match=match):
        body(text, before=before)


@pytest.mark.parametrize(
    ("text", "value", "calls"),
    [
        ("Three v(mk(&k)); Three w{mk(&k)}; x[i] = v[0] * 10 + w[2];", 14, 2),
        ("x[i] = total(mk(&k)) + mk(&k).sum() + first(mk(&k));", 6 + 9 + 3, 3),
        ("Three v[2] = {mk(&k), mk(&k)}; x[i] = v[1].sum();", 9, 2),
        ("Three v; v = mk(&k); x[i] = v.sum();", 6, 1),
        ("Trio p = mp(&k); Trio* q = &p; Trio z[2] = {mp(&k), {mp(&k)}}; x[i] = q->a + 10 * z[0].a + 100 * z[1].a;", 321, 3),
        ("Both w = {mk(&k), mp(&k)}; w = {mk(&k), mp(&k)}; x[i] = w.v[0] * 10 + w.p.a;", 34, 4),
        ("const Three& r = mk(&k); auto s = mk(&k); const Trio& p = mp(&k); x[i] = r[0] * 100 + s[0] * 10 + p.a;", 123, 3),
        ("Three v = n ? mk(&k) : Three(3); Trio p = n ? Trio{9, 8, 7} : mp(&k); x[i] = v[0] + p.a;", 10, 1),
        ("__shared__ Trio s[32]; s[i] = mp(&k); x[i] = s[i].a;", 1, 1),
    ],
)  # fmt: skip
def test_values_without_a_name_are_made_once(text: str, value: float, calls: int) -> None:
    x, o, _ = body(f"int k = 0; {text} o[i] = k;", before=CLASSES)
    assert x.tolist() == [value] * 32
    assert o.tolist() == [calls] * 32


def test_their_values_are_printed() -> None:
    text = r'int p = 3, q = 4; if (i == 0) printf("%d %d\n", low(p, q), n > 3 ? q : p);'
    assert body(text, before=CLASSES)[2].printed == "3 4\n"


def test_kernels_take_functors_by_type() -> None:
    kernel = "{ int i = threadIdx.x; x[i] = pick(x[i], (T)7, Op()); }"
    source = f"{CLASSES}template <typename T, typename Op> __global__ void k(T* x) {kernel}"
    x = np.arange(16, dtype=np.int32)
    launch(source, "k<int, Less<int>>", 1, 16, x)
    np.testing.assert_array_equal(x, np.minimum(np.arange(16), 7))
    assert parse_signature(source, "k<int, Less<int>>").name == "k<int, Less<int>>"


def test_two_kernels_of_one_name_are_not_taken_for_each_other() -> None:
    source = "namespace a { __global__ void k(int* o) { o[0] = 1; } } namespace b { __global__ void k(int* o) { o[0] = 2; } }"
    with pytest.raises(errors.UnsupportedFeatureError, match=r"say which, as in 'a::k\(int\*\)'"):
        launch(source, "k", 1, 1, np.zeros(1, np.int32))


def test_one_kernel_that_only_a_gpu_runs_does_not_spoil_the_file() -> None:
    source = """__global__ void two(float* o) {} __global__ void two(int* o) {}
    __global__ void sums(float* x) { cub::BlockReduce<int, 32> f; }
    __global__ void asmk(float* x) { asm("nop;"); }
    __global__ void image(cudaTextureObject_t t) {}
    __global__ void plain(float* x) { x[threadIdx.x] = 1; }"""
    x = np.zeros(4, np.float32)
    launch(source, "plain", 1, 4, x)
    assert x.tolist() == [1] * 4
    for name, why in (("sums", "CUB"), ("asmk", "inline assembly"), ("image", "ordinary loads")):
        with pytest.raises(errors.UnsupportedFeatureError, match=why):
            compile_source(source).kernel(name)


def test_a_type_of_the_hosts_and_a_name_of_a_library_concern_those_who_use_them() -> None:
    codes = """typedef std::vector<bool> codes; using words = std::list<int>;
    __global__ void uses(int* o) { codes c; }
    __global__ void k(int* o) { o[0] = 5; }"""
    tensors = """#include <cute/tensor.hpp>
    using namespace cute;
    __global__ void uses(int* o) { Tensor t = make_tensor(o); }
    __global__ void k(int* o) { o[0] = 5; }"""
    unsupported = errors.UnsupportedFeatureError
    for source, error, why in (
        (codes, errors.KernelCompileError, "unknown type name 'vector'"),
        (tensors, unsupported, "'Tensor'; that may be <cute/tensor.hpp>, a library that is not"),
    ):
        o = np.zeros(1, np.int32)
        launch(source, "k", 1, 1, o)
        assert o.tolist() == [5]
        with pytest.raises(error, match=re.escape(why)):
            compile_source(source).kernel("uses")
