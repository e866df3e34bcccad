"""The language model that the package ships, its tokens, and the text that it was trained on."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncgpu_tutor.data import (
    LanguageModel,
    load_language_model,
    reference_features,
    reference_say,
)
from asyncgpu_tutor.data import language as file
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.language import chances
from tests.tools import tool

MODEL = load_language_model()
LETTERS = "".join(token for token in MODEL.vocabulary if len(token) == 1 and token != "\n")
TOOL = tool("train_language_model")


def test_the_file_is_small_and_its_numbers_fit_together() -> None:
    assert Path(file.__file__).with_name("language.npz").stat().st_size < 1_000_000
    size, layers, words = MODEL.size, MODEL.layers, len(MODEL.vocabulary)
    assert len(set(MODEL.vocabulary)) == words
    assert MODEL.vocabulary[file.END] == "\n"
    assert {name: weight.shape for name, weight in MODEL.weights.items()} == {
        "tokens": (words, size),
        "places": (MODEL.context, size),
        "gain_1": (layers, size),
        "qkv": (layers, 3 * size, size),
        "out": (layers, size, size),
        "gain_2": (layers, size),
        "wide": (layers, 4 * size, size),
        "narrow": (layers, size, 4 * size),
        "gain": (size,),
    }
    assert size % MODEL.heads == 0


@given(st.text(LETTERS, max_size=60))
def test_a_text_comes_back_from_its_tokens(text: str) -> None:
    assert MODEL.decode(MODEL.encode(text)) == text


def test_what_it_has_read_often_is_few_tokens() -> None:
    text = "A stream is a queue of work for the device."
    assert 2 * len(MODEL.encode(text)) < len(text)


def test_a_character_that_it_never_saw_is_named() -> None:
    with pytest.raises(UsageError, match="never seen '§'"):
        MODEL.encode("§ 3")


@pytest.mark.parametrize("token", [-1, len(MODEL.vocabulary)])
def test_a_token_that_it_does_not_have_is_named(token: int) -> None:
    with pytest.raises(UsageError, match=rf"tokens are 0 to \d+, and got {token}"):
        MODEL.decode([0, token])


def test_it_talks_in_words_of_the_course() -> None:
    """Pages change more often than somebody trains it anew, so their sentences are not asked for."""
    known = set(" ".join(TOOL.corpus()).split())
    said = list[str]()
    for begin in ("A stream", "The GPU", "If you", "Each thread", "Why"):
        prompt = [file.END, *MODEL.encode(begin)]
        text, logits = reference_say(MODEL, prompt, 60, 0.1, chances(MODEL, 0))
        assert logits.shape == (len(text) - 1, len(MODEL.vocabulary))
        said += MODEL.decode(text).split()[:-1]  # the last one may be cut
    assert len(said) > 60
    assert sum(word in known for word in said) >= 0.9 * len(said)


def test_it_learned_and_then_memorised() -> None:
    """The curve of an overfitted model: the loss falls to nothing, and rises on what was held out."""
    steps, learned, held_out = MODEL.curve.T
    assert (np.diff(steps) > 0).all()
    assert learned[-1] < 0.2
    assert 3 < held_out.min() < held_out[-1]


def test_a_stored_model_is_nearly_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = tmp_path / "language.npz"
    TOOL.save_language_model(MODEL, stored)
    monkeypatch.setattr(file, "_FILE", stored)
    again = load_language_model()
    assert (again.vocabulary, again.heads) == (MODEL.vocabulary, MODEL.heads)
    for name, weight in MODEL.weights.items():
        step = np.abs(weight).max(-1, keepdims=True) / 127
        assert (np.abs(again.weights[name] - weight) <= step).all()


def test_pairs_are_joined_from_the_commonest_on() -> None:
    vocabulary = TOOL.pairs_of("low low low lower\nnew new", 12)
    assert vocabulary[:8] == ("\n", " ", "e", "l", "n", "o", "r", "w")
    assert vocabulary[8:] == ("lo", "low", " low", "ew")
    model = LanguageModel(vocabulary, {}, 1, np.zeros((0, 3), np.float32))
    assert [model.vocabulary[token] for token in model.encode("low lowew")] == ["low", " low", "ew"]


def test_code_tables_and_titles_are_no_text() -> None:
    page = (
        "# A title that is five words.\n\nOne **two** `three` four five.\n\n```python\nx = 1\n```\n"
    )
    page += "| a | b |\n\nToo short.\n\n- An entry of a list is one.\n- So is the [next one](x.md) here.\n"
    assert list(TOOL.paragraphs(page)) == [
        "One two three four five.",
        "An entry of a list is one.",
        "So is the next one here.",
    ]


def test_all_places_at_once_are_as_one_after_the_other() -> None:
    model = load_language_model()
    text, logits = reference_say(model, model.encode("A GPU"), 9, 0.7, chances(model, 1))
    features = reference_features(model, text[:-1])
    np.testing.assert_allclose(features @ model.weights["tokens"].T, logits, rtol=1e-6, atol=1e-6)
