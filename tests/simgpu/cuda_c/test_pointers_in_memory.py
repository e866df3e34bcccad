"""Pointers that lie in memory: tables of rows, lists, trees, addresses as numbers, and those from the host."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from simgpu.cuda_c import compile_source
from simgpu.errors import OutOfBoundsError, RaceError, UninitialisedReadError

from .support import body, memory

BEFORE = """
struct Matrix { int w, h; float* e; };
struct Node { int v; Node* next; };
struct Tree { int key; Tree *left, *right; };
template <typename T> struct Link { T v; Link<T>* next; Link* back; };
struct Inner; struct Outer { Inner* in; int v; };
struct Inner { Outer* out; __device__ int up() { return out->v; } };
__device__ float at(const Matrix* m, int r, int c) { return m->e[r * m->w + c]; }
__device__ void advance(float** p) { (*p)++; }
__device__ void pick(float* a, float* b, float** out) { *out = a[0] > b[0] ? a : b; }
__device__ float sum(float** rows, int n, int m) {
    float s = 0; for (int r = 0; r < n; r++) for (int c = 0; c < m; c++) s += rows[r][c]; return s; }
__device__ int total(Tree* t) {
    int s = 0, n = 0; Tree* todo[8]; todo[n++] = t;
    while (n) { Tree* p = todo[--n]; if (p) { s += p->key; todo[n++] = p->left; todo[n++] = p->right; } }
    return s; }
__device__ float* kept = nullptr;
"""
FIRST = list(range(32))


def values(text: str) -> list[int]:
    return body(text, before=BEFORE)[1].tolist()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("float* p = i < 4 ? x : nullptr; o[i] = (p != nullptr) + 2 * !p; if (p) o[i] += 10;", [11] * 4 + [2] * 28),
        ("__shared__ float s[32]; s[i] = 0; float* p = i < 4 ? x : s; o[i] = (p == x) + 2 * (p == s);", [1] * 4 + [2] * 28),
        ("float* rows[4] = {x, x + 8, x + 16, x + 24}; o[i] = rows[i / 8][i % 8];", FIRST),
        ("float* rows[4]; for (int k = 0; k < 4; k++) rows[k] = x + 8 * k; o[i] = sum(rows, 4, 8);", [496] * 32),
        ("float* rows[4]; rows[i % 4] = x + i; rows[i % 4] -= i; o[i] = rows[i % 4][31 - i];", FIRST[::-1]),
        ("float* p = x + i; advance(&p); o[i] = p - x;", list(range(1, 33))),
        (
            "float* q; __shared__ float s[32]; s[i] = 31 - i; __syncthreads(); pick(x + i, s + i, &q); o[i] = *q;",
            [max(i, 31 - i) for i in FIRST],
        ),
        ("int v = i; int* p = &v; int** q = &p; **q += 5; o[i] = v;", list(range(5, 37))),
        ("Matrix m{8, 4, x}; o[i] = at(&m, i / 8, i % 8);", FIRST),
        ("Matrix m{8, 4, x}; m.e[i] += 1; __syncwarp(); o[i] = m.e[31 - i];", list(range(32, 0, -1))),
        ("__shared__ float* all[32]; all[i] = x + i; __syncthreads(); o[i] = *all[31 - i];", FIRST[::-1]),
        (
            "Node a{1, nullptr}, b{2, &a}, c{3, &b}; int s = 0; for (Node* p = &c; p; p = p->next) s = 10 * s + p->v; o[i] = s;",
            [321] * 32,
        ),
        (
            "__shared__ Node all[32]; all[i].v = i; all[i].next = i < 31 ? &all[i + 1] : nullptr; __syncthreads(); int s = 0; for (Node* p = &all[i]; p != nullptr; p = p->next) s += p->v; o[i] = s;",
            [sum(range(i, 32)) for i in FIRST],
        ),
        ("Tree l{1, nullptr, nullptr}, r{2, nullptr, nullptr}, t{4, &l, &r}; o[i] = total(&t);", [7] * 32),
        ("Link<int> a{3, nullptr, nullptr}, b{4, nullptr, &a}; a.next = &b; o[i] = a.next->v * 10 + b.back->v;", [43] * 32),
        ("Outer a; Inner b; a.v = i; a.in = &b; b.out = &a; o[i] = a.in->up();", FIRST),
        ("if (i == 0) kept = x + 5; __syncthreads(); o[i] = kept[i % 4];", [5, 6, 7, 8] * 8),
        ("o[i] = (uintptr_t)x % 256 + (reinterpret_cast<uintptr_t>(x + 3) & 15);", [12] * 32),
        ("unsigned long long a = (unsigned long long)(x + i); o[i] = *(float*)(a + (i < 31) * sizeof(float));", [*range(1, 32), 31]),
        ("union { float* p; unsigned long long n; } u; u.p = x; u.n += 4 * i; o[i] = *u.p;", FIRST),
        ("void* two[2] = {x, o}; o[i] = ((float*)two[0])[i];", FIRST),
        ("float* rows[2] = {x, x + 16}; float s = 0; for (int k = 0; k < 8; k++) s += rows[i / 16][k]; o[i] = s;", [28] * 16 + [156] * 16),
    ],
)  # fmt: skip
def test_values(text: str, wanted: list[int]) -> None:
    assert values(text) == wanted


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("float* rows[2]; rows[0] = x; o[i] = rows[1][0];", UninitialisedReadError, r"reads 'rows'\[1\]"),
        ("float* rows[2] = {x, x + 16}; o[i] = rows[1][i];", OutOfBoundsError, r"thread \(16, 0, 0\) reads 'x'\[32\]"),
        ("float* rows[1] = {x + 4000}; o[i] = rows[0][i];", OutOfBoundsError, r"reads 'x'\[4000\]"),
        ("float* rows[1] = {x - 1}; o[i] = rows[0][i];", OutOfBoundsError, r"reads 'x'\[-1\]"),
        ("Node a{1, nullptr}; o[i] = a.next->v;", OutOfBoundsError, "reads through a null pointer"),
        ("o[i] = *(float*)0x3039;", OutOfBoundsError, "at the address 0x3039, where nothing is"),
        ("float* rows[1] = {x}; rows[0][i] = 1; o[i] = rows[0][31 - i];", RaceError, "reads 'x'"),
        ("__shared__ float* p; p = x + i; o[i] = *p;", RaceError, "'p'"),
        ("Matrix m{8, 4, x}; m.e[i] = 1; o[i] = x[31 - i];", RaceError, "'x'"),
        ("uintptr_t a = (uintptr_t)x; ((float*)a)[i] = 1; o[i] = x[31 - i];", RaceError, "'x'"),
    ],
)  # fmt: skip
def test_hazards_are_found_behind_them(text: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        values(text)


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
    assert values(text) == [1000 * w + p for w, p in zip(which, places, strict=True)]


SOURCE = """
struct Matrix { int w, h; float* e; };
struct Node { int value; Node* next; };
__global__ void add(float** rows, int n, float* out) {
    int i = threadIdx.x; float s = 0; for (int r = 0; r < n; r++) s += rows[r][i]; out[i] = s; }
