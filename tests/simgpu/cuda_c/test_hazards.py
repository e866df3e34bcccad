"""Every classic mistake is an error, every time, and says where it is."""

from dataclasses import replace

import numpy as np
import pytest

from simgpu import errors
from simgpu.cuda_c import GlobalMemory, InterpreterLimits, compile_source

from .corpus import CASES, arguments, launch_case, source
from .support import HEAD, body, launch, memory


def fault(kind: type[errors.KernelFault], text: str, **more: object) -> errors.KernelFault:
    with pytest.raises(kind) as caught:
        body(text, **more)
    return caught.value


TILE = "__shared__ float tile[4][8]; tile[i / 8][i % 8] = 0; __syncthreads(); "
WORDS = "__shared__ double s[32]; int* p = reinterpret_cast<int*>(s); p[2 * i] = 0; __syncthreads(); s[i] = i; "
PARTS = "struct P { float x, y; }; struct Q { int* p; int v; }; __shared__ P s[32]; s[i].x = i; __syncthreads(); "
NAN = "__int_as_float(0x7fffffff)"
TURNS = "__shared__ int s[32]; for (int y = 0; y < 25; y++) { "
BOUNDS, ALIGNED = errors.OutOfBoundsError, errors.MisalignedError
UNSET = errors.UninitialisedReadError
# The mistake, and what of its place and words is told.
MISTAKES: list[tuple[type[errors.KernelFault], str, dict[str, object], str]] = [
    (BOUNDS, "x[i - 2] = 1;", {"thread": (0, 0, 0), "index": -2}, "so does 1 more thread)"),
    (BOUNDS, "o[i + 16] = 1;", {}, "so do 15 more threads"),
    (BOUNDS, "__shared__ float s[16]; s[i] = 1;", {"array": "s"}, ""),
    (BOUNDS, "int a[4]; a[i] = 1;", {"array": "a"}, ""),
    (BOUNDS, "memcpy(x + i + 99, o, 4);", {"array": "x"}, "; memcpy(x + i + 99, o, 4);"),  # not a line of memcpy
    (BOUNDS, "extern __shared__ int d[]; d[i + 1] = 1;", {"array": "d"}, ""),
    (BOUNDS, "float* p = nullptr; x[i] = *p;", {}, "null"),
    (BOUNDS, TILE + "x[i] = tile[i / 8][i % 8 + (i == 15)];", {}, "'tile'[1][8]"),
    (BOUNDS, TILE + "tile[i / 8][i % 8 - (i == 16)] = 1;", {}, "'tile'[2][-1]"),
    (BOUNDS, TILE + "float (*q)[8] = (float (*)[8])&tile[0][4]; x[i] = q[0][n - 23];", {}, "'tile'[9]"),  # is no row
    (BOUNDS, "int a[2][3] = {}; o[i] = a[0][n - 29];", {}, "'a'[0][3]"),
    (BOUNDS, "struct S { int a[2]; int b; }; S s; s.b = 1; o[i] = s.a[n - 30];", {}, "'s'.a[2]"),
    (BOUNDS, "int* p; { int a = 3; p = &a; } o[i] = *p;", {}, "declares it has ended"),
    (BOUNDS, "int* p; for (int j = 0; j < 2; j++) { int a[2] = {j, j}; p = a; } o[i] = p[1];", {}, "declares it has ended"),
    (BOUNDS, "int* p = &o[i]; if (i == 7) { int a; p = &a; } *p = 1;", {}, "declares it has ended"),
    (BOUNDS, "o[i] = *escape(i);", {}, "declares it has ended"),
    # The even lanes' is gone first, then that of the odd ones.
    *((BOUNDS, f"int* p; for (int j = 0; j < 2; j++) if (i % 2 == j) {{ int a = j; p = &a; }} if (i % 2 == {j}) o[i] = *p;",
       {}, "declares it has ended") for j in (0, 1)),
    *((BOUNDS, text, {}, words) for text, words in [
        (TILE + "float* f = &tile[0][0]; x[i] = f[i + 1];", "it is declared [4][8]"),
        ("__shared__ char c[2]; o[i] = *(int*)c;", "it has 2 bytes"),
        ("int a[2] = {1, 2}; char* p = (char*)a; o[i] = p[n - 24];", "'a'[8]"),
        ("__shared__ int* p; int a = i; if (i == 3) p = &a; __syncthreads(); o[i] = *p;", "of thread (3, 0, 0)"),
        ("__shared__ int* p; int a = i; if (i == 3) p = &a; __syncthreads(); if (i == 5) *p = 1;", "of thread (3, 0, 0)"),
        ("__shared__ int* p[32]; int a = i; p[i] = &a; __syncthreads(); o[i] = *p[i & ~1];", "of thread (0, 0, 0)"),
    ]),
    # Of a struct that was copied whole, what nobody had written.
    *((UNSET, PARTS + text, {}, words) for text, words in [
        ("P q = s[31 - i]; x[i] = q.y;", "a copy of 's'[31].y"),
        ("if (i > 3) s[i].y = 1; P q = s[i]; x[i] = q.y;", "a copy of 's'[0].y"),
        ("__shared__ P u[32]; u[i] = s[i]; __syncthreads(); P q = u[31 - i]; x[i] = q.y;", "a copy of 'u'[31].y"),
        ("P q = s[i], r = {1, 2}; if (i > 3) q = r; x[i] = q.y;", "a copy of 's'[0].y"),
        ("struct A { int a[2]; int b; }; A a; a.b = i; A b = a; o[i] = b.a[1];", "'b'.a[1]"),
        ("__shared__ Q u[32]; Q q = u[31 - i]; o[i] = q.v;", "'u'[31].p"),
    ]),
    # Elements are called as in the source.
    (UNSET, "__shared__ float t[4][8]; x[i] = t[i / 8][i % 8];", {}, "'t'[0][0]"),
    (errors.RaceError, "__shared__ float t[4][8]; t[i / 8][i % 8] = 1; x[i] = t[3 - i / 8][7];", {}, "'t'[3][7]"),
    (ALIGNED, "float4 v = *reinterpret_cast<float4*>(x + i); o[i] = v.x;", {"thread": (1, 0, 0)}, ""),
    (ALIGNED, "x[i] = reinterpret_cast<float*>(reinterpret_cast<char*>(x) + 2)[i & 7];", {"array": "x", "index": 2}, ""),
    (UNSET, "float a; x[i] = a;", {"array": "a", "index": None}, ""),
    (UNSET, "float a; if (i > 3) a = 1; x[i] = a;", {"array": "a"}, ""),
    (UNSET, "float a[4]; a[0] = 1; x[i] = a[i & 1];", {"array": "a", "index": 1}, ""),
    (UNSET, "float a[4]; if (i > 2) x[i] = a[n - 30];", {"array": "a", "index": 2}, "thread (3, 0, 0)"),
    (UNSET, "__shared__ float s[64]; s[i] = 1; __syncthreads(); x[i] = s[i + 32];", {"array": "s", "index": 32}, ""),
    (UNSET, "int c; c++; o[i] = c;", {"array": "c"}, ""),
    (UNSET, "float4 v; v.x = 1; float4* p = &v; x[i] = p->y;", {"array": "v", "index": 1}, ""),
    (UNSET, "float2 v; v.x = 1; x[i] = v.y;", {}, "'v.y'"),
    (UNSET, "float2 v; v.x = 1; if (i) v.y = 1; x[i] = v.y;", {}, ""),
    (UNSET, "float2 v, w; w = v; x[i] = w.x;", {}, ""),
    (UNSET, "o[i] = forgets(i);", {}, ""),
    (UNSET, "int c; for (int y = 0; y < n; y++) { int d; if (y < 20) d = i; o[d] = 0; }", {"array": "d"}, ""),
    (errors.BarrierError, "if (i < 20) { x[i] = 1;\n__syncthreads(); }", {"thread": (20, 0, 0), "line": 5}, ""),
    (errors.BarrierError, "if (i < 20) __syncthreads(); else __syncthreads();", {}, ""),
    (errors.WarpError, "if (i < 16) x[i] = __shfl_sync(0xffff, x[i], i + 16);", {}, ""),
    *((errors.WarpError, f"unsigned m = i < 16 ? ~0u : 0xffff0000u; {text}", {"thread": (0, 0, 0)}, words) for text, words in [
        ("o[i] = __ballot_sync(m, i & 1);", "lane 16, which it names, passes another"),
        ("o[i] = __any_sync(m, i);", "the same mask"), ("__syncwarp(m);", "the same mask"),
        ("o[i] = __shfl_sync(m, i, 20);", "the same mask"),
        ("if (i < 16) o[i] = __ballot_sync(m, 1); else o[i] = __ballot_sync(m, 1);", "lane 16, which it names"),
        ("if (i > 15) __syncwarp(m); else __syncwarp(m);", "lane 16, which it names"),
    ]),
    (errors.WarpError, "__syncwarp(0xffff);", {"thread": (16, 0, 0)}, ""),
    (errors.WarpError, "x[i] = __shfl_sync(0xffff, x[i], 0);", {"thread": (16, 0, 0)}, ""),
    (errors.DivisionByZeroError, "o[i] = n / (i - 3);", {"thread": (3, 0, 0)}, ""),
    (errors.DivisionByZeroError, "o[i] = n % (n - 32);", {}, ""),
    (errors.DeviceAssertError, "assert(i < 5);", {"thread": (5, 0, 0)}, ""),
    (errors.KernelFault, "if (i == 7) __trap();", {}, ""),
    *((errors.RaceError, text, {}, "") for text in [
        "__shared__ int v; v = i; o[i] = v;",
        "__shared__ int c; if (i == 0) c = 0; __syncthreads(); atomicAdd(&c, 1); o[i] = c;",
        "__shared__ volatile float s[32]; s[i] = 1; s[i] += s[(i + 16) % 32];",
        "x[0] = i;", "o[i] = o[(i + 1) % n] + 1;", "o[0] += 1;", "x[i / 2] = x[i];",
        "__shared__ unsigned char b[32]; b[i] = i; o[i] = b[i ^ 1];",
        "__shared__ int s[32]; s[i] = i; __syncwarp(i < 16 ? 0xffff : 0xffff0000); o[i] = s[i ^ 16];",
        "__shared__ int s[32]; s[i] = i; if (i < 2) __syncwarp(3); if (i == 1 || i == 2) o[i] = s[i ^ 3];",
        "__shared__ float s[32]; s[i] = x[i]; __syncwarp(); float v = i ? s[i - 1] : 0.0f; s[i] += v;",
        "float v = x[0]; for (int j = i; j < n; j += 32) v += x[j]; for (int j = i; j < n; j += 32) x[j] = x[j] + v;",
        WORDS + "o[i] = p[(2 * i + 2) % 64];", WORDS + "o[i] = p[(2 * i + 3) % 64];",
        f"x[0] = i ? {NAN} : 1.0f;", f"x[0] = i ? 1.0f : {NAN};",
        # In a late turn of a loop, by the order of accesses or by the value.
        TURNS + "s[i] = y; __syncwarp(); o[i] += s[31 - i]; if (y != 20) __syncwarp(); }",
        TURNS + """if (y % 5 == 4) o[i] += s[31 - i]; s[i] = y; if (y % 5 != 4 || y < 20) __syncthreads();
            if (y % 5 == 4) __syncthreads(); o[i] += s[31 - i]; if (y < 22) __syncthreads(); }""",
        TURNS + "s[i / 2] = y < 20 ? 1 : i; __syncwarp(); o[i] += s[0]; __syncwarp(); }",
        TURNS + "s[i] = y; s[31 - i] = y < 20 ? y : i; __syncwarp(); o[i] += s[0]; __syncwarp(); }",
    ]),
    (errors.KernelFault, "int s = 0; atomicAdd(&s, 1);", {"array": "s"}, "atomics work on global and shared memory"),
    (errors.ReadOnlyError, 'char* s = (char*)"abc"; if (i == 3) s[1] = 1;', {"thread": (3, 0, 0)}, """'"abc"', which may only be read"""),
    *((errors.RaceError, text, {"array": "x", "index": 0}, "x") for text in (
        "x[0] = i ? 0.0f : -0.0f;", "if (i < 9) x[0] = 0.0f; if (i > 8) x[0] = -0.0f;")),
]  # fmt: skip
BEFORE = """__device__ int* escape(int a) { int b = a; return &b; }
__device__ int forgets(int a) { if (a > 3) return 1; }
"""


