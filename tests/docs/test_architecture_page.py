"""ARCHITECTURE.md and docs/decisions.md show the house as it stands: picture, files and laws."""

import re

import pytest

from tests.tools import PACKAGES, ROOT, page, tool

TOOL = tool("house")
PAGE = TOOL.PAGE.read_text("utf-8")
DECISIONS = page("docs/decisions.md")
LAWS = DECISIONS.partition("\n## The laws\n")[2].partition("\n## ")[0]
# Each part of the pages, with the folders in which its paths begin, besides the top of the checkout.
TUTORS, _, OF_SIMGPU = PAGE.partition("\nThese begin in `simgpu/`")
SIMGPUS, _, WAY = OF_SIMGPU.partition("\n## ")
PARTS = {"asyncgpu_tutor": TUTORS + WAY + DECISIONS, "simgpu": SIMGPUS}


def named(text: str) -> set[str]:
    """Files and folders that a text names."""
    return {n for n in re.findall(r"`([\w./-]+)`", text) if re.search(r"/|\.(py|md|toml)$", n)}


def test_it_is_one_page_and_the_picture_is_the_house() -> None:
    written = TOOL.PICTURE.sub("", PAGE)
    assert len(written.split()) <= 1400  # besides the picture
    assert max(map(len, (PAGE + DECISIONS).splitlines())) <= 200
    assert TOOL.drawn(PAGE) == PAGE, "python tools/house.py draws it again"


def test_every_room_is_in_the_picture_with_what_it_is_for() -> None:
    paths = [path for package in PACKAGES for path in (ROOT / package).glob("[!_]*")]
    rooms = {path.stem for path in paths if path.is_dir() or path.suffix == ".py"}
    shown = set(re.findall(r"(?m)^ *\d+  (\w+)", TOOL.picture()))
    assert rooms <= shown
    assert max(len(line) for line in TOOL.picture().splitlines()) <= TOOL.WIDTH


def test_the_tests_of_a_package_are_in_folders_that_it_has_too() -> None:
    files = [file for name in PACKAGES for file in (ROOT / "tests" / name).rglob("test_*.py")]
    folders = {file.parent.relative_to(ROOT / "tests").as_posix() for file in files}
    assert [folder for folder in sorted(folders) if not (ROOT / folder).is_dir()] == []
    assert "asyncgpu_tutor/ops" in folders


def test_a_room_in_no_kind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(TOOL.KINDS["asyncgpu_course"], "what is asked")
    with pytest.raises(TOOL.HouseError, match="exercises"):
        TOOL.picture()


def test_what_it_names_is_there() -> None:
    assert len(named("".join(PARTS.values()))) > 60
    for start, text in PARTS.items():
        folders = (ROOT, ROOT / start)
        assert [n for n in named(text) if not any((f / n).exists() for f in folders)] == []


def test_there_are_twenty_three_laws_each_with_who_holds_it() -> None:
    laws = re.split(r"(?m)^(\d+)\. ", LAWS)[1:]
    numbers, texts = laws[::2], laws[1::2]
    assert numbers == [str(number) for number in range(1, 24)]
    unheld = [n for n, text in zip(numbers, texts, strict=True) if "`tests/" not in text]
    assert unheld == []
