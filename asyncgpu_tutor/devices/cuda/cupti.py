"""Times of device work from CUPTI, NVIDIA's profiling interface, in this process.

Where a pair of events also spans what the work waited for, CUPTI has the device's own start and end of each
kernel, copy and fill. It costs the program less than events do, and cannot be used while a profiler is
attached. Facts about it are from NVIDIA's documentation of CUPTI, "CUPTI Activity API", and were tried with
cupti-python 13.0.1 on an H200.

- **Which operation**: each call is made with an *external correlation id* of ours. CUPTI reports, for each
  call into CUDA, its own correlation id and ours; and each kernel with CUPTI's. Its records of calls have to
  be on for that, if only those of the few calls that enqueue. Where all work is recorded, whoever asked
  for it, the calls of other libraries that enqueue, wait, allocate or load have records too: the host's lane.
- **Its name**: the work of others has none of ours, but it may lie in an NVTX range of ours. So while all
  work is recorded we are the ranges' profiler, and number the calls in each by ids of another kind.
- **Graphs**: there is one record for each node, with the launch's correlation id, as long as nobody enables
  ``GRAPH_TRACE``, which makes one of the whole. For a node in a loop there is none, or its last turn's only.
- **Which contexts**: records of work are switched on for the context of each recorded device, and no other.
  Where there are several, CUPTI makes a mistake: if the last copy or fill was in another context than the
  graph that is launched now, a copy in this graph can write its times to an address of the other one. The
  driver reports an MMU fault of HUBCLIENT_FE, and the program ``cudaErrorLaunchFailure`` (libcupti 13.0.85,
  driver 580.159.04, two H200, 2026-11-28). So `mark_begin` makes a small fill in the graph's own context.
- **Which time**: `cupti.get_timestamp` reads the clock of the records between two readings of the host's. The
  narrowest of many such brackets, at the start and at the end, places one clock on the other; between
  them it is a straight line.
"""

from __future__ import annotations

import itertools
import os
import time
import warnings
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from cupy.cuda import driver, runtime

from asyncgpu_tutor.devices.cuda.cupti_records import (
    Anchor,
    ClockFit,
    CuptiActivity,
    CuptiApiRecord,
    activity_of,
    by_draft,
    called,
    drafts_of_others,
    late_by,
)
from asyncgpu_tutor.traces import nvtx
from asyncgpu_tutor.traces.spans import Draft, SpanKind, SpanLog
from asyncgpu_tutor.traces.spans.cuda_calls import ENQUEUE, TOLD
from asyncgpu_tutor.traces.spans.intervals import union, within

CLOCK = "CUPTI"
READINGS = 50  # of both clocks; one in a few is not interrupted
# By 0, CUPTI hands over buffers whose records are all complete. By 1 it hands over the others too, and what
# is incomplete then has no times and never gets them: so that comes last.
FLUSHES = (0, 0, 0, 0, 1)
PAUSE = 2e-4  # s, for CUPTI's own thread to complete its records
DRIVER = 13000  # what driverGetVersion returns from 580 on
BUFFER = 4 * 2**20  # bytes: some twenty thousand records
# What a profiler leaves in the environment, and in the process, of a program that it runs. CUPTI says no to a
# second client, but not to all of them.
SIGNS = ("NSYS_PROFILING_SESSION_ID", "CUDA_INJECTION64_PATH", "NV_COMPUTE_PROFILER_PERFWORKS_DIR")
LIBRARIES = ("ToolsInjection", "/nsight-compute/", "/nsight-systems/", "libcuda-injection")


class CuptiRefusedError(Exception):
    """CUPTI cannot be used; the text says why, to follow "because"."""


