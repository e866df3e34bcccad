"""Barriers with phases and pipelines: what right kernels compute, and what is told of wrong ones."""

import numpy as np
import pytest

from simgpu import errors
from simgpu.cuda_c import InterpreterLimits

from .support import body, launch

HEADERS = """#include <cuda/barrier>
#include <cuda_awbarrier_primitives.h>
#include <cuda/pipeline>
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
using barrier = cuda::barrier<cuda::thread_scope_block>;"""
LINE = 8  # of the statements
BAR = "__shared__ barrier bar; if (i == 0) init(&bar, 32); __syncthreads(); "
OWN = "cuda::memcpy_async(s + i, x + i, sizeof(float), bar); "
# Warp 0 fills two buffers again and again, warp 1 adds up what comes.
PARTS = (
    "s[i] = s[64 + i] = 0; __shared__ barrier full[2], empty[2]; if (i == 0) for (int k = 0; k < 2; k++) { init(&full[k], 64); "
    "init(&empty[k], 64); } __syncthreads(); if (i < 32) { for (int k = 0; k < 5; k++) { "
    "empty[k % 2].arrive_and_wait(); s[32 * (k % 2) + i] = x[i] + k; auto t = full[k % 2].arrive(); } } "
    "else { auto t0 = empty[0].arrive(); auto t1 = empty[1].arrive(); float a = 0; for (int k = 0; k < 5; k++) { "
    "full[k % 2].arrive_and_wait(); a += s[32 * (k % 2) + 63 - i]; auto t = empty[k % 2].arrive(); } "
    "o[i - 32] = a; }"
)
# The same by parities, and by copies that bring the data: one thread of warp 0 starts them.
BROUGHT = (
    "__shared__ barrier full[2], empty[2]; if (i == 0) for (int k = 0; k < 2; k++) { init(&full[k], 1); "
    "init(&empty[k], 32); } __syncthreads(); if (i == 0) { for (int k = 0; k < 6; k++) { "
    "empty[k % 2].wait_parity(k / 2 % 2 == 0); for (int j = 0; j < 32; j += 4) "
    "cuda::memcpy_async(s + 32 * (k % 2) + j, x + j, cuda::aligned_size_t<16>(16), full[k % 2]); "
    "auto t = full[k % 2].arrive(); } } else if (i >= 32) { float a = 0; for (int k = 0; k < 6; k++) { "
    "full[k % 2].wait_parity(k / 2 % 2); a += s[32 * (k % 2) + 63 - i]; auto t = empty[k % 2].arrive(); } "
    "o[i - 32] = a; }"
)
TOLD = (
    "__shared__ barrier bar; __shared__ int flag; if (i == 0) flag = 0; __syncthreads(); "
    "if (i == 0) { init(&bar, 2); __threadfence_block(); atomicExch(&flag, 1); auto t = bar.arrive(); } "
    "if (i == 32) { while (atomicAdd(&flag, 0) == 0); __threadfence_block(); bar.arrive_and_wait(); } if (i < 32) o[i] = i;"
)
STATE = "__shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state; auto g = cg::this_thread_block(); "
STAGES = (
    STATE
    + "auto p = cuda::make_pipeline(g, &state); float a = 0; for (int k = 0, f = 0; k < 5; k++) { "
    "for (; f < 5 && f < k + 2; f++) { p.producer_acquire(); cuda::memcpy_async(g, s + 32 * (f % 2), x, 128, p); "
    "p.producer_commit(); } p.consumer_wait(); a += s[32 * (k % 2) + 31 - i]; p.consumer_release(); } o[i] = a;"
)
ROLES = (
    STATE + "auto role = i < 32 ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer; "
    "auto p = cuda::make_pipeline(g, &state, role); if (i < 32) { for (int k = 0; k < 5; k++) { p.producer_acquire(); "
    "cuda::memcpy_async(s + 32 * (k % 2) + i, x + i, 4, p); p.producer_commit(); } } else { float a = 0; "
    "for (int k = 0; k < 5; k++) { p.consumer_wait(); a += s[32 * (k % 2) + 63 - i]; p.consumer_release(); } "
    "o[i - 32] = a; }"
)
OURS = "cuda::pipeline<cuda::thread_scope_thread> p = cuda::make_pipeline(); p.producer_acquire(); "
RACE, BARRIER, DEAD = errors.RaceError, errors.BarrierError, errors.DeadlockError