@pytest.mark.parametrize(("kind", "text", "place", "words"), MISTAKES)
def test_mistakes(
    kind: type[errors.KernelFault], text: str, place: dict[str, object], words: str
) -> None:
    error = fault(kind, text, before=BEFORE)
    assert {name: getattr(error.site, name) for name in place} == place
    assert words in str(error)


@pytest.mark.parametrize(
    "text",
    [
        "if (i < 31) x[i + 1] = 1; o[i < 0 ? i - 1 : i] += 1;",
        TILE + "x[i] = tile[i / 8][i % 8]; float* flat = &tile[0][0]; x[i] = flat[i]; float* end = &tile[1][8]; x[i] += end[-1 - i % 8];",
        "x[i] = *reinterpret_cast<float*>(reinterpret_cast<char*>(x) + 4 * i) + 1;",
        "float2 v; v.x = 1; x[i] = v.x; v.y = 2; x[i] += v.y; float2 w = v; x[i] += w.x;",
        "float4 v; v.x = i; float4 w = v; x[i] = w.x;",
        PARTS + "P q = s[31 - i], r = {1, 2}; x[i] = q.x; if (i > 3) { q = r; x[i] = q.y; }",
        PARTS + "if (i > 3) s[i].y = 1; __syncthreads(); P q = s[31 - i]; if (i < 28) x[i] = q.y;",
        PARTS + "__shared__ Q u[32]; u[i].v = i; if (i > 3) u[i].p = o + i; Q q = u[i]; if (i > 3) *q.p = q.v;",
        "float a; if (i > 3) a = 1; else a = 2; x[i] = a; int b; for (int j = 0; j < 2; j++) b = j; o[i] = b;",
        "if (i > 20) return; __syncthreads(); x[i] = 1;",
        "__syncwarp(0xffffffff);",
        "__shared__ int s[32]; s[i] = i; __syncwarp(i < 16 ? 0xffff : 0xffff0000); o[i] = s[i ^ 8];",
        "__shared__ int s[32]; s[i] = i; if (i < 2) __syncwarp(3); if (i == 1 || i == 2) __syncwarp(6); if (i == 2) o[i] = s[0];",
        "if (i == 2) __syncwarp(6); else { if (i < 2) __syncwarp(3); if (i == 1) __syncwarp(6); }",
        "x[0] = 1;",  # all write the same
        "x[0] = sqrtf(-1.0f - i);",  # and one NaN is like another
        "atomicAdd(&o[0], 1);",
        "o[i] = o[i] + 1; o[i] = o[i] * 2;",
        "__shared__ unsigned char b[32]; b[i] = i; o[i] = b[i];",
        "__shared__ volatile float s[32]; s[i] = 1; __syncwarp(); x[i] = s[(i + 16) % 32];",
        "if (i < 16) { __syncwarp(0xffff); o[i] = 1; } else o[i] = 2;",
        "__shared__ float s[32]; s[i] = x[i]; __syncwarp(); float v = i ? s[i - 1] : 0.0f; __syncwarp(); s[i] += v;",
        "float v = x[0]; for (int j = i; j < n; j += 32) v += x[j]; __syncthreads(); for (int j = i; j < n; j += 32) x[j] = x[j] + v;",
        WORDS + "o[i] = p[2 * i] + p[2 * i + 1];",
        TURNS + "int j = y % 2 ? i : 31 - i; s[j] = y + i; __syncwarp(); o[i] += s[i]; __syncwarp(); }",
        TURNS + "s[i / 2] = 1; __syncwarp(); o[i] += s[0]; __syncwarp(); }",
        "__shared__ volatile int v; v = 0; __syncthreads(); if (i == 0) v = 5; else { while (v == 0); o[i] = v; }",
    ],
)  # fmt: skip
def test_no_false_alarm(text: str) -> None:
    body(text)


