"""ARCHITECTURE.md shows the house as it stands: its picture is up to date, its files are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tools import tool as load

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "asyncgpu_tutor"
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
    rooms = {path.stem for path in PACKAGE.iterdir() if not path.name.startswith("_")}
    shown = set(re.findall(r"(?m)^ *\d+  (\w+)", TOOL.picture()))

    assert rooms - {"py"} <= shown
    assert max(len(line) for line in TOOL.picture().splitlines()) <= TOOL.WIDTH


def test_a_room_in_no_kind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {kind: rooms for kind, rooms in TOOL.KINDS.items() if kind != "what teaches"}
    monkeypatch.setattr(TOOL, "KINDS", kinds)

    with pytest.raises(TOOL.HouseError, match="exercises"):
        TOOL.picture()


@pytest.mark.parametrize("name", NAMED)
def test_what_it_names_is_there(name: str) -> None:
    assert (ROOT / name).exists() or (PACKAGE / name).exists()


def test_enough_is_named() -> None:
    assert len(NAMED) > 60


def test_there_are_eighteen_laws_each_with_who_holds_it() -> None:
    laws = re.split(r"(?m)^(\d+)\. ", LAWS)[1:]
    numbers, texts = laws[::2], laws[1::2]

    assert numbers == [str(number) for number in range(1, 19)]
    unheld = [n for n, text in zip(numbers, texts, strict=True) if "`tests/" not in text]
    assert unheld == []
