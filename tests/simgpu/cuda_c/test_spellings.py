"""One program in several spellings has one verdict: sound in all of them, or a mistake in all."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from simgpu import errors
from simgpu.cuda_c import Limits
from tests.simgpu.cuda_c.support import launch

# ---------------------------------------------------------------------- volatile and plain
LOOKS = {
    "pointer": ("volatile int* v = p;", "*v"),
    "element": ("volatile int* v = p;", "v[0]"),
    "reference": ("volatile int& v = *p;", "v"),
    "cast": ("", "*(volatile int*)p"),
    "member": ("struct S { volatile int f; }; S* s = (S*)p;", "s->f"),
    "variable": ("", "flag"),
    "shared": ("", "near"),
    "plain": ("", "*p"),
}
WAYS = {
    "load": "int seen = {0}; o[0] = seen;",
    "poll": "while ({0} == 0); o[0] = {0};",
    "condition": "if ({0} != 5) o[0] = 0;",
    "update": "{0} += 0;",
    "store": "{0} = 7;",
}
PLACES = "__device__ volatile int flag; "
MEETS = {"blocks": ("blockIdx.x", 2, 1), "warps": ("threadIdx.x / 32", 1, 64)}
APART = [
    (mine, theirs, way, where)
    for mine, theirs, way, where in itertools.product(LOOKS, LOOKS, WAYS, MEETS)
    if not {"variable", "shared"} & {mine, theirs} or mine == theirs
    if (mine, theirs) != ("plain", "plain") and (where == "warps" or mine != "shared")
    if (way, mine) != ("poll", "plain")  # which a compiler may hoist out of the loop
]


def verdict(body: str, grid: int, block: int, before: str = "", seed: int | None = None) -> str:
    """Run a kernel `k(int* p, int* o)`: the name of the mistake that is found, or nothing."""
    source = f"{before} __global__ void k(int* p, int* o) {{ int t = threadIdx.x; {body} }}"
    try:
        limits = Limits(hostile=seed)
        launch(source, "k", grid, block, np.zeros(64, np.int32), np.zeros(64, np.int32), limits=limits)
    except errors.KernelFault as error:
        return type(error).__name__
    return ""


@pytest.mark.parametrize(("mine", "theirs", "way", "where"), APART)
def test_two_volatile_accesses_are_no_race_and_volatile_beside_plain_is_one(
    mine: str, theirs: str, way: str, where: str
) -> None:
    who, grid, block = MEETS[where]
    (begin, place), (start, other) = LOOKS[mine], LOOKS[theirs]
    lanes = "if (t % 32) return;" if mine != "shared" else (
        "__shared__ volatile int near; if (t == 0) near = 0; __syncthreads(); if (t % 32) return;"
    )
    looks, writes = f"{{ {begin} {WAYS[way].format(place)} }}", f"{{ {start} {other} = 5; }}"
    wanted = "RaceError" if "plain" in (mine, theirs) else ""
    for one, two in ((looks, writes), (writes, looks)):
        body = f"{lanes} if ({who} == 0) {one} else {two}"
        assert verdict(body, grid, block, PLACES) == wanted, body
