import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncgpu_tutor.data import reference_forward, seed_inputs
from asyncgpu_tutor.errors import ArrayShapeError


@given(dim=st.integers(1, 40), batches=st.integers(1, 6), data=st.data())
def test_seed_inputs_follow_their_formulas(dim: int, batches: int, data: st.DataObject):
    inputs = seed_inputs(dim, batches)
    assert inputs.dim == dim
    assert (inputs.w0.shape, inputs.w1.shape) == ((dim, dim), (dim,))
    assert inputs.batches.shape == (batches, dim, dim)
    assert {a.dtype for a in (inputs.w0, inputs.w1, inputs.batches)} == {np.dtype(np.float32)}
    i, j = data.draw(st.integers(0, dim * dim - 1)), data.draw(st.integers(0, dim - 1))
    b = data.draw(st.integers(0, batches - 1))
    assert inputs.w0.ravel()[i] == np.float32((i % 7) - 3) * np.float32(0.01)
    assert inputs.w1[j] == np.float32((j % 5) - 2) * np.float32(0.01)
    assert inputs.batches[b].ravel()[i] == np.float32((i + 37 * b) % 13) * np.float32(0.1)


@pytest.mark.parametrize(("dim", "batches"), [(0, 4), (64, 0), (-1, 4)])
def test_sizes_below_one_are_refused(dim: int, batches: int):
    with pytest.raises(ArrayShapeError, match=f"dim={dim} and batches={batches}.*1 or more"):
        seed_inputs(dim, batches)


def test_reference_forward_by_hand():
    x = np.array([[1.0, 2.0], [3.0, -4.0]])
    w0 = np.array([[1.0, 0.0], [1.0, 1.0]])  # hidden: [3, 2] and [-1, -4]
    np.testing.assert_array_equal(reference_forward(x, w0, np.array([1.0, 10.0])), [23.0, 0.0])


def test_reference_forward_does_not_round_to_float32():
    one = np.ones((1, 2), np.float32)
    tiny = np.array([[1.0], [1e-12]], np.float32)
    assert reference_forward(one, tiny, np.ones(1, np.float32))[0] > 1.0