def test_a_fault_names_everything() -> None:
    source = """extern "C" __global__
void relu(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) x[i] = fmaxf(x[i], 0.0f);
}"""
    with pytest.raises(errors.OutOfBoundsError) as caught:
        launch(source, "relu", 3, 32, np.ones(64, np.float32), 64)
    site = caught.value.site
    assert (site.kernel, site.line) == ("relu", 4)
    assert (site.block, site.thread) == ((2, 0, 0), (0, 0, 0))
    assert (site.array, site.index, site.bound) == ("x", 64, 64)
    assert "line 4: if (i <= n)" in str(caught.value)


def test_elements_of_vectors_are_called_as_in_the_source() -> None:
    for text, named in (("p[i + 1].w = 1;", r"\[32\].w"), ("p[0].y = i;", r"\[0\].y")):
        source = f"__global__ void k(float4* p) {{ int i = threadIdx.x; {text} }}"
        with pytest.raises(errors.KernelFault, match=f"'p'{named}"):
            launch(source, "k", 1, 32, np.zeros(128, np.float32))


def run(text: str, *arrays: GlobalMemory) -> None:
    compile_source(HEAD + text + " }").begin("k", (1, 1, 1), (32, 1, 1), [*arrays, 1]).finish()


def test_memory_that_may_only_be_read() -> None:
    fixed = memory(np.zeros(32, np.float32))
    fixed.readonly = True
    with pytest.raises(errors.ReadOnlyError):
        run("x[i] = 1;", fixed, memory(np.zeros(1, np.int32)))


