"""The wheel is complete: what a user gets is what the checkout has."""

import re
import sys
import zipfile
from pathlib import Path

import pytest

from asyncgpu_course.start import PARTS
from tests.tools import ROOT

from .conftest import pip_for, run

LISTING = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT, cwd=folder)
    (path,) = folder.glob("*.whl")
    return path


def test_wheel_holds_what_the_checkout_holds_and_nothing_else(wheel: Path) -> None:
    listed = run(*LISTING, "asyncgpu_course", "asyncgpu_tutor", "simgpu", *PARTS).stdout.split()
    pages = tuple(f"{part}/" for part in PARTS)
    moved = "asyncgpu_course/pages/"
    expected = {f"{moved * name.startswith(pages)}{name}" for name in listed}
    names = set(zipfile.ZipFile(wheel).namelist())
    # The others are of a checkout in use.
    progress = [f"asyncgpu_course/pages/{part}progress.json" for part in pages]
    left_out = ("asyncgpu_tutor-", *progress)
    assert {name for name in names if not name.startswith(left_out)} == expected
    assert {"asyncgpu_course/py.typed", "asyncgpu_tutor/py.typed", "simgpu/py.typed"} <= names
    assert "asyncgpu_tutor/kernels/sgemm_naive.py" in names
    assert any(name.startswith("asyncgpu_tutor/data/") for name in names)
    assert any(name.endswith("/licenses/LICENSE") for name in names)


def test_an_installed_wheel_runs(wheel: Path, fresh_python: Path, tmp_path: Path) -> None:
    run(*pip_for(fresh_python), "install", "--quiet", "--no-compile", wheel, cwd=tmp_path)

    program = "import asyncgpu_tutor as a; print(a.__file__)"
    where = run(fresh_python, "-c", program, cwd=tmp_path).stdout
    assert Path(where).is_relative_to(tmp_path / "venv")
    command = fresh_python.with_name("asyncgpu-tutor")
    assert run(command, "--version", cwd=tmp_path).stdout.strip() == "0.1.0"

    run(fresh_python, "-m", "asyncgpu_tutor", "mlp", "--device", "sim", cwd=tmp_path)
    run(command, "mlp", "--device", "sim", "--input", "digits", cwd=tmp_path)

    # Nothing in that environment runs notebooks, and the doctor says so.
    report = run(command, "doctor", cwd=tmp_path, code=1).stdout
    assert "asyncgpu_tutor[lab]" in report
    assert "To be repaired: ipykernel." in report

    # It has the course in it, whole.
    run(command, "start", "mine", "--copy-only", cwd=tmp_path)
    mine = tmp_path / "mine"
    links = 0
    link = re.compile(r"\]\((?!https?:)([\w./]+\.(?:md|py|ipynb))")
    for page in [*mine.glob("*/*.ipynb"), *mine.glob("docs/*.md")]:
        for target in link.findall(page.read_text("utf-8")):
            links += 1
            assert (page.parent / target).exists(), (page, target)
    assert links > 30
