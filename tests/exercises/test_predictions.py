"""Predictions: committed before the reveal, scored, and harmless when nobody answers."""

from __future__ import annotations

import doctest

import pytest

from asyncgpu_tutor import UsageError
from asyncgpu_tutor.exercises import Prediction, predictions, score


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
    assert (verdict.answer, verdict.truth) == ("four", "one")
    for part in ("`four`", "`one`", "a single one", "The trace has one copy."):
        assert part in verdict.text
        assert part in verdict._repr_markdown_()


def test_without_an_answer_the_first_option_is_taken_and_scores_nothing() -> None:
    question = ask()
    told = question.commit(...)

    assert '"one", "four"' in str(told)
    verdict = question.reveal("one")
    assert verdict.by_default
    assert not verdict.right
    assert "Right" not in verdict.text


def test_the_last_answer_counts_and_takes_back_the_verdict() -> None:
    question = ask()
    question.commit("one")
    question.reveal("one")
    question.commit("four")

    assert question.verdict is None
    assert not question.reveal("one").right


def test_mistakes_are_told() -> None:
    with pytest.raises(UsageError, match="at least two options, and got 1"):
        Prediction("?", yes="y")
    with pytest.raises(UsageError, match=r"'many' is not one of the options: .*\"one\", \"four\""):
        ask().commit("many")
    with pytest.raises(UsageError, match="commit an answer before the reveal"):
        ask().reveal("one")
    question = ask()
    question.commit("one")
    with pytest.raises(UsageError, match="not one of the options"):
        question.reveal("two")


def test_a_score_counts_own_answers_only() -> None:
    right, wrong, default, unseen = ask(), ask(), ask(), ask()
    right.commit("one")
    wrong.commit("four")
    default.commit(...)
    for question in (right, wrong, default):
        question.reveal("one")

    assert "2 of 4 predictions, and 1 came out right" in str(score(right, wrong, default, unseen))
    assert "not committed" in str(score(default, unseen))


def test_the_example_is_true() -> None:
    assert doctest.testmod(predictions).failed == 0