def test_of_volatile_stores_of_two_warps_either_may_come_last_and_of_one_none() -> None:
    text = "((volatile int*)o)[i < 32 || i % 2 == 0 ? 0 : 2] = i {};"
    assert body(text.format("/ 32"), threads=64)[1][:4].tolist() == [1, 0, 1, 0]
    fault(errors.RaceError, text.format("% 3"), threads=64)


def test_a_shuffle_reads_only_in_the_lane_that_is_asked() -> None:
    text = "int r; if (i == 5) r = atomicAdd(&o[0], 32); r = __shfl_sync(0xffffffff, r, %d); x[i] = r + i;"
    assert body(text % 5)[0].tolist() == list(range(32))
    error = fault(errors.UninitialisedReadError, text % 4)
    assert (error.site.array, error.site.thread) == ("r", (4, 0, 0))


def test_global_memory_that_nothing_has_written() -> None:
    fresh = GlobalMemory(160, "fresh")
    fresh.mark_written(0, 96)
    with pytest.raises(errors.UninitialisedReadError) as caught:
        run("o[i] = x[i + 8] > 0;", fresh, memory(np.zeros(32, np.int32)))
    assert (caught.value.site.index, caught.value.site.thread) == (24, (16, 0, 0))
    fresh, out = GlobalMemory(128), GlobalMemory(128)
    run(
        "atomicExch(&o[i], i); o[i] += 1;", fresh, out
    )  # an exchange whose old value nobody takes is a store
    assert out.view(np.int32).tolist() == list(range(1, 33))
    fresh, out = GlobalMemory(128), GlobalMemory(128)
    run("x[i] = i; o[i] = x[i] * 2;", fresh, out)
    assert fresh.fully_initialised
    assert out.shadow.all()


