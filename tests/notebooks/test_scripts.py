"""The scripts beside the notebooks: the same functions, and `asyncio.run` at the edge."""

import ast
import json
from pathlib import Path

import pytest

from tests.tools import ROOT, python

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
    done = python(script, "--device", "sim", check=False)
    assert done.returncode == 0, done.stderr
    assert "simulated" in done.stdout
