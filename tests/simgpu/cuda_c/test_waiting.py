"""Programs whose threads wait for each other: each with its result, and each with a twin that is wrong."""

from __future__ import annotations

import re

import numpy as np
import pytest

from simgpu import errors
from simgpu.cuda_c import Limits
from tests.simgpu.cuda_c import test_cooperative_groups
from tests.simgpu.cuda_c.support import launch

LOCK = """
__device__ void acquire(int* lock) { while (atomicCAS(lock, 0, 1) != 0); }
__device__ void release(int* lock) { __threadfence(); atomicExch(lock, 0); }
"""

BY_LOCK = (
    LOCK
    + """extern "C" __global__ void k(int* lock, int* total, const int* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    acquire(lock);
    *total = *total + x[i];
    release(lock);
}"""
)

IN_PLACE = """extern "C" __global__ void k(int* lock, int* total, const int* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    while (atomicCAS(lock, 0, 1) != 0) { __nanosleep(100); }
    *total = *total + x[i];
    __threadfence();
    atomicExch(lock, 0);
}"""

ONE_A_BLOCK = """extern "C" __global__ void k(int* lock, int* total, const int* x) {
    __shared__ int part; int t = threadIdx.x;
    if (t == 0) part = 0;
    __syncthreads();
    atomicAdd(&part, x[blockIdx.x * blockDim.x + t]);
    __syncthreads();
    if (t == 0) {
        while (atomicCAS(lock, 0, 1) != 0);
        *total += part;
        __threadfence();
        atomicExch(lock, 0);
    }
}"""

DONE = """extern "C" __global__ void k(int* lock, int* total, const int* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            *total = *total + x[i];
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}"""

TICKETS = """extern "C" __global__ void k(int* lock, int* total, const int* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int mine = atomicAdd(&lock[0], 1);
    while (atomicAdd(&lock[1], 0) != mine);
    *total = *total + x[i];
    __threadfence();
    atomicAdd(&lock[1], 1);
}"""

CRITICAL = {
    "lock in functions": BY_LOCK,
    "lock in place": IN_PLACE,
    "one a block": ONE_A_BLOCK,
    "done": DONE,
    "tickets": TICKETS,
}


def total(source: str, limits: Limits | None = None) -> int:
    x, sum_, lock = np.arange(96, dtype=np.int32), np.zeros(1, np.int32), np.zeros(2, np.int32)
    launch(source, "k", 3, 32, lock, sum_, x, limits=limits)
    return int(sum_[0])


@pytest.mark.parametrize("lanes", [32, 16384])
@pytest.mark.parametrize("name", CRITICAL)
class TestCriticalSections:
    """Each holds if the blocks run side by side, and if they run one after the other."""

    def test_sum(self, name: str, lanes: int) -> None:
        assert total(CRITICAL[name], Limits(batch_lanes=lanes)) == 96 * 95 // 2

    def test_without_a_fence_it_is_a_race(self, name: str, lanes: int) -> None:
        with pytest.raises(errors.RaceError) as caught:
            total(CRITICAL[name].replace("__threadfence();", ""), Limits(batch_lanes=lanes))
        assert caught.value.site.array == "total"

    def test_without_a_release_it_is_a_deadlock(self, name: str, lanes: int) -> None:
        source = re.sub(r"atomic(Exch\(lock, 0|Add\(&lock\[1\], 1)\)", "", CRITICAL[name])
        with pytest.raises(errors.DeadlockError, match="while"):
            total(source, Limits(batch_lanes=lanes))


SCAN = """__device__ int next = 0;
extern "C" __global__ void scan(const int* x, int* y, volatile int* ends, int* flags) {
    __shared__ int s[64]; __shared__ int block; __shared__ int before;
    int t = threadIdx.x;
    if (t == 0) block = atomicAdd(&next, 1);
    __syncthreads();
    int b = block;
    s[t] = x[b * 64 + t];
    __syncthreads();
    for (int d = 1; d < 64; d *= 2) {
        int v = t >= d ? s[t - d] : 0;
        __syncthreads();
        s[t] += v;
        __syncthreads();
    }
    if (t == 63) {
        int sum = 0;
        if (b > 0) {
            while (atomicAdd(&flags[b - 1], 0) == 0);
            sum = ends[b - 1];
        }
        before = sum;
        ends[b] = sum + s[63];
        __threadfence();
        atomicExch(&flags[b], 1);
    }
    __syncthreads();
    y[b * 64 + t] = s[t] + before;
}"""