# Statements, of how many threads, and what is in o[i].
RIGHT = {
    "all arrive and wait": (32, BAR + "s[i] = x[i]; bar.arrive_and_wait(); o[i] = s[31 - i];", lambda i: 31 - i),
    "arrive, work, wait": (
        32, BAR + "s[i] = x[i]; auto t = bar.arrive(); int w = 2 * i; bar.wait(std::move(t)); o[i] = s[31 - i] + w;",
        lambda i: 31 + i),
    "a named token": (
        32, BAR + "s[i] = x[i]; barrier::arrival_token t = bar.arrive(); while (!bar.try_wait(std::move(t))) { } o[i] = s[31 - i];",
        lambda i: 31 - i),
    "a look, and a wait if it was too early": (
        32, BAR + OWN + "auto t = bar.arrive(); if (!bar.try_wait(std::move(t))) bar.wait_parity(0); o[i] = s[31 - i];",
        lambda i: 31 - i),
    "a look at what a barrier of the block has told": (
        32, BAR + OWN + "auto t = bar.arrive(); if (i == 0) bar.wait(std::move(t)); __syncthreads(); bar.try_wait_parity(0); "
        "o[i] = s[31 - i];", lambda i: 31 - i),
    "phase after phase": (
        32, BAR + "float a = 0; for (int k = 0; k < 4; k++) { s[i] = x[i] + k; bar.arrive_and_wait(); a += s[31 - i]; "
        "bar.arrive_and_wait(); } o[i] = a;", lambda i: 4 * (31 - i) + 6),
    "one arrives for all of its warp": (
        64, ("__shared__ barrier bar; if (i == 0) init(&bar, 2); __syncthreads(); s[i] = i; __syncwarp(); "
        "if (i % 32 == 0) auto t = bar.arrive(); bar.wait_parity(0); if (i < 32) o[i] = s[63 - i];"), lambda i: 63 - i),
    "a barrier that two of a warp have met behind": (
        32, "__shared__ barrier bar; if (i == 0) init(&bar, 2); if (i < 2) { __syncwarp(3); bar.arrive_and_wait(); } o[i] = i;",
        lambda i: i),
    "a flag that tells of a barrier": (64, TOLD, lambda i: i),
    "one waits for all, who meet it": (
        32, BAR + OWN + "auto t = bar.arrive(); if (i == 3) bar.wait(std::move(t)); __syncthreads(); o[i] = s[31 - i];",
        lambda i: 31 - i),
    "a thread that drops out": (
        32, BAR + "if (i == 31) bar.arrive_and_drop(); else bar.arrive_and_wait(); if (i < 31) { s[i] = i; "
        "bar.arrive_and_wait(); o[i] = s[30 - i]; } else o[i] = 7;", lambda i: 7 if i == 31 else 30 - i),
    "copies that a barrier counts": (32, BAR + OWN + "bar.arrive_and_wait(); o[i] = s[31 - i];", lambda i: 31 - i),
    "copies of a group": (
        32, BAR + "cuda::memcpy_async(cg::this_thread_block(), s, x, cuda::aligned_size_t<16>(128), bar); "
        "bar.arrive_and_wait(); o[i] = s[31 - i];", lambda i: 31 - i),
    "copies of bytes": (
        32, BAR + "__shared__ char c[32]; cuda::memcpy_async(c + i, (char*)o + i, 1, bar); bar.arrive_and_wait(); "
        "o[i] = c[31 - i] + 5;", lambda i: 5),
    "a copy by cooperative groups": (
        32, "auto g = cg::this_thread_block(); cg::memcpy_async(g, s, x, sizeof(float) * 32); cg::wait(g); o[i] = s[31 - i];",
        lambda i: 31 - i),
    "two copies by cooperative groups": (
        32, ("auto g = cg::this_thread_block(); cg::memcpy_async(g, s, x, 128); cg::memcpy_async(g, s + 32, 32, x, 32); "
        "cg::wait_prior<1>(g); float a = s[31 - i]; cg::wait(g); o[i] = a + s[32 + i];"), lambda i: 31),
    "a tile's own copy": (
        32, ("auto g = cg::tiled_partition<16>(cg::this_thread_block()); int at = i / 16 * 16; "
        "cg::memcpy_async(g, s + at, x + at, 64); cg::wait(g); o[i] = s[at + 15 - i % 16];"),
        lambda i: i // 16 * 16 + 15 - i % 16),
    "a pipeline of each thread": (
        32, OURS + "cuda::memcpy_async(s + i, x + i, cuda::aligned_size_t<4>(4), p); p.producer_commit(); "
        "p.consumer_wait(); __syncthreads(); o[i] = s[31 - i]; p.consumer_release();", lambda i: 31 - i),
    "a pipeline that waits for all but one": (
        32, OURS + "cuda::memcpy_async(s + i, x + i, 4, p); p.producer_commit(); cuda::memcpy_async(s + 32 + i, x, 4, p); "
        "p.producer_commit(); cuda::pipeline_consumer_wait_prior<1>(p); o[i] = s[i]; cuda::pipeline_consumer_wait_prior<0>(p);",
        lambda i: i),
    "a pipeline of the block": (32, STAGES, lambda i: 5 * (31 - i)),
    "producers and consumers": (64, ROLES, lambda i: 5 * (31 - i)),
    "two warps, by tokens": (64, PARTS, lambda i: 5 * (31 - i) + 10),
    "two warps, by parities and copies": (64, BROUGHT, lambda i: 6 * (31 - i)),
    "the primitives": (
        32, ("__shared__ unsigned long long b; if (i == 0) __mbarrier_init(&b, 32); __syncthreads(); s[i] = i; "
        "auto t = __mbarrier_arrive(&b); while (!__mbarrier_test_wait(&b, t)) { } o[i] = s[31 - i];"), lambda i: 31 - i),
    "the primitives and their types": (
        32, ("__shared__ __mbarrier_t b; if (i == 0) __mbarrier_init(&b, 32); __syncthreads(); s[i] = i; __mbarrier_token_t t = "
        "__mbarrier_arrive(&b); while (!__mbarrier_try_wait(&b, t, 100)) { } int a = s[31 - i]; __mbarrier_arrive(&b); "
        "while (!__mbarrier_try_wait_parity(&b, 1, 100)) { } s[i] = a; o[i] = s[i]; __syncthreads(); if (i == 0) __mbarrier_inval(&b);"),
        lambda i: 31 - i),
}  # fmt: skip

# The error, of how many threads, statements, and some of its words.
WRONG = {
    "no wait": (RACE, 32, BAR + OWN + "auto t = bar.arrive(); o[i] = s[i]; bar.wait(std::move(t));", "has not waited for that phase"),
    "reads before it arrives": (RACE, 32, BAR + OWN + "o[i] = s[i]; bar.arrive_and_wait();", "phase 0 of 'bar' lacks 32"),
    "asks once": (
        RACE, 32, BAR + OWN + "auto t = bar.arrive(); bar.try_wait(std::move(t)); o[i] = s[31 - i];", "ask in a loop until it is yes"),
    "asks once for each phase": (
        RACE, 32, BAR + "for (int k = 0; k < 2; k++) { " + OWN + "auto t = bar.arrive(); if (k) bar.try_wait(std::move(t)); else "
        "bar.wait(std::move(t)); o[i] = s[31 - i]; __syncthreads(); }", "ask in a loop until it is yes"),
    "asks once, and for no copy": (
        RACE, 32, BAR + "s[i] = x[i]; auto t = bar.arrive(); bar.try_wait(std::move(t)); o[i] = s[31 - i];", "without a __sync"),
    "copied to twice": (RACE, 32, BAR + OWN + OWN + "bar.arrive_and_wait();", "to which an asynchronous copy (line 8) is under way"),
    "another's element, without a wait": (
        RACE, 32, BAR + "s[i] = x[i]; auto t = bar.arrive(); o[i] = s[31 - i]; bar.wait(std::move(t));", "without a __sync"),
    "only some wait": (
        RACE, 32, BAR + OWN + "auto t = bar.arrive(); if (i % 2) bar.wait(std::move(t)); o[i] = s[i];", "has not waited for that phase"),
    "writes behind its arrival": (
        RACE, 32, BAR + "auto t = bar.arrive(); s[i] = x[i]; bar.wait(std::move(t)); o[i] = s[31 - i];", "without a __sync"),
    "too many arrivals are expected": (
        DEAD, 32, "__shared__ barrier bar; if (i == 0) init(&bar, 33); __syncthreads(); bar.arrive_and_wait();",
        "phase 0 of 'bar' lacks 1 of its 33 arrivals"),
    "too few arrivals are expected": (
        BARRIER, 32, "__shared__ barrier bar; if (i == 0) init(&bar, 16); __syncthreads(); bar.arrive_and_wait();",
        "init() for 16 arrivals"),
    "no init": (errors.UninitialisedReadError, 32, "__shared__ barrier bar; bar.arrive_and_wait();", "nothing has written"),
    "no barrier behind init": (
        RACE, 64, "__shared__ barrier bar; if (i == 0) init(&bar, 64); bar.arrive_and_wait();", "without a __syncthreads()"),
    "no barrier behind init, in a warp": (
        RACE, 32, BAR.replace("__syncthreads(); ", "") + "s[i] = x[i]; if (i == 0) auto t = bar.arrive(); "
        "else auto t = bar.arrive();", "'bar'"),
    "no barrier between init and another warp": (
        RACE, 64, BROUGHT.replace("__syncthreads(); ", ""), "of which thread (0, 0, 0) calls init()"),
    "no fence between init and a flag": (
        RACE, 64, TOLD.replace("2); __threadfence_block();", "2);"), "of which thread (0, 0, 0) calls init()"),
    "some other word": (
        BARRIER, 32, "__shared__ unsigned long long b; if (i == 0) b = 0; __syncthreads(); auto t = __mbarrier_arrive(&b);",
        "nobody has called init()"),
    "in global memory": (BARRIER, 32, "__mbarrier_init((unsigned long long*)x, 32);", "not in shared memory"),
    "an old token": (
        BARRIER, 32, BAR + "auto t = bar.arrive(); bar.wait(std::move(t)); bar.arrive_and_wait(); bar.wait(std::move(t));", "with a token of phase 0"),
    "another barrier's token": (
        BARRIER, 32, BAR + "__shared__ barrier more; if (i == 0) init(&more, 32); __syncthreads(); auto t = bar.arrive(); "
        "auto u = more.arrive(); bar.wait(std::move(u));", "which another barrier gave"),
    "too many times at once": (BARRIER, 32, BAR + "auto t = bar.arrive(33);", "arrives 33 times"),
    "no arrivals": (BARRIER, 32, "__shared__ barrier bar; if (i == 0) init(&bar, 0);", "for 0 arrivals"),
    "some never arrive": (DEAD, 32, BAR + "if (i < 30) bar.arrive_and_wait();", "lacks 2 of its 32 arrivals"),
    "the wrong parity": (
        DEAD, 32, BAR + "bar.arrive_and_wait(); auto t = bar.arrive(); bar.wait_parity(0);", "phase 2 of 'bar'"),
    "a parity that is over": (
        RACE, 32, BAR + "bar.arrive_and_wait(); " + OWN + "if (i == 0) bar.wait_parity(0); o[i] = s[i]; bar.arrive_and_wait();",
        "phase 1 of 'bar' lacks 32"),
    "the consumers release too early": (
        RACE, 64, PARTS.replace("a += s[32 * (k % 2) + 63 - i]; auto t = empty[k % 2].arrive();",
                                "auto t = empty[k % 2].arrive(); a += s[32 * (k % 2) + 63 - i];"), "s'["),
    "the producers do not wait": (
        DEAD, 64, PARTS.replace("empty[k % 2].arrive_and_wait();", "auto u = empty[k % 2].arrive();"), "of 'full'[1] lacks 32"),
    "the consumers do not wait": (
        BARRIER, 64, PARTS.replace("full[k % 2].arrive_and_wait();", "auto u = full[k % 2].arrive();"), "with a token of phase 0"),
    "the consumers never release": (
        DEAD, 64, PARTS.replace("a += s[32 * (k % 2) + 63 - i]; auto t = empty[k % 2].arrive();", "a += s[32 * (k % 2) + 63 - i];"),
        "of 'empty'[0] lacks 32 of its 64 arrivals"),
    "the wrong buffer": (RACE, 64, BROUGHT.replace("a += s[32 * (k % 2)", "a += s[32 * ((k + 1) % 2)"), "'s'["),
    "consumers by one parity": (
        DEAD, 64, BROUGHT.replace("full[k % 2].wait_parity(k / 2 % 2)", "full[k % 2].wait_parity(0)"), "of 'empty'[0] lacks"),
    "producers by one parity": (
        DEAD, 64, BROUGHT.replace("wait_parity(k / 2 % 2 == 0)", "wait_parity(1)"), "of 'full'[0] lacks"),
    "ends with a copy under way": (RACE, 32, BAR + OWN, "ends while its asynchronous copy to 's'[0]"),
    "an arrival before its own copies have come": (
        RACE, 64, BAR + "if (i < 32) { __pipeline_memcpy_async(s + i, x + i, 4); __pipeline_commit(); (void)bar.arrive(); "
        "__pipeline_wait_prior(0); } else { bar.wait_parity(0); o[i - 32] = s[63 - i]; }", "without a __sync"),
    "its source is written": (RACE, 32, BAR + OWN + "x[i] = 0; bar.arrive_and_wait();", "from which an asynchronous copy"),
    "no commit in a pipeline": (RACE, 32, STAGES.replace("p.producer_commit();", "") .replace("p.consumer_wait();", ""), "'s'["),
    "nobody commits": (DEAD, 32, STAGES.replace("p.producer_commit();", ""), "lacks 32 of its 32 arrivals"),
    "stages that are never released": (
        RACE, 32, STAGES.replace("f < k + 2", "f < 2").replace("k < 5", "k < 2").replace("p.consumer_release();", ""),
        "oldest stage that nobody has released"),
    "no wait in a pipeline": (RACE, 32, STAGES.replace("p.consumer_wait();", ""), "'s'["),
    "a pipeline's own copy, not waited for": (
        RACE, 32, OURS + "cuda::memcpy_async(s + i, x + i, 4, p); p.producer_commit(); o[i] = s[i];", "its own asynchronous copy"),
    "cooperative groups, without a wait": (
        RACE, 32, "auto g = cg::this_thread_block(); cg::memcpy_async(g, s, x, 128); o[i] = s[i];", "copy (line 8) is under way"),
    "cooperative groups, one too few": (
        RACE, 32, ("auto g = cg::this_thread_block(); cg::memcpy_async(g, s, x, 128); cg::memcpy_async(g, s + 32, x, 128); "
        "cg::wait_prior<1>(g); o[i] = s[32 + i];"), "is under way"),
}  # fmt: skip


def run(threads: int, text: str, seed: int | None = None) -> np.ndarray:
    statements = f"__shared__ __align__(16) float s[128]; {text}"
    limits = InterpreterLimits(hostile=seed)
    _, o, _ = body(statements, before=HEADERS, threads=threads, limits=limits)
    return o


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_kernel_computes_this_also_in_memory_that_is_late(name: str) -> None:
    threads, text, value = RIGHT[name]
    for seed in (None, 0, 1, 2):
        np.testing.assert_array_equal(run(threads, text, seed), [value(i) for i in range(32)])


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_kernel_fails_with_its_cause(name: str) -> None:
    kind, threads, text, words = WRONG[name]
    with pytest.raises(kind) as caught:
        run(threads, text)
    assert words in str(caught.value)
    assert caught.value.site.line == LINE


def test_a_fault_in_a_function_says_where_the_kernel_calls_it() -> None:
    before = f"{HEADERS}\n__device__ int take(const float* s, int k) {{ return s[k]; }}\n"
    before += "__device__ int mirrored(const float* s, int i) {\n    return take(s, 31 - i); }"
    with pytest.raises(RACE) as caught:
        body("__shared__ float s[32];\n s[i] = i;\n o[i] = mirrored(s, i);", before=before)
    assert "line 8, from line 13: __device__ int take" in str(caught.value)
    assert caught.value.site.line == LINE


def test_what_a_phase_lacks_is_told_once_for_all_blocks() -> None:
    source = f"""{HEADERS}
    __device__ void meet(barrier& bar) {{
        bar.arrive_and_wait();
    }}
    __global__ void k(float* x) {{
        __shared__ barrier bar;
        if (threadIdx.x == 0) init(&bar, 33);
        __syncthreads();
        meet(bar);
    }}"""
    with pytest.raises(DEAD, match="lacks 1 of its 33 arrivals") as caught:
        launch(source, "k", 4, 32, np.zeros(32, np.float32))
    assert str(caught.value).count("lacks") == 1
    assert "line 9, from line 15" in str(caught.value)


@pytest.mark.parametrize(("text", "why"), [
    ("cuda::barrier<cuda::thread_scope_device> b; init(&b, 1);", "barriers of a block only"),
    ("__mbarrier_init(&s[0], 1);", "needs the address of a barrier"),
    ("cuda::latch l;", "is not supported"),
])  # fmt: skip
def test_what_a_compiler_sees_is_told_when_it_compiles(text: str, why: str) -> None:
    with pytest.raises(errors.KernelCompileError, match=why):
        run(32, text)


def test_a_copy_without_its_header_names_the_header() -> None:
    with pytest.raises(errors.KernelCompileError, match=r"#include <cuda/barrier>"):
        body("cg::memcpy_async(cg::this_thread_block(), x, x, 4);",
             before="#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;")  # fmt: skip