class _Session:
    """CUPTI's one subscription of this process, shared by the devices that are recorded."""

    def __init__(self) -> None:
        self.users = 0
        self.devices: set[int] = set()
        self.records: list[CuptiActivity] = []
        self.calls: list[CuptiApiRecord] = []
        self.ours: dict[int, int] = {}  # our id, by CUPTI's correlation id
        self.named: dict[int, str] = {}  # the range that a call was made in, by the same
        self.ranges: dict[int, str] = {}  # their names, by our id
        self.numbers = itertools.count(1)
        self._cupti: Any = None
        self._subscriber: Any = None
        self._registered = False
        self._on: list[Any] = []
        self._work: tuple[Any, ...] = ()  # kinds of records
        self._contexts: list[int] = []  # in which records of work are on
        # Names of the calls that are told of, by the kind of their records and CUPTI's number.
        self._names: dict[tuple[int, int], str] = {}

    def open(self, everything: bool) -> Any:
        """Switch the records of calls on, and return CUPTI's module."""
        if self.users == 0:
            self._start(everything)
        self.users += 1
        return self._cupti

    @property
    def several_contexts(self) -> bool:
        """True if work is recorded on more than one device."""
        return len(self._contexts) > 1

    def watch_context(self) -> None:
        """Switch the records of work on in the current device's context: see the top of this file."""
        context = driver.ctxGetCurrent()
        if context not in self._contexts:
            self._contexts.append(context)
            for kind in self._work:
                self._cupti.activity_enable_context(context, kind)

    def close(self) -> None:
        """Switch them off when nobody needs them any more."""
        self.users -= 1
        if self.users == 0:
            self.devices.clear()
            self._stop()

    def _start(self, everything: bool) -> None:
        sign = profiler_attached()
        if sign:
            raise CuptiRefusedError(f"another profiler is attached to this process ({sign})")
        try:
            from cupti import cupti
        except ImportError as error:
            advice = _too_old() or "install it with: python -m pip install 'cupti-python==13.*'"
            raise CuptiRefusedError(
                f"cupti-python cannot be imported ({error}); {advice}"
            ) from None
        self._cupti = cupti
        try:
            # It also keeps others out, who would take the records away.
            self._subscriber = cupti.subscribe(_ignore, None)
        except Exception as error:  # noqa: BLE001 - its errors have no common type across versions
            reason = _too_old() or f"CUPTI has another client already, or refuses: {error}"
            raise CuptiRefusedError(reason) from None
        try:
            if not self._registered:
                cupti.activity_register_callbacks(_buffer, self._take)
                self._registered = True
            self._switch_on(everything)
        except Exception as error:  # noqa: BLE001 - as above
            self._stop()
            raise CuptiRefusedError(_too_old() or f"CUPTI refuses: {error}") from None
        self.records.clear()
        self.calls.clear()
        self.ours.clear()
        self.named.clear()

    def _switch_on(self, everything: bool) -> None:
        cupti = self._cupti
        self._names.clear()
        kind = cupti.ActivityKind
        # Ids of ours are reported for calls of which there are records, and for no others.
        calls = (kind.RUNTIME, kind.DRIVER)
        # The second kind of copies are those between devices.
        self._work = (kind.CONCURRENT_KERNEL, kind.MEMCPY, kind.MEMCPY2, kind.MEMSET)
        for wanted in (kind.EXTERNAL_CORRELATION, *calls):
            cupti.activity_enable(wanted)
            self._on.append(wanted)
        for api, names, switch in (
            (kind.RUNTIME, cupti.runtime_api_trace_cbid, cupti.activity_enable_runtime_api),
            (kind.DRIVER, cupti.driver_api_trace_cbid, cupti.activity_enable_driver_api),
        ):
            for call in names:
                # Python has changed the name of one that begins with two underscores.
                name = call.name.rpartition("__")[2]
                if everything and name.startswith(TOLD):
                    self._names[int(api), int(call)] = name
                # CUPTI keeps records of calls that enqueue, and not of a waiting task's queries, say.
                elif not name.startswith((*ENQUEUE, "INVALID", "SIZE", "FORCE_INT")):
                    with suppress(Exception):  # one that this driver does not know makes no records
                        switch(call, 0)

    def _stop(self) -> None:
        cupti = self._cupti
        try:
            for kind in self._on:
                cupti.activity_disable(kind)
            for context, kind in itertools.product(self._contexts, self._work):
                cupti.activity_disable_context(context, kind)
        finally:
            self._on.clear()
            self._contexts.clear()
            cupti.unsubscribe(self._subscriber)

    def _take(self, activities: Iterable[Any]) -> None:
        """CUPTI hands a buffer over, on a thread of its own."""
        kind = self._cupti.ActivityKind
        kinds: dict[int, SpanKind | None] = {
            int(kind.CONCURRENT_KERNEL): "kernel",
            int(kind.MEMSET): "memset",
            int(kind.MEMCPY): None,
            int(kind.MEMCPY2): "peer",
        }
        external, apis = int(kind.EXTERNAL_CORRELATION), {number for number, _ in self._names}
        by_range = int(self._cupti.ExternalCorrelationKind.CUSTOM1)
        for activity in activities:
            number = int(activity.kind)
            if number == external:
                if int(activity.external_kind) == by_range:
                    self.named[activity.correlation_id] = self.ranges.get(activity.external_id, "")
                else:
                    self.ours[activity.correlation_id] = activity.external_id
            elif number in kinds:
                self.records.append(activity_of(activity, kinds[number]))
            elif number in apis and (name := self._names.get((number, int(activity.cbid)))):
                self.calls.append(called(activity, name))