def scan(source: str, blocks: int = 12, **limits: int) -> tuple[list[int], list[int]]:
    x = np.random.default_rng(3).integers(0, 9, blocks * 64).astype(np.int32)
    y, ends, flags = np.zeros_like(x), np.zeros(blocks, np.int32), np.zeros(blocks, np.int32)
    launch(source, "scan", blocks, 64, x, y, ends, flags, limits=Limits(**limits))
    return y.tolist(), np.cumsum(x).tolist()


class TestDominoScan:
    @pytest.mark.parametrize("lanes", [64, 256, 16384])
    @pytest.mark.parametrize("resident", [1, 5, None])
    def test_each_block_waits_for_the_one_before(self, lanes: int, resident: int | None) -> None:
        more = {} if resident is None else {"resident_blocks": resident}
        found, right = scan(SCAN, batch_lanes=lanes, **more)
        assert found == right

    def test_flags_that_are_volatile(self) -> None:
        source = SCAN.replace("int* flags", "volatile int* flags")
        source = source.replace("atomicAdd(&flags[b - 1], 0)", "flags[b - 1]")
        source = source.replace("atomicExch(&flags[b], 1)", "flags[b] = 1")
        found, right = scan(source)
        assert found == right
        with pytest.raises(errors.RunawayKernelError):
            scan(source.replace("volatile int* flags", "int* flags"))

    def test_waiting_in_a_function_whose_value_is_used(self) -> None:
        source = """__device__ int fetch(volatile int* ends, int* flags, int b) {
            while (atomicAdd(&flags[b], 0) == 0) { if (b < 0) return 0; } return ends[b]; }
        """ + SCAN.replace(
            "while (atomicAdd(&flags[b - 1], 0) == 0);\n            sum = ends[b - 1];",
            "sum = fetch(ends, flags, b - 1);",
        )
        found, right = scan(source)
        assert found == right
        assert scan(source.replace("sum = fetch", "sum = 0 + fetch"))[0] == right

    def test_without_a_fence_it_is_a_race(self) -> None:
        with pytest.raises(errors.RaceError):
            scan(SCAN.replace("volatile", "").replace("__threadfence();", ""))

    def test_without_the_flag_it_is_a_deadlock(self) -> None:
        with pytest.raises(errors.DeadlockError) as caught:
            scan(SCAN.replace("atomicExch(&flags[b], 1);", ""))
        assert caught.value.site.thread == (63, 0, 0)

    def test_blocks_that_wait_for_later_ones_need_a_place_for_all(self) -> None:
        source = SCAN.replace("block = atomicAdd(&next, 1)", "block = 11 - blockIdx.x")
        found, right = scan(source, batch_lanes=128, resident_blocks=12)
        assert found == right
        with pytest.raises(errors.DeadlockError, match="11 blocks fit") as caught:
            scan(source, batch_lanes=128, resident_blocks=11)
        assert "the other one begins only when" in str(caught.value)


MEET = """
__device__ void meet(int* count, int goal) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(count, 1);
        while (atomicAdd(count, 0) < goal);
    }
    __syncthreads();
}
"""
GRID = MEET + test_cooperative_groups.GRID.replace("b, int n", "b, int* count, int n").replace(
    "grid.sync()", "meet(count, (step + 1) * gridDim.x)"
)


def smooth(source: str, **limits: int) -> bool:
    return test_cooperative_groups.smooth(source, np.zeros(1, np.int32), **limits)


class TestMembers:
    def test_a_loop_that_looks_by_a_member_function_waits(self) -> None:
        source = """template <typename T> struct Cell {
            int* full; T* value;
            __device__ void send(T x) { *value = x; __threadfence(); atomicExch(full, 1); }
            __device__ bool poll(T& x) { if (atomicAdd(full, 0) == 0) return false;
                __threadfence(); x = *value; return true; }
        };
        extern "C" __global__ void k(int* cells, int* o) {
            Cell<int> one = {cells, cells + 1};
            if (blockIdx.x == 0) { int x = 0; bool ready = false; while (!ready) { ready = one.poll(x); } o[0] = x; }
            else { one.send(7); } }"""
        o = np.zeros(1, np.int32)
        launch(source, "k", 2, 1, np.zeros(2, np.int32), o)
        assert o[0] == 7
        with pytest.raises(errors.DeadlockError):
            launch(source.replace("one.send(7);", ""), "k", 2, 1, np.zeros(2, np.int32), o)


