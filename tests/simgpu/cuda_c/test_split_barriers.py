"""Warps of a block that come to different barriers of the source: the hardware lets them meet there."""

from __future__ import annotations

import numpy as np
import pytest

from simgpu import errors

from .support import launch

TURNS = 3
HALVES = """extern "C" __global__ void k(int* o) {
    __shared__ int s[128];
    int t = threadIdx.x;
    for (int j = 0; j < 3; j++) {
        if (t < 64) { s[t] = t + j; __syncthreads(); o[blockIdx.x * 128 + t] += s[t + 64]; __syncthreads(); }
        else { s[t] = t * 10 + j; meet(); o[blockIdx.x * 128 + t] += s[t - 64]; __syncthreads(); }
    }
}"""
MEET = "__device__ void meet() { __syncthreads(); }\n"


def run(source: str) -> list[int]:
    o = np.zeros(256, np.int32)
    launch(MEET + source, "k", 2, 128, o)
    return o.tolist()


def test_two_halves_exchange_what_they_wrote() -> None:
    t = np.arange(64)
    first = TURNS * (t + 64) * 10 + sum(range(TURNS))
    second = TURNS * t + sum(range(TURNS))
    assert run(HALVES) == [*first, *second] * 2


MISTAKES = [
    # The halves come to as many barriers then, but no longer to the same ones.
    ("s[t - 64]; __syncthreads();", "s[t - 64];", errors.KernelFault, None),
    ("s[t - 64];", "s[t - 64]; s[t] = 0;", errors.RaceError, "'s'"),
    ("t < 64", "t < 50", errors.BarrierError, None),  # a warp comes to one barrier
    ("meet();", "__syncthreads_count(1);", errors.BarrierError, None),  # which meets no other one
]


@pytest.mark.parametrize(("right", "wrong", "kind", "what"), MISTAKES)
def test_mistakes(right: str, wrong: str, kind: type[errors.KernelFault], what: str | None) -> None:
    with pytest.raises(kind, match=what):
        run(HALVES.replace(right, wrong))


def test_those_who_have_left_are_not_waited_for() -> None:
    source = HALVES.replace("for (int j", "if (t >= 96) return;\n    for (int j")
    source = source.replace("s[t + 64]", "s[64 + t % 32]")
    assert run(source)[64:96] == [TURNS * t + sum(range(TURNS)) for t in range(32)]
