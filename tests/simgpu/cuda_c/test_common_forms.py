"""Forms of C++ that published kernels are full of, each with its value; NVIDIA's compiler takes the same texts."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from simgpu import errors
from simgpu.cuda_c import compile_source, device_part, text_for_compiler
from simgpu.cuda_c.lockstep.values import directed
from simgpu.cuda_c.text.joined import join_headers
from simgpu.cuda_c.types import DOUBLE, FLOAT, Scalar

from .support import HEAD, body, check
from .test_nvrtc import NVRTC, refusal

ORDERED = """template <class T> __device__ int f(T) { return 1; }
template <class T> __device__ int f(T*) { return 2; }
template <class T> __device__ int f(const T*) { return 3; }
template <class T> __device__ int f(T**) { return 4; }
template <class K, class V> struct Pair { K k; V v; };
template <class K, class V> __device__ int f(const Pair<K, V>& p) { return p.k; }
template <class T, int N> __device__ int g(T (&a)[N]) { return N; }
template <class T> __device__ int g(T& a) { return 0; }
template <class T> __device__ int g(const T& a) { return -1; }
"""
CURIOUS = """template <class T> struct Shape {
    float scale;
    __device__ float twice() { return 2 * static_cast<T*>(this)->area(); }
    __device__ T& self() { return static_cast<T&>(*this); }
    __device__ float thrice() const { return 3 * static_cast<const T&>(*this).area(); }
    __device__ void grow() { self().side += 1; }
};
struct Square : Shape<Square> { float side; __device__ float area() const { return scale * side * side; } };
template <class T> struct Empty { __device__ int get() { return ((T*)this)->value; } };
template <class U> struct Full : Empty<Full<U>> { U value; };
"""
NEW = "struct S { int v; float w[2]; S() = default; __host__ __device__ explicit S(int a) : v(a) {} };"
PACK = """template <class... T> constexpr bool always_false = false;
template <class T> __device__ int f(T a) {
    if constexpr (std::is_same_v<T, unsigned>) return 7;
    else if constexpr (sizeof(T) == 4) return a;
    else static_assert(always_false<T>, "no such type");
}
"""
NESTED = """template <class U> struct Loader {
    static constexpr int K = 3;
    template <bool CHECKED> struct Column { U v; int w; __device__ int size() { return sizeof(U) + K; } };
    __device__ int f() { Column<true> c; c.v = 4; c.w = 5; return c.v * c.w + c.size(); }
};
"""
HASHES = """namespace h { template <class T> struct hash { T v; }; }
__device__ int hash(int x) { return x * 2; }
"""
CODES = "template <int n> using Codes = long long[(n + 7) / 8]; constexpr unsigned SIDE(16); extern const float gain;"
QUALIFIED = """__device__ int f(const float (*p)[4]) { return p[1][2]; }
template <class T, int N> __device__ int g(const T (*p)[N]) { return p[1][0] + N; }
template <class T, int N> __device__ int h([[maybe_unused]] T p[][N], __attribute__((unused)) int) { return N; }
struct B { int v; }; struct D : B { int w; };
"""
CONVERTS = """struct I { int v; __device__ operator int() const { return v; } };
struct P { float* p; __device__ operator float*() const { return p; } };
struct node { struct node* next; int v; }; struct list { struct node* node; struct node* last; };
"""
MADE = """struct P { int a, b; }; struct M : P { int c; __device__ M() { a = 7; b = 8; } };
struct U { int x, y; __device__ operator P() const { P p = {x + 1, y}; return p; } };
"""
FORMS = [
    (ORDERED, "int v = 1, *p = &v; const int* q = &v; o[i] = f(v) + 10 * f(p) + 100 * f(q) + 1000 * f(&p);", 4321),
    (ORDERED, "Pair<int, float> p = {5, 1}; float a[3]; o[i] = f(p) + 10 * g(a) + 100 * g(i) + 1000 * g(i + 1);", -965),
    (CURIOUS, "Square s; s.scale = 2; s.side = 3; o[i] = s.twice() + s.thrice(); s.grow(); o[i] += s.side;", 94),
    (CURIOUS, "Full<short> f; f.value = 6; o[i] = f.get();", 6),
    (NEW, "S a = S(); S b{}; S c = {}; S* p = &b; o[i] = a.v + p->w[1] + c.v + S(3).v;", 3),
    (PACK, "o[i] = f(3) + f(4u) + always_false<int> + always_false<>;", 10),
    (PACK, "if ((std::is_same_v<int, int>) && (always_false<int>) == 0 && n) o[i] = 3;", 3),
    (NESTED, "Loader<short> a; o[i] = a.f();", 25),
    (HASHES, "o[i] = hash(3) + h::hash<int>{4}.v;", 10),
    ("", "std::make_unsigned<int>::type u = -1; std::make_signed_t<unsigned char> c = 200; o[i] = (u >> 31) + c;", -55),
    (CODES, "Codes<17> c = {}; using Three = int[3]; Three t = {1, 2, 3}; o[i] = sizeof(c) + SIDE + t[2];", 43),
    ("", "int a = 1, b = 2; (i & 1 ? a : b) += 6; (i & 1 ? a : b)++; o[i] = a + b;", 10),
    ("", "int a = 1, b = 2; int& r = i % 2 ? a : b; r = 7; int* p = &(i % 2 ? b : a); *p *= 2; o[i] = a * b - r;",
     lambda i: 21 if i % 2 else 7),
    ("", "dim3 d = blockDim; uint3 t = threadIdx; o[i] = d.y + t.x - i;", 1),
    ("", "const void* q = x; const void* p = n > 3 ? q : x; o[i] = (p == x) + (0 == x) + ((n ? x : q) == q) + (-1ll < 0ul);", 2),
    ("", "struct I { int v; __device__ int& operator*() { return v; } }; I t; t.v = 3; *t += 1; o[i] = *t;", 4),
    ("", "float* a = (float*)__builtin_assume_aligned(x, 16); __builtin_assume(n > 0); o[i] = a[2];", 2),
    ("", 'o[i] = isnan(nanf("")) + isnan(nan("")) + __FLT_MANT_DIG__ + DBL_MANT_DIG + (__DBL_MIN_EXP__ < 0);', 80),
    ("", "o[i] = (__fadd_ru(1, 1e-9f) > 1) + (__fadd_rz(1, 1e-9f) == 1) + (__dmul_rd(0.1, 10.0) == 1);", 3),
    ("", "o[i] = (__fdiv_rd(1, 3) < __fdiv_ru(1, 3)) + (__fsqrt_rz(2) < __fsqrt_ru(2)) + (__frcp_rd(7) < __frcp_ru(7));", 3),
    ("", "o[i] = __fmaf_rz(3, 4, 5) + __dsqrt_rn(16.0) * __drcp_rn(2.0) + (__double2float_ru(0.1) > 0.1);", 20),
    (QUALIFIED, "float a[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}}; o[i] = f(a) + 10 * g(a) + 100 * h(a, 1);", 497),
    (QUALIFIED, "float a[1][4] = {}, (*p)[4] = a; const volatile float (*q)[4] = p; o[i] = (p == q) + (q - p) + ((n ? p : q) == a);", 2),
    (QUALIFIED, "int* u[2] = {o, o + 1}; const int* const* q = u; o[i] = q[1] - o;", 1),
    (QUALIFIED, "D d; d.v = 3; B* b = static_cast<B*>(&d); const D* e = static_cast<D*>(b); o[i] = (b == e) + (n ? b : e)->v;", 4),
    (CONVERTS, "I s = {3}; int a[4] = {4, 5, 6, 7}; switch (s) { case 3: o[i] = s[a] + a[s]; break; default: o[i] = 0; }", 14),
    (CONVERTS, "P p = {x + 3}, z = {0}; const float* q = p; o[i] = p[1] + *p + (p + 1 == q + 1) + (z ? 9 : 0) + !z;", 9),
    (CONVERTS, "node a = {0, 5}; struct node* node = &a; struct node* p = node; list l = {node, p}; o[i] = l.last->v;", 5),
    (MADE, "P a = M(), b = U{1, 2}, c[2] = {U{3, 4}, M()}, *p = &a, *q = &b; o[i] = p->a + 10 * q->a + 100 * c[0].a + 1000 * c[1].b;", 8427),
    (MADE, "struct O { P p; int k; } q = {U{1, 2}, 3}; dim3 d = threadIdx, e = uint3{2, 3, 4}, *p = &e; o[i] = q.p.a + q.k + p->z + d.y;", 9),
    ("struct S { int v; const static int K = 3; int constexpr static L = 4; __device__ int static f() { return 5; } };",
     "o[i] = sizeof(S) + S::K + 10 * S::L + 100 * S::f();", 547),
]  # fmt: skip


@pytest.mark.parametrize(("before", "text", "value"), FORMS)
def test_it_has_this_value(before: str, text: str, value: int, tell: Callable[[str], None]) -> None:
    tell(check(text, value, before))


@pytest.mark.skipif(NVRTC is None, reason="NVRTC is not installed")
@pytest.mark.parametrize(("before", "text"), [form[:2] for form in FORMS])
def test_nvidias_compiler_takes_it(before: str, text: str) -> None:
    source = text_for_compiler(f"{before}\n{HEAD}{text} }}")
    assert refusal(source, b"--std=c++17", b"--device-as-default-execution-space") is None


def test_members_are_unset_where_nobody_asked_for_a_value() -> None:
    with pytest.raises(errors.UninitialisedReadError, match="'t'"):
        body("S t; o[i] = t.v;", before=NEW)


def test_a_place_that_is_never_reached_is_an_error_when_it_is() -> None:
    with pytest.raises(
        errors.KernelFault, match=r"thread \(3, 0, 0\) comes to __builtin_unreachable"
    ):
        body("if (i == 3) __builtin_unreachable(); o[i] = 1;")


@pytest.mark.parametrize("text", ["int a; float b; (n ? a : b) = 1;", "int a = 1; (n ? a : 3)++;"])
def test_one_of_two_is_changed_only_if_both_are_places_of_one_type(text: str) -> None:
    with pytest.raises(errors.KernelCompileError, match="it is a value, not a variable"):
        body(text)


# ---------------------------------------------------------------------- rounding
def awkward(kind: Scalar) -> np.ndarray:
    """Numbers of any size, and near each other, near the largest and near the smallest."""
    rng, dtype = np.random.default_rng(3), kind.dtype
    bits = rng.integers(0, 2 ** (8 * dtype.itemsize), (3, 150), np.dtype(f"u{dtype.itemsize}"))
    info = np.finfo(dtype)
    rows = [bits.view(dtype), rng.standard_normal((3, 90)).astype(dtype)]
    rows += [
        (rng.standard_normal((3, 60)) * float(scale) / 3).astype(dtype)
        for scale in (info.tiny, info.max)
    ]
    out = np.concatenate(rows, axis=1)
    return out[:, np.isfinite(out).all(axis=0)]


EXACT = {
    "+": lambda a, b, c: a + b, "-": lambda a, b, c: a - b, "*": lambda a, b, c: a * b,
    "/": lambda a, b, c: a / b, "fma": lambda a, b, c: a * b + c,
}  # fmt: skip


def fits(value: float, exact: Fraction, way: str, kind: Scalar, power: int = 1) -> bool:
    """Tell whether a value, or its square, is the last one on the side of an exact one that `way` means."""
    down = way == "d" or (way == "z" and exact > 0)
    beyond = np.nextafter(kind.make(value), kind.make(np.inf if down else -np.inf))

    def off(x: float) -> int:
        """-1 where x is too small for the exact value, 1 where it's too large."""
        if np.isinf(x):
            return 1 if x > 0 else -1
        rest = Fraction(float(x)) ** power - exact
        return (rest > 0) - (rest < 0)

    return off(value) <= 0 < off(beyond) if down else off(beyond) < 0 <= off(value)


