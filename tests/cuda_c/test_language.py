"""What a kernel may be written in, and what its arithmetic gives."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
import pytest

from asyncgpu_tutor import errors
from asyncgpu_tutor.cuda_c import compile_source

from .support import body, floats, ints, launch

FIRST = list(range(32))


class TestIntegers:
    @pytest.mark.parametrize(
        ("expression", "value"),
        [
            ("7 / 2", 3),
            ("-7 / 2", -3),
            ("-7 % 3", -1),
            ("7 % -3", 1),
            ("(n - 39) / 2", -3),
            ("(n - 39) % 4", -3),
            ("2147483647 + 1", -2147483648),
            ("(n - 33) / 1u > 5", 1),
            ("-1 < 1u", 0),
            ("1 << 4 | 3", 19),
            ("-8 >> 1", -4),
            ("(int)(0x80000000u >> 31)", 1),
            ("n << 32", 0),
            ("(n - 64) >> 40", -1),
            ("~5 & 0xff", 250),
            ("5 ^ 3", 6),
            ("!n + !!n", 1),
            ("(n > 3 and not (n > 40)) + (n > 40 or n not_eq 32)", 1),
            ("((compl 5 bitand 0xff) bitor 1) xor 3", 248),
            ("(unsigned char)300", 44),
            ("(signed char)200", -56),
            ("(short)70000", 4464),
            ("(int)3.9f", 3),
            ("(int)-3.9f", -3),
            ("(int)1e20f", 2147483647),
            ("(int)-1e20f", -2147483648),
            ("(int)(0.0f / 0.0f * n)", 0),
            ("(int)(unsigned)-5.0f", 0),
            ("(unsigned char)(-3.0f * n) + (unsigned short)(-70000.0 * n)", 0),
            ("(unsigned char)(300.0f * n / 32) * 1000 + (signed char)(200.0f * n / 32)", 43944),
            ("(short)(-70000.0f * n / 32)", -4464),
            ("(int)4294967295u", -1),
            ("sizeof(float4) + sizeof(double)", 24),
            ('sizeof("hey") + sizeof(int[3]) + sizeof(float*[2][2]) + alignof(double)', 56),
            ("(int)(0x1.8p3f + 0x1p-1)", 12),
            (
                "__ll2double_rn(-3) + __ull2double_rn(1ull << 63) > 9e18 and __ull2float_rn(~0ull) > 1e19",
                1,
            ),
            ("'a' + 1", 98),
            ("0x1F + 010 + 0b11", 42),
            ("(n > 3) + (n > 40)", 1),
            ("n > 3 ? 5 : 6", 5),
            ("1 + 2 * 3 - 4 / 2 % 2", 7),
            ("(1, 2)", 2),
            ("max(3, n) + min(3, n)", 35),
            ("max(1u, 2)", 2),
            ("abs(-n)", 32),
            ("__popc(255u) + __clz(1) + __ffs(8)", 8 + 31 + 4),
            ("__mulhi(1 << 30, 8)", 2),
            ("(int)__brev(1u)", -2147483648),
            ("__float_as_int(1.0f)", 0x3F800000),
            ("__float2int_rn(2.5f) + __float2int_ru(2.1f) + __float2int_rz(2.9f)", 7),
            ("(long long)1 << 33 > 8000000000ll", 1),
            ("(int)(10000000000ll % 1000)", 0),
            ("true + true", 2),
            ("warpSize", 32),
        ],
    )
    def test_constant_expressions(self, expression: str, value: int) -> None:
        assert ints(expression) == [value] * 32

    def test_threads_differ(self) -> None:
        assert ints("i * i - 7") == [i * i - 7 for i in FIRST]
        assert ints("(i - 16) / 3") == [int((i - 16) / 3) for i in FIRST]
        assert ints("(i - 16) % 3") == [int(math.fmod(i - 16, 3)) for i in FIRST]
        assert ints("1 << i") == [(1 << i) if i < 31 else -(2**31) for i in FIRST]
        assert ints("100 >> (i + 20)") == [0] * 32

    def test_overflow_wraps(self) -> None:
        assert ints("i * 1000003 * 1000003") == [
            ((i * 1000003 * 1000003 + 2**31) % 2**32) - 2**31 for i in FIRST
        ]

    def test_unsigned_division(self) -> None:
        assert ints("(int)((unsigned)(-i) / 3u % 1000u)") == [
            (-i % 2**32) // 3 % 1000 for i in FIRST
        ]

    def test_short_circuit_evaluates_only_where_needed(self) -> None:
        assert ints("i != 0 && 100 / i > 5") == [int(i != 0 and 100 // i > 5) for i in FIRST]
        assert ints("i == 0 || 100 / i > 5") == [int(i == 0 or 100 // i > 5) for i in FIRST]

    def test_conditional_evaluates_only_the_side_taken(self) -> None:
        assert ints("i ? 100 / i : -1") == [100 // i if i else -1 for i in FIRST]

    def test_increments(self) -> None:
        _, o, _ = body("int a = i; int b = a++ + ++a; int c = a--; o[i] = b * 1000 + c * 10 + --a;")
        assert o.tolist() == [(2 * i + 2) * 1000 + (i + 2) * 10 + i for i in FIRST]

    def test_compound_assignments(self) -> None:
        _, o, _ = body(
            "int a = i; a += 5; a -= 2; a *= 3; a /= 2; a %= 7; a <<= 3; a >>= 1; a |= 1; a &= 30; "
            "a ^= 9; o[i] = a;"
        )
        expected = [((((((i + 3) * 3 // 2) % 7) << 3) >> 1 | 1) & 30) ^ 9 for i in FIRST]
        assert o.tolist() == expected


class TestFloats:
    @pytest.mark.parametrize(
        ("expression", "value"),
        [
            ("0.1f + 0.2f", np.float32(0.1) + np.float32(0.2)),
            ("0.1 + 0.2", np.float32(0.1 + 0.2)),
            ("1.0f / 3.0f", np.float32(1) / np.float32(3)),
            ("1 / 3", 0.0),
            ("sqrtf(2.0f)", np.sqrt(np.float32(2))),
            ("fmaxf(1.0f, 0.0f / 0.0f * n)", 1.0),
            ("floorf(-1.5f) + ceilf(1.2f) + truncf(-1.7f)", -1.0),
            ("roundf(2.5f) + rintf(2.5f) + roundf(-0.5f)", 4.0),
            ("fmodf(7.5f, 2.0f)", 1.5),
            ("copysignf(3.0f, -1.0f)", -3.0),
            ("exp2f(10.0f)", 1024.0),
            ("powf(2.0f, 0.5f)", np.float32(2) ** np.float32(0.5)),
            ("max(1.5f, 2.5f) - min(1.5f, 2.5f)", 1.0),
            ("fabsf(-2.0f) + abs(-3.0f)", 5.0),
            ("1.0f / fmaxf(-0.0f, 0.0f) > 0 && 1.0f / fminf(0.0f, -0.0f) < 0", 1.0),
            ("1e10f + 1.0f - 1e10f", 0.0),
            ("(float)16777217", 16777216.0),
            ("3.0f * threadIdx.x - 3 * i", 0.0),
            ("isnan(sqrtf(-1.0f)) + isinf(1.0f / 0.0f)", 2.0),
            ("__int_as_float(0x40490fdb)", np.float32(math.pi)),
            ("__saturatef(7.0f)", 1.0),
            ("hypotf(3.0f, 4.0f)", 5.0),
            ("rsqrtf(4.0f)", 0.5),
            ("fdimf(5.0f, 3.0f) + fdimf(3.0f, 5.0f)", 2.0),
        ],
    )
    def test_constant_expressions(self, expression: str, value: float) -> None:
        assert floats(expression) == [float(np.float32(value))] * 32

    def test_float32_stays_float32(self) -> None:
        got = floats("x[i] * 0.1f + 0.7f * x[i] * x[i]")
        assert all(np.float32(v) == v for v in got)

    def test_a_product_and_a_sum_are_rounded_once(self) -> None:
        # (1 + 2^-12)^2 - 1 - 2^-11 is 2^-24 exactly; rounding the product first loses it.
        text = "float a = 1.0f + 1.0f / 4096; x[i] = a * a + (-1.0f - 1.0f / 2048);"
        assert body(text)[0][0] == np.float32(2.0**-24)
        assert body(text, contract=False)[0][0] == 0.0

    def test_of_two_products_the_left_one_is_fused(self) -> None:
        text = "float a = 1.0f + 1.0f / 4096, b = 1.0f - 1.0f / 4096; x[i] = a * a + b * b;"
        a, b = 1 + 2.0**-12, 1 - 2.0**-12
        assert body(text)[0][0] == np.float32(a * a + float(np.float32(b * b)))

    def test_fused_double(self) -> None:
        text = "double a = 1.0 + 1.0 / 134217728; x[i] = (float)fma(a, a, -1.0 - 1.0 / 67108864);"
        assert body(text)[0][0] == np.float32(2.0**-54)

    @pytest.mark.parametrize("name", ["expf", "logf", "sinf", "cosf", "tanhf", "erff", "cbrtf"])
    def test_functions_agree_with_the_library(self, name: str) -> None:
        exact = {"cbrtf": lambda v: v ** (1 / 3)}.get(name, getattr(math, name[:-1], None))
        got = np.array(floats(f"{name}(0.25f * (i + 1))"))
        want = np.array([exact(0.25 * (i + 1)) for i in FIRST])
        np.testing.assert_allclose(got, want, rtol=3e-7, atol=1e-7)

    def test_overloads_by_type(self) -> None:
        assert floats("exp(1.0f) - expf(1.0f)") == [0.0] * 32
        assert ints("sizeof(exp(1.0f)) * 10 + sizeof(exp(1.0))") == [48] * 32

    def test_double(self) -> None:
        _, o, _ = body("double d = 1.0 / 3; o[i] = d * 3 == 1.0 && (float)d != d;")
        assert o.tolist() == [1] * 32

    @pytest.mark.parametrize(
        ("to", "low", "high"),
        [("signed char", -128, 127), ("unsigned char", 0, 255), ("short", -32768, 32767)],
    )
    def test_a_half_is_clamped_to_a_small_integer(self, to: str, low: int, high: int) -> None:
        text = f"half h = __float2half(i % 2 ? 40000.0f : -40000.0f); o[i] = ({to})h;"
        _, o, _ = body(text, before="#include <cuda_fp16.h>")
        assert o.tolist() == [low, high] * 16

    def test_half_storage(self) -> None:
        source = """#include <cuda_fp16.h>
        extern "C" __global__ void k(const half* a, half* b, float* f) {
            int i = threadIdx.x;
            f[i] = __half2float(a[i]) * 2.0f;
            b[i] = __float2half(f[i] + 0.3f);
            b[i] = __hadd(b[i], a[i]);
        }"""
        a = np.linspace(-3, 3, 32).astype(np.float16)
        b, f = np.zeros(32, np.float16), np.zeros(32, np.float32)
        launch(source, "k", 1, 32, a, b, f)
        assert (f == a.astype(np.float32) * 2).all()
        first = (f + np.float32(0.3)).astype(np.float16)
        assert (b == (first.astype(np.float32) + a.astype(np.float32)).astype(np.float16)).all()

    def test_half2(self) -> None:
        before = "#include <cuda_fp16.h>"
        text = """half2 p = __floats2half2_rn(1.5f, 2.0f); p = __hfma2(p, p, p);
            x[i] = __low2float(p) + 100 * __high2float(p);"""
        assert body(text, before=before)[0][0] == 3.75 + 600

    def test_what_is_no_number_becomes_an_integer_as_on_a_gpu(self) -> None:
        nan = "sqrtf(-1.0f - x[i])"
        assert ints(f"(int)({nan})") == [0] * 32
        assert ints(f"(int)(unsigned)({nan})") == [0] * 32
        assert ints(f"(int)((long long)({nan}) >> 60)") == [-8] * 32
        assert ints(f"(int)((unsigned long long)({nan}) >> 60)") == [8] * 32


class TestControl:
    def test_loops_of_every_kind(self) -> None:
        _, o, _ = body(
            """int s = 0;
            for (int a = 0, b = 10; a < b; a++, b--) s += a * b;
            int k = i; while (k) { if (k == 20) break; k--; if (k & 1) continue; s++; }
            do { s += 100; } while (s < 300);
            o[i] = s;"""
        )

        def model(i: int) -> int:
            s = sum(a * (10 - a) for a in range(5))
            k = i
            while k:
                if k == 20:
                    break
                k -= 1
                if k & 1:
                    continue
                s += 1
            while True:
                s += 100
                if s >= 300:
                    return s

        assert o.tolist() == [model(i) for i in FIRST]

    def test_early_return_ends_a_thread(self) -> None:
        _, o, _ = body(
            "if (i > 20) return; for (;;) { if (i > 5) return; o[i] = 1; break; } o[i]++;"
        )
        assert o.tolist() == [2] * 6 + [0] * 26

    def test_switch(self) -> None:
        _, o, _ = body(
            """int s = 0;
            switch (i % 6) {
                case 0: s = 10; break;
                case 1: s = 20;
                case 2: s += 1; break;
                default: s = 7;
                case 5: s *= 2; if (i > 12) break; s++;
            }
            o[i] = s;"""
        )

        def model(i: int) -> int:
            m = i % 6
            if m == 0:
                return 10
            if m in (1, 2):
                return 21 if m == 1 else 1
            s = (0 if m == 5 else 7) * 2
            return s if i > 12 else s + 1

        assert o.tolist() == [model(i) for i in FIRST]

    def test_continue_in_a_switch_belongs_to_the_loop(self) -> None:
        _, o, _ = body(
            "int s = 0; for (int j = 0; j < 5; j++) { switch (j) { case 2: continue; default: break; } "
            "s += j; } o[i] = s;"
        )
        assert o.tolist() == [8] * 32

    def test_nested_divergence(self) -> None:
        _, o, _ = body(
            """int s = 0;
            for (int j = 0; j < i; j++) {
                if (j % 3 == 0) { if (i & 1) continue; s += 2; }
                else if (j % 3 == 1) { for (int q = 0; q < j; q++) { if (q > 4) break; s += q; } }
                else s--;
                if (s > 40) break;
            }
            o[i] = s;"""
        )

        def model(i: int) -> int:
            s = 0
            for j in range(i):
                if j % 3 == 0:
                    if i & 1:
                        continue
                    s += 2
                elif j % 3 == 1:
                    s += sum(range(min(j, 5)))
                else:
                    s -= 1
                if s > 40:
                    break
            return s

        assert o.tolist() == [model(i) for i in FIRST]


class TestDeclarations:
    def test_scopes_shadow(self) -> None:
        _, o, _ = body(
            "int a = 1; { int a = 2; { int a = 3; o[i] = a; } o[i] += 10 * a; } o[i] += 100 * a;"
        )
        assert o.tolist() == [123] * 32

    def test_constants_size_arrays(self) -> None:
        _, o, _ = body(
            "const int N = 4; constexpr int M = N * 2; int a[M + 1][N] = {{1, 2}, {3}}; "
            "o[i] = a[0][1] + a[1][0] + a[8][3] + sizeof(a) / sizeof(a[0]);"
        )
        assert o.tolist() == [14] * 32

    def test_local_arrays_by_uniform_and_by_own_index(self) -> None:
        _, o, _ = body(
            "int a[8]; for (int j = 0; j < 8; j++) a[j] = j * i; a[i & 7] = -1; int s = 0; "
            "for (int j = 0; j < 8; j++) s += a[j]; o[i] = s;"
        )
        assert o.tolist() == [28 * i - (i & 7) * i - 1 for i in FIRST]

    def test_structs(self) -> None:
        before = "struct V { float x, y; int n[3]; }; struct W { V v; double d; };"
        text = """W w; w.v.x = i; w.v.y = 2; for (int j = 0; j < 3; j++) w.v.n[j] = j + i; w.d = 0.5;
            W u = w; u.v.n[1] = 100; V* p = &u.v; p->y += 1;
            x[i] = u.v.x + u.v.y + u.v.n[1] + w.v.n[1] + u.d + sizeof(W);"""
        assert body(text, before=before)[0].tolist() == [
            i + 3 + 100 + i + 1 + 0.5 + 32 for i in FIRST
        ]

    def test_struct_values(self) -> None:
        before = """struct P { float a; int b; };
            __device__ P make(float a, int b) { P p = {a, b}; return p; }
            __device__ float sum(P p) { return p.a + p.b; }"""
        text = "P p = make(i, 2); P q = p; q.a += 1; p = i > 3 ? p : q; x[i] = sum(p) + sum(P{1.0f, 1});"
        assert body(text, before=before)[0].tolist() == [i + 4 + (i <= 3) for i in FIRST]

    def test_arrays_of_structs_in_global_memory(self) -> None:
        source = """struct P { float x, y, z; int id; };
        extern "C" __global__ void k(P* p) { int i = threadIdx.x; p[i].y = p[i].x * 2; P q = p[i]; q.id++; p[i] = q; }"""
        kind = np.dtype([("x", "f4"), ("y", "f4"), ("z", "f4"), ("id", "i4")])
        p = np.zeros(32, kind)
        p["x"] = np.arange(32)
        raw = p.view(np.uint8)
        launch(source, "k", 1, 32, raw)
        assert (p["y"] == p["x"] * 2).all()
        assert (p["id"] == 1).all()

    @pytest.mark.parametrize(
        "before",
        [
            "struct __align__(16) P { float x, y, z; };",
            "struct alignas(8 * sizeof(short)) P { float x, y, z; };",
            "typedef struct __align__(16) { float x, y, z; } P;",
        ],
    )
    def test_structs_with_an_alignment(self, before: str) -> None:
        inner = f"{before} struct Q {{ char c; P p; }};"
        sizes = "i == 0 ? sizeof(P) : i == 1 ? sizeof(Q) : (int)((char*)&q[0].p.z - (char*)q)"
        _, o, _ = body(f"Q q[1]; o[i] = {sizes};", before=inner)

        assert o[:3].tolist() == [16, 32, 24]

    def test_variables_with_an_alignment(self) -> None:
        text = (
            "__shared__ __align__(16) float s[4]; __align__(16) float t[4]; alignas(8) int m = i;"
        )
        _, o, _ = body(f"{text} s[0] = 1; t[0] = 2; o[i] = m + (int)t[0];")

        assert o.tolist() == [i + 2 for i in FIRST]

    def test_vector_types(self) -> None:
        source = """extern "C" __global__ void k(float4* v, float3* w, int2* u) {
            int i = threadIdx.x; float4 a = v[i]; a.w = a.x + a.y; v[i] = a; w[i].z = w[i].x;
            u[i] = make_int2(u[i].y, u[i].x); }"""
        v = np.arange(128, dtype=np.float32).reshape(32, 4)
        w = np.arange(96, dtype=np.float32).reshape(32, 3)
        u = np.arange(64, dtype=np.int32).reshape(32, 2)
        want_w, want_u = w.copy(), u[:, ::-1].copy()
        want_w[:, 2] = want_w[:, 0]
        launch(source, "k", 1, 32, v, w, u)
        assert (v[:, 3] == v[:, 0] + v[:, 1]).all()
        assert (w == want_w).all()
        assert (u == want_u).all()

    def test_reinterpreting_memory(self) -> None:
        source = """extern "C" __global__ void k(float* x, unsigned char* b) { int i = threadIdx.x;
            float4 v = reinterpret_cast<float4*>(x)[i]; v.y = -v.x; ((float4*)x)[i] = v;
            b[i] = ((unsigned char*)x)[16 * i + 3]; }"""
        x, b = np.arange(1, 129, dtype=np.float32), np.zeros(32, np.uint8)
        first = x[::4].copy()
        launch(source, "k", 1, 32, x, b)
        assert (x[1::4] == -first).all()
        assert (b == first.view(np.uint8)[3::4]).all()

    def test_addresses_of_locals(self) -> None:
        before = "__device__ void swap(int* a, int* b) { int t = *a; *a = *b; *b = t; }"
        _, o, _ = body("int p = i, q = 2 * i; if (i > 3) swap(&p, &q); o[i] = p;", before=before)
        assert o.tolist() == [2 * i if i > 3 else i for i in FIRST]

    def test_bytes_of_a_local(self) -> None:
        _, o, _ = body("float f = 1.0f; o[i] = *(int*)&f; unsigned u = 0x01020304; "
                       "unsigned char* b = (unsigned char*)&u; o[i] += b[0] + b[3];")  # fmt: skip
        assert o.tolist() == [0x3F800000 + 5] * 32

    def test_references(self) -> None:
        before = "__device__ void inc(int& a, const float& f) { a += (int)f; }"
        _, o, _ = body("int v = i; inc(v, 2.0f); inc(o[i], 5.0f); int& r = o[i]; r += v; float4 q; "
                       "q.x = 1; float& s = q.x; s += 1; r += (int)q.x;", before=before)  # fmt: skip
        assert o.tolist() == [i + 9 for i in FIRST]

    def test_constant_and_device_variables(self) -> None:
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

    def test_enum_typedef_using(self) -> None:
        before = "enum { A, B = 5, C }; typedef unsigned int u32; using real = float;"
        x, o, _ = body("u32 a = A + B + C; real b = a; o[i] = a; x[i] = b / 2;", before=before)
        assert (o[0], x[0]) == (11, 5.5)

    def test_pointers_into_different_arrays(self) -> None:
        x, _, _ = body(
            "__shared__ float s[32]; s[i] = 7; float* p = i < 16 ? x : s; p += i; x[i] = *p + 1;"
        )
        assert x.tolist() == [i + 1.0 for i in range(16)] + [8.0] * 16

    def test_pointer_arithmetic(self) -> None:
        _, o, _ = body("int* p = o + i; int* q = &o[n - 1]; *p++ = q - o; o[i] += p - o; "
                       "o[i] += 100 * (p > o) + 1000 * (p == o + i + 1);")  # fmt: skip
        assert o.tolist() == [31 + i + 1 + 1100 for i in FIRST]


class TestFunctions:
    def test_overloads_and_defaults(self) -> None:
        before = """__device__ float f(float a) { return 1; } __device__ float f(int a) { return 2; }
            __device__ float g(float a, float b = 2.0f) { return a * b; }"""
        assert floats("f(1) + 10 * f(1.0f) + 100 * g(3) + 1000 * g(1, 1)", before) == [1612.0] * 32

    def test_return_from_divergent_loops(self) -> None:
        before = """__device__ int steps(int n) { int c = 0; while (1) { if (n <= 1) return c;
            n = n % 2 ? 3 * n + 1 : n / 2; if (++c > 30) return -1; } }"""

        def model(n: int) -> int:
            c = 0
            while n > 1:
                n = 3 * n + 1 if n % 2 else n // 2
                c += 1
                if c > 30:
                    return -1
            return c

        assert ints("steps(i)", before) == [model(i) for i in FIRST]

    def test_function_templates(self) -> None:
        before = """template <typename T, int N> __device__ T times(T a) { return a * N; }
            template <typename T> __device__ T twice(const T* p) { return p[0] + p[0]; }
            template <bool UP> __device__ int step(int a) { if constexpr (UP) return a + 1; else return a - 1; }"""
        assert ints("times<int, 3>(i) + step<true>(0) * 10 + step<false>(0)", before) == [
            3 * i + 9 for i in FIRST
        ]
        assert body("x[i] = twice(x + i);", before=before)[0].tolist() == [2.0 * i for i in FIRST]

    def test_kernel_templates_by_name_expression(self) -> None:
        source = """template <typename T, int N = 2> __global__ void scale(T* x) { x[threadIdx.x] *= (T)N; }"""
        program = compile_source(source)
        assert not program.kernels
        x = np.arange(32, dtype=np.float32)
        launch(program, "scale<float, 16>", 1, 32, x)
        assert x.tolist() == [16.0 * i for i in FIRST]
        d = np.arange(32, dtype=np.float64)
        launch(program, "scale<double>", 1, 32, d)
        assert d.tolist() == [2.0 * i for i in FIRST]
        assert set(program.kernels) == {"scale<float, 16>", "scale<double, 2>"}

    def test_shared_memory_of_the_file(self) -> None:
        before = "extern __shared__ float all[]; __shared__ int four[4]; __device__ float last() { return all[31]; }"
        text = "all[i] = i; if (i < 4) four[i] = i; __syncthreads(); x[i] = last() + four[i & 3];"
        x, _, result = body(text, before=before)
        assert x.tolist() == [31.0 + i % 4 for i in FIRST]
        assert result.counts.shared_bytes == 16 + 128

    def test_shared_memory_in_a_function(self) -> None:
        before = """__device__ float total(float v) { __shared__ float s[32]; s[threadIdx.x] = v; __syncthreads();
            float t = 0; for (int j = 0; j < 32; j++) t += s[j]; return t; }"""
        assert floats("total(i)", before) == [496.0] * 32


class TestPreprocessor:
    def test_macros(self) -> None:
        before = """#define N 4
            #define SQ(a) ((a) * (a))
            #define IDX(r, c, ld) \\
                ((r) * (ld) + (c))
            #define CAT(a, b) a##b
            #define SUM(first, ...) (first + ARGS(__VA_ARGS__))
            #define ARGS(a, b) (a * b)
            #if N > 3 && defined(SQ) && !defined(NOPE)
            #define PICK 1
            #elif 1
            #define PICK 2
            #else
            #error never
            #endif
            #ifdef NOPE
            this is not CUDA
            #endif"""
        assert (
            ints("SQ(N + 1) + IDX(2, 3, N) + CAT(1, 2) + SUM(1, 2, 3) + PICK", before)
            == [25 + 11 + 12 + 7 + 1] * 32
        )

    def test_one_macro_may_define_functions_that_call_each_other(self) -> None:
        before = r"""#define PAIR(n) __device__ int half_##n() { return n; } \
            __device__ int twice_##n() { return half_##n() + half_##n(); }
            PAIR(4)
            """
        assert ints("twice_4()", before) == [8] * 32

    def test_a_macro_does_not_expand_in_itself(self) -> None:
        assert ints("n + n", "#define n (n + 1)\n".replace("n (n + 1)", "zz (zz)")) == [64] * 32


