"""Tests that rest on unchanged files are left out of a run of all tests, and of no other run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from . import full_runs

CONFTEST = """
import pytest
from tests import full_runs

def pytest_addoption(parser): parser.addoption("--full", action="store_true")

def pytest_configure(config): config.pluginmanager.register(full_runs.FullRuns(config))
"""
RESTS = """
import pytest

@pytest.mark.rests_on("model", "course")
def test_rests(): pass

def test_other(): pass
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # most of what pytest takes to start
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "full_runs.py").write_bytes(Path(full_runs.__file__).read_bytes())
    (tests / "__init__.py").touch()
    (tests / "conftest.py").write_text(CONFTEST)
    (tests / "test_it.py").write_text(RESTS)
    (tmp_path / "course").mkdir()
    (tmp_path / "course" / "a.py").write_bytes(b"1\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    rests_on\n")
    return tmp_path


def passed(checkout: Path, *args: str) -> int:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *args]
    said = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=True).stdout
    left_out = "1 passed, 1 deselected" in said
    assert left_out or "2 passed" in said, said
    assert "left out: tests that rest only on" in said or not left_out
    return 1 if left_out else 2


def test_a_test_is_left_out_until_its_files_change(checkout: Path) -> None:
    record, source = checkout / "tests" / "last_full_run.json", checkout / "course" / "a.py"
    assert passed(checkout, "--full", "tests", "-k", "other or rests") == 2
    assert not record.exists()
    assert passed(checkout, "--full", "tests") == 2
    assert set(json.loads(record.read_text())) == set(full_runs.FILES)
    assert passed(checkout, "tests/test_it.py") == 2
    source.write_bytes(b"1\r\n")  # as git gives it on Windows
    assert passed(checkout, "tests") == 1
    source.write_bytes(b"2\n")
    assert passed(checkout, "tests") == 2


def test_every_mark_names_files_that_exist() -> None:
    for patterns in full_runs.FILES.values():
        assert any(path.is_file() for pattern in patterns for path in full_runs.ROOT.glob(pattern))
