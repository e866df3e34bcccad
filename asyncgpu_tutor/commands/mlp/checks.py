"""Doubts about a run."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from asyncgpu_tutor.commands.mlp.program import Outcome
from asyncgpu_tutor.data import MlpInputs, reference_forward

__all__ = ["relu_ok", "rounding_bound", "verify"]


def relu_ok(output: npt.NDArray[Any]) -> bool:
    """Whether no value is negative (or NaN): it shows that the last kernel ran, and no more."""
    return bool(np.all(output >= 0))


def rounding_bound(
    x: npt.NDArray[Any], w0: npt.NDArray[Any], w1: npt.NDArray[Any]
) -> npt.NDArray[np.float64]:
    """How far float32 may be from the exact result, whatever the order of its sums.

    Each element of a product of length k is off by at most ``g(k) |a| |b|``, where
    ``g(k) = k u / (1 - k u)`` and ``u = 2**-24``; two products in a row, by ``g(k + n) |x| |w0| |w1|``
    (N. Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, sections 3.1 and 3.5). It
    holds with and without fused multiply-add, and a ReLU moves no two numbers further apart.

    Parameters
    ----------
    x : array, shape (..., samples, features)
    w0 : array, shape (features, hidden)
    w1 : array, shape (hidden,)

    Returns
    -------
    array, float64, shape (..., samples)
    """
    terms = sum(w0.shape) * 2.0**-24
    return terms / (1 - terms) * reference_forward(abs(x), abs(w0), abs(w1))


def verify(inputs: MlpInputs, outcome: Outcome) -> list[str]:
    """What is wrong with a run, in words; empty if nothing is."""
    problems: list[str] = []
    expected = reference_forward(inputs.batches, inputs.w0, inputs.w1)
    allowed = rounding_bound(inputs.batches, inputs.w0, inputs.w1)
    for number, output in enumerate(outcome.outputs):
        if not relu_ok(output):
            problems.append(f"batch {number} has values below zero: the ReLU did not run")
        error = abs(output - expected[number])
        wrong = ~(error <= allowed[number])  # so that NaN is wrong
        if wrong.any():
            first = int(np.argmax(wrong))
            problems.append(
                f"batch {number} differs from the reference in {np.sum(wrong)} of {output.size} "
                f"elements; the first is element {first}, {output[first]:.6g} instead of "
                f"{expected[number, first]:.6g} (allowed: {allowed[number, first]:.1g})"
            )
    most = len(outcome.outputs) + 1
    for name, during, after in zip(("W0", "W1"), outcome.in_flight, outcome.after, strict=True):
        # A GPU may be done with a batch before the next is submitted, so only the most is certain.
        if during > most:
            problems.append(f"{name} had {during} handles in flight, where {most} are the most")
        if after != 1:
            problems.append(f"{name} has {after} handles after the last batch, and should have 1")
    return problems
