"""Calls in which threads wait, as parts of larger expressions, of tests and of returns."""

from __future__ import annotations

import numpy as np
import pytest

from simgpu.errors import DeadlockError, RunawayKernelError

from .support import launch

BEFORE = """
__device__ int last(volatile int* f) { while (*f == 0) ; return *f; }
__device__ int next(volatile int* f) { return 1 + last(f); }
__device__ bool ready(volatile int* f) { return last(f) > 2; }
struct Flag { volatile int* f; __device__ int get() { while (*f == 0) ; return *f; } };
__device__ void both(volatile int* f) { last(f); }
__device__ void through(volatile int* f) { return both(f); }
__device__ int block_sum(int v) {
    __shared__ int s[4]; s[threadIdx.x] = v; __syncthreads();
    int out = s[0] + s[1] + s[2] + s[3]; __syncthreads(); return out; }
"""


def waited(text: str, write: str = "f[0] = 5;") -> list[int]:
    """Return what block 0 leaves in `o`. It waits for block 1 to write, and block 0 runs first."""
    kernel = f"__global__ void k(int* f, int* o) {{ int i = threadIdx.x; if (blockIdx.x == 0) {{ {text} }} else {write} }}"
    o = np.zeros(4, np.int32)
    launch(BEFORE + kernel, "k", 2, 4, np.zeros(1, np.int32), o)
    return o.tolist()


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
        ("int a = 2, b = a + (i > 1 ? last(f) : a), *c = &b; o[i] = *c;", [4, 4, 7, 7]),
        ("through(f); o[i] = 1;", [1] * 4),
        ("last(f); o[i] = 2 * block_sum(i) + block_sum(1);", [16] * 4),
    ],
)  # fmt: skip
def test_values(text: str, wanted: list[int]) -> None:
    assert waited(text) == wanted


def test_what_stands_left_of_the_call_is_computed_before_it() -> None:
    assert waited("o[i] = (atomicAdd(f, 0) + 1) * 10 + last(f);", "atomicExch(f, 5);") == [15] * 4


def test_a_side_that_is_not_taken_does_not_wait() -> None:
    text = "o[i] = (i < 4 || last(f + 0)) + (i > 9 && last(f)) + (i > 9 ? last(f) : 4);"
    assert waited(text, ";") == [5] * 4


@pytest.mark.parametrize(
    ("text", "write", "kind", "message"),
    [
        ("o[i] = 10 * last(f) + i;", ";", DeadlockError, "waits for ever in this loop"),
        ("int s = 0; for (int k = 0; k < 9; k += last(f)) s++; o[i] = s;", "f[0] = 5;", RunawayKernelError,
         "give its result to a variable first"),
    ],
)  # fmt: skip
def test_mistakes(text: str, write: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        waited(text, write)
