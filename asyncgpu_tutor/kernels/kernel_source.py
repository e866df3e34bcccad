"""What the host knows of a kernel besides its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, eq=False)
class KernelSource:
    """CUDA C source and facts.

    Attributes
    ----------
    name : str
        Name of the `extern "C"` function.
    source : str
        CUDA C. Pointers to const are inputs, other pointers outputs.
    shapes : mapping of str to tuple of str
        For array parameters: the scalar parameters that give their shape, such as ``("m", "k")``.
        A one-dimensional shape fits any array with that many elements.
    reference : callable, optional
        The same computation in NumPy: all arguments, in order, to the tuple of output arrays, whole. It
        gets arrays flat, and must not change them. The simulated device computes large launches by it,
        after checking it on some of the blocks (see `SimDevice`).
    """

    name: str
    source: str
    shapes: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    reference: Callable[..., tuple[Any, ...]] | None = None
    contract: bool = False
