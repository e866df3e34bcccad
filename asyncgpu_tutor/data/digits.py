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
from asyncgpu_tutor.data.quality import Quality
from asyncgpu_tutor.errors import ArrayShapeError

SOURCE: Final = (
    "E. Alpaydin and C. Kaynak (1998), Optical Recognition of Handwritten Digits, UCI Machine "
    "Learning Repository, https://doi.org/10.24432/C50P49; its test part, as shipped with "
    "scikit-learn"
)
LICENCE: Final = "CC BY 4.0, https://creativecommons.org/licenses/by/4.0/"

THRESHOLD: Final = 1.0
"""A score above it means yes. Not zero: the pipeline adds no bias, and this stands in for one."""

_HERE = Path(__file__).parent

# The samples come sheet by sheet: on each the same 130 digits were written in the same order, which
# the labels show. Here begin the first sheets that are not trained on:
_VALIDATION_STARTS = 1157
_HELD_OUT_STARTS = 1415

_BATCHES, _BATCH_SIZE, _CLASSES = 4, 64, 10


@dataclass(frozen=True, eq=False)
class Samples:
    """Images with what they show."""

    # Shape (..., 64): 8 rows of 8 pixels from 0 (blank) to 1 (ink), in multiples of 1/16.
    pixels: npt.NDArray[np.float32]
    labels: npt.NDArray[np.uint8]  # shape (...,): the digit, 0 to 9

    def __getitem__(self, which: slice | npt.NDArray[np.intp]) -> Samples:
        """Some of the samples."""
        return Samples(self.pixels[which], self.labels[which])


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
    threshold: float
    source: str
    licence: str

    def quality(self, scores: npt.NDArray[np.floating]) -> Quality:
        """How good scores of the batches are, by the threshold.

        Parameters
        ----------
        scores : array, shape (4, 64)
            The pipeline's output, one row for each batch.

        Raises
        ------
        ArrayShapeError
            There is not one score for each sample.
        """
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
    _, _, held_out = load_samples()
    with np.load(_HERE / "weights.npz", allow_pickle=False) as stored:
        w0, w1, digit = stored["w0"], stored["w1"], int(stored["digit"])
    return Digits(
        w0=w0,
        w1=w1,
        batches=held_out.pixels,
        labels=held_out.labels,
        digit=digit,
        threshold=THRESHOLD,
        source=SOURCE,
        licence=LICENCE,
    )


def load_samples() -> tuple[Samples, Samples, Samples]:
    """Load all images, split by the sheet that they were written on.

    For training there are 1157, of the first nine sheets; for validation 258, of the next two. Held out, in
    shape (4, 64), are 256 of the 382 on the last three, with equally many of each digit as far as 256 allows.
    """
    with np.load(_HERE / "digits.npz", allow_pickle=False) as stored:
        everything = Samples((stored["pixels"] / 16).astype(np.float32), stored["labels"])
    return (
        everything[:_VALIDATION_STARTS],
        everything[_VALIDATION_STARTS:_HELD_OUT_STARTS],
        _deal(everything[_HELD_OUT_STARTS:]),
    )


def _deal(samples: Samples) -> Samples:
    """Deal samples to the batches like cards, one digit after the other.

    So each batch has 6 or 7 of each digit. 256 is not a multiple of 10: there are 26 of the digits
    0 to 5 and 25 of the others.
    """
    wanted = _BATCHES * _BATCH_SIZE
    chosen = [
        np.flatnonzero(samples.labels == digit)[: wanted // _CLASSES + (digit < wanted % _CLASSES)]
        for digit in range(_CLASSES)
    ]
    # Within a batch they come as they were written, for a batch sorted by digit looks contrived.
    hands = np.sort(np.concatenate(chosen).reshape(_BATCH_SIZE, _BATCHES).T, axis=1)
    return samples[hands]
