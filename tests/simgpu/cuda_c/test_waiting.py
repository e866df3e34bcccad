"""Programs whose threads wait for each other: each with its result, and each with a twin that is wrong."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from simgpu import errors
from simgpu.cuda_c import InterpreterLimits, compile_source
from tests.simgpu.cuda_c import test_cooperative_groups
from tests.simgpu.cuda_c.support import launch, made, memory

pytestmark = pytest.mark.rests_on("simgpu")

WAITING = Path(__file__).with_name("waiting.cu").read_text()
KERNEL = """
__device__ void acquire(int* lock) { while (atomicCAS(lock, 0, 1) != 0); __threadfence(); }
__device__ void release(int* lock) { __threadfence(); atomicExch(lock, 0); }
extern "C" __global__ void k(int* lock, int* total, const int* x) {
    __shared__ int part; bool done = false; int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
"""
ADD = "*total = *total + x[i]; "
RELEASE = "__threadfence(); atomicExch(lock, 0); "
TAKEN = "__threadfence_system(); "
# How a block or a thread comes to be alone in its critical section, and leaves it.
CRITICAL = {
    "lock in functions": f"acquire(lock); {ADD} release(lock);",
    "lock in place": f"while (atomicCAS(lock, 0, 1) != 0) {{ __nanosleep(100); }} {TAKEN + ADD + RELEASE}",
    "lock in the test of a do loop": f"do {{ }} while (atomicCAS(lock, 0, 1) != 0); {TAKEN + ADD + RELEASE}",
    "one a block": f"""if (t == 0) part = 0;
        __syncthreads(); atomicAdd(&part, x[i]); __syncthreads();
        if (t == 0) {{ while (atomicCAS(lock, 0, 1) != 0); {TAKEN} *total += part; {RELEASE} }}""",
    "done": f"while (!done) {{ if (atomicCAS(lock, 0, 1) == 0) {{ {TAKEN + ADD + RELEASE} done = true; }} }}",
    "tickets": f"""int mine = atomicAdd(&lock[0], 1); while (atomicAdd(&lock[1], 0) != mine);
        {TAKEN + ADD} __threadfence(); atomicAdd(&lock[1], 1);""",
}


def left(source: str, name: str, grid: int, block: int, *sizes: int, **limits: int) -> list[int]:
    """Run a kernel on arrays of zeros, and return what it leaves in the last one."""
    arrays = [np.zeros(size, np.int32) for size in sizes]
    launch(source, name, grid, block, *arrays, limits=InterpreterLimits(**limits))
    return arrays[-1].tolist()


def total(text: str, lanes: int) -> int:
    x, sum_, lock = np.arange(96, dtype=np.int32), np.zeros(1, np.int32), np.zeros(2, np.int32)
    limits = InterpreterLimits(batch_lanes=lanes)
    launch(f"{KERNEL}{text} }}", "k", 3, 32, lock, sum_, x, limits=limits)
    return int(sum_[0])


@pytest.mark.parametrize("lanes", [32, 16384])
@pytest.mark.parametrize("text", CRITICAL.values(), ids=list(CRITICAL))
def test_critical_sections(text: str, lanes: int) -> None:
    """Each holds if the blocks run side by side, and if they run one after the other."""
    assert total(text, lanes) == 96 * 95 // 2
    unfenced = text.replace("release(lock)", RELEASE).replace("__threadfence();", "")
    with pytest.raises(errors.RaceError) as caught:
        total(unfenced, lanes)
    assert caught.value.site.array == "total"
    kept = re.sub(r"release\(lock\)|atomic(Exch\(lock, 0|Add\(&lock\[1\], 1)\)", "", text)
    with pytest.raises(errors.DeadlockError, match="while"):
        total(kept, lanes)


def scan(source: str, **limits: int) -> bool:
    """Tell if twelve blocks give the right sums."""
    x = np.random.default_rng(3).integers(0, 9, 12 * 64).astype(np.int32)
    y, ends, flags = np.zeros_like(x), np.zeros(12, np.int32), np.zeros(12, np.int32)
    launch(source, "scan", 12, 64, x, y, ends, flags, limits=InterpreterLimits(**limits))
    return y.tolist() == np.cumsum(x).tolist()


@pytest.mark.parametrize("lanes", [32, 128, 16384])
@pytest.mark.parametrize("blocks", [4, 16, 32])
def test_blocks_that_wait_get_their_share_of_the_work(blocks: int, lanes: int) -> None:
    """Nobody does all of it while the others look at memory in vain, or have not begun."""
    shares = left(WAITING, "tree", blocks, 32, 3, 1024, blocks, batch_lanes=lanes)
    drawn = left(WAITING, "door", blocks, 1, 1, 1, blocks, batch_lanes=lanes // 32)
    assert sum(shares) == sum(drawn) == 511
    assert max(*shares, *drawn) < 2 * 511 / blocks


@pytest.mark.parametrize("lanes", [64, 256, 16384])
@pytest.mark.parametrize("more", [{"resident_blocks": 1}, {"resident_blocks": 5}, {}])
def test_each_block_of_a_scan_waits_for_the_one_before(lanes: int, more: dict[str, int]) -> None:
    assert scan(WAITING, batch_lanes=lanes, **more)


def test_flags_of_a_scan_may_be_volatile() -> None:
    source = WAITING.replace("atomicAdd(&flags[b - 1], 0)", "flags[b - 1]")
    source = source.replace("atomicExch(&flags[b], 1)", "flags[b] = 1")
    source = source.replace("sum = ends", "__threadfence(); sum = ends")
    volatile = source.replace("int* flags", "volatile int* flags")
    assert scan(volatile)
    for fence in ("__threadfence(); sum", "__threadfence();\n        "):  # reader's, writer's
        with pytest.raises(errors.RaceError, match="'ends'"):
            scan(volatile.replace(fence, fence[16:]))
    with pytest.raises(errors.RunawayKernelError):
        scan(source)


def test_waiting_in_a_function_whose_value_is_used() -> None:
    source = """__device__ int fetch(volatile int* ends, int* flags, int b) {
        while (atomicAdd(&flags[b], 0) == 0) { if (b < 0) return 0; } return ends[b]; }
    """ + WAITING.replace(
        "while (atomicAdd(&flags[b - 1], 0) == 0);\n            sum = ends[b - 1];",
        "sum = fetch(ends, flags, b - 1);",
    )
    assert scan(source)


def test_mistakes_of_a_scan() -> None:
    with pytest.raises(errors.RaceError):
        scan(WAITING.replace("volatile", "").replace("__threadfence();", ""))
    with pytest.raises(errors.DeadlockError) as caught:
        scan(WAITING.replace("atomicExch(&flags[b], 1);", ""))
    assert caught.value.site.thread == (63, 0, 0)
    # Blocks that wait for later ones need a place for all.
    source = WAITING.replace("block = atomicAdd(&tickets, 1)", "block = 11 - blockIdx.x")
    assert scan(source, batch_lanes=128, resident_blocks=12)
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
        __threadfence();
    }
    __syncthreads();
}
"""
GRID = MEET + test_cooperative_groups.GRID.replace("b, int n", "b, int* count, int n").replace(
    "grid.sync()", "meet(count, (step + 1) * gridDim.x)"
)


def smooth(source: str, **limits: int) -> bool:
    return test_cooperative_groups.smooth(source, np.zeros(1, np.int32), **limits)


def test_places_of_a_ring_are_used_again_by_whoever_comes_next() -> None:
    """Each turn is handed on by a fence and an atomic."""

    def run(source: str) -> list[int]:
        o, turns = np.zeros(20, np.int32), np.arange(2, dtype=np.int32)
        launch(source, "ring", 5, 1, np.zeros(1, np.int32), turns, np.zeros(2, np.int32), o)
        return sorted(o.tolist())

    assert run(WAITING) == [10 * b + i for b in range(1, 5) for i in range(5)]
    with pytest.raises(errors.RaceError):
        run(WAITING.replace("values[slot] = x;\n    __threadfence();", "values[slot] = x;"))


@pytest.mark.parametrize("lanes", [32, 64, 16384])
def test_a_barrier_of_the_grid(lanes: int) -> None:
    assert smooth(GRID, batch_lanes=lanes)
    with pytest.raises(errors.DeadlockError, match="3 blocks fit") as caught:
        smooth(GRID, batch_lanes=lanes, resident_blocks=3)
    assert caught.value.site.line == 7
    with pytest.raises(errors.DeadlockError, match="has ended or waits itself"):
        smooth(GRID.replace("(step + 1)", "(step + 2)"), batch_lanes=lanes)


@pytest.mark.parametrize(
    ("name", "shape", "expected"),
    [
        ("cell", (2, 1, 2, 1), [7]),
        ("within", (1, 32, 32), [32 + i for i in range(32)]),
        ("spinning", (1, 64, 1, 65), [5] + [64] * 64),
        ("timed", (1, 1, 1, 1), [-1]),
        ("vote", (1, 32, 32), [31] * 32),
        ("long_loop", (1, 32, 32), [1000 + i for i in range(32)]),
    ],
)  # fmt: skip
def test_what_waiting_threads_leave(name: str, shape: tuple[int, ...], expected: list[int]) -> None:
    assert left(WAITING, name, *shape) == expected


@pytest.mark.parametrize(
    ("name", "right", "wrong", "shape", "kind", "message"),
    [
        ("cell", "one.send(7);", "", (2, 1, 2, 1), errors.DeadlockError, None),
        ("within", "flag = 1", "", (1, 32, 32), errors.DeadlockError, None),
        ("within", "__syncwarp();\n    o[i] = i + __shfl_sync(0xffffffff, i + flag, 31);",
         "if (i != 3) o[i] = __shfl_sync(0xffffffff, i, 31); __syncthreads();", (1, 32, 32), errors.WarpError, "lane 3"),
        ("spinning", "__syncthreads();", "", (1, 64, 1, 65), errors.RaceError, None),
        ("spinning", "__syncthreads(); int v = __syncthreads_count(o[0] == 5)",
         "if (i != 7) __syncthreads(); int v = __syncthreads_count(1)", (1, 64, 1, 65), errors.BarrierError, None),
    ],
)  # fmt: skip
def test_mistakes(
    name: str,
    right: str,
    wrong: str,
    shape: tuple[int, ...],
    kind: type[Exception],
    message: str | None,
) -> None:
    before, head, kernel = WAITING.partition(f"void {name}(")
    assert right in kernel
    with pytest.raises(kind, match=message):
        left(before + head + kernel.replace(right, wrong, 1), name, *shape)


def test_a_lane_that_has_left_is_not_waited_for() -> None:
    left(WAITING.replace("__syncwarp();", "if (i == 3) return;"), "within", 1, 32, 32)


@pytest.mark.parametrize("count", [1, 3, 1990])
@pytest.mark.parametrize(
    ("test", "end"),
    [("n-- > 0", -1), ("n-- >= 0", -2), ("--n >= 0", -1), ("n-- > -10", -11), ("--n != -3", -3)],
)
def test_a_counter_may_give_up_below_zero(test: str, end: int, count: int) -> None:
    source = f"""extern "C" __global__ void k(int* flag, int* out) {{
        int n = {count}; while (atomicAdd(flag, 0) == 0 && {test}); out[threadIdx.x] = n; }}"""
    assert left(source, "k", 1, 32, 1, 32) == [end] * 32


# A thread polls until it is ready, and a warp goes round together until all of its lanes are.
VOTES = {
    "test": "while (__any_sync(~0u, !s)) { rounds++; if (!s) s = poll(left, polls); }",
    "test at the end": "do { rounds++; if (!s) s = poll(left, polls); } while (!__all_sync(~0u, s));",
    "body": "while (!all) { rounds++; if (!s) s = poll(left, polls); all = __all_sync(~0u, s); }",
    "shuffles": """while (!all) { rounds++; if (!s) s = poll(left, polls); all = s;
        for (int d = 16; d; d /= 2) all &= __shfl_xor_sync(~0u, all, d); }""",
    "barrier": "do { rounds++; if (!s) s = poll(left, polls); __syncwarp(); } while (!__all_sync(~0u, s));",
}


@pytest.mark.parametrize("vote", VOTES)
@pytest.mark.parametrize("naps", ["__nanosleep(100)", ""])
@pytest.mark.parametrize("often", ["polls == 0", "polls % 2 == 0", "true"])
def test_lanes_of_several_warps_that_are_late_are_waited_for(
    vote: str, naps: str, often: str
) -> None:
    source = f"""__device__ int seen[64];
        __device__ bool poll(int& left, int& polls) {{
            if (threadIdx.x % 2 && {often}) for (long long end = clock64() + 900; clock64() < end;) {{ {naps}; }}
            atomicExch(&seen[threadIdx.x], 1);
            if (++polls == 2) atomicAdd(&seen[threadIdx.x ^ 1], 0);
            return left-- <= 0;
        }}
        extern "C" __global__ void k(const int* given, int* out) {{
            int t = threadIdx.x, left = given[t], polls = 0, rounds = 0, s = 0, all = 0;
            {VOTES[vote]} out[t] = rounds; }}"""
    given = np.random.default_rng(2).integers([[0], [3]], [[6], [9]], (2, 32), np.int32)
    left, out = memory(given), memory(np.zeros((2, 32), np.int32))
    begun = compile_source(source).begin("k", (1, 1, 1), (64, 1, 1), [left, out])
    assert any(begun.go_on() for _ in range(4000))
    rounds = out.view(np.dtype(np.int32)).reshape(2, 32)
    assert [set(warp) for warp in rounds.tolist()] == [{x + 1} for x in given.max(1).tolist()]


def test_a_loop_that_prints_while_it_waits_lets_the_others_go_on() -> None:
    source = """extern "C" __global__ void k(int* flag) {
        if (threadIdx.x < 31) { while (atomicAdd(flag, 0) == 0) printf("not yet"); }
        else atomicExch(flag, 1); }"""
    flag = np.zeros(1, np.int32)
    told = launch(source, "k", 1, 32, flag, limits=InterpreterLimits(step_budget=1000)).printed
    assert flag[0] == 1
    assert "not yet" in told


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
def test_a_loop_that_changes_nothing_is_seen_at_once(text: str) -> None:
    source = f'extern "C" __global__ void k(int* o) {{ int i = threadIdx.x; {text} o[i] = 1; }}'
    with pytest.raises(errors.RunawayKernelError, match="all turns are the same"):
        left(source, "k", 1, 32, 32, step_budget=1000)


# Loops that sleep, or look by an atomic, and count their turns wait like any other, and give up when nobody is left.
PATIENT = """extern "C" __global__ void k(int* flag, int* out) {
    int turns = 0; %s out[threadIdx.x] = turns > 1000 ? -1 : 1; }"""
PATIENCE = [
    "unsigned u = 0; while (atomicAdd(flag, 0) == 0) { if (++u > 4000000u) break; __nanosleep(100); } turns = u;",
    "for (; turns < 4000000; ++turns) { if (atomicAdd(flag, 0) != 0) break; __nanosleep(100); }",
    "while (turns < 4000000 && atomicAdd(flag, 0) == 0) { turns++; __nanosleep(100); }",
    "for (; turns < 4000000; turns += 1) { if (atomicAdd(flag, 0) != 0) break; __nanosleep(100); }",
    "for (; turns < 4000000 && !atomicAdd(flag, 0); ++turns) __nanosleep(100); turns = turns == 4000000 ? 2000 : 0;",
    "int n = 4000000; while (atomicAdd(flag, 0) == 0) { if (--n == 0) break; __nanosleep(9); } turns = n ? 0 : 2000;",
    "while (atomicAdd(flag, 0) == 0) { if (turns++ == 4000000) break; }",
    "while (atomicAdd(flag, 0) == 0) { if (++turns == 4000000) break; __nanosleep(100); }",
    "unsigned n = 4000000; while (n-- > 0 && !atomicAdd(flag, 0)) { __nanosleep(100); } turns = n >> 31 ? 2000 : 0;",
    "for (; turns < 4000000; turns++) if (*(volatile int*)flag != 0) break;",
    "volatile int* f = flag; while (true) { if (*f) break; if (++turns > 4000000) break; }",
]


@pytest.mark.parametrize("loop", PATIENCE)
def test_a_patient_loop_gives_up_but_not_while_somebody_comes(loop: str) -> None:
    assert left(PATIENT % loop, "k", 1, 2, 1, 2) == [-1, -1]
    other = "for (int i = 0; i < 100; ++i) __nanosleep(10); atomicExch(flag, 1);"
    both = f"if (threadIdx.x == 0) {{ {loop} }} else {{ {other} }}"
    assert left(PATIENT % both, "k", 1, 2, 1, 2) == [1, 1]


@pytest.mark.parametrize("loop", PATIENCE)
def test_a_limited_leap_tells_how_patient_a_loop_is(loop: str) -> None:
    assert left(PATIENT % loop, "k", 1, 2, 1, 2, leap=4_000_010) == [-1, -1]
    with pytest.raises(errors.DeadlockError):
        left(PATIENT % loop, "k", 1, 2, 1, 2, leap=3_999_900)


COUNTS = [
    *(f"while (LOOK) if (++k {op} 90) break;" for op in (">", ">=", "==")),
    *(f"while (LOOK) {{ if (k++ {op} n) break; }}" for op in (">", ">=", "==")),
    "while (LOOK && 90 > k) k++;",
    "do { if (!(++k < n)) break; } while (LOOK);",
    "k = 90; while (LOOK && k >= 0) k--;",
    "k = 90; while (LOOK && k > 5) k--;",
    "k = n; while (LOOK) if (--k == -50) break;",
    "int m = 90 + 3 * threadIdx.x; while (LOOK) if (++k >= m) break;",
    "while (LOOK) if (++k > min(n, 40) + 3 * threadIdx.x) break;",
    "while (LOOK) { if ((n << 1) + 1 < k++) break; }",
    "k = n; while (LOOK) if (--k <= n / 4) break;",
    "while (LOOK) if (++k > 1.3f * n) break;",
    "int j = 7; while (LOOK) { j--; if (++k >= 90) break; } k = j;",
    "int x = 0; while (LOOK) { ++k; if (k > 9) x = 5; if (k == 50) x += 3; if (k > n) break; } k += x;",
    "int j = 0; for (int a = 0; a < 9; a++) for (int b = 0; b < 9; b++) { j++; if (!(LOOK)) break; } k = j;",
]


@pytest.mark.parametrize("loop", COUNTS)
def test_who_gives_up_has_counted_each_turn(loop: str) -> None:
    """As many as where nobody leaps, because a loop looks at a variable."""
    out = np.zeros((2, 2), np.int32)
    for counts, look in zip(out, ("atomicAdd(flag, 0) == 0", "z == 0"), strict=True):
        text = f"int k = 0, z = 0; {loop.replace('LOOK', look)} out[threadIdx.x] = k;"
        source = f'extern "C" __global__ void k(int* flag, int* out, int n) {{ {text} }}'
        launch(source, "k", 1, 2, np.zeros(1, np.int32), counts, 91)
    assert out[0].tolist() == out[1].tolist()


# A million looks, as one loop counts the ends of another, or of a function's.
NESTED = [
    "for (int a = 0; a < 1000 && !on; a++) for (int b = 0; b < 1000 && !on; b++) on = atomicAdd(flag, 0);",
    "while (!(on = soon(flag))) if (++turns > 1001) break;",
]
SOON = """__device__ bool soon(int* flag) {
    for (int k = 0; k < 1000; k++) if (atomicAdd(flag, 0)) return true;
    return false; }"""


@pytest.mark.parametrize("loop", NESTED)
def test_loops_in_loops_leap_as_far_as_all_their_turns(loop: str) -> None:
    loop = f"bool on = false; {loop} turns = on ? 0 : 2000;"
    assert left(SOON + PATIENT % loop, "k", 1, 2, 1, 2, leap=1_100_000) == [-1, -1]
    with pytest.raises(errors.DeadlockError):
        left(SOON + PATIENT % loop, "k", 1, 2, 1, 2, leap=900_000)


@pytest.mark.parametrize(
    ("kind", "bound"), [("int", 2147483647), ("unsigned", 4000000000), ("long long", 20000000000)]
)
def test_a_counter_leaps_as_far_as_its_type_goes(kind: str, bound: int) -> None:
    out, loop = np.zeros(1, np.int64), f"while (*flag == 0 && n < {bound}) n++; *out = n;"
    head = 'extern "C" __global__ void k(volatile int* flag, long long* out)'
    launch(f"{head} {{ {kind} n = 0; {loop} }}", "k", 1, 1, np.zeros(1, np.int32), out)
    assert out[0] == bound


@pytest.mark.parametrize("bound", ["4000000", "4000000 + (int)blockIdx.x"])
@pytest.mark.parametrize("narrow", ["unsigned short", "signed char"])
def test_a_counter_that_cannot_hold_its_bound_never_gives_up(narrow: str, bound: str) -> None:
    loop = f"int m = {bound}; {narrow} u = 0; while (!atomicAdd(flag, 0)) {{ if (++u > m) break; }} turns = 2000;"
    with pytest.raises(errors.DeadlockError, match="forever"):
        left(PATIENT % loop, "k", 1, 2, 1, 2)


@pytest.mark.parametrize("end", ["if (k == -1) break;", "k += k == 3;"])
def test_a_look_in_a_loop_that_runs_away_does_not_excuse_it(end: str) -> None:
    loop = f"int k = 5; while (true) {{ k += 2; if (*(volatile int*)flag) break; {end} }}"
    with pytest.raises(errors.RunawayKernelError):
        left(PATIENT % loop, "k", 1, 2, 1, 2, step_budget=1000)
    endless = PATIENCE[0].replace("4000000u", "5000000000")  # a bound that is never reached
    with pytest.raises(errors.DeadlockError):
        left(PATIENT % endless, "k", 1, 2, 1, 2)


def waited(text: str, write: str = "*(volatile int*)f = 5;") -> tuple[list[int], str]:
    """What block 0 leaves in `o`, and `made`. It waits for block 1 to write, and block 0 runs first."""
    kernel = f"__global__ void k(int* f, int* o) {{ int i = threadIdx.x; if (blockIdx.x == 0) {{ {text} }} else {write} }}"
    o, program = np.zeros(4, np.int32), compile_source(WAITING + kernel, contract=True)
    done = launch(program, "k", 2, 4, np.zeros(1, np.int32), o)
    return o.tolist(), made(program, done)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("o[i] = 10 * last(f) + i;", [50, 51, 52, 53]),
        ("int a = 2 + last(f), b = a * next(f); o[i] = b;", [42] * 4),
        ("o[i] = next(f) + next(f) * last(f);", [36] * 4),
        ("o[i] = max(last(f), 3) + o[last(f) - 5 + i];", [5] * 4),
        ("o[i] = i; o[i] += last(f);", [5, 6, 7, 8]),
        ("o[last(f) - 5 + i] = i + 1;", [1, 2, 3, 4]),
        ("int v[2] = {last(f), i}; o[i] = v[0] + v[1];", [5, 6, 7, 8]),
        ("o[i] = (last(f), i);", [0, 1, 2, 3]),
        # What stands left of a comma is done first, and once.
        ("int a = i; o[i] = (a += 2, last(f) * a);", [10, 15, 20, 25]),
        ("int a = i; o[i] = (a += next(f), last(f) * a); o[i] += (o[i]++, last(f) > 5);", [31, 36, 41, 46]),
        ("int a = 1; while (a++, last(f) > a) o[i] = a;", [4] * 4),
        ("Flag g{f}; o[i] = 2 * g.get() + i;", [10, 11, 12, 13]),
        ("if (last(f) > 3) o[i] = 1; else o[i] = 2;", [1] * 4),
        ("if (i > 1 && last(f) > 3) o[i] = 7;", [0, 0, 7, 7]),
        ("if (i > 1 || ready(f)) o[i] = 7;", [7] * 4),
        ("int x = last(f) == 5 && i == 2; o[i] = x;", [0, 0, 1, 0]),
        ("o[i] = i ? last(f) : 2;", [2, 5, 5, 5]),
        ("o[i] = 3 * (i > 1 ? last(f) : i == 1 ? 2 + next(f) : 9.5f);", [28, 24, 15, 15]),
        ("i > 1 ? both(f) : (void)0; o[i] = 1;", [1] * 4),
        ("switch (last(f)) { case 5: o[i] = 3; break; default: o[i] = 4; }", [3] * 4),
        ("o[i] = last(f) + (i > 1 ? last(f) : 2);", [7, 7, 10, 10]),
        ("int s = 0; while (last(f) > s) s++; o[i] = s;", [5] * 4),
        ("int s = 0; do { s += 2; } while (s < last(f)); o[i] = s;", [6] * 4),
        ("int s = 0; for (int k = 0; k < last(f); k++) { if (k == 1) continue; s += k; } o[i] = s;", [9] * 4),
        ("int s = 0; for (;;) { s += 2; int r = last(f); if (s >= r) break; } o[i] = s;", [6] * 4),
        ("int s = 0; for (int k = 0; k < (k > 1 ? last(f) : 3); k++) s++; o[i] = s;", [5] * 4),
        ("SPIN while (o[i] == 0) { if (*v) break; if (++s > 10000000) __trap(); } o[i] = *v;", [5] * 4),
        ("SPIN while (true) { if (*v != 0) break; if (++s > 10000000) __trap(); } o[i] = *v;", [5] * 4),
        ("SPIN for (; s < 10000000; s++) if (*v != 0) break; o[i] = *v;", [5] * 4),
        ("SPIN for (s = 0; *v == 0; s++) if (s > 10000000) __trap(); o[i] = *v;", [5] * 4),
        ("SPIN int k = 0; while (k < 1000) { k++; if (*v < 0) break; s += 2; } o[i] = s;", [2000] * 4),
        ("SPIN do o[i] = i; while (*v == 0); o[i] += *v;", [5, 6, 7, 8]),
        ("for (int k = 0; k < 2; k++) { float2 v; v.y = k; o[i] += v.y + (i > 1 ? last(f) : 2); }", [5, 5, 11, 11]),
        # Who gives up by the clock waits for those on the other side of a branch.
        ("SPIN long long t = clock64(); while (*v == 0 && clock64() - t < 9000); o[i] = *v;", [5] * 4),
        ("SPIN long long t = clock64(); while (*v == 0) if (clock64() - t > 9000) break; o[i] = *v;", [5] * 4),
        ("int a = 2, b = a + (i > 1 ? last(f) : a), *c = &b; o[i] = *c;", [4, 4, 7, 7]),
        ("through(f); o[i] = 1;", [1] * 4),
        ("last(f); o[i] = 2 * block_sum(i) + block_sum(1);", [16] * 4),
        # A side that is not taken does not wait.
        ("o[i] = (last(f) > 0 || last(f + 99)) + (i > 9 && last(f + 99)) + (i > 9 ? last(f + 99) : 4);", [5] * 4),
        # Who counts or computes between two looks lets those on the other side of a branch go on, too.
        ("SPIN int w = 0; while (true) { w = s++; if (*v) break; } o[i] = *v + (s > 999) + (w != s - 1);", [5] * 4),
        ("SPIN while (!atomicAdd(f, 0)) s = s * 5 + 3; o[i] = *v;", [5] * 4),
        ("SPIN for (; *v == 0; s += 3); o[i] = *v;", [5] * 4),
        ("SPIN for (int k = 0;; k++) { s += k; if (*v != 0) break; } o[i] = *v;", [5] * 4),
    ],
)  # fmt: skip
def test_calls_that_wait_in_larger_expressions(
    text: str, wanted: list[int], tell: Callable[[str], None]
) -> None:
    found, said = waited(text.replace("SPIN", "volatile int* v = f; int s = 0;"))
    assert found == wanted
    tell(said)


