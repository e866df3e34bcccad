"""Types stay visible through the combinators: what pyright accepts, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@pytest.fixture(scope="module")
def errors() -> dict[str, dict[int, str]]:
    """Pyright's messages, by file and line (from 1). One run for both files, since starting costs most."""
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    command += [str(HERE / "sample.py"), str(HERE / "mistakes.py")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
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
