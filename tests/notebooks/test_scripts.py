"""The scripts beside the notebooks: the same functions, and `asyncio.run` at the edge."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools import ROOT

SCRIPTS = sorted(ROOT.glob("notebooks/*.py"))
assert SCRIPTS


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_it_has_functions_of_the_notebook_and_runs_without_a_gpu(script: Path) -> None:
    cells = json.loads(script.with_suffix(".ipynb").read_text("utf-8"))["cells"]
    shown = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
    source = script.read_text("utf-8")

    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name != "main":
            assert f"{ast.get_source_segment(source, node)}" in shown, node.name
    command = [sys.executable, str(script), "--device", "sim"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "simulated" in done.stdout
