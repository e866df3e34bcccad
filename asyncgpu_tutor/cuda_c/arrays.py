"""What tells a value that differs between threads from one that does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

__all__ = ["choose", "varies"]


# NumPy's own annotations leave the element type of the result unknown.
_where: Callable[[Any, Any, Any], Any] = np.where


def varies(value: Any) -> TypeGuard[NDArray[Any]]:
    """Whether a value has one element for each thread, rather than one for all."""
    return isinstance(value, np.ndarray)


def choose(condition: Any, yes: Any, no: Any) -> Any:
    """`yes` where a condition holds and `no` elsewhere; a NumPy scalar if all three are uniform."""
    out = _where(condition, yes, no)
    return out if out.ndim else out[()]