@np.errstate(all="ignore")
@pytest.mark.parametrize("way", "duz")
@pytest.mark.parametrize("kind", [FLOAT, DOUBLE], ids=["float", "double"])
@pytest.mark.parametrize("op", [*EXACT, "sqrt"])
def test_it_is_rounded_to_the_neighbour_that_its_name_says(op: str, kind: Scalar, way: str) -> None:
    if op == "fma" and kind is DOUBLE:
        pytest.skip("there is no such operation")
    numbers = awkward(kind)
    numbers = np.abs(numbers) if op == "sqrt" else numbers
    out = directed(op, kind, way)(*numbers)
    for (a, b, c), value in zip(numbers.T.astype(float), out, strict=True):
        if op == "sqrt":
            assert a == 0 or fits(value, Fraction(a), way, kind, 2)
        elif op != "/" or b:
            exact = EXACT[op](*map(Fraction, (a, b, c)))
            assert exact == 0 or fits(value, exact, way, kind)


def test_a_sum_that_is_zero_is_negative_if_it_is_rounded_down() -> None:
    check(
        "o[i] = signbit(__fadd_rd(1, -1)) * 4 + signbit(__fadd_ru(1, -1)) * 2 + signbit(__fsub_rd(2, 2));",
        5,
    )
    check("o[i] = signbit(__double2float_rd(0.0)) * 2 + signbit(__double2float_ru(-0.0));", 1)


