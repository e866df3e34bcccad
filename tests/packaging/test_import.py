"""What `import asyncgpu_tutor` does not load, and who may load CuPy."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .conftest import Run

HEAVY = {"cupy", "cupyx", "matplotlib", "nvtx", "cupti", "IPython", "ipykernel", "torch", "scipy"}
CUPY = {"cupy", "cupyx", "cupy_backends"}


def test_import_loads_nothing_heavy(root: Path, run: Run) -> None:
    program = "import asyncgpu_tutor, json, sys; print(json.dumps(sorted(sys.modules)))"
    loaded = set(json.loads(run(sys.executable, "-c", program, cwd=root).stdout))

    assert "asyncgpu_tutor" in loaded
    assert loaded & HEAVY == set()


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


def test_cupy_is_imported_by_the_cupy_device_alone(root: Path) -> None:
    package = root / "asyncgpu_tutor"
    importers = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if imported(ast.parse(path.read_text(encoding="utf-8"))) & CUPY
    }

    assert {name for name in importers if not name.startswith("devices/cuda")} == set()
