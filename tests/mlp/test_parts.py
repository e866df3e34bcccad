"""The parts that notebooks import, and the files that the program writes."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, cast

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import asyncgpu_tutor as agt
from asyncgpu_tutor.commands.mlp import forward, rounding_bound, run_batches, upload
from asyncgpu_tutor.data import reference_forward, seed_inputs
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.traces import nvtx as ranges

if TYPE_CHECKING:
    from .conftest import Mlp


def test_forward_of_matrices_that_are_not_square(device: Device) -> None:
    rng = np.random.default_rng(0)
    x, w0, w1 = (rng.random(shape, dtype=np.float32) - 0.5 for shape in ((5, 40), (40, 33), 33))

    weights = agt.zip(agt.h2d(w0).share(), agt.h2d(w1).share())
    scores = weights.and_then(lambda handles: forward(agt.pin(x), *handles)).sync()

    assert scores.shape == (5,)
    assert scores.dtype == np.float32
    error = abs(scores - reference_forward(x, w0, w1))
    assert np.all(error <= rounding_bound(x, w0, w1))


def test_building_a_batch_enqueues_nothing(sim: Device) -> None:
    inputs = seed_inputs(8, 1)
    w0, w1 = upload(inputs).sync()

    with agt.record() as trace:
        forward(agt.pin(inputs.batches[0]), w0, w1)

    assert len(trace) == 0


def test_batches_run_without_the_command_line(device: Device) -> None:
    inputs = seed_inputs(20, 3)

    async def main() -> np.ndarray:
        w0, w1 = await upload(inputs)
        return (await run_batches(inputs.batches, w0, w1)).outputs

    outputs = asyncio.run(main())

    expected = reference_forward(inputs.batches, inputs.w0, inputs.w1)
    np.testing.assert_allclose(outputs, expected, rtol=0, atol=1e-7)


shapes = st.integers(1, 40)


@given(shapes, shapes, st.integers(0, 2**32 - 1), st.sampled_from([1e-3, 1.0, 1e3]))
def test_float32_stays_within_the_rounding_bound(k: int, n: int, seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    x, w0, w1 = (rng.normal(0, scale, shape).astype(np.float32) for shape in ((3, k), (k, n), (n,)))
    hidden = np.zeros((3, n), np.float32)
    for i in range(k):
        hidden += x[:, i, None] * w0[i]
    output = np.zeros(3, np.float32)
    for j in range(n):
        output += hidden[:, j] * w1[j]

    error = abs(np.maximum(output, 0) - reference_forward(x, w0, w1))
    assert np.all(error <= rounding_bound(x, w0, w1))


@pytest.mark.parametrize("dim", [8, 64, 256])
def test_the_bound_is_tight_enough_to_miss_a_term(dim: int) -> None:
    inputs = seed_inputs(dim, 1)
    without = inputs.w1.copy()
    without[-1 if without[-1] else -2] = 0

    right = reference_forward(inputs.batches, inputs.w0, inputs.w1)
    wrong = reference_forward(inputs.batches, inputs.w0, without)

    assert np.any(abs(wrong - right) > rounding_bound(inputs.batches, inputs.w0, inputs.w1))


@pytest.mark.parametrize(
    ("name", "start"), [("t.png", b"\x89PNG"), ("t.svg", b"<?xml"), ("t.pdf", b"%PDF")]
)
def test_plot(sim: Device, mlp: Mlp, tmp_path: Path, name: str, start: bytes) -> None:
    before = plt.get_fignums()

    ran = mlp("--dim", 8, "--plot", tmp_path / name)

    assert (tmp_path / name).read_bytes().startswith(start)
    assert str(tmp_path / name) in ran.out
    assert plt.get_fignums() == before


def test_nvtx_marks_each_batch_and_is_off_again(
    sim: Device, mlp: Mlp, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []

    class Domain:
        get_event_attributes = staticmethod(lambda message: message)
        start_range = staticmethod(started.append)
        push_range = end_range = pop_range = staticmethod(lambda *_: None)

    nvtx = SimpleNamespace(get_domain=lambda _: Domain)
    monkeypatch.setitem(sys.modules, "nvtx", cast(ModuleType, nvtx))

    mlp("--dim", 8, "--nvtx")

    assert [name for name in started if name.startswith("batch")] == [
        f"batch {i} in flight" for i in range(4)
    ]
    assert not ranges.enabled()


def test_no_overlap_is_explained(sim: Device, mlp: Mlp) -> None:
    assert "the host is the bottleneck" in mlp("--dim", 8).out
    assert "the host is the bottleneck" not in mlp("--dim", 8, "--policy", "single").out
