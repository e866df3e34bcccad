"""The log that a device writes while it is recorded: spans, and the order between them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

from asyncgpu_tutor.traces.spans.span import Span, SpanKind
from asyncgpu_tutor.traces.spans.tag import Name


@dataclass(slots=True)
class Draft:
    """A span that has been asked for and whose times are not known yet."""

    id: int
    kind: SpanKind
    name: str
    stream: int | None
    op: int | None
    label: str
    after: tuple[int, ...]
    detail: Mapping[str, object]


@dataclass
class SpanLog:
    """Gives spans their ids and predecessors, alike on all devices. One a device, with its times, in us."""

    device: str  # the name that the spans carry
    # Gives the ids; devices that are recorded together share it.
    numbers: Iterator[int] = field(default_factory=count)
    # `clock` and `about`: see `Trace`.
    clock: str = ""
    about: dict[str, object] = field(default_factory=dict[str, object])
    spans: list[Span] = field(default_factory=list[Span])
    _last: dict[int, int] = field(default_factory=dict[int, int])
    _waits: dict[int, dict[int, None]] = field(default_factory=dict[int, dict[int, None]])

    def draft(
        self,
        kind: SpanKind,
        name: str,
        stream: int | None,
        *,
        op: int | None = None,
        label: str = "",
        call: int | None = None,
        waits_for: tuple[int, ...] = (),
        after: tuple[int, ...] = (),
        detail: Mapping[str, object] | None = None,
    ) -> Draft:
        """Note that a span will come; for a device span, behind what its stream already holds.

        `call` is the id of the host's call; `waits_for`, for a wait, are those without which it cannot end.
        What was decided on the device comes `after` the decision instead.
        """
        if isinstance(label, Name):
            # The innermost name is on the bars. What was captured under a name of its own has that already.
            label, detail = str(label), {"named": label.part or str(label), **(detail or {})}
        decided, after = bool(after), after or waits_for
        if call is not None:
            after = (*after, call)
        number = next(self.numbers)
        if stream is not None and not decided:
            after = self.heads(stream) + after
            self._waits.pop(stream, None)
            self._last[stream] = number
        return Draft(number, kind, name, stream, op, label, after, detail or {})

    def heads(self, stream: int) -> tuple[int, ...]:
        """The spans that the next one on `stream` has to follow."""
        last = self._last.get(stream)
        return (() if last is None else (last,)) + tuple(self._waits.get(stream, ()))

    def wait(self, stream: int, heads: tuple[int, ...]) -> None:
        """The next span on `stream` also follows `heads`, which an event carried over."""
        self._waits.setdefault(stream, {}).update(dict.fromkeys(heads))

    def finish(self, draft: Draft, start: float, end: float, **detail: object) -> Span:
        """The times are known, in us: write the span down."""
        d, facts = draft, {**draft.detail, **detail} if detail else draft.detail
        place = self.device, d.stream, d.op, d.label, d.after
        span = Span(d.id, d.kind, d.name, start, end, *place, facts)
        self.spans.append(span)
        return span
