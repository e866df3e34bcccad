"""One program in several spellings has one verdict: sound in all of them, or a mistake in all."""

import itertools

import numpy as np
import pytest

from simgpu import errors
from simgpu.cuda_c import GlobalMemory, InterpreterLimits
from tests.simgpu.cuda_c.corpus import source
from tests.simgpu.cuda_c.support import launch

pytestmark = pytest.mark.rests_on("simgpu")

# ---------------------------------------------------------------------- volatile and plain
LOOKS = {
    "pointer": ("volatile int* v = p;", "*v"), "element": ("volatile int* v = p;", "v[0]"),
    "reference": ("volatile int& v = *p;", "v"), "cast": ("", "*(volatile int*)p"),
    "member": ("struct S { volatile int f; }; S* s = (S*)p;", "s->f"), "variable": ("", "flag"),
    "shared": ("", "near"), "plain": ("", "*p"),
}  # fmt: skip
WAYS = {
    "load": "int seen = {0}; o[0] = seen;", "poll": "while ({0} == 0); o[0] = {0};",
    "condition": "if ({0} != 5) o[0] = 0;", "update": "{0} += 0;", "store": "{0} = 7;",
}  # fmt: skip
PLACES = "__device__ volatile int flag; "
MEETS = {"blocks": ("blockIdx.x", 2, 1), "warps": ("threadIdx.x / 32", 1, 64)}
APART = [
    (mine, theirs, way, where)
    for mine, theirs, way, where in itertools.product(LOOKS, LOOKS, WAYS, MEETS)
    if not {"variable", "shared"} & {mine, theirs} or mine == theirs
    if (mine, theirs) != ("plain", "plain") and (where == "warps" or mine != "shared")
    if (way, mine) != ("poll", "plain")  # which a compiler may hoist out of the loop
]


def verdict(
    body: str, grid: int, block: int, before: str = "", given: GlobalMemory | None = None
) -> str:
    """Run a kernel `k(int* p, int* o)`: the name of the mistake that is found, or nothing."""
    source = f"{before} __global__ void k(int* p, int* o) {{ int t = threadIdx.x; {body} }}"
    try:
        launch(source, "k", grid, block, given or np.zeros(64, np.int64), np.zeros(64, np.int32))
    except errors.KernelFault as error:
        return type(error).__name__
    return ""


@pytest.mark.parametrize(("mine", "theirs", "way", "where"), APART)
def test_two_volatile_accesses_are_no_race_and_volatile_beside_plain_is_one(
    mine: str, theirs: str, way: str, where: str
) -> None:
    who, grid, block = MEETS[where]
    (begin, place), (start, other) = LOOKS[mine], LOOKS[theirs]
    lanes = "if (t % 32) return;"
    if mine == "shared":
        lanes = f"__shared__ volatile int near; if (t == 0) near = 0; __syncthreads(); {lanes}"
    looks, writes = f"{{ {begin} {WAYS[way].format(place)} }}", f"{{ {start} {other} = 5; }}"
    wanted = "RaceError" if "plain" in (mine, theirs) else ""
    for one, two in ((looks, writes), (writes, looks)):
        body = f"{lanes} if ({who} == 0) {one} else {two}"
        assert verdict(body, grid, block, PLACES) == wanted, body


LANES = {
    "shared": ("__shared__ volatile int s[32]; volatile int* v = s;", "v[{0}]"),
    "global": ("volatile int* v = p;", "v[{0}]"),
    "reference": ("", "*(volatile int*)&p[{0}]"),
}


@pytest.mark.parametrize("where", LANES)
@pytest.mark.parametrize("polls", ["", "if (blockIdx.x > 9) { while (*(volatile int*)o == 0); }"])
def test_lanes_that_exchange_volatile_values_wait_for_each_other(where: str, polls: str) -> None:
    begin, place = LANES[where]
    text = f"{polls} {begin} {place.format('t')} = t; SYNC o[t] = {place.format('31 - t')};"
    assert verdict(text.replace("SYNC", "__syncwarp();"), 1, 32) == ""
    assert verdict(text.replace("SYNC", ""), 1, 32) == "RaceError"