# ---------------------------------------------------------------------- names and files
MATHEMATICS = [
    "norm", "pow", "log", "round", "max", "fminf", "j0", "rnorm3d", "sincos", "printf", "nanf",
]  # fmt: skip


@pytest.mark.parametrize("name", [*MATHEMATICS, "isnan", "scale", "clock", "rotate"])
def test_a_kernel_cannot_have_the_name_of_a_c_function_of_cuda(name: str) -> None:
    linked = f'extern "C" __global__ void {name}(float* x, short n) {{ x[0] = n; }}'
    if name in MATHEMATICS:
        for text in (linked, f'extern "C" {{ {linked[11:]} }}'):
            with pytest.raises(errors.KernelCompileError, match=f"function '{name}' of its own"):
                compile_source(text)
        assert NVRTC is None or refusal(linked) is not None
    else:
        assert list(compile_source(linked).kernels) == [name]
        assert NVRTC is None or refusal(linked) is None
    assert list(compile_source(linked[11:]).kernels) == [name]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252", "gbk"])
def test_a_file_is_read_in_the_encoding_that_it_has(tmp_path: Path, encoding: str) -> None:
    remark = "中文" if encoding == "gbk" else "é"
    file = tmp_path / "kernel.cu"
    file.write_bytes(
        f"// {remark}\r\n__global__ void k(float* x) {{ x[0] = 1; }}\r\n".encode(encoding)
    )
    assert list(compile_source(join_headers(file)).kernels) == ["k"]