class TestIndices:
    @pytest.mark.parametrize("where", ["int s[64];", "__shared__ int t[32][64]; int* s = t[i];"])
    def test_of_type_size_t(self, where: str) -> None:
        text = "for (size_t k = 0; k < 64; k++) s[k] = k; size_t j = i; o[i] = s[j + 3] + *(s + 5 + j);"
        assert body(where + text)[1].tolist() == [2 * k + 8 for k in range(32)]

    def test_of_type_size_t_wrap_around_as_addresses_do(self) -> None:
        text = "int* p = o + i; size_t back = i; p[5 - back] = 7; p[(size_t)-1 + 7 - back] = i;"
        before = body(f"if (i == 8) {{ {text} }}")[1]
        assert (before[5], before[6]) == (7, 8)


class TestText:
    @pytest.mark.parametrize(
        ("text", "values"),
        [
            ('const char* s = "hello"; o[i] = s[i % 6];', list(b"hello\0")),
            ('const char s[] = "hello"; o[i] = s[i % 6] + sizeof(s) - 6;', list(b"hello\0")),
            ('char s[8] = "hi"; s[0] = 65; o[i] = s[i % 3];', list(b"Ai\0")),
            ('const char s[2][4] = {"ab", "cd"}; o[i] = s[1][i % 3];', list(b"cd\0")),
            (
                'const char* s = i % 2 ? "odd" : "even"; int k = 0; while (s[k]) k++; o[i] = k;',
                [4, 3],
            ),
            ('const char* s = "xyz"; s++; o[i] = *s;', list(b"y")),
            ("o[i] = message[i % 3];", list(b"ok\0")),
            ('assert(i >= 0 && "no negative i"); o[i] = i < 0 || "text";', [1]),
        ],
    )
    def test_characters(self, text: str, values: list[int]) -> None:
        got = body(text, before='__constant__ char message[] = "ok";')[1].tolist()
        assert got == [values[i % len(values)] for i in range(32)]

    def test_a_failed_assert_with_a_text(self) -> None:
        with pytest.raises(
            errors.DeviceAssertError, match="thread \\(4, 0, 0\\) fails its own assert"
        ):
            body('assert(i < 4 && "four are enough");')

    def test_what_leaves_or_changes_it_is_seen(self) -> None:
        with pytest.raises(errors.OutOfBoundsError, match="""'"abc"'"""):
            body('const char* s = "abc"; o[i] = s[i];')

    def test_printf_of_any_text(self) -> None:
        text = """const char* names[] = {"zero", "one"}; char own[4] = "abc"; own[1] = 0;
            if (i < 2) printf("%s|%5s|%s\\n", names[i], i ? "T" : "F", own);"""
        assert body(text)[2].printed == "zero|    F|a\none|    T|a\n"

    def test_printf_of_an_address(self) -> None:
        assert re.fullmatch(r"0x[0-9a-f]+\n", body('if (i == 0) printf("%p\\n", x);')[2].printed)