@pytest.mark.parametrize("polls", ["", "if (blockIdx.x > 9) { while (*(volatile int*)o == 0); }"])
@pytest.mark.parametrize(
    ("reads", "meets", "wanted"),
    [("o[0] = p[0];", "", "RaceError"), ("", "", ""), ("o[0] = p[0];", "__syncthreads();", "")],
)
@pytest.mark.parametrize("writes", ["p[0] = 5;", "atomicExch(p, 5);"])
def test_to_store_what_is_there_already_is_a_race_with_who_has_read_what_was_there_before(
    polls: str, reads: str, meets: str, wanted: str, writes: str
) -> None:
    """Of two threads that write one value nobody sees the order, but a read before it shows it."""
    text = f"{polls} if (t == 0) {{ {reads} }} {meets} if (t == 0) {writes} if (t == 32) {writes}"
    assert verdict(text, 1, 64) == wanted


def test_the_old_way_to_end_a_reduction_needs_a_barrier_of_the_warp() -> None:
    """It relies on `volatile` and on lanes in step, which ended with Volta; a loop beside it changes nothing."""
    text = source("reduction")
    assert "s[tid] += s[tid + 16];" in text
    given = np.ones(900, np.float32), np.zeros(2, np.float32), 900
    with pytest.raises(errors.RaceError, match="syncwarp"):
        launch(text, "reduce_unrolled<256>", 2, 256, *given)


# ---------------------------------------------------------------------- what nobody has set
GROUPS = "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
PARTS = "struct Q { float2 v; int* p; }; struct P { char c; Q q; double d; }; "
SET = {"c": "c = 1", "d": "d = 1", "v": "q.v.y = 1", "p": "q.p = &o[t]"}
USE = {"c": "b.c", "d": "b.d", "v": "b.q.v.y", "p": "b.q.p != 0"}
HOMES = {
    "local": ("a", "P a; {0} P b = a;"),
    "addressed": ("(*s)", "P a; P* s = &a; {0} P b = *s;"),
    "array": ("(*s)", "P a[2]; P* s = a + t % 2; {0} P b = *s;"),
    "either": ("(*s)", "P a, z; P* s = t % 2 ? &a : &z; {0} P b = *s;"),
    "packed": ("s->in", "R a, z; R* s = t % 2 ? &a : &z; {0} P b = s->in;"),
    "made": ("(*this)", "struct M : P {{ __device__ M(int t, int* o) {{ {0} }} }}; P b = M(t, o);"),
    "shared": ("(*s)", "__shared__ P near[32]; P* s = near + t; {0} P b = *s;"),
    "global": ("(*s)", "P* s = fresh + t; {0} P b = *s;"),
}
COPIES = {
    "value": "",
    "again": "P e = b; b = e;",
    "argument": "b = same(b);",
    "branch": "if (t > 3) { P e = b; b = e; }",
    "memory": "__shared__ P other[32]; other[t] = b; __syncthreads(); b = other[t];",
    "memcpy": "P e; memcpy(&e, &b, sizeof(P)); b = e;",
    "member": "struct O { int k; P in; } u; u.in = b; O w = u; b = w.in;",
    "lambda": "auto f = [=]() { return b; }; b = f();",
    "shuffle": "b = cg::tiled_partition<32>(cg::this_thread_block()).shfl(b, 31 - t);",
}


