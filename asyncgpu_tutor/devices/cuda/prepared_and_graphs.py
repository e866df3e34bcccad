"""Calls into CUDA that are made again and again: one by one, or all at once as a graph.

A capture leaves a list of calls without streams, since a policy may choose others for each run. To
translate each call anew would cost what preparing was meant to save. So arguments are packed once, and for
each combination of streams that comes up, the calls are bound to them and kept: a list of functions of
CUDA's, each with its arguments, which a run only has to go through. A program that makes a stream for each
run would fill memory with such lists, so there is a bound.

A graph is made from the very same list, on streams that nobody else uses, while CUDA captures them.
Building it node by node would be a second translation of every verb, and the two could differ. This way a
graph does what the prepared pipeline does.

Each event in the list is used again in every run. That is right only because runs of one replay follow each
other. CUDA copies the arguments of a graph's kernels but not what they point at, so a graph keeps the
replay, and that keeps the memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

import cupy
from cupy.cuda import runtime

from asyncgpu_tutor.devices.cuda.deciding import Decision
from asyncgpu_tutor.devices.cuda.graph_nodes import Outline, call_facts
from asyncgpu_tutor.devices.cuda.guard import CUDA_ERRORS, from_cuda_error, guarded
from asyncgpu_tutor.devices.cuda.journal import Journal
from asyncgpu_tutor.devices.cuda.packing import Bound, Room, transfer
from asyncgpu_tutor.devices.cuda.stream import CupyEvent, CupyStream
from asyncgpu_tutor.devices.protocol import RecordedCall, Stream

if TYPE_CHECKING:
    from asyncgpu_tutor.devices.cuda.device import CupyDevice

MOST_BOUND = 64  # combinations of streams


class CupyReplay:
    """Calls with all that they need but their streams."""

    def __init__(self, device: CupyDevice, calls: Sequence[RecordedCall]) -> None:
        self._device = device
        self._calls = tuple(calls)  # they keep memory, host arrays and functions alive
        self._facts = [call_facts(call) for call in calls]
        self._packed: dict[RecordedCall, Room] = {}  # arguments of launches
        self._events: dict[int, CupyEvent] = {}
        # A policy may choose one stream for two: then nothing has to be waited for.
        self._recorded_on = {c.args[0]: c.stream for c in calls if c.verb == "record"}
        with guarded("preparing calls"), device.active():
            for call in calls:
                self._pack(call)
        self._bound: dict[tuple[int, ...], list[Bound]] = {}

    def _pack(self, call: RecordedCall) -> None:
        if call.verb == "launch":
            self._packed[call] = call.args[0].packer.pack(call.args[3])
        elif call.verb == "record":
            self._events[call.args[0]] = CupyEvent(self._device.default_stream)
        elif call.verb == "decide":
            for part in chain(*call.args[2]):
                self._pack(part)

    def enqueue(self, streams: Sequence[Stream]) -> None:
        device = self._device
        pointers = tuple([stream.ptr for stream in cast("Sequence[CupyStream]", streams)])
        bound = self._bound.get(pointers)
        if bound is None:
            for stream in streams:
                device.own(stream)
            if len(self._bound) >= MOST_BOUND:  # a program that makes a stream for each run
                self._bound.clear()
            bound = self._bound[pointers] = self.bind(pointers)
        journal = device.journal  # read once, as another thread may end the recording
        try:
            if journal is None:
                _make_all(bound)
            else:
                self._recorded(cast("Sequence[CupyStream]", streams), bound, journal)
        except CUDA_ERRORS as error:
            raise from_cuda_error(error, "a prepared pipeline") from error

    def bind(self, streams: Sequence[int]) -> list[Bound]:
        """The calls on these streams, each a function of CuPy's with its arguments."""
        return [self._bind(call, streams[call.stream]) for _, call in self._on(streams)]

    def _on(self, streams: Sequence[int]) -> Iterator[tuple[int, RecordedCall]]:
        """The calls that there are on these streams, and their places among all."""
        for place, call in enumerate(self._calls):
            idle = (
                call.verb == "wait_event"
                and streams[call.stream] == streams[self._recorded_on[call.args[0]]]
            )
            if not idle:
                yield place, call

    def _recorded(
        self, streams: Sequence[CupyStream], bound: list[Bound], journal: Journal
    ) -> None:
        steps = self._on([stream.ptr for stream in streams])
        for (place, call), (function, args) in zip(steps, bound, strict=True):
            stream, facts = streams[call.stream], self._facts[place]
            if facts is not None:
                kind, name, detail = facts
                journal.call(kind, name, stream, detail, function, args)
            elif call.verb == "record":
                journal.record(self._events[call.args[0]], stream)
            else:
                journal.wait(stream, self._events[call.args[0]])

    def _bind(self, call: RecordedCall, stream: int) -> Bound:
        if call.verb == "record":
            return runtime.eventRecord, (self._events[call.args[0]].ptr, stream)
        if call.verb == "wait_event":
            return runtime.streamWaitEvent, (stream, self._events[call.args[0]].ptr)
        if call.verb == "launch":
            function, grid, block, _, shared = call.args
            packer, address = function.packer, self._packed[call][1]
            how = (*grid, *block, shared, stream)
            return packer.call, (function.pointer, *how, address, 0)
        if call.verb == "decide":
            what, number, parts = call.args
            sides = [cupy.cuda.Stream(non_blocking=True) for _ in parts]
            bodies = [
                (side, [self._bind(each, int(side.ptr)) for each in part])
                for side, part in zip(sides, parts, strict=True)
            ]
            return Decision(what, number.ptr, bodies), (stream,)
        if call.verb == "collective":
            communicator, parts = call.args
            return communicator.together, (parts, stream)
        function, args = transfer(call.verb, call.args)
        return function, (*args, stream)

    def instantiate(self, name: str) -> CupyGraph:
        """A CUDA graph, captured from a replay on streams that nobody else uses."""
        count = max((call.stream for call in self._calls), default=0) + 1
        # Branches have streams of their own, with numbers, as lanes for a recording.
        branches = [self._device.create_stream() for _ in range(count - 1)]
        with guarded(f"capturing {name}"), self._device.active():
            streams = [cupy.cuda.Stream(non_blocking=True), *(branch.cupy for branch in branches)]
            bound = self.bind([int(stream.ptr) for stream in streams])
            # Relaxed: what other threads do meanwhile, such as allocating, is no concern of this capture.
            streams[0].begin_capture(runtime.streamCaptureModeRelaxed)
            try:
                _make_all(bound)
            except BaseException:
                # That the capture is spoilt says less than what has spoilt it.
                with suppress(*CUDA_ERRORS):
                    streams[0].end_capture()
                raise
            graph = streams[0].end_capture()
        outline = Outline(name, self._calls, [branch.number for branch in branches])
        return CupyGraph(self._device, name, graph, outline, self)


class CupyGraph:
    """An instantiated CUDA graph."""

    def __init__(
        self, device: CupyDevice, name: str, graph: Any, outline: Outline, replay: CupyReplay
    ) -> None:
        self._device = device
        self._name = name
        self._graph = graph  # destroys it when this goes
        self._executable = graph.graphExec
        self._outline = outline
        self._keep = replay  # the graph has copies of the arguments, not of what they point at

    def launch(self, stream: Stream) -> None:
        mine, journal = cast("CupyStream", stream), self._device.journal
        try:
            if journal is None:
                runtime.graphLaunch(self._executable, mine.ptr)
            else:
                told = self._executable, mine.ptr
                journal.call(
                    "graph", self._name, mine, None, runtime.graphLaunch, told, self._outline
                )
        except CUDA_ERRORS as error:
            raise from_cuda_error(error, self._name) from error


def _make_all(bound: list[Bound]) -> None:
    for call, args in bound:
        call(*args)
