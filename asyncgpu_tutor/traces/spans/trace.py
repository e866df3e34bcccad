"""All spans of a run, in a form that can be saved, drawn, tabulated and measured."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces.formats.reading import mapping_of, parse, read_text, spans_of
from asyncgpu_tutor.traces.spans.span import Span

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from asyncgpu_tutor.traces.spans.metrics import Metrics

__all__ = ["Trace"]

FORMAT = "asyncgpu_tutor.trace/1"


@dataclass
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

    def __iter__(self) -> Iterator[Span]:
        return iter(self.spans)

    def __len__(self) -> int:
        return len(self.spans)

    @property
    def device_spans(self) -> list[Span]:
        """The spans in which the device was busy, by id."""
        return [span for span in self.spans if span.on_device]

    @property
    def streams(self) -> list[int]:
        """Numbers of the streams that were used, ascending."""
        return sorted({s.stream for s in self.spans if s.stream is not None})

    def find(self, name: str) -> list[Span]:
        """All spans with this name, by id."""
        return [span for span in self.spans if span.name == name]

    def fill(self, spans: Iterable[Span], origin: float) -> None:
        """Take over the spans of a finished recording; `origin`, in us, becomes time zero.

        Predecessors that lie outside of the recording are left out.
        """
        chosen = sorted(spans, key=lambda s: s.id)
        known = {span.id for span in chosen}
        self.spans[:] = [
            replace(
                span,
                start=span.start - origin,
                end=span.end - origin,
                after=tuple(i for i in span.after if i in known),
            )
            for span in chosen
        ]

    # ------------------------------------------------------------------ views
    def metrics(self) -> Metrics:
        """Makespan, busy time, overlap, idle gaps, critical path, speed-up over serial."""
        from asyncgpu_tutor.traces.spans.metrics import measure

        return measure(self)

    def table(self, *, limit: int | None = 200, width: int = 72) -> str:
        """The timeline as text: the same facts as `plot`, for those who cannot see it.

        See `asyncgpu_tutor.traces.spans.table.render` for `limit` and `width`.
        """
        from asyncgpu_tutor.traces.spans.table import render

        return render(self, limit=limit, width=width)

    def plot(self, **options: Any) -> Axes:
        """Draw the timeline; see `asyncgpu_tutor.traces.pictures.plot` for the options."""
        from asyncgpu_tutor.traces.pictures import (
            plot,  # matplotlib is slow to import: only when asked
        )

        return plot(self, **options)

    # ------------------------------------------------------------------ files
    def to_json(self) -> str:
        """The trace as JSON text; the same trace gives the same text."""
        body: dict[str, object] = {
            "format": FORMAT,
            "clock": self.clock,
            "device": self.device,
            "spans": [asdict(span) for span in self.spans],
        }
        if self.about:
            body["about"] = dict(self.about)
        return json.dumps(body, indent=1, sort_keys=True)

    def save(self, path: str | Path) -> None:
        """Write `to_json` to a file."""
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    def to_perfetto(self, path: str | Path) -> None:
        """Write a file that https://ui.perfetto.dev opens: lanes as tracks, dependencies as arrows.

        Parameters
        ----------
        path : str or Path
            A name that ends in ``.json`` gets the trace format of Chrome, which older tools read as well; any
            other gets Perfetto's own.
        """
        from asyncgpu_tutor.traces.formats.perfetto import write

        write(self, Path(path))

    @classmethod
    def from_json(cls, text: str) -> Trace:
        """Read what `to_json` wrote. Nothing in the text is run.

        Raises
        ------
        UsageError
            If the text is not such a trace: wrong types, times that are negative, not finite or not in
            order, ids that are there twice, spans that wait for later ones, too much of anything.
        """
        body = parse(text)
        if body.get("format") != FORMAT:
            raise UsageError(f"this is not a trace: its 'format' is not {FORMAT!r}")
        try:
            return cls(
                spans_of(body["spans"]),
                _text(body, "clock"),
                _text(body, "device"),
                mapping_of(body.get("about", {}), "about"),
            )
        except KeyError as error:
            raise UsageError(f"this trace is damaged: it has no {error}") from None
        except ValueError as error:
            raise UsageError(f"this trace is damaged: {error}") from None

    @classmethod
    def load(cls, path: str | Path) -> Trace:
        """Read a file that `save` wrote; see `from_json`. The file stays as it is."""
        return cls.from_json(read_text(path))

    @classmethod
    def load_recording(cls, name: str) -> Trace:
        """A trace of a chapter's program, recorded on a GPU; it comes with this package.

        Parameters
        ----------
        name : str
            Such as ``"07_async_mlp"``; `recordings` has all names.

        Returns
        -------
        Trace
            Its `about` says on which GPU, when, and how it was made.

        Raises
        ------
        UsageError
            If there is no recording of that name.
        """
        from asyncgpu_tutor.traces.formats.shipped import load

        return load(name)

    @staticmethod
    def recordings() -> list[str]:
        """Names of the recordings that come with this package, sorted."""
        from asyncgpu_tutor.traces.formats.shipped import names

        return names()

    @staticmethod
    def recorded_file(name: str) -> Path:
        """Where a file is that comes with this package beside the recordings.

        Parameters
        ----------
        name : str
            ``"07_async_mlp.sqlite"``, an export for `from_nsys`; ``"07_async_mlp.nsys-rep"``, the report that
            it is of; ``"07_async_mlp.events.json"``, the same program timed by CUDA events, for `load`.

        Raises
        ------
        UsageError
            If there is no such file.
        """
        from asyncgpu_tutor.traces.formats.shipped import file

        return file(name)

    @classmethod
    def from_nsys(
        cls, path: str | Path, *, within: str | None = None, limit: int = 200_000
    ) -> Trace:
        """Read what ``nsys export --type sqlite`` wrote. The file is opened for reading only.

        Kernels, copies and fills become spans of their streams; the calls that enqueued them, and the
        waits, spans of the host; NVTX ranges, spans of kind ``"range"``. Work belongs to the operation in
        whose NVTX range its call was made: run the program with ``ASYNCGPU_NVTX=1``. Waits of threads
        that enqueue nothing are left out: they hold up no one. Streams are numbered in the order of CUDA's
        own numbers; the null stream is 0. A CUDA graph is one span, or its nodes if they were traced
        (``--cuda-graph-trace=node``).

        Parameters
        ----------
        path : str or Path
            The ``.sqlite`` file. (A ``.nsys-rep`` is the profiler's own format: export it first.)
        within : str, optional
            Name of an NVTX range: only what was asked for in ranges of this name. ``"record"`` is what
            `asyncgpu_tutor.record` recorded.
        limit : int
            How many spans the trace may have at most.

        Returns
        -------
        Trace
            Time zero is the start of the first range `within`, else of the first span.

        Raises
        ------
        UsageError
            If the file is not such an export, holds no GPU work, or too much of it; if there is no such
            range.
        """
        from asyncgpu_tutor.traces.formats.nsys import read

        return read(path, within=within, limit=limit)


def _text(body: Mapping[str, Any], key: str) -> str:
    value = body[key]
    if not isinstance(value, str) or len(value) > 1000:
        raise ValueError(f"its {key} is not text of at most 1000 characters")
    return value
