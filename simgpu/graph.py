"""Calls that a simulated device makes again and again: one by one, or all at once as a graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Literal, TypeVar

from simgpu import pieces
from simgpu.common import PreparedCall
from simgpu.launches import KernelLaunch
from simgpu.machine import exclusive
from simgpu.order import BufferAccess, Clock
from simgpu.pieces import EnginePiece
from simgpu.stream import Event, Stream

if TYPE_CHECKING:
    from simgpu.device import Device

# On which stream, and what: a piece of work to enqueue, or the number of an event to record or to wait for.
Step = tuple[int, EnginePiece | tuple[Literal["record", "wait_event"], int]]
Work = Callable[[EnginePiece, Stream], None]
T = TypeVar("T")
_Ways = tuple[Work, Callable[[Stream], T], Callable[[Stream, T], None]]


class Replay:
    """Calls with all that they need but their streams."""

    def __init__(self, device: Device, calls: Sequence[PreparedCall]) -> None:
        self.device = device
        made = [_made(device, call) for call in calls]
        # To write a call down, Python builds and packs as for making it. Without this, work that runs only
        # once would seem to gain by a graph.
        device.call(f"prepare {len(made)} calls", math.fsum(us for us, _ in made))
        self.steps = [step for _, step in made]
        self.nodes = sum(map(_nodes, calls))

    def enqueue(self, streams: Sequence[object]) -> None:
        """Make all calls; each costs the host what a call with its arguments ready costs."""
        owned = [self.device.own(stream) for stream in streams]
        work: Work = lambda piece, on: on.device.enqueue(piece, on)  # noqa: E731 - of any rank
        _walk(self.steps, owned, (work, Stream.record, Stream.wait_event))

    def instantiate(self, name: str) -> Graph:
        """All of them as one."""
        return Graph(self, name)


class Graph:
    """Calls that cost the host one. Branches have streams of the graph's own."""

    def __init__(self, replay: Replay, name: str) -> None:
        self.name = name
        self.device = device = replay.device
        self.lock = device.lock
        self._last: Event | None = None  # behind its latest launch
        nodes = count()  # the graph and the number of the node are in the span of each piece
        self._steps: list[Step] = []
        for at, what in replay.steps:
            works = isinstance(what, EnginePiece)
            self._steps.append((at, _with(what, graph=name, node=next(nodes)) if works else what))
        last = max((at for at, _ in self._steps), default=0)
        self._branches = [device.create_stream(non_blocking=True) for _ in range(last)]
        working = {at for at, what in self._steps if isinstance(what, EnginePiece)}
        self._further = max(len(working) - 1, 0)
        device.call(f"instantiate {name}", replay.nodes * device.spec.graph_instantiate_us)

    @exclusive
    def launch(self, stream: object) -> None:
        """Enqueue all of them, behind what `stream` holds, and behind the launch before.

        (CUDA Runtime API, "cudaGraphLaunch": a graph runs once at a time.)
        """
        device, root, spec = self.device, self.device.own(stream), self.device.spec
        streams, rest = [root, *self._branches], self._further * spec.graph_branch_us
        device.machine.make_room()
        accesses = iter(self._note(streams))
        call = device.call(f"launch graph {self.name}", spec.graph_launch_us + rest, rest)
        handed_over: set[Stream] = set()

        def work(piece: EnginePiece, branch: Stream) -> None:
            if handed_over and branch not in handed_over:
                device.spend(spec.graph_branch_us)  # meanwhile the branches before are on their way
            handed_over.add(branch)
            branch.device.enqueue(piece, branch, (call, next(accesses)))

        if self._last is not None and not root.clock.follows(self._last.before):
            root.follow(self._last)
        _walk(self._steps, streams, (work, Stream.mark, Stream.follow))
        self._last = root.mark()

    def _note(self, streams: Sequence[Stream]) -> list[BufferAccess]:
        """Note what all pieces touch, as they will be ordered; nothing if one of them is refused."""
        clocks, group, accesses = _Clocks(), self.device.caller.group(), list[BufferAccess]()

        def work(piece: EnginePiece, on: Stream) -> None:
            access = on.access(piece.name, group, piece.tells, clocks[on])
            noted.touch(piece, pieces.on_host(piece), access, clocks[on])
            accesses.append(access)

        record: Callable[[Stream], Clock] = lambda on: clocks[on].copy()  # noqa: E731
        if self._last is not None:
            clocks[streams[0]].merge(self._last.before)
        with pieces.Noted(self.device.machine.host_history) as noted:
            _walk(self._steps, streams, (work, record, lambda on, event: clocks[on].merge(event)))
        return accesses


class _Clocks(dict[Stream, Clock]):
    """Copies of the clocks of streams, made when they are first asked for."""

    def __missing__(self, stream: Stream) -> Clock:
        self[stream] = clock = stream.ordered().copy()
        return clock


def _with(piece: EnginePiece, **detail: object) -> EnginePiece:
    others = [(stream, _with(part, **detail)) for stream, part in piece.others]
    return replace(piece, detail={**piece.detail, **detail}, others=others)


def _walk(steps: Sequence[Step], streams: Sequence[Stream], ways: _Ways[T]) -> None:
    """Take all steps, by these ways to enqueue work, to record an event and to wait for it."""
    work, record, follow = ways
    events: dict[int, tuple[T, Stream]] = {}
    for at, what in steps:
        stream = streams[at]
        if isinstance(what, EnginePiece):
            for other, part in what.others:
                follow(other, record(stream))
                work(part, other)
            work(what, stream)
            for other, _ in what.others:
                follow(stream, record(other))
        elif what[0] == "record":
            events[what[1]] = record(stream), stream
        else:
            event, home = events[what[1]]
            if home is not stream:  # a policy may choose one stream for two
                follow(stream, event)


def _made(device: Device, call: PreparedCall) -> tuple[float, Step]:
    """The us that it costs the host to write the call down, and the step that a replay takes."""
    spec = device.spec
    if call.verb in ("record", "wait_event"):
        return spec.call_event_us, (call.stream, (call.verb, call.args[0]))
    piece = _piece(device, call)
    fresh = [pieces.as_memory(memory) for memory in call.fresh]
    return piece.cost, (call.stream, replace(piece, cost=spec.replay_us, fresh=fresh))


def _nodes(call: PreparedCall) -> int:
    """The nodes that a call is in a graph, with those of all bodies that a decision chooses from."""
    if call.verb in ("record", "wait_event"):
        return 0
    bodies = call.args[2] if call.verb == "decide" else ()
    return 1 + sum(_nodes(part) for body in bodies for part in body)


def _piece(device: Device, call: PreparedCall) -> EnginePiece:
    spec, args = device.spec, call.args
    match call.verb:
        case "launch":
            function, *more = args
            piece = KernelLaunch.piece(device, device.own_function(function), *more)
        case "decide":
            what, memory, bodies = args
            parts = [[_piece(device, part) for part in body] for body in bodies]
            piece = pieces.decision(spec, what, memory, parts)
        case "collective":
            communicator, parts = args
            piece = communicator.together(parts, device)
        case "copy_from_host_async":
            piece = pieces.upload_piece(spec, *args, pinned=True)
        case "copy_to_host_async":
            piece = pieces.download(spec, *args)
        case "copy_from_device_async":
            piece = pieces.device_copy(spec, *args)
        case _:
            piece = pieces.memset(spec, *args)
    return _with(piece, named=call.named) if call.named else piece
