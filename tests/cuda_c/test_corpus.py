"""Kernels as people write them: each runs unchanged, agrees with NumPy, and raises no false alarm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from asyncgpu_tutor.cuda_c import Limits, compile_source

from . import oracle
from .corpus import CASES, Case, source
from .support import launch


def arguments(case: Case) -> list[Any]:
    return case.make(np.random.default_rng(sum(map(ord, case.kernel))))


def check(case: Case, before: list[Any], after: list[Any]) -> None:
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in before]
    for position, want in case.expect(*copies).items():
        if position < 0:
            used = after[0] != 0xFFFFFFFF
            got = dict(zip(after[0][used].tolist(), after[1][used].tolist(), strict=True))
            assert got == want
            continue
        have = after[position].astype(np.float64)
        np.testing.assert_allclose(
            have, np.asarray(want, np.float64), rtol=case.tolerance, atol=case.tolerance
        )


def test_there_are_enough() -> None:
    assert len({(c.file, c.kernel) for c in CASES}) >= 50


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.kernel)
def test_agrees_with_numpy(case: Case) -> None:
    before, after = arguments(case), arguments(case)
    launch(
        compile_source(source(case.file), contract=True),
        case.kernel,
        case.grid,
        case.block,
        *after,
        shared=case.shared,
    )
    check(case, before, after)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.kernel)
def test_does_not_depend_on_how_many_blocks_run_together(case: Case) -> None:
    before, after = arguments(case), arguments(case)
    launch(
        compile_source(source(case.file), contract=True), case.kernel, case.grid, case.block, *after,
        shared=case.shared, limits=Limits(batch_lanes=64),
    )  # fmt: skip
    check(case, before, after)


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
