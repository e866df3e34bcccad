"""A model that nobody has trained: what it says makes no sense, and is quick to interpret."""

import numpy as np

from asyncgpu_tutor.data import LanguageModel


def small_model(
    size: int = 32, heads: int = 1, layers: int = 1, context: int = 16, vocabulary: int = 27
) -> LanguageModel:
    """Of random weights; its tokens are a new line, which ends a text, and letters."""
    random = np.random.default_rng(5)
    shapes = {
        "tokens": (vocabulary, size),
        "places": (context, size),
        "qkv": (layers, 3 * size, size),
        "out": (layers, size, size),
        "wide": (layers, 4 * size, size),
        "narrow": (layers, size, 4 * size),
    }
    weights = {name: random.normal(0, shape[-1] ** -0.5, shape) for name, shape in shapes.items()}
    gains = {"gain_1": (layers, size), "gain_2": (layers, size), "gain": (size,)}
    weights |= {name: random.normal(1, 0.1, shape) for name, shape in gains.items()}
    floats = {name: weight.astype(np.float32) for name, weight in weights.items()}
    letters = "\n", *(chr(97 + i) for i in range(vocabulary - 1))
    return LanguageModel(letters, floats, heads, np.zeros((0, 3), np.float32))