def test_order_and_mistakes_in_larger_expressions() -> None:
    # What stands left of the call is computed before it.
    assert (
        waited("o[i] = (atomicAdd(f, 0) + 1) * 10 + last(f);", "atomicExch(f, 5);")[0] == [15] * 4
    )
    with pytest.raises(errors.DeadlockError, match="waits forever in this loop"):
        waited("o[i] = 10 * last(f) + i;", ";")
    with pytest.raises(errors.RunawayKernelError, match="give its result to a variable first"):
        waited("int s = 0; for (int k = 0; k < 9; k += last(f)) s++; o[i] = s;")


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
def test_atomics_of_a_block_race_with_those_of_another_one() -> None:
    count = "__global__ void k(int* n) { atomicAdd_block(n, 1); }"
    launch(count, "k", 1, 32, np.zeros(1, np.int32))
    with pytest.raises(errors.RaceError, match="does not reach another: take one of the device"):
        launch(count, "k", 2, 32, np.zeros(1, np.int32))


def test_volatile_words_with_fences_do_not_race_where_nobody_waits() -> None:
    source = (
        "__global__ void k(volatile int* a, int* o) { int b = blockIdx.x; a[b] = 1; __threadfence(); "
        "o[b] = a[1 - b]; }"
    )
    seen = np.zeros(2, np.int32)
    launch(source, "k", 2, 1, np.zeros(2, np.int32), seen)
    assert seen.any()


