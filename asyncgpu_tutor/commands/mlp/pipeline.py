"""What a batch needs: ``relu(x @ w0 @ w1)`` as one lazy operation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import asyncgpu_tutor as agt
from asyncgpu_tutor import DeviceArray, DeviceOp
from asyncgpu_tutor.data import MlpInputs

__all__ = ["forward", "upload"]

TILE = (16, 16)  # threads of a block of the matrix product, one for each element of the result
BLOCK = 256  # threads of a block of the other two kernels


def upload(inputs: MlpInputs) -> DeviceOp[tuple[DeviceArray, DeviceArray]]:
    """The weights on the device, as shared handles: one copy serves any number of batches."""
    return agt.zip(
        agt.h2d(agt.pin(inputs.w0), "W0").share(), agt.h2d(agt.pin(inputs.w1), "W1").share()
    )


def forward(
    x: npt.NDArray[np.float32], w0: DeviceArray, w1: DeviceArray
) -> DeviceOp[npt.NDArray[np.float32]]:
    """One batch, from the host and back to it.

    Four stages on one stream: matrix product, matrix-vector product, ReLU in place, copy to the host.
    Each function below runs when the operation is submitted, long before the stage before it has been
    computed: it gets handles, and passes on what the later stages need.

    Parameters
    ----------
    x : array, float32, shape (samples, features)
        In pinned memory (`asyncgpu_tutor.pin`), or else its copy holds up the host.
    w0 : DeviceArray, float32, shape (features, hidden)
        Shared.
    w1 : DeviceArray, float32, shape (hidden,)
        Shared.

    Returns
    -------
    DeviceOp
        Yields ``relu(x @ w0 @ w1)``, float32, shape (samples,).
    """
    m, k = x.shape
    n = w0.shape[1]

    def gemm(
        buffers: tuple[DeviceArray, DeviceArray, DeviceArray],
    ) -> DeviceOp[tuple[DeviceArray, DeviceArray]]:
        batch, hidden, output = buffers
        product = agt.sgemm_naive(m, n, k, 1.0, batch, w0, 0.0, hidden.partition(TILE)).output()
        # The baton is the product, and the buffer that nobody used yet.
        return product.map(lambda product: (product, output))

    def matvec(baton: tuple[DeviceArray, DeviceArray]) -> DeviceOp[DeviceArray]:
        hidden, output = baton
        return agt.matvec_naive(m, n, hidden, w1, output.partition(BLOCK)).output()

    def relu(output: DeviceArray) -> DeviceOp[DeviceArray]:
        # In place: every thread reads and writes its own element only.
        part = output.partition(BLOCK)
        return agt.relu(m, part, part).output()

    return (
        agt.zip(agt.h2d(x, "input"), agt.zeros((m, n), name="hidden"), agt.zeros(m, name="output"))
        .and_then(gemm)
        .and_then(matvec)
        .and_then(relu)
        .and_then(agt.d2h)
    )
