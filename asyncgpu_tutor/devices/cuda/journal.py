"""Notes of a recording: written down as fast as can be, and read when the recording is over.

To be recorded must not slow a program down, or the trace is one of the recording. To make spans at once,
with names and with what comes after what, would take longer than the calls that they tell of. So a call
appends one tuple here, and no more, and `Journal.read` works out the rest when the recording is over, in
the order in which things happened. Only ids are given out at once, because a recording inside of another
one has to know which spans are its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import cycle
from time import perf_counter
from typing import TYPE_CHECKING, Any

from cupy.cuda import runtime

from asyncgpu_tutor.devices.cuda.cupti import CuptiRecorder, CuptiRefusedError
from asyncgpu_tutor.devices.cuda.event_recorder import EventRecorder
from asyncgpu_tutor.devices.cuda.graph_nodes import Outline
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces.spans import SpanKind, SpanLog, call_name
from asyncgpu_tutor.traces.spans.tag import current_operation, current_tag

if TYPE_CHECKING:
    from asyncgpu_tutor.devices.cuda.stream import CupyEvent, CupyStream, Front

Detail = Mapping[str, object] | None  # what there is to say of a call
AnyRecorder = EventRecorder | CuptiRecorder


class Journal:
    """Of one recording of one device; the times of its work come from the recorder."""

    def __init__(self, recorder: AnyRecorder) -> None:
        self.recorder = recorder
        self._numbers = recorder.log.numbers
        # Ids of the spans to come, a method of this, and what to call it with. Ids are given out at once: by
        # them a recording inside of a recording knows which spans are its own.
        self._entries: list[tuple[Any, ...]] = []

    # ------------------------------------------------------------------ while it is recorded
    def call(
        self,
        kind: SpanKind,
        name: str,
        stream: CupyStream,
        detail: Detail,
        call: Callable[..., object],
        args: tuple[Any, ...],
        outline: Outline | None = None,
    ) -> None:
        """Make a call that enqueues; `outline` says what is in a graph."""
        recorder = self.recorder
        if outline is not None and isinstance(recorder, CuptiRecorder):
            recorder.mark_begin(stream.ptr)
        before = recorder.before(stream.cupy)
        start = perf_counter()
        try:
            call(*args)
            end = perf_counter()
            if isinstance(recorder, CuptiRecorder) and outline is not None and not outline.fixed:
                recorder.mark_end(stream.ptr)
        finally:
            after = recorder.after(stream.cupy)
        self.called(kind, name, stream, detail, before, after, start, end, outline)

    def called(
        self,
        kind: SpanKind,
        name: str,
        stream: CupyStream,
        detail: Detail,
        before: Any,
        after: Any,
        start: float,
        end: float,
        outline: Outline | None = None,
    ) -> None:
        """Note a call that was made, between what the recorder has said before and after it."""
        pieces = 1
        if outline is not None and self.recorder.sees_nodes and outline.fixed:
            pieces = outline.nodes
        ids = [next(self._numbers) for _ in range(1 + pieces)]
        what = kind, name, stream.number, detail, outline
        told = current_operation()
        self._entries.append((ids, self._called, what, told, before, after, start, end))

    def host(
        self,
        kind: SpanKind,
        name: str,
        start: float,
        behind: Front | CupyStream | None = None,
        detail: Detail = None,
    ) -> None:
        """Note a call or a wait of the host since `start`, in s of `perf_counter`."""
        told = current_operation()
        ids, end = [next(self._numbers)], perf_counter()
        self._entries.append((ids, self._hosted, kind, name, told, start, end, behind, detail))

    def record(self, event: CupyEvent, stream: CupyStream) -> None:
        """Record an event: it lies behind all that the stream holds."""
        start = perf_counter()
        runtime.eventRecord(event.ptr, stream.ptr)
        self._event_call("record", start, {"stream": stream.number})
        self._entries.append(((), self._recorded, event.front, stream.number))

    def wait(self, stream: CupyStream, event: CupyEvent) -> None:
        """Have what comes next on the stream wait for an event."""
        start = perf_counter()
        runtime.streamWaitEvent(stream.ptr, event.ptr)
        told = {"stream": stream.number, "event_of": event.stream.number}
        self._event_call("wait_event", start, told)
        if event.stream.device is stream.device:
            self._entries.append(((), self._waited, stream.number, event.front))

    def _event_call(self, name: str, start: float, detail: Mapping[str, object]) -> None:
        # Those of a submission are no calls that the program has made.
        if current_tag() is None:
            self.host("call", name, start, detail=detail)

    def own(self) -> AbstractContextManager[object]:
        """Around calls of ours that have no span."""
        return self.recorder.own() if isinstance(self.recorder, CuptiRecorder) else nullcontext()

    # ------------------------------------------------------------------ when it is over
    def read(self) -> None:
        """Make spans of all that has happened, and ask the recorder for their times."""
        entries, self._entries = self._entries, []
        for ids, method, *args in entries:
            self.recorder.log.numbers = iter(ids)
            method(*args)
        self.recorder.log.numbers = self._numbers
        self.recorder.settle()

    def _called(
        self,
        what: Any,
        told: tuple[int | None, str],
        before: Any,
        after: Any,
        start: float,
        end: float,
    ) -> None:
        kind, name, number, detail, outline = what
        recorder, log = self.recorder, self.recorder.log
        op, label = told
        host = log.draft("call", call_name(kind, name), None, op=op, label=label)
        recorder.add_host(host, start * 1e6, end * 1e6)
        if outline is not None and recorder.sees_nodes and outline.fixed:
            drafts = outline.draft(log, number, op, label, host.id)
        else:
            facts = detail or {} if outline is None else {"nodes": outline.nodes}
            drafts = [log.draft(kind, name, number, op=op, label=label, call=host.id, detail=facts)]
        recorder.add(drafts, before, after, start * 1e6)

    def _hosted(
        self,
        kind: SpanKind,
        name: str,
        told: tuple[int | None, str],
        start: float,
        end: float,
        behind: Front | CupyStream | None,
        detail: Detail,
    ) -> None:
        log = self.recorder.log
        op, label = told
        heads = () if behind is None else behind.heads_in(log)
        draft = log.draft(kind, name, None, op=op, label=label, waits_for=heads, detail=detail)
        self.recorder.add_host(draft, start * 1e6, end * 1e6)

    def _recorded(self, front: Front, number: int) -> None:
        front.heads = self.recorder.log.heads(number)

    def _waited(self, number: int, front: Front) -> None:
        self.recorder.log.wait(number, front.heads)


def call_together(
    spans: Sequence[tuple[Any, str, Mapping[str, object]]], call: Callable[[], object]
) -> None:
    """Make one call that enqueues a kernel on each of these streams, which may be of several devices.

    Each span is a stream, a name and details. CUPTI knows the work by the number of the call, which all have
    in common, and by its device.
    """
    journals: list[Journal] = [stream.device.journal for stream, _, _ in spans]
    first = journals[0].recorder
    # CUPTI knows the whole call, so one recorder of its kind answers for all.
    asked = [first] if isinstance(first, CuptiRecorder) else [j.recorder for j in journals]
    recorders = list(zip(asked, [stream.cupy for stream, _, _ in spans], strict=False))
    before = [recorder.before(stream) for recorder, stream in recorders]
    start = perf_counter()
    try:
        call()
    finally:
        end = perf_counter()
        after = [recorder.after(stream) for recorder, stream in recorders]
    told = zip(journals, spans, cycle(before), cycle(after), strict=False)
    for journal, (stream, name, detail), early, late in told:
        journal.called("kernel", name, stream, detail, early, late, start, end)


def open_recorder(log: SpanLog, ordinal: int, source: str) -> AnyRecorder:
    """A recorder that fills `log`, for a `source` as `record` takes it; `log.about` says why it is not CUPTI.

    Raises `UsageError` if CUPTI was asked for and cannot be used.
    """
    facts = runtime.getDeviceProperties(ordinal)
    slots = facts["multiProcessorCount"] * facts["maxThreadsPerMultiProcessor"]
    log.about["threads_at_once"] = int(slots)
    if source == "events":
        return EventRecorder(log)
    try:
        return CuptiRecorder(log, ordinal, everything=source == "all")
    except CuptiRefusedError as reason:
        if source in ("cupti", "all"):
            instead = (
                "source='auto' takes CUDA events then."
                if source == "cupti"
                else "CUDA events see what this package runs and nothing else. Without CUPTI, Nsight Systems "
                "records the whole program: asyncgpu-tutor profile -- python your_program.py"
            )
            raise UsageError(
                f"record(source={source!r}) is not possible, because {reason}. {instead}"
            ) from None
        recorder = EventRecorder(log)
        log.about["instead_of_cupti"] = f"CUDA events, because {reason}"
        return recorder
