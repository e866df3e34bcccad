"""Members of a struct that was copied whole, though nobody had written them: to use one is the error.

A struct is often copied whole before all its members are set, and CUDA has nothing against it. Reading a
member that nobody wrote is the mistake. If the copy itself were an error, sound programs would be refused,
and if the copy counted as written, the mistake would be lost in it. So a copied member takes along which of
its lanes have no value, and the error comes where one of them is used.

The knowledge rides on the array, as a subclass of NumPy's, so code that only passes values on needs no
change. A mask beside every value would have to be handed through every operator, and nearly all values have
no holes. Whatever computes with a value asks `require` first, and gets a plain array back. An operation
that skips this would hand the holes on to its result, and blame a line that is innocent.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.lockstep import Bits, Int64s, Mask, Team, by_lane, split
from simgpu.cuda_c.text.source import Position
from simgpu.errors import UninitialisedReadError


class Holed(np.ndarray):
    """A member's values, of which lanes are `missing`; `what` calls it by its name where that was seen."""

    missing: Bits | None = None
    what: str = ""

    def __array_finalize__(self, obj: Any) -> None:
        """Whatever NumPy makes of one lacks the same lanes."""
        self.missing, self.what = getattr(obj, "missing", None), getattr(obj, "what", "")


def holed(value: Any, missing: Bits, what: str) -> Any:
    """A value that some lanes do not have; a pointer becomes a `HoledPtr`."""
    if hasattr(value, "holed"):
        return value.holed(missing, what)
    out = by_lane(value, len(missing)).view(Holed)
    out.missing, out.what = missing, what
    return out


def missing_in(value: Any) -> Bits | None:
    """The lanes that do not have a value, if there may be any."""
    return getattr(value, "missing", None)


def plain(value: Any) -> Any:
    """A value without its holes."""
    return value.plain if hasattr(value, "plain") else np.asarray(value)


def require(team: Team, lanes: Bits, value: Any, at: Position) -> Any:
    """A member's value, for use by some lanes, all of which must have it."""
    missing = missing_in(value)
    if missing is None:
        return value
    if (lanes & missing).any():
        text = f"reads {value.what}"
        array = value.what.partition("'")[2].partition("'")[0]
        lane = int((lanes & missing).argmax())
        team.fault(UninitialisedReadError, at, lane, text, array=array)
    return plain(value)


def taken_holes(value: NDArray[Any], lanes: Int64s) -> NDArray[Any]:
    """For each lane the value of another, which may lack it."""
    out = value.take(lanes)
    if isinstance(out, Holed) and out.missing is not None:
        out.missing = out.missing.take(lanes)
    return out


def present(mask: Mask, value: Any) -> Mask | None:
    """Those lanes of `mask` that have a value."""
    missing = missing_in(value)
    return mask if missing is None else split(mask, ~missing)[0]


def merged_holes(mask: Mask, new: Any, old: Any, value: Any) -> Any:
    """Of `value`, which is `new` in the lanes of `mask` and else `old`, the lanes that do not have it."""
    both, what = np.zeros_like(mask.bits), ""
    for one, lanes in ((new, mask.bits), (old, ~mask.bits)):
        missing = missing_in(one)
        if missing is not None and (missing & lanes).any():
            both, what = both | (missing & lanes), one.what
    return holed(plain(value), both, what) if what else plain(value)
