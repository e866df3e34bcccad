"""Specs are tests, `gpu` is a fixture, and a failure is the hazard's own message."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tools import ROOT

from .conftest import KERNEL, SPEC

Pytest = Callable[..., str]
BY_HAND = """from pathlib import Path
import numpy as np
import simgpu

SOURCE = Path(__file__).with_name("plain.cu").read_text()
kept = []

def launched(n=1000, source=SOURCE):
    sums = simgpu.Array.zeros(4, np.float32)
    simgpu.RawKernel(source, "block_sums")(4, 256, (n, simgpu.asarray(np.ones(1000, np.float32)), sums))
    return sums

def test_right(gpu):
    assert launched().device is gpu
    assert launched().get().sum() == 1000

def test_bounds(gpu):
    assert launched(1001).get().sum() == 1001

def test_nobody_waits(gpu):
    launched(1001)

def test_somebody_keeps_it(gpu):
    kept.append(launched())

def test_afterwards(gpu):
    assert launched().get().sum() == 1000
"""


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Pytest:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def pytest_in_folder(*words: str, code: int = 0) -> str:
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "simgpu.pytest_plugin",
            "-p",
            "no:cacheprovider",
            *words,
        ]
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert ran.returncode == code, ran.stdout + ran.stderr
        return ran.stdout

    return pytest_in_folder


def test_each_size_of_a_spec_is_a_test(run: Pytest, folder: Path) -> None:
    (folder / "other_spec.py").write_text("def describe(): ...\n")  # of another tool
    said = run("-v")
    assert "mine_spec.py::block_sums[n=257] PASSED" in said
    assert "mine_spec.py::block_sums[n=0] SKIPPED (no thread to launch)" in said
    assert "7 passed, 1 skipped" in said


def test_a_failure_is_the_hazard_s_message_with_the_file_s_line_also_under_xdist(
    run: Pytest, folder: Path
) -> None:
    (folder / "mine.cu").write_text(KERNEL.replace("        __syncthreads();\n", ""))
    for words in ((), ("-p", "xdist", "-n", "2")):
        said = run(*words, code=1)
        assert "7 failed, 1 skipped" in said
        report = said.partition(" block_sums[n=257] ")[2].splitlines()
        message, quoted = report[1 + report[1].startswith("[gw") :][:2]
        assert message.startswith(
            "mine.cu:9: RaceError: kernel 'block_sums': block (0, 0, 0), thread (0, 0, 0) reads"
        )
        assert quoted == "    line 9: if (t < half) part[t] = plus(part[t], part[t + half]);"
        assert "simgpu/" not in said


def test_a_spec_that_cannot_be_used_is_an_error_in_one_line(run: Pytest, folder: Path) -> None:
    (folder / "mine_spec.py").write_text(SPEC + "1 / 0\n")
    assert "mine_spec.py:14: ZeroDivisionError: division by zero" in run(code=2)
    (folder / "mine_spec.py").rename(folder / "alone_spec.py")
    assert "there is no .cu or .cuh file beside alone_spec.py" in run(code=2)


def test_the_fixture_tells_what_a_test_leaves(run: Pytest, folder: Path) -> None:
    (folder / "plain.cu").write_text(
        KERNEL.replace("plus(part[t], part[t + half])", "part[t] + part[t + half]")
    )
    (folder / "test_by_hand.py").write_text(BY_HAND)
    said = run("--tb=short", "test_by_hand.py", code=1)
    assert "1 failed, 4 passed, 2 errors" in said
    assert "ERROR at teardown of test_nobody_waits" in said
    assert (
        said.count("E   simgpu.errors.OutOfBoundsError: kernel 'block_sums': block (3, 0, 0)") == 2
    )
    assert "1 array was still alive on a simulated device behind the test, 16 bytes" in said
    assert "simgpu/" not in said
