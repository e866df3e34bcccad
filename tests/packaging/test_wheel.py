"""The wheel is complete: what a user gets is what the checkout has."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .conftest import pip_for

if TYPE_CHECKING:
    from .conftest import Run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory, run: Run) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, root, cwd=folder)
    (path,) = folder.glob("*.whl")
    return path


def test_wheel_holds_what_the_checkout_holds_and_nothing_else(root: Path, wheel: Path) -> None:
    package = root / "asyncgpu_tutor"
    expected = {
        path.relative_to(root).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    names = set(zipfile.ZipFile(wheel).namelist())

    assert {name for name in names if not name.startswith("asyncgpu_tutor-")} == expected
    assert "asyncgpu_tutor/py.typed" in names
    assert "asyncgpu_tutor/kernels/sgemm_naive.py" in names
    assert any(name.startswith("asyncgpu_tutor/data/") for name in names)
    assert any(name.endswith("/licenses/LICENSE") for name in names)


def test_installed_wheel_runs_the_main_job(
    wheel: Path, fresh_python: Path, tmp_path: Path, run: Run
) -> None:
    run(*pip_for(fresh_python), "install", "--quiet", "--no-compile", wheel, cwd=tmp_path)

    where = run(
        fresh_python, "-c", "import asyncgpu_tutor as a; print(a.__file__)", cwd=tmp_path
    ).stdout
    assert Path(where).is_relative_to(tmp_path / "venv")
    command = fresh_python.with_name("asyncgpu-tutor")
    assert run(command, "--version", cwd=tmp_path).stdout.strip() == "0.1.0"

    run(fresh_python, "-m", "asyncgpu_tutor", "mlp", "--device", "sim", cwd=tmp_path)
    run(command, "mlp", "--device", "sim", "--input", "digits", cwd=tmp_path)

    # Nothing in that environment runs notebooks, and the doctor says so.
    report = json.loads(run(command, "doctor", "--json", cwd=tmp_path, code=1).stdout)
    assert not report["can_run"]
    missing = {f["name"]: f for f in report["findings"] if f["status"] == "missing"}
    assert "asyncgpu_tutor[lab]" in missing["ipykernel"]["advice"]
