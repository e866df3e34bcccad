"""Hostile memory: right patterns give right values under every seed, each without its fence a wrong one.

In memory that isn't hostile, a broken one is a race that is told.
"""

from contextlib import nullcontext

import numpy as np
import pytest

from simgpu import errors
from simgpu.cuda_c import InterpreterLimits, compile_source
from simgpu.cuda_c.memory import hostile, messages
from tests.simgpu.cuda_c.support import launch

pytestmark = pytest.mark.rests_on("simgpu")

HEAD = """#include <cooperative_groups.h>
#include <cuda/atomic>
namespace cg = cooperative_groups;
extern "C" __global__ void k(unsigned int* x, unsigned int* f, unsigned int* o) {
unsigned int t = threadIdx.x, b = blockIdx.x, n = gridDim.x; """
FENCES = {"none": "", "block": "__threadfence_block();", "device": "__threadfence();"}
# The stores and loads of a word, and the threads of each litmus test with its one weak outcome.
KINDS = {
    "plain": ("x[{0}] = 1;", "x[{0}]"),
    "volatile": ("*(volatile unsigned int*)&x[{0}] = 1;", "*(volatile unsigned int*)&x[{0}]"),
    "atomic": ("atomicExch(&x[{0}], 1u);", "atomicAdd(&x[{0}], 0u)"),
}
SHAPES = {
    "message passing": (("S0 F S1", "L1 F L0"), (1, 0)),
    "store buffering": (("S0 F L1", "S1 F L0"), (0, 0)),
    "load buffering": (("L0 F S1", "L1 F S0"), (1, 1)),
    "independent reads": (("S0", "S1", "L0 F L1", "L1 F L0"), (1, 0, 1, 0)),
}


def litmus(shape: str, fence: str, kind: str, blocks: bool, seed: int) -> tuple[int, ...]:
    """What the loads of a litmus test give, whose threads are of as many blocks, or warps of one."""
    threads, weak = SHAPES[shape]
    store, load = KINDS[kind]
    text, count = "", 0
    for number, steps in enumerate(threads):
        text += f"if ({'b' if blocks else 't / 32'} == {number} && t % 32 == 0) {{ "
        after = ""
        for step in steps.split():
            if step == "F":
                text += FENCES[fence]
            elif step[0] == "S":
                text += store.format(64 * int(step[1]))
            else:
                text += f"unsigned int r{count} = {load.format(64 * int(step[1]))}; "
                after += f"atomicExch(&o[{count}], r{count}); "
                count += 1
        text += after + "} "
    x, o = np.zeros(128, np.uint32), np.zeros(len(weak), np.uint32)
    grid, block = (len(threads), 1) if blocks else (1, 32 * len(threads))
    launch(f"{HEAD}{text} }}", "k", grid, block, x, x, o, limits=InterpreterLimits(hostile=seed))
    return tuple(o.tolist())


