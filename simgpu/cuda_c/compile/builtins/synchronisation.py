"""Barriers and fences."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.compile.builtins.common import BuiltinHandler, arguments, fenced, need_count
from simgpu.cuda_c.compile.builtins.warps import meeting
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.conversions import convert, typed_value
from simgpu.cuda_c.compile.form import Fence
from simgpu.cuda_c.compile.typed import Expr
from simgpu.cuda_c.lockstep import WARP, Mask, Team, varies
from simgpu.cuda_c.lockstep.waiting_threads import Apart
from simgpu.cuda_c.syntax.ast import CallExpr
from simgpu.cuda_c.text.source import Position
from simgpu.cuda_c.types import BOOL, INT, VOID
from simgpu.errors import BarrierError


def barrier(t: Team, m: Mask, at: Position, waits: bool = False, alone: bool = False) -> None:
    """Let blocks pass a barrier; `Apart` or `BarrierError` if a thread may come later, or never will."""
    layout = t.layout
    gone = 0 if t.exited is None else t.exited.n
    if m.n + gone == layout.lanes:
        t.meter.barriers += layout.blocks
        t.block_time = t.clock
        _met(t, m.index)
        for region in t.shared.values():
            region.synchronised()
        return
    if waits and t.waiters.met[m.index].any():
        _pass(t, m)
        return
    arrived = np.bincount(layout.block[m.index], minlength=layout.blocks)
    live = np.full(layout.blocks, layout.threads)
    if t.exited is not None:
        live -= np.bincount(layout.block[t.exited.index], minlength=layout.blocks)
    short = (arrived > 0) & (arrived < live)
    if short.any():
        if waits and not t.forced:
            raise Apart(m.bits & short[layout.block], by="block", alone=alone)
        _report(t, m, at, int(short.argmax()), arrived, live)
    t.meter.barriers += int(np.count_nonzero(arrived))
    t.block_time = _now(t, t.block_time, m.index)
    _met(t, m.index)


def _now(t: Team, times: Any, lanes: NDArray[Any]) -> NDArray[np.int64]:
    """The times at which lanes last met, where these do so now."""
    out = np.array(np.broadcast_to(np.asarray(times), (t.layout.lanes,)))
    out[lanes] = t.clock
    return out


def _met(t: Team, lanes: NDArray[np.int64]) -> None:
    """Tell whoever keeps account that these threads have met, each block's with each other."""
    t.meter.meet(t.layout, lanes)
    if t.lanes is not None:
        t.launch.messages.barrier(t, lanes)
    if t.launch.hostile is not None:
        t.launch.hostile.meet(t.thread_id[lanes], whole=True)


def _pass(t: Team, m: Mask) -> None:
    """Let threads go on whose block has come to several barriers: the hardware counts warps (PTX, "bar")."""
    waiters, block = t.waiters, t.layout.block
    if not waiters.passed[m.index].any():
        blocks = np.unique(block[m.index])
        together = waiters.met & np.isin(block, blocks)
        t.block_time = _now(t, t.block_time, together)
        t.meter.barriers += len(blocks)
        _met(t, np.flatnonzero(together))
        waiters.passed |= together
    waiters.met[m.index] = waiters.passed[m.index] = False


def _report(t: Team, m: Mask, at: Position, block: int, arrived: Any, live: Any) -> None:
    layout = t.layout
    here = layout.block == block
    missing = here & ~m.bits
    if t.exited is not None:
        missing &= ~t.exited.bits
    lane = int(missing.argmax())
    came = t.launch.thread_name(int(layout.linear[int((here & m.bits).argmax())]))
    text = (
        f"does not reach this barrier, and thread {came} waits at it: {int(arrived[block])} of the "
        f"block's {int(live[block])} threads arrive. On a GPU the block hangs, or goes on without it: "
        "move the barrier out of the branch, or let all threads leave together"
    )
    t.fault(BarrierError, at, lane, text)


def _syncthreads(c: Context, node: CallExpr, used: bool) -> Expr:
    need_count(c, node, 0)
    c.work()
    at, meet = node.at, c.meet("block", node.at)
    return typed_value(c, VOID, lambda t, m: barrier(t, m, at, meet.waits), at)


def _counting(finish: Callable[[Any, Any], Any]) -> BuiltinHandler:
    """The barriers that also gather a condition from every thread of the block."""

    def handle(c: Context, node: CallExpr, used: bool) -> Expr:
        (x,) = arguments(c, node, 1)
        test = convert(c, x, BOOL, x.at).run
        c.work(2)
        at, meet = node.at, c.meet("block", node.at)

        def evaluate(t: Team, m: Mask) -> Any:
            bits = m.bits & t.array(test(t, m))
            barrier(t, m, at, meet.waits, alone=True)
            layout = t.layout
            yes = np.bincount(layout.block[bits], minlength=layout.blocks)
            came = np.bincount(layout.block[m.index], minlength=layout.blocks)
            return finish(yes, came).astype(np.int32)[layout.block]

        return typed_value(c, INT, evaluate, at, [x])

    return handle