__global__ void scale(Matrix m, float by) { m.e[threadIdx.x] *= by; }
__global__ void keep(float** kept, float* a, float* b) { kept[0] = a; kept[1] = b + 1; }
__global__ void use(float* const* kept, float* out) { int i = threadIdx.x; out[i] = kept[i & 1][i / 2]; }
__global__ void link(Node* pool, int n) {
    int i = threadIdx.x; pool[i].value = i; pool[i].next = i + 1 < n ? &pool[i + 1] : nullptr; }
__global__ void walk(const Node* head, int* out) {
    int s = 0; for (const Node* p = head; p; p = p->next) s += p->value; *out = s; }
"""


def run(name: str, *args: object) -> np.ndarray:
    """The last array argument, after eight threads of a kernel."""
    op = agt.Kernel(SOURCE, name)(*args, grid=1, block=8 if name != "walk" else 1)
    return op.last().to_host().sync()


def test_addresses_from_the_host(device: Device) -> None:
    a, b = agt.arange(8, dtype=np.float32).sync(), agt.full((8,), 10.0).sync()
    table = agt.h2d(np.array([a.memory.ptr, b.memory.ptr], np.uint64)).sync()
    assert run("add", table.borrow(), 2, agt.zeros((8,))).tolist() == [10 + i for i in range(8)]
    agt.Kernel(SOURCE, "scale")((4, 2, b.memory.ptr), 3.0, grid=1, block=8).sync()
    assert agt.d2h(b.borrow()).sync().tolist() == [30] * 8
    assert run("add", table.borrow(), 2, agt.zeros((8,))).tolist() == [30 + i for i in range(8)]


def test_one_kernel_stores_what_another_follows(device: Device) -> None:
    a, b = agt.arange(8, dtype=np.float32).sync(), agt.full((8,), 10.0).sync()
    kept = agt.zeros((2,), dtype=np.uint64).sync()
    run("keep", kept.borrow(), a.borrow(), b.borrow())
    assert run("use", kept.borrow(), agt.zeros((8,))).tolist() == [0, 10, 1, 10, 2, 10, 3, 10]
    pool = agt.zeros((16 * 8,), dtype=np.uint8).sync()
    agt.Kernel(SOURCE, "link")(pool.borrow(), 8, grid=1, block=8).sync()
    assert run("walk", pool.borrow(), agt.zeros((1,), dtype=np.int32)).tolist() == [28]


def test_an_address_of_what_is_gone_is_found_out(sim: Device) -> None:
    a, b = agt.arange(8, dtype=np.float32).sync(), agt.full((8,), 10.0).sync()
    table = agt.h2d(np.array([a.memory.ptr, b.memory.ptr], np.uint64)).sync()
    del b
    gc.collect()
    with pytest.raises(
        agt.errors.OutOfBoundsError, match="where nothing is that this launch knows of"
    ):
        run("add", table.borrow(), 2, agt.zeros((8,)))


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
