"""Whole files, as people publish them: what is for the host is set aside, in its place."""

from __future__ import annotations

import numpy as np
import pytest

from simgpu import errors
from simgpu.cuda_c import compile_source, device_code, for_compiler, read_signature

from .support import HEAD, floats, launch

PUBLISHED = r"""
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>
#include "helper_cuda.h"
using namespace std;
#define N 8
#define CHECK(call) \
    do { cudaError_t e = call; if (e != cudaSuccess) exit(1); } while (0)
#define HD __host__ __device__ inline
typedef struct { float x, y; } Point;
struct Timer { cudaEvent_t start; Timer() { cudaEventCreate(&start); } };
enum Mode { ADD, SUB };
const int SCALE = 3;
const char* names[] = {"a", "b"};
float *h_a, *h_b;
int total = 0;
__constant__ float table[2] = {1.0f, 2.0f};

HD float half_of(float v) { return v * 0.5f; }
static float reference(const std::vector<float>& v) { return v[0]; }
template <typename T> void print(const T& t) { std::cout << t << "it's"; }

#ifdef WIDE
typedef double real;
#else
typedef float real;
#endif

namespace kernels {
template <typename T, int K = SCALE>
__global__ void __launch_bounds__(256) scale(T* x, real y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Point p = {table[1], half_of(y)};
    if (i < n) x[i] = x[i] * K + p.x * p.y;
}
}

extern "C" {
__global__ void add(float* x, int n) { int i = threadIdx.x; if (i < N && i < n) x[i] += SCALE; }
}
template __global__ void kernels::scale<float, 3>(float*, float, int);

int main(int argc, char** argv) {
    std::vector<float> v(N);
    float* d;
    CHECK(cudaMalloc(&d, N * sizeof(float)));
#ifdef VERBOSE
    printf("it's {");
#endif
    kernels::scale<float><<<1, N>>>(d, 2.0f, N);
    auto f = [](int i) { return i; };
    CHECK(cudaDeviceSynchronize());
}
"""


def test_a_whole_file_runs() -> None:
    x = np.arange(8, dtype=np.float32)
    launch(PUBLISHED, "scale<float>", 1, 8, x, np.float32(4), 8)
    np.testing.assert_array_equal(x, np.arange(8) * 3 + 4)
    launch(PUBLISHED, "add", 1, 8, x, 4)
    np.testing.assert_array_equal(x, np.arange(8) * 3 + 4 + [3, 3, 3, 3, 0, 0, 0, 0])


def test_what_is_set_aside_keeps_lines_and_columns() -> None:
    code = device_code(PUBLISHED)
    assert code.kernels == ("scale", "add")
    assert code.missing == ("helper_cuda.h",)
    assert set(code.aside) == {"reference", "print", "main", "h_a", "h_b", "total"}
    ours, theirs = code.text.split("\n"), PUBLISHED.split("\n")
    assert [len(line) for line in ours] == [len(line) for line in theirs]
    kept = [line for line, whole in zip(ours, theirs, strict=True) if line == whole]
    assert "const int SCALE = 3;" in kept
    assert "typedef float real;" in kept
    for gone in ("std::", "Timer", "enum Mode", "names[]", "<<<", "#include", "reference"):
        assert gone not in code.text


@pytest.mark.parametrize("text", [HEAD + "x[i] = 1; }", "// only\n" + HEAD + "o[i] = N; }", HEAD])
def test_device_code_alone_stays_as_it_is(text: str) -> None:
    assert device_code(text).text == text


def test_nvrtc_gets_the_same_text_and_counts_its_lines() -> None:
    text = for_compiler(PUBLISHED)
    before, _, after = text.partition("#line 1\n")
    assert after == device_code(PUBLISHED).text
    assert "#define FLT_MAX" in before


def test_a_header_stays_if_device_code_needs_it() -> None:
    plain = "#include <cuda_fp16.h>\n#include <curand_kernel.h>\n" + HEAD
    assert "#include" not in device_code(plain + "}").text
    assert "cuda_fp16.h" in device_code(plain + "half h; }").text
    assert "curand" not in device_code(plain + "half h; }").text
    by_library = "#include <cublas_v2.h>\n#include <cudnn.h>\n" + HEAD
    assert device_code(by_library + "half h; }").text.startswith("#include <cuda_fp16.h>\n")
    assert "#include" not in device_code(by_library + "}").text
    assert "cudnn" not in device_code("#include <cuda_fp16.h>\n" + by_library + "half h; }").text


@pytest.mark.parametrize(
    ("host", "use", "message"),
    [
        ("int cdiv(int a, int b) { return a / b; }", "o[i] = cdiv(n, 2);",
         "there is no function 'cdiv': line 2 has it for the host: write __device__"),
        ("int width = 16;", "o[i] = width;", "'width' is not declared: line 2 has it for the host: write __device__"),
    ],
)  # fmt: skip
def test_host_code_that_a_kernel_needs_is_named(host: str, use: str, message: str) -> None:
    with pytest.raises(errors.KernelCompileError, match=message):
        compile_source(f"\n{host}\n{HEAD}{use} }}")