class TestKnownWhenCompiled:
    BEFORE = """
    __host__ __device__ constexpr int cdiv(int a, int b) { return (a + b - 1) / b; }
    constexpr int log2i(int v) { int r = 0; while (v >>= 1) ++r; return r; }
    template <typename T> constexpr T biggest(T a, T b) { return a > b ? a : b; }
    constexpr int COUNT = cdiv(100, 8);
    static const int SMALL = log2i(COUNT) * 2;
    __constant__ int table[COUNT] = {1, 2};
    template <int A> struct Kind { static constexpr int twice = cdiv(A, 1) * 2; };
    template <int N> __device__ int plus(int a) { return a + N; }
    __device__ int ordinary(int a) { return a; }
    template <typename T, typename U> __device__ auto add(T a, U b) -> decltype(a + b) { return a + b; }
    """

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("o[i] = COUNT * 100 + SMALL + sizeof(table);", 1300 + 6 + 52),
            ("int a[cdiv(9, 4)]; o[i] = sizeof(a) + plus<biggest(3, 7)>(1) + Kind<log2i(9)>::twice;", 12 + 8 + 6),
            ("const int k = cdiv(n, 8); o[i] = k;", 4),
            ("constexpr float H = biggest(1.5f, 2.5f); __shared__ int s[log2i(64)]; o[i] = sizeof(s) * H;", 60),
            ("switch (3) { case cdiv(9, 4): o[i] = 7; } static_assert(cdiv(9, 4) == 3, \"three\");", 7),
            ("decltype(i) a = 7; decltype(a * 2.0) b = 7 / 2.0; o[i] = add(a, 0.5) * 2 + b * 2;", 15 + 7),
            ("o[i] = 3[table + 0] + (i + 1 > 0)[table];", 2),
        ],
    )  # fmt: skip
    def test_by_constexpr_functions_and_decltype(self, text: str, value: int) -> None:
        assert body(text, before=self.BEFORE)[1].tolist() == [value] * 32

    @pytest.mark.parametrize("size", ["cdiv(n, 2)", "ordinary(3)", "cdiv(threadIdx.x, 2)"])
    def test_other_calls_are_no_constants(self, size: str) -> None:
        with pytest.raises(errors.KernelCompileError, match="must be a constant"):
            body(f"int a[{size}]; o[i] = sizeof(a);", before=self.BEFORE)

    def test_one_that_does_not_end_is_no_constant(self) -> None:
        before = "constexpr int forever(int a) { while (a > 0) a++; return a; }"
        with pytest.raises(errors.KernelCompileError, match="must be a constant"):
            body("int a[forever(1)]; o[i] = sizeof(a);", before=before)

    @pytest.mark.parametrize("of", ["x[0]", "(a)", "++a", "i > 3 ? a : b", "r"])
    def test_the_type_of_a_place_is_a_reference(self, of: str) -> None:
        with pytest.raises(errors.UnsupportedFeatureError, match="write the type"):
            body(f"float a = 1, b = 2; float& r = a; decltype({of}) s = a; s = 3; o[i] = a;")

    def test_what_only_begins_with_a_bracket_is_a_value(self) -> None:
        assert body("int a = 1; decltype((a) + 1) b = a; b = 5; o[i] = a;")[1].tolist() == [1] * 32

    def test_a_constant_may_come_from_a_string(self) -> None:
        before = '__host__ __device__ constexpr int f() { const char* s = "abc"; return s[1]; }'
        assert body("constexpr int v = f(); o[i] = v;", before=before)[1].tolist() == [98] * 32

    def test_functions_that_one_macro_defines_have_addresses_of_their_own(self) -> None:
        before = """
        #define OPS __device__ int fa(int a) { return a + 1; } __device__ int fb(int a) { return a + 2; }
        OPS
        __device__ int call(int (*f)(int), int a) { return f(a); }
        """
        assert (
            body("o[i] = call(fa, 0) * 10 + call(fb, 0);", before=before)[1].tolist() == [12] * 32
        )

    @pytest.mark.parametrize(("made", "value"), [("D d; int q = d;", 7), ("H d; short q = d;", 9)])
    def test_a_base_converts_by_its_own_function_unless_that_is_hidden(
        self, made: str, value: int
    ) -> None:
        before = """
        struct B { __device__ operator int() const { return 7; } };
        struct D : B { __device__ operator float() const { return 1.5f; } };
        struct H : B { __device__ operator int() const { return 9; } };
        """
        assert body(f"{made} o[i] = q;", before=before)[1].tolist() == [value] * 32

    @pytest.mark.parametrize(
        ("lambda_", "value"),
        [
            ("[](int a) { auto g = [](int b) { return b + 1; }; return g(a); }", 5),
            ("[](int a) { decltype(b) z = a; return z; }", 4),
        ],
    )
    def test_a_lambda_that_captures_nothing_may_have_names_of_its_own(
        self, lambda_: str, value: int
    ) -> None:
        assert body(f"int b = 3; auto f = {lambda_}; o[i] = f(4);")[1].tolist() == [value] * 32


