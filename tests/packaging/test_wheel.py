"""The wheels are complete: what a user gets is what the checkout has, and simgpu has a wheel of its own."""

import json
import re
import sys
import zipfile
from pathlib import Path

import pytest

import asyncgpu_tutor
import simgpu
from asyncgpu_course.start import PARTS
from tests.simgpu.judging.conftest import HEADER, KERNEL, SPEC
from tests.tools import ROOT, blocks, page

from .conftest import pip_for, run

LISTING = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]

pytestmark = pytest.mark.slow


def built(project: Path, folder: Path) -> Path:
    run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, project, cwd=folder)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def small_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(ROOT / "simgpu", tmp_path_factory.mktemp("small_wheel"))


def test_wheel_holds_what_the_checkout_holds_and_nothing_else(wheel: Path) -> None:
    listed = run(*LISTING, "asyncgpu_course", "asyncgpu_tutor", "simgpu", *PARTS).stdout.split()
    listed.remove("simgpu/pyproject.toml")
    pages = tuple(f"{part}/" for part in PARTS)
    moved = "asyncgpu_course/pages/"
    expected = {f"{moved * name.startswith(pages)}{name}" for name in listed}
    names = set(zipfile.ZipFile(wheel).namelist())
    # The others are of a checkout in use.
    progress = [f"asyncgpu_course/pages/{part}progress.json" for part in pages]
    left_out = ("asyncgpu_tutor-", *progress)
    assert {name for name in names if not name.startswith(left_out)} == expected
    assert {"asyncgpu_course/py.typed", "asyncgpu_tutor/py.typed", "simgpu/py.typed"} <= names
    assert "asyncgpu_tutor/kernels/sgemm_naive.cu" in names
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
    for file in [*mine.glob("*/*.ipynb"), *mine.glob("docs/*.md")]:
        for target in link.findall(file.read_text("utf-8")):
            links += 1
            assert (file.parent / target).exists(), (file, target)
    assert links > 30


def test_simgpu_by_itself_is_small_and_needs_numpy(small_wheel: Path) -> None:
    assert small_wheel.stat().st_size <= 505_000
    listed = set(run(*LISTING, "simgpu").stdout.split()) - {"simgpu/pyproject.toml"}
    with zipfile.ZipFile(small_wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        (told,) = [archive.read(n).decode() for n in archive.namelist() if n.endswith("/METADATA")]
    assert names == {*listed, "simgpu/LICENSE"}
    assert re.findall(r"Requires-Dist: (.*)", told) == [
        "numpy>=2.0",
        "pytest>=8.2; extra == 'pytest'",
    ]
    assert simgpu.__version__ == asyncgpu_tutor.__version__ in told
    assert [
        link for link in re.findall(r"\]\(([^)\s]+)\)", told) if not link.startswith("https:")
    ] == []


def test_its_plugin_is_registered(small_wheel: Path) -> None:
    with zipfile.ZipFile(small_wheel) as archive:
        (told,) = [
            archive.read(n).decode() for n in archive.namelist() if n.endswith("/entry_points.txt")
        ]
    assert "[pytest11]\nsimgpu.pytest_plugin = simgpu.pytest_plugin\n" in told


def test_simgpu_runs_where_nothing_else_is_installed(
    small_wheel: Path, fresh_python: Path, tmp_path: Path
) -> None:
    install = ("install", "--quiet", "--no-compile")
    run(*pip_for(fresh_python), *install, small_wheel, cwd=tmp_path)
    run(fresh_python, "-c", "\n".join(blocks(page("simgpu/README.md"))), cwd=tmp_path)
    command = fresh_python.with_name("simgpu")
    assert "H200: 132 SMs" in run(command, cwd=tmp_path).stdout
    (tmp_path / "answer.cu").write_text(KERNEL.replace('#include "parts/half.cuh"', HEADER))
    (tmp_path / "mine.cu").write_text((tmp_path / "answer.cu").read_text())
    (tmp_path / "mine_spec.py").write_text(SPEC)
    assert "all right" in run(command, "check", "mine.cu", cwd=tmp_path).stdout
    verdict = run(command, "judge", "mine_spec.py", "answer.cu", "--json", cwd=tmp_path).stdout
    assert json.loads(verdict)["verdict"] == "accepted"
    absent = "import asyncgpu_tutor"
    assert "No module named" in run(fresh_python, "-c", absent, cwd=tmp_path, code=1).stderr
