"""Whole files, as people publish them: what is for the host is set aside, in its place."""

from pathlib import Path

import numpy as np
import pytest

from simgpu import errors
from simgpu.cuda_c import compile_source, device_part, parse_signature, text_for_compiler

from .support import HEAD, launch

PUBLISHED = Path(__file__).with_name("published.cu").read_text()


HEADERS = (
    "<vector>", '"cuda_runtime.h"', '"device_launch_parameters.h"', "<mine.h>", '"sub/mine.cuh"', "<mine>",
    "<math.h>", "<cmath>", "<cuda/std/array>", "<cub/cub.cuh>", "<torch/extension.h>", '"cublas_v2.h"',
)  # fmt: skip


def test_a_whole_file_runs() -> None:
    x = np.arange(8, dtype=np.float32)
    launch(PUBLISHED, "scale<float>", 1, 8, x, np.float32(4), 8)
    np.testing.assert_array_equal(x, np.arange(8) * 3 + 4)
    launch(PUBLISHED, "add", 1, 8, x, 4)
    np.testing.assert_array_equal(x, np.arange(8) * 3 + 4 + [3, 3, 3, 3, 0, 0, 0, 0])
    found = parse_signature(PUBLISHED, "scale<double, 2>")
    assert [p.ctype for p in found.parameters] == ["double", "float", "int"]


def test_what_is_set_aside_keeps_lines_and_columns() -> None:
    code = device_part(PUBLISHED)
    assert code.kernels == ("scale", "add")
    assert code.missing == ("helper_cuda.h",)
    includes = "".join(f"#include {header}\n" for header in HEADERS)
    assert device_part(includes + PUBLISHED).missing == (
        "mine.h",
        "sub/mine.cuh",
        "mine",
        "helper_cuda.h",
    )
    assert set(code.aside) == {"reference", "print", "main", "h_a", "h_b", "total"}
    ours, theirs = code.text.split("\n"), PUBLISHED.split("\n")
    assert [len(line) for line in ours] == [len(line) for line in theirs]
    kept = [line for line, whole in zip(ours, theirs, strict=True) if line == whole]
    assert "const int SCALE = 3;" in kept
    assert "typedef float real;" in kept
    for gone in ("std::", "Timer", "enum Mode", "names[]", "<<<", "#include", "reference"):
        assert gone not in code.text
    before, _, after = text_for_compiler(PUBLISHED).partition("#line 1\n")  # what NVRTC gets
    assert after == code.text
    assert "#define FLT_MAX" in before


@pytest.mark.parametrize("text", [HEAD + "x[i] = 1; }", "// only\n" + HEAD + "o[i] = N; }", HEAD])
def test_device_code_alone_stays_as_it_is(text: str) -> None:
    assert device_part(text).text == text


def test_a_header_stays_if_device_code_needs_it() -> None:
    plain = "#include <cuda_fp16.h>\n#include <curand_kernel.h>\n" + HEAD
    assert "#include" not in device_part(plain + "}").text
    assert "cuda_fp16.h" in device_part(plain + "half h; }").text
    assert "curand" not in device_part(plain + "half h; }").text
    by_library = "#include <cublas_v2.h>\n#include <cudnn.h>\n" + HEAD
    assert device_part(by_library + "half h; }").text.startswith("#include <cuda_fp16.h>\n")
    assert "#include" not in device_part(by_library + "}").text
    assert "cudnn" not in device_part("#include <cuda_fp16.h>\n" + by_library + "half h; }").text


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


SETUPS = """
#if 1
void setup() { if (true) {
#else
void setup(int a) { if (a) {
#endif
    } }
__global__ void k(float* x, unsigned n) {
#ifdef NEVER
    if (n) {
#else
    {
#endif
        x[threadIdx.x] = 7;
    }
}"""
SAID_AGAIN = """typedef unsigned int uint; typedef unsigned char uint8_t;
#define M_PI 3
#define FLT_MAX 1e38f
__global__ void k(float* x, uint n) { x[threadIdx.x] = M_PI + n; }"""


# What only a function for the host mentions is the host's as well.
TELLS = """const int LIMIT = atoi("3");
struct S { int v; __device__ int get() const { return v; } void show() const { std::cout << v + LIMIT; } };
__global__ void k(float* x, int n) { S s = {n}; x[threadIdx.x] = s.get(); }"""
HIDES = "float* x; int n = 9;\n__global__ void k(float* x, int n) { x[threadIdx.x] = n; }"


# A parameter hides a variable of the host, branches of an #if may open the same brace, and a file may say
# names again that are supplied.
@pytest.mark.parametrize(
    ("source", "value"), [(HIDES, 4), (SETUPS, 7), (SAID_AGAIN, 7), (TELLS, 4)]
)
def test_files_run(source: str, value: float) -> None:
    x = np.zeros(4, np.float32)
    launch(source, "k", 1, 4, x, 4)
    assert x.tolist() == [value] * 4


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
    code = device_part(source)
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

# Members that stay where they are, since a kernel may use them, and functions for the host, which go.
MEMBERS = [
    *((member, True) for member in (
        DATA, f"__device__ {MOST}", f"constexpr {MOST}", f"static __host__ __device__ {MOST}",
    )),
    *((member, False) for member in (
        "std::vector<int> all() const { return {}; }",
        "template <typename T> void add(T a) { std::cout << a; }",
        "bool operator<(const S& o) const { return std::less<int>()(v, o.v); }",
        "float operator[](int k) { return std::max(k, 1); }",
        "[[nodiscard]] int get() { return std::max(1, 2); }",
        "S(cudaStream_t s) : v(0) {}",
    )),
]  # fmt: skip


@pytest.mark.parametrize(("member", "stays"), MEMBERS)
def test_functions_for_the_host_go_and_other_members_stay(member: str, stays: bool) -> None:
    source = f"struct S {{ float v; {member} }};\n__global__ void k(S* s) {{ s->v = 1; }}"
    left = source if stays else source.replace(member, " " * len(member))
    assert device_part(source).text == left


@pytest.mark.parametrize("body", ["v = 1;", "std::swap(v, v);"])
def test_a_struct_that_is_never_closed_is_refused(body: str) -> None:
    text = f"__global__ void k(float* x) {{}}\nstruct S {{ float v; void f() {{ {body} }}\n"
    device_part(text)  # where nothing mentions it, it is not read at all
    with pytest.raises(errors.KernelCompileError):
        compile_source(text + "__device__ float g(S s) { return s.v; }")
