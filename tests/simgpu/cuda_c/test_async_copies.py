"""Asynchronous copies: what right kernels compute, and that each wrong one fails, with its line and cause."""

import numpy as np
import pytest

from simgpu import errors
from simgpu.cuda_c import InterpreterLimits, compile_source

from .support import body, launch

PIPELINE = "#include <cuda_pipeline.h>"
COPY = "__pipeline_memcpy_async(s + i, x + i, 4); "
DONE = "__pipeline_commit(); __pipeline_wait_prior(0); "
RACE, ALIGNED = errors.RaceError, errors.MisalignedError

# Statements, and what each thread leaves in x[i], where x[i] was i.
RIGHT = {
    "its own element": ("__shared__ float s[32]; " + COPY + DONE + "x[i] = 2 * s[i];", lambda i: 2 * i),
    "another thread's, behind a barrier": (
        "__shared__ float s[32]; " + COPY + DONE + "__syncthreads(); x[i] = s[31 - i];", lambda i: 31 - i),
    "copies of 16 bytes": (
        "__shared__ __align__(16) float s[32]; if (i < 8) __pipeline_memcpy_async(s + 4 * i, x + 4 * i, 16); "
        + DONE + "__syncthreads(); x[i] = s[i] + 1;", lambda i: i + 1),
    "copies of 8 bytes": (
        "__shared__ float2 s[16]; if (i < 16) __pipeline_memcpy_async(s + i, x + 2 * i, 8); "
        + DONE + "__syncthreads(); x[i] = s[i / 2].y;", lambda i: i | 1),
    "copies to larger elements": (
        "__shared__ double s[16]; if (i < 16) __pipeline_memcpy_async((float*)s + i, x + i, 4); "
        + DONE + "__syncthreads(); x[i] = ((float*)s)[i % 16];", lambda i: i % 16),
    "a sum of what was copied": (
        "__shared__ float s[32]; " + COPY + DONE + "__syncthreads(); float a = 0; for (int k = 0; k < n; k++) a += s[k]; x[i] = a;",
        lambda i: 496),
    "a size that is known late": (
        "__shared__ float s[32]; __pipeline_memcpy_async(s + i, x + i, n / 8); " + DONE + "x[i] = s[i];", lambda i: i),
    "two groups, waited for one by one": (
        "__shared__ float s[64]; " + COPY + "__pipeline_commit(); __pipeline_memcpy_async(s + 32 + i, x + i, 4); "
        "__pipeline_commit(); __pipeline_wait_prior(1); float a = s[i]; __pipeline_wait_prior(0); x[i] = a + s[32 + i];",
        lambda i: 2 * i),
    "only some threads copy": (
        "__shared__ float s[32]; s[i] = 7; __syncthreads(); if (i % 2) { " + COPY + DONE + "} __syncthreads(); x[i] = s[i];",
        lambda i: i if i % 2 else 7),
    "threads that wait at different places": (
        "__shared__ float s[32]; " + COPY + "__pipeline_commit(); if (i < 16) __pipeline_wait_prior(0); "
        "else __pipeline_wait_prior(0); __syncthreads(); x[i] = s[31 - i];", lambda i: 31 - i),
    "a buffer that is used again behind a barrier": (
        "__shared__ float s[32]; float a = 0; for (int k = 0; k < 3; k++) { " + COPY + DONE
        + "__syncthreads(); a += s[31 - i]; __syncthreads(); } x[i] = a;", lambda i: 3 * (31 - i)),
    "a source that is written once its copy is done": (
        "__shared__ float s[32]; " + COPY + DONE + "x[i] = 0; x[i] = s[i] + x[i];", lambda i: i),
    "empty groups": (
        "__shared__ float s[32]; __pipeline_commit(); " + COPY + "__pipeline_commit(); __pipeline_commit(); "
        "__pipeline_wait_prior(1); x[i] = s[i];", lambda i: i),
    "the rest is made 0": (
        "__shared__ __align__(16) float s[128]; __pipeline_memcpy_async(s + 4 * i, x + i / 4 * 4, 16, i % 5 * 4); "
        + DONE + "__syncthreads(); x[i] = s[4 * i] + s[4 * i + 3];",
        lambda i: (0 if i % 5 == 4 else i // 4 * 4) + (0 if i % 5 else i // 4 * 4 + 3)),
    "a double buffer": (
        ("__shared__ float s[2][32]; float a = 0; __pipeline_memcpy_async(&s[0][i], x + i, 4); __pipeline_commit(); "
        "for (int k = 0; k < 4; k++) { if (k < 3) __pipeline_memcpy_async(&s[(k + 1) % 2][i], x + i, 4); "
        "__pipeline_commit(); __pipeline_wait_prior(1); __syncthreads(); a += s[k % 2][31 - i]; __syncthreads(); } "
        "x[i] = a;"), lambda i: 4 * (31 - i)),
    "an address that no read is near": (
        "__shared__ float s[256], u[32]; u[i] = 1; __syncthreads(); __pipeline_memcpy_async(s + 128 + i, x + i, 4); "
        "float a = u[31 - i]; " + DONE + "x[i] = a + s[128 + i];", lambda i: i + 1),
}  # fmt: skip

# The error, statements, and some of its words.
WRONG = {
    "no wait": (RACE, COPY + "__pipeline_commit(); x[i] = s[i];", "its own asynchronous copy (line 2) is under way"),
    "no wait for what is summed up": (
        RACE, COPY + "__pipeline_commit(); float a = 0; for (int k = 0; k < n; k++) a += s[k]; x[i] = a;", "its own asynchronous copy"),
    "no commit": (RACE, COPY + "__pipeline_wait_prior(0); x[i] = s[i];", "no __pipeline_commit() has closed its group"),
    "waits for too few": (
        RACE, COPY + "__pipeline_commit(); __pipeline_wait_prior(1); x[i] = s[i];", "__pipeline_wait_prior(0) does"),
    "waits for the older group": (
        RACE, COPY + "__pipeline_commit(); __pipeline_memcpy_async(s + 32 + i, x + i, 4); __pipeline_commit(); "
        "__pipeline_wait_prior(1); x[i] = s[32 + i];", "this copy is in number 2: __pipeline_wait_prior(0) waits for it"),
    "no barrier behind the wait": (RACE, COPY + DONE + "x[i] = s[31 - i];", "without a __sync"),
    "barrier in front of the wait": (
        RACE, COPY + "__pipeline_commit(); __syncthreads(); x[i] = s[31 - i]; __pipeline_wait_prior(0);",
        "thread (31, 0, 0)'s asynchronous copy (line 2) is under way"),
    "a barrier of the warp, and two warps": (
        RACE, "__pipeline_memcpy_async(s + i, x + i % 32, 4); " + DONE + "__syncwarp(); o[i % 32] = s[63 - i];",
        "__syncthreads()"),
    "the buffer is still read": (
        RACE, COPY + DONE + "__syncthreads(); float a = s[31 - i]; " + COPY + DONE + "x[i] = a;", "writes 's'[0]"),
    "read in front of a wait and behind it": (
        RACE, ("s[64 + i] = s[96 + i] = 0; __syncthreads(); __pipeline_memcpy_async(s + 64 + i, x + i, 4); __pipeline_commit(); "
        "__syncthreads(); float a = 0; if (i == 0) a = s[100]; __syncwarp(); __pipeline_wait_prior(0); if (i == 1) a = s[100]; "
        "if (i == 0) s[100] = 5; x[i] = a;"), "which thread (1, 0, 0) reads"),
    "written under way": (RACE, COPY + "s[i] = 0; " + DONE, "writes 's'[0]"),
    "an atomic under way": (RACE, COPY + "atomicAdd(s + i, 1.0f); " + DONE, "writes 's'[0]"),
    "copied to twice": (RACE, COPY + "__pipeline_commit(); " + COPY + DONE, "starts another asynchronous copy to 's'[0]"),
    "its source is written": (RACE, COPY + "x[i] = 1; " + DONE, "writes 'x'[0] in global memory, from which its own"),
    "another's source is written": (
        RACE, COPY + "__syncthreads(); x[31 - i] = 1; " + DONE, "from which thread (31, 0, 0)'s asynchronous copy"),
    "ends without a wait": (RACE, COPY + "__pipeline_commit();", "ends while its asynchronous copy to 's'[0]"),
    "returns early": (
        RACE, COPY + "__pipeline_commit(); if (i == 5) return; __pipeline_wait_prior(0);", "thread (5, 0, 0) ends while"),
    "ends without a commit": (RACE, COPY, "no __pipeline_commit()"),
    "one thread does not wait": (
        RACE, COPY + "__pipeline_commit(); if (i) __pipeline_wait_prior(0); __syncthreads(); x[i] = s[(i + 1) % 32];",
        "thread (0, 0, 0)'s asynchronous copy"),
    "a misaligned target": (ALIGNED, "__pipeline_memcpy_async(s + 4 * (i / 4) + 1, x + i / 4 * 4, 16);", "must be a multiple of 16"),
    "a misaligned source": (ALIGNED, "__pipeline_memcpy_async(s + 4 * i, x + 1, 16);", "must be a multiple of 16"),
    "a size that is none": (ALIGNED, "__pipeline_memcpy_async(s + i, x + i, n);", "of 32 bytes"),
    "too much made 0": (ALIGNED, "__pipeline_memcpy_async(s + i, x + i, 4, n);", "makes 32 of its bytes 0"),
    "beyond the source": (errors.OutOfBoundsError, "__pipeline_memcpy_async(s + i, x + i + 1, 4);", "reads 'x'[32]"),
    "beyond the target": (errors.OutOfBoundsError, "__pipeline_memcpy_async(s + i + 97, x + i, 4);", "writes 's'[128]"),
    "to global memory": (errors.OutOfBoundsError, "__pipeline_memcpy_async(o + i, x + i, 4);", "not in shared memory"),
    "from shared memory": (
        errors.OutOfBoundsError, "__pipeline_memcpy_async(s + i, s + 32 + i, 4);", "not in global memory"),
    "where nothing was copied": (
        errors.UninitialisedReadError, "if (i) " + COPY + DONE + "__syncthreads(); x[i] = s[i];", "reads 's'[0]"),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_kernel_computes_this(name: str) -> None:
    text, value = RIGHT[name]
    x, _, _ = body(text, before=PIPELINE)
    np.testing.assert_array_equal(x, [value(i) for i in range(32)])


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_kernel_fails_with_its_cause(name: str) -> None:
    kind, text, words = WRONG[name]
    with pytest.raises(kind) as caught:
        body("__shared__ __align__(16) float s[128]; " + text, n=64 if "warps" in name else 32, before=PIPELINE,
             threads=64 if "warps" in name else 32)  # fmt: skip
    assert words in str(caught.value)
    assert caught.value.site.line == 2
    assert caught.value.site.thread is not None


@pytest.mark.parametrize(("call", "why"), [
    ("__pipeline_memcpy_async(s, x, 3)", "4, 8 or 16 bytes, not 3"),
    ("__pipeline_memcpy_async(s, 5, 4)", "needs an address"),
    ("__pipeline_memcpy_async(s, x)", "takes 3 or 4 arguments"),
    ("__pipeline_memcpy_async((const float*)s, x, 4)", "may only be read"),
])  # fmt: skip
def test_what_a_compiler_sees_is_told_when_it_compiles(call: str, why: str) -> None:
    with pytest.raises(errors.KernelCompileError, match=why):
        body(f"__shared__ float s[32]; {call};", before=PIPELINE)


def test_blocks_keep_their_copies_apart() -> None:
    source = f"""{PIPELINE}
    __global__ void k(const float* x, float* y) {{
        __shared__ float s[64];
        int t = threadIdx.x, g = blockIdx.x * 64 + t;
        __pipeline_memcpy_async(s + t, x + g, 4);
        __pipeline_commit();
        if (blockIdx.x % 2) __pipeline_wait_prior(0);
        else __pipeline_wait_prior(0);
        __syncthreads();
        y[g] = s[63 - t];
    }}"""
    x, y = np.arange(64 * 700, dtype=np.float32), np.zeros(64 * 700, np.float32)
    launch(compile_source(source), "k", 700, 64, x, y, limits=InterpreterLimits(batch_lanes=6400))
    np.testing.assert_array_equal(y.reshape(700, 64), x.reshape(700, 64)[:, ::-1])


AHEAD = """__global__ void k(const float* x, float* y) {
    __shared__ float s[2][64];
    int t = threadIdx.x;
    float a = 0;
    for (int f = 0; f < EARLY; f++) { __pipeline_memcpy_async(&s[f][t], x + 64 * f + t, 4); __pipeline_commit(); }
    for (int k = 0; k < 16; k++) {
        int f = k + EARLY;
        if (f < 16) __pipeline_memcpy_async(&s[f % 2][t], x + 64 * f + t, 4);
        __pipeline_commit();
        __pipeline_wait_prior(EARLY);
        __syncthreads();
        for (int j = 0; j < 64; j++) a += s[k % 2][j] * a + 1;
        __syncthreads();
    }
    y[t] = a;
}"""


def test_a_wait_takes_what_is_left_of_the_trip() -> None:
    x, rounds = np.zeros(1024, np.float32), list[int]()
    for early in (0, 1):
        source = f"#include <cuda_pipeline.h>\n{AHEAD.replace('EARLY', str(early))}"
        rounds.append(
            launch(source, "k", 1, 64, x, np.zeros(64, np.float32)).counts.chain_load_rounds
        )
    assert rounds[0] == 16  # a whole trip for each tile
    assert rounds[1] <= 2  # the multiplications hide all but the first
