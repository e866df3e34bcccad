"""ARCHITECTURE.md shows the house as it stands: its picture is up to date, its files are there."""

from __future__ import annotations

import re

import pytest

from tests.tools import PACKAGES, ROOT, tool

TOOL = tool("house")
PAGE = TOOL.PAGE.read_text("utf-8")
LAWS = PAGE.partition("\n## The laws\n")[2].partition("\n## ")[0]
# Files and folders, as they are written: from the top of the checkout, or from the package.
NAMED = {n for n in re.findall(r"`([\w./-]+)`", PAGE) if re.search(r"/|\.(py|md|toml)$", n)}


def test_the_picture_is_the_house() -> None:
    assert TOOL.drawn(PAGE) == PAGE, "python tools/house.py draws it again"


def test_every_room_is_in_the_picture_with_what_it_is_for() -> None:
    paths = [
        path for package in PACKAGES for path in (ROOT / package).iterdir() if path.name[0] != "_"
    ]
    rooms = {path.stem for path in paths if path.is_dir() or path.suffix == ".py"}
    shown = set(re.findall(r"(?m)^ *\d+  (\w+)", TOOL.picture()))

    assert rooms <= shown
    assert max(len(line) for line in TOOL.picture().splitlines()) <= TOOL.WIDTH


def test_a_room_in_no_kind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(TOOL.KINDS["asyncgpu_course"], "what is asked")

    with pytest.raises(TOOL.HouseError, match="exercises"):
        TOOL.picture()


def test_what_it_names_is_there() -> None:
    assert len(NAMED) > 60
    folders = [ROOT, ROOT / "asyncgpu_tutor"]
    assert [n for n in NAMED if not any((folder / n).exists() for folder in folders)] == []


def test_there_are_twenty_one_laws_each_with_who_holds_it() -> None:
    laws = re.split(r"(?m)^(\d+)\. ", LAWS)[1:]
    numbers, texts = laws[::2], laws[1::2]

    assert numbers == [str(number) for number in range(1, 22)]
    unheld = [n for n, text in zip(numbers, texts, strict=True) if "`tests/" not in text]
    assert unheld == []
