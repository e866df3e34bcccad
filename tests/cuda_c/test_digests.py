"""The interpreter against what a GPU computed, bit by bit, where there is no GPU."""

from __future__ import annotations

import json

import pytest

from .corpus import Case
from .digests import EXACT, FILE, interpreted, source_digest

RECORDED = json.loads(FILE.read_text()) if FILE.exists() else {}


@pytest.mark.skipif(not RECORDED, reason="needs a GPU once: python -m tests.cuda_c.digests")
@pytest.mark.parametrize("case", EXACT, ids=lambda c: c.kernel)
def test_computes_what_a_gpu_computed(case: Case) -> None:
    if f"{case.file}: {case.kernel}" not in RECORDED:
        pytest.skip("needs a GPU once: python -m tests.cuda_c.digests")
    given, computed = RECORDED[f"{case.file}: {case.kernel}"]
    assert given == source_digest(case), "record it again: python -m tests.cuda_c.digests"
    assert interpreted(case) == computed
