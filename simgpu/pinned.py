"""Page-locked arrays of the host, which tell its machine when the program reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Look = Callable[[NDArray[Any]], None]


def _reading(name: str) -> Any:
    """A method of NumPy's arrays that reads all of them."""

    def read(self: Pinned, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.looked_at(), name)(*args, **kwargs)

    return read


class Pinned(np.ndarray[Any, Any]):
    """A NumPy array, or a view of one, of which each look is reported before it is made.

    NumPy lets us see arithmetic and reductions, single elements, and the methods below. Whatever goes by the
    address of the bytes (``np.asarray(x)``, a memoryview, another library) is not seen.
    """

    look: Look | None

    def __array_finalize__(self, obj: object) -> None:
        self.look = getattr(obj, "look", None)

    def looked_at(self) -> NDArray[Any]:
        """The same bytes as a plain array, once the look has been reported."""
        plain = self.view(np.ndarray)
        if self.look is not None:
            self.look(plain)
        return plain

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, out: Any = (), **kwargs: Any
    ) -> Any:
        plain = [x.looked_at() if isinstance(x, Pinned) else x for x in inputs]
        if out:
            kwargs["out"] = tuple(x.view(np.ndarray) if isinstance(x, Pinned) else x for x in out)
        result = getattr(ufunc, method)(*plain, **kwargs)
        return out[0] if len(out) == 1 else result  # so that += leaves it what it is

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        if self.look is not None and not isinstance(found, np.ndarray):
            one = index if isinstance(index, tuple) else (index,)
            self.look(self.view(np.ndarray)[(*one, ...)])
        return found

    __repr__, __str__, __reduce_ex__ = map(_reading, ("__repr__", "__str__", "__reduce_ex__"))
    __float__, __int__, __bool__ = map(_reading, ("__float__", "__int__", "__bool__"))
    tolist, tobytes, item, copy = map(_reading, ("tolist", "tobytes", "item", "copy"))
    astype, argmax, argmin, dot = map(_reading, ("astype", "argmax", "argmin", "dot"))