@pytest.mark.parametrize(
    "text", ["atomicAdd(&o[3], 1);", "o[3] = atomicExch(&o[3], 1);", "atomicCAS(&o[3], 0, 1);"]
)
def test_an_atomic_writes_its_own_element(text: str) -> None:
    o = GlobalMemory(32).copy()
    run("if (i == 0) { o[3] = 1; " + text + " }", memory(np.zeros(1, np.float32)), o)
    assert np.flatnonzero(o.shadow).tolist() == [12, 13, 14, 15]
    assert o.trail is not None
    assert np.flatnonzero(o.trail).tolist() == [12, 13, 14, 15]


@pytest.mark.parametrize("barrier", ["__syncthreads();\n    for", "__syncthreads();\n    }"])
@pytest.mark.parametrize("value", [0, 1])
def test_a_reduction_without_one_of_its_barriers(barrier: str, value: int) -> None:
    """Also where the data hide it: all values the same."""
    case = next(c for c in CASES if c.kernel == "reduce_sequential")
    text = source(case.file).replace(barrier, barrier.removeprefix("__syncthreads();"))
    args = arguments(case)
    args[0][:] = value
    with pytest.raises(errors.RaceError) as caught:
        launch_case(case, args, text)
    assert caught.value.site.array == "fdata"


