"""Kernels as people write them: each runs unchanged, computes what a GPU computes, and raises no false alarm."""

from __future__ import annotations

import dataclasses
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simgpu.cuda_c import Counts, Limits, compile_source

from . import oracle
from .corpus import CASES, Case, arguments, source
from .digests import EXACT, FILE, digest, source_digest
from .support import launch

RECORDED = json.loads(FILE.read_text())
APART = [case for case in CASES if case not in EXACT]


@cache
def ran(case: Case, lanes: int | None) -> tuple[list[Any], Counts]:
    """Arguments and counts after a launch, with so many lanes side by side."""
    args, program = arguments(case), compile_source(source(case.file), contract=True)
    limits = None if lanes is None else Limits(batch_lanes=lanes)
    done = launch(
        program, case.kernel, case.grid, case.block, *args, shared=case.shared, limits=limits
    )
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
SAMPLED |= {"chain_fresh_loads", "fresh_sectors", "bank_conflicts", "lines"}


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.kernel)
def test_counts_do_not_depend_on_how_many_blocks_run_together(case: Case) -> None:
    """All that is not sampled; where an atomic's order decides what a thread does, nothing is promised."""
    if case.kernel not in {"hash_insert", "bfs_level", "max_by_cas", "compact_positive"}:
        few, many = (dataclasses.asdict(ran(case, lanes)[1]) for lanes in (64, None))
        assert {n: v for n, v in few.items() if n not in SAMPLED} == {
            n: v for n, v in many.items() if n not in SAMPLED
        }


@pytest.mark.skipif(not oracle.available(), reason="needs g++ to compare with")
@pytest.mark.slow
@pytest.mark.parametrize(
    "file", sorted({c.file for c in CASES} - {"reduction", "irregular", "elementwise", "random"})
)
def test_agrees_with_a_compiler(file: str, tmp_path: Path) -> None:
    """To the last bit, where a compiler may be had."""
    cases = [c for c in CASES if c.file == file and "<" not in c.kernel]
    program = compile_source(source(file))
    ours, theirs = [arguments(c) for c in cases], [arguments(c) for c in cases]
    jobs: list[oracle.Case] = []
    for case, args in zip(cases, theirs, strict=True):
        shapes = [(*s, *(1,) * (3 - len(s))) for s in (case.grid, case.block)]
        jobs.append(oracle.Case(case.kernel, shapes[0], shapes[1], args))
    oracle.run(source(file), jobs, tmp_path)
    for case, mine, other in zip(cases, ours, theirs, strict=True):
        launch(program, case.kernel, case.grid, case.block, *mine, shared=case.shared)
        for a, b in zip(mine, other, strict=True):
            if isinstance(a, np.ndarray):
                np.testing.assert_array_equal(a, b, err_msg=case.kernel)
