"""The examples in docstrings run, and give what they show."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import numpy as np
import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "asyncgpu_tutor"
MODULES = [
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(PACKAGE.rglob("*.py"))
    if ">>> " in path.read_text("utf-8")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    with np.printoptions(legacy=False):
        results = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)

    assert results.attempted > 0
    assert results.failed == 0
