"""In IPython an error of ours is a few lines, ``%tb`` shows all of it, and other errors are as they were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

MOST_LINES = 12
SETUP = 'import asyncgpu_tutor as agt\n_ = agt.use("sim")'
FORGOTTEN = '''kernel = agt.Kernel("""
extern "C" __global__ void twice(unsigned int n, const float* x, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x
    if (i < n) y[i] = 2.0f * x[i];
}
""")'''


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    interactive = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell
    interactive.clear_instance()
    found = interactive.instance()
    yield found
    interactive.clear_instance()


def shown(shell: Any, capsys: pytest.CaptureFixture[str], cell: str) -> list[str]:
    """The lines that running a cell prints."""
    capsys.readouterr()
    shell.run_cell(cell, store_history=True)
    return capsys.readouterr().out.splitlines()


def test_a_forgotten_semicolon_is_shown_with_its_line_its_caret_and_the_cell(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    shown(shell, capsys, SETUP)

    lines = shown(shell, capsys, FORGOTTEN)

    assert len(lines) <= MOST_LINES
    assert lines[0].startswith("KernelCompileError: kernel.cu:4:")
    assert "threadIdx.x" in lines[1]
    assert lines[2].strip() == "^"
    assert lines[3] == 'Cell In[2], line 1: kernel = agt.Kernel("""'
    assert "%tb" in lines[-1]


def test_tb_shows_the_whole_traceback(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shown(shell, capsys, SETUP)
    short = shown(shell, capsys, FORGOTTEN)

    whole = shown(shell, capsys, "%tb")

    assert len(whole) > 2 * len(short)
    assert any("Traceback (most recent call last)" in line for line in whole)
    assert shown(shell, capsys, FORGOTTEN)[0] == short[0]


def test_the_error_of_a_task_lands_where_the_task_is_awaited(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    shown(shell, capsys, SETUP)
    shown(
        shell,
        capsys,
        "beyond = agt.Kernel('extern \"C\" __global__ void beyond(float* y) { y[999] = 1.0f; }')\n"
        "task = agt.spawn(beyond(agt.zeros(32).partition(32)))",
    )
    # The loop that a task belongs to ends with its cell here, so the task is made and awaited in one.
    lines = shown(
        shell, capsys, "task = agt.spawn(beyond(agt.zeros(32).partition(32)))\n\nawait task"
    )

    assert len(lines) <= MOST_LINES
    assert lines[0].startswith("OutOfBoundsError: kernel 'beyond'")
    assert any(line.startswith("Cell In[3], line 3: await task") for line in lines)


def test_the_functions_on_the_way_are_left_out_but_for_the_last(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    shown(shell, capsys, SETUP)
    lines = shown(
        shell,
        capsys,
        "def inner():\n    agt.zeros(-1)\n\ndef outer():\n    inner()\n\nouter()",
    )

    assert [line for line in lines if line.startswith("Cell")] == [
        "Cell In[2], line 7: outer()",
        "Cell In[2], line 2: agt.zeros(-1)",
    ]


def test_other_errors_and_other_handlers_are_left_alone(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    handled: list[str] = []

    def handler(self: Any, kind: Any, error: Any, tb: Any, tb_offset: Any = None) -> None:
        handled.append(str(error))

    shown(shell, capsys, SETUP)
    assert any("Traceback" in line for line in shown(shell, capsys, "1 / 0"))
    shell.set_custom_exc((ValueError,), handler)
    shown(shell, capsys, "raise ValueError('theirs')")
    assert handled == ["theirs"]
