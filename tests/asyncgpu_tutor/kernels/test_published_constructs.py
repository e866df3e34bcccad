"""Constructs that published kernels use, on both devices: each gives what its expression says."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.errors import KernelCompileError, UnsupportedFeatureError

INDEX = "int i = threadIdx.x;"
COUNT = np.arange(32, dtype=np.float32)

# Of each: what stands in front of the kernel, its body over float* x, and what 32 threads make of 0 to 31.
GIVE: dict[str, tuple[str, str, Any]] = {
    "a namespace that gets a short name in a function": (
        "#include <cooperative_groups.h>",
        """namespace cg = cooperative_groups; cg::thread_block b = cg::this_thread_block();
        x[i] = b.thread_rank() + 1;""",
        COUNT + 1,
    ),
    "bfloat16 that a library's header brings": (
        "#include <cublas_v2.h>\n#include <stdio.h>",
        "__nv_bfloat16 h = __float2bfloat16(x[i] + 0.001f); x[i] = __bfloat162float(h);",
        COUNT + 0.001 * (COUNT == 0),
    ),
    "a struct of the host with no name, beside one of the device": (
        "typedef struct { FILE *logfile; } Logger;\nstruct S { float a; };",
        "S s; s.a = x[i]; x[i] = s.a + 1;",
        COUNT + 1,
    ),
    "memcpy from and to local memory": (
        "",
        "float v[2]; memcpy(v, x + i / 2 * 2, sizeof(v)); __syncwarp(); x[i] = v[0] + v[1];",
        COUNT // 2 * 4 + 1,
    ),
    "memset": ("", "float v[4]; memset(v, 0, sizeof(v)); x[i] = v[i % 4];", COUNT * 0),
    "overloads that differ by const": (
        """__device__ float& at(float4& v, int i) { return reinterpret_cast<float*>(&v)[i]; }
        __device__ float at(const float4& v, int i)
        { return 10 * reinterpret_cast<const float*>(&v)[i]; }""",
        "float4 a = make_float4(1, 2, 3, 4); const float4 b = a; at(a, 1) = x[i]; x[i] = a.y + at(b, 2);",
        COUNT + 30,
    ),
    "memory for a block as a group": (
        "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;",
        """__shared__ cg::block_tile_memory<256> m; cg::thread_block b = cg::this_thread_block(m);
        b.sync(); x[i] += b.size();""",
        COUNT + 32,
    ),
    "enable_if as a parameter, is_same_v and bool_constant": (
        """#include <type_traits>
        template <typename T, typename std::enable_if<std::is_same<float, T>::value>::type* = nullptr>
        __device__ T half_of(T a) { return a / 2; }
        template <typename T, typename std::enable_if<!std::is_same<float, T>::value>::type* = nullptr>
        __device__ T half_of(T a) { return a >> 1; }
        template <bool B> __device__ int pick(std::bool_constant<B>) { return B; }""",
        "x[i] = half_of(x[i]) + half_of(7) + std::is_same_v<int, int> + pick(std::bool_constant<true>());",
        COUNT / 2 + 5,
    ),
    "templates of types and of constants": (
        """#include <type_traits>
        template <class T> using Ptr = T*;
        template <class T> constexpr T answer = T(42);
        template <class T> __device__ std::enable_if_t<std::is_same_v<T, float>, T> next(T a)
        { return a + 1; }""",
        "Ptr<float> y = x; y[i] = next(y[i]) + answer<int>;",
        COUNT + 43,
    ),
    "a function of a base, by its name": (
        "struct B { __device__ int f() { return 1; } };\nstruct D : B { __device__ int f() { return 2; } };",
        "D d; x[i] = 10 * d.B::f() + d.f();",
        COUNT * 0 + 12,
    ),
    "a function that is declared in a function": (
        """template <class T> struct M { __device__ T get() { extern __device__ void error(void); error();
        return 0; } };
        template <> struct M<float> { __device__ float get() { return 3; } };""",
        "M<float> m; x[i] = m.get();",
        COUNT * 0 + 3,
    ),
    "the address of a member of what a reference means": (
        """__device__ void f(float2& t, float p) { sincosf(p, &t.y, &t.x); }
        __device__ void g(float2& t, float p) { f(t, p); }""",
        "float2 t; g(t, 0.0f); x[i] += 2 * t.x + t.y;",
        COUNT + 2,
    ),
    "the header of halves, where no type is named": (
        "#include <cuda_fp16.h>",
        "x[i] = (float)__float2half(x[i] + 0.0001f);",
        (COUNT + np.float32(0.0001)).astype(np.float16).astype(np.float32),
    ),
    "a signed size": ("", "ssize_t n = -1; x[i] += n;", COUNT - 1),
    "a large array in a struct": (
        "struct Large { float x[1 << 20], y[1 << 20]; };",
        "Large* d = (Large*)x; x[i] = d->x[i] + 1;",
        COUNT + 1,
    ),
    "shuffles of pairs and of bfloat16": (
        "#include <cuda_fp16.h>\n#include <cuda_bf16.h>",
        """half2 h = __floats2half2_rn(x[i], 2 * x[i]); h = __shfl_xor_sync(0xffffffffu, h, 1);
        __nv_bfloat16 b = __float2bfloat16(x[i]); b = __shfl_down_sync(0xffffffffu, b, 2);
        x[i] = __low2float(h) + __high2float(h) + __bfloat162float(b);""",
        3 * (COUNT.astype(np.int32) ^ 1) + np.where(COUNT < 30, COUNT + 2, COUNT),
    ),
    "names of members in braces, and constants of a type by an object of it": (
        "struct P { static constexpr int size = 4; int a = 1; float b; float c = 3; };",
        "P p{.b = x[i], .c = 2}; P q = {.b = 1}; x[i] = p.a + p.b + p.c + q.c + p.size;",
        COUNT + 1 + 2 + 3 + 4,
    ),
    "structs that a tile moves": (
        """#include <cooperative_groups.h>
        #include <cooperative_groups/reduce.h>
        namespace cg = cooperative_groups;
        struct Two { float most, sum; };
        struct Both { __device__ Two operator()(Two a, Two b) const
        { Two o; o.most = fmaxf(a.most, b.most); o.sum = a.sum + b.sum; return o; } };""",
        """auto warp = cg::tiled_partition<32>(cg::this_thread_block()); Two t; t.most = x[i]; t.sum = 1;
        t = cg::reduce(warp, t, Both()); x[i] = t.most + t.sum;""",
        COUNT * 0 + 63,
    ),
    "complex numbers": (
        "#include <cuComplex.h>",
        """cuFloatComplex z = make_cuFloatComplex(x[i], 1); z = cuCmulf(z, z);
        cuDoubleComplex w = cuCdiv(make_cuDoubleComplex(4, 2), make_cuDoubleComplex(1, 1));
        x[i] = cuCrealf(z) + cuCimagf(cuConjf(z)) + cuCreal(w) + cuCabsf(make_cuComplex(3, 4));""",
        COUNT**2 - 1 - 2 * COUNT + 3 + 5,
    ),
}


def kernel(head: str, body: str) -> agt.Kernel:
    return agt.Kernel(f"{head}\n__global__ void k(float* x) {{ {INDEX} {body} }}")


@pytest.mark.parametrize("construct", GIVE)
def test_it_gives_what_it_says(device: Device, construct: str) -> None:
    head, body, expected = GIVE[construct]
    x = agt.h2d(COUNT).sync()
    found = kernel(head, body)(x, grid=1, block=32).output().to_host().sync()
    np.testing.assert_allclose(found, expected, rtol=4e-3 if "bfloat16 that" in construct else 0)


FILE = Path(__file__).with_name("constructs.cu")
EXPECTED = {
    "template_as_parameter": COUNT + 7, "half_and_number": (COUNT + 1) / 2,
    "specialised_functions": COUNT * 3 + 3, "atomic_sums_of_16_bits": COUNT * 0 + 385,
    "types_and_constants_of_std": COUNT + 649,
    "one_conversion_and_not_two": COUNT * 12 + 1, "padding_that_is_copied": COUNT + 1,
    "union_without_a_name": (COUNT.view(np.uint32) >> 23) + (COUNT.view(np.uint32) >> 24),
}  # fmt: skip


@pytest.mark.parametrize("name", EXPECTED)
def test_kernels_of_a_file(device: Device, name: str) -> None:
    op = agt.Kernel(FILE, name)(agt.h2d(COUNT).sync(), grid=1, block=32)
    np.testing.assert_array_equal(op.output().to_host().sync(), EXPECTED[name])


@pytest.mark.parametrize(
    ("name", "dtype", "value"),
    [
        ("k<float>", "f4", 1), ("k<int>", "i4", 2), ("k<double>", "f8", 3), ("two(int *)", "i4", 5),
        ("three<6>(float*)", "f4", 6), ("three<6>(int*)", "i4", 7), ("a::k2", "i4", 8), ("b::k2", "i4", 9),
    ],
)  # fmt: skip
def test_which_kernel_is_meant(device: Device, name: str, dtype: str, value: int) -> None:
    op = agt.Kernel(FILE, name)(agt.zeros(1, dtype), grid=1, block=1)
    assert op.output().to_host().sync().tolist() == [value]


def exact(name: str, values: list[Any], kind: str = "float", result: str = "float") -> Any:
    types = {"float": np.float32, "double": np.float64, "int": np.int32, "unsigned": np.uint32}
    types |= {"unsigned long long": np.uint64, "long long": np.int64}
    names = "abcd"[: len(values)]
    params = ", ".join(f"const {kind}* {p}" for p in names)
    given = ", ".join(f"{p}[i]" for p in names)
    source = (
        f"__global__ void k(int n, {params}, {result}* o) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; "
        f"if (i < n) o[i] = {name}({given}); }}"
    )
    arrays = [np.asarray(v, types[kind]) for v in values]
    n = arrays[0].size
    out = agt.zeros(n, types[result]).partition(128)
    return agt.Kernel(source)(n, *[agt.h2d(a) for a in arrays], out).output().to_host().sync()


def some_floats() -> Any:
    bits = np.random.default_rng(5).integers(0, 2**32, 4096, dtype=np.uint32).view(np.float32)
    return np.append(bits, np.float32([0, -0.0, 1, -1, 0.5, 3.5, np.inf, -np.inf, np.nan, 1e-45]))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_functions_of_the_bits_of_a_number_are_exact(device: Device) -> None:
    x = some_floats()
    finite = np.isfinite(x) & (x != 0)
    assert (exact("ilogbf", [x], result="int")[finite] == np.frexp(x)[1][finite] - 1).all()
    np.testing.assert_array_equal(exact("logbf", [x])[finite], np.frexp(x)[1][finite] - 1)
    assert exact("logbf", [[0, math.inf, -math.inf]]).tolist() == [-math.inf, math.inf, math.inf]
    wide = np.append(x.astype(np.float64) * (1 + 1e-9), [1e300, -1e300, 1e-60, -1e-60])
    near = wide.astype(np.float32)
    below = np.where(near > wide, np.nextafter(near, np.float32(-np.inf)), near)
    above = np.where(near < wide, np.nextafter(near, np.float32(np.inf)), near)
    for to, expected in (("d", below), ("u", above), ("z", np.where(wide < 0, above, below))):
        np.testing.assert_array_equal(exact(f"__double2float_r{to}", [wide], "double"), expected)


@pytest.mark.parametrize("function", ["frexpf", "modff"])
def test_functions_that_yield_two_parts(device: Device, function: str) -> None:
    kind = "int" if function == "frexpf" else "float"
    head = f"__device__ float two(float v, {kind}* other) {{ return {function}(v, other); }}"
    value = COUNT * np.float32(1.7) - np.float32(9)
    both = np.frexp(value) if function == "frexpf" else np.modf(value)
    for chosen, expected in zip(("first", "other"), both, strict=True):
        body = f"{kind} other; float first = two(x[i] * 1.7f - 9, &other); x[i] = {chosen};"
        found = kernel(head, body)(agt.h2d(COUNT), grid=1, block=32).output().to_host().sync()
        np.testing.assert_array_equal(found, expected.astype(np.float32))


def test_whole_numbers_of_64_bits(device: Device) -> None:
    rng = np.random.default_rng(6)
    a, b = (rng.integers(0, 2**64, 512, dtype=np.uint64) for _ in range(2))
    for name, kind, dtype in (("u", "unsigned long long", np.uint64), ("", "long long", np.int64)):
        c, d = a.view(dtype), b.view(dtype)
        high = [int(p) * int(q) >> 64 for p, q in zip(c, d, strict=True)]
        assert exact(f"__{name}mul64hi", [c, d], kind, kind).tolist() == high


def test_shifts_of_two_words_and_sums_of_differences(device: Device) -> None:
    words = [[0x12345678] * 4, [0x9ABCDEF0] * 4, [0, 8, 32, 40]]
    right, left = (
        exact(f"__funnelshift_{way}c", words, "unsigned", "unsigned").tolist() for way in "rl"
    )
    whole, by = (0x9ABCDEF0 << 32) | 0x12345678, (0, 8, 32, 32)
    assert right == [whole >> k & 0xFFFFFFFF for k in by]
    assert left == [whole << k >> 32 & 0xFFFFFFFF for k in by]
    assert exact("__usad", [[7, 2], [2, 7], [1, 1]], "unsigned", "unsigned").tolist() == [6, 6]


def test_lengths_are_right_to_the_last_digits(device: Device) -> None:
    rng = np.random.default_rng(7)
    a, b, c = rng.standard_normal((3, 512)).astype(np.float32)
    three = np.sqrt(sum(v.astype(np.float64) ** 2 for v in (a, b, c)))
    np.testing.assert_allclose(exact("norm3df", [a, b, c]), three, rtol=4e-7)
    np.testing.assert_allclose(exact("rhypotf", [a, b]), 1 / np.hypot(a, b), rtol=4e-7)


# ---------------------------------------------------------------------- what is refused, and for whom
def test_what_cannot_be_read_is_refused_to_those_who_use_it(sim: Device) -> None:
    packs = "template <int... N> __device__ void f() {}\n"
    wrong = "__device__ float g(float a) { return a +; }\nstruct T { Unknown u; };\n"
    kernels = (
        "__global__ void a(float* x) { f<1, 2>(); }\n__global__ void b(float* x) { x[0] = g(1); }\n"
        "__global__ void c(T* x) { }\n__global__ void k(float* x) { x[threadIdx.x] = 1; }"
    )
    source = packs + wrong + kernels
    assert agt.Kernel(source, "k")(agt.zeros(4), grid=1, block=4).output().to_host().sync()[3] == 1
    broken = "__global__ void a(float* x) { x[0] = ; }\n__global__ void k(float* x) { x[0] = 1; }"
    open_end = "__device__ int g(int a) { return a;\n__global__ void k(int* x) { x[0] = g(1); }"
    for text, name, error, says in (
        (source, "a", UnsupportedFeatureError, "parameter packs"),
        (source, "b", KernelCompileError, "expected an expression"),
        (source, "c", KernelCompileError, "Unknown"),
        # A kernel that cannot be read is refused at once, and so is what has no end.
        (broken, "k", KernelCompileError, "expected an expression"),
        (open_end, "k", KernelCompileError, "never closed"),
    ):
        with pytest.raises(error, match=says):
            agt.Kernel(text, name)


TOO_LARGE = """__global__ void k(float* o) { __shared__ float s[13000]; int i = threadIdx.x;
    s[i * 97] = i; __syncthreads(); o[i] = s[(i ^ 1) * 97]; }"""
AGAIN = "__global__ void k(int* x) { for (int i = 0; i < 3; i++) { int i = 2; x[i] = 1; } }"


@pytest.mark.parametrize(
    ("source", "says"), [(TOO_LARGE, "52,000 bytes of static"), (AGAIN, "declared again")]
)
def test_what_no_compiler_takes_is_refused_on_both(device: Device, source: str, says: str) -> None:
    with pytest.raises(KernelCompileError, match=says if device.simulated else None):
        agt.Kernel(source)


def test_what_tensor_cores_do_not_take_is_named(sim: Device) -> None:
    source = (
        "#include <mma.h>\nusing namespace nvcuda;\n"
        "__global__ void k(half* x) { wmma::fragment<wmma::accumulator, 16, 16, 16, half> f; }"
    )
    with pytest.raises(UnsupportedFeatureError, match="accumulators of float"):
        agt.Kernel(source)
