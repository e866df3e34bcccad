"""One batch: ``relu(x @ w0 @ w1)`` as one lazy operation."""

from functools import partial

import numpy as np
import numpy.typing as npt

import asyncgpu_tutor as agt
from asyncgpu_tutor import DeviceArray, DeviceOp
from asyncgpu_tutor.data import MlpInputs

TILE = (16, 16)  # threads of a block of the matrix product, one for each element of the result
_BLOCK = 256  # threads of a block of the other kernels

_Host = npt.NDArray[np.float32]


def upload(inputs: MlpInputs) -> DeviceOp[tuple[DeviceArray, DeviceArray]]:
    """The weights on the device, as shared handles: one copy serves any number of batches."""
    weights = (("W0", inputs.w0), ("W1", inputs.w1))
    w0, w1 = (agt.h2d(agt.pin(array), name).share() for name, array in weights)
    return agt.zip(w0, w1)


def forward(x: _Host, w0: DeviceArray, w1: DeviceArray) -> DeviceOp[_Host]:
    """One batch, from the host and back to it.

    Four stages on one stream: matrix product, matrix-vector product, ReLU in place, copy to the host. Each
    function below runs when the operation is submitted, long before the stage before it has been computed:
    it gets handles, and passes on what the later stages need.

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
    samples, features = x.shape
    n = w0.shape[1]

    def stages(handles: tuple[DeviceArray, ...]) -> DeviceOp[DeviceArray]:
        batch, hidden, output = handles
        product = agt.sgemm_naive(samples, n, features, 1.0, batch, w0, 0.0, hidden.partition(TILE))
        return product.output().and_then(partial(matvec, output)).and_then(relu)

    def matvec(output: DeviceArray, hidden: DeviceArray) -> DeviceOp[DeviceArray]:
        return agt.matvec_naive(samples, n, hidden, w1, output.partition(_BLOCK)).output()

    def relu(output: DeviceArray) -> DeviceOp[DeviceArray]:
        # This may happen in place, because every thread reads and writes its own element only.
        part = output.partition(_BLOCK)
        return agt.relu(samples, part, part).output()

    buffers = agt.zeros((samples, n), name="hidden"), agt.zeros(samples, name="output")
    return agt.zip(agt.h2d(x, "input"), *buffers).and_then(stages).and_then(agt.d2h)
