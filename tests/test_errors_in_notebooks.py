"""In IPython an error of ours is a few lines, ``%tb`` shows all of it, and other errors are as they were."""

from collections.abc import Callable
from typing import Any

import pytest

Shown = Callable[[str], list[str]]
MOST_LINES = 12
SETUP = 'import asyncgpu_tutor as agt\n_ = agt.use("sim")'
BEYOND = "beyond = agt.Kernel('extern \"C\" __global__ void beyond(float* y) { y[999] = 1.0f; }')"
FORGOTTEN = '''kernel = agt.Kernel("""
extern "C" __global__ void twice(unsigned int n, const float* x, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x
    if (i < n) y[i] = 2.0f * x[i];
}
""")'''


@pytest.fixture(autouse=True)
def _set_up(shell: Any) -> None:
    shell.run_cell(SETUP, store_history=True)


@pytest.fixture
def shown(shell: Any, capsys: pytest.CaptureFixture[str]) -> Shown:
    """Run a cell, and return the lines that it prints, before those on stderr."""

    def lines(cell: str) -> list[str]:
        capsys.readouterr()
        shell.run_cell(cell, store_history=True)
        return "".join(capsys.readouterr()).splitlines()

    return lines


def test_a_forgotten_semicolon_is_shown_with_its_line_its_caret_and_the_cell(shown: Shown) -> None:
    lines = shown(FORGOTTEN)
    assert len(lines) <= MOST_LINES
    assert lines[0].startswith("KernelCompileError: kernel.cu:4:")
    assert "threadIdx.x" in lines[1]
    assert lines[2].strip() == "^"
    assert lines[3] == 'Cell In[2], line 1: kernel = agt.Kernel("""'
    assert "%tb" in lines[-1]


def test_tb_shows_the_whole_traceback(shown: Shown) -> None:
    short = shown(FORGOTTEN)
    whole = shown("%tb")
    assert len(whole) > 2 * len(short)
    assert any("Traceback (most recent call last)" in line for line in whole)
    assert shown(FORGOTTEN)[0] == short[0]


def test_the_error_of_a_task_lands_where_the_task_is_awaited(shown: Shown) -> None:
    shown(BEYOND)
    # The loop that a task belongs to ends with its cell here, so the task is made and awaited in one.
    lines = shown("task = agt.spawn(beyond(agt.zeros(32).partition(32)))\n\nawait task")
    assert len(lines) <= MOST_LINES
    assert lines[0].startswith("OutOfBoundsError: kernel 'beyond'")
    assert any(line.startswith("Cell In[3], line 3: await task") for line in lines)


def test_the_functions_on_the_way_are_left_out_but_for_the_last(shown: Shown) -> None:
    lines = shown("def inner():\n    agt.zeros(-1)\n\ndef outer():\n    inner()\n\nouter()")
    assert [line for line in lines if line.startswith("Cell")] == [
        "Cell In[2], line 7: outer()",
        "Cell In[2], line 2: agt.zeros(-1)",
    ]


GROUP = """import asyncio

async def run(op):
    return await op

out = agt.zeros(32).partition(32)
async with asyncio.TaskGroup() as group:
    group.create_task(run(beyond(out)))
    group.create_task(run(agt.ones(3)))"""


def test_a_group_with_ours_is_short(shown: Shown) -> None:
    shown(BEYOND)
    lines = shown(GROUP)
    assert len(lines) <= MOST_LINES
    assert lines[0] == "ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)"
    assert lines[1].startswith("Cell In[3], line 7: async with asyncio.TaskGroup()")
    assert lines[2].startswith("OutOfBoundsError: kernel 'beyond'")
    assert "Cell In[3], line 4: return await op" in lines
    call = lines[-1].removeprefix("(").partition(" in a cell")[0]
    assert any("Exception Group Traceback" in line for line in shown(call))


def test_of_many_errors_in_a_group_some_are_shown_and_the_rest_are_counted(shown: Shown) -> None:
    cell = """inner = [ValueError("theirs"), *(agt.UsageError(f"error {i}") for i in range(4))]
raise ExceptionGroup("outer", [ExceptionGroup("inner", inner)])"""
    lines = shown(cell)
    assert lines[2:5] == ["ValueError: theirs", "UsageError: error 0", "UsageError: error 1"]
    assert "... and 2 more." in lines


def test_the_cause_is_told_unless_it_says_the_same(shown: Shown) -> None:
    for cause, told in (
        ("KeyError('k')", ["because of KeyError: 'k'"]),
        ("agt.UsageError('u')", []),
    ):
        lines = shown(f"raise agt.UsageError('it') from {cause}")
        assert lines[:-2] == ["UsageError: it", *told]


def test_other_errors_and_other_handlers_are_left_alone(shown: Shown, shell: Any) -> None:
    shown("agt.zeros(-1)")  # ours has been shown, so groups are looked at
    lines = shown("raise ExceptionGroup('theirs', [ValueError('theirs')])")
    assert any("Exception Group Traceback" in line for line in lines)
    handled: list[str] = []

    def handler(self: Any, kind: Any, error: Any, tb: Any, tb_offset: Any = None) -> None:
        handled.append(str(error))

    assert any("Traceback" in line for line in shown("1 / 0"))
    shell.set_custom_exc((ValueError,), handler)
    shown("raise ValueError('theirs')")
    assert handled == ["theirs"]
    shown("agt.zeros(-1)")
    assert shell.custom_exceptions == (ValueError,)
