"""The two inputs of the MLP pipeline, and what its results are checked against.

Needs NumPy and nothing else, and no device. ``tools/train_digits.py`` made the weights.
"""

from asyncgpu_tutor.data.digits import Digits, Quality, load_digits, training_digits
from asyncgpu_tutor.data.inputs import MlpInputs, reference_forward, seed_inputs

__all__ = [
    "Digits",
    "MlpInputs",
    "Quality",
    "load_digits",
    "reference_forward",
    "seed_inputs",
    "training_digits",
]
