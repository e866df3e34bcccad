"""Guesses: held against what happened, told only to who has guessed, and harmless when nobody answers."""

import re
from dataclasses import dataclass

import numpy as np
import pytest

from asyncgpu_course import guess, guesses, reveal, score
from asyncgpu_tutor import UsageError

OPTIONS = {"one": "a single one", "four": "one for each batch"}


@dataclass(frozen=True)
class Picture:
    lesson: str = ""


@pytest.fixture(autouse=True)
def _a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page 99 with a guess among options, and typed ones."""
    monkeypatch.delenv(guesses.TELL, raising=False)

    def asked(
        question: str, truth: str, options: dict[str, str], within: float = 0.0, lesson: str = ""
    ) -> object:
        return guesses._Asked(question, options, within, truth, "It took {us:.0f} µs.", lesson)

    page = {
        "99-many": asked("How many?", "four", OPTIONS, 0.0, "Look."),
        "99-order": asked("In which order?", "b a", {}),
        "99-long": asked("How long?", "100", {}, 0.25, ""),
        "99-two": asked('How many of each? Type two numbers, or "hang".', "2 10", {}),
        "99-one": asked("How many?", "4", {}),
        "99-three": asked("Type Three numbers.", "1 2 3", {}),
        "98-any": asked("Which is yours?", "*", OPTIONS),
    }
    monkeypatch.setattr(guesses, "_asked", lambda: page)


def told(name: str, truth: object, *pictures: object) -> str:
    """What a reveal says without its last words, which are the page's."""
    text = reveal(name, truth, *pictures, us=7.4).text
    assert text.endswith("\n\nIt took 7 µs.") or "Guess in the cell above" in text
    return text.removesuffix("\n\nIt took 7 µs.")


def test_a_reveal_tells_only_who_has_guessed_or_asks_twice() -> None:
    for _ in range(2):  # Run All, and Run All again
        assert '"one", "four"' in str(guess("99-many", ...))
        assert reveal("99-many", "four", Picture(), us=7.4).pictures == ()
    shown = reveal("99-many", "four", Picture(), print, us=7.4)  # twice in a row
    assert shown.pictures == (Picture("Look."), print)
    assert (shown.right, shown.text) == (
        None,
        "**The answer is `four`:** one for each batch.\n\nIt took 7 µs.",
    )
    assert "not made a guess" in str(score("99"))
    assert (
        str(guess("99-many", " ONE "))
        == "Committed: `one`, a single one. Now run the folded cell below."
    )
    assert (
        told("99-many", "four")
        == "**Not this time.** You said `one`; it is `four`: one for each batch."
    )
    assert "You answered 1 of 6 guesses, and 0 came" in str(score("99"))
    guess("99-many", "four")
    assert "not made" in str(score("99"))  # another answer, which nothing has settled yet
    assert (
        told("99-many", "four") == "**Right.** You said `four`, and so it was: one for each batch."
    )
    assert "1 of 6 guesses, and 1 came" in str(score("99"))
    for dots in ((...,), ()):
        assert str(guess("99-many", *dots)) == "Your answer is still `four`."


@pytest.mark.parametrize(
    ("answer", "truth", "right"),
    [
        ("a1 b1", "a1 b1", True), (" A1,  b1 ", "a1 b1", True), ("b1 a1", "a1 b1", False),
        ("a1", "a1 b1", False), (0, "0", True), ("2, 3", "2 3", True), (3, 2, False),
        ("a b", "2 3", False), ("2 and 10", "2 10", True), ((2, 10), "2 10", True), ([2, 10], [2, 10], True),
        ("9,233", 9233, True), ("1,234,567", 1234567, True), ("2,300", "2 300", True), ("2,3", 23, False),
        ("abd", "a b d", True), ("a b d", "a b d", True), ("A, b, d", "a b d", True), ("adb", "a b d", False),
        ("abcd", "a b d", False), ("a and d", "a b d", False), ("a1b1", "a1 b1", False), ("23", "2 3", False),
        ("1.65e1", 16.5, True), (".5", 0.5, True), ("a and b", "a b", True), (np.int64(3), 3, True),
    ],
)  # fmt: skip
def test_a_typed_answer_is_words_in_an_order_or_numbers(
    answer: object, truth: object, right: bool
) -> None:
    guess("99-order", answer)
    assert reveal("99-order", truth, us=0).right is right


def test_a_typed_number_may_be_off_by_a_part_that_the_question_names() -> None:
    for answer, right in [(75, True), (125, True), (74, False), (126, False)]:
        guess("99-long", answer)
        assert reveal("99-long", 100, us=0).right is right
    guess("99-long", 0.9)
    assert "a hundredth of that" in told("99-long", 100)


@pytest.mark.parametrize(
    ("name", "answer", "message"),
    [
        ("99-order", " ", "type words in quotes here, and not ' '"),
        ("99-order", None, "type words in quotes here, and not None"),
        ("99-order", ["a", None], "type words in quotes here, and not ['a', None]"),
        ("99-long", "100 µs", "type a number (such as 120) here, and not '100 µs'"),
        ("99-one", "four", "type a number (such as 120) here, and not 'four'"),
        ("99-one", 1j, "type a number (such as 120) here, and not 1j"),
        ("99-one", True, "type a number (such as 120) here, and not True"),
        ("99-one", [10**400], f"type a number (such as 120) here, and not [{10**97}"),
        ("99-one", [10**5000], "type a number (such as 120) here, and not such a long number"),
        ("99-one", float("nan"), "type a number (such as 120) here, and not nan"),
        ("99-many", "many", 'type one of "one", "four" here, and not \'many\''),
        ("99-many", 4, 'type one of "one", "four" here, and not \'4\''),
        ("99-two", (2,), "type two numbers here, and not '2'"),
        ("99-two", (2, 10, 3), "type two numbers here, and not '2 10 3'"),
        ("99-two", "fails", "type two numbers here, and not 'fails'"),
        ("99-three", "2,3", "type three numbers here, and not '2,3'"),
        ("97-it", "a", "there is no guess '97-it'"),
    ],
)
def test_mistakes_are_told(name: str, answer: object, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        guess(name, answer)
    with pytest.raises(UsageError, match=re.escape(message)):
        reveal(name, answer)


def test_a_word_that_the_question_names_is_an_answer_where_numbers_are_asked_for() -> None:
    guess("99-two", "Hang")
    assert reveal("99-two", "2 10", us=0).right is False


def test_a_guess_that_nobody_made_says_what_to_type() -> None:
    wanted = {"one": "a number (such as 120)", "two": "two numbers", "order": "words in quotes"}
    for name, what in wanted.items():
        assert f"No guess yet: type {what} in place of `...`" in str(guess(f"99-{name}", ...))


def test_a_missing_number_and_an_unknown_page_are_told() -> None:
    with pytest.raises(KeyError, match="us"):
        reveal("99-order", "b a")
    with pytest.raises(UsageError, match="there is no page '7' with guesses"):
        score("7")


def test_a_page_that_needs_no_guess_tells_and_is_held_to_its_truth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(guesses.TELL, "1")
    assert told("99-many", "four").startswith("**The answer is `four`:**")
    with pytest.raises(
        AssertionError, match="the page knows 'four' as the truth of '99-many', not 'one'"
    ):
        told("99-many", "one")
    assert told("98-any", "one") != told("98-any", "four")  # each run has its own
