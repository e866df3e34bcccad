"""Make asyncgpu_tutor/data/digits.npz from the copy of the digits that scikit-learn ships.

Needs scikit-learn, which the course does not, so run it in an environment of its own::

    python -m venv /tmp/digits && /tmp/digits/bin/pip install scikit-learn
    /tmp/digits/bin/python tools/make_digits.py

Pixels and labels stay as they are, in scikit-learn's order; only their type changes, to bytes.
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

digits = load_digits()
np.savez_compressed(
    Path(__file__).parents[1] / "asyncgpu_tutor" / "data" / "digits.npz",
    pixels=digits.data.astype(np.uint8),
    labels=digits.target.astype(np.uint8),
)
