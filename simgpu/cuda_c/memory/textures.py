"""Textures: which texels a read at some coordinates takes, and with what weights.

The formulas are those of the CUDA C++ Programming Guide, appendix "Texture Fetching". With N texels along an
axis, a coordinate x between 0 and 1 means N x. A point read takes texel floor(x). A linear one is between
texels i and i + 1 with i = floor(x - 0.5); the weight of the second is the fraction of x - 0.5, which the
hardware keeps in steps of 1/256.

The guide does not say how it rounds. An H200 takes the nearest weight. In two and three dimensions each texel
gets a whole number of these steps, too (`_weights`). And of integers that are read as fractions it gives,
where it filters, whole multiples of 1/65535, or of 1/32767 if they have a sign. The tests hold the simulated
device to what an H200 gave, bit by bit (tests/kernels/test_textures.py).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import le
from typing import Any

import numpy as np

from simgpu.cuda_c.lockstep.values import choose
from simgpu.errors import ArrayDTypeError, ArrayShapeError, UsageError

_CHOICES = {
    "filter": ("point", "linear"),
    "address": ("clamp", "border", "wrap", "mirror"),
    "read": ("element", "normalized_float"),
    "memory": ("array", "linear"),
    "channels": (1, 2, 4),
    "normalized_coords": (False, True),
}
_ELEMENTS = ("float32", "float16", "int32", "uint32", "int16", "uint16", "int8", "uint8")
# Most texels along each axis, the slowest first: CUDA C++ Programming Guide, "Technical Specifications per
# Compute Capability", from 7.5 on.
_MOST = {1: (131072,), 2: (65536, 131072), 3: (16384, 16384, 16384)}
_MOST_LINEAR = (1 << 28,)
_STEPS = 256  # of a weight
_FAR = 2.0**40  # texels; whatever is further off is outside as well


def _refuse(wrong: bool, text: str, error: type[UsageError] = UsageError) -> None:
    if wrong:
        raise error(text)


@dataclass(frozen=True)
class TextureForm:
    """How a texture is read, in CUDA's words; `agt.texture` has what they mean.

    Raises `UsageError`, or one of its subclasses, for what CUDA does not have.
    """

    shape: tuple[int, ...]  # texels along each axis, the slowest first
    dtype: np.dtype[Any]  # of an element as it is stored
    channels: int = 1  # elements of a texel
    filter: str = "point"
    address: str = "clamp"
    read: str = "element"
    normalized_coords: bool = False
    memory: str = "array"

    def __post_init__(self) -> None:
        for name, known in _CHOICES.items():
            given = getattr(self, name)
            listed = ", ".join(map(repr, known))
            wrong = isinstance(given, float) or given not in known  # 2.0 counts no channels
            _refuse(wrong, f"a texture's {name} is one of {listed}, and got {given!r}")
        kind, flat, sizes = self.dtype, self.memory == "linear", self.shape
        held = ", ".join(_ELEMENTS)
        text = f"a texture holds {held}, and got {kind}: convert the array with astype"
        _refuse(kind.name not in _ELEMENTS or not kind.isnative, text, ArrayDTypeError)
        most = _MOST_LINEAR if flat else _MOST.get(len(sizes), ())
        text = (
            f"a texture has 1 to 3 dimensions (in linear memory 1, and with channels=2 or 4 one more, which "
            f"is no part of these) of 1 texel or more, at most {most or [*_MOST.values()]}, and got {sizes}"
        )
        fits = 0 < len(sizes) == len(most) and all(map(le, sizes, most)) and all(sizes)
        _refuse(not fits, text, ArrayShapeError)
        _refuse(
            self.read == "normalized_float" and (kind.kind == "f" or kind.itemsize > 2),
            f"read='normalized_float' makes fractions of integers of 8 and 16 bits, and got {kind}",
        )
        _refuse(
            self.filter == "linear" and not self.gives_float,
            f"filter='linear' needs numbers with fractions, and the elements are {kind}: convert them with "
            "astype('float32'), or say read='normalized_float' (8 and 16 bits)",
        )
        _refuse(
            self.address in ("wrap", "mirror") and not self.normalized_coords,
            f"address={self.address!r} needs normalized_coords=True, and coordinates from 0 to 1 in the "
            "kernel: with coordinates in texels CUDA takes 'clamp' instead, and does not tell",
        )
        _refuse(
            flat and (self.filter == "linear" or self.normalized_coords),
            "tex1Dfetch reads linear memory by the number of the texel: leave filter and normalized_coords "
            "out, or leave memory='linear' out and read with tex1D",
        )

    @property
    def gives_float(self) -> bool:
        """Whether reads give floats, whatever is stored."""
        return self.dtype.kind == "f" or self.read == "normalized_float"

    def corners(self, where: Sequence[Any]) -> Iterator[tuple[Any, Any, Any]]:
        """The texels that a read takes, each by its number, whether it is inside, and its weight.

        `where` has a coordinate for each axis, x (the fastest) first: one for all threads, or an array.
        """
        sides = [self._along(x, n) for x, n in zip(where, reversed(self.shape), strict=True)]
        weights = _weights([steps for _, steps in sides]) if self.filter == "linear" else {}
        for chosen in itertools.product(*[range(len(texels)) for texels, _ in sides]):
            number, inside, step = np.int64(0), np.True_, 1
            for n, (texels, _), which in zip(reversed(self.shape), sides, chosen, strict=True):
                index, within = texels[which]
                number, inside = number + index * step, inside & within
                step *= n
            yield number, inside, weights.get(chosen, _STEPS) / np.float64(_STEPS)

    def _along(self, x: Any, n: int) -> tuple[list[tuple[Any, Any]], Any]:
        """The texels along one axis of `n`, and the weight of the second in steps."""
        x, back = np.asarray(x, np.float64)[()], np.False_
        linear = self.filter == "linear"
        if self.normalized_coords:
            whole = np.floor(x)
            if self.address in ("wrap", "mirror"):
                x = x - whole
            if self.address == "mirror":
                back = whole % 2 == 1
                x = choose(back & linear, 1 - x, x)
            x = x * n
        x = np.clip(np.nan_to_num(x), -_FAR, _FAR)
        # On an edge between two texels a mirror turns the texel, not the place (measured on an H200).
        low, steps = np.floor(x), np.float64(0)
        found = [choose(back, n - 1 - low, low)]
        if linear:
            between = np.floor((x - 0.5) * _STEPS + 0.5)
            low = np.floor(between / _STEPS)
            found, steps = [low, low + 1], between - low * _STEPS
        # In linear memory the address mode is ignored: CUDA Runtime API, "cudaTextureDesc".
        zero_outside = self.address == "border" or self.memory == "linear"
        out: list[tuple[Any, Any]] = []
        for at in found:
            inside = (at >= 0) & (at < n) if zero_outside else np.True_
            # Next to the end of a mirror is the last texel again, as with clamp.
            index = at % n if self.address == "wrap" and linear else np.clip(at, 0, n - 1)
            out.append((index.astype(np.int64), inside))
        return out, steps

    def number(self, stored: Any) -> Any:
        """Stored elements as they are weighted."""
        if self.read == "element":
            return stored.astype(np.float32) if self.gives_float else stored
        return stored.astype(np.float64) / np.iinfo(self.dtype).max

    def result(self, total: Any) -> Any:
        """What a read gives, of the sum of its weighted elements."""
        if self.read == "normalized_float":
            if self.filter == "linear":
                steps = 32767 if self.dtype.kind == "i" else 65535
                total = np.floor(total * steps + 0.5) / steps
            total = np.maximum(total, -1.0)
        return total.astype(np.float32) if self.gives_float else total

    @property
    def nbytes(self) -> int:
        """What its texels take, side by side."""
        return math.prod(self.shape) * self.channels * self.dtype.itemsize


def _weights(upper: Sequence[Any]) -> dict[tuple[int, ...], Any]:
    """How many of the 256 steps each of the 2, 4 or 8 texels gets, by 0 or 1 along x, y and z.

    `upper` has what the second texel along each axis gets. As an H200 does it: z divides first, then x, then
    y; one half is rounded and the other is the rest. The order does not show in the guide's formulas, where
    nothing is rounded.
    """
    x, *others = upper
    found: dict[tuple[int, ...], Any] = {}
    depths = [((), _STEPS)] if len(others) < 2 else [((0,), _STEPS - others[1]), ((1,), others[1])]
    for above, share in depths:
        right = _whole(x * share)
        for side, part in ((0, share - right), (1, right)):
            if not others:
                found[side,] = part
                continue
            near = _whole(part * (others[0] if side else _STEPS - others[0]))
            found[side, side, *above], found[side, 1 - side, *above] = near, part - near
    return found


def _whole(product: Any) -> Any:
    return np.floor(product / _STEPS + 0.5)
