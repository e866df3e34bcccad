"""Two runs or more of one program, side by side: simulated, recorded, live."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces.analysis.finding import MOST_DEVICES
from asyncgpu_tutor.traces.pictures import Timeline, compare_timelines
from asyncgpu_tutor.traces.spans import Metrics, Span
from asyncgpu_tutor.traces.spans import notebook_output as page
from asyncgpu_tutor.traces.spans.notebook_output import NAME, PAGE, Lines, cut, wrapped
from asyncgpu_tutor.traces.spans.vocabulary import some
from asyncgpu_tutor.traces.trace import Trace

_LISTED = 6  # sorts of work that not all traces have
_Key = tuple[int, str, str, str, int]  # device, operation, kind, name, which one of these


@dataclass(frozen=True)
class Difference:
    """One quantity in all traces."""

    name: str  # such as ``"makespan"`` or ``"kernel sgemm_naive"``
    unit: str  # ``"us"``, ``"%"`` or ``""``
    values: tuple[float, ...]  # one for each trace; for a kind of work, its mean duration
    sentence: str  # the difference between the first trace and the others in words

    @property
    def factor(self) -> float:
        """The last value over the first; infinite where the first is 0 and the last is not."""
        first, last = self.values[0], self.values[-1]
        if first == last:
            return 1.0
        return last / first if first else math.inf


@dataclass(frozen=True, repr=False)
class Comparison:
    """Traces side by side; see `compare`.

    Attributes
    ----------
    traces : tuple of Trace
        As they were given.
    titles : tuple of str
        What each is called.
    matches : tuple of tuple of Span
        Work that all traces have, in the first trace's order; one span of each.
    missing : tuple of tuple of Span
        For each trace, the work that not all of them have.
    same_order : bool
        Whether all traces asked for the work that they share in the same order.
    differences : tuple of Difference
        All quantities: those of the whole run, then the mean duration of each sort of work.
    """

    traces: tuple[Trace, ...]
    titles: tuple[str, ...]
    matches: tuple[tuple[Span, ...], ...]
    missing: tuple[tuple[Span, ...], ...]
    same_order: bool
    differences: tuple[Difference, ...]

    @property
    def same_work(self) -> bool:
        """True if all traces have the same operations, each with the same work."""
        return not any(self.missing)

    def __getitem__(self, name: str) -> Difference:
        """The difference of that name; a `UsageError` has the names if there is none."""
        named = {difference.name: difference for difference in self.differences}
        if name not in named:
            told = ", ".join(map(repr, named))
            raise UsageError(f"there is no difference {name!r}; there are: {told}")
        return named[name]

    def __repr__(self) -> str:
        told = " against ".join(self.titles)
        times = ", ".join(f"{us:.1f}" for us in self["makespan"].values)
        return page.printable(f"<Comparison of {told}: makespans {times} µs>")

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        shown = self.plot()._repr_mimebundle_()
        return {**shown, "text/plain": repr(self)}

    def table(self) -> Lines:
        """All quantities as text, one column for each trace, and the differences in words."""
        wide = max(16, *(len(title) + 2 for title in self.titles))
        most = max(NAME // 2, PAGE - wide * len(self.traces))
        left = min(max(len(d.name) for d in self.differences) + 2, most)
        rows = [("", self.titles), ("", tuple(trace.clock for trace in self.traces))]
        rows += [(d.name, tuple(_told(v, d.unit) for v in d.values)) for d in self.differences]
        lines = [
            f"{cut(name, left - 2):<{left}}" + "".join(f"{cell:>{wide}}" for cell in cells)
            for name, cells in rows
        ]
        said = (line for sentence in self._sentences() for line in wrapped(sentence, 2))
        damage = [
            f"{title}: {line}"
            for title, trace in zip(self.titles, self.traces, strict=True)
            for line in page.damage_of(trace.about)
        ]
        return Lines("\n".join([*damage, *lines, "", *said]))

    def plot(self) -> Timeline:
        """All timelines on one axis, on which each begins with its first call or work."""
        moved = [t.from_first(s for s in t if s.kind != "range") for t in self.traces]
        return compare_timelines(moved, self.titles)

    def _sentences(self) -> Iterator[str]:
        if self.same_work:
            but = "" if self.same_order else "but not "
            yield f"The same {len(self.matches)} pieces of device work, {but}in the same order."
        for title, spans in zip(self.titles, self.missing, strict=True):
            if spans:
                told = some(list(dict.fromkeys(cut(_sort_of(s), NAME) for s in spans)), _LISTED)
                yield f"Not in all of them: {title} has {len(spans)} more ({told})."
        yield from (d.sentence for d in self.differences if d.sentence)


def compare(*traces: Trace, titles: Sequence[str] | None = None) -> Comparison:
    """Lay traces of one program side by side: simulated, recorded on a GPU, live.

    Work is matched by operation, kind and name, in order; where a trace does not know the operations (an
    export of Nsight Systems without NVTX ranges), only by kind and name.

    Parameters
    ----------
    *traces : Trace
        Two or more.
    titles : sequence of str, optional
        What each is called; by default, where its times come from.

    Raises
    ------
    UsageError
        If there are less than two traces, not one title for each, or one is no trace.

    Examples
    --------
    >>> import asyncgpu_tutor as agt
    >>> with agt.record() as one:
    ...     _ = agt.zeros((4,)).sync()
    >>> agt.compare(one, one)["makespan"].factor
    1.0
    """
    for trace in traces:
        if not isinstance(trace, Trace):  # pyright: ignore[reportUnnecessaryIsInstance] - a list is a common slip
            given = type(trace).__name__
            raise UsageError(f"compare takes traces, one argument each, and got {given}")
    if len(traces) < 2:
        raise UsageError(f"compare needs two traces or more, and was given {len(traces)}")
    # A recording says what it was timed by.
    clocks = (t.clock if t.clock == "simulated" else t.about.get("kind", t.clock) for t in traces)
    names = [str(name) for name in titles or clocks]
    if len(names) != len(traces):
        raise UsageError(
            f"compare needs one title for each trace: {len(traces)} traces, {len(names)} titles"
        )
    names = [n if names.count(n) == 1 else f"{n} ({i})" for i, n in enumerate(names, 1)]
    labelled = all(span.label for trace in traces for span in trace.device_spans)
    keyed = [_keyed(trace, labelled) for trace in traces]
    known = set(keyed[0]).intersection(*keyed[1:])
    orders = [[key for key in spans if key in known] for spans in keyed]
    return Comparison(
        traces,
        tuple(names),
        tuple(tuple(spans[key] for spans in keyed) for key in orders[0]),
        tuple(tuple(s for key, s in spans.items() if key not in known) for spans in keyed),
        all(order == orders[0] for order in orders),
        tuple(_differences(traces, tuple(names))),
    )


def _keyed(trace: Trace, labelled: bool) -> dict[_Key, Span]:
    """The device spans by what they are, in the order in which they were asked for."""
    seen: dict[tuple[int, str, str, str], int] = {}
    keyed: dict[_Key, Span] = {}
    places = {name: place for place, name in enumerate(trace.devices)}
    for span in trace.device_spans:
        sort = (places[span.device], span.label if labelled else "", span.kind, span.name)
        number = seen[sort] = seen.get(sort, 0) + 1
        keyed[(*sort, number)] = span
    return keyed


def _sort_of(span: Span) -> str:
    return f"{span.kind} {span.name}" if span.kind != span.name else span.kind


# ------------------------------------------------------------------ quantities
_WHOLE: tuple[tuple[str, str, Callable[[Metrics], float]], ...] = (
    ("device makespan", "us", lambda m: m.device_makespan),
    ("device busy", "us", lambda m: m.device_active),
    ("device idle", "us", lambda m: m.device_idle),
    ("overlap of streams", "%", lambda m: 100 * m.overlap_fraction),
    ("streams at once", "", lambda m: float(m.max_concurrency)),
)


def _differences(traces: tuple[Trace, ...], titles: tuple[str, ...]) -> Iterator[Difference]:
    whole = [trace.metrics() for trace in traces]
    yield _difference("makespan", "us", tuple(m.makespan for m in whole), titles)
    most = max(len(trace.devices) for trace in traces)  # devices are matched by their places
    prefix = [f"GPU {place}: " if most > 1 else "" for place in range(most)]
    each = [[p.metrics() for _, p in t.each(t.devices[:MOST_DEVICES])] for t in traces]
    for place in range(min(most, MOST_DEVICES)):
        own = [found[place] for found in each if place < len(found)] if most > 1 else whole
        if len(own) == len(traces):
            for name, unit, value in _WHOLE:
                yield _difference(prefix[place] + name, unit, tuple(map(value, own)), titles)
    for kind in ("call", "wait"):
        yield _difference(f"host in {kind}s", "us", tuple(m.host[kind] for m in whole), titles)
    durations: dict[str, list[list[float]]] = {}
    for number, trace in enumerate(traces):
        places = dict(zip(trace.devices, prefix, strict=False))
        for span in trace.device_spans:
            sort = places[span.device] + _sort_of(span)
            of_sort = durations.setdefault(sort, [[] for _ in traces])
            of_sort[number].append(span.duration)
    for sort, found in durations.items():
        yield _difference(sort, "us", tuple(fmean(us or [0.0]) for us in found), titles)


def _difference(
    name: str, unit: str, values: tuple[float, ...], titles: tuple[str, ...]
) -> Difference:
    first = values[0]
    told = [
        f"{_told(value, unit)} in {title}, against {_told(first, unit)} in {titles[0]}"
        + (f", {value / first:.2f} times" if first and unit == "us" else "")
        for title, value in zip(titles[1:], values[1:], strict=True)
        # A difference below a tenth, or below what a clock resolves, is not worth a sentence.
        if abs(value - first) > max(0.1 * abs(first), 0.5)
    ]
    sentence = f"{cut(name, NAME)}: {'; '.join(told)}." if told else ""
    return Difference(name, unit, values, sentence)


def _told(value: float, unit: str) -> str:
    return f"{value:.1f} µs" if unit == "us" else f"{value:.0f} {unit}".strip()
