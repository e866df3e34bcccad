"""The project that the page shows is run: it passes, and fails in the page's words without its barrier."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from simgpu.judging.judge import CODES
from tests.tools import ROOT, blocks, page

TEXT = page("docs/kernels_in_ci.md")
SPEC, BY_HAND = blocks(TEXT)
(SOURCE,) = blocks(TEXT, "cuda")
CHECKED, FAILURE, JUDGED = blocks(TEXT, "text")
PYTEST = ("-m", "pytest", "-p", "simgpu.pytest_plugin", "-p", "no:cacheprovider")
BARRIER = "        __syncthreads();\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTHONUTF8", "1")
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # it needs one, which is named
    (tmp_path / "mine.cu").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "mine_spec.py").write_text(SPEC, encoding="utf-8")
    return tmp_path


def run(folder: Path, *words: str, code: int = 0) -> str:
    how: Any = {"capture_output": True, "encoding": "utf-8", "timeout": 300, "env": {**os.environ}}
    ran = subprocess.run([sys.executable, *words], cwd=folder, check=False, **how)
    assert ran.returncode == code, ran
    return ran.stdout


def test_the_project_passes_and_fails_without_its_barrier_in_the_pages_words(project: Path) -> None:
    assert "7 passed, 1 skipped" in run(project, *PYTEST)
    assert SOURCE.count(BARRIER) == 1
    (project / "mine.cu").write_text(SOURCE.replace(BARRIER, ""), encoding="utf-8")
    said = run(project, *PYTEST, code=1)
    assert "7 failed, 1 skipped" in said
    assert said.count("\n" + FAILURE) == 7  # where CI is set, pytest's summary has it once more
    assert "simgpu/" not in said  # the report has their lines and none of ours


def test_the_test_by_hand_passes_and_fails_if_coalescing_is_spoiled(project: Path) -> None:
    (project / "test_mine.py").write_text(BY_HAND, encoding="utf-8")
    assert "1 passed" in run(project, *PYTEST, "test_mine.py")
    spoiled = SOURCE.replace("x[i]", "x[i * 33 % 1024]")
    (project / "mine.cu").write_text(spoiled, encoding="utf-8")
    assert "1 failed" in run(project, *PYTEST, "test_mine.py", code=1)


def test_the_commands_say_what_the_page_says(project: Path) -> None:
    (project / "answer.cu").write_text(SOURCE, encoding="utf-8")
    for shown in (CHECKED, JUDGED):
        command, _, said = shown.partition("\n")
        told = run(project, "-m", *command.removeprefix("$ ").split())
        # Two sizes are drawn, and may be among the others.
        assert re.sub("at [78] sizes", "at 9 sizes", told) == re.sub(
            "at 8 sizes", "at 9 sizes", said
        )


def test_the_workflow_is_of_ten_lines_and_runs_what_the_page_runs() -> None:
    (workflow,) = blocks(TEXT, "yaml")
    assert workflow.count("\n") <= 10
    (job,) = yaml.safe_load(workflow)["jobs"].values()
    assert [step.get("run", "").split(" ")[0] for step in job["steps"]] == ["", "pip", "pytest"]


def test_the_exit_codes_are_those_of_the_judge() -> None:
    rows = [
        line.split("|") for line in TEXT.splitlines() if line.startswith("| ") and "---" not in line
    ]
    told = {row[3].strip(): int(row[1]) for row in rows[1:]}
    assert {word: told[word] for word in CODES} == CODES
