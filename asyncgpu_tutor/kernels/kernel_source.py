"""A kernel's source, with the other facts that the host needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, eq=False)
class KernelSource:
    """CUDA C source and facts: see the parameters of `Kernel`."""

    name: str
    source: str
    shapes: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    reference: Callable[..., tuple[Any, ...]] | None = None
    contract: bool = False
