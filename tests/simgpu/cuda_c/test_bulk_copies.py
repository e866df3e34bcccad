"""Bulk copies, and inline assembly: what right kernels compute, and what is told of wrong ones."""

import numpy as np
import pytest

from simgpu import errors
from simgpu.cuda_c import compile_source

from .support import body, launch

HEADERS = """#include <cuda/barrier>
#include <cuda/ptx>
using barrier = cuda::barrier<cuda::thread_scope_block>;
namespace cde = cuda::device::experimental;
namespace ptx = cuda::ptx;
__device__ unsigned window(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }"""
LINE = 7
BAR = (
    "__shared__ __align__(128) float s[64]; __shared__ barrier bar; if (i == 0) init(&bar, 32); __syncthreads(); "
    "barrier::arrival_token t; "
)
LOAD = (
    "if (i == 0) { cuda::device::memcpy_async_tx(s, x, cuda::aligned_size_t<16>(128), bar); "
    "t = cuda::device::barrier_arrive_tx(bar, 1, 128); } else t = bar.arrive(); "
)
WAIT = "bar.wait(std::move(t)); "
OUT = "__shared__ __align__(128) float s[64]; s[i] = x[i] + 1; "
FENCE = "cde::fence_proxy_async_shared_cta(); __syncthreads(); "
STORE = (
    "if (i == 0) { cde::cp_async_bulk_shared_to_global(x, s, 128); cde::cp_async_bulk_commit_group(); "
    "cde::cp_async_bulk_wait_group_read<0>(); } "
)
WRITTEN = STORE.replace(
    "cde::cp_async_bulk_wait_group_read<0>()", "ptx::cp_async_bulk_wait_group(ptx::n32_t<0>())"
)
READ = "cde::cp_async_bulk_wait_group_read<0>(); "
AGAIN = BAR + "s[i] = 1; " + FENCE + STORE + LOAD.replace("s, x", "s, (float*)o") + WAIT
READ_BACK = WRITTEN + "__syncthreads(); o[i] = x[31 - i];"
WORD = '__shared__ __align__(128) float s[64]; __shared__ unsigned long long b; if (i == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(window(&b)), "r"(1)); __syncthreads(); '
COPY = r'asm volatile("cp.async.cg.shared.global [%0], [%1], %2;\n" :: "r"(window(s + 4 * i)), "l"(x + 4 * (i % 8)), "n"(16)); '
BULK = (
    r'if (i == 0) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(window(&b)), "r"(128) : "memory"); '
    r'asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" '
    r':: "r"(window(s)), "l"(x), "r"(128), "r"(window(&b)) : "memory"); } '
)
LOOP = (
    r'asm volatile("{\n" ".reg .pred  P1;\n" "LAB_WAIT:\n" "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n" '
    r'"@P1  bra DONE;\n" "bra  LAB_WAIT;\n" "DONE:\n" "}\n" :: "r"(window(&b)), "r"(0)); '
)
ASK = (
    r'int over = 0; while (!over) asm volatile("{ .reg .pred p;\n\t mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; '
    r'selp.b32 %0, 1, 0, p; }" : "=r"(over) : "r"(window(&b)), "r"(0)); '
)
RACE, ALIGNED, BOUNDS, DEAD = (
    errors.RaceError,
    errors.MisalignedError,
    errors.OutOfBoundsError,
    errors.DeadlockError,
)