class TestSwitch:
    def test_variables_may_stand_in_front_of_the_first_case(self) -> None:
        text = (
            "switch (i & 1) { int a, b; case 0: a = 3; o[i] = a; break; case 1: b = 4; o[i] = b; }"
        )
        assert body(text)[1].tolist() == [3, 4] * 16

    def test_a_value_there_is_never_given(self) -> None:
        with pytest.raises(errors.KernelCompileError, match="before the first case"):
            body("switch (i & 1) { int a = 3; case 0: o[i] = a; }")


class TestOrder:
    # nvcc folds each of these to the same number.
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("o[i] = 100; o[i] += add(o + i);", 106),
            ("int v = 1; auto f = [&]() { v = 10; return 2; }; v += f(); o[i] = v;", 12),
            ("int v = 1; v += (v = 7, 3); o[i] = v;", 10),
            ("int j = 0; int a[4] = {1, 2, 3, 4}; a[j] += (j = 2); o[i] = a[2] * 10 + a[0];", 51),
            ("o[i] = 100; o[i] += atomicAdd(o + i, 5);", 205),
        ],
    )
    def test_the_right_side_of_a_compound_assignment_goes_first(
        self, text: str, value: int
    ) -> None:
        before = "__device__ int add(int* p) { *p += 5; return 1; }"
        assert body(text, before=before)[1].tolist() == [value] * 32