@pytest.mark.parametrize(("home", "copy"), [*itertools.product(HOMES, COPIES)])
def test_a_struct_is_copied_with_what_nobody_set_and_only_to_use_that_is_an_error(
    home: str, copy: str
) -> None:
    before = GROUPS + PARTS + "struct __attribute__((packed)) R { char k; P in; }; "
    before += "__device__ P same(P x) { return x; } "
    place, text = HOMES[home]
    for used, unset in (("c", "p"), ("d", "c"), ("v", "d"), ("p", "v")):
        begin = f"{text.format(f'{place}.{SET[used]};')} {COPIES[copy]}".replace("fresh", "((P*)p)")
        assert fresh(f"{begin} o[t] = {USE[used]};", before) == ""
        assert fresh(f"{begin} b.{SET[unset]}; o[t] = {USE[unset]};", before) == ""
        both = f"{begin} o[t] = {USE[used]}; o[t] = {USE[unset]};"
        assert fresh(both, before) == "UninitialisedReadError"
    nothing = f"{text.format('')} {COPIES[copy]} o[t] = 1;".replace("fresh", "((P*)p)")
    assert home == "made" or fresh(nothing, before) == "UninitialisedReadError"


def fresh(body: str, before: str) -> str:
    """As `verdict`, where nobody has written what `p` points to."""
    return verdict(body, 1, 32, before, given=GlobalMemory(32 * 32, "p"))


ASKS = {
    "intrinsic": "__shfl_sync(0xffffffffu, {0}, {1})",
    "tile": "cg::tiled_partition<32>(cg::this_thread_block()).shfl({0}, {1})",
    "coalesced": "cg::coalesced_threads().shfl({0}, {1})",
    "own": "round({0}, {1})",
}
LEADERS = {
    "register": ("{0} v; if (t == 0) v = 5;", "v"),
    "member": ("struct S {{ {0} a, b; }}; S v; if (t == 0) v.b = 5;", "v.b"),
    "addressed": ("{0} v; {0}* w = &v; if (t == 0) *w = 5;", "v"),
    "array": ("{0} v[2]; if (t == 0) v[1] = 5;", "v[1]"),
    "shared": ("__shared__ {0} v[32]; if (t == 0) v[0] = 5;", "v[t]"),
}


@pytest.mark.parametrize(("ask", "leader"), [*itertools.product(ASKS, LEADERS)])
@pytest.mark.parametrize("kind", ["int", "short", "double"])
def test_only_the_lane_that_is_asked_must_have_a_value(ask: str, leader: str, kind: str) -> None:
    own = "template <typename T> __device__ T round(T v, int k) { return __shfl_sync(~0u, v, k); }"
    begin, place = LEADERS[leader]
    for lane, wanted in ((0, ""), (1, "UninitialisedReadError")):
        text = f"{begin.format(kind)} o[t] = {ASKS[ask].format(place, lane)};"
        assert verdict(text, 1, 32, GROUPS + own) == wanted


# ---------------------------------------------------------------------- lanes and threads
THROUGH = {
    "shared": "__shared__ int* q[32]; q[t] = &v; __syncthreads(); int* w = q[{0}];",
    "global": "((int**)p)[t] = &v; __syncthreads(); int* w = ((int**)p)[{0}];",
    "shuffle": "int* w = (int*)__shfl_sync(~0u, (unsigned long long)&v, {0});",
}
FOLLOWS = ["o[t] = *w;", "*w = 3;", "w[0] += 1;", "int& r = *w; o[t] = r;"]


@pytest.mark.parametrize(("way", "follow"), [*itertools.product(THROUGH, FOLLOWS)])
def test_the_address_of_a_local_variable_is_for_its_own_thread(way: str, follow: str) -> None:
    for lane, wanted in (("t", ""), ("31 - t", "OutOfBoundsError"), ("0", "OutOfBoundsError")):
        assert verdict(f"int v = t; {THROUGH[way].format(lane)} {follow}", 1, 32) == wanted


