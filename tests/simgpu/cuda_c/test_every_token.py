"""No word and no sign is read over: a program without one of its tokens is refused, or was right without it."""

import re

import pytest

from simgpu.cuda_c import compile_source
from simgpu.errors import KernelCompileError

# A backtick stands before what may be missing, as it may for g++ 13 (-std=c++17): it
# says so of no other token. Of namespaces g++ asks for more: here one on the way to a name is passed over.
PROGRAMS = {
    "preprocessor": "#if !`defined(W) && (3 > 2)\n"
    "#define F(a, b) (`a + b)\n#endif\n__global__ void k(int* o) { o[0] = `F(`1, 2) + 1; }",
    "names": "namespace n { namespace m { constexpr int four = 4; } using real = float; }\n"
    "typedef unsigned word; enum Kind { one, two = 2 }; enum `class Tone : int { low = 1, high };\n"
    "struct alignas(8) Wide { float v; };\n"
    "__global__ void k(int* o, Kind w) { o[0] = `n::m::four + `sizeof(word) + alignof(Wide) + (int)Tone::high;\n"
    "o[1] = reinterpret_cast<float*>(o)[0] + n::real(`2) + `w + two; }",
    "template": "template <typename T, int N> struct Pair { T a, b; static_assert(N > 0);\n"
    "static constexpr int size = N; __device__ Pair(T `a, T `b) : a(`a), b(`b) {}\n"
    "__device__ T sum() `const { `return `a + b; }\n"
    "__device__ T operator[](int k) `const { `return k ? b : a; } };\n"
    "template <class F> __device__ int apply(F f, int v = 3) { `return `f(v); }\n"
    "__global__ void k(int* o, int n) { Pair<float, 2> p(1.0f, n); auto f = [&`, n](int v) mutable -> int\n"
    "{ n`++; `return `v + n; }; o[5] = static_cast<int>(p.sum()) + p[1] + `apply(f, 2) + Pair<float, 2>::size; }",
    "struct": "struct Base { int a[2]; int f; }; struct Outer { int q; friend __device__ int see(Outer o)\n"
    "{ `return o.q; } __device__ int late(int `v); __device__ Outer operator+(Outer r) `const\n"
    "{ `return `Outer{`q + r.q}; } }; __device__ int Outer::late(int v) { `return `q + v; }\n"
    "__global__ void k(int* o, int n) { Outer s{`1}; Base b `= {{1, `2}, `3}; o[6] = (s + Outer{`2}).late(n) + b.a[1] + see(s); }",
    "statements": "__constant__ int table[`2][2] `= {{1, `2}, {3, `4}};\n"
    "__global__ void k(float* x, int* o, int n) { int i = 3, k[3] `= {1, `2}, (*p)[3] = &k; `const float y = n * 2.0f;\n"
    "for (int j = 0; j < n; `++j) { if (j == 2) `continue; `else o[j] = j; } for (auto e : k) { o[0] += e; }\n"
    "while (i < n) { `++i; if (i > 5) `break; } `do { `--i; } while (i > 0);\n"
    "switch (n) { case 1: o[1] = 1; `break; case 2: { o[2] = 2; } `break; default: o[3] = 0; }\n"
    "if (int g = n; g > 3) { o[4] = g; } using local = int; local z = n > 3 ? (i, 4) : `int(`2.5f);\n"
    '`static_assert(sizeof(z) == 4, "z"); o[5] = table[1][0] + (int)`y + (*p)[1];\n'
    "if `constexpr (sizeof(int) == 4) { x[0] = *(x + 1); } `return; }",
    "more": """template <class `T> constexpr int two = 2; template <class T> using Same = T; typedef int (*Fn)(int `v); union U { int a; float b; };
__device__ int twice(int v) { `return 2 * v; } template <Fn F> __device__ int by(int v) { `return `F(v); }
struct Base { int v; __device__ `explicit Base(int a) : v{`a} { } }; struct Leaf `final : Base { __device__ Leaf(int a) : Base(a) { }
__device__ operator int() `const { `return v; } };
__global__ void k(int* o, `volatile float* x) { for (;;) if (`!o[7]) `break; else `continue; `do o[6]`--; while (o[6] > 0); switch (o[8]) default: o[8] = 1;
U u; u.b = 1.0f; Fn f = twice; Leaf l(3); int n = l; __shared__ float s[4]; s[0] = x[0]; enum { A, B = 3, C }; typedef int Row[2]; Row r; r[1] = 2;
`static_assert(two<int> == 2); o[0] = u.a + (`*f)(4) + by<twice>(5) + Same<int>(`6) + `n + (int)(s[0] + 0.5f) + `A + B * `C + sizeof(Row) + alignof(U);
int b[`2] `= {[]() { return 1; }(), `~o[3] `<`< 2}; o[4] = b[0] + r[1]; o[5] = sizeof(`"ab" `"cd"); { int h = 1; o[9] = h ? `-h : `+h; } }""",
}
TOKEN = re.compile(
    r'`?("[^"]*"|__\w+|[A-Za-z_]\w*|\d[\w.]*|::|->|\+\+|--|[-+*/<>=!&|]=|&&|[^\s\w])'
)


def accepted(source: str) -> bool:
    try:
        compile_source(source).kernel("k")
    except KernelCompileError:
        return False
    return True


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_without_one_of_its_tokens_is_refused(program: str) -> None:
    source = PROGRAMS[program]
    assert accepted(source.replace("`", ""))
    for token in TOKEN.finditer(source):
        if token[1][:2] != "__":
            left = source[: token.start()] + " " + source[token.end() :]
            assert accepted(left.replace("`", "")) == (token[0][0] == "`"), left