_session = _Session()


class NamedCalls:
    """Stands in for an `nvtx.Domain`, of which no profiler hears now: tells CUPTI the range of each call."""

    def __init__(self, cupti: Any) -> None:
        self.instead_of, self._cupti = nvtx.current_domain, cupti
        self._kind = cupti.ExternalCorrelationKind.CUSTOM1

    def get_event_attributes(self, message: str) -> int:
        """The number of the range's name."""
        number = next(_session.numbers)
        _session.ranges[number] = message
        return number

    def push_range(self, number: int) -> None:
        """The range of this thread's next calls."""
        self._cupti.activity_push_external_correlation_id(self._kind, number)

    def pop_range(self) -> None:
        """It has ended."""
        with suppress(Exception):  # the recording may have ended before
            self._cupti.activity_pop_external_correlation_id(self._kind)

    def start_range(self, number: int) -> int:
        """Of no thread, so no call is in it."""
        return number

    def end_range(self, number: int) -> None:
        """See `start_range`."""


class CuptiRecorder:
    """Collects CUPTI's records of each piece of work, and reads them when all is done.

    The spans go to `log`, whose `clock` and `about` are filled in; with `everything`, what other libraries
    enqueue is among them. Raises `CuptiRefusedError` if CUPTI is missing, refuses, or another profiler is
    there.
    """

    sees_nodes = True

    def __init__(self, log: SpanLog, ordinal: int, everything: bool = False) -> None:
        self.log = log
        self._ordinal = ordinal
        self._everything = everything
        # How many of CUPTI's records of work and of calls have been looked through for those of others.
        self._told = self._told_calls = 0
        self._streams: dict[int, int] = {}  # our numbers of streams, by CUPTI's
        self._elsewhere: set[int] = set()  # devices that worked, and are not recorded
        self._drafts: dict[int, tuple[Sequence[Draft], float]] = {}
        self._host: list[tuple[Draft, float, float]] = []
        self._cupti: Any = _session.open(everything)
        _session.devices.add(ordinal)
        self._leads = _session.users == 1  # a call that is on no device is told of by one recorder
        self._kind = self._cupti.ExternalCorrelationKind.CUSTOM0
        try:
            self._warm_up()
        except BaseException:
            _session.close()
            raise
        self._first = self._anchor()
        log.clock = CLOCK
        log.about.update(
            source=CLOCK,
            cupti=metadata.version("cupti-python"),
            alignment="CUPTI's clock read between two readings of the host's, at both ends; linear between",
        )
        self._ranges = NamedCalls(self._cupti) if everything and self._leads else None
        if self._ranges is not None:
            nvtx.current_domain = self._ranges
        if everything:
            log.about["everything"] = True

    def _warm_up(self) -> None:
        """The first record makes CUPTI ask for a buffer, which takes a millisecond: not in the recording.

        What is recorded here is nobody's, and stays in that buffer: to flush it would be to ask for another.
        """
        with self.own() as self._warmed:
            _session.watch_context()
            self._spare = _worked()
            self._known = _others_in_use(self._ordinal) if self._everything else []
            for ordinal in self._known:  # recorded only to say that they worked, too
                runtime.setDevice(ordinal)
                _session.watch_context()
                runtime.free(_worked())
                runtime.setDevice(self._ordinal)

    @contextmanager
    def own(self) -> Generator[int]:
        """Mark this thread's calls inside as ours: they get no span, and are not taken for work of others."""
        number = self.before(None)
        try:
            yield number
        finally:
            self.after(None)

    def before(self, stream: object) -> int:
        """Begin to number this thread's calls; returns the number by which they are known."""
        number = next(_session.numbers)
        self._cupti.activity_push_external_correlation_id(self._kind, number)
        return number

    def mark_begin(self, stream: int) -> None:
        """Have the last fill before a graph in the graph's own context: see the top of this file."""
        if _session.several_contexts:
            with self.own():
                runtime.memsetAsync(self._spare, 0, 4, stream)

    def mark_end(self, stream: int) -> None:
        """Enqueue a small fill under the present number, as CUPTI may not see the loop in a graph."""
        runtime.memsetAsync(self._spare, 0, 4, stream)

    def after(self, stream: object) -> None:
        """The call has come back."""
        self._cupti.activity_pop_external_correlation_id(self._kind)

    def add(self, drafts: Sequence[Draft], before: int, after: None, called: float) -> None:
        """The work of `drafts` was called under the number `before`, from the host's time `called` on."""
        if drafts:
            self._drafts[before] = (drafts, called)

    def add_host(self, draft: Draft, start: float, end: float) -> None:
        """A span of the host, in us of its clock."""
        self._host.append((draft, start, end))

    def settle(self) -> None:
        """Wait for the device and write down all spans."""
        until = int(self._cupti.get_timestamp())
        runtime.deviceSynchronize()
        line = ClockFit(self._first, self._anchor())
        found = self._collect()
        host, self._host = self._host, []
        for draft, start, end in host:
            self.log.finish(draft, start, end)
        waiting, self._drafts = self._drafts, {}
        pieces: list[tuple[Draft, float, list[CuptiActivity], list[CuptiActivity]]] = []
        for number, (drafts, at) in waiting.items():
            for draft, records in zip(drafts, by_draft(drafts, found.get(number, ())), strict=True):
                timed = [record for record in records if record.timed]
                pieces.append((draft, at, records, timed))
                if draft.stream is not None and draft.kind != "graph":
                    ours = (record.stream for record in timed if not record.node)
                    self._streams.update(dict.fromkeys(ours, draft.stream))
        others = self._of_others(line, host, until)
        asked = {draft.id: line.us(call.start) for draft, call in others}
        late = late_by(
            [(line.us(r.start), at) for _, at, _, timed in pieces for r in timed]
            + [(line.us(r.start), asked[i]) for draft, r in others for i in draft.after]
        )
        for draft, at, records, timed in pieces:
            begin = min((line.us(r.start) + late for r in timed), default=at)
            end = max((line.us(r.end) + late for r in timed), default=at)
            self.log.finish(draft, max(begin, at), end, **_facts(records))
        for draft, record in others:
            moved = 0.0 if isinstance(record, CuptiApiRecord) else late
            self.log.finish(draft, line.us(record.start) + moved, line.us(record.end) + moved)
        self._warn_of_other_devices()  # last, since a program may make errors of warnings
        self.log.about["alignment_us"] = round(line.uncertainty + late, 3)
        if late:
            self.log.about["moved_us"] = round(late, 3)
        missing = sum(not timed for _, _, _, timed in pieces)
        if missing:  # copies of nothing leave no record
            self.log.about["without_record"] = missing

    def close(self) -> None:
        """Switch CUPTI off."""
        if self._ranges is not None and nvtx.current_domain is self._ranges:
            nvtx.current_domain = self._ranges.instead_of
        _session.close()
        with suppress(Exception):  # behind a fault nothing can be freed
            runtime.free(self._spare)

    def _collect(self) -> dict[int, list[CuptiActivity]]:
        """CUPTI's records, by our numbers."""
        found: dict[int, list[CuptiActivity]] = {}
        wanted = sum(len(drafts) for drafts, _ in self._drafts.values())
        for turn, flag in enumerate(FLUSHES):
            if turn:
                time.sleep(PAUSE)
            self._cupti.activity_flush_all(flag)
            found = {}
            for record in list(_session.records):
                number = _session.ours.get(record.correlation)
                # A call for several devices has one number, and each device is recorded by itself. A copy
                # between two has one call, whichever of them it is said to be on.
                here = record.device == self._ordinal or record.kind == "peer"
                if number in self._drafts and here:
                    found.setdefault(number, []).append(record)
            if self._everything:  # nobody knows how many will come
                continue
            if all(n in found for n in self._drafts) and sum(map(len, found.values())) >= wanted:
                break
        return found

    def _of_others(
        self, line: ClockFit, host: Sequence[tuple[Draft, float, float]], until: int
    ) -> list[tuple[Draft, CuptiActivity | CuptiApiRecord]]:
        """Records that no call of ours made, and that were not handed out yet.

        Our own warming up was on the null stream, and tells CUPTI's number of it. Calls from `until` on are
        our own wait for the end. Our other waits are in `host`, under names of ours.
        """
        if not self._everything:
            return []
        fresh, calls = _session.records[self._told :], _session.calls[self._told_calls :]
        # Not up to the end: CUPTI may have handed over more by now.
        self._told, self._told_calls = self._told + len(fresh), self._told_calls + len(calls)
        first, ours = self._first.theirs, union((start, end) for _, start, end in host)
        records: list[CuptiActivity] = []
        elsewhere: set[int] = set()
        others: set[int] = set()
        for record in fresh:
            number = _session.ours.get(record.correlation)
            if number == self._warmed:
                if record.device == self._ordinal:
                    self._streams.setdefault(record.stream, 0)
                continue
            others.add(record.device)
            if number is None and not 0 < record.start < first:
                if record.device == self._ordinal:
                    records.append(record)
                else:
                    elsewhere.add(record.correlation)
        numbers = {record.correlation for record in records}
        # In threads that work for others only, what is called while we wait elsewhere is theirs.
        mine = {call.thread for call in _session.calls if call.correlation in _session.ours}
        foreign = {c.thread for c in calls if c.correlation in numbers | elsewhere} - mine
        theirs: list[CuptiApiRecord] = []
        for call in calls:
            middle = line.us((call.start + call.end) // 2)
            if (
                first <= call.start < until
                and call.correlation not in _session.ours
                # One that made work of others is theirs, whatever another thread of ours did meanwhile.
                and (
                    call.correlation in numbers
                    or (
                        self._leads
                        and (call.thread in foreign or not within(ours, middle, middle + 1e-3))
                    )
                )
            ):
                theirs.append(call)
        if self._leads:
            # A device that was first used meanwhile has no records at all.
            others.update(set(_others_in_use(self._ordinal)).difference(self._known))
            self._elsewhere |= others - _session.devices
        enqueuing = mine | foreign
        return drafts_of_others(
            records, theirs, self._streams, self.log.numbers, enqueuing, _session.named
        )

    def _warn_of_other_devices(self) -> None:
        others, self._elsewhere = sorted(self._elsewhere), set()
        if others:
            names = " and ".join(f"cuda:{device}" for device in others)
            warnings.warn(
                f"{names} worked as well, and this recording leaves that out: to see it, call "
                f"agt.use('cuda:{others[0]}') before you record",
                stacklevel=3,
            )

    def _anchor(self) -> Anchor:
        """One moment on both clocks: the narrowest of several readings of one between two of the other."""
        best = Anchor(0, 0.0, float("inf"))
        for _ in range(READINGS):
            early = time.perf_counter_ns()
            theirs = int(self._cupti.get_timestamp())
            late = time.perf_counter_ns()
            if (late - early) / 2e3 < best.uncertainty:
                best = Anchor(theirs, (early + late) / 2e3, (late - early) / 2e3)
        return best


def _worked() -> int:
    """New memory of the current device, after a fill and a copy there."""
    memory: int = runtime.malloc(1024)
    runtime.memsetAsync(memory, 0, 1024, 0)
    runtime.memcpyAsync(memory, memory + 512, 512, 3, 0)  # cudaMemcpyDeviceToDevice
    runtime.deviceSynchronize()
    return memory


def _others_in_use(ordinal: int) -> list[int]:
    """The other devices that have a context in this process; asking makes none."""
    # CuPy lacks this question. cupti-python needs the bindings, so they are there.
    from cuda.bindings import driver as bindings

    others = set(range(runtime.getDeviceCount())) - {ordinal}
    return [other for other in sorted(others) if bindings.cuDevicePrimaryCtxGetState(other)[2]]


def profiler_attached() -> str:
    """Return the sign that a profiler runs this process, and has CUPTI then; empty if there is none."""
    for sign in SIGNS:
        if os.environ.get(sign):
            return sign
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:  # not Linux
        return ""
    for line in maps.splitlines():
        path = line[line.find("/") :]
        name = path.rpartition("/")[2]
        # CUPTI itself may come from a profiler's folder, and is then no sign of the profiler.
        if any(library in path for library in LIBRARIES) and not name.startswith("libcupti"):
            return name
    return ""


def _too_old() -> str:
    """Say that the driver is too old for CUPTI; empty if it is not."""
    version = runtime.driverGetVersion()
    if version >= DRIVER:
        return ""
    return (
        f"CUPTI needs a driver for CUDA {DRIVER // 1000}, that is 580 or later, and this one is for CUDA "
        f"{version // 1000}.{version % 1000 // 10}"
    )


def _facts(records: Sequence[CuptiActivity]) -> dict[str, object]:
    several: dict[str, object] = {"records": len(records)} if len(records) > 1 else {}
    pageable = any(record.pageable for record in records)
    return {**several, "pageable": True} if pageable else several


def _buffer() -> tuple[int, int]:
    return BUFFER, 0


def _ignore(*_: object) -> None:
    """No callback is switched on; a subscriber has to name one."""
