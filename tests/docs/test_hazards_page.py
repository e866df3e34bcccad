"""Every program on the hazards page fails as the page says: same class, same words."""

import json
from typing import Any

import numpy as np
import pytest

from asyncgpu_tutor import errors
from tests.tools import ROOT, page, tool

TOOL = tool("hazards")
TEXT = TOOL.PAGE.read_text("utf-8")
HAZARDS = TOOL.hazards(TEXT)
RECORD = json.loads(TOOL.RECORD.read_text("utf-8"))
OTHER_WAY = TEXT.index("## What compute-sanitizer sees, and the simulated device does not")


@pytest.mark.parametrize("hazard", HAZARDS, ids=lambda h: h.title)
def test_a_program_fails_with_the_words_that_are_shown(hazard: Any) -> None:
    said = TOOL.message(hazard.program)
    assert said == hazard.shown, "if the new words are meant: python tools/hazards.py"
    if hazard.title not in RECORD["programs"]:  # somebody without a GPU has added it
        assert not hazard.sanitizer
        pytest.skip("not recorded yet; on a GPU: python tools/sanitizer.py --only TITLE")
    told = RECORD["programs"][hazard.title]
    assert told["digest"] == hazard.digest, "on a GPU: python tools/sanitizer.py --only TITLE"
    assert hazard.sanitizer == TOOL.verdict(hazard.shown, told)
    if TEXT.index(hazard.program) > OTHER_WAY:
        assert hazard.shown == "nothing: it ran to its end\n"
        assert "says" in hazard.sanitizer.split("The other tools")[0]
    else:
        assert issubclass(getattr(errors, hazard.shown.split(":")[0]), errors.AsyncGpuError)


def test_each_section_has_its_program() -> None:
    sections = [line[4:] for line in TEXT.split("\n") if line.startswith("### ")]
    assert [h.title for h in HAZARDS] == sections
    assert TEXT.count("```python") == len(sections)


def test_every_error_of_a_device_is_on_the_page() -> None:
    shown = {h.shown.split(":")[0] for h in HAZARDS}
    kinds = [kind for name in errors.__all__ if isinstance(kind := getattr(errors, name), type)]
    device = [kind for kind in kinds if issubclass(kind, errors.DeviceError)]
    leaves = {kind.__name__ for kind in device if not kind.__subclasses__()}
    assert leaves - shown == {"CollectiveError"}  # it takes two devices, and docs/cluster.md has it
    assert "CollectiveError" in page("docs/cluster.md")


def test_the_page_names_what_it_was_recorded_on() -> None:
    gpu, driver = RECORD["gpu"].split(", ")
    version = RECORD["version"].split()[1].rsplit(".", 1)[0]
    head = " ".join(TEXT.split("## ")[0].split())
    assert f"recorded on an {gpu}, driver {driver}, compute-sanitizer {version}." in head


CALLED = {"buffers": "host arrays", "hostcalls": "calls of the host"}


def test_how_much_is_found_is_what_the_bench_found() -> None:
    found = json.loads((ROOT / "benchmarks/results/hazards.json").read_text("utf-8"))
    rows = list[tuple[str, list[int]]]()
    for name, told in found.items():
        bugs = [one for one in told["bugs"] if one["right"]]
        lines = [one for one in bugs if one["line"]]
        right = [one["right"] for one in told["sound"]]
        causes = [one for one in lines if one["cause"]]
        counts = [*map(len, (told["bugs"], bugs, lines, causes, right)), right.count(False)]
        rows.append((CALLED.get(name, name), counts))
    rows.append(("all", np.sum([counts for _, counts in rows], axis=0).tolist()))
    shown = [line.strip("| ").split(" | ") for line in TEXT.split("\n") if line.count(" | ") == 6]
    table = {row[0]: [*map(int, row[1:])] for row in shown if row[-1].isdigit()}
    assert table == dict(rows)
    mistakes, _, _, _, right, _ = table["all"]
    assert f"{mistakes} small programs with a mistake in them, and {right} right ones" in TEXT
