"""The two commands, with stand-ins for Python and Jupyter that write down how they were called."""

import os
import re
import shutil
import stat
import sys
from pathlib import Path

import pytest

from tests.tools import ROOT

from .conftest import run

pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or shutil.which("make") is None, reason="needs make and a POSIX shell"
)

# Called with `-m venv DIR` it fills DIR with copies of itself; every other call is only written down.
STAND_IN = """#!/bin/sh
echo "$(basename "$0") $*" >>"$LOG"
case "$*" in
"-m venv "*)
    mkdir -p "$3/bin"
    for name in python jupyter pytest; do cp "$0" "$3/bin/$name"; done ;;
*--cupy-extra) echo "$FOUND" ;;
--version) echo "Python $VERSION" ;;
-c*) [ "$VERSION" != 3.10.1 ] ;;
esac
"""

OPEN_FIRST_PAGE = "python -m asyncgpu_course start"


class Checkout:
    """A folder with our Makefile and nothing real to run."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "log"
        shutil.copy(ROOT / "Makefile", folder)
        shutil.copy(ROOT / "pyproject.toml", folder)
        shutil.copytree(ROOT / "tools", folder / "tools")
        self.python = folder / "stand-in"
        self.python.write_text(STAND_IN)
        self.python.chmod(self.python.stat().st_mode | stat.S_IXUSR)

    def make(self, *words: str, code: int = 0, found: str = "", version: str = "3.12.1") -> str:
        """Run make; what it printed. `log` then has this run's calls only."""
        self.log.write_text("")
        env = {
            "LOG": str(self.log),
            "FOUND": found,
            "VERSION": version,
            "MAKEFLAGS": "",
            "ARGS": "",
        }
        words = (f"PYTHON={self.python}", *words)
        done = run("make", *words, cwd=self.folder, code=code, env=env)
        return done.stdout + done.stderr

    def calls(self) -> list[str]:
        """The commands that were run, without the question for the version."""
        return [line for line in self.log.read_text().splitlines() if "-c import" not in line]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_make_lab_installs_once_and_opens_the_first_page(checkout: Checkout) -> None:
    checkout.make("lab", "ARGS=--no-browser", "PORT=9999")
    calls = checkout.calls()
    assert "stand-in -m venv .venv" in calls
    assert any("install --editable .[lab]" in call for call in calls)
    assert calls[-1] == f"{OPEN_FIRST_PAGE} --port=9999 --no-browser"
    checkout.make("lab")
    assert checkout.calls() == [OPEN_FIRST_PAGE]
    checkout.make("update")
    assert checkout.calls() == [f"{OPEN_FIRST_PAGE} --update"]


def test_a_change_of_pyproject_installs_again_and_keeps_the_environment(checkout: Checkout) -> None:
    checkout.make("venv")
    project = checkout.folder / "pyproject.toml"
    later = project.stat().st_mtime + 3600
    os.utime(project, (later, later))
    checkout.make("venv")
    calls = checkout.calls()
    assert any("install --editable .[test]" in call for call in calls)
    assert not any("-m venv" in call for call in calls)


@pytest.mark.parametrize("extra", ["cuda12", "cuda13"])
def test_with_a_driver_the_fitting_cupy_comes_too(checkout: Checkout, extra: str) -> None:
    checkout.make("lab", found=extra)
    assert any(f"install --editable .[lab,{extra}]" in call for call in checkout.calls())


def test_the_browser_comes_on_top_of_lab_and_test_when_asked_for(checkout: Checkout) -> None:
    checkout.make("test-lab")
    calls = checkout.calls()
    assert any("install --editable .[lab,test,browser]" in call for call in calls)
    assert calls[-1] == "pytest -m lab -rs tests/lab"
    checkout.make("lab", "quick")
    assert not any("install" in call for call in checkout.calls())


def test_an_old_python_is_refused_by_name(checkout: Checkout) -> None:
    said = checkout.make("lab", code=2, version="3.10.1")
    assert "needs Python 3.11 or newer" in said
    assert f"{checkout.python} is Python 3.10.1" in said
    assert "PYTHON=/path/to" in said
    assert not any("venv" in call for call in checkout.calls())


def test_it_keeps_to_the_make_of_macos() -> None:
    """GNU make 3.81, of 2006. What came later, by the NEWS of 3.82 to 4.4, it takes for something else."""
    text = (ROOT / "Makefile").read_text("utf-8")
    rules = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    newer = re.findall(
        r"\.ONESHELL|\.SHELLFLAGS|\.RECIPEPREFIX|\.NOTPARALLEL:.|\.WAIT|\.EXTRA_PREREQS|&:|!=|:::?=|"
        r"\$\((?:file|guile|let|intcmp)\b|(?m:^(?:undefine|private|unexport private|load)\b)",
        rules,
    )
    assert newer == []


def test_make_alone_says_what_there_is(checkout: Checkout) -> None:
    said = checkout.make()
    assert "make lab" in said
    assert "make test" in said
    assert checkout.calls() == []
