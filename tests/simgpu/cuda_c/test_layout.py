"""Where the members of a struct lie, and that no attribute or pragma is passed over in silence."""

import numpy as np
import pytest

from simgpu import errors
from simgpu.cuda_c import parse_signature

from .support import body, launch

CONSTRUCTED = "struct B { int a; char b; __host__ __device__ B() {} };"
EMPTY = "struct E {};"
TEXTS = """#define S(...) #__VA_ARGS__
#define XS(...) S(__VA_ARGS__)
#define F(x) x+x
#define G(x) [ x]
#define A1 B1+1
#define B1 A1+2"""
# Structs, with size, alignment and offsets of S as g++ 12 and nvcc 13.0 have them, which agree.
LAYOUTS = [
    ("struct S { char a; __align__(8) float b; float c; };", 16, 8, [0, 8, 12]),
    ("struct S { alignas(double) char a[3]; char b, c __attribute__((aligned(4))); };", 8, 8, [0, 3, 4]),
    ("struct S { char a; float __attribute__((aligned(16))) b, c; };", 48, 16, [0, 16, 32]),
    ("struct S { char a; int b __attribute__((aligned)); };", 32, 16, [0, 16]),
    ("struct S { alignas(0) char a; __align__(2) int b; alignas(8) alignas(16) char c; };", 32, 16, [0, 4, 16]),
    ("typedef struct { float a, b, c; } __attribute__((aligned(16))) S;", 16, 16, [0, 4, 8]),
    ("typedef struct { float a, b, c; } __align__(16) S;", 16, 16, [0, 4, 8]),
    ("struct alignas(16) __align__(4) [[nodiscard]] S { double a; };", 16, 16, [0]),
    ("struct S { double a; char b; } __attribute__((aligned(2)));", 16, 8, [0, 8]),
    ("struct __attribute__((packed)) S { char a; double b; short c; float4 d; };", 27, 1, [0, 1, 9, 11]),
    ("struct S { char a; int b; short c[2]; } __attribute__((packed, aligned(4)));", 12, 4, [0, 1, 5]),
    ("struct S { char a; int b __attribute__((packed)); int c __attribute__((packed, aligned(2))); };", 10, 2, [0, 1, 6]),
    ("struct S { char a; int b __attribute__((aligned(8))); short c; } __attribute__((packed));", 16, 8, [0, 8, 12]),
    ("struct P { char a; int b; }; struct __attribute__((packed)) S { char a; P b[2]; };", 17, 1, [0, 1]),
    ("union U { char a[5]; alignas(2) short b; } __attribute__((packed)); struct S { char a; U b; };", 8, 2, [0, 2]),
    ("#pragma pack(push, 1)\nstruct S { char a; double b; };\n#pragma pack(pop)\n", 9, 1, [0, 1]),
    ("#define N 2\n#pragma pack(N)\nstruct P { char a; double b; };\n#pragma pack()\nstruct S { P a; int b; };",
     16, 4, [0, 12]),
    ("#pragma pack(push)\n#pragma pack(2)\n#pragma pack(pop)\nstruct S { char a; int b; };", 8, 4, [0, 4]),
    ("#pragma pack(1)\nstruct __align__(8) P { char a; int b; }; struct S { P a; char b; P c; };", 17, 1, [0, 8, 9]),
    ('#define TIGHT _Pragma("pack(1)")\nTIGHT\nstruct S { char a; int b; };', 5, 1, [0, 1]),
    (f"{CONSTRUCTED} struct __attribute__((packed)) S {{ char a; B b; }};", 12, 4, [0, 4]),
    # A derived struct begins in what is left of its base, unless that is as C has it.
    ("struct B { int a; char b; }; struct S : B { char c; };", 12, 4, [0, 8]),
    (f"{CONSTRUCTED} struct S : B {{ char c; }};", 8, 4, [0, 5]),
    (f"{CONSTRUCTED} struct C {{ B b; char c; }}; struct S : C {{ char d; }};", 12, 4, [0, 9]),
    ("struct B { int a = 1; char b; }; struct S : B { char c; };", 8, 4, [0, 5]),
    ("class B { int a; char b; }; struct S : B { char c; };", 8, 4, [0, 5]),
    ("struct A { int a; char b; }; struct B : A { char c; }; struct S : B { char d; };", 12, 4, [0, 9]),
]  # fmt: skip


