"""All spans of a run, in a form that can be saved, drawn, tabulated and measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from numbers import Real
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from asyncgpu_tutor.errors import UsageError, demand, entries_of, whole
from asyncgpu_tutor.traces.formats import chrome, files, own_json
from asyncgpu_tutor.traces.spans import DEVICE_KINDS, Metrics, Span, measure, relations
from asyncgpu_tutor.traces.spans.notebook_output import NOTHING, Lines, damage_of, printable
from asyncgpu_tutor.traces.spans.span import by_number, grouped
from asyncgpu_tutor.traces.spans.table import render
from asyncgpu_tutor.traces.spans.vocabulary import clock_words, count
from asyncgpu_tutor.traces.spans.whole_file import write_whole

if TYPE_CHECKING:
    from asyncgpu_tutor.traces.formats.database import Rows
    from asyncgpu_tutor.traces.pictures import Timeline


@dataclass(repr=False)
class Trace:
    """All spans of a run.

    Attributes
    ----------
    spans : list of Span
        In the order of their ids. Empty until the recording ends.
    clock : str
        Where the times come from: ``"simulated"``, ``"CUDA events"``, ``"CUPTI"`` or
        ``"Nsight Systems"``.
    device : str
        What the device is, for people.
    about : mapping
        More about the recording, as JSON values: how the clocks were aligned, why CUPTI was not used; for
        a recording that is shipped also GPU, driver, versions, command and date.
    """

    spans: list[Span] = field(default_factory=list[Span])
    clock: str = "simulated"
    device: str = ""
    about: Mapping[str, object] = field(default_factory=dict[str, object])

    def __post_init__(self) -> None:
        self.spans = entries_of("the spans of a trace", self.spans, Span)
        demand(self.about, Mapping, "what a trace says about itself is a dict")

    def __iter__(self) -> Iterator[Span]:
        return iter(self.spans)

    def __len__(self) -> int:
        return len(self.spans)

    def __repr__(self) -> str:
        if not self.spans:
            return f"<Trace without spans. {NOTHING}>"
        work = self.device_spans
        streams = {(s.device, s.stream) for s in work}
        length = max(s.end for s in self.spans) - min(s.start for s in self.spans)
        within = self.about.get("clocks_within_us")
        clocks = f"; its workers' clocks are set within {within} µs" if within is not None else ""
        damage = "".join(f"; {said}" for said in damage_of(self.about))
        return printable(
            f"<Trace of {count(len(self.spans), 'span')}, {len(work):,} on the device in "
            f"{count(len(streams), 'stream')}, {length:.1f} µs, {clock_words(self.clock)}{clocks}{damage}>"
        )

    @property
    def device_spans(self) -> list[Span]:
        """The spans in which the device was busy, by id."""
        return [span for span in self.spans if span.kind in DEVICE_KINDS]

    @property
    def streams(self) -> list[int]:
        """Numbers of the streams that were used, ascending."""
        return sorted({s.stream for s in self.spans if s.stream is not None})

    @property
    def devices(self) -> list[str]:
        """Names of the devices that worked, by their numbers."""
        return sorted({span.device for span in self.device_spans}, key=by_number)

    @property
    def windows(self) -> list[tuple[float, float]]:
        """The stretches that count, in us, of a trace of what was asked for within a range; else empty."""
        given = cast(Iterable[tuple[float, float]], self.about.get("windows", ()))
        try:
            return [(float(start), float(end)) for start, end in given]
        except (TypeError, ValueError):  # somebody else's word for something else
            return []

    def of(self, device: str) -> Trace:
        """The part of one device, and of the host that drives it: a program may use several.

        Raises
        ------
        UsageError
            If no device of that name has worked.
        """
        parts = dict(self.each([device]))
        if device not in parts:
            there = ", ".join(self.devices) or "none"
            raise UsageError(f"this trace has no work of a device {device!r}; there are: {there}")
        return parts[device]

    def each(self, devices: Iterable[str]) -> Iterator[tuple[str, Trace]]:
        """For each of these devices that worked its part of the trace; see `of`."""
        work = grouped((s for s in self.spans if s.on_device), lambda span: span.device)
        hosts = grouped((s for s in self.spans if not s.on_device), lambda span: span.host)
        for name in entries_of("names of devices", devices, str):
            if name in work:
                kept = [*work[name], *hosts.get(name, hosts.get("", ()))]
                yield name, replace(self, spans=_closed(sorted(kept, key=attrgetter("id"))))

    def find(self, name: str) -> list[Span]:
        """All spans with this name, by id."""
        return [span for span in self.spans if span.name == name]

    def between(self, start: float, end: float) -> Trace:
        """The stretch of time from `start` to `end`, in us, with spans cut there; times, names and ids stay.

        Raises
        ------
        UsageError
            If `end` is not behind `start`.
        """
        if not isinstance(start, Real) or not isinstance(end, Real) or not start < end:  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all type-checked
            raise UsageError(
                "between(start, end) takes two times in us, the earlier one first, and got "
                f"{start!r:.99} and {end!r:.99}"
            )
        start, end = float(start), float(end)  # NumPy's are no JSON
        inside = [s for s in self.spans if s.start < end and (s.end > start or s.start >= start)]
        cut = [_part(s, max(s.start, start), min(s.end, end)) for s in inside]
        about = {key: value for key, value in self.about.items() if key != "windows"}
        return replace(self, spans=_closed(cut), about=about)

    def from_first(self, spans: Iterable[Span] | None = None) -> Trace:
        """The same trace, with its first span at 0, or that of `spans`, and not where the recording began."""
        chosen = self.spans if spans is None else entries_of("spans", spans, Span)
        origin = min((span.start for span in chosen), default=0.0)
        about = dict(self.about)
        if windows := self.windows:
            about["windows"] = [[start - origin, end - origin] for start, end in windows]
        moved = replace(self, spans=[], about=about)
        moved.fill(self.spans, origin)
        return moved

    def with_lane(self, name: str, stretches: Iterable[tuple[float, float, str]]) -> Trace:
        """The same trace with a lane of your own, for pictures; a stretch is two times in us and a text."""
        demand(name, str, "a lane has a name")
        first = max((span.id for span in self.spans), default=0) + 1
        more = list[Span]()
        for number, stretch in enumerate(entries_of("stretches", stretches, (list, tuple)), first):
            match stretch:
                case (Real() as a, Real() as b, str() as text) if isfinite(a) and isfinite(b):
                    # What a program measured may have come in another order than it expected.
                    start, end = sorted((float(a), float(b)))
                    more.append(Span(number, "range", text, start, end, "", detail={"lane": name}))
                case _:
                    raise UsageError(
                        f"a stretch of a lane is two times in us and a text, not {stretch!r:.99}"
                    )
        return replace(self, spans=[*self.spans, *more])

    def fill(self, spans: Iterable[Span], origin: float) -> None:
        """Take over the spans of a finished recording; `origin`, in us, becomes time zero."""
        chosen = sorted(spans, key=lambda s: s.id)
        moved = [replace(s, start=s.start - origin, end=s.end - origin) for s in chosen]
        self.spans[:] = _closed(moved)

    # How spans lie to each other: a function of a trace is a method of it.
    overlap_between = relations.overlap_between
    runs_before = relations.runs_before
    happens_before = relations.happens_before

    # ------------------------------------------------------------------ views
    def metrics(self) -> Metrics:
        """Makespan, busy time, overlap, idle gaps, critical path."""
        return measure(self, self.windows)

    def table(self) -> Lines:
        """The timeline as text: the facts of `plot`, for those who cannot see it, of the first 200 spans."""
        said = "".join(f"{line}\n" for line in damage_of(self.about))
        return Lines(said + render(self.spans, self.windows, device=self.device, clock=self.clock))

    def sql(self, query: str) -> Rows:
        """Ask the trace by SQL, for what nobody foresaw; a notebook shows the rows as a table.

        Parameters
        ----------
        query : str
            A SELECT on the table ``spans``. Its columns are the attributes of `Span` (times in us), and
            ``duration``; ``call``, the id of the host's call that asked for it; ``bytes``; and ``detail`` as
            JSON, for ``json_extract(detail, '$.grid')``.

        Raises
        ------
        UsageError
            If SQLite does not understand the query, or it would change something.
        """
        # Only now, because a Python in a browser may have no sqlite3.
        from asyncgpu_tutor.traces.formats import database

        return database.ask(self.spans, query)

    def plot(self, **options: Any) -> Timeline:
        """The timeline, to be looked at; see `asyncgpu_tutor.traces.pictures.plot` for the options."""
        # Only now, because most programs draw nothing.
        from asyncgpu_tutor.traces.pictures import plot

        return plot(self, **options)

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        return self.plot()._repr_mimebundle_()

    # ------------------------------------------------------------------ files
    def to_json(self) -> str:
        """The trace as JSON text; the same trace gives the same text."""
        return own_json.write_own_json(self.spans, self.clock, self.device, self.about)

    def save(self, path: str | Path) -> None:
        """Write `to_json` to a file."""
        write_whole(Path(path), self.to_json() + "\n")

    def to_perfetto(self, path: str | Path) -> None:
        """Write a file that https://ui.perfetto.dev opens: JSON in Chrome's format, so a ``.json`` fits."""
        chrome.write_chrome(
            self.spans, Path(path), device=self.device, clock=self.clock, about=self.about
        )

    @classmethod
    def load(cls, path: str | Path) -> Trace:
        """Read a trace, whoever wrote it. The file stays as it is, and nothing in it is run.

        Parameters
        ----------
        path : str or Path
            What `save` wrote; a trace of PyTorch's profiler or of Chrome (``.json``, ``.json.gz``); an export
            of Nsight Systems (``.sqlite``), for which `from_nsys` has options.

        Raises
        ------
        UsageError
            If it is none of these, or damaged; says what it seems to be.
        """
        return cls(*files.read(Path(path)))

    @classmethod
    def load_recording(cls, name: str) -> Trace:
        """A trace of a chapter's program that comes with this package; its `about` says on which GPU it ran.

        Parameters
        ----------
        name : str
            Such as ``"07_async_mlp"``; `recordings` has all names, and any other is a `UsageError`.
        """
        return cls.load(files.recording(name))

    recordings = staticmethod(files.recordings)
    recorded_file = staticmethod(files.recorded_file)

    @classmethod
    def from_nsys(
        cls, path: str | Path, *, within: str | None = None, limit: int = 200_000
    ) -> Trace:
        """Read what ``nsys export --type sqlite`` wrote. The file is opened for reading only.

        Work belongs to the operation in whose NVTX range its call was made: run the program with
        ``ASYNCGPU_NVTX=1``. Waits of threads that enqueue nothing are left out. The null stream is 0. A CUDA
        graph is one span, or its nodes if they were traced (``--cuda-graph-trace=node``).

        Parameters
        ----------
        path : str or Path
            The ``.sqlite`` file. (A ``.nsys-rep`` is the profiler's own format: export it first.)
        within : str, optional
            Name of an NVTX range: only what was asked for in ranges of this name, the first of which begins
            at time zero. ``"record"`` is what `asyncgpu_tutor.record` recorded.
        limit : int
            How many spans the trace may have at most.

        Raises
        ------
        UsageError
            If the file is not such an export, holds no GPU work, or too much of it; if there is no such
            range.
        """
        # Only now, because a Python in a browser may have no sqlite3.
        from asyncgpu_tutor.traces.formats import nsys

        return cls(*nsys.read_nsys(path, within=within, limit=whole("limit", limit, 1)))


def _part(span: Span, start: float, end: float) -> Span:
    """A part of a span, with its part of the bytes, and what it waits within it."""
    if (start, end) == (span.start, span.end):
        return span
    detail = {**span.detail}
    if start > span.start:  # it waited for room before, and works here from the beginning
        detail.pop("waited_for_room", None)
    if isinstance(size := detail.get("bytes"), int):
        detail["bytes"] = round(size * (end - start) / span.duration)
    if cut := [(max(a, start) - start, min(b, end) - start) for a, b in span.waits]:
        detail["waits"] = [(a, b) for a, b in cut if a < b]
    return replace(span, start=start, end=end, detail=detail)


def _closed(spans: list[Span]) -> list[Span]:
    """The spans, without predecessors that are not among them."""
    known = {span.id for span in spans}
    return [replace(s, after=tuple(i for i in s.after if i in known)) for s in spans]
