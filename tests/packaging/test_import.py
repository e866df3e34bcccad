"""What `import asyncgpu_tutor` does not load, and who may load CuPy."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Run

HEAVY = {"cupy", "cupyx", "matplotlib", "nvtx", "cupti", "IPython", "ipykernel", "torch", "scipy"}
CUPY = {"cupy", "cupyx", "cupy_backends"}

LOADED = """
import json, sys
before = set(sys.modules)
{}
print(json.dumps(sorted(set(sys.modules) - before)))
"""
FIRST_OPERATION = """
import sys, types

class Domain:
    get_event_attributes = staticmethod(lambda message: message)
    push_range = staticmethod(print)
    pop_range = staticmethod(int)

sys.modules["nvtx"] = types.SimpleNamespace(get_domain=lambda name: Domain())

import asyncgpu_tutor as agt
agt.value(1).named("my first").sync()
"""


def loaded_by(program: str, run: Run, folder: Path) -> set[str]:
    done = run(sys.executable, "-c", LOADED.format(program), cwd=folder)
    return set(json.loads(done.stdout))


def test_import_takes_a_moment_because_it_loads_no_room(root: Path, run: Run) -> None:
    loaded = loaded_by("import asyncgpu_tutor", run, root)

    assert {name for name in loaded if name.startswith("asyncgpu_tutor")} == {"asyncgpu_tutor"}
    assert loaded & {"numpy", "asyncio", *HEAVY} == set()


@pytest.mark.parametrize(
    ("program", "unneeded"),
    [
        ("agt.Trace()", {"numpy", "asyncio", "asyncgpu_tutor.cuda_c", "asyncgpu_tutor.devices"}),
        ("agt.errors.UsageError", {"numpy", "asyncio", "asyncgpu_tutor.ops"}),
        ("agt.ranges.enabled()", {"numpy", "asyncio", "asyncgpu_tutor.ops"}),
        ("agt.data.seed_inputs", {"asyncio", "asyncgpu_tutor.cuda_c", "asyncgpu_tutor.ops"}),
        (
            "agt.zeros(4)",
            {
                "asyncgpu_tutor.exercises",
                "asyncgpu_tutor.inspection",
                "asyncgpu_tutor.kernels",
                "asyncgpu_tutor.serving",
                "asyncgpu_tutor.traces.analysis",
                "asyncgpu_tutor.traces.pictures",
            },
        ),
    ],
)
def test_a_name_loads_the_rooms_that_it_needs(
    program: str, unneeded: set[str], root: Path, run: Run
) -> None:
    loaded = loaded_by(f"import asyncgpu_tutor as agt\n_ = {program}", run, root)

    assert len(loaded) > 1
    assert loaded & (unneeded | HEAVY) == set()


def test_the_environment_switches_ranges_on_for_the_first_operation(root: Path, run: Run) -> None:
    env = {"ASYNCGPU_NVTX": "1", "ASYNCGPU_DEVICE": "sim"}

    assert "my first" in run(sys.executable, "-c", FIRST_OPERATION, cwd=root, env=env).stdout


def imported(tree: ast.Module) -> set[str]:
    """Top-level packages that a module imports, by statement or by `import_module("name")`."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.split(".")[0])
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = ast.unparse(node.func).split(".")[-1]
            if called in {"import_module", "__import__"}:
                found.add(str(node.args[0].value).split(".")[0])
    return found


def test_the_search_for_imports_sees_each_way_to_import() -> None:
    for source in (
        "import cupy.cuda as c",
        "from cupy.cuda import Stream",
        "def f():\n    import cupy",
        "import importlib\nimportlib.import_module('cupy.cuda')",
        "__import__('cupy')",
    ):
        assert "cupy" in imported(ast.parse(source)), source
    assert "cupy" not in imported(ast.parse("from asyncgpu_tutor import cuda_device"))


def test_cupy_is_imported_by_the_cuda_device_alone(root: Path) -> None:
    package = root / "asyncgpu_tutor"
    importers = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if imported(ast.parse(path.read_text(encoding="utf-8"))) & CUPY
    }

    assert {name for name in importers if not name.startswith("devices/cuda")} == set()