@pytest.mark.parametrize(("source", "size", "align", "offsets"), LAYOUTS)
def test_the_host_and_the_kernel_have_the_layout_of_compilers(
    source: str, size: int, align: int, offsets: list[int]
) -> None:
    kernel = f"{source}\n__global__ void k(S s, int* o) {{ S a[3]; o[0] = sizeof(a); o[1] = alignof(S); }}"
    record = parse_signature(kernel, "k").parameters[0].record
    assert record is not None
    assert [record.fields[name][1] for name in record.names] == offsets
    o = np.zeros(2, np.int32)
    launch(kernel, "k", 1, 1, np.zeros((), record)[()], o)
    assert (record.itemsize, *o) == (size, 3 * size, align)


# Four values each, as g++ 12 has them.
VALUES = [
    ("enum E { a = -1, b = 3000000000 };", "sizeof(E), b, b + 1, alignof(E)", [8, 3000000000, 3000000001, 8]),
    ("enum E { a = 0xffffffff };", "sizeof(E), a > 0, a, a + 1", [4, 1, 4294967295, 0]),
    ("enum E { a = 0x7fffffff, b, c };", "sizeof(E), a, b, c", [4, 2147483647, 2147483648, 2147483649]),
    ("enum E { a = 0xffffffff, b, c = -1 };", "sizeof(E), a, b, c", [8, 4294967295, 4294967296, -1]),
    ("enum E { a = 1u, b = a - 2, c = 'x' };", "sizeof(E), b, c, -a < 0", [4, 4294967295, 120, 0]),
    ("enum E { a = 0xffffffffffffffff };", "sizeof(E), a > 0, a == ~0ull, (int)a", [8, 1, 1, -1]),
    ("enum E : unsigned char { a = 255, b = a - 1 }; struct S { char x; E y; };", "sizeof(E), a, b, sizeof(S)", [1, 255, 254, 2]),
    ("enum class E : short { a = -1, b }; struct S { E x[3]; char c; };", "sizeof(E), (int)E::a, (int)E::b, sizeof(S)", [2, -1, 0, 8]),
    ("enum E : long long {}; enum class F {}; enum G : bool { no, yes };", "sizeof(E), sizeof(F), sizeof(G), yes", [8, 4, 1, 1]),
    ("enum E { a = 1LL << 40 }; struct S { char c; E e; };", "sizeof(S), a, alignof(S), a >> 8", [16, 1 << 40, 8, 1 << 32]),
    ("struct alignas(16) E {}; struct S : E { char c; }; struct T : S { char d; };", "sizeof(E), sizeof(S), alignof(S), sizeof(T)", [16, 16, 16, 32]),
    ("struct __attribute__((aligned(32))) E {}; struct S { char c; E e; }; typedef E W[3];", "sizeof(E), sizeof(S), sizeof(W), alignof(S)", [32, 64, 96, 32]),
    (f"{EMPTY} struct I : E {{ E e; }}; struct J : E {{ E e[2]; int x; }}; struct K : I {{ char c; }};", "sizeof(I), sizeof(J), sizeof(K), sizeof(E)", [2, 8, 3, 1]),
    (f"{EMPTY} struct D : E {{}}; struct I : D {{ E e; short s; }}; struct J : E {{ D d; }}; struct K : E {{ int i; E e; }};", "sizeof(I), sizeof(J), sizeof(K), sizeof(D)", [4, 2, 8, 1]),
    (f"{EMPTY} struct A {{ E e; double d; }}; struct I : E {{ A a; }}; struct F {{}}; struct J : E {{ F f; E e; }};", "sizeof(I), sizeof(J), sizeof(A), alignof(I)", [24, 2, 16, 8]),
    (f"{EMPTY} struct B : E {{ int x; }}; struct I : E {{ B b; }}; union U {{ E e; char c; }}; struct J : E {{ U u; }};", "sizeof(I), sizeof(J), sizeof(B), sizeof(U)", [8, 2, 4, 1]),
    ("template <int N> struct S { char c[N]; static_assert(N > 4 && sizeof(int) == 4); }; constexpr int M = 5; struct H { std::string s; }; static_assert(sizeof(H) == 32); static_assert(M == sizeof(S<5>));",
     "M, sizeof(S<5>), 0, 0", [5, 5, 0, 0]),
    (TEXTS, "sizeof(S(a+b)), S(a+b)[1], sizeof(XS(A1)), sizeof(S( a  +/**/b ))", [4, ord("+"), 7, 6]),
    (TEXTS, "sizeof(XS(F(1)-F( 2 ))), sizeof(XS(G(a)G( a))), sizeof(S(a,\n  b , c)), sizeof(XS(-F))", [8, 9, 9, 3]),
]  # fmt: skip