def _met_some(t: Team, m: Mask, names: NDArray[np.uint32]) -> None:
    """Lanes that a mask names have met, and not all of their warp: note when each last met which others."""
    lanes, count = m.index, t.layout.lanes
    if t.met is None:
        t.met = np.zeros((count, WARP), np.int64), np.zeros(count, np.uint32)
    times, last = t.met
    peers = (names[:, None] >> np.arange(WARP, dtype=np.uint32) & np.uint32(1)).astype(bool)
    known = times[lanes]
    if (last[lanes] != names).any():  # what others of these have learnt since
        for k in range(WARP):
            theirs = times[np.minimum(lanes - t.layout.lane[lanes] + k, count - 1)]
            known = np.where(peers[:, k : k + 1], np.maximum(known, theirs), known)
    times[lanes], last[lanes] = np.where(peers, t.clock, known), names


def _syncwarp(c: Context, node: CallExpr, used: bool) -> Expr:
    args = arguments(c, node, 0, 1)
    c.work()
    meet = meeting(c, node, args[0] if args else None, lambda t, m: np.int32(0))

    def evaluate(t: Team, m: Mask) -> None:
        given, m, _, new = meet(t, m)
        if not new:
            return
        if t.lanes is not None:
            t.launch.messages.barrier(t, m.index, warps=True)
        if t.launch.hostile is not None:
            for warp in np.unique(t.layout.warp[m.index]):
                t.launch.hostile.meet(t.thread_id[m.bits & (t.layout.warp == warp)])
        if varies(given) and (given[m.index] == 0xFFFFFFFF).all():
            given = np.uint32(0xFFFFFFFF)
        if varies(given) or int(given) != 0xFFFFFFFF:
            _met_some(t, m, t.array(given)[m.index])
            return
        t.warp_time = t.clock if m.full else _now(t, t.warp_time, m.index)

    return typed_value(c, VOID, evaluate, node.at, args)


def _ways(node: CallExpr) -> list[tuple[bool, bool]]:
    """Tell whether a fence acquires, and whether it releases. One of order acq_rel does it one by one."""
    ways = [(True, False)] * ("acq" in node.name) + [(False, True)] * ("rel" in node.name)
    return ways or [(True, True)]


def _fence(c: Context, node: CallExpr, used: bool) -> Expr:
    need_count(c, node, 0)
    c.work()
    c.aims.fences = True

    scope, ways = 1 if node.name.endswith("_block") else 2, _ways(node)
    wide = "system" if node.name.endswith("_system") else "device"
    far, read = scope == 2, "acquired" in node.name
    c.steps.append(Fence(scope=wide if far else "block", acquired=far and read))

    def evaluate(t: Team, m: Mask) -> None:
        for acquires, releases in ways:
            t.launch.messages.fence(t, m.index, scope, acquires, releases)
            if t.launch.hostile is not None:
                t.launch.hostile.fence(t.thread_id[m.index], scope, acquires, releases)

    return typed_value(c, VOID, evaluate, node.at)


def _system_fence(c: Context, node: CallExpr, used: bool) -> Expr:
    """The host sees what was written before."""
    fence, (acquires, releases) = _fence(c, node, used).run, np.any(_ways(node), axis=0)

    def evaluate(t: Team, m: Mask) -> None:
        fence(t, m)
        for region in t.launch.talk:  # whoever meets this thread at a barrier has fenced, too
            region.fenced(t, np.isin(t.layout.block, t.layout.block[m.index]), acquires, releases)

    return typed_value(c, VOID, evaluate, node.at)


def _grid_sync(c: Context, node: CallExpr, used: bool) -> Expr:
    """The barrier of all blocks; only where it is a statement of its own can threads wait at it."""
    need_count(c, node, 0)
    c.work(8)
    c.meet("grid", node.at)

    def evaluate(t: Team, m: Mask) -> None:
        if not t.grid_met:
            raise Apart(m.bits, by="grid")
        t.grid_met = False

    return typed_value(c, VOID, evaluate, node.at)


SYNC_FUNCTIONS: dict[str, BuiltinHandler] = {
    "__syncthreads": fenced(_syncthreads),
    "__syncthreads_count": fenced(_counting(lambda yes, came: yes)),
    "__syncthreads_and": fenced(_counting(lambda yes, came: yes == came)),
    "__syncthreads_or": fenced(_counting(lambda yes, came: yes > 0)),
    "__syncwarp": fenced(_syncwarp),
    "__grid_sync": fenced(_grid_sync),
    "__threadfence": fenced(_fence),
    "__threadfence_system": fenced(_system_fence),
    "__threadfence_block": fenced(_fence),
}
# What the header cuda/atomic makes its fences of, by order and scope.
for _order in ("acquire", "acquired", "release", "acq_rel", "seq_cst"):
    for _scope, _does in (("block", _fence), ("device", _fence), ("system", _system_fence)):
        SYNC_FUNCTIONS[f"__fence_{_order}_{_scope}"] = fenced(_does)
