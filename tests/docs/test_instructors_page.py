"""The page for instructors names things that exist: chapters, sections, exercises, files, commands."""

import json
import re
from pathlib import Path

import pytest

import asyncgpu_tutor as agt
from asyncgpu_course import check
from asyncgpu_course.exercises.chapters import EXERCISES
from tests.tools import ROOT, blocks, page

TEXT = page("docs/instructors.md")
PLANS = TEXT.partition("## Ninety minutes")[2].partition("## Before the first session")[0]
HEADINGS = {
    found
    for source in (ROOT / "course").glob("*.py")
    for found in re.findall(r"^# ##+ (.+)$", source.read_text("utf-8"), re.MULTILINE)
}
# The page has these in quotes, and they are no titles.
SAID = {"but it worked", "more streams are faster", "more chunks are faster"}
SAID |= {"but I thought", "what does it say?"}


def test_the_exercises_that_it_names_exist() -> None:
    named = set(re.findall(r"\b0\d[a-z]?-[a-z][a-z0-9-]+", TEXT))
    assert len(named) > 15
    assert named <= EXERCISES.keys()


def test_the_sections_that_it_names_exist() -> None:
    named = set(re.findall(r'"([^"]+)"', re.sub(r"`[^`]*\(\"[^`]*`", "", PLANS))) - SAID
    assert len(named) > 15
    assert {title for title in named if title not in HEADINGS} == set()


def test_progress_is_the_file_that_it_shows_and_its_program_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "ada/notebooks"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    (shown,), (program,) = blocks(TEXT, "json"), blocks(TEXT)
    with agt.using("sim"):
        assert check("01-grid", lambda n, threads: -(-n // threads)).accepted
    written = json.loads((folder / "progress.json").read_text("utf-8"))
    assert json.loads(shown)["format"] == written["format"]
    (row,) = written["exercises"].values()
    assert row.keys() == json.loads(shown)["exercises"]["01-relu"].keys()
    monkeypatch.chdir(tmp_path)
    exec(program, {})
    assert capsys.readouterr().out == "ada 01-grid\n"