def test_the_cure_is_a_barrier_of_those_who_race() -> None:
    text = "__shared__ int s[64]; s[i] = i; o[i % 32] = s[i ^ 1];"
    assert "without a __syncwarp()" in str(fault(errors.RaceError, text))
    several = str(fault(errors.RaceError, text, threads=64))
    assert "without a __syncthreads() between them" in several
    assert "in one warp, for which __syncwarp() is enough" in several
    text = "__shared__ int s[64]; s[i] = i; __syncwarp(); if (i < 32) o[i] = s[i ^ 32];"
    assert "without a __syncthreads()" in str(fault(errors.RaceError, text, threads=64))


def test_an_element_is_the_same_by_whatever_pointer() -> None:
    text = "__shared__ int s[40]; s[i] = 0; if (i < 8) s[i + 32] = 0; __syncthreads(); int* p = s + 8; p[i] = i;"
    assert body(f"{text} o[i] = s[i + 8];")[1].tolist() == list(range(32))
    error = fault(errors.RaceError, f"{text} o[i] = i < 31 ? s[i + 9] : 0;")
    assert error.site.index == 9


def test_a_function_has_one_shared_array_for_all_its_calls() -> None:
    before = """__device__ float total(float v) { __shared__ float s[32]; s[threadIdx.x] = v; __syncthreads();
        float t = 0; for (int j = 0; j < 32; j++) t += s[j]; %s return t; }"""
    text = "x[i] = total(1.0f) + total(2.0f);"
    x, _, result = body(text, before=before % "__syncthreads();")
    assert x[0] == 96.0
    assert result.counts.shared_bytes == 128 + 128
    assert fault(errors.RaceError, text, before=before % "").site.array == "s"


FLOATS, WHOLE = np.zeros(64, np.float32), np.zeros(64, np.int32)


@pytest.mark.parametrize(
    ("text", "amiss"),
    [
        ("if (blockIdx.x) atomicAdd(o, 1); else if (i == 0) o[1] = o[0];", "only one of the two is atomic"),
        ("if (i % 32 == 0) o[0] = o[0] + 1;", "make both atomic"),
        ("if (i < 32) o[i] = 1; else o[i - 32] = 2;", "a place of its own"),
        ("if (i < 32) o[i] = *(volatile int*)(o + 64); else atomicAdd_block(o + 64, 1);", "does not reach another"),
        ("if (blockIdx.x) atomicAdd_block(o, 1); else o[i + 1] = *(volatile int*)o;", "does not reach another"),
        ("__shared__ int s; while (atomicAdd(o + 199, 0)); if (i == 0) { s = 1; __syncthreads(); } o[i] = s;",
         "at a barrier to which"),
    ],
)  # fmt: skip
def test_a_race_tells_what_else_may_be_amiss(text: str, amiss: str) -> None:
    with pytest.raises(errors.RaceError, match=amiss):
        launch(f"{HEAD}{text} }}", "k", 2, 64, FLOATS.copy(), np.zeros(200, np.int32), 1)


