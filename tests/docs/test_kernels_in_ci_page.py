"""The project that the page shows is run: it passes, and fails in the page's words without its barrier."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.tools import ROOT, blocks, page

TEXT = page("docs/kernels_in_ci.md")


def shown(language: str) -> str:
    (block,) = blocks(TEXT, language)
    return block


def run_project(folder: Path, source: str) -> subprocess.CompletedProcess[str]:
    (folder / "mine.cu").write_text(source, encoding="utf-8")
    (folder / "test_mine.py").write_text(shown("python"), encoding="utf-8")
    program = [sys.executable, "-m", "pytest", "--tb=short", "-p", "no:cacheprovider", "."]
    how: Any = {"capture_output": True, "encoding": "utf-8", "timeout": 300}
    return subprocess.run(program, cwd=folder, check=False, **how)


@pytest.fixture(autouse=True)
def found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTHONUTF8", "1")
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # it needs none, and starts sooner


def test_the_project_passes_and_fails_without_its_barrier_in_the_pages_words(
    tmp_path: Path,
) -> None:
    source = shown("cuda")
    ran = run_project(tmp_path, source)
    assert ran.returncode == 0, ran.stdout
    assert "4 passed" in ran.stdout
    barrier = "        __syncthreads();\n"
    assert source.count(barrier) == 1
    ran = run_project(tmp_path, source.replace(barrier, ""))
    assert "4 failed" in ran.stdout
    for line in shown("text").splitlines():
        assert line.strip() in ran.stdout
    assert "asyncgpu_tutor/" not in ran.stdout  # the report has their lines and none of ours


def test_the_workflow_runs_what_the_page_runs() -> None:
    (job,) = yaml.safe_load(shown("yaml"))["jobs"].values()
    assert "pytest --tb=short" in [step.get("run") for step in job["steps"]]
