"""The inputs of the MLP pipeline, and the answers that they should get."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from asyncgpu_tutor.errors import ArrayShapeError, whole


@dataclass(frozen=True, eq=False)
class MlpInputs:
    """Weights and batches of ``relu(x @ w0 @ w1)``.

    Attributes
    ----------
    w0 : array, float32, shape (dim, dim)
        Weights from the input to the hidden values.
    w1 : array, float32, shape (dim,)
        Weights from the hidden values to the one output of each sample.
    batches : array, float32, shape (n, dim, dim)
        ``n`` batches of ``dim`` samples with ``dim`` features each.
    """

    w0: npt.NDArray[np.float32]
    w1: npt.NDArray[np.float32]
    batches: npt.NDArray[np.float32]

    @property
    def dim(self) -> int:
        """Samples in a batch, and features of a sample."""
        return self.w0.shape[0]


def seed_inputs(dim: int = 64, batches: int = 4) -> MlpInputs:
    """Made-up data that anybody can compute again, for any size.

    With ``i`` the index into the flattened array and ``b`` the number of the batch::

        w0[i] = ((i mod 7) - 3) * 0.01
        w1[i] = ((i mod 5) - 2) * 0.01
        x[i]  = ((i + 37 b) mod 13) * 0.1

    These are the formulas of the async_mlp example of cuda-oxide, in float32 as there, so for
    ``dim=64, batches=4`` the results are those that it prints, to the last digit.

    Parameters
    ----------
    dim : int
        Samples in a batch, and features of a sample.
    batches : int
        How many batches.

    Raises
    ------
    ArrayShapeError
        Either number is below 1.
    """
    dim, batches = whole("dim", dim), whole("the number of batches", batches)
    if dim < 1 or batches < 1:
        raise ArrayShapeError(
            "the inputs need at least one batch with at least one sample, "
            f"but dim={dim} and batches={batches} were asked for: give 1 or more for both"
        )
    i = np.arange(dim * dim)
    b = np.arange(batches)[:, np.newaxis]
    w0, w1 = _scaled(i % 7 - 3, 0.01).reshape(dim, dim), _scaled(i[:dim] % 5 - 2, 0.01)
    return MlpInputs(w0, w1, _scaled((i + 37 * b) % 13, 0.1).reshape(batches, dim, dim))


def _scaled(whole: npt.NDArray[Any], by: float) -> npt.NDArray[np.float32]:
    return whole.astype(np.float32) * np.float32(by)


def reference_forward(
    x: npt.NDArray[Any], w0: npt.NDArray[Any], w1: npt.NDArray[Any]
) -> npt.NDArray[np.float64]:
    """Compute ``relu(x @ w0 @ w1)`` in float64, in the order in which the kernels do it.

    Parameters
    ----------
    x : array, shape (..., samples, features)
        One batch, or several at once.
    w0 : array, shape (features, hidden)
    w1 : array, shape (hidden,)

    Returns
    -------
    array, float64, shape (..., samples)
        None is negative.
    """
    x, w0, w1 = (np.asarray(given, np.float64) for given in (x, w0, w1))
    return np.maximum(x @ w0 @ w1, 0.0)
