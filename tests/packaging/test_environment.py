"""environment.yml says the same as pyproject.toml, and its pip part installs."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from tests.tools import ROOT, page

from .conftest import pip_for, run

PROMISED = {"jupyterlab", "cupy-cuda12x", "matplotlib", "nvtx", "pytest", "nbmake"}

SETTINGS = tomllib.loads(page("pyproject.toml"))["project"]
EXTRAS = SETTINGS["optional-dependencies"]
NEEDED: list[str] = SETTINGS["dependencies"] + EXTRAS["lab"] + EXTRAS["cuda12"]
LISTED: list[Any] = yaml.safe_load(page("environment.yml"))["dependencies"]
PIP: list[str] = next(part["pip"] for part in LISTED if isinstance(part, dict))


def requirements(lines: list[str]) -> dict[str, str]:
    """Each requirement in its normal form, by name."""
    parsed = [Requirement(line) for line in lines]
    return {requirement.name: str(requirement) for requirement in parsed}


def test_it_has_all_that_the_course_needs_as_pyproject_says_it() -> None:
    *listed, last = PIP
    theirs, ours = requirements(listed), requirements(NEEDED + EXTRAS["test"])
    conda = {part.split()[0]: part for part in LISTED if isinstance(part, str)}
    assert last == "-e ."
    assert theirs == {name: ours.get(name) for name in theirs}
    assert theirs.keys() >= {*PROMISED, *requirements(NEEDED)}
    assert conda["python"] == f"python {SETTINGS['requires-python']}"
    assert "pip" in conda


@pytest.mark.parametrize(
    ("system", "processor", "has_wheels"),
    [
        ("linux", "x86_64", True), ("linux", "aarch64", True), ("win32", "AMD64", True),
        ("linux", "riscv64", False), ("win32", "ARM64", False), ("darwin", "arm64", False),
        ("darwin", "x86_64", False), ("emscripten", "wasm32", False),
    ],
)  # fmt: skip
def test_it_leaves_out_what_has_no_wheel(system: str, processor: str, has_wheels: bool) -> None:
    platform = {"sys_platform": system, "platform_machine": processor}
    listed = [Requirement(line) for line in PIP[:-1]]
    chosen = {r.name for r in listed if r.marker is None or r.marker.evaluate(platform)}
    assert {"numpy", "matplotlib", "jupyterlab"} <= chosen
    binary = {"nvtx", "cupy-cuda12x", "cuda-toolkit", "cuda-bindings"}
    assert binary & chosen == (binary if has_wheels else set())


@pytest.mark.slow
@pytest.mark.rests_on("requirements")
def test_pip_takes_its_part(fresh_python: Path, tmp_path: Path) -> None:
    """In an empty environment; to unpack it all would take half a minute, and show no more."""
    listed = tmp_path / "requirements.txt"
    listed.write_text("\n".join([*PIP[:-1], f"-e {ROOT.as_posix()}"]))
    report = tmp_path / "report.json"
    dry = ("--dry-run", "--quiet", "--report", report)
    run(*pip_for(fresh_python), "install", *dry, "-r", listed, cwd=tmp_path)
    found = json.loads(report.read_text("utf-8"))["install"]
    names = {entry["metadata"]["name"].lower().replace("_", "-") for entry in found}
    assert names >= {"asyncgpu-tutor", "numpy", *(PROMISED - {"cupy-cuda12x"})}