def test_a_sum_over_what_nobody_has_announced_is_a_race() -> None:
    source = (
        "__global__ void k(int* x, int* n, int* o) { x[threadIdx.x] = 1; "
        "if (threadIdx.x == 0) { __threadfence(); atomicAdd(n, 1); "
        "int s = 0; for (int k = 0; k < 64; k++) s += x[k]; *o = s; } }"
    )
    with pytest.raises(errors.RaceError, match="'x'"):
        launch(source, "k", 1, 64, np.zeros(64, np.int32), *np.zeros((2, 1), np.int32))


def test_the_last_of_many_blocks_knows_what_all_others_did() -> None:
    source = (
        "__global__ void k(unsigned* n, int* x, int* o) { int b = blockIdx.x; x[b] = b; __threadfence(); "
        "if (atomicInc(n, gridDim.x) == gridDim.x - 1) { __threadfence(); int s = 0; "
        "for (int k = 0; k < gridDim.x; k++) s += x[k]; o[0] = s; } }"
    )
    n, x, o = np.zeros(1, np.uint32), np.zeros(5000, np.int32), np.zeros(1, np.int32)
    launch(source, "k", 5000, 1, n, x, o)
    assert o[0] == 4999 * 2500
    launch(source.replace("gridDim.x)", "gridDim.x - 1)", 1), "k", 4, 1, n * 0, x, o)
    assert o[0] == 6  # though the counter is back at 0 after one instruction of all
    why = r"no __threadfence\(\)|stands before that access"
    for before in ("{", "b;"):
        unfenced = source.replace(f"{before} __threadfence();", before)
        with pytest.raises(errors.RaceError, match=why):
            launch(unfenced, "k", 5000, 1, n * 0, x, o)
