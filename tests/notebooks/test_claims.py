"""What prose claims of numbers, order and overlap is checked near it; and what looks for that can tell."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from tests.tools import tool as load

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted(path.stem for path in (ROOT / "course").glob("*.py"))


tool = load("claims")


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_what_a_chapter_claims_is_checked_beside_it(chapter: str) -> None:
    assert [str(claim) for claim in tool.course(ROOT, [chapter]) if claim.missing] == []


def test_the_course_makes_claims() -> None:
    assert len(list(tool.course(ROOT))) > 25


def found(source: str) -> list[tuple[str, str]]:
    return [(c.sentence, c.missing) for c in tool.claims(tool.parse(source, "s.py"), "s")]


TEXT = "# %% [markdown] id=text\n# ## Section\n#\n# {}\n\n# %% id=code\n{}\n"


@pytest.mark.parametrize(
    "sentence",
    [
        "The copy takes 20 µs.",
        "It is within 5 percent.",
        "The two overlap.",
        "One is twice as long.",
        "The call returns before the kernel.",
        "There are 1000 threads.",
    ],
)
def test_a_claim_is_seen_and_held_by_an_assert_on_it(sentence: str) -> None:
    number = "".join(filter(str.isdigit, sentence)) or "1"
    ((seen, missing),) = found(TEXT.format(sentence, f"assert x == {number}"))

    assert (seen, missing) == (sentence, "")


@pytest.mark.parametrize(
    ("sentence", "code", "missing"),
    [
        ("The two overlap.", "print(1)", "no cell near it asserts or reveals anything"),
        ("It takes 20 µs.", "assert x == 2", "no program of the section has 20"),
        ("There are 1,000 threads.", "assert x", "no program of the chapter has 1,000"),
    ],
)
def test_a_claim_that_nothing_checks_is_named(sentence: str, code: str, missing: str) -> None:
    assert found(TEXT.format(sentence, code)) == [(sentence, missing)]


@pytest.mark.parametrize(
    "sentence",
    [
        "Do they overlap?",
        "Use `overlap` here.",
        "Three blocks have four threads each.",
        "A kernel runs.",
        "It is known (Graham, 1969).",
    ],
)
def test_questions_names_and_small_numbers_are_no_claims(sentence: str) -> None:
    assert found(TEXT.format(sentence, "")) == []


def test_an_assert_of_another_section_holds_nothing() -> None:
    source = TEXT.format("The two overlap.", "print(1)")
    further = source + "# %% [markdown] id=next\n# ## Next\n\n# %% id=later\nassert x\n"

    assert found(further)[0][1]
    assert not found(source + "# %% id=later\nassert x\n")[0][1]


def test_a_share_may_be_computed_as_a_part_of_one() -> None:
    assert found(TEXT.format("It is within 15 percent.", "assert x < 1.15"))[0][1] == ""
    assert found(TEXT.format("It is within 15 percent.", "assert x < 1.5"))[0][1] != ""


def test_a_reason_beside_the_text_is_enough_and_is_not_in_the_notebook() -> None:
    source = TEXT.format("The two overlap.", "1").replace("id=text", 'id=text unchecked="a word"')

    assert found(source) == []
    builder = importlib.import_module("build_notebooks")
    assert "unchecked" not in builder.build(builder.parse(source, "s"), "starter", "s")


def test_tasks_titles_and_key_points_claim_nothing() -> None:
    task = "# %% [markdown] id=task\n# Let them overlap.\n# %% id=e starter\n1\n# %% id=e solution\n2\n"
    points = TEXT.format("The two overlap.", "1").replace("id=text", "id=key-points")

    assert found(task) == found(points) == []


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_each_picture_is_also_told_in_words(chapter: str) -> None:
    source = (ROOT / f"course/{chapter}.py").read_text(encoding="utf-8")
    silent = [
        cell.id
        for cell in tool.parse(source, chapter)
        if cell.kind == "code"
        and re.search(r"\bcompare\(|\.plot\(|\bplt\.(?!rc)", cell.text)
        and not re.search(r"\bin_words\(|\bprint\(", cell.text)
    ]

    assert silent == [], "a cell that draws says what the picture shows: in_words(trace), or print"
