"""Size is a feature: each room has a budget, a little above what is there.

So a good change fits, and growth by a tenth does not. A change that needs more room raises the budget of
that room and says what for.
"""

from __future__ import annotations

import ast
from dataclasses import fields
from pathlib import Path

import pytest

from simgpu.cuda_c.compile.context import Context
from tests.tools import PACKAGES, ROOT, tool

# Lines as `wc -l` counts them: blank ones and docstrings too.
WHOLE = {
    "asyncgpu_tutor": 24_096,
    "asyncgpu_course": 11_890,
    "simgpu": 29_128,
    "tests": 39_467,
    "course": 48_000,
    "tools": 7_900,
    "benchmarks": 9_050,
}
JAVASCRIPT = 700
ROOMS = {
    "asyncgpu_course/checks": 1_940,
    "asyncgpu_course/exercises": 7_710,
    "asyncgpu_course/ladder": 246,
    "asyncgpu_course/start": 210,
    "asyncgpu_tutor/arrays": 687,
    "asyncgpu_tutor/clusters": 1_245,
    "asyncgpu_tutor/commands": 1_530,
    "asyncgpu_tutor/data": 569,
    "asyncgpu_tutor/devices": 4_710,
    "asyncgpu_tutor/inspection": 964,
    "asyncgpu_tutor/kernels": 1_109,
    "asyncgpu_tutor/language": 606,
    "asyncgpu_tutor/ops": 2_680,
    "asyncgpu_tutor/run": 2_236,
    "asyncgpu_tutor/serving": 1_215,
    "asyncgpu_tutor/traces": 6_183,
    "simgpu/cuda_c": 22_322,
    "simgpu/cuda_c/compile": 9_818,
    "simgpu/cuda_c/cost": 2_300,
    "simgpu/cuda_c/lockstep": 1_020,
    "simgpu/cuda_c/memory": 3_670,
    "simgpu/cuda_c/run": 1_087,
    "simgpu/cuda_c/syntax": 2_818,
    "simgpu/cuda_c/text": 1_300,
    "simgpu/judging": 946,
    "simgpu/report": 646,
}


def lines(folder: Path, ending: str = "py") -> int:
    """All lines of a folder's files."""
    return sum(file.read_bytes().count(b"\n") for file in folder.rglob(f"*.{ending}"))


def rooms() -> list[str]:
    """Each folder of a package, and one below the largest."""
    found = [path for name in PACKAGES for path in (ROOT / name).iterdir() if path.is_dir()]
    found += (ROOT / "simgpu" / "cuda_c").iterdir()
    return sorted(p.relative_to(ROOT).as_posix() for p in found if any(p.glob("*.py")))


@pytest.mark.parametrize("name", [*WHOLE, *ROOMS])
def test_it_stays_within_its_budget(name: str) -> None:
    found, budget = lines(ROOT / name), {**WHOLE, **ROOMS}[name]
    assert found <= budget, (
        f"{name} has {found:,} lines, {found - budget:,} more than its budget: take out what is not needed "
        "any more, or raise the budget here, and say in the change what the room is for"
    )


def test_each_room_has_a_budget() -> None:
    assert rooms() == sorted(ROOMS)


def test_the_tests_of_each_room_that_is_mutated_are_there() -> None:
    """A path that isn't there fails, too, as if a test had noticed the change."""
    asked = tool("mutate").ROOMS
    paths = [*asked, *(f"tests/{path}" for paths in asked.values() for path in paths)]
    assert [path for path in paths if not (ROOT / path).is_dir()] == []


def test_scripts_of_the_browser_stay_within_theirs() -> None:
    folders = ["asyncgpu_tutor", "tools"]
    assert sum(lines(ROOT / folder, "js") for folder in folders) <= JAVASCRIPT


def test_what_the_interpreter_does_can_be_read_function_by_function() -> None:
    """A file of it knows its room: the state of a compilation is small, and no function is long."""
    long = {
        f"{file.name}: {node.name}"
        for file in (ROOT / "simgpu" / "cuda_c").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno >= 60
    }
    assert long == set()
    assert len(fields(Context)) <= 12
