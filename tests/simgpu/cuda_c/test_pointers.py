"""Pointers as values, to functions and to data: in variables, tables, structs and memory, and from the host."""

import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from simgpu.cuda_c import GlobalMemory, compile_source
from simgpu.errors import (
    KernelCompileError,
    KernelFault,
    OutOfBoundsError,
    RaceError,
    UninitialisedReadError,
    UnsupportedFeatureError,
)

from .support import body, check, launch, memory

BEFORE = Path(__file__).with_name("pointed_to.cu").read_text()
FIRST = list(range(32))
VALUES: list[tuple[str, Any]] = [
    ("again(square, 2.0f) + again(triple<float>, 2.0f)", 34),
    ("known<square>(3.0f) + known<triple<float>>(1.0f)", 12),
    ("deduced(triple<int>, n)", 96),
    ("apply([](float a) { return a * 2 + 1; }, 3.0f)", 7),
    ("apply_two([](float a, float b) { constexpr int K = 3; return a * K - b; }, 3, 2)", 7),
    ("apply(triple, 2.0f) + apply(&several, 2.0f) + apply_two(several, 2, 3)", 6 + 200 + 5),
    ("given<int>(several, 4) + given<float>(several, 4.0f)", 4000 + 400),
    ("takes(several)", 1),
    ("sizeof(op_t) + sizeof(Step)", 24),
    ("(table[0] == add) + (table[1] != mul) + !nothing + (nothing == nullptr)", 3),
    # A pointer to rows is told from one to a function.
    ("void (*f)(int*) = grow; int v = i; f(&v); o[i] = v;", lambda i: i + 2),
    ("float v = i; on(refer, v); o[i] = v;", lambda i: i + 2),
    ("float (*row)[4] = (float (*)[4])x; o[i] = row[i / 4][3 - i % 4] + (*(row + 1))[2];",
     lambda i: i // 4 * 4 + 3 - i % 4 + 6),
    ("""__shared__ float tile[8][4]; float (*q)[4] = tile; q[i / 4][i % 4] = i; __syncthreads();
        o[i] = tile[i / 4][3 - i % 4];""", lambda i: i // 4 * 4 + 3 - i % 4),
    # Each thread calls its own.
    *((text, lambda i: 3 * i if i % 2 else i + 3) for text in (
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
    )),
    # Data.
    ("float *p = i < 4 ? 0 : x, *q = i < 8 ? x : 0; o[i] = (p == x) + 2 * (q == x);", [2] * 4 + [3] * 4 + [1] * 24),
    ("float* p = i < 4 ? x : nullptr; o[i] = (p != nullptr) + 2 * !p; if (p) o[i] += 10;", [11] * 4 + [2] * 28),
    ("__shared__ float s[32]; s[i] = 0; float* p = i < 4 ? x : s; o[i] = (p == x) + 2 * (p == s);", [1] * 4 + [2] * 28),
    ("float* rows[4] = {x, x + 8, x + 16, x + 24}; o[i] = rows[i / 8][i % 8];", FIRST),
    ("float* rows[4]; for (int k = 0; k < 4; k++) rows[k] = x + 8 * k; o[i] = sum(rows, 4, 8);", [496] * 32),
    ("float* rows[4]; rows[i % 4] = x + i; rows[i % 4] -= i; o[i] = rows[i % 4][31 - i];", FIRST[::-1]),
    ("float* p = x + i; advance(&p); o[i] = p - x;", list(range(1, 33))),
    (
        "float* q; __shared__ float s[32]; s[i] = 31 - i; __syncthreads(); pick(x + i, s + i, &q); o[i] = *q;",
        [max(i, 31 - i) for i in FIRST]),
    ("Matrix m{8, 4, x}; o[i] = at(&m, i / 8, i % 8);", FIRST),
    ("Matrix m{8, 4, x}; m.e[i] += 1; __syncwarp(); o[i] = m.e[31 - i];", list(range(32, 0, -1))),
    ("__shared__ float* all[32]; all[i] = x + i; __syncthreads(); o[i] = *all[31 - i];", FIRST[::-1]),
    (
        "__shared__ Node all[32]; all[i].v = i; all[i].next = i < 31 ? &all[i + 1] : nullptr; __syncthreads(); int s = 0; for (Node* p = &all[i]; p != nullptr; p = p->next) s += p->v; o[i] = s;",
        [sum(range(i, 32)) for i in FIRST]),
    ("Link<int> a{3, nullptr, nullptr}, b{4, nullptr, &a}; a.next = &b; o[i] = a.next->v * 10 + b.back->v;", [43] * 32),
    ("Outer a; Inner b; a.v = i; a.in = &b; b.out = &a; o[i] = a.in->up();", FIRST),
    ("if (i == 0) kept = x + 5; __syncthreads(); o[i] = kept[i % 4];", [5, 6, 7, 8] * 8),
    ("o[i] = (uintptr_t)x % 256 + (reinterpret_cast<uintptr_t>(x + 3) & 15);", [12] * 32),
    ("unsigned long long a = (unsigned long long)(x + i); o[i] = *(float*)(a + (i < 31) * sizeof(float));", [*range(1, 32), 31]),
    ("union { float* p; unsigned long long n; } u; u.p = x; u.n += 4 * i; o[i] = *u.p;", FIRST),
    ("float* p = (float*)o; o[i] = ((x < p) == ((uintptr_t)x < (uintptr_t)p)) + 2 * ((p <= x) == (x >= p)) + 4 * ((x < p) != (x > p));", 7),
    ("void* two[2] = {x, o}; o[i] = ((float*)two[0])[i];", FIRST),
    ("void* p = (void*)-1; o[i] = (p == (void*)-1) + 2 * (p == (void*)0x3039) + 4 * (p == nullptr);", 1),
    ("float* rows[2] = {x, x + 16}; float s = 0; for (int k = 0; k < 8; k++) s += rows[i / 16][k]; o[i] = s;", [28] * 16 + [156] * 16),
    # An index that is unsigned, and what stands before it, in memory of each kind.
    *((f"{home} unsigned u = i + 1; o[i] = {place};", FIRST) for home in (
        "int a[40]; for (int j = 0; j < 40; j++) a[j] = j;",
        "__shared__ int a[40]; a[i] = i; __syncthreads();",
        "float* a = x;") for place in ("*(&a[u] - 1)", "*(a + u - 1)", "(&a[i])[u - 1 - i]")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_values(text: str, value: Any, tell: Callable[[str], None]) -> None:
    tell(check(text, value, BEFORE))


REFUSED = [
    ("op_t f = square;", r"is a 'float \(\*\)\(float\)', and should be a 'float \(\*\)\(float, float\)'"),
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
        body(text, before=BEFORE)
    assert isinstance(caught.value, UnsupportedFeatureError) == ("references" in message)


FAULTS = [
    ("op_t f = i == 3 ? nothing : add; o[i] = f(1, 2);", KernelFault,
     r"thread \(3, 0, 0\) calls a null pointer to a function"),
    ("float* rows[2]; rows[0] = x; o[i] = rows[1][0];", UninitialisedReadError, r"reads 'rows'\[1\]"),
    ("float* rows[2] = {x, x + 16}; o[i] = rows[1][i];", OutOfBoundsError, r"thread \(16, 0, 0\) reads 'x'\[32\]"),
    ("float* rows[1] = {x + 4000}; o[i] = rows[0][i];", OutOfBoundsError, r"reads 'x'\[4000\]"),
    ("float* rows[1] = {x - 1}; o[i] = rows[0][i];", OutOfBoundsError, r"reads 'x'\[-1\]"),
    ("Node a{1, nullptr}; o[i] = a.next->v;", OutOfBoundsError, "reads through a null pointer"),
    ("o[i] = *(float*)0x3039;", OutOfBoundsError, "at the address 0x3039, which is in no memory"),
    ("float* rows[1] = {x}; rows[0][i] = 1; o[i] = rows[0][31 - i];", RaceError, "reads 'x'"),
    ("__shared__ float* p; p = x + i; o[i] = *p;", RaceError, "'p'"),
    ("Matrix m{8, 4, x}; m.e[i] = 1; o[i] = x[31 - i];", RaceError, "'x'"),
    ("uintptr_t a = (uintptr_t)x; ((float*)a)[i] = 1; o[i] = x[31 - i];", RaceError, "'x'"),
    *((f"int a[40]; for (int j = 0; j < 40; j++) a[j] = j; unsigned u = i; u -= 1u; {use}", OutOfBoundsError,
       r"thread \(0, 0, 0\) \w+ 'a'\[4294967296\]") for use in ("o[i] = (a + 1)[u];", "(a + 1)[u] = 1;")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "message"), FAULTS)
def test_faults_are_found_behind_them(text: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        body(text, before=BEFORE)


def test_a_number_from_the_host_that_is_no_function() -> None:
    kernel = "__global__ void k(op_t f, float* x) { x[threadIdx.x] = f(threadIdx.x, 5); }"
    with pytest.raises(KernelFault, match=r"calls 0x4d, which is no function of this file that is"):
        launch(BEFORE + kernel, "k", 1, 4, np.uint64(77), np.zeros(4, np.float32))


def test_a_kernel_is_named_with_its_function() -> None:
    kernel = "template <float (*F)(float)> __global__ void k(float* x) { x[threadIdx.x] = F(threadIdx.x); }"
    program = compile_source(BEFORE + kernel)
    assert program.kernel("k<square>").signature.name == "k<square>"
    x = np.zeros(4, np.float32)
    launch(program, "k<triple<float>>", 1, 4, x)
    assert x.tolist() == [0, 3, 6, 9]


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


def test_functions_from_the_host(device: Device) -> None:
    kernel, which = agt.Kernel(BEFORE, "call"), np.array([0, 1, 1, 0], np.int32)
    for number, first in enumerate((lambda i: i + 5, lambda i: 5 * i)):
        address = kernel.constants["table"][number]
        op = kernel(address, agt.h2d(which), agt.zeros((4,)), grid=1, block=4)
        second = [100 * (2 * i if w else i + 2) for i, w in enumerate(which.tolist())]
        right = [first(i) + s + i * i for i, s in enumerate(second)]
        assert op.output().to_host().sync().tolist() == right


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(0, 31), min_size=32, max_size=32),
    st.lists(st.integers(0, 2), min_size=32, max_size=32),
)
def test_a_pointer_that_went_through_memory_is_same(places: list[int], which: list[int]) -> None:
    table = f"const int places[32] = {{{', '.join(map(str, places))}}}, which[32] = {{{', '.join(map(str, which))}}};"
    text = (
        f"{table} __shared__ float s[32]; float l[32]; for (int k = 0; k < 32; k++) l[k] = 2000 + k; s[i] = 1000 + i; "
        "__syncthreads(); float* p = (which[i] == 0 ? x : which[i] == 1 ? s : l) + places[i]; float* through[2] = {p, nullptr}; "
        "unsigned long long number = (unsigned long long)p; o[i] = *through[0] + (*(float*)number != *p) * 9999 + "
        "(through[0] != p) * 9999 + (through[1] == p) * 9999;"
    )
    check(text, [1000 * w + p for w, p in zip(which, places, strict=True)])


def run(name: str, *args: object) -> np.ndarray:
    """The last array argument, after eight threads of a kernel."""
    op = agt.Kernel(BEFORE, name)(*args, grid=1, block=8 if name != "walk" else 1)
    return op.last().to_host().sync()


def test_addresses_from_the_host(device: Device) -> None:
    a, b = agt.arange(8, dtype=np.float32).sync(), agt.full((8,), 10.0).sync()
    table = agt.h2d(np.array([a.memory.ptr, b.memory.ptr], np.uint64)).sync()
    assert run("total", table.borrow(), 2, agt.zeros((8,))).tolist() == [10 + i for i in range(8)]
    agt.Kernel(BEFORE, "scale")((4, 2, b.memory.ptr), 3.0, grid=1, block=8).sync()
    assert agt.d2h(b.borrow()).sync().tolist() == [30] * 8
    assert run("total", table.borrow(), 2, agt.zeros((8,))).tolist() == [30 + i for i in range(8)]


def test_one_kernel_stores_what_another_follows(device: Device) -> None:
    a, b = agt.arange(8, dtype=np.float32).sync(), agt.full((8,), 10.0).sync()
    kept = agt.zeros((2,), dtype=np.uint64).sync()
    run("keep", kept.borrow(), a.borrow(), b.borrow())
    assert run("use", kept.borrow(), agt.zeros((8,))).tolist() == [0, 10, 1, 10, 2, 10, 3, 10]
    pool = agt.zeros((16 * 8,), dtype=np.uint8).sync()
    agt.Kernel(BEFORE, "link")(pool.borrow(), 8, grid=1, block=8).sync()
    assert run("walk", pool.borrow(), agt.zeros((1,), dtype=np.int32)).tolist() == [28]


def test_an_address_of_what_is_gone_is_found_out(sim: Device) -> None:
    a, b = agt.arange(8, dtype=np.float32).sync(), agt.full((8,), 10.0).sync()
    table = agt.h2d(np.array([a.memory.ptr, b.memory.ptr], np.uint64)).sync()
    del b
    gc.collect()
    with pytest.raises(agt.errors.OutOfBoundsError, match="in no memory that this launch knows of"):
        run("total", table.borrow(), 2, agt.zeros((8,)))


@pytest.mark.parametrize(
    "text", ["x++; *x = 1;", "x += n; *x = 1;", "for (float* p = x; p < x + 3; p++) *p = 3;"]
)
def test_a_compiled_kernel_does_not_keep_memory_that_its_pointers_went_through(text: str) -> None:
    program = compile_source(f'extern "C" __global__ void k(float* x, int n) {{ {text} }}')
    x = memory(np.zeros(4, np.float32))
    program.begin("k", (1, 1, 1), (1, 1, 1), [x, 2]).finish()
    left = weakref.ref(x)
    del x
    gc.collect()
    assert left() is None


@pytest.mark.parametrize("where", ["p", "t % 2 ? q : p"])
def test_an_atomic_leaves_its_trail_whatever_the_pointer_is_in_other_lanes(where: str) -> None:
    p, q = (GlobalMemory(128, name) for name in "pq")
    for one in (p, q):
        one.mark_written(0, 128)
    watched = p.copy()
    text = f"__global__ void k(int* p, int* q) {{ int t = threadIdx.x; int* w = {where}; "
    launch(text + "if (t == 4) atomicAdd(w + t, 1); }", "k", 1, 32, watched, q)
    assert watched.trail is not None
    assert np.flatnonzero(watched.trail).tolist() == [16, 17, 18, 19]
