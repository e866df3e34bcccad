"""Types stay visible through the combinators: what pyright accepts, and what it refuses."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.tools import python

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def errors() -> dict[str, dict[int, str]]:
    """Pyright's messages, by file and line (from 1). One run for both files, since starting costs most."""
    options = ["--outputjson", "--pythonpath", sys.executable]
    files = (HERE / "sample.py", HERE / "mistakes.py")
    done = python("-m", "pyright", *options, *files, check=False)
    found: dict[str, dict[int, str]] = {"sample.py": {}, "mistakes.py": {}}
    for item in json.loads(done.stdout)["generalDiagnostics"]:
        line = item["range"]["start"]["line"] + 1
        found[Path(item["file"]).name][line] = item["message"]
    return found


def test_results_have_the_types_that_the_sample_asserts(errors: dict[str, dict[int, str]]) -> None:
    assert errors["sample.py"] == {}


def test_each_marked_mistake_is_refused_and_nothing_else(errors: dict[str, dict[int, str]]) -> None:
    lines = (HERE / "mistakes.py").read_text("utf-8").splitlines()
    marked = {number for number, line in enumerate(lines, 1) if line.endswith("# mistake")}
    assert set(errors["mistakes.py"]) == marked
