"""Addresses that are not computed again: what makes few threads fast, beside `summing_loops`.

Most addresses depend on variables in registers alone, and a loop over tiles computes the same ones in each
turn. So an address is kept with the values of these variables: as long as they are the same, so is it. And
with an address is kept what its memory finds out about it (`Ptr.found`): its bounds need to be checked once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np

from simgpu.cuda_c.compile import record
from simgpu.cuda_c.compile.variables import Variable
from simgpu.cuda_c.lockstep.masks import Mask
from simgpu.cuda_c.lockstep.team import Team
from simgpu.cuda_c.memory.pointers import Ptr
from simgpu.cuda_c.types import Scalar

Address: TypeAlias = Callable[[Team, Mask], Ptr]
_MOST = 64  # addresses of one place in the code
_MOST_OF_TURNS = 8  # that have a row for each of several turns

# What depends on its parts and on nothing else. Exactly these classes, and not those derived from them.
_PURE = {record.Constant, record.Coordinate, record.Convert, record.Element, record.Operation}


def variables_of(node: record.Node) -> set[Variable] | None:
    """What a value depends on, if that is nothing but variables in registers; otherwise None."""
    found: set[Variable] = set()
    for part in _parts(node):
        if isinstance(part, record.Read):
            kind = part.variable.type
            if isinstance(kind, Scalar) and kind.is_float:
                return None  # since -0.0 == 0.0, and 1 / x tells them apart
        if isinstance(part, record.Address) or (isinstance(part, record.Read) and part.whole):
            found.add(part.variable)
        elif type(part) not in _PURE:
            return None
    return found


def _parts(node: record.Node) -> Iterator[record.Node]:
    yield node
    for part in node.parts:
        yield from _parts(part)


def same(values: tuple[Any, ...], last: tuple[Any, ...]) -> bool:
    """Whether values are the same: numbers that are equal, or arrays that are one object.

    Tuples ask first whether two elements are one object, and only then whether they are equal.
    """
    try:
        return values == last
    except ValueError:  # since there is no one answer for two arrays
        return False


def recall(t: Team, place: object, m: Mask, values: tuple[Any, ...]) -> Any:
    """What a place in the code has computed for a mask and such values of variables, if it is remembered."""
    last = t.kept.get(place)
    if last is None:
        return None
    if last[1] is m and same(values, last[0]):
        return last[2]
    known = last[3].get(_key(values))
    if known is None or known[1] is not m:
        return None
    t.kept[place] = *known, last[3]
    return known[2]


def remember(t: Team, place: object, m: Mask, values: tuple[Any, ...], out: Any) -> bool:
    """Remember what a place in the code has computed, and whether that is done.

    What it has computed for several turns takes much room, and is remembered when it comes again.
    """
    key = _key(values)
    last = t.kept.get(place)
    if last is None:
        empty: dict[Any, Any] = {}
        last = t.kept[place] = None, None, None, empty
    table: dict[Any, Any] = last[3]
    if t.turns and key not in table:
        if len(table) >= _MOST_OF_TURNS:
            table.clear()
        table[key] = None
        return False
    if len(table) >= _MOST:
        table.clear()
    # The values are in it to keep them alive, so that their ids stay theirs.
    known = table[key] = values, m, out
    t.kept[place] = *known, table
    return True


def _key(values: tuple[Any, ...]) -> tuple[Any, ...]:
    # Arrays are never changed in place, so the same object is the same value.
    return tuple([v if isinstance(v, np.generic) else id(v) for v in values])


def kept(run: Address, node: record.Node) -> Address:
    """An address that is looked up where few threads run, if it depends on registers alone."""
    variables = variables_of(node)
    if not variables or any(v.thread for v in variables):  # Each turn makes its own variables anew.
        return run
    slots = sorted({v.slot for v in variables})
    unset = [v.slot for v in variables if v.unset]
    pick = itemgetter(*slots, slots[0])  # the first one twice, to get a tuple of one as well

    def look(t: Team, m: Mask) -> Ptr:
        if not t.few or (unset and any(t.defined[slot] is not True for slot in unset)):
            return run(t, m)
        values = pick(t.slots)
        out: Ptr | None = recall(t, look, m, values)
        if out is None:
            out = run(t, m)
            if remember(t, look, m, values, out):
                out.keep()
        return out

    return look
