"""The examples of the README work."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.tools import ROOT
from tests.tools import tool as load

if TYPE_CHECKING:
    from .conftest import Run


def test_the_first_lines_show_the_overlap_that_is_promised(tmp_path: Path, run: Run) -> None:
    (program,) = re.findall(r"(?ms)^```python\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"))
    printed = run(
        sys.executable, "-c", program, cwd=tmp_path, env={"ASYNCGPU_DEVICE": "sim"}
    ).stdout

    assert len(set(re.findall(r"stream \d+ +kernel", printed))) == 4
    (overlap,) = re.findall(r"overlap +([\d.]+)", printed)
    assert float(overlap) > 0


def test_the_picture_shows_what_its_alt_text_says() -> None:
    tool = load("readme_picture")
    zipped, overlapped = tool.traces((ROOT / "README.md").read_text("utf-8"))

    assert tool.PICTURE.exists()
    assert [len(trace.find("matvec_naive")) for trace in (zipped, overlapped)] == [4, 4]
    assert (len(zipped.streams), len(overlapped.streams)) == (1, 4)
    assert overlapped.metrics().max_concurrency >= 2
    assert overlapped.metrics().makespan < 0.8 * zipped.metrics().makespan


def test_the_figures_are_those_of_the_pages_behind_them() -> None:
    text = " ".join((ROOT / "README.md").read_text("utf-8").split())

    def said(pattern: str) -> tuple[int, ...]:
        (found,) = re.findall(pattern, text)
        return tuple(int(n) for n in ([found] if isinstance(found, str) else found))

    fidelity = (ROOT / "docs/fidelity.md").read_text("utf-8")
    (median,) = re.findall(r"\| mlp \| held out \| \d+ \| ([\d.]+)% \|", fidelity)
    assert said(r"(\d+) % in the median") == (round(float(median)),)

    hazards = (ROOT / "docs/hazards.md").read_text("utf-8").count("\n### ")
    assert abs(said(r"some (\d+) kinds of mistakes")[0] - hazards) < 5

    pipeline = json.loads((ROOT / "benchmarks/results/peers.json").read_text("utf-8"))["pipeline"]
    us = {row["way"]: round(row["us"]) for row in pipeline if row["dim"] == 64}
    assert said(r"take (\d+) µs as a graph of CuPy's, (\d+) µs as .*? and (\d+) µs by hand") == (
        us["CuPy, captured graph"],
        us["ours, a graph"],
        us["CuPy by hand, four streams"],
    )

    instructors = (ROOT / "docs/instructors.md").read_text("utf-8")
    (counts,) = re.findall(r"\| all \|.*\| (\d+) \| (\d+) \| \|", instructors)
    exercises, predictions = said(
        r"More than (\d+) exercises are .*? some (\d+) predictions are held"
    )
    assert 0 < int(counts[1]) - exercises < 30
    assert abs(int(counts[0]) - predictions) < 8


@pytest.mark.parametrize("page", ["README.md", "course/00_start_here.py"])
def test_the_table_of_contents_has_every_chapter(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    chapters = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))
    listed = re.findall(r"\| \[[^\]]+\]\((?:notebooks/)?(\w+\.ipynb)\) \|", text)

    assert [name for name in listed if name in chapters] == chapters