def test_a_parameter_hides_a_variable_of_the_host() -> None:
    x = np.zeros(4, np.float32)
    launch("float* x; int n = 9;\n__global__ void k(float* x, int n) { x[threadIdx.x] = n; }",
           "k", 1, 4, x, 2)  # fmt: skip
    assert x.tolist() == [2] * 4


def test_branches_of_an_if_may_open_the_same_brace() -> None:
    source = """
#if 1
void setup() { if (true) {
#else
void setup(int a) { if (a) {
#endif
    } }
__global__ void k(int* o) {
#ifdef NEVER
    if (o) {
#else
    {
#endif
        o[threadIdx.x] = 7;
    }
}"""
    o = np.zeros(4, np.int32)
    launch(source, "k", 1, 4, o)
    assert o.tolist() == [7] * 4


def test_functions_of_a_struct_that_are_for_the_host_are_set_aside() -> None:
    source = """struct Lock {
    int* state; int size = 2;
    Lock() { CHECK(cudaMalloc(&state, sizeof(int))); }
    Lock(int n, std::vector<int> v) : state{v.data()}, size{n} {}
    ~Lock() { cudaFree(state); }
    void show(cudaStream_t stream);
    int twice() { return 2 * size; }
    __device__ void take() { while (atomicCAS(state, 0, 1) != 0); }
    struct Part { int a; Part() { printf("made"); } };
};
__global__ void k(Lock lock, int* o) { if (*o) lock.take(); *o = lock.twice(); }"""
    code = device_code(source)
    assert [len(line) for line in code.text.split("\n")] == [len(s) for s in source.split("\n")]
    for gone in ("cuda", "vector", "~Lock", "show"):
        assert gone not in code.text
    for kept in ("twice() {", "take() {", "Part() {", "size = 2;"):
        assert kept in code.text
    o = np.zeros(1, np.int32)
    lock = np.array([(0, 21)], np.dtype([("state", "u8"), ("size", "i4")], align=True))[0]
    launch(source, "k", 1, 1, lock, o)
    assert o.tolist() == [42]


MOST = "int most(int a) const { return std::max(a, 1); }"
DATA = """int (*done)(cudaStream_t); float pad[sizeof(cudaStream_t)];
    float (*rows)[sizeof(cudaStream_t)]; std::function<void(int)> cb; float z;"""


@pytest.mark.parametrize(
    "members",
    [DATA, f"__device__ {MOST}", f"constexpr {MOST}", f"static __host__ __device__ {MOST}"],
)
def test_data_and_functions_that_a_kernel_may_call_stay_where_they_are(members: str) -> None:
    source = f"struct S {{ float v; {members} }};\n__global__ void k(S* s) {{ s->v = 1; }}"
    assert device_code(source).text == source


@pytest.mark.parametrize(
    "function",
    [
        "std::vector<int> all() const { return {}; }",
        "template <typename T> void add(T a) { std::cout << a; }",
        "bool operator<(const S& o) const { return std::less<int>()(v, o.v); }",
        "float operator[](int k) { return std::max(k, 1); }",
        "[[nodiscard]] int get() { return std::max(1, 2); }",
        "S(cudaStream_t s) : v(0) {}",
    ],
)
def test_and_functions_for_the_host_go(function: str) -> None:
    source = f"struct S {{ float v; {function} }};\n__global__ void k(S* s) {{ s->v = 1; }}"
    assert device_code(source).text == source.replace(function, " " * len(function))


@pytest.mark.parametrize("body", ["v = 1;", "std::swap(v, v);"])
def test_a_struct_that_is_never_closed_is_refused(body: str) -> None:
    with pytest.raises(errors.KernelCompileError):
        compile_source(
            f"__global__ void k(float* x) {{}}\nstruct S {{ float v; void f() {{ {body} }}\n"
            "__device__ float g(S s) { return s.v; }"
        )
    # Where nothing mentions it, it is not read at all.
    device_code(f"__global__ void k(float* x) {{}}\nstruct S {{ float v; void f() {{ {body} }}\n")


def test_the_signature_of_a_published_kernel() -> None:
    found = read_signature(PUBLISHED, "scale<double, 2>")
    assert [p.ctype for p in found.parameters] == ["double", "float", "int"]


class TestNames:
    def test_floats(self) -> None:
        for name, value in (("M_PI", np.pi), ("FLT_MAX", np.finfo(np.float32).max),
                            ("FLT_MIN", np.finfo(np.float32).tiny),
                            ("FLT_EPSILON", np.finfo(np.float32).eps)):  # fmt: skip
            assert floats(name)[0] == np.float32(value)

    def test_a_file_may_say_them_again(self) -> None:
        before = "typedef unsigned int uint; typedef unsigned char uint8_t;\n#define M_PI 3\n#define FLT_MAX 1e38f\n"
        x = np.zeros(1, np.float32)
        launch(before + "__global__ void k(float* x, uint n) { x[0] = M_PI + n; }", "k", 1, 1, x, 4)
        assert x[0] == 7
