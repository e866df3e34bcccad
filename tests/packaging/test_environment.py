"""environment.yml says the same as pyproject.toml, and its pip part installs."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from packaging.requirements import Requirement

from .conftest import pip_for

if TYPE_CHECKING:
    from .conftest import Run

PROMISED = {"jupyterlab", "cupy-cuda12x", "matplotlib", "nvtx", "pytest", "nbmake"}


@pytest.fixture(scope="module")
def environment(root: Path) -> dict[str, Any]:
    return yaml.safe_load((root / "environment.yml").read_text("utf-8"))


@pytest.fixture(scope="module")
def pip_part(environment: dict[str, Any]) -> list[str]:
    (part,) = (d["pip"] for d in environment["dependencies"] if isinstance(d, dict))
    return part


@pytest.fixture(scope="module")
def project(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]


def requirements(lines: list[str]) -> dict[str, str]:
    """Each requirement in its normal form, by name."""
    parsed = [Requirement(line) for line in lines]
    return {requirement.name: str(requirement) for requirement in parsed}


def test_each_requirement_is_one_of_pyproject(pip_part: list[str], project: dict[str, Any]) -> None:
    extras = project["optional-dependencies"]
    lines = project["dependencies"] + extras["lab"] + extras["cuda12"] + extras["test"]
    theirs, ours = requirements(pip_part[:-1]), requirements(lines)

    assert theirs == {name: ours.get(name) for name in theirs}


def test_it_has_all_that_the_course_needs(pip_part: list[str], project: dict[str, Any]) -> None:
    extras = project["optional-dependencies"]
    needed = requirements(project["dependencies"] + extras["lab"] + extras["cuda12"])

    assert pip_part[-1] == "-e ."
    assert requirements(pip_part[:-1]).keys() >= {*PROMISED, *needed}


def test_python_is_what_the_package_asks(
    environment: dict[str, Any], project: dict[str, Any]
) -> None:
    conda = {d.split()[0]: d for d in environment["dependencies"] if isinstance(d, str)}

    assert conda["python"] == f"python {project['requires-python']}"
    assert "pip" in conda


@pytest.mark.parametrize(
    ("system", "processor", "has_wheels"),
    [
        ("linux", "x86_64", True), ("linux", "aarch64", True), ("win32", "AMD64", True),
        ("linux", "riscv64", False), ("win32", "ARM64", False), ("darwin", "arm64", False),
        ("darwin", "x86_64", False), ("emscripten", "wasm32", False),
    ],
)  # fmt: skip
def test_it_leaves_out_what_has_no_wheel(
    pip_part: list[str], system: str, processor: str, has_wheels: bool
) -> None:
    platform = {"sys_platform": system, "platform_machine": processor}
    listed = [Requirement(line) for line in pip_part[:-1]]
    chosen = {r.name for r in listed if r.marker is None or r.marker.evaluate(platform)}

    assert {"numpy", "matplotlib", "jupyterlab"} <= chosen
    binary = {"nvtx", "cupy-cuda12x", "cuda-toolkit"}
    assert binary & chosen == (binary if has_wheels else set())


@pytest.mark.slow
@pytest.mark.rests_on("requirements")
def test_pip_takes_its_part(
    pip_part: list[str], root: Path, fresh_python: Path, tmp_path: Path, run: Run
) -> None:
    """In an empty environment; to unpack it all would take half a minute, and show no more."""
    listed = tmp_path / "requirements.txt"
    listed.write_text("\n".join([*pip_part[:-1], f"-e {root.as_posix()}"]))
    report = tmp_path / "report.json"

    dry = ("--dry-run", "--quiet", "--report", report)
    run(*pip_for(fresh_python), "install", *dry, "-r", listed, cwd=tmp_path)

    found = json.loads(report.read_text("utf-8"))["install"]
    names = {entry["metadata"]["name"].lower().replace("_", "-") for entry in found}
    assert names >= {"asyncgpu-tutor", "numpy", *(PROMISED - {"cupy-cuda12x"})}
