"""The parts that notebooks import, and the files that the program writes."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import asyncgpu_tutor as agt
from asyncgpu_tutor.commands.mlp import forward
from asyncgpu_tutor.commands.mlp.pipeline import Network
from asyncgpu_tutor.commands.mlp.verification import reference, rounding_bound
from asyncgpu_tutor.data import MlpInputs, reference_forward, seed_inputs
from asyncgpu_tutor.devices.protocol import Device

from .conftest import Mlp


def test_forward_of_matrices_that_are_not_square(device: Device) -> None:
    rng = np.random.default_rng(0)
    x, w0, w1 = (rng.random(shape, dtype=np.float32) - 0.5 for shape in ((5, 40), (40, 33), 33))

    weights = agt.zip(agt.h2d(w0).share(), agt.h2d(w1).share())
    scores = weights.and_then(lambda handles: forward(agt.pin(x), *handles)).sync()

    assert scores.shape == (5,)
    assert scores.dtype == np.float32
    error = abs(scores - reference_forward(x, w0, w1))
    assert np.all(error <= rounding_bound(Network(MlpInputs(w0, w1, x[None]))))


shapes = st.integers(1, 40)


def in_float32(network: Network) -> np.ndarray:
    """The same as the kernels, with sums from left to right."""
    values = network.inputs.batches
    for number, weight in enumerate(network.hidden):
        values = product(np.maximum(values, 0) if number else values, weight)
    output = np.maximum(product(values, network.inputs.w1[:, None])[..., 0], 0)
    if not network.softmax:
        return output
    powers = np.exp(output - output.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    total = np.zeros((*a.shape[:-1], b.shape[1]), np.float32)
    for i in range(len(b)):
        total += a[..., i, None] * b[i]
    return total


@given(
    *(shapes, shapes, st.integers(0, 2**32 - 1), st.sampled_from([1e-3, 1.0, 1e3])),
    *(st.integers(0, 3), st.booleans()),
)
def test_float32_stays_within_the_rounding_bound(
    k: int, n: int, seed: int, scale: float, further: int, softmax: bool
) -> None:
    rng = np.random.default_rng(seed)
    x, w0, w1 = (
        rng.normal(0, scale, shape).astype(np.float32) for shape in ((2, 3, k), (k, n), (n,))
    )
    deeper = tuple(rng.normal(0, 1, (further, n, n)).astype(np.float32))
    network = Network(MlpInputs(w0, w1, x), deeper, softmax)

    error = abs(in_float32(network) - reference(network))

    assert np.all(error <= rounding_bound(network))


@pytest.mark.parametrize("dim", [8, 64, 256])
@pytest.mark.parametrize(("layers", "softmax"), [(1, False), (3, False), (2, True)])
def test_the_bound_is_tight_enough_to_miss_a_term(dim: int, layers: int, softmax: bool) -> None:
    inputs = seed_inputs(dim, 1)
    without = inputs.w1.copy()
    without[-1 if without[-1] else -2] = 0
    deeper = Network.deeper(inputs, layers)
    right = Network(inputs, deeper, softmax)
    wrong = Network(MlpInputs(inputs.w0, without, inputs.batches), deeper, softmax)

    assert np.any(abs(reference(wrong) - reference(right)) > rounding_bound(right))


def test_further_layers_keep_the_size_of_values_and_one_is_the_reference_of_the_data() -> None:
    inputs = seed_inputs(128, 1)
    first, *others = [
        reference(Network(inputs, Network.deeper(inputs, layers))) for layers in (1, 3, 10, 40)
    ]

    expected = reference_forward(inputs.batches, inputs.w0, inputs.w1)
    np.testing.assert_array_equal(first, expected)
    for outputs in others:
        assert first.max() / 100 < outputs.max() < 100 * first.max()
        assert 0 < np.count_nonzero(outputs) < outputs.size  # samples differ


@pytest.mark.parametrize(
    ("name", "start"), [("t.png", b"\x89PNG"), ("t.svg", b"<?xml"), ("t.pdf", b"%PDF")]
)
def test_plot(sim: Device, mlp: Mlp, tmp_path: Path, name: str, start: bytes) -> None:
    before = plt.get_fignums()

    ran = mlp("--dim", 8, "--plot", tmp_path / name)

    assert (tmp_path / name).read_bytes().startswith(start)
    assert str(tmp_path / name) in ran.out
    assert plt.get_fignums() == before
