"""A small language model that was trained on the pages of this course, and knows many of them by heart.

``tools/train_language_model.py`` made it: a transformer like GPT-2, without biases, whose last layer has the
weights of its first. It was overfitted on purpose, because a model of this size that hasn't learned its text
by heart makes no sense. Its tokens are pairs of characters, and pairs of those (byte-pair encoding).

Weights are stored as one byte each with a scale for each row, and used as float32.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from asyncgpu_tutor.errors import UsageError, demand, whole

Floats = npt.NDArray[np.float32]

# Pairs are joined within these, so that no token crosses a word: a space belongs to the word behind it.
WORDLIKE: Final = re.compile(r" ?[A-Za-z]+| ?[0-9]+| ?[^A-Za-z0-9\n ]| |\n")
END: Final = 0
"""The token that ends a text: a new line."""


def word(said: int) -> int:
    """The token that a step said. The last one of a text comes as -1 - token, which is negative."""
    return max(said, -1 - said)


_FILE = Path(__file__).with_name("language.npz")
WEIGHT_NAMES: Final = (
    "tokens",
    "places",
    "gain_1",
    "qkv",
    "out",
    "gain_2",
    "wide",
    "narrow",
    "gain",
)


@dataclass(frozen=True, eq=False)
class LanguageModel:
    """Weights and vocabulary of a language model.

    Attributes
    ----------
    vocabulary : tuple of str
        The text of each token, by number. The first is the end of a text.
    weights : mapping of str to array, float32
        ``tokens`` (vocabulary, size), which is the last layer, too, and ``places`` (context, size); for each
        of `layers`, ``gain_1`` and ``gain_2`` (size), ``qkv`` (3 size, size), ``out`` (size, size), ``wide``
        (4 size, size) and ``narrow`` (size, 4 size); and ``gain`` (size), before the last layer.
    heads : int
        Number of heads of each attention.
    curve : array, float32, shape (n, 3)
        Steps of its training, the loss then in nats a token, and that on text that it was not trained on.
    """

    vocabulary: tuple[str, ...]
    weights: Mapping[str, Floats]
    heads: int
    curve: Floats

    @property
    def size(self) -> int:
        """Number of floats that it knows of a token on its way."""
        return self.weights["tokens"].shape[1]

    @property
    def layers(self) -> int:
        """Number of its layers."""
        return len(self.weights["qkv"])

    @property
    def context(self) -> int:
        """Number of tokens of its longest text."""
        return len(self.weights["places"])

    @cached_property
    def _ranks(self) -> dict[str, int]:
        return {text: number for number, text in enumerate(self.vocabulary)}

    def encode(self, text: str) -> list[int]:
        """The tokens of a text.

        Raises
        ------
        UsageError
            If a character of it is none that the model was trained on.
        """
        demand(text, str, "encode takes a text")
        unknown = sorted(set(text) - self._ranks.keys())
        if unknown:
            raise UsageError(
                f"the model has never seen {', '.join(map(repr, unknown[:5]))}: it knows the characters of "
                "English text and of code on one line"
            )
        return [token for piece in WORDLIKE.findall(text) for token in self._joined(piece)]

    def _joined(self, piece: str) -> Iterable[int]:
        """Join the pair that came first into the vocabulary, again and again."""
        parts, ranks = list(piece), self._ranks
        while len(parts) > 1:
            pairs = [ranks.get(a + b, len(ranks)) for a, b in pairwise(parts)]
            first = min(pairs)
            if first == len(ranks):
                break
            at = pairs.index(first)
            parts[at : at + 2] = [self.vocabulary[first]]
        return (ranks[part] for part in parts)

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of these tokens; `UsageError` if the model doesn't have one of them."""
        return "".join(self.vocabulary[token] for token in self.check_tokens(tokens))

    def check_tokens(self, tokens: Iterable[int]) -> list[int]:
        """These tokens, as a list; `UsageError` if the model doesn't have one of them."""
        demand(tokens, Iterable, "tokens are in a list")
        given, numbers = list(tokens), range(len(self.vocabulary))
        if strange := [t for t in given if not isinstance(t, int | np.integer) or t not in numbers]:  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all type-checked
            raise UsageError(f"tokens are 0 to {numbers[-1]}, and got {strange[0]!r:.99}")
        return given


def load_language_model() -> LanguageModel:
    """Load the model that comes with the package."""
    with np.load(_FILE, allow_pickle=False) as stored:
        return LanguageModel(
            tuple(stored["vocabulary"].tolist()),
            {name: _floats(stored[name], stored.get(f"{name}_scale")) for name in WEIGHT_NAMES},
            int(stored["heads"]),
            stored["curve"],
        )


def untrained_model(
    size: int, heads: int, layers: int, context: int, vocabulary: int, seed: int = 5
) -> LanguageModel:
    """A model of random weights: what it says makes no sense, and is quick to interpret.

    Its tokens are a new line, which ends a text, and then letters.
    """
    random = np.random.default_rng(seed)
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


