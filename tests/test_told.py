"""A test that is told other words than are noted fails, and a run that notes writes them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from . import told

CONFTEST = """
import pytest
from .told import Told

def pytest_addoption(parser):
    parser.addoption("--full", action="store_true")
    parser.addoption("--note", action="store_true")

def pytest_configure(config):
    config.pluginmanager.register(Told(config))
"""
RAISES = """
import pytest
from simgpu.errors import SimGpuError

def test_it():
    with pytest.raises(SimGpuError, match="too long"):
        raise SimGpuError("{} is too long by 0.123456 us")
    with pytest.raises(ValueError):
        int("not ours")
"""


@pytest.mark.skipif(not told.HELD, reason="words of errors are compared on Linux alone")
def test_words_of_an_error_are_held_once_they_are_noted(tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "told.py").write_bytes(Path(told.__file__).read_bytes())
    (tests / "__init__.py").touch()
    (tests / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    def run(word: str, *options: str) -> str:
        (tests / "test_it.py").write_text(RAISES.format(word))
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, "tests"]
        env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
        return done.stdout

    assert "1 passed" in run("a wait")
    assert "1 passed" in run("a wait", "--full")
    noted = tests / "told" / "test_it.json"
    assert json.loads(noted.read_text()) == {"test_it": ["a wait is too long by 0.123 us"]}
    assert "1 passed" in run("a wait")
    said = run("a loop", "--full")
    assert "1 failed" in said
    assert "pytest --note tests/test_it.py" in said
    assert "1 passed" in run("a loop", "--note")
    assert json.loads(noted.read_text()) == {"test_it": ["a loop is too long by 0.123 us"]}


def test_every_noted_test_is_there() -> None:
    for file in told.FOLDER.rglob("*.json"):
        place = file.relative_to(told.FOLDER)
        if place.parts[0] == "notebooks":
            assert (told.FOLDER.parents[1] / place).with_suffix(".ipynb").exists()
            continue
        source = told.FOLDER.parent / place.with_suffix(".py")
        text = source.read_text("utf-8")
        for name in json.loads(file.read_text("utf-8")):
            function = name.partition("[")[0].rpartition("::")[2]
            assert f"def {function}(" in text, f"{file}: {name} is no test any more"
