"""The examples of the README work."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests.tools import ROOT, blocks, page, tool

from .conftest import run

README = page("README.md")


def test_the_first_lines_show_the_overlap_that_is_promised(tmp_path: Path) -> None:
    (program,) = blocks(README)
    env = {"ASYNCGPU_DEVICE": "sim"}
    printed = run(sys.executable, "-c", program, cwd=tmp_path, env=env).stdout

    assert len(set(re.findall(r"stream \d+ +kernel", printed))) == 4
    (overlap,) = re.findall(r"overlap +([\d.]+)", printed)
    assert float(overlap) > 0


def test_the_picture_shows_what_its_alt_text_says() -> None:
    picture = tool("readme_picture")
    zipped, overlapped = picture.traces(README)

    assert picture.PICTURE.exists()
    assert [len(trace.find("matvec_naive")) for trace in (zipped, overlapped)] == [4, 4]
    assert (len(zipped.streams), len(overlapped.streams)) == (1, 4)
    assert overlapped.metrics().max_concurrency >= 2
    assert overlapped.metrics().makespan < 0.8 * zipped.metrics().makespan


def test_the_figures_are_those_of_the_pages_behind_them() -> None:
    text = " ".join(README.split())

    def said(pattern: str) -> tuple[int, ...]:
        (found,) = re.findall(pattern, text)
        return tuple(int(n) for n in ([found] if isinstance(found, str) else found))

    fidelity = page("docs/fidelity.md")
    (median,) = re.findall(r"\| mlp \| held out \| \d+ \| ([\d.]+)% \|", fidelity)
    assert said(r"(\d+) % in the median") == (round(float(median)),)

    hazards = page("docs/hazards.md").count("\n### ")
    assert abs(said(r"some (\d+) kinds of mistakes")[0] - hazards) < 5

    pipeline = json.loads(page("benchmarks/results/peers.json"))["pipeline"]
    us = {row["way"]: round(row["us"]) for row in pipeline if row["dim"] == 64}
    assert said(r"take (\d+) µs as a graph of CuPy's, (\d+) µs as .*? and (\d+) µs by hand") == (
        us["CuPy, captured graph"],
        us["ours, a graph"],
        us["CuPy by hand, four streams"],
    )

    instructors = page("docs/instructors.md")
    (counts,) = re.findall(r"\| all \|.*\| (\d+) \| (\d+) \| \|", instructors)
    exercises, predictions = said(
        r"More than (\d+) exercises are .*? some (\d+) predictions are held"
    )
    assert 0 < int(counts[1]) - exercises < 30
    assert abs(int(counts[0]) - predictions) < 8


@pytest.mark.parametrize("name", ["README.md", "course/00_start_here.py"])
def test_the_table_of_contents_has_every_chapter(name: str) -> None:
    chapters = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))
    listed = re.findall(r"\| \[[^\]]+\]\((?:notebooks/)?(\w+\.ipynb)\) \|", page(name))

    assert [name for name in listed if name in chapters] == chapters