RIGHT = {
    "a bulk load": (32, BAR + LOAD + WAIT + "o[i] = s[31 - i];", lambda i: 31 - i),
    "bytes that are expected later": (
        32, BAR + "if (i == 0) { cuda::device::memcpy_async_tx(s, x, cuda::aligned_size_t<16>(64), bar); "
        "cuda::device::memcpy_async_tx(s + 16, x + 16, cuda::aligned_size_t<16>(64), bar); "
        "cuda::device::barrier_expect_tx(bar, 64); t = cuda::device::barrier_arrive_tx(bar, 1, 64); } else t = bar.arrive(); "
        + WAIT + "o[i] = s[31 - i];", lambda i: 31 - i),
    "a bulk store": (32, OUT + FENCE + READ_BACK, lambda i: 32 - i),
    "a buffer that is written again once it was read": (
        32, OUT + FENCE + STORE + "__syncthreads(); s[i] = 7; __syncthreads(); o[i] = s[31 - i];", lambda i: 7),
    "a buffer that is copied to once it was read": (32, AGAIN + "o[i] = s[31 - i];", lambda i: 0),
    "the names of cuda::ptx": (
        32, BAR + "if (i == 0) { ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, s, x, 128, "
        "cuda::device::barrier_native_handle(bar)); t = cuda::device::barrier_arrive_tx(bar, 1, 128); } else t = bar.arrive(); "
        + WAIT + "s[i] += 1; ptx::fence_proxy_async(ptx::space_shared); __syncthreads(); if (i == 0) { "
        "ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, x, s, 128); ptx::cp_async_bulk_commit_group(); "
        "ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>()); } o[i] = s[31 - i];", lambda i: 32 - i),
    "the names of cuda::ptx with orders": (
        32, ("__shared__ __align__(128) float s[64]; __shared__ uint64_t b; if (i == 0) { ptx::mbarrier_init(&b, 32); "
        "ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster); } __syncthreads(); uint64_t t; if (i == 0) { "
        "ptx::mbarrier_expect_tx(ptx::sem_relaxed, ptx::scope_cta, ptx::space_shared, &b, 128); "
        "ptx::cp_async_bulk(ptx::space_shared, ptx::space_global, s, x, 128, &b); } "
        "t = ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &b); "
        "while (!ptx::mbarrier_try_wait(ptx::sem_acquire, ptx::scope_cta, &b, t)) { } "
        "while (!ptx::mbarrier_test_wait_parity(&b, 0)) { } o[i] = s[31 - i];"), lambda i: 31 - i),
    "cp.async": (
        32, WORD + "if (i < 8) " + COPY + r'asm volatile("cp.async.commit_group;\n" ::); asm volatile("cp.async.wait_group %0;\n" '
        ':: "n"(0)); __syncthreads(); o[i] = s[31 - i];', lambda i: 31 - i),
    "cp.async.wait_all": (
        32, WORD + "if (i < 8) { " + COPY + '} asm volatile("cp.async.wait_all;" ::: "memory"); __syncthreads(); o[i] = s[31 - i];',
        lambda i: 31 - i),
    "a part is made 0": (
        32, WORD + r'if (i < 8) asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 16, %2;" :: "r"(window(s + 4 * (i % 8))), '
        r'"l"(x), "r"(8)); asm volatile("cp.async.wait_all;"); __syncthreads(); o[i] = s[4 * (i % 8) + 1] + s[4 * (i % 8) + 2];', lambda i: 1),
    "a bulk load in assembly": (32, WORD + BULK + LOOP + "o[i] = s[31 - i];", lambda i: 31 - i),
    "a wait that asks": (32, WORD + BULK + ASK + "o[i] = s[31 - i];", lambda i: 31 - i),
    "a bulk store in assembly": (
        32, OUT + r'asm volatile("fence.proxy.async.shared::cta;"); __syncthreads(); if (i == 0) { asm volatile('
        r'"cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" :: "l"(x), "r"(window(s)), "r"(128) : "memory"); '
        r'asm volatile("cp.async.bulk.commit_group;"); asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); } __syncthreads(); '
        "o[i] = x[31 - i];", lambda i: 32 - i),
    "an arrival with its token": (
        32, WORD.replace('"r"(1)', '"r"(32)') + r's[i] = i; unsigned long long t; asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" '
        r': "=l"(t) : "r"(window(&b)) : "memory"); ' + ASK + "o[i] = s[31 - i];", lambda i: 31 - i),
    "nothing to wait for": (
        32, "cudaGridDependencySynchronize(); o[i] = x[i]; cudaTriggerProgrammaticLaunchCompletion();", lambda i: i),
}  # fmt: skip

