"""Handwritten digits, and trained weights that tell one of them from the rest.

docs/digits.md has the source, the licence, how the split came about, and how good the weights are.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from asyncgpu_tutor.data.inputs import MlpInputs
from asyncgpu_tutor.errors import ArrayShapeError

# A score above it means yes. Not zero: the pipeline adds no bias, and this stands in for one.
THRESHOLD: Final = 1.0

_HERE = Path(__file__).parent

# The samples come sheet by sheet: the first nine sheets for training, and here begin the last three.
TRAINED = 1157
HELD_OUT_STARTS = 1415

_BATCHES, _BATCH_SIZE, _CLASSES = 4, 64, 10


@dataclass(frozen=True, slots=True)
class Quality:
    """Counts of right and wrong answers, and the usual ratios of them.

    Accuracy alone misleads where one answer is rare: of ten digits, nine are not a 3, so who always
    says no is right nine times in ten. Hence `baseline`, to be read beside `accuracy`, and
    `balanced_accuracy`, which is 0.5 for whoever always gives the same answer.

    A ratio with nothing to count in it (the precision of no yes at all) is NaN.
    """

    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int

    @classmethod
    def of(cls, answers: npt.NDArray[np.bool_], truth: npt.NDArray[np.bool_]) -> Quality:
        """Compare answers with the truth, element by element; of numbers, all but 0 are a yes."""
        answers, truth = np.asarray(answers, bool), np.asarray(truth, bool)
        if answers.shape != truth.shape:
            raise ArrayShapeError(f"{answers.shape} answers do not fit a truth of {truth.shape}")
        yes, no = answers & truth, ~answers & ~truth
        counted = (yes, answers & ~truth, ~answers & truth, no)
        return cls(*(int(np.sum(found)) for found in counted))

    @property
    def positives(self) -> int:
        """Number that are truly a yes."""
        return self.true_positives + self.false_negatives

    @property
    def negatives(self) -> int:
        """Number that are truly a no."""
        return self.true_negatives + self.false_positives

    @property
    def total(self) -> int:
        """Number of them."""
        return self.positives + self.negatives

    @property
    def accuracy(self) -> float:
        """Share of right answers."""
        return _ratio(self.true_positives + self.true_negatives, self.total)

    @property
    def baseline(self) -> float:
        """Accuracy of always giving the commoner answer."""
        return _ratio(max(self.positives, self.negatives), self.total)

    @property
    def precision(self) -> float:
        """Of those answered with yes, the share that truly is."""
        return _ratio(self.true_positives, self.true_positives + self.false_positives)

    @property
    def recall(self) -> float:
        """Of those that truly are a yes, the share that was found."""
        return _ratio(self.true_positives, self.positives)

    @property
    def balanced_accuracy(self) -> float:
        """Mean of the shares found among the true yes and among the true no."""
        return (self.recall + _ratio(self.true_negatives, self.negatives)) / 2


@dataclass(frozen=True, eq=False)
class Digits(MlpInputs):
    """The pipeline's inputs from real data: four batches of 64 digits that training never saw.

    Attributes
    ----------
    labels : array, uint8, shape (4, 64)
        The digit that each sample shows.
    digit : int
        The one that the weights tell from the others.
    threshold : float
        A score above it says: this is the digit.
    source, licence : str
        Of the images. Whoever passes them on has to name both.
    """

    labels: npt.NDArray[np.uint8]
    digit: int
    threshold: float = THRESHOLD
    source: str = (
        "E. Alpaydin and C. Kaynak (1998), Optical Recognition of Handwritten Digits, UCI Machine "
        "Learning Repository, https://doi.org/10.24432/C50P49; its test part, as shipped with "
        "scikit-learn"
    )
    licence: str = "CC BY 4.0, https://creativecommons.org/licenses/by/4.0/"

    def quality(self, scores: npt.NDArray[np.floating]) -> Quality:
        """Judge scores of the batches, by the threshold.

        Parameters
        ----------
        scores : array, shape (4, 64)
            The pipeline's output, one row for each batch.

        Raises
        ------
        ArrayShapeError
            There is not one score for each sample.
        """
        scores = np.asarray(scores)
        if scores.shape != self.labels.shape:
            raise ArrayShapeError(
                f"the digits need one score per sample, shape {self.labels.shape}, but the scores "
                f"have shape {scores.shape}: stack the outputs of all batches first"
            )
        return Quality.of(scores > self.threshold, self.labels == self.digit)


def load_digits() -> Digits:
    """Load the four held-out batches and the trained weights.

    Returns
    -------
    Digits
        New arrays at each call, so whoever changes them harms nobody else.
    """
    with np.load(_HERE / "digits.npz", allow_pickle=False) as stored:
        pixels, labels = stored["pixels"], stored["labels"]
    with np.load(_HERE / "weights.npz", allow_pickle=False) as stored:
        w0, w1, digit = stored["w0"], stored["w1"], int(stored["digit"])
    chosen = _dealt(labels)
    batches = (pixels[chosen] / 16).astype(np.float32)
    return Digits(w0, w1, batches, labels[chosen], digit)


def training_digits() -> tuple[npt.NDArray[np.float32], npt.NDArray[np.uint8]]:
    """Pixels, 64 to a sample, and labels of the 1157 samples that the weights were trained with."""
    with np.load(_HERE / "digits.npz", allow_pickle=False) as stored:
        return (stored["pixels"][:TRAINED] / 16).astype(np.float32), stored["labels"][:TRAINED]


def _dealt(labels: npt.NDArray[np.uint8]) -> npt.NDArray[np.intp]:
    """Deal 256 held-out samples to the batches like cards: each has 6 or 7 of each digit."""
    each, more = divmod(_BATCHES * _BATCH_SIZE, _CLASSES)
    chosen = [
        np.flatnonzero(labels[HELD_OUT_STARTS:] == digit)[: each + (digit < more)]
        for digit in range(_CLASSES)
    ]
    # Within a batch they come as they were written, for a batch sorted by digit looks contrived.
    hands = np.concatenate(chosen).reshape(_BATCH_SIZE, _BATCHES).T
    return HELD_OUT_STARTS + np.sort(hands, axis=1)


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")