@pytest.mark.parametrize("blocks", [False, True], ids=["one block", "blocks"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fence", FENCES)
@pytest.mark.parametrize("shape", SHAPES)
def test_litmus_tests_show_what_the_model_allows(
    shape: str, fence: str, kind: str, blocks: bool
) -> None:
    weak = SHAPES[shape][1]
    seen = [litmus(shape, fence, kind, blocks, seed) for seed in range(60)]
    assert len(set(seen)) > 1 or not blocks
    strong = kind != "plain" and (fence == "device" or (fence == "block" and not blocks))
    assert (weak in seen) == (shape != "load buffering" and not strong)


# A pattern: grid, block, sizes of x and f, what is left in o, the text, and changes that break it.
MEETING = (
    "__syncthreads(); if (t == 0) { __threadfence(); atomicAdd(F, 1u); while (atomicAdd(F, 0u) < r * n);"
    " __threadfence(); } __syncthreads(); "
)
PATTERNS = {
    'oneshot': (
        2, 1, 1, 1, [42],
        "if (b == 0) { x[0] = 42; __threadfence(); atomicExch(f, 1u); } else { while (atomicAdd(f, 0u) == 0); __threadfence(); o[0] = x[0]; }",
        {
            'no release': ('x[0] = 42; __threadfence();', 'x[0] = 42;'),
            'behind the flag': ('__threadfence(); atomicExch(f, 1u);', 'atomicExch(f, 1u); __threadfence();'),
            'no acquire': ('== 0); __threadfence();', '== 0);'),
            'acquire before': ('while (atomicAdd(f, 0u) == 0); __threadfence();', '__threadfence(); while (atomicAdd(f, 0u) == 0);'),
            'block fences': ('__threadfence()', '__threadfence_block()'),
            'one block fence': ('== 0); __threadfence();', '== 0); __threadfence_block();'),
            'block atomics': ('atomicExch(', 'atomicExch_block(', 'atomicAdd(', 'atomicAdd_block('),
            'flag first': ('x[0] = 42; __threadfence(); atomicExch(f, 1u);', 'atomicExch(f, 1u); __threadfence(); x[0] = 42;')},
    ),
    'volatile': (
        2, 1, 1, 1, [42],
        "volatile unsigned int* v = f; if (b == 0) { x[0] = 42; __threadfence(); *v = 1; } else { while (*v == 0); __threadfence(); o[0] = x[0]; }",
        {
            'no release': ('x[0] = 42; __threadfence();', 'x[0] = 42;'),
            'no acquire': ('== 0); __threadfence();', '== 0);')},
    ),
    'two letters': (
        2, 1, 1, 2, [1, 2, 3],
        "if (b == 0) { for (int k = 1; k < 4; k++) { x[0] = k; __threadfence(); atomicExch(f, k); while (atomicAdd(f + 1, 0u) != k); __threadfence(); } } else { for (int k = 1; k < 4; k++) { while (atomicAdd(f, 0u) != k); __threadfence(); o[k - 1] = x[0]; __threadfence(); atomicExch(f + 1, k); } }",
        {
            'behind the flag': ('__threadfence(); atomicExch(f, k);', 'atomicExch(f, k); __threadfence();'),
            'no release': ('x[0] = k; __threadfence();', 'x[0] = k;'),
            'no acquire': ('!= k); __threadfence(); o', '!= k); o')},
    ),
    'lock': (
        5, 1, 1, 1, [5],
        "while (atomicCAS(f, 0u, 1u) != 0); __threadfence(); o[0] = o[0] + 1; __threadfence(); atomicExch(f, 0u);",
        {
            'no release': ('__threadfence(); atomicExch', 'atomicExch'),
            'no acquire': ('!= 0); __threadfence();', '!= 0);'),
            'fence outside': ('__threadfence(); atomicExch(f, 0u);', 'atomicExch(f, 0u); __threadfence();'),
            'block fence': ('__threadfence()', '__threadfence_block()')},
    ),
    'tickets': (
        4, 3, 1, 2, [12],
        "unsigned int mine = atomicAdd(f, 1u); while (atomicAdd(f + 1, 0u) != mine); __threadfence(); o[0] = o[0] + 1; __threadfence(); atomicAdd(f + 1, 1u);",
        {
            'no release': ('__threadfence(); atomicAdd(f + 1, 1u)', 'atomicAdd(f + 1, 1u)'),
            'no acquire': ('!= mine); __threadfence();', '!= mine);')},
    ),
    'do while lock': (
        5, 1, 1, 1, [5],
        "do { } while (atomicCAS(f, 0u, 1u) != 0u); __threadfence(); o[0] = o[0] + 1; __threadfence(); atomicExch(f, 0u);",
        {
            'no release': ('__threadfence(); atomicExch', 'atomicExch')},
    ),
    'last block': (
        4, 32, 128, 1, [320],
        "__shared__ bool last; x[b * 32 + t] = b + 1; __threadfence(); __syncthreads(); if (t == 0) { last = atomicAdd(f, 1u) == gridDim.x - 1; __threadfence(); } __syncthreads(); if (last && t == 0) { unsigned int s = 0; for (int k = 0; k < 32 * gridDim.x; k++) s += x[k]; o[0] = s; }",
        {
            'no release': ('x[b * 32 + t] = b + 1; __threadfence();', 'x[b * 32 + t] = b + 1;'),
            'no acquire': ('- 1; __threadfence(); }', '- 1; }'),
            'behind': ('b + 1; __threadfence(); __syncthreads(); if (t == 0) { last = atomicAdd(f, 1u) == gridDim.x - 1; __threadfence(); }', 'b + 1; __syncthreads(); if (t == 0) { last = atomicAdd(f, 1u) == gridDim.x - 1; __threadfence(); }')},
    ),
    'one for its warp': (
        2, 64, 64, 1, [496],
        "if (b == 0 && t < 32) { x[t] = t; __syncwarp(); if (t == 0) { __threadfence(); atomicExch(f, 1u); } } if (b == 1 && t == 0) { while (atomicAdd(f, 0u) == 0); __threadfence(); for (int k = 0; k < 32; k++) o[0] += x[k]; }",
        {
            'no sync': ('__syncwarp();', ''),
            'no release': ('{ __threadfence(); atomicExch', '{ atomicExch'),
            'no acquire': ('== 0); __threadfence();', '== 0);'),
            'behind': ('__syncwarp(); if (t == 0) { __threadfence(); atomicExch(f, 1u); }', 'if (t == 0) { __threadfence(); atomicExch(f, 1u); } __syncwarp();')},
    ),
    'meet': (
        3, 32, 96, 2, [603] * 32 + [606] * 32 + [600] * 32,
        "for (int r = 1; r < 4; r++) { x[b * 32 + t] = 100 * r + b; "
        + MEETING.replace("F", "f")
        + "o[b * 32 + t] += x[(b + 1) % n * 32 + t]; "
        + MEETING.replace("F", "f + 1")
        + "}",
        {
            'no release': ('__threadfence(); atomicAdd', 'atomicAdd'),
            'no acquire': ('n); __threadfence();', 'n);'),
            'acquires where it should release': ('__threadfence(); atomicAdd', '__fence_acquire_device(); atomicAdd'),
            'releases where it should acquire': ('n); __threadfence();', 'n); __fence_release_device();'),
            'wrong side': ('__threadfence(); atomicAdd(f, 1u);', 'atomicAdd(f, 1u); __threadfence();', '__threadfence(); atomicAdd(f + 1, 1u);', 'atomicAdd(f + 1, 1u); __threadfence();'),
            'wrong side, one fence': ('__threadfence(); atomicAdd(f, 1u); while (atomicAdd(f, 0u) < r * n); __threadfence();', 'atomicAdd(f, 1u); __threadfence(); while (atomicAdd(f, 0u) < r * n);'),
            'block scope': ('__threadfence()', '__threadfence_block()')},
    ),
    'grid sync': (
        3, 32, 96, 2, [603] * 32 + [606] * 32 + [600] * 32,
        "cg::grid_group g = cg::this_grid(); for (int r = 1; r < 4; r++) { x[b * 32 + t] = 100 * r + b; g.sync(); o[b * 32 + t] += x[(b + 1) % n * 32 + t]; g.sync(); } if (t > 40) atomicAdd(f, 1u);",
        {}),
    'tile': (
        1, 32, 1, 1, [(t + 1) % 32 + 2 * ((t + 5) % 32) for t in range(32)],
        "__shared__ volatile unsigned int s[32]; auto w = cg::tiled_partition<32>(cg::this_thread_block()); s[t] = t; w.sync(); o[t] = s[(t + 1) % 32]; w.sync(); s[t] = 2 * t; __syncwarp(); o[t] += s[(t + 5) % 32];",
        {
            'no sync': ('s[t] = t; w.sync();', 's[t] = t;')},
    ),
    'in a block': (
        1, 64, 1, 1, [42],
        "__shared__ volatile unsigned int flag; __shared__ unsigned int box; if (t == 0) { flag = 0; box = 0; } __syncthreads(); if (t == 0) { box = 42; __threadfence_block(); flag = 1; } else if (t == 32) { while (flag == 0); __threadfence_block(); o[0] = box; } if (t > 64) atomicAdd(f, 1u);",
        {
            'no release': ('box = 42; __threadfence_block();', 'box = 42;'),
            'no acquire': ('== 0); __threadfence_block();', '== 0);'),
            'behind the flag': ('__threadfence_block(); flag = 1;', 'flag = 1; __threadfence_block();')},
    ),
    'behind barriers': (
        2, 256, 1, 1, [7],
        "__shared__ unsigned int s[256]; s[t] = t; for (int r = 0; r < 20; r++) { __syncthreads(); unsigned int v = s[(t + 1) % 256]; __syncthreads(); s[t] = v; } if (t == 0) { volatile unsigned int* v = x; if (b == 0) { *v = 7; __threadfence(); atomicExch(f, 1u); } else { while (atomicAdd(f, 0u) == 0); __threadfence(); o[0] = *v; } }",
        {
            'no release': ('7; __threadfence();', '7;'),
            'no acquire': ('== 0); __threadfence();', '== 0);')},
    ),
    'cuda atomic': (
        2, 1, 1, 1, [42],
        "cuda::atomic_ref<unsigned int, cuda::thread_scope_device> a(f[0]); if (b == 0) { x[0] = 42; a.store(1, cuda::memory_order_release); } else { while (a.load(cuda::memory_order_acquire) == 0); o[0] = x[0]; }",
        {
            'relaxed store': ('_release', '_relaxed'),
            'relaxed load': ('_acquire', '_relaxed'),
            'block scope': ('scope_device', 'scope_block')},
    ),
    'wrc': (
        3, 1, 1, 1, [1],
        "if (b == 0) atomicExch(x, 1u); if (b == 1) { while (atomicAdd(x, 0u) == 0); __threadfence(); atomicExch(f, 1u); } if (b == 2) { while (atomicAdd(f, 0u) == 0); __threadfence(); o[0] = *(volatile unsigned int*)x; }",
        {
            'no fence': ('__threadfence(); atomicExch', 'atomicExch')},
    ),
    'handed on': (
        3, 1, 1, 2, [7],
        "if (b == 0) { x[0] = 7; __threadfence(); atomicExch(f, 1u); } if (b == 1) { while (atomicAdd(f, 0u) == 0); __threadfence(); atomicExch(f + 1, 1u); } if (b == 2) { while (atomicAdd(f + 1, 0u) == 0); __threadfence(); o[0] = x[0]; }",
        {
            'by no fence': ('__threadfence(); atomicExch(f + 1', 'atomicExch(f + 1')},
    ),
    'two words': (
        2, 1, 2, 1, [42],
        "if (b == 0) { x[1] = 1; __threadfence(); x[0] = 42; __threadfence(); atomicOr(f, 1u); x[1] = 2; } else { while (atomicAdd(f, 0u) == 0); __threadfence(); o[0] = x[0]; }",
        {}),
    'all read, and one writes': (
        3, 1, 1, 1, [12],
        "atomicAdd(o, x[0] + 1); __threadfence(); atomicAdd(f, 1u); if (b == 1) { while (atomicAdd(f, 0u) < n); __threadfence(); x[0] = 9; atomicAdd(o, x[0]); }",
        {}),
    'block counter': (
        6, 32, 1, 1, [6],
        "if (t == 0) atomicAdd(o, 1u); if (t == 1) atomicAdd(f, 1u);",
        {
            'block scope': ('atomicAdd(o', 'atomicAdd_block(o')},
    ),
    'cas stack': (
        5, 1, 16, 2, [5],
        "unsigned int me = b + 1; unsigned int old = atomicAdd(f, 0u); while (true) { x[me] = old; __threadfence(); unsigned int seen = atomicCAS(f, old, me); if (seen == old) break; old = seen; } __threadfence(); atomicAdd(f + 1, 1u); if (b == 0) { while (atomicAdd(f + 1, 0u) < gridDim.x); __threadfence(); unsigned int at = atomicAdd(f, 0u), n = 0; __threadfence(); while (at && n < 99) { n++; at = x[at]; } o[0] = n; }",
        {}),
}  # fmt: skip


def left(name: str, seed: int | None, *changes: str) -> list[int]:
    grid, block, cells, flags, right, text, _ = PATTERNS[name]
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in text
        text = text.replace(old, new)
    x, f, o = (np.zeros(size, np.uint32) for size in (cells, flags, len(right)))
    limits = InterpreterLimits(hostile=seed, resident_blocks=64)
    launch(f"{HEAD}{text} }}", "k", grid, block, x, f, o, limits=limits)
    return o.tolist()


@pytest.mark.parametrize("name", PATTERNS)
def test_a_right_pattern_is_right_under_every_seed(name: str) -> None:
    for seed in (None, *range(40)):
        assert left(name, seed) == PATTERNS[name][4]


@pytest.mark.parametrize(("limit", "value"), [("_SETTLED", 0), ("_MANY", 0), ("_MOST", 1)])
def test_a_right_pattern_is_right_however_coarsely_knowledge_is_kept(
    limit: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, limit, value)
    for name, row in PATTERNS.items():
        assert left(name, None) == row[4]


BROKEN = [(name, change) for name, row in PATTERNS.items() for change in row[6]]
VOLATILE = "wrc", "behind barriers"  # what they hand over; so a broken one is wrong, and no race


@pytest.mark.parametrize(("name", "change"), [row for row in BROKEN if row[0] not in VOLATILE])
def test_a_broken_pattern_is_a_race(name: str, change: str) -> None:
    told = "First the data, then __threadfence" if change == "wrong side" else None
    with pytest.raises(errors.RaceError, match=told):
        left(name, None, *PATTERNS[name][6][change])


# Other forms of a pattern, and whether its flag tells of the number.
SENT = "x[0] = 42; __threadfence(); atomicExch(f, 1u);"
FORMS = [
    *(("oneshot", change, True) for change in (
        ("atomicExch(f, 1u)", "atomicOr(f, 1u)"), ("atomicAdd(f, 0u)", "atomicCAS(f, 5u, 5u)"),
        ("atomicAdd(f, 0u)", "*(volatile unsigned*)f"),
        ("atomicExch(", "atomicExch_system(", "atomicAdd(", "atomicAdd_system("))),
    *(("oneshot", change, False) for change in (("atomicExch(", "atomicExch_block("), ("atomicExch(f, 1u)", "*f = 1"),
        ("x[0] = 42; __threadfence()", "__threadfence(); x[0] = 42"), ("42; __threadfence()", "42; __threadfence_block()"),
        (SENT, "atomicExch(f, 1u); x[0] = 42; __threadfence();"),
        (SENT, "atomicExch(f, 1u); x[0] = 42; __threadfence(); atomicAdd(f, 0u);"))),
    *(("cuda atomic", ("scope_device", f"scope_{scope}", "_release", f"_{order}"), scope == "system" and order != "relaxed")
      for scope in ("system", "block", "thread") for order in ("release", "seq_cst", "relaxed")),
    ("cuda atomic", ("_release", "_seq_cst"), True),
    # Of a warp that has met, one fences and another sets the flag; or each fences for itself.
    *(("one for its warp", ("__syncwarp(); if (t == 0) { __threadfence(); ", f"{fences} if (t == 0) {{ "), right) for fences, right in (
        ("__syncwarp(); if (t == 1) __threadfence(); __syncwarp();", True), ("__threadfence(); __syncwarp();", True),
        ("__syncwarp(); if (t == 1) __threadfence();", False), ("__threadfence_block(); __syncwarp();", False))),
    ("all read, and one writes", ("1); __threadfence();", "1);"), False),
    ("all read, and one writes", ("n); __threadfence();", "n);"), False),
]  # fmt: skip


@pytest.mark.parametrize(("name", "changes", "right"), FORMS)
def test_a_flag_in_scope_tells_of_what_lies_before_the_fence_in_front_of_it(
    name: str, changes: tuple[str, ...], right: bool
) -> None:
    with nullcontext() if right else pytest.raises(errors.RaceError):
        assert left(name, None, *changes) == PATTERNS[name][4]


@pytest.mark.parametrize(("name", "change"), BROKEN)
def test_a_broken_pattern_gives_a_wrong_value_and_again_with_its_seed(
    name: str, change: str
) -> None:
    changes = PATTERNS[name][6][change]
    got = [left(name, seed, *changes) for seed in range(20)]
    wrong = [seed for seed in range(20) if got[seed] != PATTERNS[name][4]]
    assert wrong
    assert left(name, wrong[0], *changes) == got[wrong[0]]


def test_memory_gets_kind_after_some_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostile, "_PATIENCE", 0)
    for name, change in (("oneshot", "no release"), ("lock", "no acquire"), ("tile", "no sync")):
        for seed in range(9):
            assert left(name, seed, *PATTERNS[name][6][change]) == PATTERNS[name][4]


def test_fences_have_one_order() -> None:
    """Dekker: with the order of fences one of the two sees the other's flag."""
    text = """cuda::atomic_ref<unsigned int, cuda::thread_scope_device> mine(f[b]), other(f[1 - b]);
    mine.store(1); if (other.load() == 0) atomicAdd(o, 1u); }"""
    for seed in range(40):
        f, o = np.zeros(2, np.uint32), np.zeros(1, np.uint32)
        launch(HEAD + text, "k", 2, 1, f, f, o, limits=InterpreterLimits(hostile=seed))
        assert o[0] <= 1


def test_a_block_sees_nothing_of_another_one_in_its_shared_memory() -> None:
    """Not even of one that has ended, and whose memory it may have got."""
    text = "__shared__ volatile int s; if (t == 0) s = b + 1; if (t == 32) o[b] = s; }"
    for seed in range(20):
        o = np.zeros(8, np.uint32)
        launch(HEAD + text, "k", 8, 64, o, o, o, limits=InterpreterLimits(hostile=seed))
        assert all(value in (0, block + 1) for block, value in enumerate(o.tolist()))


@pytest.mark.parametrize(("text", "talks"), [
    ("x[t] = f[t];", False), ("__syncthreads(); __threadfence(); x[t] = 1;", False),
    ("*(volatile unsigned int*)x = 1;", True), ("atomicAdd(x, 1u);", True), ("cg::this_grid().sync();", True),
])  # fmt: skip
def test_memory_is_hostile_only_to_threads_that_tell_each_other_something(
    text: str, talks: bool
) -> None:
    assert compile_source(f"{HEAD}{text} }}").kernel("k").code.talks == talks
