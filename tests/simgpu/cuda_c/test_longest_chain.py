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


SMALLEST = "for (int k = 0; k < n; ++k) { float t = tile[k]; if (t < %s) a = t; }"
# Two bodies, and by how much the first one has more of something: from, and to.
MORE = [
    # A chain of products, and four that do not need each other.
    ("a = a * b; a = a * c; a = a * d; a = a * b;", "a = a * a; b = b * b; c = c * c; d = d * d;", "chain_latency", 1, None),
    ("a = a * b; a = a * c; a = a * d; a = a * b;", "a = a * a; b = b * b; c = c * c; d = d * d;", "warp_instructions", 0, 0),
    # Eight shared loads one after the other, and eight whose sum is a chain of eight additions.
    ("int at = n; for (int k = 0; k < 8; ++k) at = (int)tile[at]; a += at;", "for (int k = 0; k < 8; ++k) a += tile[k];",
     "chain_latency", 150, None),
    # Learners are told of eight instructions for each function, and that number stays.
    ("a = sinf(a);", "a = sqrtf(a);", "warp_instructions", 0, 0),
    ("a = sinf(a);", "a = sqrtf(a);", "issued", 1, None),
    ("a = sqrtf(a);", "a = a * b;", "warp_instructions", 14, 14),
    ("a = sqrtf(a);", "a = a * b;", "issued", 15, None),
    # Work on bits is told apart.
    ("a += (n + (int)threadIdx.x) & 12;", "a += n;", "alu_instructions", 2, 2),
    ("a += (n + (int)threadIdx.x) * 12;", "a += n;", "alu_instructions", 0, 0),
    # An instruction keeps its unit busy.
    ("b *= c; b += n;", "b += n;", "chain_busy", 1, 1),
    ("n ^= 5; b += n;", "b += n;", "chain_busy", 2, 2),
    ("tile[threadIdx.x] = c; b += n;", "b += n;", "chain_busy", 2 + 4, 2 + 4),
    # What only selects is no branch.
    ("if (n > 3) a = b * c;", "if (n > 3) a = b;", "chain_latency", 9, None),
    # The smaller of two numbers, turn by turn: each waits for the one before, whoever takes it.
    (SMALLEST % "a", SMALLEST % "b", "chain_latency", 1, None),
    # A division ends with a branch.
    ("a = a / b;", "a = sqrtf(a);", "chain_latency", 9, None),
]  # fmt: skip


@pytest.mark.parametrize(("body", "other", "name", "least", "most"), MORE)
def test_how_much_more_it_is(
    body: str, other: str, name: str, least: int, most: int | None
) -> None:
    more = getattr(counted(body), name) - getattr(counted(other), name)
    assert least <= more
    assert most is None or more <= most


def test_sectors_that_a_block_has_had_are_not_fresh() -> None:
    twice = counted("for (int k = 0; k < n; ++k) a += x[(threadIdx.x + k) % 64];")
    assert twice.load_sectors > 20 * twice.fresh_sectors
    assert twice.fresh_sectors == 64 * 4 // 32
