"""The scripts beside the notebooks: the same functions, and `asyncio.run` at the edge."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
SCRIPTS = sorted(NOTEBOOKS.glob("*.py"))


def test_there_are_some() -> None:
    assert SCRIPTS


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_its_functions_are_those_of_the_notebook(script: Path) -> None:
    cells = json.loads(script.with_suffix(".ipynb").read_text("utf-8"))["cells"]
    shown = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
    source = script.read_text("utf-8")

    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name != "main":
            text = ast.get_source_segment(source, node)
            assert text is not None
            assert text in shown, node.name


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_it_runs_where_there_is_no_gpu(script: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(script), "--device", "sim"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert done.returncode == 0, done.stderr
    assert "simulated" in done.stdout
