"""Predictions: committed before the reveal, scored, and harmless when nobody answers."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from asyncgpu_course import Prediction, guess, predictions, reveal, score
from asyncgpu_tutor import UsageError


def ask() -> Prediction:
    return Prediction("How many?", one="a single one", four="one for each batch")


def test_the_question_names_each_option() -> None:
    question = ask()
    for shown in (repr(question), question._repr_markdown_()):
        assert "How many?" in shown
        assert "`one`: a single one" in shown
        assert "`four`: one for each batch" in shown


def test_a_right_answer_is_right_and_a_wrong_one_names_both() -> None:
    question = ask()
    question.commit("four")
    assert question.reveal("four").right
    verdict = question.reveal("one", "The trace has one copy.")
    assert not verdict.right
    for part in ("`four`", "`one`", "a single one", "The trace has one copy."):
        assert part in verdict.text
        assert part in verdict._repr_markdown_()


def test_without_an_answer_the_first_option_is_taken_and_scores_nothing() -> None:
    question = ask()
    assert '"one", "four"' in str(question.commit(...))
    verdict = question.reveal("one")
    assert verdict.by_default
    assert not verdict.right
    assert "Right" not in verdict.text


@pytest.mark.parametrize(
    ("answer", "truth", "right"),
    [
        ("a1 b1", "a1 b1", True), (" A1,  b1 ", "a1 b1", True), ("b1 a1", "a1 b1", False),
        ("a1", "a1 b1", False), (0, "0", True), ("2, 3", "2 3", True), (3, 2, False),
        ("a b", "2 3", False), ("2 and 10", "2 10", True), ((2, 10), "2 10", True), ([2, 10], "2 10", True),
        ("9,233", 9233, True), ("1,234,567", 1234567, True), ("2,300", "2 300", True), ("2,3", 23, False),
        ("1.65e1", 16.5, True), (".5", 0.5, True), ("a and b", "a b", True), (np.int64(3), 3, True),
    ],
)  # fmt: skip
def test_a_typed_answer_is_words_in_an_order_or_numbers(
    answer: object, truth: str | float, right: bool
) -> None:
    question = Prediction("In which order?")
    question.commit(answer)
    verdict = question.reveal(truth, "See the trace.")
    assert verdict.right == right
    assert ("Right." in verdict.text) == right
    assert verdict.text.endswith(". See the trace.")


@pytest.mark.parametrize(
    ("asked", "given"), [("two", (2,)), ("two", (2, 10, 3)), ("Three", ("2, 3",))]
)
def test_fewer_or_more_numbers_than_the_question_wants_are_told(
    asked: str, given: tuple[object, ...]
) -> None:
    question = Prediction(f"How many of each? Type {asked} numbers.")
    told = f"{asked.lower()} numbers are asked for here, and you gave "
    with pytest.raises(UsageError, match=told):
        question.commit(*given)
    question.commit("hang")  # which may be the answer, too


def test_an_option_may_be_typed_in_any_case() -> None:
    question = ask()
    assert str(question.commit(" FOUR ")).startswith("Committed: `four`")
    assert str(question.commit()) == "Your answer is still `four`."


def test_a_typed_number_may_be_off_by_a_part_that_the_question_names() -> None:
    question = Prediction("How long?", within=0.25)
    assert "75 to 125" in repr(question)
    for answer, right in [(75, True), (125, True), (74, False), (126, False)]:
        question.commit(answer)
        assert ("still" in str(question.commit(...)), question.reveal(100).right) == (True, right)
    question.commit(0.9)
    assert "a hundredth of that" in question.reveal(100).text


def test_a_typed_question_without_an_answer_tells_the_truth_and_scores_nothing() -> None:
    question = Prediction("In which order?")
    told = "No answer yet. To take part, type it (words in quotes) in place of `...` and run this cell again."
    assert str(question.commit(...)) == told
    verdict = question.reveal("b a", "So says the trace.")
    assert verdict.by_default
    assert not verdict.right
    assert verdict.text == "**The answer is `b a`.** So says the trace."


def test_the_last_answer_counts_and_takes_back_the_verdict() -> None:
    question = ask()
    question.commit("one")
    question.reveal("one")
    question.commit("four")
    assert question.verdict is None
    assert str(question.commit(...)) == "Your answer is still `four`."
    assert not question.reveal("one").right


def test_mistakes_are_told() -> None:
    question = ask()
    question.commit("one")
    nothing = "an answer is a number, or words in quotes, and not "
    for message, call, *args in (
        ("this answer is empty", Prediction("?").commit, " "),
        ("type a number here, such as 120, and not '100 µs'", Prediction("?", within=0.1).commit, "100 µs"),
        *((nothing, Prediction("?").commit, given) for given in (None, 1j, object)),
        ("at least two options, or none, and got 1", partial(Prediction, "?", yes="y")),
        (r"'many' is not one of the options: .*\"one\", \"four\"", ask().commit, "many"),
        ("commit an answer before the reveal", ask().reveal, "one"),
        ("not one of the options", question.reveal, "two"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=message):
            call(*args)


def test_a_score_counts_own_answers_only() -> None:
    right, wrong, default, unseen = ask(), ask(), ask(), ask()
    right.commit("one")
    wrong.commit("four")
    default.commit(...)
    for question in (right, wrong, default):
        question.reveal("one")
    assert "2 of 4 guesses, and 1 came out right" in str(score(right, wrong, default, unseen))
    assert "not made a guess" in str(score(default, unseen))
    said: set[str] = set()
    for _ in range(2):  # as if a cell ran twice
        (question := ask()).commit("one")
        question.reveal("one")
        said.add(str(score()))
    assert len(said) == 1


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What `show` below has drawn; there is a page with one guess."""
    words = {"question": "?", "options": {"a": "one", "b": "two"}, "within": 0.0}
    words |= {"truth": "b", "told": "It took {us:.0f} µs.", "lesson": "Look."}
    monkeypatch.delenv(predictions.TELL, raising=False)
    monkeypatch.setattr(predictions, "_words_of_guesses", lambda: {"99-it": words})
    monkeypatch.setattr(predictions, "_open", {})
    monkeypatch.setattr(predictions, "_looked", {})
    return []


