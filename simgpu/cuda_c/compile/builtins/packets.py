"""Packets: pieces of mapped memory that kernel and host hand to each other, and who has one when."""

from __future__ import annotations

import numpy as np

from simgpu.cuda_c.compile.builtins.common import Handler, arguments
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.conversions import value
from simgpu.cuda_c.compile.typed import Expr
from simgpu.cuda_c.lockstep.masks import Mask
from simgpu.cuda_c.lockstep.meter import Site
from simgpu.cuda_c.lockstep.team import Team
from simgpu.cuda_c.memory.global_region import GlobalRegion
from simgpu.cuda_c.memory.races import Access
from simgpu.cuda_c.syntax.ast import Call
from simgpu.cuda_c.types import ULLONG, VOID
from simgpu.errors import RaceError

_TAKE, _USE, _BACK = 0, 2, 3
_DOES = ("takes", "asks by", "reads the answer of", "gives back")
_SPARE = 2  # words from the state of a packet to one that nobody uses


def _packet(c: Context, node: Call, used: bool) -> Expr:
    """`__simgpu_packet(state, asked, step)`: a step of a packet that is the host's while its state is `asked`.

    It costs nothing and changes nothing, and a step out of turn is an error. To the race detector, whoever
    reads an answer reads a spare word, and whoever takes a packet, asks or gives it back writes there.
    """
    word, asked, step = arguments(c, node, 3)
    host, number = int(asked.constant), int(step.constant)
    does, at = _DOES[number], c.frame.called or node.at
    site = Site(-1, at, write=number != _USE)

    def run(t: Team, m: Mask) -> None:
        state = word.run(t, m)
        region = state.region
        if not isinstance(region, GlobalRegion):
            return
        shift, part = region.locate(t, m, state, ULLONG, site)
        index = np.broadcast_to(np.asarray(part, np.int64) + shift, (m.n,))
        busy = region.flat(ULLONG)[index] == host
        for lane, packet, away in zip(m.index.tolist(), index.tolist(), busy, strict=True):
            line = region.given_back.pop(packet, 0)
            if number != _TAKE and (away or line):
                why = "the host has, and has not answered yet: wait for its answer first"
                if line:
                    why = f"was given back in line {line}, so that another thread may have it by now"
                t.fault(RaceError, at, lane, f"{does} a packet that {why}", array=state.name)
            if number == _BACK:
                region.given_back[packet] = at.line
        t.clock += 1
        access = Access(region, state.name, t, m, _SPARE, index, ULLONG.size, site)
        if number == _USE:
            region.note_read(access, index)
        else:
            region.note_write(access, index, None)

    return value(c, VOID, run, node.at)


TABLE: dict[str, Handler] = {"__simgpu_packet": _packet}