WRONG = {
    "no wait": (RACE, BAR + LOAD + "o[i] = s[31 - i]; " + WAIT, "has not waited for that phase"),
    "reads before anybody has arrived": (
        RACE, BAR + "if (i == 0) cuda::device::memcpy_async_tx(s, x, cuda::aligned_size_t<16>(128), bar); __syncthreads(); "
        "o[i] = s[i]; t = bar.arrive(); " + WAIT, "is under way, and phase 0 of 'bar' lacks 32"),
    "too few bytes are expected": (DEAD, BAR + LOAD.replace("1, 128", "1, 64") + WAIT, "64 bytes more than were expected"),
    "too many bytes are expected": (DEAD, BAR + LOAD.replace("1, 128", "1, 256") + WAIT, "lacks 128 bytes that are expected"),
    "nobody expects bytes": (
        DEAD, BAR + LOAD.replace("cuda::device::barrier_arrive_tx(bar, 1, 128)", "bar.arrive()") + WAIT, "128 bytes more"),
    "an address that is not aligned": (ALIGNED, BAR + LOAD.replace("(s, x,", "(s + 1, x,") + WAIT, "multiples of 16"),
    "a size that is none": (ALIGNED, BAR + LOAD.replace("<16>(128)", "<16>(120)") + WAIT, "bulk copy of 120 bytes"),
    "from two arrays at once": (
        BOUNDS, BAR + "if (i < 2) cuda::device::memcpy_async_tx(s + 32 * i, i ? x : (float*)o, cuda::aligned_size_t<16>(128), bar); "
        + WAIT, "differs in its array"),
    "beyond the source": (BOUNDS, BAR + LOAD.replace("<16>(128)", "<16>(256)") + WAIT, "reads 'x'[63]"),
    "beyond the target": (BOUNDS, BAR + LOAD.replace("(s, x,", "(s + 36, x,") + WAIT, "writes 's'[67]"),
    "the buffer is still read": (
        RACE, BAR + "s[i] = 0; s[i + 32] = 0; __syncthreads(); o[i] = s[31 - i]; " + LOAD + WAIT, "writes 's'[0]"),
    "written under way": (RACE, BAR + LOAD.replace("t = cuda", "s[3] = 0; t = cuda") + WAIT, "writes 's'[3]"),
    "its source is written": (RACE, BAR + LOAD.replace("t = cuda", "x[3] = 0; t = cuda") + WAIT, "writes 'x'[3]"),
    "no fence": (RACE, OUT + "__syncthreads(); " + STORE, "without a fence.proxy.async behind it"),
    "no barrier in front of a store": (RACE, OUT + "cde::fence_proxy_async_shared_cta(); " + STORE, "reads 's'[1]"),
    "ends before its store was read": (
        RACE, OUT + FENCE + STORE.replace("cde::cp_async_bulk_wait_group_read<0>();", ""), "ends while its asynchronous copy from 's'[0]"),
    "no commit of a store": (
        RACE, OUT + FENCE + STORE.replace("cde::cp_async_bulk_commit_group();", ""), "no cp_async_bulk_commit_group()"),
    "the buffer of a store is written": (
        RACE, OUT + FENCE + STORE.replace("cde::cp_async_bulk_wait", "s[5] = 0; cde::cp_async_bulk_wait"), "writes 's'[5]"),
    "the buffer of a store is copied to": (RACE, AGAIN.replace(READ, ""), "starts another asynchronous copy to 's'[0]"),
    "the buffer of a store is written by another": (RACE, OUT + FENCE + STORE + "s[i] = 0;", "writes 's'[1]"),
    "reads what a store writes": (RACE, OUT + FENCE + STORE + "__syncthreads(); o[i] = x[i];", "cp_async_bulk_wait_group(0) does"),
    "cp.async, without a wait": (RACE, WORD + "if (i < 8) { " + COPY + "o[i] = s[4 * i]; }", "its own asynchronous copy"),
    "assembly, without a wait": (RACE, WORD + BULK + "o[i] = s[i];", "'s'[0]"),
    "assembly that asks once": (
        RACE, WORD + BULK + ASK.replace("while (!over) ", "") + "o[i] = s[31 - i];", "ask in a loop until it is yes"),
    "assembly, by the wrong parity": (
        DEAD, WORD + BULK + LOOP.replace('"r"(0)', '"r"(1)') + "o[i] = s[i];", "phase 1 of 'b' lacks 1 of its 1 arrivals"),
    "a number that is no address": (
        BOUNDS, WORD + COPY.replace("window(s + 4 * i)", "16u * i"), "__cvta_generic_to_shared() did not give"),
    "global memory as shared memory": (BOUNDS, "o[i] = __cvta_generic_to_shared(x);", "takes 'x' for shared memory"),
}  # fmt: skip


