"""A page is a sitting: its words, code and promised minutes have limits, read as `course_length` does."""

import re

import pytest

from tests.tools import ROOT, tool

LENGTH = tool("course_length")
BUILD = tool("build_notebooks")
FENCED = re.compile(
    r"```(?!text)\w+\n(.*?)```", re.DOTALL
)  # what a program prints is as wide as it is
WIDTH = 88
# Words of the page itself, and lines of code that are not folded. A second sitting counts as an encore.
LIMITS = {"main part": (2_000, 250), "encores": (1_000, 250)}
MINUTES = 70
PAGES = {source.stem: source for source in LENGTH.sources(ROOT)}


def shown(page: str, part: str) -> list:
    """The cells of a part that a learner's page shows, none of them folded."""
    cells = BUILD.sittings(BUILD.chapter(PAGES[page])[0])
    mine = [cell for cell, later in cells if bool(later) == (part == "encores")]
    return [c for c in mine if c.only != "solution" and not BUILD.FOLDED.intersection(c.tags)]


@pytest.mark.parametrize("part", LIMITS)
@pytest.mark.parametrize("page", PAGES)
def test_a_part_of_a_page_is_one_sitting(page: str, part: str) -> None:
    words, lines = LIMITS[part]
    cells = shown(page, part)
    prose = [cell.text for cell in cells if cell.kind == "markdown" and cell.only is None]
    assert sum(map(LENGTH.words, prose)) <= words
    code = [line for cell in cells if cell.kind == "code" for line in cell.text.splitlines()]
    assert sum(bool(line.strip()) for line in code) <= lines


@pytest.mark.parametrize("page", PAGES)
def test_no_part_of_a_page_promises_more_minutes_than_a_sitting_has(page: str) -> None:
    assert max(LENGTH.minutes(PAGES[page])) <= MINUTES


@pytest.mark.parametrize("page", PAGES)
def test_code_stays_in_its_box(page: str) -> None:
    cells = [cell for part in LIMITS for cell in shown(page, part)]
    code = [cell.text for cell in cells if cell.kind == "code"]
    code += [
        text for cell in cells if cell.kind == "markdown" for text in FENCED.findall(cell.text)
    ]
    wide = [line for text in code for line in text.splitlines() if len(line) > WIDTH]
    assert wide == []
