"""Checks of a run: its values against a reference in float64, and its handles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from asyncgpu_tutor.commands.mlp.measuring import Outcome
from asyncgpu_tutor.commands.mlp.pipeline import Network

U = 2.0**-24  # unit roundoff of float32
EXP_ERROR = 16  # allows for expf, the division and the subtraction, generously; in units of U

Doubles = npt.NDArray[np.float64]


def output_ok(output: npt.NDArray[Any], softmax: bool = False) -> bool:
    """True if the last kernel ran: no value is negative or NaN, and after a softmax they add up to 1."""
    fine = bool(np.all(output >= 0))
    return fine and (not softmax or abs(float(output.sum(dtype=np.float64)) - 1) < 1e-3)


def reference(network: Network) -> Doubles:
    """The right outputs, computed in float64, shape (batches, samples)."""
    scores, _ = _scores(network)
    return _softmax(scores) if network.softmax else scores


def rounding_bound(network: Network) -> Doubles:
    """How far float32 may be from the exact result, for each sample, whatever the order of its sums.

    Each element of a product ``a @ b`` of length k is off by at most ``g(k) |a| |b|``, where
    ``g(k) = k u / (1 - k u)`` and ``u = 2**-24``, and by ``e |b|`` more if a is off by e (N. Higham, Accuracy
    and Stability of Numerical Algorithms, 2nd edition, sections 3.1 and 3.5). Behind several layers such a
    worst case would allow anything, so there it is ``g(8 sqrt(k))``, and errors add up by their squares,
    because rounding errors have no common sign (N. Higham and T. Mary, SIAM J. Sci. Comput. 41, 2019).

    If all scores of a batch are off by at most e, their softmax is off by a factor of at most ``exp(2 e)``.
    Its own rounding adds to that: the sum, and twice an ``expf`` whose argument is rounded.
    """
    scores, off = _scores(network)
    if not network.softmax:
        return off
    spread = np.ptp(scores, axis=-1, keepdims=True)
    # Beyond 50 the bound allows anything anyway, and exp would overflow.
    worst = np.minimum(off.max(axis=-1, keepdims=True), 50.0)
    factor = np.expm1(2 * worst) + _gamma(scores.shape[-1] + EXP_ERROR + 2 * spread)
    return np.minimum(_softmax(scores) * factor + np.finfo(np.float32).tiny, 1.0)


def _scores(network: Network) -> tuple[Doubles, Doubles]:
    """The values before a softmax, and how far float32 may be off there."""
    values = network.inputs.batches.astype(np.float64)
    off = np.zeros_like(values)
    deep = bool(network.further)
    for number, weight in enumerate(network.hidden):
        values, off = _product(np.maximum(values, 0) if number else values, off, weight, deep)
    scores, off = _product(values, off, network.inputs.w1, deep)
    return np.maximum(scores, 0.0), off


def _product(
    a: Doubles, off: Doubles, b: npt.NDArray[np.float32], deep: bool
) -> tuple[Doubles, Doubles]:
    exact = b.astype(np.float64)
    terms = min(len(b), 8 * math.sqrt(len(b))) if deep else len(b)
    handed_on = np.sqrt(off**2 @ exact**2) if deep else off @ abs(exact)
    return a @ exact, handed_on + _gamma(terms) * (abs(a) + off) @ abs(exact)


def _softmax(scores: Doubles) -> Doubles:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _gamma(terms: Any) -> Any:
    return terms * U / (1 - terms * U)


def verify(network: Network, outcome: Outcome) -> list[str]:
    """Say what is wrong with a run; the list is empty if nothing is."""
    problems: list[str] = []
    expected, allowed = reference(network), rounding_bound(network)
    for number, output in enumerate(outcome.outputs):
        if not output_ok(output):
            problems.append(f"batch {number} has values below zero: the ReLU did not run")
        elif not output_ok(output, network.softmax):
            problems.append(f"batch {number} does not add up to 1: the softmax did not run")
        error = abs(output - expected[number])
        wrong = ~(error <= allowed[number])  # written so that NaN counts as wrong
        if wrong.any():
            first = int(np.argmax(wrong))
            problems.append(
                f"batch {number} differs from the reference in {np.sum(wrong)} of {output.size} "
                f"elements; the first is element {first}, {output[first]:.6g} instead of "
                f"{expected[number, first]:.6g} (allowed: {allowed[number, first]:.1g})"
            )
    most = len(outcome.outputs) + 1
    for name, after in outcome.after.items():
        during = outcome.in_flight[name]
        # A GPU may be done with a batch before the next is submitted, so only the most is certain.
        if during > most:
            problems.append(f"{name} had {during} handles in flight, where {most} are the most")
        if after != 1:
            problems.append(f"{name} has {after} handles after the last batch, and should have 1")
    return problems
