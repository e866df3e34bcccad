"""The inputs of the MLP pipeline, a language model, and what results are checked against.

Needs NumPy and nothing else, and no device. ``tools/train_digits.py`` and ``tools/train_language_model.py``
made the weights.
"""

from asyncgpu_tutor.data.digits import Digits, Quality, load_digits, training_digits
from asyncgpu_tutor.data.inputs import MlpInputs, reference_forward, seed_inputs
from asyncgpu_tutor.data.language import (
    LanguageModel,
    load_language_model,
    reference_features,
    reference_say,
)

__all__ = [
    "Digits",
    "LanguageModel",
    "MlpInputs",
    "Quality",
    "load_digits",
    "load_language_model",
    "reference_features",
    "reference_forward",
    "reference_say",
    "seed_inputs",
    "training_digits",
]
