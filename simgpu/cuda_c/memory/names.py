"""Names of elements for messages, as in the source: `tile[1][7]` or `p[16].w`; and addresses that none has.

Each function raises for the first lane that has such an address, or does nothing.
"""

from typing import Any

import numpy as np

from simgpu.cuda_c.lockstep import Mask, Site, Team, by_lane
from simgpu.cuda_c.memory.pointers import MaskedAccess, Ptr
from simgpu.cuda_c.text.source import Position
from simgpu.cuda_c.types import ArrayType, CType, Pointer, Scalar, Struct, size_of
from simgpu.errors import KernelFault, MisalignedError, OutOfBoundsError


class Named:
    """A memory that knows how its variables were declared."""

    nbytes: int  # that a pointer may reach; of one block, if shared
    # The type of the variable or parameter of each name by which it is known.
    types: dict[str, CType]

    def _type(self, name: str) -> CType | None:
        """The type of what a name stands for; a pointer stands for an array of its targets."""
        ctype = self.types.get(name)
        return ArrayType(ctype.target, 0) if isinstance(ctype, Pointer) else ctype

    def spelled(self, name: str, byte: int, size: int) -> str:
        """An element of `size` bytes; by its number alone if the type has no such element there."""
        text, ctype, at = self._follow(name, byte, 0)
        if isinstance(ctype, Scalar | Pointer) and size_of(ctype) == size and not at:
            return text
        return f"'{name}'[{byte // size}]"

    def row(self, name: str, byte: int, nbytes: int) -> str:
        """An array of `nbytes` within a variable; nothing if there is none."""
        text, ctype, at = self._follow(name, byte, nbytes)
        return "" if isinstance(ctype, Scalar) or at else text

    def _follow(self, name: str, byte: int, least: int) -> tuple[str, CType | None, int]:
        """Find the outermost part at a byte that is not larger than `least`, and the bytes before it."""
        ctype, at, text = self._type(name), byte, f"'{name}'"
        while isinstance(ctype, ArrayType | Struct):
            if least and isinstance(ctype, ArrayType) and size_of(ctype) == least:
                break
            if isinstance(ctype, Struct):
                field = [f for f in ctype.fields if f.offset <= at][-1]
                ctype, at, text = field.type, at - field.offset, f"{text}.{field.name}"
            else:
                number, at = divmod(at, max(1, size_of(ctype.element)))
                ctype, text = ctype.element, f"{text}[{number}]"
        return text, ctype, at

    def extent(self, name: str, size: int) -> str:
        """How far it goes: `it has 8 elements, valid are 0 to 7`."""
        ctype = self._type(name)
        if isinstance(ctype, ArrayType) and isinstance(ctype.element, ArrayType):
            dims = ""
            while isinstance(ctype, ArrayType):
                dims, ctype = f"{dims}[{ctype.length or ''}]", ctype.element
            return f"it is declared {dims}"
        if isinstance(ctype, ArrayType) and isinstance(ctype.element, Struct):
            size = ctype.element.size
        bound = self.nbytes // size
        valid = f"valid are 0 to {bound - 1}" if bound > 0 else "it is empty"
        if not bound and self.nbytes:
            return f"it has {self.nbytes} bytes"
        return f"it has {bound} element{'s' if bound != 1 else ''}, {valid}"


def report_bounds(region: Named, a: MaskedAccess) -> None:
    """The address is not within the region."""
    nbytes, mask, ptr, size = region.nbytes, a.mask, a.ptr, a.size
    where = by_lane(mask.take(ptr.address()), mask.n)
    bad = np.flatnonzero((where < 0) | (where + size > nbytes))
    if not len(bad):
        return
    lane = int(mask.index[bad[0]])
    index, bound = int(where[bad[0]]) // size, nbytes // size
    others = "does 1 more thread" if len(bad) == 2 else f"do {len(bad) - 1} more threads"
    also = f" (and so {others})" if len(bad) > 1 else ""
    verb = "writes" if a.site.write else "reads"
    text = (
        f"{verb} {region.spelled(ptr.name, int(where[bad[0]]), size)}, which is out of bounds: "
        f"{region.extent(ptr.name, size)}{also}"
    )
    more = {"array": ptr.name, "index": index, "bound": bound}
    a.team.fault(OutOfBoundsError, a.site.at, lane, text, **more)


def report_row(
    team: Team, mask: Mask, row: Ptr, index: Any, length: int, step: int, at: Position
) -> None:
    """The index is none of its row of an array."""
    if team.turns:  # of which it is not known which one fails first
        team.fault(KernelFault, at, None, "leaves a row in one of several turns")
    part = by_lane(mask.take(index), mask.n)
    k = int(((part < 0) | (part >= length)).argmax())
    number = int(part[k])
    byte = int(by_lane(mask.take(row.address()), mask.n)[k])
    known = row.region.row(row.name, byte, length * step) if isinstance(row.region, Named) else ""
    text = (
        f"uses {known or repr(row.name)}[{number}], which leaves its row: that has {length} elements, "
        f"valid are 0 to {length - 1}"
    )
    more = {"array": row.name, "index": number, "bound": length}
    team.fault(OutOfBoundsError, at, int(mask.index[k]), text, **more)


def report_misaligned(
    team: Team, mask: Mask, ptr: Ptr, where: Any, align: int, what: str, site: Site
) -> None:
    """The address `where` of a thing of type `what` is no multiple of `align`."""
    where = by_lane(where, mask.n)
    wrong = np.flatnonzero(where % align)
    if not len(wrong):
        return
    byte = int(where[wrong[0]])
    verb = "writes" if site.write else "reads"
    lane, wanted = int(mask.index[wrong[0]]), f"its address must be a multiple of {align}"
    text = f"{verb} a {what} at byte {byte} of '{ptr.name}': {wanted}"
    team.fault(MisalignedError, site.at, lane, text, array=ptr.name, index=byte)
