"""A test that hangs is told of, by our settings of pytest, and keeps nobody waiting."""

import sys
from pathlib import Path

from tests.tools import ROOT

from .conftest import run

TESTS = """
import threading


def test_hangs():
    threading.Event().wait()


def test_goes_on():
    pass
"""


def test_one_that_hangs_fails_and_the_next_one_runs(tmp_path: Path) -> None:
    (tmp_path / "test_two.py").write_text(TESTS)
    settings = ("-c", ROOT / "pyproject.toml", "-o", "faulthandler_timeout=0.5")
    quiet = ("-p", "no:cacheprovider", "-n", "1", tmp_path)
    done = run(sys.executable, "-m", "pytest", *settings, *quiet, code=1)
    assert "1 failed, 1 passed" in done.stdout
    assert "crashed while running" in done.stdout
    assert "in test_hangs" in done.stderr  # where it was