@pytest.mark.parametrize(("before", "values", "want"), VALUES)
def test_enumerations_empty_structs_and_texts_are_those_of_compilers(
    before: str, values: str, want: list[int]
) -> None:
    text = f"{before}\n__global__ void k(long long* o) {{ long long v[] = {{{values}}}; o[threadIdx.x] = v[threadIdx.x]; }}"
    o = np.zeros(4, np.int64)
    launch(text, "k", 1, 4, o)
    assert o.tolist() == want


def test_members_of_a_packed_struct_are_read_and_written_wherever_they_lie() -> None:
    source = """#pragma pack(1)
        struct P { double d; char* p; }; struct S { char c; int n; short h[2]; P in; };
        __global__ void k(S* s, S given) { __shared__ S both[4]; int i = threadIdx.x; S own = s[i];
            both[i] = own; __syncthreads(); s[i].h[i % 2] += both[3 - i].n; s[i].in.d = own.in.d + given.n;
            own.n = given.h[1]; both[i].in = own.in; s[i].n = own.n; s[i].in.p = both[i].in.p + 1; }"""
    record = parse_signature(source, "k").parameters[1].record
    assert record is not None
    s = np.zeros(4, record)
    s["n"], s["h"], s["in"]["d"] = [1, 2, 3, 4], [[5, 6]] * 4, [0.5, 1.5, 2.5, 3.5]
    given = s[2]
    launch(source, "k", 1, 4, (out := s.copy()), given)
    assert out["h"].tolist() == [[9, 6], [5, 9], [7, 6], [5, 7]]
    assert out["in"]["d"].tolist() == [3.5, 4.5, 5.5, 6.5]
    assert (out["n"].tolist(), out["in"]["p"].tolist()) == ([6] * 4, [1] * 4)


