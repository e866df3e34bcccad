"""How long a lone warp takes: chains of results, and what unrolling does to them."""

from __future__ import annotations

import numpy as np
import pytest

from simgpu.cuda_c import Counts

from .support import launch

KERNEL = """
__global__ void k(const float* x, float* y, int n) {
    __shared__ float tile[64];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    float a = tile[threadIdx.x], b = a + 1.0f, c = a + 2.0f, d = a + 3.0f;
    %s
    y[threadIdx.x] = a + b + c + d;
}
"""


def counted(body: str, n: int = 40) -> Counts:
    x = np.ones(64, np.float32)
    return launch(KERNEL % body, "k", 1, 64, x, x.copy(), n).counts


def test_a_chain_takes_longer_than_as_many_independent_operations() -> None:
    chain = counted("a = a * b; a = a * c; a = a * d; a = a * b;")
    apart = counted("a = a * a; b = b * b; c = c * c; d = d * d;")
    assert chain.warp_instructions == apart.warp_instructions
    assert chain.chain_latency > apart.chain_latency


def test_turns_of_an_unrolled_loop_overlap_but_for_what_one_hands_to_the_next() -> None:
    """Eight shared loads whose sum is a chain of eight additions, and eight loads one after the other."""
    summed = counted("for (int k = 0; k < 8; ++k) a += tile[k];")
    chased = counted("int at = n; for (int k = 0; k < 8; ++k) at = (int)tile[at]; a += at;")
    assert chased.chain_latency > 2 * summed.chain_latency


def test_functions_and_divisions_are_as_long_as_a_compiler_makes_them() -> None:
    """Learners are told of eight instructions for each function, and that number stays."""
    sine, square_root = (counted(f"a = {f}f(a);") for f in ("sin", "sqrt"))
    assert sine.warp_instructions == square_root.warp_instructions
    assert sine.issued > square_root.issued > sine.warp_instructions


@pytest.mark.parametrize(("op", "more"), [("&", 1), ("*", 0)])
def test_work_on_bits_is_told_apart(op: str, more: int) -> None:
    plain, with_it = counted("a += n;"), counted(f"a += (n + (int)threadIdx.x) {op} 12;")
    assert with_it.alu_instructions - plain.alu_instructions == 2 * more


@pytest.mark.parametrize(
    ("more", "clocks"), [("b *= c;", 1), ("n ^= 5;", 2), ("tile[threadIdx.x] = c;", 2 + 4)]
)
def test_an_instruction_keeps_its_unit_busy(more: str, clocks: int) -> None:
    def busy(body: str) -> int:
        return counted(body + "b += n;").chain_busy

    assert busy(more) - busy("") == clocks


def test_what_only_selects_is_no_branch() -> None:
    selected = counted("if (n > 3) a = b;")
    branched = counted("if (n > 3) a = b * c;")
    assert branched.chain_latency - selected.chain_latency > 8


def test_a_selection_waits_for_its_test_whoever_takes_it() -> None:
    """The smaller of two numbers, turn by turn: each waits for the one before."""
    smallest = "for (int k = 0; k < n; ++k) { float t = tile[k]; if (t < %s) a = t; }"
    handed, apart = (counted(smallest % name).chain_latency for name in "ab")
    assert handed > apart


def test_a_division_ends_with_a_branch() -> None:
    divided, root = (counted(body).chain_latency for body in ("a = a / b;", "a = sqrtf(a);"))
    assert divided > root + 8


def test_sectors_that_a_block_has_had_are_not_fresh() -> None:
    twice = counted("for (int k = 0; k < n; ++k) a += x[(threadIdx.x + k) % 64];")
    assert twice.load_sectors > 20 * twice.fresh_sectors
    assert twice.fresh_sectors == 64 * 4 // 32
