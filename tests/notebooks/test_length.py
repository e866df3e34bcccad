"""The minutes that a chapter promises are those that its length asks for, and the table is up to date."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.tools import tool as load

ROOT = Path(__file__).resolve().parents[2]


tool = load("course_length")
COURSE = {length.name: length for length in tool.course(ROOT)}


@pytest.mark.parametrize("name", COURSE)
def test_the_header_promises_what_the_chapter_takes(name: str) -> None:
    length = COURSE[name]

    assert length.honest, (
        f"the header of {name} says {length.header} minutes, and by the sum in tools/course_length.py it "
        f"takes {length.minutes:.0f}: change its row to '| Time | N minutes |'"
    )


def test_the_table_has_every_chapter_as_it_is() -> None:
    text = (ROOT / tool.PAGE).read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| \[(\w+)\]\(\S+\) \| (\d+) \| ([\d,]+) \| \d+ \| (\d+) \| (\d+) \|", text, re.MULTILINE
    )
    again = "run: python tools/course_length.py --run --write"

    assert sorted(row[0] for row in rows) == sorted(COURSE), again
    for name, minutes, words, predictions, exercises in rows:
        length = COURSE[name]
        counted = (length.predictions, length.exercises)
        assert (int(predictions), int(exercises)) == counted, f"{name}: {again}"
        assert int(minutes) == pytest.approx(length.minutes, rel=0.1, abs=5), f"{name}: {again}"
        assert int(words.replace(",", "")) == pytest.approx(length.words, rel=0.1), again


SOURCE = """# %% [markdown] id=title
# # Four words of title
#
# | | |
# |---|---|
# | Time | {} minutes |
#
# ```text
# not counted at all
# ```
# %% id=look
guess = Prediction("?")

trace.plot()
# %% id=e starter
def f(x):
    ...
# %% id=e solution
def f(x):
    y = x
    return y
# %% id=e mutant cause="no"
def f(x):
    return 1
# %% id=e-check
check("e", f)
"""


def measured(minutes: int = 5, seconds: float | None = None) -> Any:
    return tool.measured(tool.parse(SOURCE.format(minutes), "s.py"), "s", seconds)


def test_what_is_counted() -> None:
    length = measured()

    assert (length.words, length.header) == (7, 5)  # the title, and the row of the time
    assert (length.cells, length.lines, length.pictures) == (1, 2, 1)
    assert (length.predictions, length.exercises, length.solution_lines) == (1, 1, 2)


def test_minutes_are_the_sum_that_the_page_states() -> None:
    by_hand = 7 / 238 + 2 * 3 / 60 + 5 / 60 + 30 / 60 + 1 + 3 + 2 * 0.5

    assert measured().minutes == pytest.approx(by_hand)
    assert measured(seconds=120).minutes == pytest.approx(by_hand + 2)


@pytest.mark.parametrize(
    ("promised", "honest"), [(1, False), (3, True), (6, True), (8, True), (9, False)]
)
def test_a_header_that_promises_too_little_or_too_much_is_found(
    promised: int, honest: bool
) -> None:
    assert measured(promised).honest is honest


def test_a_chapter_without_a_time_is_found() -> None:
    source = SOURCE.replace("| Time | {} minutes |", "| Time | a while |")

    assert not tool.measured(tool.parse(source, "s.py"), "s").honest


def test_links_and_markup_are_not_words() -> None:
    assert tool.words("See [the page](https://example.org/a/b/c), `x = 1`, <kbd>a</kbd>.") == 6
