"""With ASYNCGPU_LEAKS=1 the end of a program names the arrays that are still alive."""

from pathlib import Path

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.simulated import SimDevice
from simgpu.memory import MOST_NAMED, leak_report
from tests.tools import python

HEAD = "import asyncgpu_tutor as agt\nagt.use('sim')\n"


def at_exit(tmp_path: Path, program: str, asked: str = "1") -> str:
    script = tmp_path / "program.py"
    script.write_text(HEAD + program, encoding="utf-8")
    return python(script, ASYNCGPU_LEAKS=asked).stderr


def test_a_program_that_keeps_its_results(tmp_path: Path) -> None:
    said = at_exit(
        tmp_path,
        "kept = []\n"
        "for number in range(2):\n"
        "    kept.append(agt.zeros(100, name=f'batch {number}').sync())\n"
        "agt.zeros(1000, name='dropped').sync()\n",
    )
    assert "2 arrays were still alive on a simulated device at exit, 800 bytes" in said
    assert f"'batch 0', 400 bytes, allocated at {tmp_path / 'program.py'}:5" in said
    assert said.index("batch 0") < said.index("batch 1")
    assert "dropped" not in said


@pytest.mark.parametrize(
    ("program", "asked"),
    [("print(agt.ones(64).to_host().sync().sum())\n", "1"), ("x = agt.zeros(4).sync()\n", "0")],
)
def test_only_on_request_and_not_without_a_leak(tmp_path: Path, program: str, asked: str) -> None:
    assert at_exit(tmp_path, program, asked) == ""


def test_work_that_nobody_waits_for(tmp_path: Path) -> None:
    program = "agt.zeros(64, name='lost').and_then(agt.d2h).async_on(agt.create_stream())\n"
    assert "1 array was still alive" in at_exit(tmp_path, program)


def test_the_largest_come_first_and_many_are_counted(sim: SimDevice) -> None:
    arrays = [agt.zeros(n, name=f"a{n}").sync() for n in range(1, MOST_NAMED + 4)]
    lines = leak_report(sim.heap.alive()).split("\n")
    assert lines[1].startswith(f"  'a{MOST_NAMED + 3}', {4 * (MOST_NAMED + 3)} bytes")
    assert lines[-2] == "  ... and 3 more"
    assert len(lines) == MOST_NAMED + 3
    del arrays
    assert leak_report(sim.heap.alive()) == ""