RING = """__device__ void send(int* tail, int* turns, int* values, int x) {
    int place = atomicAdd(tail, 1), slot = place % 2;
    while (atomicAdd(&turns[slot], 0) != place);
    __threadfence();
    values[slot] = x;
    __threadfence();
    atomicExch(&turns[slot], place + 1);
}
extern "C" __global__ void k(int* tail, int* turns, int* values, int* o) {
    int n = gridDim.x - 1;
    if (blockIdx.x) { for (int i = 0; i < 5; i++) send(tail, turns, values, blockIdx.x * 10 + i); return; }
    for (int place = 0; place < 5 * n; place++) {
        while (atomicAdd(&turns[place % 2], 0) != place + 1);
        __threadfence();
        o[place] = values[place % 2];
        __threadfence();
        atomicExch(&turns[place % 2], place + 2);
    }
}"""


class TestRing:
    """Places of a ring are used again, by whoever comes next: each turn is handed on by a fence and an atomic."""

    def test_nothing_is_lost(self) -> None:
        o, turns = np.zeros(20, np.int32), np.arange(2, dtype=np.int32)
        launch(RING, "k", 5, 1, np.zeros(1, np.int32), turns, np.zeros(2, np.int32), o)
        assert sorted(o.tolist()) == [10 * b + i for b in range(1, 5) for i in range(5)]

    def test_without_a_fence_it_is_a_race(self) -> None:
        source = RING.replace("values[slot] = x;\n    __threadfence();", "values[slot] = x;")
        o, turns = np.zeros(20, np.int32), np.arange(2, dtype=np.int32)
        with pytest.raises(errors.RaceError):
            launch(source, "k", 5, 1, np.zeros(1, np.int32), turns, np.zeros(2, np.int32), o)


class TestGridBarrier:
    @pytest.mark.parametrize("lanes", [32, 64, 16384])
    def test_stencil(self, lanes: int) -> None:
        assert smooth(GRID, batch_lanes=lanes)

    def test_a_goal_that_is_too_high_is_a_deadlock(self) -> None:
        with pytest.raises(errors.DeadlockError, match="has ended, or waits itself"):
            smooth(GRID.replace("(step + 1)", "(step + 2)"))

    @pytest.mark.parametrize("lanes", [32, 16384])
    def test_more_blocks_than_fit(self, lanes: int) -> None:
        with pytest.raises(errors.DeadlockError, match="3 blocks fit") as caught:
            smooth(GRID, batch_lanes=lanes, resident_blocks=3)
        assert caught.value.site.line == 7


WITHIN = """extern "C" __global__ void k(int* o) {
    __shared__ volatile int flag; int i = threadIdx.x;
    if (i == 31) flag = 0;
    __syncthreads();
    if (i < 31) { while (flag == 0); }
    else { flag = 1; }
    __syncwarp();
    o[i] = i + __shfl_sync(0xffffffff, i + flag, 31);
}"""