def _floats(numbers: npt.NDArray[np.generic], scale: npt.NDArray[np.generic] | None) -> Floats:
    floats = numbers.astype(np.float32)
    return floats if scale is None else floats * scale.astype(np.float32)


def reference_say(
    model: LanguageModel, prompt: Sequence[int], last: int, heat: float, chance: Floats
) -> tuple[list[int], npt.NDArray[np.float64]]:
    """What the kernels compute for one conversation, in NumPy and float64.

    Parameters
    ----------
    prompt : sequence of int
        Tokens that are given, at least one. They count as said.
    last : int
        The place of the last token at the latest, below `LanguageModel.context`.
    heat : float
        What logits are divided by: near 0 the likeliest token is taken, at 1 as often as it is likely.
    chance : array, shape (context,)
        For the token behind each place, a number from 0 to 1: where in the shares of all tokens it lies.

    Returns
    -------
    list of int, and array of shape (n, vocabulary)
        All tokens, and the logits of each place but the last.
    """
    w, heads, size, prompt = model.weights, model.heads, model.size, _text(model, prompt)
    last = whole("the last place", last, 0)
    keys, values = np.zeros((2, model.layers, model.context, heads, size // heads))
    text, logits, token = [prompt[0]], list[npt.NDArray[np.float64]](), prompt[0]
    for now in range(model.context - 1):
        x = w["tokens"][token].astype(np.float64) + w["places"][now]
        for layer in range(model.layers):
            q, k, v = (w["qkv"][layer] @ _normed(x, w["gain_1"][layer])).reshape(3, heads, -1)
            keys[layer, now], values[layer, now] = k, v
            score = np.einsum("hi,jhi->hj", q, keys[layer, : now + 1]) / np.sqrt(size // heads)
            weight = np.exp(score - score.max(1, keepdims=True))
            mix = np.einsum(
                "hj,jhi->hi", weight / weight.sum(1, keepdims=True), values[layer, : now + 1]
            )
            x = x + w["out"][layer] @ mix.ravel()
            x = x + w["narrow"][layer] @ _gelu(w["wide"][layer] @ _normed(x, w["gain_2"][layer]))
        logits.append(w["tokens"] @ _normed(x, w["gain"]))
        given = now + 1 < len(prompt)
        token = prompt[now + 1] if given else _drawn(logits[-1], heat, float(chance[now]))
        text.append(token)
        if now + 1 >= min(last, model.context - 1) or (token == END and not given):
            break
    return text, np.array(logits)


def reference_features(model: LanguageModel, tokens: Sequence[int]) -> npt.NDArray[np.float64]:
    """What the last layer is given at each place of a text, in NumPy: all that the model makes of it by then.

    Parameters
    ----------
    tokens : sequence of int
        At most `LanguageModel.context` of them.

    Returns
    -------
    array, shape (len(tokens), size)
        Times the last layer's weights, these are the logits of the token behind each place.
    """
    w, count = model.weights, len(text := _text(model, tokens))
    x = w["tokens"][text].astype(np.float64) + w["places"][:count]
    for layer in range(model.layers):
        qkv = _normed(x, w["gain_1"][layer]) @ w["qkv"][layer].T
        q, k, v = qkv.reshape(count, 3, model.heads, -1).transpose(1, 2, 0, 3)
        score = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
        score = np.where(np.tri(count, dtype=bool), score, -np.inf)
        weight = np.exp(score - score.max(-1, keepdims=True))
        mix = weight / weight.sum(-1, keepdims=True) @ v
        x = x + mix.transpose(1, 0, 2).reshape(count, -1) @ w["out"][layer].T
        x = x + _gelu(_normed(x, w["gain_2"][layer]) @ w["wide"][layer].T) @ w["narrow"][layer].T
    return _normed(x, w["gain"])


def _text(model: LanguageModel, tokens: Iterable[int]) -> list[int]:
    """Tokens that are a text of the model."""
    if not 1 <= len(found := model.check_tokens(tokens)) <= model.context:
        raise UsageError(f"a text has 1 to {model.context} tokens, and got {len(found)}")
    return found


def _normed(x: npt.NDArray[np.float64], gain: Floats) -> npt.NDArray[np.float64]:
    x = x - x.mean(-1, keepdims=True)
    return gain * x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)


def _gelu(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return 0.5 * x * (1 + np.tanh(0.79788456 * (x + 0.044715 * x**3)))


def _drawn(logits: npt.NDArray[np.float64], heat: float, chance: float) -> int:
    shares: npt.NDArray[np.float64] = np.exp((logits - logits.max()) / max(heat, 1e-3)).cumsum()
    beyond = int(np.count_nonzero(shares <= shares[-1] * chance))
    return min(beyond, len(shares) - 1)
