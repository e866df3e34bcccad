"""The two kernels that only the program uses."""

from __future__ import annotations

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.kernels import sgemm_naive, sgemm_tiled, softmax


@pytest.mark.parametrize("shape", [(32, 32, 32), (50, 30, 70), (17, 16, 15), (1, 1, 1)])
def test_tiles_compute_what_naive_ones_do(device: Device, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    rng = np.random.default_rng(m)
    a, b, c = (rng.standard_normal(s, dtype=np.float32) for s in ((m, k), (k, n), (m, n)))
    products: list[np.ndarray] = []
    for kernel in (sgemm_naive, sgemm_tiled):
        arrays = [agt.h2d(agt.pin(x)).sync() for x in (a, b, c)]
        launch = kernel(m, n, k, 2.0, arrays[0], arrays[1], 0.5, arrays[2].partition(16, 16))
        products.append(launch.last().unpartition().to_host().sync())

    np.testing.assert_allclose(products[1], 2 * a @ b + c / 2, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(products[1], products[0], rtol=1e-4, atol=1e-4)


def test_tiles_ask_global_memory_for_a_sixteenth(sim: Device) -> None:
    n = 64
    asked: list[int] = []
    for kernel in (sgemm_naive, sgemm_tiled):
        out = agt.zeros((n, n)).partition(16, 16)
        with agt.microscope() as report:
            kernel(n, n, n, 1.0, agt.ones((n, n)), agt.ones((n, n)), 0.0, out).sync()
        asked.append(report[kernel.name].counts.global_load_requests)

    assert asked[1] <= asked[0] / 16 * 1.2  # both also read the old c, once


@pytest.mark.parametrize("n", [1, 2, 64, 255, 256, 257, 1000])
@pytest.mark.parametrize("threads", [32, 256])
def test_softmax(device: Device, n: int, threads: int) -> None:
    x = np.random.default_rng(n).uniform(-200, 200, n).astype(np.float32)
    array = agt.h2d(agt.pin(x)).sync()

    y = softmax(n, array, array, grid=1, block=threads).last().to_host().sync()

    powers = np.exp(x.astype(np.float64) - x.max())
    np.testing.assert_allclose(y, powers / powers.sum(), rtol=1e-4, atol=1e-30)
    assert abs(y.sum(dtype=np.float64) - 1) < 1e-4