class TestWithinAWarp:
    """Threads of one warp make progress independently, as since Volta."""

    def test_a_lane_waits_for_another(self) -> None:
        o = np.zeros(32, np.int32)
        launch(WITHIN, "k", 1, 32, o)
        assert o.tolist() == [32 + i for i in range(32)]

    def test_nobody_sets_the_flag(self) -> None:
        with pytest.raises(errors.DeadlockError):
            launch(WITHIN.replace("flag = 1", ""), "k", 1, 32, np.zeros(32, np.int32))

    def test_a_lane_that_does_not_come_to_the_shuffle(self) -> None:
        source = WITHIN.replace("__syncwarp();", "if (i == 3) return;")
        launch(source, "k", 1, 32, np.zeros(32, np.int32))
        source = WITHIN.replace("__syncwarp();", "if (i != 3)")
        source = source.replace("31);", "31); __syncthreads();")
        with pytest.raises(errors.WarpError, match="lane 3"):
            launch(source, "k", 1, 32, np.zeros(32, np.int32))

    def test_a_barrier_waits_for_those_who_spin(self) -> None:
        source = """extern "C" __global__ void k(int* o, int* flag) { int i = threadIdx.x;
            if (i == 0) { while (atomicAdd(flag, 0) == 0); o[0] = 5; }
            if (i == 40) { atomicExch(flag, 1); }
            %s int v = __syncthreads_count(o[0] == 5);
            o[i + 1] = v; }"""
        o, flag = np.zeros(65, np.int32), np.zeros(1, np.int32)
        launch(source % "__syncthreads();", "k", 1, 64, o, flag)
        assert o.tolist() == [5] + [64] * 64
        with pytest.raises(errors.RaceError):
            launch(source % "", "k", 1, 64, o * 0, flag * 0)
        source = source.replace("o[0] == 5", "1")
        with pytest.raises(errors.BarrierError):
            launch(source % "if (i != 7) __syncthreads();", "k", 1, 64, o * 0, flag * 0)

    def test_a_loop_that_prints_while_it_waits_lets_the_others_go_on(self) -> None:
        source = """extern "C" __global__ void k(int* flag) {
            if (threadIdx.x < 31) { while (atomicAdd(flag, 0) == 0) printf("not yet"); }
            else atomicExch(flag, 1); }"""
        flag = np.zeros(1, np.int32)
        told = launch(source, "k", 1, 32, flag, limits=Limits(step_budget=1000)).printed
        assert flag[0] == 1
        assert "not yet" in told

    def test_what_a_loop_changes_by_a_reference_is_seen(self) -> None:
        source = """struct Timer { int left; __device__ bool poll() { return left-- > 0; } };
        __device__ void wait(Timer& timer, int* flag) {
            bool more = true; while (more) { more = timer.poll() || atomicAdd(flag, 0); } }
        extern "C" __global__ void k(int* flag, int* o) { Timer t = {5}; wait(t, flag); o[0] = t.left; }"""
        o = np.zeros(1, np.int32)
        launch(source, "k", 1, 1, np.zeros(1, np.int32), o)
        assert o[0] == -1

    def test_a_lane_that_is_done_waits_for_the_vote_of_those_who_count(self) -> None:
        source = """extern "C" __global__ void k(int* o) { int left = threadIdx.x, rounds = 0; bool all = false;
            while (!all) { if (left > 0) left--; all = __all_sync(0xffffffff, left == 0); rounds++; }
            o[threadIdx.x] = rounds + atomicAdd(&o[threadIdx.x], 0); }"""
        o = np.zeros(32, np.int32)
        launch(source, "k", 1, 32, o)
        assert o.tolist() == [31] * 32


class TestEndless:
    @pytest.mark.parametrize(
        "text",
        [
            "while (true) {}",
            "int j = 3; while (j == i) { int k = j; k++; }",
            "while (o[1] == 0) { }",
            "int j = 0; while (o[1] == 0) { j++; }",
            "int j = i; do { j = j % 2 ? j : 1; } while (j);",
            'while (i < 40) printf("again");',
        ],
    )
    def test_a_loop_that_changes_nothing_is_seen_at_once(self, text: str) -> None:
        source = f'extern "C" __global__ void k(int* o) {{ int i = threadIdx.x; {text} o[i] = 1; }}'
        with pytest.raises(errors.RunawayKernelError, match="all turns are the same"):
            launch(source, "k", 1, 32, np.zeros(32, np.int32), limits=Limits(step_budget=1000))

    def test_a_long_loop_is_none(self) -> None:
        source = """extern "C" __global__ void k(int* o) { int i = threadIdx.x, n = 0;
            long long start = clock64(); while (clock64() - start < 5000);
            while (n < 1000 + i) { n++; } o[i] = n; }"""
        o = np.zeros(32, np.int32)
        launch(source, "k", 1, 32, o)
        assert o.tolist() == [1000 + i for i in range(32)]


PATIENT = """extern "C" __global__ void k(int* flag, int* out) {
    WAIT
    out[threadIdx.x] = turns > 1000 ? -1 : 1;
}"""
LOOPS = {
    "counts up": "unsigned turns = 0; while (atomicAdd(flag, 0) == 0) {"
    " if (++turns > 4000000u) break; __nanosleep(100); }",
    "counts in a for": "int turns = 0; for (; turns < 4000000; ++turns) {"
    " if (atomicAdd(flag, 0) != 0) break; __nanosleep(100); }",
    "counts in the test": "int turns = 0; while (turns < 4000000 && atomicAdd(flag, 0) == 0) {"
    " turns++; __nanosleep(100); }",
}