CALLS = {
    "shuffle": "__shfl_xor_sync(~0u, {0}, 16)", "tile": "w.shfl_xor({0}, 16)",
    "ballot": "__ballot_sync(~0u, ({0}) & 1)", "any": "w.any(({0}) == 31)",
    "match": "__match_any_sync(~0u, ({0}) & 3)", "reduce": "__reduce_add_sync(~0u, {0})",
    "warp": "(__syncwarp(), 7)", "sync": "(w.sync(), 7)",
}  # fmt: skip
SHAPES = {
    "plain": "r = C; r += C;",
    "else": "if (t < 16) { r = C; r += C; } else { r = C; r += C; }",
    "ifs": "if (t < 16) r = C; if (t >= 16) r = C; r += C;",
    "nested": "if (t < 16) { if (t < 8) r = C; else r = C; } else r = C; r += C;",
    "switch": "switch (t / 16) { case 0: r = C; break; default: r = C; } r += C;",
    "conditional": "r = t < 16 ? C : C; r += C;",
    "both": "int j = 0; if (t < 16) r = j++ + C + C; else r = C + C;",
    "break": "for (;;) { if (t < 16) { r = C; r += C; break; } r = C; r += C; break; }",
    "loop": "for (int k = 0; k < 2; k++) { if (t < 16) r += C; else r += C; }",
}
AWAY = [
    "if (t < 16) r = C;", "if (t < 16) r = C; else r = 1;", "if (t < 16) r = C; else if (t > 40) r = C;",
    "if (t < 16) r = C; else r = __all_sync(~0u, 1);",
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_lanes_meet_in_a_function_wherever_they_call_it(call: str) -> None:
    begin = "auto w = cg::tiled_partition<32>(cg::this_thread_block()); int r = 0; "
    found = {}
    for shape, text in SHAPES.items():
        body = text.replace("C", CALLS[call].format("t"))
        out = np.zeros(32, np.int32)
        source = f"{GROUPS} __global__ void k(int* o) {{ int t = threadIdx.x; {begin} {body} o[t] = r; }}"
        launch(source, "k", 1, 32, out)
        found[shape] = out.tolist()
    assert all(values == found["plain"] for values in found.values()), found
    for text in AWAY:
        body = begin + text.replace("C", CALLS[call].format("t"))
        assert verdict(body, 1, 32, GROUPS) == "WarpError", text


def test_an_adversary_lets_fewer_lanes_be_active() -> None:
    source = (
        "__global__ void k(int* n, int* o) { int t = threadIdx.x; unsigned m = __activemask(); int at; "
        "int rank = __popc(m & ((1u << t) - 1)); if (rank == 0) at = atomicAdd(n, __popc(m)); "
        "at = __shfl_sync(m, at, __ffs(m) - 1); o[at + rank] = __popc(m); }"
    )
    seen = []
    for seed in (None, 0, 1, 2):
        n, o = np.zeros(1, np.int32), np.zeros(32, np.int32)
        launch(source, "k", 1, 32, n, o, limits=InterpreterLimits(hostile=seed))
        seen.append(int(o.min()))
        assert (n[0], o.all()) == (32, True)
    assert seen[0] == 32 > max(seen[1:])


@pytest.mark.parametrize("scope", ["block", "device"])
@pytest.mark.parametrize("store", ["release", "relaxed"])
def test_a_release_seen_by_an_acquire_hands_over_shared_memory(store: str, scope: str) -> None:
    begin = f"""__shared__ int d, h; if (t == 0) h = 0; __syncthreads();
        cuda::atomic_ref<int, cuda::thread_scope_{scope}> H(h);"""
    sides = [
        "if (t == 33) { while (H.load(cuda::memory_order_acquire) == 0); o[0] = d; }",
        f"if (t == 1) {{ d = 5; H.store(1, cuda::memory_order_{store}); }}",
    ]
    for first, second in (sides, sides[::-1]):
        body, wanted = f"{begin} {first} {second}", "" if store == "release" else "RaceError"
        assert verdict(body, 1, 64, "#include <cuda/atomic>\n") == wanted, body


LAST = "int part[256], count; template <int order> __device__ void fence() "
LAST = f"#include <cuda/atomic>\n__device__ {LAST} {{ cuda::atomic_thread_fence(cuda::memory_order(order), "
LAST += "cuda::thread_scope_device); }"
BETWEEN = "__syncthreads(); if (t == 9) {}; __syncthreads();"
FENCED = {
    "__threadfence(); __syncthreads();": "",
    "__syncthreads(); if (t == 0) __threadfence();": "",
    "if (t < 20) __threadfence(); __syncthreads();": "RaceError",
    "if (t == 0) __threadfence(); __syncthreads();": "RaceError",
    "__threadfence_block(); if (t == 0) __threadfence(); __syncthreads();": "RaceError",
    # Any thread may fence between two barriers, as those that are seq_cst have one order; another one hasn't.
    BETWEEN.format("__threadfence()"): "",
    BETWEEN.format("__threadfence()") + "if (t == 9) __threadfence();": "",
    "if (t) __threadfence(); " + BETWEEN.format("__threadfence()"): "",
    BETWEEN.format("fence<5>()"): "",
    BETWEEN.format("fence<4>()"): "RaceError",
    BETWEEN.format("__threadfence_block()"): "RaceError",
    "if (t == 0) __threadfence();" + BETWEEN.format("fence<3>()"): "RaceError",
    "if (t == 0) __threadfence(); __syncthreads(); if (t == 9) __threadfence();": "RaceError",
    "__syncwarp(); if (t == 9) __threadfence(); __syncwarp();": "",
    "__syncwarp(); if (t == 9) __threadfence();": "RaceError",
}


@pytest.mark.parametrize("block", [32, 64])
@pytest.mark.parametrize("fences", FENCED)
def test_the_last_block_is_told_of_what_was_fenced_by_its_writer_or_behind_a_barrier(
    fences: str, block: int
) -> None:
    near = 32 if fences.startswith("__syncwarp") else block  # whose numbers are added up
    body = f"""__shared__ int last; int n = blockDim.x, sum = 0; part[blockIdx.x * n + t] = t;
        {fences} if (t == 0) last = atomicAdd(&count, 1) == 1; __syncthreads(); __threadfence();
        if (last) for (int b = 0; b < 2; b++) sum += part[b * n + (t + 1) % {near}];"""
    assert verdict(body, 2, block, LAST) == FENCED[fences]


ATOMIC = "cuda::atomic_ref<int, cuda::thread_scope_device>(flag)."
POLLS = {
    "atomicAdd(&flag, 0)": "RaceError",
    "atomicCAS(&flag, 2, 2)": "RaceError",
    "*(volatile int*)&flag": "RaceError",
    ATOMIC + "load(cuda::memory_order_relaxed)": "RaceError",
    ATOMIC + "fetch_or(0, cuda::memory_order_relaxed)": "RaceError",
    ATOMIC + "load(cuda::memory_order_acquire)": "",
    ATOMIC + "load()": "",
}
TURNS = ["while ({} == 0);", "int s; do s = {}; while (!s);", "for (;;) if ({}) break;"]


@pytest.mark.parametrize(("turn", "reader"), [*itertools.product(TURNS, (0, 1))])
@pytest.mark.parametrize("look", POLLS)
def test_a_relaxed_poll_tells_the_others_of_its_block_something_only_with_a_fence_behind_it(
    look: str, turn: str, reader: int
) -> None:
    poll, fence = turn.format(look), "__threadfence();"
    sides = {
        f"if (t == 0) {{ {poll} }} __syncthreads();": POLLS[look],
        f"if (t == 0) {{ {poll} {fence} }} __syncthreads();": "",
        f"if (t == 0) {{ {poll} }} __syncthreads(); {fence}": "",
    }
    for side, wanted in sides.items():
        send = f"if (t == 0) {{ part[1] = 1; {fence} atomicExch(&flag, 1); }}"
        body = f"if (blockIdx.x == {reader}) {{ {side} o[t] = part[1]; }} else {{ {send} }}"
        assert verdict(body, 2, 64, f"{LAST} __device__ int flag;") == wanted, body