MISSING = '#include "helper_math.h"\n#include <stdio.h>\n'


@pytest.mark.parametrize(
    "text",
    [
        "float3 a = make_float3(1, 2, 3), b = a + a;", "float3 a = make_float3(1.f);", "dot(x, x);",
        "o[i] = most<int>(3);", "Ray ray; o[i] = 1;", "FOR_EACH(i) { o[i] = 1; }", "o[i] = SIZE;",
    ],
)  # fmt: skip
def test_a_header_that_is_missing_is_named(text: str) -> None:
    with pytest.raises(errors.KernelCompileError) as caught:
        body(text, before=MISSING)
    assert 'in "helper_math.h", not found: say where' in str(caught.value)
    with pytest.raises(errors.KernelCompileError) as caught:
        body(text)
    assert "not found" not in str(caught.value)


def test_a_template_of_variables_that_have_no_value_is_for_a_gpu() -> None:
    with pytest.raises(errors.UnsupportedFeatureError, match="a template of variables"):
        body("o[i] = mask<int>[0];", before="template <class T> __constant__ T mask[4];")


def test_what_only_a_gpu_runs_is_no_fault_of_a_header() -> None:
    with pytest.raises(errors.UnsupportedFeatureError) as caught:
        body("goto end; end: o[i] = 1;", before=MISSING)
    assert "not found" not in str(caught.value)


# What is defined twice or private only at first sight.
LEGAL = """
namespace a { __device__ int f() { return 1; } }
namespace b { __device__ int f() { return 2; } }
__device__ int g(int);
__device__ int g(int k) { return k; }
__device__ int g(float k) { return 10 * k; }
template <class T> __device__ int h(T) { return 3; }
template <class T> __device__ int h(T*) { return 4; }
template <> __device__ int h(int) { return 5; }
struct Later;
struct Later { int a; };
struct Later;
extern __device__ int v;
__device__ int v = 6;
class Hidden {
    int a;
    __device__ int twice() const { return 2 * a; }
    static constexpr int most = 9;
public:
    __device__ Hidden(int a) : a(a) {}
    __device__ int sum(const Hidden& o) const { return twice() + o.a + o.twice() + most; }
    __device__ int get() { return a; }
    __device__ int get() const { return -a; }
};
class Open {
    int a;
    friend __device__ int opened(const Open& o);
public:
    __device__ Open(int a) : a(a) {}
};
__device__ int opened(const Open& o) { return o.a; }
"""


@pytest.mark.parametrize(
    ("value", "right"),
    [
        ("a::f() + 10 * b::f()", 21), ("g(2) + g(2.0f)", 22), ("h(1) + 10 * h(x) + 100 * h(1.0f)", 345),
        ("Later{v}.a", 6), ("Hidden(3).sum(Hidden(4))", 27), ("Hidden(3).get()", 3), ("opened(Open(8))", 8),
    ],
)  # fmt: skip
def test_what_is_said_once_and_may_be_used_is_read(value: str, right: int) -> None:
    assert body(f"o[i] = {value};", before=LEGAL)[1].tolist() == [right] * 32


PRESET = """
struct D { int a = 5; int b = 6; int* p = nullptr; };
struct E : D { D more[2]; };
struct P { int v; __device__ constexpr P(int v = 3) : v(v) {} };
struct X {
    int v;
    explicit __device__ X(int v) : v(v) {}
    explicit __device__ operator bool() const { return v > 2; }
    explicit __device__ operator float() const { return v + 0.5f; }
};
__device__ constexpr int twice(int a) { return 2 * a; }
__device__ D d, list[2] = {{1}};
__constant__ E e;
__constant__ P p = P(8), q;
__device__ int numbers[2] = {twice(4), 1 + twice(5)};
"""