@pytest.mark.parametrize("lanes", [64, 32768])
def test_the_last_block_looks_without_a_fence(lanes: int) -> None:
    """As in NVIDIA's threadFenceReduction: it has the fence that releases, and none that acquires."""
    limits = InterpreterLimits(batch_lanes=lanes)
    case = next(c for c in CASES if c.kernel == "sum_in_last_block")
    old = replace(case, kernel="reduce_last_block")
    with pytest.raises(errors.RaceError, match=r"no __threadfence\(\) between its look"):
        launch_case(old, arguments(case), source("reduction"), limits)


def test_a_volatile_read_and_an_atomic_of_the_device_do_not_race() -> None:
    text = "if (blockIdx.x) o[i + 1] = *(volatile int*)o; else atomicAdd(o, 1); }"
    launch(HEAD + text, "k", 2, 32, FLOATS, np.zeros(33, np.int32), 1)


def test_blocks_may_come_to_barriers_differently_often() -> None:
    text = "for (int j = 0; j <= blockIdx.x; j++) __syncthreads(); }"
    assert launch(HEAD + text, "k", 4, 32, FLOATS, WHOLE, 1).counts.barriers == 10


@pytest.mark.parametrize(
    "text",
    [*(f"o[i] = __{call});" for call in (
        "ballot_sync(0xffffffff, 1", "any_sync(0xffffffff, 1", "all_sync(0xffffffff, 1", "reduce_add_sync(0xffffffff, 1u",
        "shfl_sync(0xffffffff, i, 0", "match_any_sync(0xffffffff, i")), "__syncwarp();"],
)  # fmt: skip
def test_a_mask_that_names_a_lane_which_is_absent(text: str) -> None:
    error = fault(errors.WarpError, f"if (i < 16) {{ {text} }}")
    assert error.site.thread == (0, 0, 0)
    assert "lane 16" in str(error)
    body(f"if (i < 16) {{ {text.replace('ffffffff', 'ffff').replace('()', '(0xffff)')} }}")
    body(f"if (i > 15) return; {text}")
    body(text, threads=24)
    fault(errors.WarpError, "x[i] = __shfl_down_sync(0xffffffff, x[i], 20);", threads=24)


@pytest.mark.parametrize(("kind", "text"), [
    (BOUNDS, "if (i > 4) x[i + 64] = 1;"), (BOUNDS, "if (i > 4) o[i] = x[-1];"), (BOUNDS, "int a[5]; a[i] = 1;"),
    (BOUNDS, "int a[5] = {}; o[i] = a[i];"), (BOUNDS, "__shared__ int s[5]; s[i] = 1;"), (BOUNDS, "o[i] = c[i / 5 * 2];"),
    (BOUNDS, "if (i > 4) atomicAdd(o + 64, 1);"), (BOUNDS, "int* p = i < 5 ? o : nullptr; p[i] = 1;"),
    (ALIGNED, "if (i > 4) *(double*)(x + 1) = 1;"), (ALIGNED, "double* p = (double*)(x + i / 5 % 2); o[i] = *p;"),
    (errors.UninitialisedReadError, "int r; if (i < 5) r = 1; o[i] = r;"),
    (errors.UninitialisedReadError, "int a[3]; if (i < 5) a[1] = 1; o[i] = a[1];"),
    (errors.ReadOnlyError, "if (i > 4) ((int*)c)[0] = 3;"), (errors.DeviceAssertError, "assert(i < 5);"),
    (errors.DivisionByZeroError, "o[i] = 1 / (i < 5);"), (errors.DivisionByZeroError, "o[i] = n % (i < 5);"),
])  # fmt: skip
def test_a_fault_names_the_first_of_its_threads(kind: type[errors.KernelFault], text: str) -> None:
    site = fault(kind, text, before="__constant__ int c[2] = {1, 2};").site
    assert (site.thread, site.block, site.line) == ((5, 0, 0), (0, 0, 0), 2)


