"""The slides of course/deck.md show what there is in the course; `make deck` builds them."""

import json
import re

from tests.tools import ROOT, page

DECK = page("course/deck.md")


def cells(chapter: str) -> dict[str, str]:
    notebook = json.loads(page(f"solutions/{chapter}.ipynb"))
    return {cell["id"]: "".join(cell["source"]) for cell in notebook["cells"]}


def test_every_picture_is_the_last_line_of_a_cell() -> None:
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", DECK)
    assert len(pictures) >= 6
    for picture in pictures:
        folder, chapter, cell = picture.removesuffix(".svg").split("/")
        assert folder == "pictures"
        last = re.split(r"\n(?=\S)", cells(chapter)[cell].rstrip().removesuffix(")").rstrip())[-1]
        assert re.match(r"\w+(\(\w+\))?(\.plot|\.compare_timelines)\(|reveal\(.*, picture", last), (
            picture
        )


def test_every_exercise_is_there() -> None:
    for name in re.findall(r"`(\d\d-[\w-]+)`", DECK):
        chapters = [path.stem for path in (ROOT / "solutions").glob(f"{name[:2]}*")]
        assert any(f"{name}-check" in cells(chapter) for chapter in chapters)
