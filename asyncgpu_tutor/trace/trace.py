"""All spans of a run, in a form that can be saved, drawn, tabulated and measured."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.trace.span import KINDS, Span

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from asyncgpu_tutor.trace.metrics import Metrics

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
        Where the times come from: ``"simulated"`` or ``"CUDA events"``.
    device : str
        What the device is, for people.
    """

    spans: list[Span] = field(default_factory=list[Span])
    clock: str = "simulated"
    device: str = ""

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
        from asyncgpu_tutor.trace.metrics import measure

        return measure(self)

    def table(self, *, limit: int | None = 200, width: int = 72) -> str:
        """The timeline as text: the same facts as `plot`, for those who cannot see it.

        See `asyncgpu_tutor.trace.table.render` for `limit` and `width`.
        """
        from asyncgpu_tutor.trace.table import render

        return render(self, limit=limit, width=width)

    def plot(self, **options: Any) -> Axes:
        """Draw the timeline; see `asyncgpu_tutor.timeline.plot` for the options."""
        from asyncgpu_tutor.timeline import plot  # matplotlib is slow to import: only when asked

        return plot(self, **options)

    # ------------------------------------------------------------------ files
    def to_json(self) -> str:
        """The trace as JSON text; the same trace gives the same text."""
        body = {
            "format": FORMAT,
            "clock": self.clock,
            "device": self.device,
            "spans": [asdict(span) for span in self.spans],
        }
        return json.dumps(body, indent=1, sort_keys=True)

    def save(self, path: str | Path) -> None:
        """Write `to_json` to a file."""
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    @classmethod
    def from_json(cls, text: str) -> Trace:
        """Read what `to_json` wrote.

        Raises
        ------
        UsageError
            If the text is not such a trace.
        """
        try:
            body = json.loads(text)
        except ValueError as error:
            raise UsageError(f"this is not a trace: it is not JSON ({error})") from None
        if not isinstance(body, dict) or cast(dict[str, Any], body).get("format") != FORMAT:
            raise UsageError(f"this is not a trace: its 'format' is not {FORMAT!r}")
        fields = cast(dict[str, Any], body)
        try:
            spans = [_span(row) for row in fields["spans"]]
            return cls(spans, str(fields["clock"]), str(fields["device"]))
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(f"this trace is damaged: {error!r}") from None

    @classmethod
    def load(cls, path: str | Path) -> Trace:
        """Read a file that `save` wrote."""
        return cls.from_json(Path(path).read_text(encoding="utf-8"))


def _span(row: Mapping[str, Any]) -> Span:
    if row["kind"] not in KINDS:
        raise ValueError(f"unknown kind of span {row['kind']!r}")
    fields: dict[str, Any] = {**row, "after": tuple(row["after"]), "detail": dict(row["detail"])}
    span = Span(**fields)
    if not (math.isfinite(span.start) and math.isfinite(span.end) and span.start <= span.end):
        raise ValueError(f"span {span.id} goes from {span.start} to {span.end}")
    return span