F = "__device__ int f({}) {{ return 1; }}"
# Where an attribute may stand and lays out nothing, in both spellings, and in one of them.
PLACES = [
    "typedef int T {};", "typedef int T[2] {};", "typedef int T {} [2];", "typedef struct {{ int a; }} T {};", "using T {} = int;",
    "using T = int {};", "enum {} E {{ A }};", "enum E {{ A {} }};", "enum E {{ A {} = 2 }};", "enum E {{ A }} {};", "enum class {} E {{ A }};",
    "auto f = [](int a {}) {{ return a; }}; f(1);", "auto f = []({} int a) {{ return a; }}; f(1);",
    "auto f = [](int a[2] {}) {{ return 2; }}; f(o);", "auto f = [](int a {} [2]) {{ return 2; }}; f(o);",
    *(f"struct S {{{{ {head} {{{{ return 1; }}}} }}}}; S s; s.f();" for head in (
        "__device__ {} int f()", "__device__ int f() {}", "__device__ int f() const {}", "{} __device__ int f()")),
]  # fmt: skip
SPELLED = {
    ("[[maybe_unused]]", "[[gnu::aligned(16)]]"): [*PLACES, "{};", "if (n) {} o[i] = 3;", "{} if (n) o[i] = 3;", "{} {{ o[i] = 3; }}",
        "for (;;) {} break;", "struct S {{ {}; int a; }};"],
    ("__attribute__((unused))", "__attribute__((aligned(16)))"): [*PLACES, "o[i] = ({} int)x[i];", "o[i] = sizeof({} int);"],
}  # fmt: skip
HARMLESS = [
    *(("", f"{place.format(unused)} o[i] = 1;") for (unused, _), places in SPELLED.items() for place in places),
    ("#define HEX(a, b) a##b", "o[i] = HEX(0x, 1F) == 31;"), ("__device__ [[maybe_unused]] int f() { return 1; }", "o[i] = f();"),
    ("", "[[likely]] o[i] = 1;"), ("", "switch (n) { case 9: o[i] = 2; [[fallthrough]]; default: o[i] = 1; }"),
    ("", "__attribute__((fallthrough)); o[i] = 1;"), ("", "alignas(16) int a __attribute__((unused)) = 1; o[i] = a;"),
    ("__device__ __attribute__((noinline, gnu_inline)) int f() { return 1; }", "o[i] = f();"),
    ('struct [[deprecated("old (2)")]] S { int a; };', "S s = {1}; o[i] = s.a;"), ("", "__attribute__((unused)) int a = 1; o[i] = a;"),
    ("[[nodiscard]] __device__ int f() __attribute__((__pure__)); " + F.format(""), "o[i] = f();"),
    (F.format("[[maybe_unused]] int a, int b __attribute__((unused))"), "o[i] = f(1, 2);"),
    ("__global__ void __launch_bounds__(32) other() {}", "o[i] = 1;"), ("enum class [[deprecated]] E { a = 1 };", "o[i] = (int)E::a;"),
    ('#define P _Pragma("unroll 4")', "P for (int k = 0; k < 1; k++) o[i] = 1;"), ("#define x_ 1\n#warning hello", "register int a = x_; o[i] = a;"),
    *((f"#pragma {word}", "o[i] = 1;") for word in ("unroll 4", "nounroll", "once", "nv_diag_suppress 177", "GCC unroll 2", "omp simd", "")),
]  # fmt: skip
REFUSED = [
    *(("", place.format(lays), "not supported here") for (_, lays), places in SPELLED.items() for place in places),
    *((f"struct {word} S {{ int a; }};", "S s = {1}; o[i] = s.a;", "is not supported")
      for word in ("__attribute__((weird))", "[[gnu::ms_struct]]", "__declspec(align(8))")),
    *((f"struct S {{ {word} int a; }};", "S s = {1}; o[i] = s.a;", "is not supported")
      for word in ("__attribute__((mode(DI)))", "[[no_unique_address]]", "[[using gnu: packed]]")),
    *((f"#pragma {word}", "o[i] = 1;", "is not supported") for word in (
        "weird", "unrolled", "pack(3)", "pack(pop)", "pack(push, a, 4)", 'push_macro("a")', "STDC FP_CONTRACT OFF", "ms_struct on")),
    *((line, "o[i] = 1;", "is not supported") for line in ("#line 7", "#elifdef A", "#define F(a...) a")),
    *((line, "T a; o[i] = sizeof(a);", "supported") for line in (
        "typedef int T __attribute__((aligned(16)));", "typedef float T __attribute__((vector_size(16)));")),
    ("", "alignas(16) int a; o[i] = alignof(a);", "takes a type"),
    ("__device__ int __cluster_dims__(2) f() { return 1; }", "o[i] = f();", "'__cluster_dims__' is not supported"),
    ("", 'o[i] = sizeof(L"a");', "wide characters, with 'L', are"),
    ("#pragma pack(1)\nstruct S { char a; alignas(8) int b; };", "S s; o[i] = sizeof(s);", "compilers differ"),
    ("struct S { char a; alignas(8) int b; } __attribute__((packed, aligned(2)));", "S s; o[i] = sizeof(s);", "compilers differ"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "text", "why"), [(*row, "") for row in HARMLESS] + REFUSED)
def test_an_attribute_or_pragma_is_harmless_or_refused(before: str, text: str, why: str) -> None:
    if not why:
        assert body(text, before=before)[1].tolist() == [1] * 32
        return
    with pytest.raises(errors.UnsupportedFeatureError, match=why) as caught:
        body(text, before=before)
    assert caught.value.line
