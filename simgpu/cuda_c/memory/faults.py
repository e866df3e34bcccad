"""Addresses that no kernel may use: each function raises for the first lane that has one, or does nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from simgpu.cuda_c.lockstep.masks import Mask
from simgpu.cuda_c.lockstep.meter import Site
from simgpu.cuda_c.lockstep.team import Team
from simgpu.cuda_c.memory.names import Named
from simgpu.cuda_c.memory.pointers import Ptr
from simgpu.cuda_c.text.source import Position
from simgpu.errors import KernelFault, MisalignedError, OutOfBoundsError


def report_bounds(region: Named, team: Team, mask: Mask, ptr: Ptr, size: int, site: Site) -> None:
    """The address is not within the region."""
    nbytes = region.nbytes
    where = np.broadcast_to(np.asarray(mask.take(ptr.address())), (mask.n,))
    bad = np.flatnonzero((where < 0) | (where + size > nbytes))
    if not len(bad):
        return
    lane = int(mask.index[bad[0]])
    index = int(where[bad[0]]) // size
    bound = nbytes // size
    more = f" (and so do {len(bad) - 1} more threads)" if len(bad) > 1 else ""
    verb = "writes" if site.write else "reads"
    text = (
        f"{verb} {region.spelled(ptr.name, int(where[bad[0]]), size)}, which is out of bounds: "
        f"{region.extent(ptr.name, size)}{more}"
    )
    team.fault(OutOfBoundsError, site.at, lane, text, array=ptr.name, index=index, bound=bound)


def report_row(
    team: Team, mask: Mask, row: Ptr, index: Any, length: int, step: int, at: Position
) -> None:
    """The index is none of its row of an array."""
    if team.turns:  # of which it is not known which one fails first
        team.fault(KernelFault, at, None, "leaves a row in one of several turns")
    part = np.broadcast_to(np.asarray(mask.take(index)), (mask.n,))
    k = int(((part < 0) | (part >= length)).argmax())
    number = int(part[k])
    byte = int(np.broadcast_to(np.asarray(mask.take(row.address())), (mask.n,))[k])
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
    where = np.broadcast_to(np.asarray(where), (mask.n,))
    wrong = np.flatnonzero(where % align)
    if not len(wrong):
        return
    byte = int(where[wrong[0]])
    verb = "writes" if site.write else "reads"
    lane, wanted = int(mask.index[wrong[0]]), f"its address must be a multiple of {align}"
    text = f"{verb} a {what} at byte {byte} of '{ptr.name}': {wanted}"
    team.fault(MisalignedError, site.at, lane, text, array=ptr.name, index=byte)
