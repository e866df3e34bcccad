import hashlib
from math import isnan
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import asyncgpu_tutor.data
from asyncgpu_tutor.data import Quality, load_digits, reference_forward, training_digits
from asyncgpu_tutor.errors import ArrayShapeError
from tests.tools import tool

train = tool("train_digits")
DATA = Path(asyncgpu_tutor.data.__file__).parent
CARD = Path(__file__).parents[3] / "docs" / "digits.md"

SHEETS = [0, 130, 256, 386, 516, 646, 776, 906, 1029, 1157, 1287, 1415, 1545, 1667, 1797]


@pytest.fixture(scope="module")
def card() -> str:
    return CARD.read_text(encoding="utf-8")


def stored(name: str) -> np.ndarray:
    with np.load(DATA / "digits.npz", allow_pickle=False) as file:
        return file[name]


def rows(pixels: np.ndarray) -> list[bytes]:
    return [np.rint(row * 16).astype(np.uint8).tobytes() for row in pixels.reshape(-1, 64)]


def test_the_file_is_the_one_that_the_card_describes(card: str):
    pixels, labels = stored("pixels"), stored("labels")
    assert pixels.shape == (1797, 64)
    assert (pixels.dtype, labels.dtype) == (np.uint8, np.uint8)
    assert hashlib.sha256(pixels.tobytes()).hexdigest() in card
    # Counts per digit that UCI gives for its test part.
    assert np.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_the_split_goes_by_sheet_and_uses_no_sample_twice():
    training, validation, held_out = (rows(part.pixels) for part in train.load_samples())
    everything = rows(stored("pixels") / 16)
    assert len(set(everything)) == len(everything)  # so a picture identifies its sample
    assert training == everything[: SHEETS[9]] == rows(training_digits()[0])
    assert validation == everything[SHEETS[9] : SHEETS[11]]
    assert set(held_out) < set(everything[SHEETS[11] :])
    assert len(set(held_out)) == len(held_out) == 256
    known = dict(zip(everything, stored("labels").tolist(), strict=True))
    for part in train.load_samples():
        assert [known[row] for row in rows(part.pixels)] == part.labels.ravel().tolist()


def test_batches_are_balanced_and_have_their_shapes_types_and_range():
    digits = load_digits()
    assert {int(n) for batch in digits.labels for n in np.bincount(batch)} == {6, 7}
    assert np.bincount(digits.labels.ravel()).tolist() == [26] * 6 + [25] * 4
    assert digits.batches.shape == (4, 64, 64)
    assert (digits.w0.shape, digits.w1.shape, digits.labels.shape) == ((64, 64), (64,), (4, 64))
    assert {a.dtype for a in (digits.batches, digits.w0, digits.w1)} == {np.dtype(np.float32)}
    assert (digits.batches.min(), digits.batches.max()) == (0.0, 1.0)
    assert digits.batches.flags.c_contiguous
    assert "10.24432/C50P49" in digits.source
    assert "CC BY 4.0" in digits.licence
    digits.batches[:] = 7
    assert load_digits().batches.max() == 1.0  # each call gives new arrays


def test_training_gives_the_weights(tmp_path: Path, card: str, capsys: pytest.CaptureFixture[str]):
    train.main(["--output", str(tmp_path / "weights.npz")])
    digits = load_digits()
    with np.load(tmp_path / "weights.npz", allow_pickle=False) as made:
        np.testing.assert_allclose(made["w0"], digits.w0, rtol=0, atol=1e-6)
        np.testing.assert_allclose(made["w1"], digits.w1, rtol=0, atol=1e-6)
        assert int(made["digit"]) == digits.digit
    assert capsys.readouterr().out.strip() in card.splitlines()


def test_the_cards_table_is_what_training_prints(card: str, capsys: pytest.CaptureFixture[str]):
    train.main(["--table", "3", "8"])  # two of the ten rows: all would train for long
    rows = capsys.readouterr().out.strip().splitlines()
    assert len(rows) == 2
    assert all(row in card.splitlines() for row in rows)


def test_the_results_in_the_card(card: str):
    digits = load_digits()
    scores = reference_forward(digits.batches, digits.w0, digits.w1)
    quality = digits.quality(scores)
    yes = f"| **answer: yes** | {quality.true_positives} | {quality.false_positives} |"
    no = f"| **answer: no** | {quality.false_negatives} | {quality.true_negatives} |"
    assert f"{yes}\n{no}\n" in card
    for sentence in (
        f"yes, it is a {digits.digit}, if score > {digits.threshold:g}",
        f"Accuracy {quality.accuracy:.3f}. Always answering no gives {quality.baseline:.3f}",
        f"Balanced accuracy {quality.balanced_accuracy:.3f};",
        f"Precision {quality.precision:.3f}, recall {quality.recall:.3f}.",
    ):
        assert sentence in card
    assert np.abs(scores - digits.threshold).min() > 0.1
    # It has learned something: twice as good as always answering no, and more.
    assert 1 - quality.accuracy < (1 - quality.baseline) / 2


def test_float32_and_the_relu_change_no_answer():
    digits = load_digits()
    exact = reference_forward(digits.batches, digits.w0, digits.w1)
    linear = digits.batches @ digits.w0 @ digits.w1
    assert linear.dtype == np.float32
    assert linear.min() < 0
    rounded = np.maximum(linear, np.float32(0))
    assert digits.quality(linear) == digits.quality(rounded) == digits.quality(exact)
    with pytest.raises(ArrayShapeError, match=r"shape \(4, 64\), but the scores have shape \(64,"):
        digits.quality(np.zeros(64))  # scores of one batch only


# ---------------------------------------------------------------------- the quality of answers
def test_ratios_by_hand():
    quality = Quality(true_positives=6, false_positives=2, false_negatives=4, true_negatives=28)
    assert quality.accuracy == pytest.approx(34 / 40)
    assert quality.baseline == pytest.approx(30 / 40)
    assert quality.precision == pytest.approx(6 / 8)
    assert quality.recall == pytest.approx(6 / 10)
    assert quality.balanced_accuracy == pytest.approx((6 / 10 + 28 / 30) / 2)


@given(st.lists(st.tuples(st.booleans(), st.booleans())))
def test_every_answer_is_counted_once(pairs: list[tuple[bool, bool]]):
    answers, truth = np.array(pairs, dtype=bool).reshape(-1, 2).T
    quality = Quality.of(answers, truth)
    assert quality.total == len(pairs)
    assert quality.positives == sum(true for _, true in pairs)
    assert quality.true_positives == pairs.count((True, True))
    assert quality.false_positives == pairs.count((True, False))


def test_numbers_count_as_answers_as_in_python():
    quality = Quality.of(np.array([2, 0, 1, 0]), np.array([1, 1, 0, 0]))
    assert quality == Quality(1, 1, 1, 1)


def test_always_no_has_the_baseline_and_half():
    truth = np.arange(20) < 2
    quality = Quality.of(np.zeros(20, bool), truth)
    assert quality.accuracy == quality.baseline == 0.9
    assert quality.balanced_accuracy == 0.5
    assert isnan(quality.precision)