class TestPatience:
    """A loop that sleeps and counts its turns waits like any other, and gives up when nobody is left."""

    @pytest.mark.parametrize("name", LOOPS)
    def test_it_gives_up(self, name: str) -> None:
        out = np.zeros(2, np.int32)
        source = PATIENT.replace("WAIT", LOOPS[name])
        launch(source, "k", 1, 2, np.zeros(1, np.int32), out)
        assert out.tolist() == [-1, -1]

    @pytest.mark.parametrize("name", LOOPS)
    def test_but_not_while_somebody_comes(self, name: str) -> None:
        out = np.zeros(2, np.int32)
        loop = LOOPS[name].replace("unsigned turns", "turns").replace("int turns", "turns")
        wait = f"int turns = 0; if (threadIdx.x == 0) {{ {loop} }}"
        wait += " else { for (int i = 0; i < 100; ++i) __nanosleep(10); atomicExch(flag, 1); }"
        launch(PATIENT.replace("WAIT", wait), "k", 1, 2, np.zeros(1, np.int32), out)
        assert out.tolist() == [1, 1]

    def test_a_bound_that_is_never_reached_is_a_deadlock(self) -> None:
        source = PATIENT.replace("WAIT", LOOPS["counts up"].replace("4000000u", "4000000000u"))
        with pytest.raises(errors.DeadlockError):
            launch(source, "k", 1, 2, np.zeros(1, np.int32), np.zeros(2, np.int32))


# ---------------------------------------------------------------------- volatile, wherever it stands; do ... while
VOLATILE = {
    "a variable of the file": (
        "__device__ volatile int flag;\n"
        "__global__ void k(int* f, int* o) { if (blockIdx.x) { while (!flag); o[0] = 1; } "
        "else { __threadfence(); flag = 1; } }"
    ),
    "a member": (
        "struct S { int before; volatile int f; };\n"
        "__global__ void k(S* s, int* o) { if (blockIdx.x) { while (!s->f); o[0] = 1; } else s->f = 1; }"
    ),
    "a reference": (
        "__device__ void wait(volatile int& f) { while (!f); }\n"
        "__global__ void k(int* f, int* o) { if (blockIdx.x) { wait(*f); o[0] = 1; } else atomicExch(f, 1); }"
    ),
}


@pytest.mark.parametrize("where", VOLATILE)
def test_volatile_counts_wherever_it_stands(where: str) -> None:
    flag, out = np.zeros(2, np.int32), np.zeros(1, np.int32)
    launch(VOLATILE[where], "k", 2, 1, flag, out)
    assert out[0] == 1
    with pytest.raises((errors.RunawayKernelError, errors.RaceError)):
        launch(VOLATILE[where].replace("volatile ", ""), "k", 2, 1, flag * 0, out)


@pytest.mark.parametrize("threads", [1, 4])
def test_a_lock_may_be_taken_by_the_test_of_a_do_loop(threads: int) -> None:
    source = (
        "__global__ void k(int* lock, int* x) { do { } while (atomicCAS(lock, 0, 1) != 0); x[0] += 1; "
        "__threadfence(); atomicExch(lock, 0); }"
    )
    lock, x = np.zeros(1, np.int32), np.zeros(1, np.int32)
    launch(source, "k", threads, 1, lock, x)
    assert x[0] == threads
    with pytest.raises(errors.DeadlockError, match="waits for ever"):
        launch(source, "k", threads, 1, lock + 1, x)


def test_a_number_may_be_drawn_by_the_test_of_a_do_loop() -> None:
    source = (
        "__global__ void k(unsigned* t, int* x) { unsigned p; do { p = atomicAdd(t, 0u); } "
        "while (atomicCAS(t, p, p + 1) != p); x[p] = 1; }"
    )
    t, x = np.zeros(1, np.uint32), np.zeros(4, np.int32)
    launch(source, "k", 4, 1, t, x)
    assert t[0] == 4
    assert x.tolist() == [1] * 4


# ---------------------------------------------------------------------- messages between blocks
FENCE = "__threadfence();"
HAND_OVER = (
    "__global__ void k(int* flag, int* cell, int* out) {{ if (blockIdx.x == 0) {{ {send} }} "
    "else {{ while ({look} == 0); __threadfence(); out[0] = cell[1]; }} }}"
)
LOOK = "atomicAdd(flag, 0)"


def handed_over(send: str, look: str = LOOK) -> int:
    flag, cell, out = np.zeros(2, np.int32), np.zeros(2, np.int32), np.zeros(1, np.int32)
    launch(HAND_OVER.format(send=send, look=look), "k", 2, 1, flag, cell, out)
    return int(out[0])


