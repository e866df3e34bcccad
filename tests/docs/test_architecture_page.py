"""ARCHITECTURE.md shows the house as it stands: its picture is up to date, its files are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tools import tool as load

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = [ROOT / "asyncgpu_tutor", ROOT / "simgpu"]
TOOL = load("house")
PAGE = TOOL.PAGE.read_text("utf-8")
LAWS = PAGE.partition("\n## The laws\n")[2].partition("\n## ")[0]
# Files and folders, as they are written: from the top of the checkout, or from the package.
NAMED = sorted(
    {
        name
        for name in re.findall(r"`([\w./-]+)`", PAGE)
        if re.search(r"\.(py|md|toml)$", name) or "/" in name
    }
)


def test_the_picture_is_the_house() -> None:
    assert TOOL.drawn(PAGE) == PAGE, "python tools/house.py draws it again"


def test_every_room_is_in_the_picture_with_what_it_is_for() -> None:
    rooms = {
        path.stem
        for package in PACKAGES
        for path in package.iterdir()
        if path.is_dir() or path.suffix == ".py"
        if not path.name.startswith("_")
    }
    shown = set(re.findall(r"(?m)^ *\d+  (\w+)", TOOL.picture()))

    assert rooms <= shown
    assert max(len(line) for line in TOOL.picture().splitlines()) <= TOOL.WIDTH


def test_a_room_in_no_kind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(TOOL.KINDS["asyncgpu_tutor"], "what teaches")

    with pytest.raises(TOOL.HouseError, match="exercises"):
        TOOL.picture()


@pytest.mark.parametrize("name", NAMED)
def test_what_it_names_is_there(name: str) -> None:
    assert any((folder / name).exists() for folder in [ROOT, PACKAGES[0]])


def test_enough_is_named() -> None:
    assert len(NAMED) > 60


def test_there_are_eighteen_laws_each_with_who_holds_it() -> None:
    laws = re.split(r"(?m)^(\d+)\. ", LAWS)[1:]
    numbers, texts = laws[::2], laws[1::2]

    assert numbers == [str(number) for number in range(1, 19)]
    unheld = [n for n, text in zip(numbers, texts, strict=True) if "`tests/" not in text]
    assert unheld == []
