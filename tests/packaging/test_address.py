"""The address of the repository is in pyproject.toml, and whatever repeats it says the same."""

import json
import re
import tomllib
from operator import attrgetter
from pathlib import Path

import pytest
import yaml

import asyncgpu_tutor
from tests.tools import ROOT, page, tool

SETTINGS = tomllib.loads(page("pyproject.toml"))
ADDRESS = SETTINGS["project"]["urls"]["Repository"]
NAMED = [
    *((name, r"https://github\.com/[\w.-]*asyncgpu[\w.-]*/\w+", ADDRESS) for name in (
        "README.md", "pyproject.toml", "simgpu/pyproject.toml", "CITATION.cff", "docs/from_cupy.md",
        "docs/kernels_in_ci.md")),
    *((name, r"https://[\w.-]+\.github\.io/\w+/", SETTINGS["project"]["urls"]["Documentation"])
      for name in ("README.md", "simgpu/pyproject.toml", "docs/instructors.md")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "pattern", "address"), NAMED)
def test_every_place_names_the_same_address(name: str, pattern: str, address: str) -> None:
    assert set(re.findall(pattern, page(name))) == {address}


def test_links_of_the_readme_are_absolute_on_an_index() -> None:
    text = page("README.md")
    hook = SETTINGS["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    for rule in hook["substitutions"]:
        text = re.sub(rule["pattern"], rule["replacement"], text)
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    assert f"{ADDRESS}/raw/main/docs/overlap.svg" in links
    assert f"{ADDRESS}/blob/main/ARCHITECTURE.md" in links


def test_what_is_for_colab_installs_the_course_first(tmp_path: Path) -> None:
    assert tool("build_site").write_for_colab(tmp_path) == 0
    chapters = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))
    assert sorted(path.name for path in tmp_path.iterdir()) == chapters
    for path in tmp_path.iterdir():
        title, install = json.loads(path.read_text("utf-8"))["cells"][:2]
        assert title["cell_type"] == "markdown"
        assert install["source"].endswith(f'git+{ADDRESS}"')


def test_the_page_of_the_interface_tells_each_object_once() -> None:
    told = re.findall(r"^\.\. auto\w+:: (\S+)", tool("build_site").interface(), re.MULTILINE)
    objects = [attrgetter(name.removeprefix("asyncgpu_tutor."))(asyncgpu_tutor) for name in told]
    assert len({id(found) for found in objects}) == len(objects) > 100
    assert "asyncgpu_tutor.DeviceError" in told


@pytest.mark.parametrize("path", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda p: p.name)
def test_what_github_reads_is_yaml(path: Path) -> None:
    found = yaml.safe_load(path.read_text("utf-8"))
    if "body" in found:
        assert {item["type"] for item in found["body"]} <= {"input", "textarea"}
    uses = [
        step["uses"]
        for job in found.get("jobs", {}).values()
        for step in job["steps"]
        if "uses" in step
    ]
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action) for action in uses), (
        "a tag can be moved"
    )


def test_the_citation_has_the_version() -> None:
    assert yaml.safe_load(page("CITATION.cff"))["version"] == asyncgpu_tutor.__version__