def run(threads: int, text: str) -> np.ndarray:
    _, o, _ = body(text, before=HEADERS, threads=threads)
    return o


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_kernel_computes_this(name: str) -> None:
    threads, text, value = RIGHT[name]
    np.testing.assert_array_equal(run(threads, text), [value(i) for i in range(32)])


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_kernel_fails_with_its_cause(name: str) -> None:
    kind, text, words = WRONG[name]
    with pytest.raises(kind) as caught:
        run(32, text)
    assert words in str(caught.value)
    assert caught.value.site.line == LINE


@pytest.mark.parametrize(("text", "why"), [
    ('asm("nop;");', "inline assembly"),
    ('int a; asm("add.s32 %0, %1, %2;" : "=r"(a) : "r"(i), "r"(n));', "inline assembly"),
    ('asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile [%0];" :: "r"(i));', "inline assembly"),
    ("cudaGraphLaunch(x, 0);", "from the host"),
    ("cudaGraphExec_t g;", "from the host"),
    ("k<<<1, 1>>>(x, o, n);", "a kernel that launches kernels"),
])  # fmt: skip
def test_what_only_a_gpu_runs_is_refused(text: str, why: str) -> None:
    source = (
        f"{HEADERS}\n__global__ void k(float* x, int* o, int n) {{ int i = threadIdx.x; {text} }}"
    )
    with pytest.raises(errors.UnsupportedFeatureError, match=why):
        compile_source(source).kernel("k")


def test_many_blocks_move_a_whole_array() -> None:
    source = f"""{HEADERS}
    __global__ void twice(const float* x, float* y) {{
        __shared__ __align__(128) float s[1024];
        __shared__ barrier bar;
        if (threadIdx.x == 0) init(&bar, blockDim.x);
        __syncthreads();
        barrier::arrival_token token;
        if (threadIdx.x == 0) {{
            cuda::device::memcpy_async_tx(s, x + 1024 * blockIdx.x, cuda::aligned_size_t<16>(sizeof(s)), bar);
            token = cuda::device::barrier_arrive_tx(bar, 1, sizeof(s));
        }} else token = bar.arrive();
        bar.wait(std::move(token));
        for (int k = threadIdx.x; k < 1024; k += blockDim.x) s[k] *= 2;
        cde::fence_proxy_async_shared_cta();
        __syncthreads();
        if (threadIdx.x == 0) {{
            cde::cp_async_bulk_shared_to_global(y + 1024 * blockIdx.x, s, sizeof(s));
            cde::cp_async_bulk_commit_group();
            cde::cp_async_bulk_wait_group_read<0>();
        }}
    }}"""
    x, y = np.arange(1024 * 300, dtype=np.float32), np.zeros(1024 * 300, np.float32)
    result = launch(compile_source(source), "twice", 300, 128, x, y)
    np.testing.assert_array_equal(y, 2 * x)
    assert result.counts.load_bytes == result.counts.store_bytes == x.nbytes
