"""Packets of `hostcall.cuh`, which kernel and host hand to each other: a step out of turn is an error."""

from simgpu.cuda_c.compile import builtins
from simgpu.cuda_c.compile.builtins.common import arguments
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.conversions import typed_value
from simgpu.cuda_c.compile.typed import Expr
from simgpu.cuda_c.lockstep import Mask, Site, Team
from simgpu.cuda_c.memory.global_region import GlobalRegion
from simgpu.cuda_c.memory.pointers import MaskedAccess
from simgpu.cuda_c.syntax.ast import CallExpr
from simgpu.cuda_c.types import ULLONG, VOID
from simgpu.errors import OutOfBoundsError, RaceError

_AWAY = "the host has, and has not answered yet: wait for its answer first"
_AWAY_FROM_GIVER = f"{_AWAY}, or, if nobody will, leave it (`hostcall_leave`)"
_NONE = "packet -1, which is none: none was free, or the call has none yet, or not any more"
_GIVEN = "was given back before, and may be somebody else's by now: give it back last, and once"
_DOES = ("takes", "asks by", "reads the answer of", "gives back", "leaves")
_TAKE, _USE, _BACK, _LEAVE = 0, 2, 3, 4
_SPARE, _OWNED = 2, 3  # words from a packet's state to those that nobody uses
_FREE = 6  # in the second of them, while nobody has the packet; a byte that is no state


def _packet(c: Context, node: CallExpr, used: bool) -> Expr:
    """`__simgpu_packet(state, asked, step)`: a step of a packet, the host's while its state is `asked`.

    To the race detector, whoever reads an answer reads a spare word, and the other steps write to it.
    """
    word, asked, step = arguments(c, node, 3)
    host, number = int(asked.constant), int(step.constant)
    does, at = _DOES[number], c.frame.called or node.at
    site = Site(-1, at, write=number != _USE)

    def evaluate(t: Team, m: Mask) -> None:
        region = (state := word.run(t, m)).region
        if not isinstance(region, GlobalRegion):
            return
        access = MaskedAccess(t, m, state, ULLONG, site, 0)
        try:
            region.locate(access)
        except OutOfBoundsError:
            t.fault(OutOfBoundsError, at, int(m.index[0]), f"{does} {_NONE}", array=state.name)
        index, words = access.index, region.flat(ULLONG)
        away = (words[index] == host) & (number not in (_TAKE, _LEAVE))
        free = (words[index + _OWNED] == _FREE) & (number != _TAKE)
        cure = _AWAY_FROM_GIVER if number == _BACK else _AWAY
        for wrong, why in (away, cure), (free, _GIVEN):
            if wrong.any():
                text = f"{does} a packet that {why}"
                t.fault(RaceError, at, int(m.index[wrong.argmax()]), text, array=state.name)
        words[index + _OWNED] = _FREE if number >= _BACK else 0
        t.clock += 1
        access.shift, access.part = _SPARE, index
        if number == _USE:
            region.note_read(access, index)
        else:
            region.note_write(access, index, None, False)

    return typed_value(c, VOID, evaluate, node.at)


builtins.add("__simgpu_packet", _packet)
