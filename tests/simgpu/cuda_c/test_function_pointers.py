"""Functions as values: passed on, in variables, tables, structs and memory, and from the host."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from simgpu.cuda_c import compile_source
from simgpu.errors import KernelCompileError, KernelFault, UnsupportedFeatureError

from .support import body, ints, launch

BEFORE = """
typedef float (*op_t)(float, float);
__device__ float add(float a, float b) { return a + b; }
__device__ float mul(float a, float b) { return a * b; }
__device__ float square(float a) { return a * a; }
template <typename T> __device__ T triple(T a) { return 3 * a; }
__device__ op_t table[] = {add, mul};
__device__ float (*other[2])(float, float) = {&mul, add};
__constant__ op_t fixed_table[2] = {add, mul};
__device__ op_t nothing;
__device__ float apply(float (*f)(float), float v) { return f(v); }
__device__ float apply_two(op_t f, float a, float b) { return (*f)(a, b); }
template <typename F> __device__ float again(F f, float v) { return f(f(v)); }
template <float (*F)(float)> __device__ float known(float v) { return F(v); }
template <typename R, typename A> __device__ R deduced(R (*f)(A), A v) { return f(v); }
__device__ void grow(int* p) { *p += 2; }
__device__ void refer(float& p) { p += 2; }
template <typename F> __device__ void on(F f, float& p) { f(p); }
__device__ float several(float a) { return 100 * a; }
__device__ int several(int a) { return 1000 * a; }
__device__ float several(float a, float b) { return a + b; }
template <typename T> __device__ T given(T (*f)(T), T v) { return f(v); }
__device__ int takes(int (*f)(float)) { return 0; }
__device__ int takes(int (*f)(int)) { return 1; }
struct Step { op_t f; float by; };
"""


def values(text: str) -> list[int]:
    return body(text, before=BEFORE)[1].tolist()


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("apply(square, 3.0f)", 9),
        ("apply(&square, 3.0f) + apply_two(add, 1, 2) + apply_two(&mul, 5, 6)", 42),
        ("again(square, 2.0f) + again(triple<float>, 2.0f)", 34),
        ("known<square>(3.0f) + known<triple<float>>(1.0f)", 12),
        ("deduced(square, 3.0f)", 9),
        ("deduced(triple<int>, n)", 96),
        ("apply([](float a) { return a * 2 + 1; }, 3.0f)", 7),
        ("apply_two([](float a, float b) { constexpr int K = 3; return a * K - b; }, 3, 2)", 7),
        ("apply(triple, 2.0f) + apply(&several, 2.0f) + apply_two(several, 2, 3)", 6 + 200 + 5),
        ("given<int>(several, 4) + given<float>(several, 4.0f)", 4000 + 400),
        ("takes(several)", 1),
        ("sizeof(op_t) + sizeof(Step)", 24),
        ("(table[0] == add) + (table[1] != mul) + !nothing + (nothing == nullptr)", 3),
    ],
)
def test_functions_that_are_known(expression: str, value: int) -> None:
    assert ints(expression, BEFORE) == [value] * 32


@pytest.mark.parametrize(
    "text",
    [
        "o[i] = table[i % 2](i, 3);",
        "o[i] = other[1 - i % 2](i, 3);",
        "o[i] = (*fixed_table[i & 1])(i, 3);",
        "op_t f = i % 2 ? mul : add; o[i] = f(i, 3);",
        "float (*f)(float, float) = add; if (i % 2) f = mul; o[i] = f(i, 3);",
        "o[i] = (i % 2 ? mul : add)(i, 3);",
        "Step s = {add, 3}; if (i & 1) s.f = mul; o[i] = s.f(i, s.by);",
        "op_t mine[2] = {add, mul}; o[i] = mine[i & 1](i, 3);",
        "__shared__ op_t all[2]; if (i < 2) all[i] = i ? mul : add; __syncthreads(); o[i] = all[i % 2](i, 3);",
        "auto f = &add; if (i % 2 == 1) f = mul; o[i] = apply_two(f, i, 3);",
        "op_t f = [](float a, float b) { return a + b; }; if (i % 2) f = mul; o[i] = f(i, 3);",
        "op_t both[2] = {[](float a, float b) -> float { return b + a; }, mul}; o[i] = both[i & 1](i, 3);",
        "op_t f = add; if (i % 2) f = [](auto a, auto b) { return a * b; }; o[i] = apply_two(f, i, 3);",
        "Step s = {[](float a, float b) { return a * b; }, 3}; if (i % 2 == 0) s.f = add; o[i] = s.f(i, s.by);",
        "float (*f)(float, float) = several; if (i % 2) f = mul; o[i] = f(i, 3);",
        "op_t f = mul; if (i % 2 == 0) f = &several; o[i] = f(i, 3);",
    ],
)
def test_each_thread_calls_its_own(text: str) -> None:
    assert values(text) == [3 * i if i % 2 else i + 3 for i in range(32)]


# A pointer to rows is told from one to a function.
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("void (*f)(int*) = grow; int v = i; f(&v); o[i] = v;", lambda i: i + 2),
        ("float v = i; on(refer, v); o[i] = v;", lambda i: i + 2),
        ("float (*row)[4] = (float (*)[4])x; o[i] = row[i / 4][3 - i % 4] + (*(row + 1))[2];",
         lambda i: i // 4 * 4 + 3 - i % 4 + 6),
        ("""__shared__ float tile[8][4]; float (*q)[4] = tile; q[i / 4][i % 4] = i; __syncthreads();
            o[i] = tile[i / 4][3 - i % 4];""", lambda i: i // 4 * 4 + 3 - i % 4),
    ],
)  # fmt: skip
def test_pointers(text: str, value: Callable[[int], int]) -> None:
    assert values(text) == [value(i) for i in range(32)]


def test_the_host_passes_on_what_it_read() -> None:
    kernel = "__global__ void k(op_t f, float* x) { x[threadIdx.x] = f(threadIdx.x, 5); }"
    program = compile_source(BEFORE + kernel)
    addresses = program.variables["table"].view(np.uint64)
    for address, expected in zip(addresses, ([5, 6, 7, 8], [0, 5, 10, 15]), strict=True):
        x = np.zeros(4, np.float32)
        launch(program, "k", 1, 4, address, x)
        assert x.tolist() == expected
    with pytest.raises(KernelFault, match=r"calls 0x4d, which is no function of this file that is"):
        launch(program, "k", 1, 4, np.uint64(77), x)


def test_a_kernel_is_named_with_its_function() -> None:
    kernel = "template <float (*F)(float)> __global__ void k(float* x) { x[threadIdx.x] = F(threadIdx.x); }"
    program = compile_source(BEFORE + kernel)
    assert program.instantiate("k<square>").name == "k<square>"
    x = np.zeros(4, np.float32)
    launch(program, "k<triple<float>>", 1, 4, x)
    assert x.tolist() == [0, 3, 6, 9]


def test_null_cannot_be_called() -> None:
    with pytest.raises(KernelFault, match=r"thread \(3, 0, 0\) calls a null pointer to a function"):
        values("op_t f = i == 3 ? nothing : add; o[i] = f(1, 2);")


REFUSED = [
    ("op_t f = square;", r"is a 'float \(\*\)\(float\)', and a 'float \(\*\)\(float, float\)' is"),
    ("op_t f = add; o[i] = f(1);", "takes 2 arguments, 1 given"),
    ("o[i] = add + 1;", r"operator '\+' cannot take the address of a function"),
    ("o[i] = add;", "cannot be used as 'int'"),
    ("op_t f = 5;", "cannot be used as"),
    ("int (*f)(float) = several; o[i] = f(1);", "no function 'several' is a"),
    ("auto f = several; o[i] = f(1);", "'several' is several functions"),
    ("o[i] = (*several)(1);", "call 'several' by its name"),
    ("float (*f)(float) = [&](float a) { return a; };", "cannot be used as"),
    ("float (*f)(float) = [n](float a) { return a * n; };", "cannot be used as"),
    ("float (*f)(float) = [](float a) { return a * 2.0; }; o[i] = f(1);", "returns a 'double', and is used"),
    ("float (*f)(int) = [](float a) { return a; }; o[i] = f(1);", "cannot be used as"),
    ("float (*f)(float) = [](float a) { return a * n; };  o[i] = f(1);", "does not capture"),
    ("const op_t f = nullptr; o[i] = f(1, 2);", "null pointer cannot be called"),
    # Only a GPU takes this.
    ("void (*f)(float&) = refer; float v; f(v);", "takes or returns references"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_what_is_not_taken(text: str, message: str) -> None:
    with pytest.raises(KernelCompileError, match=message) as caught:
        values(text)
    assert isinstance(caught.value, UnsupportedFeatureError) == ("references" in message)


def test_a_lambda_means_something_in_its_own_kernel() -> None:
    kernels = """
    __global__ void first(float* x, int n) { __shared__ float s; s = 5;  __syncthreads();
        op_t f = [](float a, float b) { return a + s; }; if (n) f = mul; x[threadIdx.x] = f(threadIdx.x, 2); }
    __global__ void second(float* x, int n) {
        op_t f = add; if (n) f = mul; x[threadIdx.x] = f(threadIdx.x, 2); }"""
    program = compile_source(BEFORE + kernels)
    for name, n, expected in (("first", 0, [5, 6]), ("second", 0, [2, 3]), ("second", 1, [0, 2])):
        x = np.zeros(2, np.float32)
        launch(program, name, 1, 2, x, n)
        assert x.tolist() == expected


def test_a_function_that_reaches_itself_by_its_address_is_recursion() -> None:
    before = BEFORE + (
        "__device__ float loop(float a); __device__ float (*next)(float) = loop; "
        "__device__ float loop(float a) { return a > 3 ? a : next(a + 1); }"
    )
    with pytest.raises(UnsupportedFeatureError, match="recursion"):
        body("x[i] = loop(x[i]);", before=before)


def test_on_either_device(device: Device) -> None:
    source = BEFORE + "__global__ void k(op_t f, const int* which, float* x) {\n"
    source += "int i = threadIdx.x; "
    source += "x[i] = f(i, 5) + 100 * table[which[i]](i, 2) + apply(square, i); }"
    kernel, which = agt.Kernel(source, "k"), np.array([0, 1, 1, 0], np.int32)
    for number, first in enumerate((lambda i: i + 5, lambda i: 5 * i)):
        address = kernel.constants["table"][number]
        op = kernel(address, agt.h2d(which), agt.zeros((4,)), grid=1, block=4)
        second = [100 * (2 * i if w else i + 2) for i, w in enumerate(which.tolist())]
        right = [first(i) + s + i * i for i, s in enumerate(second)]
        assert op.output().to_host().sync().tolist() == right