class TestDeclared:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("if (int k = i % 3) o[i] = k; else o[i] = -1;", lambda i: i % 3 or -1),
            ("if (int k = i % 3; k > 1) o[i] = k; else o[i] = -k;", lambda i: 2 if i % 3 == 2 else -(i % 3)),
            ("if (float(i) > 3) o[i] = 1;", lambda i: int(i > 3)),
            ("auto u{i}; auto f = float4{1, 2, 3, 4}; o[i] = u + f.y;", lambda i: i + 2),
        ],
    )  # fmt: skip
    def test_in_a_condition_and_by_auto(self, text: str, value: Callable[[int], int]) -> None:
        assert body(text)[1].tolist() == [value(i) for i in range(32)]


class TestOutput:
    def test_printf(self) -> None:
        text = r'if (i < 2) printf("%d|%5.2f|%-4u|%x|%s|%c|%lld%%\n", i, x[i] / 3, 7u, 255, "hey", 65, 1ll << 40);'
        assert body(text)[2].printed == (
            "0| 0.00|7   |ff|hey|A|1099511627776%\n1| 0.33|7   |ff|hey|A|1099511627776%\n"
        )

    def test_a_string_may_go_on_in_the_next_line(self) -> None:
        assert body('if (i == 0) printf("one \\\ntwo\\n");')[2].printed == "one two\n"

    @pytest.mark.parametrize(
        ("form", "given", "text"),
        [
            ("%u|%x", "-1, -2", "4294967295|fffffffe"),
            ("%llu|%lX", "-1ll, -2l", "18446744073709551615|FFFFFFFFFFFFFFFE"),
            ("%d|%i", "4294967295u, 3000000000u", "-1|-1294967296"),
            ("%hd|%hu|%hhx|%hhd", "70000, -1, 511, 200", "4464|65535|ff|-56"),
            ("%+u|% x|%05.2u", "3, 255, 7", "3|ff|   07"),
            ("%c%c", "65, -1", "A\xff"),
            ("%d", "1ll << 32 | 5", "5"),  # an int is read, as on a GPU
        ],
    )
    def test_an_integer_is_read_as_the_format_says(self, form: str, given: str, text: str) -> None:
        assert body(f'if (i == 0) printf("{form}", {given});')[2].printed == text

    def test_clock_advances(self) -> None:
        _, o, _ = body(
            "long long a = clock64(); for (int j = 0; j < 10; j++) o[i] += j; o[i] = clock64() > a;"
        )
        assert o.tolist() == [1] * 32
