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
from tests.tools import PACKAGES, ROOT

# Lines as `wc -l` counts them: blank ones and docstrings too.
WHOLE = {
    "asyncgpu_tutor": 21_000,
    "asyncgpu_course": 10_000,
    "simgpu": 23_500,
    "tests": 25_500,
    "course": 44_500,
    "tools": 6_650,
    "benchmarks": 9_000,
}
JAVASCRIPT = 710
ROOMS: dict[str, int] = {}


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
