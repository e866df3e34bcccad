"""The examples of the README work."""

import re
import sys
from pathlib import Path

import pytest

from asyncgpu_course.exercises.chapters import BOOKS
from tests.tools import ROOT, blocks, page, tool

from .conftest import run

README = page("README.md")


def test_the_first_lines_show_the_overlap_that_is_promised(tmp_path: Path) -> None:
    (program,) = blocks(README)
    env = {"ASYNCGPU_DEVICE": "sim"}
    in_turn = program.replace("overlap(", "zip(")
    ways = ((r"done after (\d+) µs", program, 4), (r"take turns, for (\d+) µs", in_turn, 1))
    for words, source, streams in ways:
        printed = run(sys.executable, "-c", source, cwd=tmp_path, env=env).stdout
        assert len(set(re.findall(r"stream \d+ +kernel", printed))) == streams
        (makespan,) = re.findall(r"makespan +([\d.]+)", printed)
        assert re.findall(words, " ".join(README.split())) == [f"{float(makespan):.0f}"]


def test_the_picture_shows_the_slow_program_and_asks_for_the_quick_one() -> None:
    picture = tool("readme_picture")
    slow, quick = picture.makespans()
    drawn = picture.PICTURE.read_text("utf-8")
    assert drawn == picture.svg(), "run tools/readme_picture.py"
    assert f"That took {slow} microseconds on one queue." in README
    assert str(quick) not in README, "the first page asks for this number"
    assert f"{quick}" not in drawn.replace(".", " ").split()
    assert f"![{picture.words()}](docs/overlap.svg)" in README
    assert len(drawn) < 15_000


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

    instructors = page("docs/instructors.md")
    (counts,) = re.findall(r"\| all \|.*\| (\d+) \| (\d+) \| \|", instructors)
    ((hours, encores),) = re.findall(r"\| all \| (\d+) h \+ (\d+) h \|", instructors)
    assert said(r"about (\d+) hours") == (int(hours),)
    assert said(r"encores (\d+) more") == (int(encores),)
    exercises, guesses = said(r"More than (\d+) exercises are .*? some (\d+) guesses are held")
    assert 0 < int(counts[1]) - exercises < 30
    assert abs(int(counts[0]) - guesses) < 8


@pytest.mark.parametrize("name", ["README.md", "course/00_start_here.py"])
def test_the_contents_have_every_chapter_and_every_book(name: str) -> None:
    chapters = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))
    listed = re.findall(r"\[\d\d\w?(?: [^\]]+)?\]\((?:notebooks/)?(\w+\.ipynb)\)", page(name))
    assert [name for name in listed if name in chapters] == chapters
    books = re.findall(r"\*([\w, ]+)\*+ \((?:from )?(\d\d)(?: to \d\d)?\)", page(name))
    assert books == [(title, first) for first, title in BOOKS.items()]


def test_it_is_read_in_five_minutes() -> None:
    assert len(README.split()) <= 1_250