def test_a_kernel_that_never_ends() -> None:
    text, limits = HEAD + "while (n > 0) o[i] += 1; }", InterpreterLimits(step_budget=500)
    with pytest.raises(errors.RunawayKernelError) as caught:
        launch(text, "k", 1, 32, FLOATS.copy(), WHOLE.copy(), 32, limits=limits)
    assert caught.value.site.line == 1


def test_what_was_written_before_a_fault_stays() -> None:
    x, o = np.zeros(32, np.float32), np.zeros(32, np.int32)
    with pytest.raises(errors.OutOfBoundsError):
        launch(HEAD + "x[i] = 5; o[i + 1] = 1; }", "k", 1, 32, x, o, 1)
    assert (x == 5).all()


HALVES = """extern "C" __global__ void k(int* o) {
    __shared__ int s[128];
    int t = threadIdx.x;
    for (int j = 0; j < 3; j++) {
        if (t < 64) { s[t] = t + j; __syncthreads(); o[blockIdx.x * 128 + t] += s[t + 64]; __syncthreads(); }
        else { s[t] = t * 10 + j; meet(); o[blockIdx.x * 128 + t] += s[t - 64]; __syncthreads(); }
    }
}"""
# Warps of a block that come to different barriers of the source: the hardware lets them meet there.
MEET = "__device__ void meet() { __syncthreads(); }\n"


def exchanged(source: str) -> list[int]:
    o = np.zeros(256, np.int32)
    launch(MEET + source, "k", 2, 128, o)
    return o.tolist()


def test_two_halves_exchange_what_they_wrote() -> None:
    t = np.arange(64)
    first = 3 * (t + 64) * 10 + sum(range(3))
    second = 3 * t + sum(range(3))
    assert exchanged(HALVES) == [*first, *second] * 2


OF_HALVES = [
    # The halves come to as many barriers then, but no longer to the same ones.
    ("s[t - 64]; __syncthreads();", "s[t - 64];", errors.KernelFault, None),
    ("s[t - 64];", "s[t - 64]; s[t] = 0;", errors.RaceError, "'s'"),
    ("t < 64", "t < 50", errors.BarrierError, None),  # a warp comes to one barrier
    ("meet();", "__syncthreads_count(1);", errors.BarrierError, None),  # which meets no other one
]


@pytest.mark.parametrize(("right", "wrong", "kind", "what"), OF_HALVES)
def test_mistakes_of_two_halves(
    right: str, wrong: str, kind: type[errors.KernelFault], what: str | None
) -> None:
    with pytest.raises(kind, match=what):
        exchanged(HALVES.replace(right, wrong))


def test_those_who_have_left_are_not_waited_for() -> None:
    source = HALVES.replace("for (int j", "if (t >= 96) return;\n    for (int j")
    source = source.replace("s[t + 64]", "s[64 + t % 32]")
    assert exchanged(source)[64:96] == [3 * t + sum(range(3)) for t in range(32)]


def test_a_flag_in_shared_memory_asks_its_writer_for_a_fence() -> None:
    text = """__global__ void k(int* o) { __shared__ int data, flag; int t = threadIdx.x; if (t == 0) flag = 0;
        __syncthreads(); if (t == 0) { data = 4; atomicExch(&flag, 1); }
        else if (t == 33) { while (atomicAdd(&flag, 0) == 0); __threadfence_block(); o[0] = data; } }"""
    with pytest.raises(errors.RaceError, match=r"that one has no __threadfence\(\)"):
        launch(text, "k", 1, 64, WHOLE.copy())


def test_a_stencil_in_place_races_with_another_block() -> None:
    text = """__global__ void k(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; float v = 0;
        if (i > 0 && i < n - 1) v = x[i - 1] + x[i + 1]; __syncthreads(); if (i > 0 && i < n - 1) x[i] = v; }"""
    with pytest.raises(
        errors.RaceError, match=r"other threads of other blocks read, and .*two blocks"
    ):
        launch(text, "k", 2, 32, np.zeros(64, np.float32), 64)