@dataclass(frozen=True)
class Picture:
    lesson: str = ""


def show(drawn: list[str], truth: str = "b") -> str:
    shown = reveal("99-it", truth, Picture(), lambda: drawn.append("drawn"), us=7.4)
    for picture in shown.pictures:
        if isinstance(picture, Picture):
            drawn.append(picture.lesson)
        elif callable(picture):
            picture()
    return shown.text


def test_a_reveal_tells_only_who_has_guessed_or_asks_twice(drawn: list[str]) -> None:
    for _ in range(2):  # Run All, and Run All again
        assert "No guess yet" in str(guess("99-it", ...))
        assert "Guess in the cell above" in show(drawn)
    assert drawn == []
    assert show(drawn) == "**The answer is `b`:** two.\n\nIt took 7 µs."  # twice in a row
    assert "Now run the folded cell" in str(guess("99-it", "a"))
    assert show(drawn).startswith("**Not this time.**")
    assert drawn == ["Look.", "drawn"] * 2
    assert "You answered 1 of 1 guesses, and 0" in str(score("99"))
    assert "still `a`" in str(guess("99-it", ...))  # the dots don't take a guess back


def test_a_page_that_needs_no_guess_tells_and_is_held_to_its_truth(
    drawn: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(predictions.TELL, "1")
    assert show(drawn).startswith("**The answer is `b`:**")
    with pytest.raises(AssertionError, match="the page knows 'b' as the truth of '99-it', not 'a'"):
        show(drawn, "a")


def test_a_wrong_name_and_a_missing_number_are_told_at_once(drawn: list[str]) -> None:
    with pytest.raises(UsageError, match="there is no guess '98-it'"):
        guess("98-it", "a")
    with pytest.raises(KeyError, match="us"):
        reveal("99-it", "b")
