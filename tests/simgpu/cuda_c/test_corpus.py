"""Kernels as people write them: each runs unchanged, computes what a GPU computes, and raises no false alarm."""

import dataclasses
import json
from functools import cache
from typing import Any

import numpy as np
import pytest

from simgpu.cuda_c import Counts, InterpreterLimits

from .corpus import CASES, Case, arguments, launch_case
from .digests import COSTS, EXACT, FILE, cost, digest, source_digest

RECORDED = json.loads(FILE.read_text())
KNOWN_COSTS = json.loads(COSTS.read_text())
APART = [case for case in CASES if case.expect is not None]


@cache
def ran(case: Case, lanes: int | None) -> tuple[list[Any], Counts]:
    """Arguments and counts after a launch, with so many lanes side by side."""
    args = arguments(case)
    done = launch_case(case, args, limits=InterpreterLimits(batch_lanes=lanes) if lanes else None)
    return args, done.counts


each = pytest.mark.parametrize("lanes", [64, None], ids=["a block at a time", "side by side"])


@each
@pytest.mark.parametrize("case", EXACT, ids=lambda c: c.kernel)
def test_computes_what_a_gpu_computed(case: Case, lanes: int | None) -> None:
    """To the last bit."""
    given, computed = RECORDED[f"{case.file}: {case.kernel}"]
    assert given == source_digest(case), "record it again: python -m tests.simgpu.cuda_c.digests"
    assert digest(ran(case, lanes)[0]) == computed


@each
@pytest.mark.parametrize("case", APART, ids=lambda c: c.kernel)
def test_agrees_with_numpy(case: Case, lanes: int | None) -> None:
    """These may differ a little, because a GPU chooses the order or rounds otherwise."""
    after = ran(case, lanes)[0]
    assert case.expect is not None
    for position, want in case.expect(*arguments(case)).items():
        if position < 0:
            used = after[0] != 0xFFFFFFFF
            got = dict(zip(after[0][used].tolist(), after[1][used].tolist(), strict=True))
            assert got == want
        else:
            have, right = (np.asarray(a, np.float64) for a in (after[position], want))
            np.testing.assert_allclose(have, right, rtol=case.tolerance, atol=case.tolerance)


SAMPLED = {f"{way}_{unit}" for way in ("load", "store") for unit in ("sectors", "lines")}
SAMPLED |= {"chain_fresh_loads", "fresh_sectors", "once_stored", "bank_conflicts", "shared_passes"}
SAMPLED |= {"shared_wavefronts", "lines"}


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.kernel)
def test_counts_do_not_depend_on_how_many_blocks_run_together(case: Case) -> None:
    """All that is not sampled; where an atomic's order decides what a thread does, nothing is promised."""
    if case.kernel not in {"hash_insert", "bfs_level", "max_by_cas", "compact_positive"}:
        few, many = (dataclasses.asdict(ran(case, lanes)[1]) for lanes in (64, None))
        assert {n: v for n, v in few.items() if n not in SAMPLED} == {
            n: v for n, v in many.items() if n not in SAMPLED
        }


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.kernel)
def test_costs_what_it_has_cost(case: Case) -> None:
    """By the model itself, which nobody changes by chance; tests/test_fidelity.py holds it to a GPU."""
    known = KNOWN_COSTS[f"{case.file}: {case.kernel}"]
    meant = "if that is meant: python -m tests.simgpu.cuda_c.digests costs"
    assert cost(case, ran(case, None)[1]) == known, meant
