"""One batch: ``relu(x @ w0 @ w1)`` as one lazy operation, and its larger relatives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

import asyncgpu_tutor as agt
from asyncgpu_tutor import DeviceArray, DeviceOp, kernels
from asyncgpu_tutor.data import MlpInputs

TILE = (16, 16)  # threads of a block of the matrix product, one for each element of the result
BLOCK = 256  # threads of a block of the other kernels

Host = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Network:
    """A network and its batches, on the host."""

    inputs: MlpInputs  # batches, the weights W0 of the first hidden layer, and W1 of the output
    # Weights of further hidden layers, shape (dim, dim), each behind a ReLU of what comes before it.
    further: tuple[Host, ...] = ()
    softmax: bool = False  # a softmax over the batch follows the last ReLU
    tiled: bool = False  # the matrix products go through shared memory, tile by tile

    @property
    def hidden(self) -> tuple[Host, ...]:
        """Weights of all hidden layers."""
        return (self.inputs.w0, *self.further)

    @property
    def weights(self) -> Iterator[tuple[str, Host]]:
        """All weights with their names, in the order in which a batch needs them."""
        yield "W0", self.inputs.w0
        for number, weight in enumerate(self.further, start=2):
            yield f"W0/{number}", weight
        yield "W1", self.inputs.w1

    @staticmethod
    def deeper(inputs: MlpInputs, layers: int) -> tuple[Host, ...]:
        """Made-up weights for the hidden layers after the first, in the manner of `data.seed_inputs`.

        They are 1 on the diagonal, and little beside it. So a layer hands on what it got, and adds something
        to it: values keep their size, and samples their differences, through any number of layers. With
        random weights all samples would soon look the same.
        """
        dim = inputs.dim
        i = np.arange(dim * dim).reshape(dim, dim)
        return tuple(
            (np.eye(dim) + ((i + layer) % 11 - 5) / (2 * dim)).astype(np.float32)
            for layer in range(2, layers + 1)
        )


def upload(inputs: MlpInputs) -> DeviceOp[tuple[DeviceArray, ...]]:
    """The weights on the device, as shared handles: one copy serves any number of batches."""
    return upload_network(Network(inputs))


def upload_network(network: Network) -> DeviceOp[tuple[DeviceArray, ...]]:
    """As `upload`, for any number of layers."""
    return agt.zip(*[agt.h2d(agt.pin(w), name).share() for name, w in network.weights])


def forward(x: Host, w0: DeviceArray, w1: DeviceArray) -> DeviceOp[Host]:
    """One batch, from the host and back to it.

    Four stages on one stream: matrix product, matrix-vector product, ReLU in place, copy to the host.

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
    samples, width = x.shape[0], w0.shape[1]

    def stages(handles: tuple[DeviceArray, ...]) -> DeviceOp[DeviceArray]:
        batch, hidden, output = handles
        return (
            _gemm(batch, w0, hidden)
            .and_then(lambda done: _matvec(done, w1, output))
            .and_then(_relu)
        )

    inputs = agt.zip(
        agt.h2d(x, "input"),
        agt.zeros((samples, width), name="hidden"),
        agt.zeros(samples, name="output"),
    )
    return inputs.and_then(stages).and_then(agt.d2h)


def network_forward(
    x: Host, weights: Sequence[DeviceArray], *, softmax: bool = False, tiled: bool = False
) -> DeviceOp[Host]:
    """As `forward`, for any number of hidden layers, with a ReLU between two of them.

    Each function below runs when the operation is submitted, long before the stage before it has been
    computed: it gets handles, and passes on what the later stages need. For `softmax` and `tiled` see
    `Network`.
    """
    *hidden_weights, w1 = weights
    samples = x.shape[0]
    buffers = [agt.zeros((samples, w.shape[1]), name="hidden") for w in hidden_weights]

    def stages(handles: tuple[DeviceArray, ...]) -> DeviceOp[DeviceArray]:
        batch, *hidden, output = handles
        chain = _gemm(batch, hidden_weights[0], hidden[0], tiled)
        for weight, target in zip(hidden_weights[1:], hidden[1:], strict=True):
            chain = chain.and_then(_relu).and_then(
                partial(_gemm, weight=weight, target=target, tiled=tiled)
            )
        chain = chain.and_then(partial(_matvec, weight=w1, target=output)).and_then(_relu)
        return chain.and_then(_softmax) if softmax else chain

    inputs = agt.zip(agt.h2d(x, "input"), *buffers, agt.zeros(samples, name="output"))
    return inputs.and_then(stages).and_then(agt.d2h)


def _gemm(
    source: DeviceArray, weight: DeviceArray, target: DeviceArray, tiled: bool = False
) -> DeviceOp[DeviceArray]:
    m, k = source.shape
    n = weight.shape[1]
    kernel = kernels.sgemm_tiled if tiled else agt.sgemm_naive
    return kernel(m, n, k, 1.0, source, weight, 0.0, target.partition(TILE)).output()


def _matvec(source: DeviceArray, weight: DeviceArray, target: DeviceArray) -> DeviceOp[DeviceArray]:
    m, n = source.shape
    return agt.matvec_naive(m, n, source, weight, target.partition(BLOCK)).output()


def _relu(array: DeviceArray) -> DeviceOp[DeviceArray]:
    # This may happen in place, because every thread reads and writes its own element only.
    shape = array.shape
    if len(shape) == 1:
        part = array.partition(BLOCK)
        return agt.relu(shape[0], part, part).output()
    return _relu(array.reshape(array.size)).reshape(*shape)


def _softmax(array: DeviceArray) -> DeviceOp[DeviceArray]:
    return kernels.softmax(array.size, array, array, grid=1, block=BLOCK).output()
