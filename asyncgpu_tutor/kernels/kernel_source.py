"""What the host knows of a kernel besides its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, eq=False)
class KernelSource:
    """CUDA C source and facts."""

    name: str  # name of the `extern "C"` function
    # CUDA C. Pointers to const are inputs, other pointers outputs.
    source: str
    # The scalar parameters that give an array parameter its shape, such as ``("m", "k")``. A shape of one
    # dimension fits any array with that many elements.
    shapes: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    # The same computation in NumPy: all arguments, in order, to the tuple of output arrays, whole. It gets
    # arrays flat, and must not change them. The simulated device computes large launches by it, after
    # checking it on some of the blocks (see `SimDevice`).
    reference: Callable[..., tuple[Any, ...]] | None = None
    contract: bool = False