@pytest.mark.parametrize(
    ("send", "look"),
    [
        (f"cell[1] = 42; {FENCE} atomicExch(flag, 1);", LOOK),
        (f"cell[1] = 42; {FENCE} atomicExch(flag, 1);", "atomicCAS(flag, 5, 5)"),
        (f"cell[1] = 42; {FENCE} atomicExch(flag, 1);", "*(volatile int*)flag"),
        (f"cell[1] = 42; {FENCE} *(volatile int*)flag = 1;", "*(volatile int*)flag"),
        (f"cell[1] = 42; {FENCE} atomicExch_system(flag, 1);", "atomicAdd_system(flag, 0)"),
        (f"cell[0] = 1; {FENCE} cell[1] = 42; {FENCE} atomicOr(flag, 1); cell[0] = 2;", LOOK),
    ],
)
def test_what_lies_before_the_fence_is_told_by_the_flag_behind_it(send: str, look: str) -> None:
    assert handed_over(send, look) == 42


@pytest.mark.parametrize(
    ("send", "look"),
    [
        ("cell[1] = 42; atomicExch(flag, 1);", LOOK),
        (f"cell[1] = 42; atomicExch(flag, 1); {FENCE}", LOOK),
        (f"atomicExch(flag, 1); cell[1] = 42; {FENCE}", LOOK),
        (f"{FENCE} cell[1] = 42; atomicExch(flag, 1);", LOOK),
        ("cell[1] = 42; __threadfence_block(); atomicExch(flag, 1);", LOOK),
        (f"cell[1] = 42; {FENCE} atomicExch_block(flag, 1);", "atomicAdd_block(flag, 0)"),
        (f"cell[1] = 42; {FENCE} atomicExch_block(flag, 1);", LOOK),
        (f"cell[1] = 42; {FENCE} flag[0] = 1;", LOOK),
        (f"atomicExch(flag, 1); cell[1] = 42; {FENCE} atomicAdd(flag, 0);", LOOK),
    ],
)
def test_a_fence_in_the_wrong_place_or_of_the_wrong_scope_is_a_race(send: str, look: str) -> None:
    with pytest.raises(errors.RaceError):
        handed_over(send, look)


MEETING = (
    "__global__ void k(int* n, int* x, int* o) {{ int b = blockIdx.x; x[b] = b + 1; {count} "
    "while (atomicAdd(n, 0) < gridDim.x); __threadfence(); o[b] = x[(b + 1) % gridDim.x]; }}"
)


def test_blocks_that_meet_by_a_counter_have_published_what_they_did() -> None:
    n, x, o = np.zeros(1, np.int32), np.zeros(4, np.int32), np.zeros(4, np.int32)
    launch(MEETING.format(count=f"{FENCE} atomicAdd(n, 1);"), "k", 4, 1, n, x, o)
    assert o.tolist() == [2, 3, 4, 1]
    with pytest.raises(errors.RaceError, match="First the data, then __threadfence"):
        launch(MEETING.format(count=f"atomicAdd(n, 1); {FENCE}"), "k", 4, 1, n * 0, x, o)


def test_the_last_of_many_blocks_knows_what_all_others_did() -> None:
    source = (
        "__global__ void k(unsigned* n, int* x, int* o) { int b = blockIdx.x; x[b] = b; __threadfence(); "
        "if (atomicInc(n, gridDim.x) == gridDim.x - 1) { int s = 0; "
        "for (int k = 0; k < gridDim.x; k++) s += x[k]; o[0] = s; } }"
    )
    n, x, o = np.zeros(1, np.uint32), np.zeros(64, np.int32), np.zeros(1, np.int32)
    launch(source, "k", 64, 1, n, x, o)
    assert o[0] == 63 * 32
    with pytest.raises(errors.RaceError):
        launch(source.replace("__threadfence();", ""), "k", 64, 1, n * 0, x, o)


def test_what_one_block_was_told_it_can_pass_on() -> None:
    source = (
        "__global__ void k(int* f, int* x, int* o) { int b = blockIdx.x; "
        "if (b == 0) { x[0] = 7; __threadfence(); atomicExch(f, 1); } "
        "if (b == 1) { while (atomicAdd(f, 0) == 0); FENCE atomicExch(f + 1, 1); } "
        "if (b == 2) { while (atomicAdd(f + 1, 0) == 0); __threadfence(); o[0] = x[0]; } }"
    )
    f, x, o = np.zeros(2, np.int32), np.zeros(1, np.int32), np.zeros(1, np.int32)
    launch(source.replace("FENCE", "__threadfence();"), "k", 3, 1, f, x, o)
    assert o[0] == 7
    with pytest.raises(errors.RaceError):
        launch(source.replace("FENCE", ""), "k", 3, 1, f * 0, x, o)