@pytest.mark.parametrize(
    ("value", "right"),
    [
        ("d.a + 10 * d.b + 100 * (d.p == nullptr)", 165), ("list[0].a + 10 * list[0].b + 100 * list[1].a", 561),
        ("e.b + 10 * e.more[1].a", 56), ("p.v + 10 * q.v", 38), ("numbers[0] + 100 * numbers[1]", 1108),
        ("X(3) ? 1 : 2", 1), ("!X(2) + (X(3) && X(4))", 2), ("(float)X(3) * 2", 7),
        ("static_cast<float>(X{3}) * 2 + bool(X(2))", 7),
    ],
)  # fmt: skip
def test_members_have_their_defaults_and_explicit_functions_are_asked_for(
    value: str, right: int
) -> None:
    assert body(f"o[i] = {value};", before=PRESET)[1].tolist() == [right] * 32


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("int a = 1; (a += 2) *= 3; o[i] = a;", 9), ("int a = 1; ++(++a); o[i] = a;", 3),
        ("int a = 1; int& r = ++a; r += 10; o[i] = a;", 12), ("int a = 5; int b = (++a)--; o[i] = 10 * a + b;", 56),
        ("int a = 1, b = 2; (a = b) = 7; o[i] = 10 * a + b;", 72), ("short a = 1; o[i] = (a = 70000) += 1;", 4465),
        ("int k = i; int& r = (o[k++] = 5); r += k - i;", 6), ("int k = i; (o[k++] = 2) += 2; o[i] += 10 * (k - i);", 14),
        ("int s = 0; for (int k = 0; k < 10; k++) (s += k) += 1; o[i] = s;", 55),
        ("int* p = o; *(++(++(p += i - 2))) = 4;", 4), ("dim3 d = 4; o[i] = d.x + 10 * d.y;", 14),
        ("o[i] = 10 * (int)given(C::B) + sizeof(C);", 42),
        ("static_assert(SIZES[1][0] == 3 && twice(SIZES[0][1]) == 4); int q[SIZES[1][1]]; o[i] = sizeof(q);", 16),
        ("constexpr int a[] = {1, 5}; constexpr int k = a[1]; static_assert(k == 5); o[i] = k;", 5),
        ("if constexpr (twice(SIZES[1][0]) > 5) o[i] = 3; else o[i] = 4;", 3),
    ],
)  # fmt: skip
def test_what_a_change_gives_may_be_changed_again(text: str, right: int) -> None:
    early = "enum class C : short; __device__ C given(C c);\nenum class C : short { A = 3, B };"
    before = f"{early}\n__device__ C given(C c) {{ return c; }}\nconstexpr int SIZES[2][2] = {{{{1, 2}}, {{3, 4}}}};\n"
    before += "__device__ constexpr int twice(int a) { return 2 * a; }\n"
    assert body(text, before=before)[1].tolist() == [right] * 32


def test_a_file_may_ask_for_headers(tmp_path: Path) -> None:
    lines = [
        "#ifdef __has_include",
        "#if __has_include(<cuda/atomic>) && __has_include( <vector> ) && !__has_include(<absent>)",
        "#define A 1",
        "#endif",
        "#endif",
        '#if defined(__has_include) && __has_include("beside.h")',
        '#include "beside.h"',
        "#endif",
        '#if __has_include("absent.h")',
        '#include "absent.h"',
        "#error absent",
        "#endif",
    ]
    (tmp_path / "beside.h").write_text("#define B 20\n")
    text = join_headers("\n".join(lines) + "\n", [tmp_path])
    assert device_part(text).missing == ()
    assert body("o[i] = A + B;", before=text)[1].tolist() == [21] * 32


def test_raw_strings_end_where_they_say() -> None:
    text = """const char* s = R"(a"\\n)" "\\n"; const char* t = R"x()" // )
    )x";
    o[0] = s[1]; o[1] = s[2]; o[2] = s[4]; o[3] = s[5]; o[4] = t[1]; o[5] = t[7]; printf(R"(%d\\)", 7 * !i);"""
    _, o, result = body(text, before='#define IGNORED R"("")"\n')
    assert o.tolist()[:6] == [34, 92, 10, 0, 34, 10]
    assert result.printed[:2] == "7\\"
    with pytest.raises(errors.KernelCompileError):
        body('const char* s = R"(a";')
