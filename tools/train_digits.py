"""Train the weights that `load_digits` returns: ``python tools/train_digits.py``.

Minimises the log loss of ``sigmoid(x @ w0 @ w1 - 1)`` by gradient descent with momentum, over all
training samples at once, in float64. Nothing is random: W0 starts as the cosine transform of an
8x8 image, W1 as zeros. Yes and no weigh the same in the loss, though nine in ten are a no.

The pipeline's ReLU is left out here. It sets negative scores to zero, which are below the threshold
before and after, so it changes no answer; but where it does so there is no slope to follow.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from asyncgpu_tutor import data
from asyncgpu_tutor.data import Quality, reference_forward
from asyncgpu_tutor.data.digits import HELD_OUT_STARTS, THRESHOLD

DIGIT = 3
STEPS, RATE, MOMENTUM = 500, 0.3, 0.9
DECAYS = (0.03, 0.01, 0.003)  # how strongly weights are drawn back to where they started

# On each sheet the same 130 digits were written in the same order, which the labels show.
VALIDATION_STARTS = 1157

Floats = npt.NDArray[np.float64]
Weights = tuple[Floats, Floats]


class Samples(NamedTuple):
    """Images with what they show."""

    # Shape (..., 64): 8 rows of 8 pixels from 0 (blank) to 1 (ink), in multiples of 1/16.
    pixels: npt.NDArray[np.float32]
    labels: npt.NDArray[np.uint8]  # shape (...,): the digit, 0 to 9


def load_samples() -> tuple[Samples, Samples, Samples]:
    """Load all images, split by the sheet that they were written on.

    For training there are 1157, of the first nine sheets; for validation 258, of the next two. Held out, in
    shape (4, 64), are 256 of the 382 on the last three, with equally many of each digit as far as 256 allows.
    """
    path = Path(data.__file__).with_name("digits.npz")
    with np.load(path, allow_pickle=False) as stored:
        pixels, labels = (stored["pixels"] / 16).astype(np.float32), stored["labels"]
    training, validation = (
        Samples(pixels[part], labels[part])
        for part in (slice(VALIDATION_STARTS), slice(VALIDATION_STARTS, HELD_OUT_STARTS))
    )
    held_out = data.load_digits()
    return training, validation, Samples(held_out.batches, held_out.labels)


def cosine_transform() -> Floats:
    """Orthogonal matrix (64, 64) from the 64 pixels of an image to its 64 spatial frequencies.

    The two-dimensional DCT-II, as in JPEG.
    """
    k = np.arange(8)
    rows = np.cos(np.pi * np.outer(k, 2 * k + 1) / 16) / 2
    rows[0] /= np.sqrt(2)
    return np.kron(rows, rows).T.astype(np.float64)


def train(samples: Samples, digit: int, decay: float) -> Weights:
    """Train for one digit against the rest; w0 has the shape (64, 64), and w1 (64,)."""
    x = samples.pixels.astype(np.float64)
    truth = samples.labels == digit
    share = _equal_shares(truth)
    start = cosine_transform(), np.zeros(64)
    w0, w1 = start
    v0, v1 = np.zeros_like(w0), np.zeros_like(w1)
    for _ in range(STEPS):
        error = share * (1 / (1 + np.exp(THRESHOLD - x @ (w0 @ w1))) - truth)
        slope = x.T @ error
        slope0 = np.outer(slope, w1) + decay * (w0 - start[0])
        slope1 = w0.T @ slope + decay * (w1 - start[1])
        v0, v1 = MOMENTUM * v0 - RATE * slope0, MOMENTUM * v1 - RATE * slope1
        w0, w1 = w0 + v0, w1 + v1
    return w0, w1


def log_loss(weights: Weights, samples: Samples, digit: int) -> float:
    """Mean log loss, where yes and no weigh the same."""
    truth = samples.labels == digit
    margin = samples.pixels @ weights[0] @ weights[1] - THRESHOLD
    return float(np.sum(_equal_shares(truth) * np.logaddexp(0, np.where(truth, -margin, margin))))


def best_weights(digit: int) -> tuple[Weights, float]:
    """Train with each decay, and keep what the validation samples like best, with its decay."""
    training, validation, _ = load_samples()
    candidates = [(train(training, digit, decay), decay) for decay in DECAYS]
    return min(candidates, key=lambda candidate: log_loss(candidate[0], validation, digit))


def quality(weights: Weights, samples: Samples, digit: int) -> Quality:
    """How good the answers are that these weights give."""
    return Quality.of(
        reference_forward(samples.pixels, *weights) > THRESHOLD, samples.labels == digit
    )


def _equal_shares(truth: npt.NDArray[np.bool_]) -> Floats:
    """Shares of the samples in the loss: 1/2 for all yes together, 1/2 for all no."""
    return np.where(truth, 0.5 / np.sum(truth), 0.5 / np.sum(~truth))


def _table_row(digit: int) -> str:
    """Row of the table in docs/digits.md."""
    weights, decay = best_weights(digit)
    _, validation, held_out = load_samples()
    seen, unseen = quality(weights, validation, digit), quality(weights, held_out, digit)
    figures = (
        seen.balanced_accuracy,
        unseen.balanced_accuracy,
        unseen.accuracy,
        unseen.baseline,
        unseen.precision,
        unseen.recall,
    )
    return " | ".join([f"| {digit} | {decay}", *(f"{figure:.3f}" for figure in figures)]) + " |"


def main(arguments: list[str] | None = None) -> None:
    """Write the weights' file, or print how good they would be for each of the ten digits."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    shipped = Path(data.__file__).with_name("weights.npz")
    parser.add_argument("--output", type=Path, default=shipped)
    parser.add_argument(
        "--table", nargs="*", type=int, metavar="DIGIT", help="train these, or all; write nothing"
    )
    options = parser.parse_args(arguments)
    if options.table is not None:
        print(*map(_table_row, options.table or range(10)), sep="\n")
        return
    (w0, w1), _ = best_weights(DIGIT)
    np.savez_compressed(
        options.output, w0=w0.astype(np.float32), w1=w1.astype(np.float32), digit=np.uint8(DIGIT)
    )
    print(_table_row(DIGIT))


if __name__ == "__main__":
    main()
