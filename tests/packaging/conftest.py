"""Commands, environments to run them in, and the order in which the tests run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools import ROOT


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests first; quick ones then fill the gaps, so that no process ends much later."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def run(
    *command: str | Path, cwd: Path = ROOT, code: int = 0, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command without this process's Python settings; fail with what it printed."""
    ours = ("PYTHON", "PYTEST", "VIRTUAL_ENV")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=cwd, env=clean | (env or {}), capture_output=True, text=True, check=False
    )
    assert done.returncode == code, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture
def fresh_python(tmp_path: Path) -> Path:
    """The interpreter of a new, empty virtual environment; it has no pip: see `pip_for`."""
    run(sys.executable, "-m", "venv", "--without-pip", "venv", cwd=tmp_path)
    scripts = "Scripts" if sys.platform == "win32" else "bin"
    return tmp_path / "venv" / scripts / "python"


def pip_for(python: Path) -> tuple[str | Path, ...]:
    """This environment's pip, at work on another one; to install one there takes three seconds."""
    return (sys.executable, "-m", "pip", "--python", python)
